"""A tree with a change applied, without a database: what a read after the commit would give.

The same rules that the foreign keys and the commit follow, on plain rows: children go with their parents, references to what is gone
become NULL, tags go with their object, times and defaults come by themselves.  Rows of tables that are no part of a tree (operation,
vip_port_claim) are passed over.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from roadstead_octavia.db.port import TREE_TABLES, Change, Delete, Insert, Row, Tree, Update
from roadstead_octavia.db.rows import changed, made, sort_key
from roadstead_octavia.db.tables import FAMILIES

# What goes with a row, beside what FAMILIES says: table -> (child, column that names the parent, the parent's column).
_PARTS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "load_balancer": (("vip", "load_balancer_id", "id"), ("additional_vip", "load_balancer_id", "id")),
    "vip": (("vip_security_group", "load_balancer_id", "load_balancer_id"),),
    "listener": (("listener_cidr", "listener_id", "id"), ("sni", "listener_id", "id")),
    "pool": (("session_persistence", "pool_id", "id"),),
}
# References that become NULL when a row goes: table -> (referring table, column).
_LOOSENED = {"pool": (("listener", "default_pool_id"), ("l7policy", "redirect_pool_id"))}


def after(tree: Tree | None, change: Change) -> Tree:
    """The tree that the change leaves (see `Database.after`)."""
    work = _Rows(tree.rows if tree else {})
    number = 0
    for write in change.writes:
        if isinstance(write, Insert):
            work.insert(write.table, made(write.table, write.row, change.at, number))
            number += 1
        elif write.table not in TREE_TABLES:
            continue
        elif isinstance(write, Update):
            work.update(write.table, write.key, changed(write.table, write.values, change.at))
        else:
            assert isinstance(write, Delete)
            work.delete(write.table, write.key)
    return Tree(
        version=tree.version + 1 if tree else 1,
        revision=(tree.revision if tree else 0) + (1 if change.revises or tree is None else 0),
        rows=work.finished(),
    )


class _Rows:
    """Rows under change, found by id without a walk; what was read is never written to."""

    def __init__(self, rows: Mapping[str, Sequence[Row]]) -> None:
        self._given = rows
        self._copies: dict[str, list[dict[str, Any] | None]] = {}
        self._by_id: dict[str, dict[str, int]] = {}

    def _of(self, table: str) -> list[dict[str, Any] | None]:
        if table not in self._copies:
            rows: list[dict[str, Any] | None] = [dict(row) for row in self._given.get(table, ())]
            self._copies[table] = rows
            self._by_id[table] = {row["id"]: at for at, row in enumerate(rows) if row and "id" in row}
        return self._copies[table]

    def _places(self, table: str, key: Row) -> list[int]:
        rows = self._of(table)
        if "id" in key:
            at = self._by_id[table].get(key["id"])
            candidates = [] if at is None else [at]
        else:
            candidates = list(range(len(rows)))
        found = []
        for at in candidates:
            row = rows[at]
            if row is not None and all(row[name] == value for name, value in key.items()):
                found.append(at)
        return found

    def insert(self, table: str, row: dict[str, Any]) -> None:
        if table in TREE_TABLES:
            rows = self._of(table)
            if "id" in row:
                self._by_id[table][row["id"]] = len(rows)
            rows.append(row)

    def update(self, table: str, key: Row, values: Mapping[str, Any]) -> None:
        rows = self._of(table)
        for at in self._places(table, key):
            row = rows[at]
            assert row is not None
            row.update(values)

    def delete(self, table: str, key: Row) -> None:
        rows = self._of(table)
        for at in self._places(table, key):
            row = rows[at]
            assert row is not None
            rows[at] = None
            for child, column in FAMILIES.get(table, ()):
                self.delete(child, {column: row["id"]})
            for child, column, own in _PARTS.get(table, ()):
                self.delete(child, {column: row[own]})
            for other, column in _LOOSENED.get(table, ()):
                self.update(other, {column: row["id"]}, {column: None})
            if table in FAMILIES:
                self.delete("tags", {"resource_id": row["id"]})

    def finished(self) -> Mapping[str, Sequence[Row]]:
        rows: dict[str, Sequence[Row]] = dict(self._given)
        for table, copies in self._copies.items():
            left = [row for row in copies if row is not None]
            rows[table] = sorted(left, key=sort_key(table))
        for table in TREE_TABLES:
            rows.setdefault(table, ())
        return rows
