"""What the query of a GET asks for: first its syntax, which every GET must keep to, then its meaning for one resource.

`asked` reads limits and sort orders; what it refuses is refused before any operation.  `page_of` turns names into columns and texts into
values of these columns' types; a text that no value of the column can equal makes a list that is empty (`NOTHING`), as a comparison
in the database would.  `links_of` makes the links to the next and the previous page.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from sqlalchemy import BigInteger, Boolean, DateTime, Float, Integer
from sqlalchemy.dialects.postgresql import JSONB

from roadstead_octavia.db.port import Filter, Page, Row
from roadstead_octavia.db.rows import columns_of, key_of, table_of
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.http.routes import PAGING, TAGS
from roadstead_octavia.options import Options
from roadstead_octavia.wire.describe import Resource

Query = Sequence[tuple[str, str]]
Links = Sequence[Mapping[str, str]]

UNLIMITED = ("infinite", "None")  # the second stands in links of lists that had no limit
DIRECTIONS = {"asc": False, "desc": True}
TRUE = frozenset(("true", "t", "yes", "y", "on", "1"))
FALSE = frozenset(("false", "f", "no", "n", "off", "0"))
LONGEST_NUMBER = 18
IGNORED = frozenset(("_method",))
# Repeating one of these says two things at once; filters are looked at later, when it is known what they are.
ONCE = ("limit", "marker", "sort", "sort_key", "sort_dir", "page_reverse", "project_id")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")


@dataclass(frozen=True)
class Asked:
    """limit: rows at most, None for all.  sort: (name, descending) pairs as the client wrote them.  reverse: the page before the marker."""

    limit: int | None
    sort: tuple[tuple[str, bool], ...] = ()
    marker: str | None = None
    reverse: bool = False
    fields: tuple[str, ...] = ()
    project_id: str | None = None


class Nothing:
    """The type of `NOTHING`."""


NOTHING = Nothing()


def asked(query: Query, options: Options) -> Asked:
    """ApiError InvalidLimit, InvalidSortKey, InvalidSortDirection, InvalidMarker; InvalidFilterArgument for what is repeated."""
    if not query:
        return Asked(options.pagination_max_limit)
    values = dict(query)
    if len(values) != len(query):
        _refuse_repeated(query, values)
    fields = tuple(value for name, value in query if name == "fields")
    return Asked(
        limit=_limit(values.get("limit"), options.pagination_max_limit),
        sort=_sort(values),
        marker=values.get("marker") or None,
        reverse=values.get("page_reverse") == "True",
        fields=fields if options.allow_field_selection else (),
        project_id=values.get("project_id"),
    )


def _refuse_repeated(query: Query, values: Mapping[str, str]) -> None:
    for name in ONCE:
        if name in values and sum(1 for n, _ in query if n == name) > 1:
            given = ",".join(value for n, value in query if n == name)
            if name == "limit":
                raise refuse("InvalidLimit", key=given)
            if name == "marker":
                raise refuse("InvalidMarker", key=given)
            if name in ("sort", "sort_key"):
                raise refuse("InvalidSortKey", key=given)
            if name == "sort_dir":
                raise refuse("InvalidSortDirection", key=given)
            raise refuse("InvalidFilterArgument")


def _limit(text: str | None, most: int | None) -> int | None:
    if text is None:
        return most
    if text in UNLIMITED:
        return None
    if not _WHOLE.fullmatch(text):
        raise refuse("InvalidLimit", key=text)
    negative, digits = text.strip().startswith("-"), text.strip().lstrip("+-").lstrip("0")
    if negative or not digits:
        return None
    number = int(digits[:LONGEST_NUMBER]) if len(digits) <= LONGEST_NUMBER else 10**LONGEST_NUMBER
    return number if most is None else min(number, most)


def _sort(values: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    sort, keys = values.get("sort"), values.get("sort_key")
    found: list[tuple[str, bool]] = []
    if sort:
        for part in sort.split(","):
            name, *direction = part.split(":")
            if len(direction) > 1:
                raise refuse("InvalidSortKey", key=part)
            found.append((name.strip(), _descends(direction[0].strip()) if direction else False))
    elif keys:
        directions = (values.get("sort_dir") or "").split(",")
        for number, name in enumerate(keys.split(",")):
            given = directions[number] if number < len(directions) else ""
            found.append((name, _descends(given) if given else False))
    return tuple(found)


def _descends(direction: str) -> bool:
    if direction not in DIRECTIONS:
        raise refuse("InvalidSortDirection", key=direction)
    return DIRECTIONS[direction]


# ---------------------------------------------------------------- meaning


def page_of(
    resource: Resource,
    ask: Asked,
    query: Query,
    options: Options,
    *,
    project_id: str | None,
    parent: Row | None = None,
) -> Page | Nothing:
    """The page that is asked for.  project_id: whose rows, None for everybody's; parent: of nested paths.

    ApiError InvalidFilterArgument, Validation (a boolean that is none), InvalidSortKey, InvalidMarker.
    """
    filters: tuple[Filter, ...] | Nothing = ()
    tags: tuple[tuple[str, ...], ...] = ((), (), (), ())
    if options.allow_filtering and query:
        filters = _filters(resource, query)
        if resource.tagged:
            tags = tuple(_tags(query, name) for name in TAGS)
    sort = sort_of(resource, ask.sort if options.allow_sorting else ())
    limit, marker, reverse = ask.limit, ask.marker, ask.reverse
    if not options.allow_pagination:
        limit, marker, reverse = None, None, False
    if marker is not None and "\0" in marker:
        raise refuse("InvalidMarker", key=marker.replace("\0", ""))
    if isinstance(filters, Nothing) or (project_id is not None and "\0" in project_id):
        return NOTHING
    return Page(
        table=resource.table,
        project_id=project_id,
        parent=parent or {},
        filters=filters,
        tags=(tags[0], tags[1], tags[2], tags[3]),
        sort=sort,
        limit=limit,
        marker=marker,
        reverse=reverse,
    )


def sort_of(resource: Resource, names: Sequence[tuple[str, bool]]) -> tuple[tuple[str, bool], ...]:
    """Columns to sort by, tie-breakers included, so that the order is total.  ApiError InvalidSortKey."""
    found: list[tuple[str, bool]] = []
    for name, descends in names:
        column = resource.sorts.get(name)
        if column is None:
            raise refuse("InvalidSortKey", key=name)
        if all(column != known for known, _ in found):
            found.append((column, descends))
    for column in tie_breakers(resource.table):
        if all(column != known for known, _ in found):
            found.append((column, False))
    return tuple(found)


@cache
def tie_breakers(table: str) -> tuple[str, ...]:
    first = tuple(c for c in ("created_at", "id") if c in columns_of(table))
    return first if "id" in first else (*first, *key_of(table))


def marker_of(resource: Resource, row: Row) -> str:
    """What names a row in a marker: its id, or the key of a table that has none."""
    return str(row["id"] if "id" in row else row[key_of(resource.table)[0]])


def _filters(resource: Resource, query: Query) -> tuple[Filter, ...] | Nothing:
    given: dict[str, str] = {}
    for name, value in query:
        if name in PAGING or name in TAGS or name in IGNORED or name == "project_id":
            continue
        if name in given:
            raise refuse("InvalidFilterArgument")
        given[name] = value
    if not given:
        return ()
    found, possible = [], True
    for name, value in given.items():
        column = resource.filters.get(name)
        if column is None and name == "loadbalancer_id":
            column = resource.filters.get("load_balancer_id")
        if column is None:
            raise refuse("InvalidFilterArgument")
        table, _, bare = column.rpartition(".")
        read = _reader(table or resource.table, bare)
        typed = read(name, value)
        if isinstance(typed, Nothing):
            possible = False
        else:
            found.append(Filter(bare, (typed,), table or None))
    return tuple(found) if possible else NOTHING


def _tags(query: Query, name: str) -> tuple[str, ...]:
    """A comma list is several tags; so is the argument given again."""
    found = [part for n, value in query if n == name for part in value.split(",") if part]
    return tuple(dict.fromkeys(tag for tag in found if "\0" not in tag))


# ---------------------------------------------------------------- values of columns

Reader = Callable[[str, str], Any]


@cache
def _reader(table: str, column: str) -> Reader:
    """How a filter's text becomes a value of that column; `NOTHING` when none can be equal to it."""
    kind = table_of(table).columns[column].type
    if isinstance(kind, Boolean):
        return _boolean
    if isinstance(kind, BigInteger):
        return lambda _, text: _number(text, 63)
    if isinstance(kind, Integer):
        return lambda _, text: _number(text, 31)
    if isinstance(kind, Float):
        return lambda _, text: _decimal(text)
    if isinstance(kind, DateTime):
        return lambda _, text: _time(text)
    if isinstance(kind, JSONB):
        return lambda _, text: NOTHING
    return lambda _, text: NOTHING if "\0" in text else text


def _boolean(name: str, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in TRUE:
        return True
    if lowered in FALSE:
        return False
    raise _no_boolean(name, text)


def _no_boolean(name: str, text: str) -> ApiError:
    return refuse("InvalidInput", field=name, value=text, reason=f"Value not an unambiguous boolean: {text}")


def _number(text: str, bits: int) -> int | Nothing:
    if not _WHOLE.fullmatch(text) or len(text.strip()) > LONGEST_NUMBER + 1:
        return NOTHING
    number = int(text)
    return number if -(2**bits) <= number < 2**bits else NOTHING


def _decimal(text: str) -> float | Nothing:
    try:
        number = float(text)
    except ValueError:
        return NOTHING
    return number if number == number else NOTHING


def _time(text: str) -> datetime | Nothing:
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        return NOTHING


# ---------------------------------------------------------------- links


def links_of(
    resource: Resource, ask: Asked, query: Query, rows: Sequence[Row], url: str, options: Options
) -> Links | None:
    """Links to the pages around these rows; None where paging is switched off.

    A previous page is there when a marker was given, a next one when the page is full.  Filters are kept, so that a client that follows
    a link stays in the list it asked for.
    """
    if not options.allow_pagination:
        return None
    if not rows:
        return []
    values = dict(query)
    begin = [f"limit={ask.limit}"]
    begin += [
        f"{name}={quote(values[name], safe=',:')}"
        for name in ("sort", "sort_key", "sort_dir")
        if values.get(name)
    ]
    kept = [
        f"{quote(name)}={quote(value)}"
        for name, value in query
        if name not in PAGING or name == "fields"
        if name not in IGNORED
    ]
    found = []
    if ask.marker is not None:
        before = [*begin, f"marker={quote(marker_of(resource, rows[0]))}", "page_reverse=True", *kept]
        found.append({"href": f"{url}?{'&'.join(before)}", "rel": "previous"})
    if ask.limit is None or len(rows) >= ask.limit:
        after = [*begin, f"marker={quote(marker_of(resource, rows[-1]))}", *kept]
        found.append({"href": f"{url}?{'&'.join(after)}", "rel": "next"})
    return found
