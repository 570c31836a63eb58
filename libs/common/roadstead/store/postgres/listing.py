"""A Query as one statement; the filters mean what `shapes.matches` says."""

from functools import cache
from typing import Any

from sqlalchemy import Select, Text, and_, any_, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY, asyncpg
from sqlalchemy.sql.elements import ColumnElement

from roadstead.store.api import Query
from roadstead.store.postgres.columns import QUEUE_COLUMNS
from roadstead.store.postgres.tables import tables_of

# This dialect spells parameters as the server does, so the statement can go to asyncpg as it is.
_DIALECT = asyncpg.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped


@cache
def _columns(schema: str) -> Select[Any]:
    made = tables_of(schema)
    resource, work = made.tables[f"{schema}.resource"], made.tables[f"{schema}.work"]
    joined = resource.join(work, and_(work.c.kind == resource.c.kind, work.c.id == resource.c.id))
    return select(*resource.c, *(work.c[name] for name in QUEUE_COLUMNS)).select_from(joined)


def listing(schema: str, query: Query) -> tuple[str, list[Any]]:
    """The statement and its arguments."""
    resource = tables_of(schema).tables[f"{schema}.resource"]
    wanted: list[ColumnElement[bool]] = [
        resource.c.kind == query.kind,
        resource.c.gone_at.is_not(None) if query.gone else resource.c.gone_at.is_(None),
    ]
    for name in ("region", "project", "identity"):
        if (value := getattr(query, name)) is not None:
            wanted.append(resource.c[name] == value)
    if query.name is not None:
        wanted.append(_text(resource.c.metadata, "name") == query.name)
    if query.network is not None:
        wanted.append(_network(resource) == query.network)
    if query.codes:
        wanted.append(_text(resource.c.status, "code") == any_(literal([*query.codes], ARRAY(Text))))
    for name, value in query.tags:
        wanted.append(resource.c.metadata["tags"].contains([{"name": name, "value": value}]))
    if query.marker is not None:
        wanted.append(resource.c.id > query.marker)
    statement = _columns(schema).where(*wanted).order_by(resource.c.id).limit(query.limit)
    compiled = statement.compile(dialect=_DIALECT)
    return str(compiled), [compiled.params[name] for name in compiled.positiontup or ()]


def _text(column: Any, *path: str) -> Any:
    """The scalar at that path as text; NULL when it is empty or not there."""
    return func.nullif(column[path if len(path) > 1 else path[0]].astext, "")


def _network(resource: Any) -> Any:
    return func.coalesce(
        _text(resource.c.metadata, "networkId"),
        _text(resource.c.spec, "networkID"),
        _text(resource.c.spec, "networks", "0", "id"),
    )
