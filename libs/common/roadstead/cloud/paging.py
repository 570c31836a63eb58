"""Lists as a whole: one pager for the three ways in which services cut them.

A page names the next one by a `..._links` entry, by a top-level `next`, or not at all: then a full page of the size we
asked for is followed by its last row's id as marker.  Of a link only the query is taken: its host may be one that only
the cloud knows.  A list is complete or an error, never a part.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Query = tuple[tuple[str, str], ...]

_LIMITED = {
    "network": ("",),
    "load-balancer": ("",),
    "image": ("",),
    "compute": ("server.", "keypair.", "flavor."),
    "block-storage": ("volume.", "type."),
}


class MarkerGone(Exception):
    """The object that the next page should follow has been deleted meanwhile."""


class BrokenList(Exception):
    """The pages do not make a list: no rows where they should be, a circle, a cut or no end."""


@dataclass
class Page:
    """One page: its rows and the query of the next one, None after the last."""

    rows: list[Any]
    following: Query | None


def takes_limit(service: str, verb: str) -> bool:
    """Whether that list may be asked for a page size; the others refuse or ignore it."""
    return verb != "versions" and any(verb.startswith(noun) for noun in _LIMITED.get(service, ()))


def read_page(body: Any, listing: str, query: Query, limit: int | None) -> Page:
    """Find rows and next page in a body.  BrokenList when the rows are not there or the service says it cut them."""
    rows = body.get(listing) if isinstance(body, Mapping) else None
    if not isinstance(rows, list):
        raise BrokenList(f"the answer has no list {listing!r}")
    if body.get("truncated"):
        raise BrokenList(f"the service cut the list {listing!r}; raise its list limit")
    href = _next_link(body)
    if href is not None:
        asked = dict(parse_qsl(urlsplit(href).query, keep_blank_values=True))
        # A link that lost our filters would bring everybody's rows; one that has them may spell them anew.
        kept = [(key, value) for key, value in query if key not in asked]
        given = parse_qsl(urlsplit(href).query, keep_blank_values=True)
        return Page(_unwrapped(rows, listing), (*kept, *given))
    if limit is not None and len(rows) == limit and not _has_links(body):
        last = rows[-1].get("id") if isinstance(rows[-1], Mapping) else None
        if last:
            return Page(rows, (*((k, v) for k, v in query if k != "marker"), ("marker", str(last))))
    return Page(_unwrapped(rows, listing), None)


def _has_links(body: Mapping[str, Any]) -> bool:
    """A service that answers links at all says the end by leaving the next one out."""
    return any(key == "next" or key == "links" or key.endswith("_links") for key in body) or "first" in body


def _next_link(body: Mapping[str, Any]) -> str | None:
    top = body.get("next")
    if isinstance(top, str) and top:
        return top
    for key, value in body.items():
        if key != "links" and not key.endswith("_links"):
            continue
        if isinstance(value, Mapping) and isinstance(value.get("next"), str):
            return str(value["next"]) or None
        if isinstance(value, Sequence) and not isinstance(value, str):
            for link in value:
                if isinstance(link, Mapping) and link.get("rel") == "next":
                    return str(link["href"])
    return None


def _unwrapped(rows: list[Any], listing: str) -> list[Any]:
    """Nova wraps each keypair of its list in an object of its own."""
    if listing == "keypairs":
        return [
            row["keypair"] if isinstance(row, Mapping) and set(row) == {"keypair"} else row for row in rows
        ]
    return rows


@dataclass
class _Gathered:
    """Rows so far, each object once: one that moved between two pages counts as it was read last."""

    rows: list[Any] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def take(self, rows: list[Any]) -> None:
        for row in rows:
            ident = row.get("id") if isinstance(row, Mapping) else None
            if isinstance(ident, str) and ident in self.places:
                self.rows[self.places[ident]] = row
                continue
            if isinstance(ident, str):
                self.places[ident] = len(self.rows)
            self.rows.append(row)


async def whole_list(
    fetch: Callable[[Query], Awaitable[Any]],
    listing: str,
    query: Query,
    *,
    limit: int | None,
    pages_max: int,
    restarts: int,
) -> list[Any]:
    """Every row of a list.  `fetch` returns the body of one page and raises MarkerGone for a marker that vanished.

    Costs one request a page.  Starts again when a marker vanished, at most `restarts` times; raises BrokenList when
    the pages go in a circle or are more than `pages_max`.
    """
    first = (*query, ("limit", str(limit))) if limit is not None else query
    for _ in range(restarts + 1):
        try:
            return await _walk(fetch, listing, first, limit, pages_max)
        except MarkerGone:
            continue
    raise BrokenList(f"the list {listing!r} changed too fast to be read")


async def _walk(
    fetch: Callable[[Query], Awaitable[Any]], listing: str, first: Query, limit: int | None, pages_max: int
) -> list[Any]:
    gathered = _Gathered()
    asked: set[Query] = set()
    query: Query | None = first
    while query is not None:
        if query in asked:
            raise BrokenList(f"the pages of {listing!r} go in a circle")
        if len(asked) >= pages_max:
            raise BrokenList(f"the list {listing!r} has more than {pages_max} pages")
        asked.add(query)
        page = read_page(await fetch(query), listing, query, limit)
        gathered.take(page.rows)
        query = page.following
    return gathered.rows
