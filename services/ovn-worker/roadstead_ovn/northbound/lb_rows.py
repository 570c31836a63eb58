"""Load_Balancer rows of the local copy, with their health checks and with what carries them, by name.

A row whose name somebody changed is still known by the UUID that was chosen for it, and by its revision with the port of its VIP.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any
from uuid import UUID

from roadstead_ovn.facts import canonical
from roadstead_ovn.northbound.interests import (
    Key,
    address_key,
    monitor_port_key,
    network_key,
    port_key,
    probe_key,
    router_key,
)
from roadstead_ovn.northbound.neutron import Columns, stripped
from roadstead_ovn.northbound.operations import chosen
from roadstead_ovn.northbound.port import FoundRow
from roadstead_ovn.rows import REVISION, HealthCheckRow, LoadBalancerRow

VIP_PORT = "neutron:vip_port_id"
# A load balancer has three rows at most, one for each protocol; as many more may be made in the transaction that removes them.
CHOSEN = 6


class LoadBalancerRows:
    def __init__(self) -> None:
        self._rows: dict[str, Columns] = {}
        self._by_name: dict[str, set[str]] = {}
        self._by_port: dict[str, set[str]] = {}  # those with our revision, by the port of their VIP
        self._checks: dict[str, HealthCheckRow] = {}
        self._owner: dict[str, str] = {}  # of a health check: the row that refers to it
        self._switches: dict[str, set[str]] = defaultdict(set)
        self._routers: dict[str, set[str]] = defaultdict(set)
        self._made: dict[str, FoundRow] = {}
        self._revision: dict[str, int | None] = {}

    # ---------------------------------------------------------- rows come in

    def apply(self, handle: str, columns: Columns | None) -> Iterable[tuple[str, bool]]:
        """Names that the row had and has; and whether the change was made by a worker of ours, which raises the revision.

        Who loses a row to another name is always told.
        """
        old = self._rows.get(handle)
        was = None if old is None else revision_of(old["external_ids"])
        for check in old["health_check"] if old else ():
            self._owner.pop(check, None)
        if columns is None:
            self._rows.pop(handle, None)
            self._switches.pop(handle, None)
            self._routers.pop(handle, None)
        else:
            self._rows[handle] = columns
            self._owner.update(dict.fromkeys(columns["health_check"], handle))
        self._made.pop(handle, None)
        self._move(handle, _marked_port(old), _marked_port(columns))
        now = None if columns is None else revision_of(columns["external_ids"])
        is_ours = now is not None and (was is None or now > was)
        names = {row["name"] for row in (old, columns) if row is not None}
        for name in names:
            handles = self._by_name.setdefault(name, set())
            handles.discard(handle)
            if columns is not None and columns["name"] == name:
                handles.add(handle)
            if not handles:
                del self._by_name[name]
                self._revision.pop(name, None)
            else:
                revisions = (revision_of(self._rows[h]["external_ids"]) for h in handles)
                self._revision[name] = max((r for r in revisions if r is not None), default=None)
        return [(name, is_ours and columns is not None and columns["name"] == name) for name in names]

    def _move(self, handle: str, old: str, new: str) -> None:
        if old == new:
            return
        if old:
            self._by_port[old].discard(handle)
            if not self._by_port[old]:
                del self._by_port[old]
        if new:
            self._by_port.setdefault(new, set()).add(handle)

    def apply_check(self, handle: str, columns: Columns | None) -> Iterable[str]:
        """Names of load balancers whose check changed; a check that comes or goes shows in its row as well."""
        if columns is None:
            self._checks.pop(handle, None)
        else:
            check = HealthCheckRow(columns["vip"], columns["options"], columns["external_ids"])
            is_new = handle not in self._checks
            self._checks[handle] = check
            owner = self._owner.get(handle)
            if owner is not None:
                self._made.pop(owner, None)
                if not is_new:
                    return [self._rows[owner]["name"]]
        return []

    def hang(self, carrier: str, had: frozenset[str], has: frozenset[str], is_switch: bool) -> Iterable[str]:
        """Rows that a switch or router carried and carries now; names of load balancers that exist and whose place changed."""
        places = self._switches if is_switch else self._routers
        for handle in had - has:
            if handle in places:
                places[handle].discard(carrier)
        for handle in has - had:
            places[handle].add(carrier)
        changed = had ^ has
        for handle in changed:
            self._made.pop(handle, None)
        return {self._rows[handle]["name"] for handle in changed if handle in self._rows}

    # ---------------------------------------------------------- questions

    def names(self) -> Collection[str]:
        return list(self._by_name)

    def known(self) -> Mapping[str, int | None]:
        return dict(self._revision)

    def found(self, name: str, ports: Collection[str] = ()) -> tuple[FoundRow, ...]:
        """The load balancer's rows; ports: of its VIP, to know renamed ones by."""
        handles = set(self._by_name.get(name, ()))
        renamed = {handle for handle in islice(chosen(name), CHOSEN) if handle in self._rows} - handles
        for port in ports:
            others = self._by_port.get(port, set()) - handles
            renamed.update(handle for handle in others if not _is_identifier(self._rows[handle]["name"]))
        found = {handle: self._row(handle) for handle in handles}
        for handle in renamed:
            row = self._row(handle)
            # One that serves another VIP by now has that one's revision, which says nothing here.
            is_same = not ports or row.row.external_ids.get(VIP_PORT, "") in ports
            found[handle] = row if is_same else replace(row, revision=None)
        return tuple(found[handle] for handle in sorted(found))

    def current(self, handle: str) -> FoundRow | None:
        return self._row(handle) if handle in self._rows else None

    def checks_of(self, handle: str) -> Mapping[str, HealthCheckRow]:
        row = self._rows.get(handle)
        return {key: self._checks[key] for key in row["health_check"] if key in self._checks} if row else {}

    def _row(self, handle: str) -> FoundRow:
        if (made := self._made.get(handle)) is not None:
            return made
        columns = self._rows[handle]
        row = LoadBalancerRow(
            columns["name"],
            columns["protocol"] or None,
            columns["vips"],
            columns["external_ids"],
            columns["options"],
            tuple(sorted(columns["selection_fields"])),
            columns["ip_port_mappings"],
            tuple(self._checks[key] for key in sorted(columns["health_check"]) if key in self._checks),
            frozenset(self._switches.get(handle, ())),
            frozenset(self._routers.get(handle, ())),
        )
        found = self._made[handle] = FoundRow(handle, row, revision_of(columns["external_ids"]))
        return found

    def keys(self, name: str, network_of: Callable[[str], str]) -> frozenset[Key]:
        """What the rows of a load balancer say it depends on.  network_of: a subnet's, empty when unknown."""
        keys: set[Key] = set()
        for handle in self._by_name.get(name, ()):
            columns = self._rows[handle]
            ids: Mapping[str, str] = columns["external_ids"]
            ports = [
                ids.get(VIP_PORT, ""),
                *ids.get("neutron:additional_vip_port_ids", "").split(","),
            ]
            keys.update(port_key(port) for port in ports if port)
            keys.update(network_key(stripped(x)) for x in self._switches.get(handle, ()))
            keys.update(router_key(stripped(x)) for x in self._routers.get(handle, ()))
            for target in columns["ip_port_mappings"].values():
                port = target.split(":")[0]
                keys |= {port_key(port), probe_key(port)}
            for subnet, address in members_in(ids):
                keys |= {monitor_port_key(subnet), address_key(network_of(subnet), address)}
        return frozenset(keys)


def _marked_port(columns: Columns | None) -> str:
    """The port of the VIP of a row with our revision; else empty."""
    if columns is None or revision_of(columns["external_ids"]) is None:
        return ""
    return str(columns["external_ids"].get(VIP_PORT, ""))


def _is_identifier(name: str) -> bool:
    """Whether it may be another load balancer's: two may share the port of a VIP."""
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def revision_of(ids: Mapping[str, str]) -> int | None:
    """None where there is none, or one that cannot be read: the row counts as another writer's."""
    text = ids.get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else None


def members_in(ids: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Subnet and address of the members in a row's external_ids."""
    for key, value in ids.items():
        if key.startswith("pool_"):
            for text in value.split(",") if value else ():
                # member_<id>_<address>:<port>_<subnet>: an address may hold colons, none of the others does.
                parts = text.split("_")
                if len(parts) == 4:
                    yield parts[3], canonical(parts[2].rpartition(":")[0])
