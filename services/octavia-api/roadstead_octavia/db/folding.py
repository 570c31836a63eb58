"""Writes in order become batches: what one statement can carry out so that the result is as if they had been made one after the other.

A statement sees the database as it was before it and must not change a row twice.  So an update of a row that the same change makes is
folded into the row, updates of the same rows become one, and a write whose rows might overlap with those of another one begins a new
batch.  Nearly every request is one batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from roadstead_octavia.db.port import Delete, Insert, Row, Update, Write
from roadstead_octavia.db.rows import changed, key_of, made
from roadstead_octavia.db.tables import FAMILIES

# Inserting a row that is there writes the given columns into it.
UPSERTED = frozenset(("quotas", "listener_statistics"))

Columns = tuple[str, ...]


@dataclass
class Touch:
    """What happens to the rows of one table that have these values.  values None: they go."""

    key: dict[str, Any]
    values: dict[str, Any] | None


@dataclass
class Batch:
    """inserts: whole rows by table and, for upserts, the columns that were given.  touches: by table; all of one table have the
    same key columns."""

    inserts: dict[tuple[str, Columns], list[dict[str, Any]]] = field(default_factory=dict)
    touches: dict[str, dict[tuple[Any, ...], Touch]] = field(default_factory=dict)
    sealed: set[str] = field(default_factory=set)  # tables in which a key column was written

    def accepts(self, write: Update | Delete) -> bool:
        """Whether the rows of that write are surely the same as, or none of, those that others touch."""
        if write.table in self.sealed:
            return False
        if isinstance(write, Delete) and any(self.inserts.values()):
            # What goes takes along what belongs to it, also what this change has made a moment ago; tags have nothing below them.
            return write.table not in FAMILIES and not self._makes(write)
        known = self.touches.get(write.table)
        return not known or set(next(iter(known.values())).key) == set(write.key)

    def _makes(self, write: Delete) -> bool:
        return any(_has(row, write.key) for rows in self.pending(write.table) for row in rows)

    def pending(self, table: str) -> Iterable[list[dict[str, Any]]]:
        return (rows for (name, _), rows in self.inserts.items() if name == table)

    @property
    def empty(self) -> bool:
        return not any(self.inserts.values()) and not any(self.touches.values())


def folded(writes: Sequence[Write], at: datetime) -> list[Batch]:
    """The batches, at least one."""
    batches = [Batch()]
    number = 0
    for write in writes:
        if isinstance(write, Insert):
            given = tuple(sorted(write.row)) if write.table in UPSERTED else ()
            row = made(write.table, write.row, at, number)
            batches[-1].inserts.setdefault((write.table, given), []).append(row)
            number += 1
        else:
            _touch(batches, write, at)
    return batches


def _touch(batches: list[Batch], write: Update | Delete, at: datetime) -> None:
    if not write.key or None in write.key.values():
        raise ValueError(
            f"a write to {write.table} must name its rows by values that are there, not {dict(write.key)}"
        )
    batch = batches[-1]
    if not batch.accepts(write):
        batch = Batch()
        batches.append(batch)
    values = changed(write.table, write.values, at) if isinstance(write, Update) else None
    if values is not None and (_fold_into_new(batch, write.table, write.key, values) or not values):
        return
    known = batch.touches.setdefault(write.table, {})
    place = tuple(write.key[name] for name in sorted(write.key))
    before = known.get(place)
    if before is None:
        known[place] = Touch(dict(write.key), values)
    elif values is None:
        before.values = None
    elif before.values is not None:
        before.values |= values
    if values is not None and set(values) & set(write.key):
        batch.sealed.add(write.table)


def _fold_into_new(batch: Batch, table: str, key: Row, values: dict[str, Any]) -> bool:
    """Apply an update to rows that the batch makes; True when the key can name no other row than one of them."""
    hit = False
    for rows in batch.pending(table):
        for row in rows:
            if _has(row, key):
                hit = True
                row.update(values)
    return hit and set(key_of(table)) <= set(key)


def _has(row: Row, key: Row) -> bool:
    return all(row[name] == value for name, value in key.items())


def head_values(writes: Sequence[Write], load_balancer_id: str) -> tuple[dict[str, Any], list[Write]]:
    """What is written to the load balancer's own row, which every commit updates anyway, and the other writes."""
    values: dict[str, Any] = {}
    rest: list[Write] = []
    for write in writes:
        if (
            isinstance(write, Update)
            and write.table == "load_balancer"
            and write.key == {"id": load_balancer_id}
        ):
            values |= write.values
        else:
            rest.append(write)
    return values, rest
