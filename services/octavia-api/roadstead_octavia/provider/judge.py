"""What a provider's status message does to trees: pure.

A message names objects in seven lists and says which status each has now.  It is judged as a whole, in one order (children before their
parents), and is carried out whole or not at all.  DELETED removes the row with all that belongs to it, but for a load balancer, whose
row stays; DELETED of what is not there is done already.  Any other status of what is not there, or has been deleted, is a fault.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roadstead_octavia.db.port import Delete, Row, Tree, Update, Write

# List in a message -> table and the noun in texts, in the order of processing.
KINDS: dict[str, tuple[str, str]] = {
    "members": ("member", "Member"),
    "healthmonitors": ("health_monitor", "Health Monitor"),
    "pools": ("pool", "Pool"),
    "l7rules": ("l7rule", "L7 Rule"),
    "l7policies": ("l7policy", "L7 Policy"),
    "listeners": ("listener", "Listener"),
    "loadbalancers": ("load_balancer", "Load Balancer"),
}
KIND_OF = {table: kind for kind, (table, _) in KINDS.items()}
PROVISIONING = frozenset(
    (
        *("ACTIVE", "PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE", "DELETED", "ERROR"),
        *("ALLOCATED", "BOOTING", "FAILOVER_STOPPED", "READY"),
    )
)
OPERATING = frozenset(("ONLINE", "OFFLINE", "DEGRADED", "ERROR", "DRAINING", "NO_MONITOR"))
PARENTS = {
    "member": "pool_id",
    "health_monitor": "pool_id",
    "l7policy": "listener_id",
    "l7rule": "l7policy_id",
}


class Fault(Exception):
    """Why a message is not carried out.  kind and id: the record, where it is one."""

    def __init__(self, text: str, kind: str | None = None, identifier: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.kind = kind
        self.id = identifier


@dataclass(frozen=True)
class Port:
    """A VIP port that we own and whose load balancer is gone."""

    load_balancer_id: str
    port_id: str | None


@dataclass(frozen=True)
class Verdict:
    """What is to be done, by load balancer.  ports are removed before anything is written."""

    writes: Mapping[str, tuple[Write, ...]] = field(default_factory=dict)
    ports: tuple[Port, ...] = ()


def mentioned(message: Any) -> list[tuple[str, str]]:
    """(table, id) of every record that has an id; never raises."""
    if not isinstance(message, Mapping):
        return []
    found = []
    for kind, (table, _) in KINDS.items():
        records = message.get(kind)
        for record in records if isinstance(records, list) else ():
            if isinstance(record, Mapping) and isinstance(record.get("id"), str):
                found.append((table, record["id"]))
    return list(dict.fromkeys(found))


def judge(message: Any, trees: Iterable[Tree], *, provider: str | None = None) -> Verdict:
    """The verdict on a status message over the trees of all that it mentions.  Fault.

    provider: whose message it is; another one's objects are not there for it.
    """
    known = Known(t for t in trees if provider is None or t.load_balancer["provider"] == provider)
    apply_records(known, message)
    return known.verdict()


def apply_records(known: "Known", message: Any) -> None:
    """Note what every record of the message says.  Fault."""
    for kind, table, record in _records(message):
        _one(known, kind, table, record)


def _records(message: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    if not isinstance(message, Mapping):
        raise Fault("the message is not an object")
    for kind, (table, _) in KINDS.items():
        records = message.get(kind, [])
        if not isinstance(records, list):
            raise Fault(f"{kind} is not a list")
        for record in records:
            if not isinstance(record, Mapping):
                raise Fault("a record is not an object", kind)
            if not isinstance(record.get("id"), str):
                raise Fault("a record has no id", kind)
            yield kind, table, record


def _one(known: "Known", kind: str, table: str, record: Mapping[str, Any]) -> None:
    identifier = record["id"]
    values = {}
    for name, allowed in (("provisioning_status", PROVISIONING), ("operating_status", OPERATING)):
        if name in record:
            value = record[name]
            if not isinstance(value, str) or value not in allowed:
                raise Fault(f"{value!r:.60} is no {name}", kind, identifier)
            values[name] = value
    found = known.find(table, identifier)
    if values.get("provisioning_status") == "DELETED":
        if found is not None:
            known.delete(table, identifier, values)
        return
    if not values:
        return
    if found is None or found["provisioning_status"] == "DELETED":
        raise Fault(f"{KINDS[kind][1]} {identifier} not found.", kind, identifier)
    known.set(table, identifier, values)


class Known:
    """Trees under judgement: what becomes of each object, last word first."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        self._rows: dict[tuple[str, str], tuple[str, Row]] = {}
        self._trees: dict[str, Tree] = {}
        self._set: dict[tuple[str, str], dict[str, Any]] = {}
        self._gone: dict[tuple[str, str], None] = {}
        self._ports: list[Port] = []
        for tree in trees:
            owner = tree.load_balancer["id"]
            self._trees[owner] = tree
            for table in KIND_OF:
                for row in tree.of(table):
                    self._rows[table, row["id"]] = (owner, row)

    def find(self, table: str, identifier: str) -> Row | None:
        """The row as it stands now, None when it is not there or gone."""
        held = self._rows.get((table, identifier))
        if held is None or self._is_gone(table, held[1]):
            return None
        return {**held[1], **self._set.get((table, identifier), {})}

    def _is_gone(self, table: str, row: Row) -> bool:
        if (table, row["id"]) in self._gone:
            return True
        column = PARENTS.get(table)
        if column is None:
            return False
        parent = self._rows.get((column.removesuffix("_id"), row[column]))
        return parent is not None and self._is_gone(column.removesuffix("_id"), parent[1])

    def set(self, table: str, identifier: str, values: Mapping[str, Any]) -> None:
        self._set.setdefault((table, identifier), {}).update(values)

    def delete(self, table: str, identifier: str, values: Mapping[str, Any]) -> None:
        """DELETED: the row goes; a load balancer's stays, and the port that we made for it goes."""
        if table != "load_balancer":
            self._gone[table, identifier] = None
            return
        self.set(table, identifier, values)
        vip: Row = next(iter(self._trees[identifier].of("vip")), {})
        if vip.get("octavia_owned"):
            self._ports.append(Port(identifier, vip.get("port_id")))

    def children(self, load_balancer_id: str) -> list[tuple[str, str]]:
        """Everything below the load balancer, by table and id."""
        tree = self._trees[load_balancer_id]
        return [(table, row["id"]) for table in KIND_OF if table != "load_balancer" for row in tree.of(table)]

    def verdict(self) -> Verdict:
        writes: dict[str, list[Write]] = {}
        for (table, identifier), values in self._set.items():
            owner, row = self._rows[table, identifier]
            if not self._is_gone(table, row):
                writes.setdefault(owner, []).append(Update(table, {"id": identifier}, values))
        for table, identifier in self._gone:
            owner, row = self._rows[table, identifier]
            if not self._parent_is_gone(table, row):
                writes.setdefault(owner, []).append(Delete(table, {"id": identifier}))
        for owner, tree in self._trees.items():
            if renumbered := list(self._renumbered(tree)):
                writes.setdefault(owner, []).extend(renumbered)
        return Verdict({owner: tuple(w) for owner, w in writes.items()}, tuple(self._ports))

    def _parent_is_gone(self, table: str, row: Row) -> bool:
        column = PARENTS.get(table)
        if column is None:
            return False
        parent = self._rows.get((column.removesuffix("_id"), row[column]))
        return parent is not None and self._is_gone(column.removesuffix("_id"), parent[1])

    def _renumbered(self, tree: Tree) -> Iterator[Update]:
        """Policies of a listener that lost one are numbered from 1 again."""
        lost = {row["listener_id"] for row in tree.of("l7policy") if ("l7policy", row["id"]) in self._gone}
        for listener_id in sorted(lost):
            left = [
                row
                for row in tree.of("l7policy")
                if row["listener_id"] == listener_id and not self._is_gone("l7policy", row)
            ]
            for number, row in enumerate(left, 1):
                if row["position"] != number:
                    yield Update("l7policy", {"id": row["id"]}, {"position": number})


# ------------------------------------------------------------ statistics

COUNTERS = ("active_connections", "bytes_in", "bytes_out", "request_errors", "total_connections")
_LARGEST = {"active_connections": 2**31 - 1}


def listeners_of(message: Any) -> list[str]:
    """Ids of listeners that a statistics message mentions; never raises."""
    records = message.get("listeners") if isinstance(message, Mapping) else None
    found = (
        [r["id"] for r in records or () if isinstance(r, Mapping) and isinstance(r.get("id"), str)]
        if isinstance(records, list)
        else []
    )
    return list(dict.fromkeys(found))


def measured(message: Any, known: Sequence[str]) -> list[Row]:
    """Rows of listener_statistics that replace what is there.  known: ids of listeners that are there.  Fault."""
    if not isinstance(message, Mapping):
        raise Fault("the message is not an object")
    records = message.get("listeners", [])
    if not isinstance(records, list):
        raise Fault("listeners is not a list", "listeners")
    rows: dict[str, Row] = {}
    for record in records:
        if not isinstance(record, Mapping) or not isinstance(record.get("id"), str):
            raise Fault("a record has no id", "listeners")
        identifier = record["id"]
        row: dict[str, Any] = {"listener_id": identifier, "amphora_id": identifier}
        for name in COUNTERS:
            if name not in record:
                raise Fault(f"{name} is missing", "listeners", identifier)
            value = record[name]
            if isinstance(value, bool) or not isinstance(value, int):
                raise Fault(f"{name} is no whole number", "listeners", identifier)
            if not 0 <= value <= _LARGEST.get(name, 2**63 - 1):
                raise Fault(f"{name} is out of range", "listeners", identifier)
            row[name] = value
        if identifier not in known:
            raise Fault(f"Listener {identifier} not found.", "listeners", identifier)
        rows[identifier] = row
    return list(rows.values())
