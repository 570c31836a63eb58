"""A small region: Neutron and OVN's databases in memory, and as many local copies of these as there are workers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.conformance_ovn import laying
from tests.conformance_ovn.laying import PortLaid

from roadstead_ovn.network import Json, NetworkRefused
from roadstead_ovn.northbound.database import NORTHBOUND, SOUTHBOUND, Change, Database
from roadstead_ovn.northbound.model import Faults, ModelNorthbound
from roadstead_ovn.ports import MONITOR_OWNER

from .shapes import ADDRESSES, SUBNETS

ROUTER = "r1"
INTERFACES = {"sub-a": ("rp-a", "192.0.2.1/24"), "sub-b": ("rp-b", "198.51.100.1/24")}
LENGTH = {"sub-a": 24, "sub-b": 24, "sub-6": 64}


class _Tap:
    """One copy's way to a database that all share: what it changes reaches the others a little later."""

    def __init__(self, region: "ModelRegion", side: str, copy: "Copy") -> None:
        self._region, self._side, self._copy = region, side, copy

    @property
    def tables(self) -> Any:
        return self._region.databases[self._side].tables

    def transact(self, operations: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Change]]:
        results, changes = self._region.databases[self._side].transact(operations)
        self._region.tell(changes, self._copy)
        return results, changes

    def rows(self) -> Any:
        return self._region.databases[self._side].rows()


class Copy(ModelNorthbound):
    """A worker's local copy, complete."""

    def __init__(self, region: "ModelRegion", faults: Faults) -> None:
        super().__init__(faults)
        self._nb = _Tap(region, "nb", self)  # type: ignore[assignment]  # all that a copy uses of a database
        self._sb = _Tap(region, "sb", self)  # type: ignore[assignment]  # likewise
        region.copies.append(self)
        self.mend()

    def hear(self, changes: Sequence[Change], delay: float) -> None:
        if not self.is_ready():
            return  # fetched anew when the connection is back
        self._late += changes
        asyncio.get_running_loop().call_later(delay, self.deliver)

    async def start(self) -> None:
        return


@dataclass
class ModelRegion:
    """Implements `network.Network`.  is_down: Neutron does not answer.  delay: seconds until a copy hears of a change, at most."""

    random: Random = field(default_factory=lambda: Random(0))
    delay: float = 0.02
    databases: dict[str, Database] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    ports: dict[str, PortLaid] = field(default_factory=dict)
    subnet_of: dict[str, str] = field(default_factory=dict)
    joined: set[str] = field(default_factory=lambda: set(INTERFACES))
    floating: dict[str, str] = field(default_factory=dict)
    probes: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    is_down: bool = False
    asked: list[str] = field(default_factory=list)
    numbers: int = 100

    def __post_init__(self) -> None:
        for subnet, found in ADDRESSES.items():
            for address in found:
                self._add(
                    PortLaid(f"vm-{address}", SUBNETS[subnet][0], (f"{address}/{LENGTH[subnet]}",)), subnet
                )
        self.lay()

    # ------------------------------------------------------------ databases

    def lay(self) -> None:
        """Empty databases, with what the network service writes to them."""
        self.databases = {"nb": Database(NORTHBOUND), "sb": Database(SOUTHBOUND)}
        for network in ("net-a", "net-b"):
            self.write(laying.network(network))
        self.write(laying.router(ROUTER))
        for subnet in sorted(self.joined):
            self._lay_interface(subnet)
        for port in self.ports.values():
            self.write(laying.switch_port(port))
        for port_id, address in self.floating.items():
            self._lay_floating(port_id, address)
        self.probes.clear()

    def _lay_interface(self, subnet: str) -> None:
        port, address = INTERFACES[subnet]
        for ops in laying.interface(port, SUBNETS[subnet][0], ROUTER, address):
            self.write(ops)

    def write(self, operations: Sequence[Mapping[str, Any]]) -> None:
        """What others than the workers write."""
        side = "sb" if {op["table"] for op in operations} & SOUTHBOUND.keys() else "nb"
        results, changes = self.databases[side].transact(operations)
        assert not any(isinstance(r, dict) and r.get("error") for r in results), results
        self.tell(changes, None)

    def tell(self, changes: Sequence[Change], writer: Copy | None) -> None:
        for copy in self.copies:
            if copy is not writer:
                copy.hear(changes, self.random.uniform(0.0, self.delay))

    def lose(self) -> None:
        """The databases are lost and made anew; every connection breaks meanwhile."""
        for copy in self.copies:
            copy.cut()
        self.lay()
        for copy in self.copies:
            copy.mend()

    def _handles(self, table: str, **values: Any) -> list[str]:
        side = "sb" if table in SOUTHBOUND else "nb"
        rows = self.databases[side].tables[table]
        return [h for h, row in rows.items() if all(row[k] == v for k, v in values.items())]

    # ------------------------------------------------------------ what happens in it

    def _add(self, port: PortLaid, subnet: str) -> None:
        self.ports[port.id] = port
        self.subnet_of[port.id] = subnet

    def plug(self, address: str, subnet: str) -> None:
        """The machine with that address is made, or removed."""
        port = PortLaid(f"vm-{address}", SUBNETS[subnet][0], (f"{address}/{LENGTH[subnet]}",))
        if port.id in self.ports:
            self._drop(port.id)
        else:
            self._add(port, subnet)
            self.write(laying.switch_port(port))

    def _drop(self, port_id: str) -> None:
        self.ports.pop(port_id)
        self.floating.pop(port_id, None)
        for handle in self._handles("Logical_Switch_Port", name=port_id):
            self.write(laying.removed([handle], "Logical_Switch", "ports"))
        for handle in self._nat(port_id):
            self.write(laying.removed([handle], "Logical_Router", "nat"))

    def _nat(self, port_id: str) -> list[str]:
        rows = self.databases["nb"].tables["NAT"]
        return [h for h, row in rows.items() if row["external_ids"].get("neutron:fip_port_id") == port_id]

    def join(self, subnet: str) -> None:
        """The router gets an interface there, or loses it."""
        if subnet in self.joined:
            self.joined.discard(subnet)
            port = INTERFACES[subnet][0]
            for handle in self._handles("Logical_Router_Port", name=f"lrp-{port}"):
                self.write(laying.removed([handle], "Logical_Router", "ports"))
            for handle in self._handles("Logical_Switch_Port", name=port):
                self.write(laying.removed([handle], "Logical_Switch", "ports"))
        else:
            self.joined.add(subnet)
            self._lay_interface(subnet)

    def float(self, port_id: str) -> None:
        """The port gets a floating IP, or loses it."""
        if port_id not in self.ports:
            return
        if port_id in self.floating:
            del self.floating[port_id]
            for handle in self._nat(port_id):
                self.write(laying.removed([handle], "Logical_Router", "nat"))
            self.write(laying.floating_mark(port_id, None))
        else:
            self.numbers += 1
            self.floating[port_id] = f"203.0.113.{self.numbers % 200}"
            self._lay_floating(port_id, self.floating[port_id])

    def _lay_floating(self, port_id: str, address: str) -> None:
        fixed = self.ports[port_id].ips[0].partition("/")[0]
        self.write(laying.floating_nat(address, port_id, fixed, ROUTER, "fa:16:3e:99:00:01"))
        self.write(laying.floating_mark(port_id, address))

    def probe(self, address: str, port: int, status: str) -> None:
        """What a chassis found: a row of that backend's probe."""
        where = [["ip", "==", address], ["port", "==", port]]
        if self._handles("Service_Monitor", ip=address, port=port):
            row: Json = {"status": status}
            self.write([{"op": "update", "table": "Service_Monitor", "where": where, "row": row}])
        else:
            row = {
                "ip": address,
                "port": port,
                "protocol": "tcp",
                "logical_port": f"vm-{address}",
                "status": status,
            }
            self.write([{"op": "insert", "table": "Service_Monitor", "row": row}])

    def meddle(self, name: str) -> None:
        """Somebody deletes rows of a load balancer."""
        self.write([{"op": "delete", "table": "Load_Balancer", "where": [["name", "==", name]]}])

    def rename(self, name: str) -> None:
        """Somebody renames rows of a load balancer."""
        where = [["name", "==", name]]
        self.write([{"op": "update", "table": "Load_Balancer", "where": where, "row": {"name": "evil"}}])

    def forget_probes(self) -> None:
        """Neutron loses its ports for probes; the database keeps them, as after a backup of either is brought back."""
        for port in [p.id for p in self.ports.values() if p.owner == MONITOR_OWNER]:
            del self.ports[port]
            self.forgotten.add(port)

    def vip_port(self, port_id: str, load_balancer_id: str, address: str) -> None:
        port = PortLaid(
            port_id,
            "net-a",
            (f"{address}/24",),
            f"ovn-lb-vip-{load_balancer_id}",
            "ovn-lb:vip",
            f"lb-{load_balancer_id}",
        )
        self._add(port, "sub-a")
        self.write(laying.switch_port(port))

    # ------------------------------------------------------------ Neutron

    async def _ask(self, what: str) -> None:
        self.asked.append(what)
        await asyncio.sleep(0.005)
        if self.is_down:
            raise NetworkRefused(503, "out of order")

    def _shown(self, port: PortLaid) -> Json:
        fixed = [
            {"subnet_id": self.subnet_of[port.id], "ip_address": ip.partition("/")[0]} for ip in port.ips
        ]
        names = {"id": port.id, "name": port.name, "network_id": port.network_id, "device_owner": port.owner}
        return {**names, "fixed_ips": fixed}

    async def subnets(self, identifiers: Sequence[str]) -> Sequence[Json]:
        await self._ask("subnets")
        return [
            {"id": i, "network_id": SUBNETS[i][0], "cidr": SUBNETS[i][1]} for i in identifiers if i in SUBNETS
        ]

    async def port(self, identifier: str) -> Json | None:
        await self._ask("port")
        found = self.ports.get(identifier)
        return None if found is None else self._shown(found)

    async def ports_named(self, name: str, network_id: str) -> Sequence[Json]:
        await self._ask("ports")
        return [self._shown(p) for p in self.ports.values() if (p.name, p.network_id) == (name, network_id)]

    async def ports_of(self, identifiers: Sequence[str]) -> Sequence[Json]:
        await self._ask("ports by id")
        return [{"id": one} for one in identifiers if one in self.ports]

    async def ports_owned(self, owners: Sequence[str]) -> Sequence[Json]:
        await self._ask("ports by owner")
        return [{"id": port.id} for port in self.ports.values() if port.owner in owners]

    async def make_port(self, body: Json) -> Json:
        await self._ask("make")
        fixed = body["fixed_ips"][0]
        self.numbers += 1
        prefix = SUBNETS[fixed["subnet_id"]][1].partition("/")[0]
        number = self.numbers % 200
        chosen = f"{prefix.rpartition('.')[0]}.{number}" if "." in prefix else f"{prefix}{number:x}"
        address = fixed.get("ip_address") or chosen
        port = PortLaid(
            f"made-{self.numbers}", body["network_id"], (f"{address}/{LENGTH[fixed['subnet_id']]}",), body["name"],
            body["device_owner"], body["device_id"],
        )  # fmt: skip
        self._add(port, fixed["subnet_id"])
        self.write(laying.switch_port(port))
        return self._shown(port)

    async def remove_port(self, identifier: str) -> None:
        await self._ask("remove")
        if identifier in self.ports:
            self._drop(identifier)

    async def recompute_floating_ip(self, address: str) -> None:
        await self._ask("recompute")

    def close(self) -> None:
        return
