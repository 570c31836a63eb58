"""What to write so that the database says what is wanted: a pure, total function of the wish, what was found, and the revision.

Wanted rows are paired with found ones by their protocol. A row without protocol becomes the first one of a load balancer, and loses its
protocol again when nothing sets one; of rows that say the same twice one stays. Only columns that differ are written. The revision is
written whenever it has grown, so that the next older one is refused, and a row of another writer is marked as taken over by it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from roadstead_ovn.northbound.port import Found, FoundRow
from roadstead_ovn.rows import OURS, REVISION, LoadBalancerRow, Wanted, differing, settled

# Columns of Load_Balancer; `switches` and `routers`, which `differing` names too, are columns of what carries it.
COLUMNS = frozenset(
    {
        "name",
        "protocol",
        "vips",
        "external_ids",
        "options",
        "selection_fields",
        "ip_port_mappings",
        "health_check",
    }
)


@dataclass(frozen=True)
class RowChange:
    """One row of Load_Balancer.

    before: None for a row to be made; after: None for one to be removed.  columns: those of the row that are written, sorted.
    """

    before: FoundRow | None
    after: LoadBalancerRow | None
    columns: tuple[str, ...] = ()

    @property
    def attached(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of switches and of routers that get the row."""
        if self.after is None:
            return frozenset(), frozenset()
        old = self.before.row if self.before else None
        return (
            self.after.switches - (old.switches if old else frozenset()),
            self.after.routers - (old.routers if old else frozenset()),
        )

    @property
    def detached(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of switches and of routers that lose the row; of a removed row the database sees to it itself."""
        if self.before is None or self.after is None:
            return frozenset(), frozenset()
        old = self.before.row
        return old.switches - self.after.switches, old.routers - self.after.routers


@dataclass(frozen=True)
class Plan:
    """One transaction.

    verified: rows that must be as they were found, whole.  is_alone: verified too that there is no further row of the name.
    addresses: by port id, what the switch port has and what it gets.  unpinned: floating IPs whose NAT rows lose external_mac and
    logical_port.  newer: the revision in the database, when it is above the one to be written; then nothing else is planned.
    """

    load_balancer_id: str
    changes: tuple[RowChange, ...] = ()
    verified: tuple[FoundRow, ...] = ()
    is_alone: bool = False
    addresses: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    unpinned: frozenset[str] = frozenset()
    newer: int | None = None

    @property
    def rows(self) -> int:
        """How many rows it writes or removes; 0: there is nothing to do."""
        return len(self.changes) + len(self.addresses) + len(self.unpinned)


def plan(load_balancer_id: str, revision: int, wanted: Wanted, found: Found) -> Plan:
    """The transaction between `found` and `wanted` at that revision."""
    if found.revision is not None and found.revision > revision:
        return Plan(load_balancer_id, newer=found.revision)
    pairs, extra = paired(wanted.rows, found.rows)
    changes = [change for row, there in pairs if (change := _change(row, there, revision)) is not None]
    changes += [RowChange(row, None) for row in extra]
    addresses = {
        port: (found.addresses[port], wish.addresses)
        for port, wish in sorted(wanted.switch_ports.items())
        if port in found.addresses and sorted(found.addresses[port]) != sorted(wish.addresses)
    }
    return Plan(
        load_balancer_id,
        tuple(changes),
        # A switch port or a NAT row alone says nothing of the rows: they need not stand still for it.
        found.rows if changes else (),
        any(change.before is None for change in changes),
        addresses,
        found.pinned & wanted.centralised,
    )


def adopted(revision: int, found: Found) -> Found:
    """The same, with rows of a newer revision taken like another writer's: what is planned from it writes over them."""
    rows = (
        replace(there, revision=None) if (there.revision or 0) > revision else there for there in found.rows
    )
    return replace(found, rows=tuple(rows))


def paired(
    wanted: Sequence[LoadBalancerRow], found: Sequence[FoundRow]
) -> tuple[list[tuple[LoadBalancerRow, FoundRow | None]], list[FoundRow]]:
    """Each wanted row with the found one that becomes it, and found rows that nothing wants."""
    left = list(found)
    pairs: dict[int, FoundRow] = {}
    for number, row in enumerate(wanted):
        same = [there for there in left if (there.row.protocol or None) == row.protocol]
        _take(pairs, number, row, same, left)
    for number, row in enumerate(wanted):
        if number not in pairs:
            bare = [x for x in left if x.row.protocol is None or row.protocol is None]
            _take(pairs, number, row, bare, left)
    return [(row, pairs.get(number)) for number, row in enumerate(wanted)], left


def _take(
    pairs: dict[int, FoundRow],
    number: int,
    row: LoadBalancerRow,
    choices: Iterable[FoundRow],
    left: list[FoundRow],
) -> None:
    best = min(choices, key=lambda there: (len(differing(row, there.row)), there.handle), default=None)
    if best is not None:
        pairs[number] = best
        left.remove(best)


def _change(wanted: LoadBalancerRow, found: FoundRow | None, revision: int) -> RowChange | None:
    if found is None:
        ids = {**wanted.external_ids, REVISION: str(revision)}
        return RowChange(None, replace(wanted, external_ids=ids), tuple(sorted(COLUMNS)))
    there = found.row
    columns = set(differing(wanted, there))
    if not columns and found.revision == revision:
        return None
    target = settled(wanted, there)
    ids = dict(target.external_ids if "external_ids" in columns else there.external_ids)
    ids |= {key: value for key, value in there.external_ids.items() if key.startswith(OURS)}
    ids[REVISION] = str(revision)
    # What is no difference keeps the text that it has.
    same = {
        name: getattr(there, _FIELDS.get(name, name))
        for name in (COLUMNS | {"switches", "routers"}) - columns - {"external_ids"}
    }
    kept = {_FIELDS.get(name, name): value for name, value in same.items()}
    after = replace(target, **{**kept, "external_ids": ids})
    return RowChange(found, after, tuple(sorted((columns & COLUMNS) | {"external_ids"})))


_FIELDS = {"health_check": "health_checks"}
