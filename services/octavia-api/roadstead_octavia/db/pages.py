"""One page of a list.

A page of many rows is two statements whatever it holds: its rows (with what is one to one beside them), then all their relations as one
list of (relation, owner, values).  A page of a few rows, as every show is, reads the relations within the first.  A marker costs one
statement more, which looks its row up among those that the caller may see.  NULL is the least of all values, as in the original.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values travel as parameters

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

from roadstead.store.postgres.session import Link
from roadstead_octavia.db.port import Filter, Page, Row
from roadstead_octavia.db.refusals import storable
from roadstead_octavia.db.relations import MANY, ONE, Many, One, elements
from roadstead_octavia.db.rows import columns_of, key_of
from roadstead_octavia.db.tables import NIL, PLACEHOLDERS
from roadstead_octavia.errors import refuse

T = TypeVar("T")
Run = Callable[[Callable[[Link, int], Awaitable[T]]], Awaitable[T]]

FEW = 20
Sort = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Shape:
    """All that the text of a page's statement depends on.

    parent, filters: columns, with whether there are several values.  tags: which of the four are asked for.  beyond: for each column
    of the order whether the marker's value is NULL; None without a marker.
    """

    table: str
    project: bool
    parent: tuple[tuple[str, bool], ...]
    filters: tuple[tuple[str, str, bool], ...]
    tags: tuple[bool, bool, bool, bool]
    sort: Sort
    limited: bool
    beyond: tuple[bool, ...] | None
    hide_deleted: bool
    whole: bool


async def page(run: Run[Sequence[Row]], schema: str, query: Page) -> Sequence[Row]:
    """See `port.Database.page`.  ApiError InvalidMarker."""

    async def operation(link: Link, _: int) -> Sequence[Row]:
        return await _page(link, schema, query)

    return await run(operation)


async def _page(link: Link, schema: str, query: Page) -> Sequence[Row]:
    if not all(storable(value) for value in _texts(query)):
        return []
    backwards = query.reverse and query.marker is not None
    if backwards:
        query = replace(query, sort=tuple((name, not descends) for name, descends in query.sort))
    marker = await _marker(link, schema, query) if query.marker is not None else None
    shape, arguments = _shape(query, marker)
    records = await link.fetch(_statement(schema, shape), *arguments)
    rows = _rows(shape, records)
    if not shape.whole and rows and shape.table in MANY:
        await _relate(link, schema, shape.table, rows)
    if backwards:
        rows.reverse()
    return rows


def _texts(query: Page) -> list[Any]:
    found = [query.project_id, *query.parent.values(), *(tag for tags in query.tags for tag in tags)]
    return found + [value for one in query.filters for value in one.values]


def _shape(query: Page, marker: Sequence[Any] | None) -> tuple[Shape, list[Any]]:
    """The shape and the arguments in the order in which `_Where` asks for them."""
    shape = Shape(
        table=query.table,
        project=query.project_id is not None,
        parent=tuple((name, value is None) for name, value in query.parent.items()),
        filters=tuple((f.table or query.table, f.column, len(f.values) == 1) for f in query.filters),
        tags=tuple(bool(tags) for tags in query.tags),  # type: ignore[arg-type]  # four of them
        sort=query.sort,
        limited=query.limit is not None,
        beyond=None if marker is None else tuple(value is None for value in marker),
        hide_deleted=query.hide_deleted,
        whole=query.limit is not None and query.limit <= FEW,
    )
    arguments: list[Any] = [] if query.project_id is None else [query.project_id]
    arguments += [value for value in query.parent.values() if value is not None]
    arguments += [_value(one) for one in query.filters]
    arguments += [list(dict.fromkeys(tags)) for tags in query.tags if tags]
    arguments += [value for value in marker or () if value is not None]
    if query.limit is not None:
        arguments.append(query.limit)
    return shape, arguments


def _value(one: Filter) -> Any:
    return one.values[0] if len(one.values) == 1 else list(one.values)


async def _marker(link: Link, schema: str, query: Page) -> Sequence[Any]:
    """The values of the marker's row in the columns of the order.  A row that was deleted since the page before still marks a place."""
    key = key_of(query.table)[0]
    record = None
    if query.marker is not None and storable(query.marker):
        seen = Page(
            query.table, query.project_id, query.parent, (Filter(key, (query.marker,)),), sort=query.sort
        )
        shape, arguments = _shape(replace(seen, hide_deleted=False), None)
        where = _Where(schema, shape)
        columns = ", ".join(_column(query.table, name) for name, _ in query.sort)
        text = f"SELECT {columns} FROM {where.source} WHERE {where.conditions()}"
        record = await link.fetchrow(text, *arguments)
    if record is None:
        raise refuse("InvalidMarker", key=query.marker)
    return tuple(record)


def _rows(shape: Shape, records: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows with what is one to one beside them, and their lists (empty ones where another statement reads them)."""
    return _reader(shape.table, shape.whole)(records)


@cache
def _reader(table: str, whole: bool) -> Callable[[Sequence[Any]], list[dict[str, Any]]]:
    """A function that makes rows of the records of that table.

    It is compiled from the names of the columns: a page has a thousand rows of thirty, and a row that is written as one literal takes a
    tenth of the time of one that is put together.
    """
    columns, manys = columns_of(table), MANY.get(table, ())
    names = [f"c{number}" for number in range(len(columns))]
    parts = [f"{column!r}: {name}" for column, name in zip(columns, names, strict=True)]
    for which, one in enumerate(ONE.get(table, ())):
        its = {column: f"o{which}_{number}" for number, column in enumerate(one.columns)}
        names += its.values()
        row = ", ".join(f"{column!r}: {name}" for column, name in its.items())
        value = its[one.only] if one.only else f"{{{row}}} if {its[one.key]} is not None else None"
        parts.append(f"{one.relation!r}: {value}")
    known: dict[str, Any] = {}
    for which, many in enumerate(manys):
        known[f"m{which}"] = partial(elements, many)
        if whole:
            names.append(f"l{which}")
        found = f"m{which}(l{which})" if many.json else f"l{which}"
        parts.append(f"{many.relation!r}: {f'{found} if l{which} else []' if whole else '[]'}")
    text = f"lambda records: [{{{', '.join(parts)}}} for {', '.join(names)}, in records]"
    made: Callable[[Sequence[Any]], list[dict[str, Any]]] = eval(text, known)  # noqa: S307 - names of columns
    return made


async def _relate(link: Link, schema: str, table: str, rows: list[dict[str, Any]]) -> None:
    """Put the lists of all rows into them."""
    manys = MANY[table]
    by_id = {row["id"]: row for row in rows}
    for number, owner, values in await link.fetch(_relations(schema, table), list(by_id)):
        many = manys[number]
        by_id[owner][many.relation] = elements(many, values) if many.json else values


# Text


@lru_cache(maxsize=64)
def _relations(schema: str, table: str) -> str:
    """Rows (number of the relation, id, values); $1: ids."""
    return " UNION ALL ".join(
        f"SELECT {number}, {_owner(many)}, array_agg(({many.value})::text ORDER BY {many.order})"
        f" FROM {_source(schema, many)} WHERE {_owner(many)} = ANY($1::varchar[]) GROUP BY {_owner(many)}"
        for number, many in enumerate(MANY[table])
    )


def _owner(many: Many) -> str:
    return f"x.{many.owner}"


def _source(schema: str, many: Many) -> str:
    return f"{many.source.format(s=f'{schema}.')} x"


def _column(table: str, name: str) -> str:
    """A column of the order; `vip.ip_address` is one of a row beside."""
    return name if "." in name else f"t.{name}"


@lru_cache(maxsize=4096)
def _statement(schema: str, shape: Shape) -> str:
    where = _Where(schema, shape)
    columns = [f"t.{name}" for name in columns_of(shape.table)]
    for one in ONE.get(shape.table, ()):
        columns += [f"{one.table}.{name}" for name in one.columns]
    if shape.whole:
        columns += [
            f"(SELECT array_agg(({many.value})::text ORDER BY {many.order}) FROM {_source(schema, many)} WHERE {_owner(many)} = t.id)"
            for many in MANY.get(shape.table, ())
        ]
    text = f"SELECT {', '.join(columns)} FROM {where.source} WHERE {where.conditions()}"
    if shape.sort:
        text += " ORDER BY " + ", ".join(
            f"{_column(shape.table, name)} {'DESC NULLS LAST' if descends else 'ASC NULLS FIRST'}"
            for name, descends in shape.sort
        )
    if shape.limited:
        text += f" LIMIT {where.parameter()}::bigint"
    return text


class _Where:
    """The conditions of a page; parameters are numbered in the order in which `_shape` gives them."""

    def __init__(self, schema: str, shape: Shape) -> None:
        self._schema = schema
        self._shape = shape
        self._parameters = 0

    @property
    def source(self) -> str:
        joined = "".join(self._join(one) for one in ONE.get(self._shape.table, ()))
        return f"{self._schema}.{self._shape.table} t{joined}"

    def _join(self, one: One) -> str:
        return f" LEFT JOIN {self._schema}.{one.table} ON {one.table}.{one.key} = t.id"

    def parameter(self) -> str:
        self._parameters += 1
        return f"${self._parameters}"

    def conditions(self) -> str:
        shape = self._shape
        found = [self._project()] if shape.project else []
        found += [
            f"t.{name} IS NULL" if is_null else f"t.{name} = {self.parameter()}"
            for name, is_null in shape.parent
        ]
        for table, name, single in shape.filters:
            column = f"t.{name}" if table == shape.table else f"{table}.{name}"
            found.append(
                f"{column} = {self.parameter()}" if single else f"{column} = ANY({self.parameter()})"
            )
        found += self._tags()
        if shape.hide_deleted:
            found += self._hidden()
        if shape.beyond is not None:
            found.append(self._beyond(shape.beyond))
        return " AND ".join(found) or "true"

    def _project(self) -> str:
        """Whose rows; an amphora is its load balancer's project's."""
        if "project_id" in columns_of(self._shape.table):
            return f"t.project_id = {self.parameter()}"
        of = f"{self._schema}.load_balancer l"
        return f"t.load_balancer_id IN (SELECT l.id FROM {of} WHERE l.project_id = {self.parameter()})"

    def _hidden(self) -> list[str]:
        table = self._shape.table
        if table in PLACEHOLDERS:
            return [f"t.{key_of(table)[0]} <> '{NIL}'"]
        columns = columns_of(table)
        if "provisioning_status" in columns:
            return ["t.provisioning_status <> 'DELETED'"]
        return ["t.status IS DISTINCT FROM 'DELETED'"] if table == "amphora" else []

    def _tags(self) -> list[str]:
        every, some, not_every, not_some = self._shape.tags
        of = f"FROM {self._schema}.tags g WHERE g.resource_id = t.id AND g.tag = ANY("
        found = []
        if every:
            wanted = f"{self.parameter()}::varchar[]"
            found.append(f"(SELECT count(*) {of}{wanted})) = cardinality({wanted})")
        if some:
            found.append(f"EXISTS (SELECT 1 {of}{self.parameter()}::varchar[]))")
        if not_every:
            wanted = f"{self.parameter()}::varchar[]"
            found.append(f"(SELECT count(*) {of}{wanted})) < cardinality({wanted})")
        if not_some:
            found.append(f"NOT EXISTS (SELECT 1 {of}{self.parameter()}::varchar[]))")
        return found

    def _beyond(self, nulls: Sequence[bool]) -> str:
        """Behind the marker in the order."""
        sort = self._shape.sort
        columns = [_column(self._shape.table, name) for name, _ in sort]
        values = [None if is_null else self.parameter() for is_null in nulls]
        if all(value is not None for value in values) and not any(descends for _, descends in sort):
            # What is NULL comes first, so it is never behind; the row comparison is one that an index answers.
            return f"({', '.join(columns)}) > ({', '.join(str(value) for value in values)})"
        ways = []
        for at, (_, descends) in enumerate(sort):
            further = _further(columns[at], values[at], descends)
            if further is not None:
                same = [_same(columns[n], values[n]) for n in range(at)]
                ways.append(f"({' AND '.join([*same, further])})")
        return f"({' OR '.join(ways)})" if ways else "false"


def _same(column: str, value: str | None) -> str:
    return f"{column} IS NULL" if value is None else f"{column} = {value}"


def _further(column: str, value: str | None, descends: bool) -> str | None:
    if not descends:
        return f"{column} IS NOT NULL" if value is None else f"{column} > {value}"
    return None if value is None else f"({column} < {value} OR {column} IS NULL)"
