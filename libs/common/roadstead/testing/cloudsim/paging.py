"""The three ways in which services page their lists.

Nova, Cinder, Neutron and Octavia take limit and marker and answer a `<plural>_links`
list; Glance answers `next` with a path; Keystone does not page and answers `links`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import urlencode

from .base import Ctx, JsonObject

_R = TypeVar("_R")


def parse_limit(ctx: Ctx, default: int, maximum: int) -> int | None:
    """Rows asked for: None means no limit. 400 for a negative or non-numeric limit.

    `default` and `maximum` of 0 mean none.
    """
    text = ctx.q("limit")
    if text is None:
        return default or None
    try:
        limit = int(text)
    except ValueError:
        raise ctx.service.bad_request("limit param must be an integer") from None
    if limit < 0:
        raise ctx.service.bad_request("limit param must be positive")
    return min(limit, maximum) if maximum else limit


def after_marker(ctx: Ctx, rows: list[_R], id_of: Callable[[_R], str]) -> list[_R]:
    """Rows that follow the marker; 400 when the marker is not among them."""
    marker = ctx.q("marker")
    if not marker:
        return rows
    for index, row in enumerate(rows):
        if id_of(row) == marker:
            return rows[index + 1 :]
    raise ctx.service.bad_request(f"marker [{marker}] not found")


def cut(
    ctx: Ctx, rows: list[_R], id_of: Callable[[_R], str], default: int, maximum: int
) -> tuple[list[_R], str | None]:
    """One page and the id of its last row when a full page asks for a next one.

    As in Nova a page that is exactly full names a next page even when that one is empty.
    """
    limit = parse_limit(ctx, default, maximum)
    rest = after_marker(ctx, rows, id_of)
    if limit is None:
        return rest, None
    page = rest[:limit]
    return page, id_of(page[-1]) if page and len(page) == limit else None


def next_query(ctx: Ctx, marker: str) -> str:
    """The query of the next page: the same one with another marker."""
    pairs = [(k, v) for k, v in ctx.request.query if k != "marker"]
    return urlencode([*pairs, ("marker", marker)])


def linked(
    ctx: Ctx,
    plural: str,
    rows: Iterable[_R],
    id_of: Callable[[_R], str],
    show: Callable[[_R], Any],
    *,
    default: int = 0,
    maximum: int = 0,
) -> JsonObject:
    """The list body with `<plural>_links`; `default`/`maximum` are page sizes, 0 for none."""
    page, last = cut(ctx, list(rows), id_of, default, maximum)
    body: JsonObject = {plural: [show(row) for row in page]}
    if last is not None:
        base = ctx.cloud.settings.base_url.rstrip("/")
        href = f"{base}{ctx.request.path}?{next_query(ctx, last)}"
        body[f"{plural}_links"] = [{"rel": "next", "href": href}]
    return body


def glance_page(
    ctx: Ctx, rows: Iterable[_R], id_of: Callable[[_R], str], show: Callable[[_R], Any]
) -> JsonObject:
    """Glance's list of images: `first`, and `next` as a path below the service's root."""
    sizes = ctx.cloud.settings.pages
    page, last = cut(ctx, list(rows), id_of, sizes.image, sizes.image_max)
    body: JsonObject = {
        "images": [show(row) for row in page],
        "first": "/v2/images",
        "schema": "/v2/schemas/images",
    }
    if last is not None:
        body["next"] = f"/v2/images?{next_query(ctx, last)}"
    return body


def name_matches(ctx: Ctx, wanted: str | None, name: str | None) -> bool:
    """A list's name filter outside Nova: whole name, but case-insensitive.

    With the setting name_filter "fuzzy" a prefix or a regular expression matches too.
    None as `wanted` means that the caller does not filter.
    """
    if wanted is None:
        return True
    have = name or ""
    if ctx.cloud.settings.name_filter == "fuzzy":
        return regex_matches(ctx, wanted, have)
    return have.lower() == wanted.lower()


def regex_matches(ctx: Ctx, pattern: str, text: str) -> bool:
    """Nova's name filter: a regular expression found anywhere, case-insensitive; 400 for a bad one."""
    try:
        return re.search(pattern, text, re.IGNORECASE) is not None
    except re.error:
        raise ctx.service.bad_request(
            f"Invalid input for query parameters name. Value: {pattern}. '{pattern}' is not a 'regex'"
        ) from None


def sort_rows(
    ctx: Ctx, rows: list[_R], value_of: Callable[[_R, str], Any], default: str, descending: bool
) -> list[_R]:
    """Sort by the caller's sort_key/sort_dir (or Cinder's sort=key:dir), else by the default."""
    keys = ctx.q_all("sort_key")
    directions = ctx.q_all("sort_dir")
    combined = ctx.q("sort")
    pairs: list[tuple[str, bool]] = []
    if combined and not keys:
        for item in combined.split(","):
            key, _, direction = item.partition(":")
            pairs.append((key.strip(), direction.strip() == "desc"))
    else:
        for index, key in enumerate(keys):
            direction = directions[index] if index < len(directions) else ("desc" if descending else "asc")
            pairs.append((key, direction == "desc"))
    if not pairs:
        pairs = [(default, descending)]
    ordered = rows
    for key, reverse in reversed(pairs):
        ordered = sorted(ordered, key=lambda row: _sortable(value_of(row, key)), reverse=reverse)
    return ordered


def _sortable(value: Any) -> tuple[int, str, float]:
    if value is None:
        return (0, "", 0.0)
    if isinstance(value, (int, float)):
        return (1, "", float(value))
    return (2, str(value), 0.0)
