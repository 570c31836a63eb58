"""A Row as columns of `resource` and `work`, and back."""

from collections.abc import Mapping
from typing import Any

from roadstead.store.api import Row, Work
from roadstead.store.plain_json import same_json
from roadstead.store.postgres.tables import tables_of
from roadstead.store.shapes import TUPLES_OF_OBJECTS, TUPLES_OF_TEXTS, assembled
from roadstead.subjects import Key

KEY_COLUMNS = ("kind", "id")
ROW_COLUMNS = tuple(c.name for c in tables_of(None).tables["resource"].columns if c.name not in KEY_COLUMNS)
WORK_COLUMNS = tuple(c.name for c in tables_of(None).tables["work"].columns if c.name not in KEY_COLUMNS)
QUEUE_COLUMNS = tuple(Work.__dataclass_fields__)
JSON_COLUMNS = frozenset(
    c.name for t in ("resource", "work") for c in tables_of(None).tables[t].columns if str(c.type) == "JSONB"
)
_TUPLES = TUPLES_OF_OBJECTS + TUPLES_OF_TEXTS
_PLAIN = tuple(name for name in ROW_COLUMNS if name not in ("region", "project", *_TUPLES))


def row_values(row: Row) -> dict[str, Any]:
    """The columns of `resource` but its key."""
    values = dict(row.__dict__)
    del values["work"], values["key"]
    for name in _TUPLES:
        values[name] = list(values[name])
    values["region"], values["project"] = row.key.region, row.key.project
    return values


def work_values(row: Row) -> dict[str, Any]:
    """The columns of `work` but its key."""
    return {
        **row.work.__dict__,
        "region": row.key.region,
        "project": row.key.project,
        "identity": row.identity,
        "gone": row.gone_at is not None,
    }


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of `after` that are not as in `before`."""
    return {
        name: value
        for name, value in after.items()
        if not (same_json(before[name], value) if name in JSON_COLUMNS else before[name] == value)
    }


def row_from(record: Mapping[str, Any]) -> Row:
    """A Row from a record that has all columns of both tables, those of the queue under their own names."""
    fields: dict[str, Any] = {name: record[name] for name in _PLAIN}
    for name in _TUPLES:
        fields[name] = tuple(record[name])
    fields["key"] = Key(record["region"], record["project"], record["kind"], record["id"])
    fields["work"] = assembled(Work, {name: record[name] for name in QUEUE_COLUMNS})
    row: Row = assembled(Row, fields)
    return row
