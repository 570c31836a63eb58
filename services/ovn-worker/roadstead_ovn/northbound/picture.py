"""The local copy in the shape of the questions that are asked of it: every answer is a few dictionary look-ups.

Rows are given to it one by one as they come, change and go; it keeps values that never change, and tells `Interests` and `Wakes` what a
change means. It knows nothing of connections, and is used by one task at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import (
    MONITOR_PORT_PREFIX,
    Facts,
    FloatingIP,
    Network,
    Port,
    RouterPort,
    ServiceMonitor,
    canonical,
)
from roadstead_ovn.health import DOWN
from roadstead_ovn.northbound import schema
from roadstead_ovn.northbound.interests import (
    Interests,
    Key,
    Wakes,
    address_key,
    monitor_port_key,
    network_key,
    port_key,
    probe_key,
    router_key,
)
from roadstead_ovn.northbound.lb_rows import VIP_PORT, LoadBalancerRows
from roadstead_ovn.northbound.look import Look, Subnets
from roadstead_ovn.northbound.neutron import (
    Carrier,
    Columns,
    SwitchPortRow,
    Translation,
    carrier,
    router_port,
    service_monitor,
    switch_port,
    translation,
)
from roadstead_ovn.northbound.port import Found, FoundRow, Source
from roadstead_ovn.rows import HealthCheckRow, Wanted

# Tables whose rows a picture is made of.
HANDLED = frozenset(schema.NORTHBOUND["tables"]) | frozenset(schema.SOUTHBOUND["tables"])


class Picture:
    """subnets: as `Northbound.remember` got them; they outlive the picture."""

    def __init__(self, interests: Interests, wakes: Wakes, subnets: Subnets) -> None:
        self._interests, self._wakes, self._subnets = interests, wakes, subnets
        self._load_balancers = LoadBalancerRows()
        self._switches: dict[str, Carrier] = {}
        self._routers: dict[str, Carrier] = {}
        self._ports: dict[str, SwitchPortRow] = {}
        self._router_ports: dict[str, RouterPort] = {}
        self._translations: dict[str, Translation] = {}
        self._monitors: dict[str, ServiceMonitor] = {}
        # By name, address or id: handles of rows.
        self._switch_by_name = _Index()
        self._router_by_name = _Index()
        self._port_by_id = _Index()
        self._port_by_address = _Index()
        self._monitor_port = _Index()
        self._router_port_by_network = _Index()
        self._router_port_by_router = _Index()
        self._nat_by_port = _Index()
        self._nat_by_address = _Index()
        self._monitor_by_port = _Index()
        self._made: dict[str, tuple[int, Port]] = {}
        self._touched: dict[Source, set[Key]] = defaultdict(set)
        self._rows_touched: set[str] = set()
        self._ours: set[str] = set()  # written by another worker of ours, which knows what it does
        self._take: Mapping[str, Callable[[str, Columns | None], None]] = {
            "Load_Balancer": self._load_balancer,
            "Load_Balancer_Health_Check": self._health_check,
            "Logical_Switch": self._switch,
            "Logical_Router": self._router,
            "Logical_Switch_Port": self._port,
            "Logical_Router_Port": self._router_port,
            "NAT": self._nat,
            "Service_Monitor": self._service_monitor,
        }

    # ---------------------------------------------------------- rows come in

    def apply(self, table: str, handle: str, columns: Columns | None) -> None:
        """A row as it is now; None: it is gone."""
        self._take[table](handle, columns)

    def settle(self, own: Collection[str] = ()) -> None:
        """The end of a batch of changes: those who are concerned are woken.  own: load balancers whose rows are being written here."""
        for source, keys in self._touched.items():
            self._wakes.add(source, self._interests.of(keys))
        self._touched.clear()
        self._wakes.add(Source.ROWS, self._rows_touched.difference(own, self._ours))
        names = self._rows_touched | self._ours
        self._rows_touched, self._ours = set(), set()
        for name in names:
            if not self._interests.has_looked(name):
                self._interests.guess(name, self._load_balancers.keys(name, self._subnets.network_of))

    def forget_changes(self) -> None:
        """Everything so far wakes nobody (it is the first picture, or all are woken anyway); interests are taken from the rows."""
        self._touched.clear()
        self._rows_touched.clear()
        self._ours.clear()
        for name in self._load_balancers.names():
            if not self._interests.has_looked(name):
                self._interests.guess(name, self._load_balancers.keys(name, self._subnets.network_of))

    def _load_balancer(self, handle: str, columns: Columns | None) -> None:
        for name, is_ours in self._load_balancers.apply(handle, columns):
            (self._ours if is_ours else self._rows_touched).add(name)

    def _health_check(self, handle: str, columns: Columns | None) -> None:
        self._rows_touched.update(self._load_balancers.apply_check(handle, columns))

    def _switch(self, handle: str, columns: Columns | None) -> None:
        old, new = self._switches.get(handle), None if columns is None else carrier(columns)
        self._carried(self._switches, self._switch_by_name, handle, old, new, is_switch=True)
        for side in (old, new):
            if side is not None and (old is None or new is None or old.is_provider != new.is_provider):
                self._touched[Source.SWITCH].add(network_key(side.id))

    def _router(self, handle: str, columns: Columns | None) -> None:
        old, new = self._routers.get(handle), None if columns is None else carrier(columns)
        self._carried(self._routers, self._router_by_name, handle, old, new, is_switch=False)

    def _carried(
        self,
        rows: dict[str, Carrier],
        index: "_Index",
        handle: str,
        old: Carrier | None,
        new: Carrier | None,
        *,
        is_switch: bool,
    ) -> None:
        _store(rows, handle, new)
        index.move(handle, [old.name] if old else [], [new.name] if new else [])
        had = old.load_balancers if old else frozenset()
        has = new.load_balancers if new else frozenset()
        if old is not None and new is not None and old.name != new.name:
            self._load_balancers.hang(old.name, had, frozenset(), is_switch)
            had = frozenset()
        name = new.name if new else old.name if old else ""
        self._rows_touched.update(self._load_balancers.hang(name, had, has, is_switch))

    def _port(self, handle: str, columns: Columns | None) -> None:
        old, new = self._ports.get(handle), None if columns is None else switch_port(columns)
        _store(self._ports, handle, new)
        self._made.pop(handle, None)
        sides = [side for side in (old, new) if side is not None]
        before, after = (_port_places(side) if side else ([], [], []) for side in (old, new))
        for index, gone, come in zip(
            (self._port_by_id, self._port_by_address, self._monitor_port), before, after, strict=True
        ):
            index.move(handle, gone, come)
        if old is None or new is None or old.facts != new.facts:
            for side in sides:
                facts = side.facts
                self._touched[Source.PORT].add(port_key(facts.id))
                self._touched[Source.PORT].update(address_key(facts.network_id, ip) for ip in facts.ips)
                if facts.name.startswith(MONITOR_PORT_PREFIX):
                    subnet = facts.name.removeprefix(MONITOR_PORT_PREFIX)
                    self._touched[Source.PORT].add(monitor_port_key(subnet))
        elif new.addresses and new.addresses != old.addresses:  # that they were taken away is our doing
            self._touched[Source.PORT].add(port_key(new.facts.id))
        if (old.floating_ip if old else "") != (new.floating_ip if new else ""):
            self._touched[Source.FLOATING_IP].update(port_key(side.facts.id) for side in sides)

    def _router_port(self, handle: str, columns: Columns | None) -> None:
        old, new = self._router_ports.get(handle), None if columns is None else router_port(columns)
        _store(self._router_ports, handle, new)
        for index, part in (
            (self._router_port_by_network, "network_id"),
            (self._router_port_by_router, "router_id"),
        ):
            index.move(handle, [getattr(old, part)] if old else [], [getattr(new, part)] if new else [])
        if old != new:
            for side in (old, new):
                if side is not None:
                    keys = network_key(side.network_id), router_key(side.router_id)
                    self._touched[Source.ROUTER].update(keys)

    def _nat(self, handle: str, columns: Columns | None) -> None:
        old, new = self._translations.get(handle), None if columns is None else translation(columns)
        _store(self._translations, handle, new)
        self._nat_by_port.move(handle, [old.port_id] if old else [], [new.port_id] if new else [])
        self._nat_by_address.move(handle, [old.address] if old else [], [new.address] if new else [])
        is_same = old and new and replace(old, is_pinned=False) == replace(new, is_pinned=False)
        if is_same and old and new and (old.is_pinned or not new.is_pinned):
            return  # that it is pinned no longer is our doing
        self._touched[Source.FLOATING_IP].update(port_key(side.port_id) for side in (old, new) if side)

    def _service_monitor(self, handle: str, columns: Columns | None) -> None:
        old, new = self._monitors.get(handle), None if columns is None else service_monitor(columns)
        _store(self._monitors, handle, new)
        self._monitor_by_port.move(
            handle, [old.logical_port] if old else [], [new.logical_port] if new else []
        )
        # A probe that has not answered yet counts as one that is well, and so does one that is not made.
        if (old is not None and old.status in DOWN) != (new is not None and new.status in DOWN):
            self._touched[Source.PROBE].update(probe_key(x.logical_port) for x in (old, new) if x)

    def lost_probes(self) -> None:
        """The Southbound copy starts anew."""
        self._monitors.clear()
        self._monitor_by_port = _Index()

    def take_probes(self, other: "Picture") -> None:
        """What the other picture has of the Southbound database."""
        self._monitors, self._monitor_by_port = other._monitors, other._monitor_by_port

    # ---------------------------------------------------------- questions

    def facts(self, balancer: Balancer) -> Facts:
        """What is known around it; it will be woken when any of that changes."""
        look = Look(self, balancer)
        self._interests.look(balancer.id, frozenset(look.keys))
        return look.facts()

    def found(self, load_balancer_id: str, wanted: Wanted) -> Found:
        addresses = {}
        for port_id in wanted.switch_ports:
            for handle in self._port_by_id.get(port_id):
                addresses[port_id] = self._ports[handle].addresses
        pinned = {
            address
            for address in wanted.centralised
            if any(self._translations[h].is_pinned for h in self._nat_by_address.get(canonical(address)))
        }
        ports = {row.external_ids.get(VIP_PORT, "") for row in wanted.rows}
        return Found(self._load_balancers.found(load_balancer_id, ports), addresses, frozenset(pinned))

    def known(self) -> Mapping[str, int | None]:
        return self._load_balancers.known()

    # ---------------------------------------------------------- handles for operations

    def current(self, handle: str) -> FoundRow | None:
        return self._load_balancers.current(handle)

    def checks_of(self, handle: str) -> Mapping[str, HealthCheckRow]:
        return self._load_balancers.checks_of(handle)

    def named(self, table: str, name: str) -> Collection[str]:
        indexes = {
            "Logical_Switch": self._switch_by_name,
            "Logical_Router": self._router_by_name,
            "Logical_Switch_Port": self._port_by_id,
            "NAT": self._nat_by_address,
        }
        return indexes[table].get(name)

    # ---------------------------------------------------------- for a look around

    def network(self, network_id: str) -> Network | None:
        for handle in self._switch_by_name.get(f"neutron-{network_id}"):
            return Network(network_id, self._switches[handle].is_provider)
        return None

    def network_of(self, network_id: str, subnet_id: str) -> str:
        return network_id or self._subnets.network_of(subnet_id)

    def port(self, port_id: str) -> list[Port]:
        return self._port_values(self._port_by_id.get(port_id))

    def machines(self, network_id: str, address: str) -> list[Port]:
        return self._port_values(self._port_by_address.get((network_id, canonical(address))))

    def monitor_ports(self, subnet_id: str) -> list[Port]:
        return self._port_values(self._monitor_port.get(subnet_id))

    def router_ports_of_network(self, network_id: str) -> list[RouterPort]:
        return [self._router_ports[handle] for handle in self._router_port_by_network.get(network_id)]

    def router_ports_of_router(self, router_id: str) -> list[RouterPort]:
        return [self._router_ports[handle] for handle in self._router_port_by_router.get(router_id)]

    def floating_ips(self, port_id: str) -> list[FloatingIP]:
        """By their NAT rows; one that only marks the port leads to whatever the port has."""
        rows = [self._translations[handle] for handle in self._nat_by_port.get(port_id)]
        found = [FloatingIP(row.address, port_id, row.fixed_address) for row in rows]
        for handle in self._port_by_id.get(port_id):
            mark = self._ports[handle].floating_ip
            if mark and all(item.address != mark for item in found):
                found.append(FloatingIP(mark, port_id))
        return found

    def probes(self, port_id: str) -> list[ServiceMonitor]:
        return [self._monitors[handle] for handle in self._monitor_by_port.get(port_id)]

    def _port_values(self, handles: Collection[str]) -> list[Port]:
        absent = self._subnets.absent
        return [self._port_value(h) for h in handles if self._ports[h].facts.id not in absent]

    def _port_value(self, handle: str) -> Port:
        facts = self._ports[handle].facts
        age = self._subnets.age(facts.network_id)
        known = self._made.get(handle)
        if known is not None and known[0] == age:
            return known[1]
        fixed = tuple((self._subnets.holding(facts.network_id, ip), ip) for ip in facts.ips)
        made = Port(
            facts.id,
            facts.network_id,
            facts.name,
            facts.device_owner,
            facts.device_id,
            facts.project_id,
            fixed,
        )
        self._made[handle] = age, made
        return made


class _Index:
    """Handles of rows by a value of theirs."""

    def __init__(self) -> None:
        self._handles: dict[Any, set[str]] = {}

    def get(self, value: Any) -> Collection[str]:
        return self._handles.get(value, ())

    def move(self, handle: str, gone: Collection[Any], come: Collection[Any]) -> None:
        if gone == come:
            return
        for value in gone:
            there = self._handles[value]
            there.discard(handle)
            if not there:
                del self._handles[value]
        for value in come:
            self._handles.setdefault(value, set()).add(handle)


def _store(rows: dict[str, Any], handle: str, row: Any) -> None:
    if row is None:
        rows.pop(handle, None)
    else:
        rows[handle] = row


def _port_places(row: SwitchPortRow) -> tuple[list[Any], list[Any], list[Any]]:
    facts = row.facts
    places = list(dict.fromkeys((facts.network_id, ip) for ip in facts.ips))
    is_monitor = facts.name.startswith(MONITOR_PORT_PREFIX)
    return [facts.id], places, [facts.name.removeprefix(MONITOR_PORT_PREFIX)] if is_monitor else []
