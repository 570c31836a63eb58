"""The stage of one scenario: a private OVN whose rows the network service of the scenario writes, and our port to it.

What stands on it follows the replayed region: before a step is played, every network, port, router port and floating IP of the region is
laid, and what the region lost is removed.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import Facts, FloatingIP, Port, RouterPort
from roadstead_ovn.northbound.ovsdb import OvsdbNorthbound, Server, Servers
from roadstead_ovn.northbound.wire import Bounds
from roadstead_ovn.rows import HealthCheckRow, LoadBalancerRow, SwitchPort, Wanted
from tests.conformance_ovn import laying, recorded
from tests.conformance_ovn.server import Client, Ovn

PATIENCE = 10.0  # seconds for a row to show
BARRIER = "barrier"
_WORLD = ("Load_Balancer", "Logical_Switch", "Logical_Router")


class Stage:
    def __init__(self, ovn: Ovn) -> None:
        bounds = Bounds(first_retry=0.05, longest_retry=0.5)
        servers = Servers(Server((f"unix:{ovn.nb}",)), Server((f"unix:{ovn.sb}",)), bounds)
        self.northbound = OvsdbNorthbound(servers)
        self._nb, self._sb = Client(ovn.nb, "OVN_Northbound"), Client(ovn.sb, "OVN_Southbound")
        self._laid: dict[tuple[str, str], Any] = {}
        self._number = 0

    async def open(self) -> None:
        await self.northbound.start()
        async with asyncio.timeout(PATIENCE):
            await self.northbound.ready()

    async def close(self) -> None:
        await self.northbound.close()
        self._nb.close()
        self._sb.close()

    async def clear(self) -> None:
        self._nb.transact(*({"op": "delete", "table": table, "where": []} for table in _WORLD))
        self._laid = {}
        barrier = laying.PortLaid(BARRIER, BARRIER, ())
        self._nb.transact(*laying.network(BARRIER))
        self._nb.transact(*laying.switch_port(barrier))

    # ---------------------------------------------------------- the network service

    async def follow(self, region: recorded.Region) -> None:
        """Until the copy has all of the region."""
        wanted: dict[tuple[str, str], Any] = {("network", n.id): n for n in region.networks.values()}
        ports = {p.router_id for p in region.router_ports.values()}
        wanted |= {("router", identifier): identifier for identifier in ports}
        wanted |= {("port", p.id): p for p in region.ports.values() if p.id not in region.router_ports}
        wanted |= {("interface", p.id): p for p in region.router_ports.values()}
        wanted |= {("floating", f.address): (f, region.pins.get(f.address)) for f in region.floating.values()}
        for key in [key for key in self._laid if key not in wanted or self._laid[key] != wanted[key]]:
            if key[0] != "router":
                self._remove(*key, self._laid.pop(key))
        for kind in ("network", "router", "port", "interface", "floating"):
            for key, value in wanted.items():
                if key[0] == kind and key not in self._laid:
                    self._lay(kind, value, region)
                    self._laid[key] = value
        self.northbound.remember([(s.id, s.network_id, s.cidr) for s in region.subnets.values()])
        await self.catch_up()

    def _lay(self, kind: str, value: Any, region: recorded.Region) -> None:
        self._number += 1
        if kind == "network":
            self._nb.transact(*laying.network(value.id, "physnet" if value.is_provider else None))
        elif kind == "router":
            self._nb.transact(*laying.router(value))
        elif kind == "port":
            self._nb.transact(*laying.switch_port(_laid_port(value, region), self._number))
        elif kind == "interface":
            port: RouterPort = value
            steps = laying.interface(
                port.id,
                port.network_id,
                port.router_id,
                port.networks[0],
                is_gateway=port.is_gateway,
                number=self._number,
            )
            for operations in steps:
                self._nb.transact(*operations)
        else:
            floating: FloatingIP
            floating, pin = value
            router = next(iter(sorted(p.router_id for p in region.router_ports.values())))
            self._nb.transact(
                *laying.floating_nat(floating.address, floating.port_id, floating.fixed_address, router, pin)
            )
            self._nb.transact(*laying.floating_mark(floating.port_id, floating.address))

    def _remove(self, kind: str, name: str, value: Any) -> None:
        if kind == "network":
            where = [["name", "==", f"neutron-{name}"]]
            self._nb.transact({"op": "delete", "table": "Logical_Switch", "where": where})
        elif kind in ("port", "interface"):
            if kind == "interface":
                self._take_out("Logical_Router_Port", f"lrp-{name}", "Logical_Router", "ports")
            self._take_out("Logical_Switch_Port", name, "Logical_Switch", "ports")
        else:
            self._take_out("NAT", name, "Logical_Router", "nat", column="external_ip")
            self._nb.transact(*laying.floating_mark(value[0].port_id, None))

    def _take_out(self, table: str, name: str, parent: str, place: str, column: str = "name") -> None:
        rows = self._nb.select(table, ((column, "==", name),), "_uuid")
        if rows:
            self._nb.transact(*laying.removed([row["_uuid"] for row in rows], parent, place))

    async def catch_up(self) -> None:
        """Until the copy has all that was written so far."""
        self._number += 1
        text = laying.mac(self._number) + " barrier" + str(self._number)
        change = {"addresses": text}
        where = [["name", "==", BARRIER]]
        self._nb.transact({"op": "update", "table": "Logical_Switch_Port", "where": where, "row": change})
        wanted = Wanted(switch_ports={BARRIER: SwitchPort(())})
        end = time.monotonic() + PATIENCE
        while self.northbound.found("", wanted).addresses.get(BARRIER) != (text,):
            if time.monotonic() > end:
                raise TimeoutError("the copy does not follow the database")
            await asyncio.sleep(0.001)

    # ---------------------------------------------------------- chassis and probes

    async def bind(self, ports: Mapping[str, Port]) -> None:
        """As a chassis does: probes of ports that are not up count for nothing."""
        names = {port.id for port in ports.values() if port.device_owner.startswith("compute:")}
        end = time.monotonic() + PATIENCE
        while not names <= {r["logical_port"] for r in self._sb.select("Port_Binding", (), "logical_port")}:
            if time.monotonic() > end:
                raise TimeoutError("northd makes no port bindings")
            await asyncio.sleep(0.02)
        for name in sorted(names):
            where = [["logical_port", "==", name]]
            self._sb.transact({"op": "update", "table": "Port_Binding", "where": where, "row": {"up": True}})

    async def probe(
        self, address: str, port: int, protocol: str, status: str, patience: float = PATIENCE
    ) -> bool:
        """A chassis has probed; False when northd has made no such probe in time."""
        where = (("ip", "==", address), ("port", "==", port), ("protocol", "==", protocol))
        end = time.monotonic() + patience
        while not self._sb.select("Service_Monitor", where, "_uuid"):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.02)
        row = {"status": status}
        self._sb.transact(
            {"op": "update", "table": "Service_Monitor", "where": [list(x) for x in where], "row": row}
        )
        return True

    async def sees(self, balancer: Balancer, address: str, port: int, protocol: str, status: str) -> None:
        wanted = address, port, protocol, status
        end = time.monotonic() + PATIENCE
        while all(
            (m.address, m.port, m.protocol, m.status) != wanted
            for m in self.northbound.facts(balancer).monitors
        ):
            if time.monotonic() > end:
                raise TimeoutError(f"the probe of {address}:{port} has not reached the copy")
            await asyncio.sleep(0.005)

    # ---------------------------------------------------------- rows

    def damage(self, name: str | None) -> None:
        """Rows of load balancers are lost; None: of all."""
        where = [["name", "==", name]] if name else []
        self._nb.transact({"op": "delete", "table": "Load_Balancer", "where": where})

    def write_by_hand(self, rows: list[LoadBalancerRow]) -> None:
        """As another writer would: rows, then where they hang."""
        for row in rows:
            ops: list[dict[str, Any]] = []
            checks = []
            for number, check in enumerate(row.health_checks):
                values = {
                    "vip": check.vip,
                    "options": laying.as_map(check.options),
                    "external_ids": laying.as_map(check.external_ids),
                }
                label = f"check{number}"
                ops.append(
                    {"op": "insert", "table": "Load_Balancer_Health_Check", "row": values, "uuid-name": label}
                )
                checks.append(["named-uuid", label])
            columns = {
                "name": row.name,
                "protocol": laying.as_set([row.protocol] if row.protocol else []),
                "selection_fields": laying.as_set(row.selection_fields),
                "health_check": laying.as_set(checks),
                **{
                    name: laying.as_map(getattr(row, name))
                    for name in ("vips", "external_ids", "options", "ip_port_mappings")
                },
            }
            ops.append({"op": "insert", "table": "Load_Balancer", "row": columns, "uuid-name": "row"})
            for table, carriers in (("Logical_Switch", row.switches), ("Logical_Router", row.routers)):
                for carrier in sorted(carriers):
                    mutation = ["load_balancer", "insert", laying.as_set([["named-uuid", "row"]])]
                    where = [["name", "==", carrier]]
                    ops.append({"op": "mutate", "table": table, "where": where, "mutations": [mutation]})
            self._nb.transact(*ops)

    def rows(self) -> list[LoadBalancerRow]:
        """All rows of load balancers, read past our copy."""
        checks = {r["_uuid"]: r for r in self._nb.select("Load_Balancer_Health_Check")}
        carriers = {
            table: self._nb.select(table, (), "name", "load_balancer")
            for table in ("Logical_Switch", "Logical_Router")
        }
        found = []
        for row in self._nb.select("Load_Balancer"):
            hanging = [
                frozenset(c["name"] for c in carriers[table] if row["_uuid"] in _listed(c["load_balancer"]))
                for table in ("Logical_Switch", "Logical_Router")
            ]
            found.append(
                LoadBalancerRow(
                    row["name"],
                    next(iter(_listed(row["protocol"])), None),
                    row["vips"],
                    row["external_ids"],
                    row["options"],
                    tuple(_listed(row["selection_fields"])),
                    row["ip_port_mappings"],
                    tuple(
                        HealthCheckRow(checks[h]["vip"], checks[h]["options"], checks[h]["external_ids"])
                        for h in _listed(row["health_check"])
                    ),
                    hanging[0],
                    hanging[1],
                )
            )
        return sorted(found, key=lambda row: (row.name, row.protocol or ""))

    def translations(self) -> list[dict[str, Any]]:
        columns = ("external_ip", "logical_ip", "external_mac", "logical_port")
        return sorted(self._nb.select("NAT", (), *columns), key=lambda row: str(row["external_ip"]))

    def addresses(self, port_id: str) -> list[str]:
        rows = self._nb.select("Logical_Switch_Port", (("name", "==", port_id),), "addresses")
        return _listed(rows[0]["addresses"]) if rows else []

    def is_clean(self) -> bool:
        """No health check is left that no row refers to."""
        used = {
            h
            for row in self._nb.select("Load_Balancer", (), "health_check")
            for h in _listed(row["health_check"])
        }
        return {r["_uuid"] for r in self._nb.select("Load_Balancer_Health_Check", (), "_uuid")} == used


def facts(stage: Stage, balancer: Balancer, region: recorded.Region) -> Facts:
    """By the port, and the subnets from the network service."""
    around = stage.northbound.facts(balancer)
    return Facts(
        around.networks,
        tuple(region.subnets.values()),
        around.ports,
        around.router_ports,
        around.floating_ips,
        around.monitors,
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _laid_port(port: Port, region: recorded.Region) -> laying.PortLaid:
    ips = tuple(f"{ip}/{region.subnets[subnet].cidr.split('/')[1]}" for subnet, ip in port.fixed_ips)
    kind = "localport" if port.device_owner.endswith(":distributed") else ""
    return laying.PortLaid(
        port.id, port.network_id, ips, port.name, port.device_owner, port.device_id, port.project_id, kind
    )
