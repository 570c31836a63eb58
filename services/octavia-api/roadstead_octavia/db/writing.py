"""A batch as one statement: changes of rows in WITH expressions behind a guard that lets all of them happen or none.

The text depends on the shape alone (tables, columns), so a connection prepares it once; rows travel as one JSON text a group, however
many they are.  The guard of a load balancer's change is the update of its version (or, for a new one, its insertion): no other
expression finds a row to work on unless the guard gave one.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values travel as parameters

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy.dialects import postgresql

from roadstead_octavia.db.folding import Batch, Columns
from roadstead_octavia.db.port import Change, Operation
from roadstead_octavia.db.refusals import not_storable
from roadstead_octavia.db.rows import changed, columns_of, key_of, made, table_of
from roadstead_octavia.db.tables import FAMILIES

FIRST_REPEAT = timedelta(seconds=5)  # when an operation is sent again for the first time
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
# Fields of data models that hold key material; references to it stay.
_SECRETS = frozenset(
    f"{kind}_container_data" for kind in ("default_tls", "sni", "client_ca_tls", "client_crl")
) | {f"{kind}_container_data" for kind in ("tls", "ca_tls", "crl")}


@dataclass(frozen=True)
class Group:
    """Rows of one statement that are treated alike.  verb: insert, update or delete."""

    verb: str
    table: str
    key: Columns
    columns: Columns


@dataclass(frozen=True)
class Shape:
    """All that the text of a statement depends on.

    head: "update" or "insert" of the load balancer, "" without one.  head_columns: those that an update writes.
    """

    head: str
    head_columns: Columns
    claim: bool
    quota: bool
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Statement:
    text: str
    arguments: tuple[Any, ...]


def first_statement(
    schema: str, change: Change, values: Mapping[str, Any], batch: Batch, limits: Mapping[str, int]
) -> Statement:
    """The statement that guards the change, gives (revision, refused), and carries the batch out.

    values: what the load balancer's own row gets besides (head_values).  limits: the standard quotas.
    """
    arguments: list[Any] = [change.load_balancer_id]
    claim = _takes_claim(change, batch)
    new = change.version is None
    if new:
        ((_, _), rows) = next(item for item in batch.inserts.items() if item[0][0] == "load_balancer")
        written = changed("load_balancer", values, change.at) if values else {}
        arguments.append(_json([{**rows[0], **written}]))
        columns: Columns = ()
        batch.inserts = {k: v for k, v in batch.inserts.items() if k[0] != "load_balancer"}
    else:
        written = changed("load_balancer", values, change.at) if values else {}
        columns = tuple(sorted(written))
        arguments += [change.version, 1 if change.revises else 0, *(written[name] for name in columns)]
    quota = bool(change.quota)
    if quota:
        arguments += [change.project_id, dict(change.quota), dict(limits)]
    operation = change.operation
    groups, rows_of = _groups(batch)
    arguments += rows_of
    if operation is not None:
        groups.append(Group("operation", "operation", (), ()))
        arguments.append(_json([_operation_row(change, operation)]))
    shape = Shape("insert" if new else "update", columns, claim, quota, tuple(groups))
    return Statement(_text(schema, shape), tuple(arguments))


def further_statement(schema: str, batch: Batch) -> Statement:
    """A batch without a guard."""
    groups, arguments = _groups(batch)
    return Statement(_text(schema, Shape("", (), False, False, tuple(groups))), tuple(arguments))


def _takes_claim(change: Change, batch: Batch) -> bool:
    """Whether the change is of a load balancer whose port was claimed: then it holds only while the claim is there to be taken."""
    touches = batch.touches.get("vip_port_claim", {})
    taken = [place for place, touch in touches.items() if touch.values is None]
    if change.version is not None or not taken:
        return False
    del batch.touches["vip_port_claim"]
    return True


def _groups(batch: Batch) -> tuple[list[Group], list[str]]:
    """The groups in the order in which they stand, and the JSON of the rows of each."""
    found: dict[Group, list[dict[str, Any]]] = {}
    for table, touches in batch.touches.items():
        for touch in touches.values():
            names = tuple(sorted(touch.key))
            row = {f"k_{name}": value for name, value in touch.key.items()}
            if touch.values is None:
                group = Group("delete", table, names, ())
            else:
                group = Group("update", table, names, tuple(sorted(touch.values)))
                row |= {f"v_{name}": value for name, value in touch.values.items()}
            found.setdefault(group, []).append(row)
    for (table, given), rows in batch.inserts.items():
        if rows:
            found[Group("insert", table, (), given)] = rows
    ordered = sorted(found, key=lambda g: ("delete update insert".index(g.verb), g.table, g.key, g.columns))
    return ordered, [_json(found[group]) for group in ordered]


def _operation_row(change: Change, operation: Operation) -> dict[str, Any]:
    touched = [{"table": t.table, "id": t.id, "done": t.done, "failed": t.failed} for t in operation.touched]
    row = {
        "id": operation.id,
        "load_balancer_id": change.load_balancer_id,
        "provider": operation.provider,
        "method": operation.method,
        "object": operation.object,
        "verb": operation.verb,
        "touched": touched,
        "arguments": without_secrets(operation.arguments),
        "created_at": change.at,
        "deadline": change.at + timedelta(seconds=operation.deadline),
        "next_send_at": change.at + FIRST_REPEAT,
    }
    return made("operation", row, change.at, 0)


def without_secrets(value: Any) -> Any:
    """The arguments of a call without key material: what is stored names secrets and never holds them."""
    if value is None or isinstance(value, str | int | float):
        return value  # most of them, and the checks below are slow
    if isinstance(value, Mapping):
        return {k: without_secrets(v) for k, v in value.items() if k not in _SECRETS}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [without_secrets(v) for v in value]
    return value


def _json(rows: Any) -> str:
    try:
        return orjson.dumps(rows).decode()
    except orjson.JSONEncodeError as error:
        if "surrogates" in str(error):
            raise not_storable() from error
        raise


# Text


@lru_cache(maxsize=2048)
def _text(schema: str, shape: Shape) -> str:
    writer = _Writer(schema)
    if shape.head:
        writer.head(shape)
    for number, group in enumerate(shape.groups):
        writer.group(number, group, guarded=bool(shape.head))
    if not shape.head:
        return f"WITH {writer.all_parts()}\nSELECT 1"
    refused = "(SELECT refused FROM quota)" if shape.quota else "NULL::text"
    return f"WITH {writer.all_parts()}\nSELECT (SELECT revision FROM guard) AS revision, {refused} AS refused"


def _type(table: str, column: str) -> str:
    return table_of(table).columns[column].type.compile(_DIALECT).partition(" COLLATE")[0]


class _Writer:
    """The parts of one WITH; parameters are numbered in the order in which they are asked for."""

    def __init__(self, schema: str) -> None:
        self._s = f"{schema}."
        self._parts: list[str] = []
        self._parameters = 0
        self._deletions: dict[str, list[str]] = {}

    def all_parts(self) -> str:
        return ",\n".join(self._parts)

    def _next(self) -> str:
        self._parameters += 1
        return f"${self._parameters}"

    def head(self, shape: Shape) -> None:
        """Parameters: id; rows | version, step, values; then project, wanted, limits."""
        identifier = self._next()
        if shape.head == "insert":
            rows = self._next()
        else:
            version, step = self._next(), self._next()
            sets = [f"{name} = {self._next()}" for name in shape.head_columns]
        free = ""
        if shape.quota:
            project, wanted, limits = self._next(), self._next(), self._next()
            call = f"{self._s}quota_refusal({project}, {wanted}::jsonb, {limits}::jsonb)"
            self._parts.append(f"quota AS MATERIALIZED (SELECT {call} AS refused)")
            free = "quota.refused IS NULL"
        source = ["quota"] if shape.quota else []
        if shape.claim:
            using = f"USING {', '.join(source)} " if source else ""
            where = f"load_balancer_id = {identifier} AND removing_since IS NULL" + (
                f" AND {free}" if free else ""
            )
            self._parts.append(
                f"claim AS (DELETE FROM {self._s}vip_port_claim {using}WHERE {where} RETURNING 1)"
            )
            source = ["claim"]
            free = ""
        if shape.head == "insert":
            names = ", ".join(columns_of("load_balancer"))
            source.append(f"json_populate_recordset(NULL::{self._s}load_balancer, {rows}::json) r")
            same = f"r.id = {identifier}" + (f" AND {free}" if free else "")
            values = ", ".join(f"r.{name}" for name in columns_of("load_balancer"))
            self._parts.append(
                f"guard AS (INSERT INTO {self._s}load_balancer ({names}) SELECT {values} FROM {', '.join(source)}"
                f" WHERE {same} RETURNING revision)"
            )
            return
        sets = ["version = t.version + 1", f"revision = t.revision + {step}::bigint", *sets]
        where = f"t.id = {identifier} AND t.version = {version}" + (f" AND {free}" if free else "")
        origin = f" FROM {', '.join(source)}" if source else ""
        self._parts.append(
            f"guard AS (UPDATE {self._s}load_balancer t SET {', '.join(sets)}{origin} WHERE {where} RETURNING t.revision)"
        )

    def group(self, number: int, group: Group, *, guarded: bool) -> None:
        guard = "guard, " if guarded else ""
        name = f"w{number}"
        rows = f"{self._next()}::json"
        if group.verb == "delete":
            self._delete(name, group, guard, rows)
        elif group.verb == "update":
            values = ", ".join(f"{column} = r.v_{column}" for column in group.columns)
            self._parts.append(
                f"{name} AS (UPDATE {self._s}{group.table} t SET {values}"
                f" FROM {guard}{_recordset(group, rows)} WHERE {_matches(group)} RETURNING 1)"
            )
        elif group.verb == "operation":
            names = [c for c in columns_of("operation") if c != "revision"]
            values = ", ".join(f"r.{c}" for c in names)
            self._parts.append(
                f"{name} AS (INSERT INTO {self._s}operation ({', '.join(names)}, revision) SELECT {values}, guard.revision"
                f" FROM guard, json_populate_recordset(NULL::{self._s}operation, {rows}) r RETURNING 1)"
            )
        else:
            self._insert(name, group, guard, rows)

    def _delete(self, name: str, group: Group, guard: str, rows: str) -> None:
        if group.table in FAMILIES:
            tags = f"{name}_tags"
            going = self._family(group, rows)
            self._parts.append(
                f"{tags} AS (DELETE FROM {self._s}tags t USING {guard}({going}) o WHERE t.resource_id = o.id RETURNING 1)"
            )
            self._deletions.setdefault("tags", []).append(tags)
        self._parts.append(
            f"{name} AS (DELETE FROM {self._s}{group.table} t USING {guard}{_recordset(group, rows)}"
            f" WHERE {_matches(group)} RETURNING 1)"
        )
        self._deletions.setdefault(group.table, []).append(name)

    def _family(self, group: Group, rows: str) -> str:
        """Ids of the rows that go and of all below them."""
        selects: list[str] = []
        self._descend(
            group.table,
            f"SELECT t.id FROM {self._s}{group.table} t, {_recordset(group, rows)} WHERE {_matches(group)}",
            selects,
        )
        return " UNION ALL ".join(selects)

    def _descend(self, table: str, ids: str, selects: list[str]) -> None:
        selects.append(ids)
        for child, column in FAMILIES[table]:
            below = f"SELECT id FROM {self._s}{child} WHERE {column} IN ({ids})"
            self._descend(child, below, selects)

    def _insert(self, name: str, group: Group, guard: str, rows: str) -> None:
        columns = columns_of(group.table)
        # What goes must have gone before a row with the same key comes.
        first = "".join(
            f", (SELECT count(*) FROM {gone}) after_{gone}" for gone in self._deletions.get(group.table, ())
        )
        conflict = ""
        if group.columns:
            keys = key_of(group.table)
            sets = ", ".join(f"{c} = EXCLUDED.{c}" for c in group.columns if c not in keys)
            conflict = f" ON CONFLICT ({', '.join(keys)}) DO " + (f"UPDATE SET {sets}" if sets else "NOTHING")
        self._parts.append(
            f"{name} AS (INSERT INTO {self._s}{group.table} ({', '.join(columns)})"
            f" SELECT {', '.join(f'r.{c}' for c in columns)}"
            f" FROM {guard}json_populate_recordset(NULL::{self._s}{group.table}, {rows}) r{first}{conflict} RETURNING 1)"
        )


def _recordset(group: Group, rows: str) -> str:
    fields = [f"k_{c} {_type(group.table, c)}" for c in group.key]
    fields += [f"v_{c} {_type(group.table, c)}" for c in group.columns]
    return f"json_to_recordset({rows}) r({', '.join(fields)})"


def _matches(group: Group) -> str:
    return " AND ".join(f"t.{c} = r.k_{c}" for c in group.key)
