"""An OVSDB database in memory: transactions of the protocol (RFC 7047) on plain rows, with references as the server keeps them.

It knows the operations and the tables that this worker and its tests use. Of references: a row of a table that is no root lives while a
row refers to it (strong), and a row that is gone leaves every set that named it (weak).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

Row = dict[str, Any]
Change = tuple[str, str, Mapping[str, Any] | None]

TEXT, NUMBER, OPTIONAL, SET, MAP = "text", "number", "optional", "set", "map"


@dataclass(frozen=True)
class Table:
    """columns: kind by name.  strong, weak: columns that refer to rows, and of which table."""

    columns: Mapping[str, str]
    strong: Mapping[str, str] = field(default_factory=dict)
    weak: Mapping[str, str] = field(default_factory=dict)
    is_root: bool = True


_BALANCED = {"load_balancer": "Load_Balancer"}
NORTHBOUND: Mapping[str, Table] = {
    "Load_Balancer": Table(
        {
            "name": TEXT,
            "protocol": OPTIONAL,
            "vips": MAP,
            "external_ids": MAP,
            "options": MAP,
            "selection_fields": SET,
            "ip_port_mappings": MAP,
            "health_check": SET,
        },
        strong={"health_check": "Load_Balancer_Health_Check"},
    ),
    "Load_Balancer_Health_Check": Table({"vip": TEXT, "options": MAP, "external_ids": MAP}, is_root=False),
    "Logical_Switch": Table(
        {"name": TEXT, "external_ids": MAP, "load_balancer": SET, "ports": SET},
        strong={"ports": "Logical_Switch_Port"},
        weak=_BALANCED,
    ),
    "Logical_Router": Table(
        {"name": TEXT, "external_ids": MAP, "load_balancer": SET, "ports": SET, "nat": SET},
        strong={"ports": "Logical_Router_Port", "nat": "NAT"},
        weak=_BALANCED,
    ),
    "Logical_Switch_Port": Table(
        {
            "name": TEXT,
            "type": TEXT,
            "addresses": SET,
            "enabled": OPTIONAL,
            "options": MAP,
            "external_ids": MAP,
        },
        is_root=False,
    ),
    "Logical_Router_Port": Table(
        {
            "name": TEXT,
            "mac": TEXT,
            "networks": SET,
            "gateway_chassis": SET,
            "ha_chassis_group": OPTIONAL,
            "external_ids": MAP,
        },
        strong={"gateway_chassis": "Gateway_Chassis"},
        is_root=False,
    ),
    "Gateway_Chassis": Table({"name": TEXT, "chassis_name": TEXT, "priority": NUMBER}, is_root=False),
    "NAT": Table(
        {
            "type": TEXT,
            "external_ip": TEXT,
            "logical_ip": TEXT,
            "external_mac": OPTIONAL,
            "logical_port": OPTIONAL,
            "external_ids": MAP,
        },
        is_root=False,
    ),
}
SOUTHBOUND: Mapping[str, Table] = {
    "Service_Monitor": Table(
        {"ip": TEXT, "port": NUMBER, "protocol": OPTIONAL, "logical_port": TEXT, "status": OPTIONAL}
    )
}
_EMPTY: Mapping[str, Any] = {TEXT: "", NUMBER: 0, OPTIONAL: None, SET: frozenset(), MAP: {}}


class Database:
    """tables: rows by table and UUID.  They are replaced, never changed."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self.tables: dict[str, dict[str, Row]] = {name: {} for name in tables}

    def transact(self, operations: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Change]]:
        """Results as the server gives them, and what has changed; after an error nothing has."""
        work = _Work(self._tables, self.tables)
        results: list[Any] = []
        for operation in operations:
            try:
                results.append(work.carry_out(operation))
            except _Refused as refusal:
                return [*results, {"error": refusal.error, "details": refusal.details}], []
        work.collect()
        changes: list[Change] = []
        for name, rows in work.changed.items():
            for handle, row in rows.items():
                if row != self.tables[name].get(handle):
                    changes.append((name, handle, row))
                    if row is None:
                        del self.tables[name][handle]
                    else:
                        self.tables[name][handle] = row
        return results, changes

    def rows(self) -> Iterable[Change]:
        for name, rows in self.tables.items():
            for handle, row in rows.items():
                yield name, handle, row


class _Refused(Exception):
    def __init__(self, error: str, details: str = "") -> None:
        super().__init__(error)
        self.error, self.details = error, details


class _Work:
    """One transaction that is not committed yet."""

    def __init__(self, tables: Mapping[str, Table], rows: Mapping[str, Mapping[str, Row]]) -> None:
        self._tables, self._rows = tables, rows
        self._named: dict[str, str] = {}
        self.changed: dict[str, dict[str, Row | None]] = {name: {} for name in tables}

    def carry_out(self, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        table = operation.get("table", "")
        if table not in self._tables:
            raise _Refused("unknown table", table)
        steps = {
            "insert": self._insert,
            "update": self._update,
            "mutate": self._mutate,
            "delete": self._delete,
            "wait": self._wait,
            "select": self._select,
        }
        if operation["op"] not in steps:
            raise _Refused("unknown operation", operation["op"])
        return steps[operation["op"]](table, operation)

    def _all(self, table: str) -> dict[str, Row]:
        rows = {**self._rows[table], **self.changed[table]}
        return {handle: row for handle, row in rows.items() if row is not None}

    def _matching(self, table: str, where: Sequence[Any]) -> dict[str, Row]:
        found = self._all(table)
        for column, function, value in where:
            if function != "==":
                raise _Refused("unknown function", function)
            if column == "_uuid":
                wanted = self._plain(value)
                found = {wanted: found[wanted]} if wanted in found else {}
            else:
                wanted = self._column(table, column, value)
                found = {handle: row for handle, row in found.items() if row[column] == wanted}
        return found

    def _insert(self, table: str, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        handle = operation.get("uuid") or str(uuid4())
        if handle in self._all(table):
            raise _Refused("duplicate uuid")
        if "uuid-name" in operation:
            handle = self._named.setdefault(operation["uuid-name"], handle)
        row = {column: _EMPTY[kind] for column, kind in self._tables[table].columns.items()}
        row |= {column: self._column(table, column, value) for column, value in operation["row"].items()}
        self.changed[table][handle] = row
        return {"uuid": ["uuid", handle]}

    def _update(self, table: str, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        new = {column: self._column(table, column, value) for column, value in operation["row"].items()}
        rows = self._matching(table, operation["where"])
        for handle, row in rows.items():
            self.changed[table][handle] = {**row, **new}
        return {"count": len(rows)}

    def _mutate(self, table: str, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = self._matching(table, operation["where"])
        for handle, row in rows.items():
            made = dict(row)
            for column, mutator, value in operation["mutations"]:
                made[column] = self._mutated(table, column, made[column], mutator, value)
            self.changed[table][handle] = made
        return {"count": len(rows)}

    def _mutated(self, table: str, column: str, old: Any, mutator: str, value: Any) -> Any:
        kind = self._tables[table].columns.get(column)
        if kind == SET:
            items = self._column(table, column, value)
            return old | items if mutator == "insert" else old - items
        if kind == MAP and mutator == "delete":
            gone = self._plain(value)
            if isinstance(gone, dict):
                return {key: text for key, text in old.items() if gone.get(key) != text}
            keys = gone if isinstance(gone, frozenset) else {gone}
            return {key: text for key, text in old.items() if key not in keys}
        if kind == MAP:
            return {**self._column(table, column, value), **old}  # a key that is there stays
        raise _Refused("constraint violation", f"{column} of {table} cannot be mutated")

    def _delete(self, table: str, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = self._matching(table, operation["where"])
        self.changed[table].update(dict.fromkeys(rows))
        return {"count": len(rows)}

    def _wait(self, table: str, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        columns = operation["columns"]
        there = [
            tuple(handle if column == "_uuid" else _key(row[column]) for column in columns)
            for handle, row in self._matching(table, operation["where"]).items()
        ]
        wanted = [
            tuple(
                self._plain(row["_uuid"])
                if column == "_uuid"
                else _key(self._column(table, column, row[column]))
                for column in columns
            )
            for row in operation["rows"]
        ]
        if (set(there) == set(wanted)) != (operation["until"] == "=="):
            raise _Refused("timed out", '"wait" timed out')
        return {}

    def _select(self, table: str, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = self._matching(table, operation["where"])
        return {"rows": [{"_uuid": ["uuid", handle], **row} for handle, row in rows.items()]}

    # ---------------------------------------------------------- values

    def _handle(self, name: str) -> str:
        return self._named.setdefault(name, str(uuid4()))

    def _column(self, table: str, column: str, value: Any) -> Any:
        kind = self._tables[table].columns.get(column)
        if kind is None:
            raise _Refused("unknown column", f"{column} of {table}")
        made = self._plain(value)
        if kind == MAP:
            return made if isinstance(made, dict) else {}
        if kind == SET:
            return made if isinstance(made, frozenset) else frozenset([made])
        if isinstance(made, frozenset):
            if len(made) > 1 or (not made and kind != OPTIONAL):
                raise _Refused("constraint violation", f"{column} of {table} is one value")
            return next(iter(made), None)
        return made

    def _plain(self, value: Any) -> Any:
        if isinstance(value, list):
            kind, content = value
            if kind == "named-uuid":
                return self._handle(content)
            if kind == "uuid":
                return content
            if kind == "map":
                return {self._plain(key): self._plain(item) for key, item in content}
            return frozenset(self._plain(item) for item in content)
        return value

    # ---------------------------------------------------------- references

    def collect(self) -> None:
        """Rows that nobody refers to go, until none is left; then sets forget the rows that are gone."""
        while self._drop_unreferenced():
            pass
        for name, table in self._tables.items():
            for column, target in (*table.strong.items(), *table.weak.items()):
                alive = self._all(target).keys()
                for handle, row in self._all(name).items():
                    if row[column] - alive:
                        self.changed[name][handle] = {**row, column: row[column] & alive}

    def _drop_unreferenced(self) -> bool:
        dropped = False
        for name, table in self._tables.items():
            if table.is_root:
                continue
            used: set[str] = set()
            for other, holder in self._tables.items():
                for column, target in holder.strong.items():
                    if target == name:
                        used.update(*(row[column] for row in self._all(other).values()))
            lost = self._all(name).keys() - used
            self.changed[name].update(dict.fromkeys(lost))
            dropped = dropped or bool(lost)
        return dropped


def _key(value: Any) -> Any:
    return frozenset(value.items()) if isinstance(value, dict) else value
