"""Neutron's list query: equality filters over every field, `fields`, sorting, pages.

Several values of one filter are alternatives; names compare without regard to case; a key that
no resource of the kind has is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Ctx, JsonObject
from .paging import linked, name_matches, sort_rows
from .tables import Row, Table

CONTROL = {"fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse"}
# Lists in which rows of other projects may stand.
SHARED = ("networks", "subnets", "security_group_rules", "policies")
TAG_FILTERS = {"tags", "tags-any", "not-tags", "not-tags-any"}
ALIASES = {"tenant_id": "project_id"}


def select(
    ctx: Ctx,
    plural: str,
    table: Table,
    show: Callable[[Ctx, Row], JsonObject],
    visible: Callable[[Ctx, Row], bool],
) -> JsonObject:
    """Return the body of a list reply; 400 for an unknown filter or a bad marker."""
    wanted: dict[str, list[str]] = {}
    for key, value in ctx.request.query:
        if key not in CONTROL:
            wanted.setdefault(ALIASES.get(key, key), []).append(value)
    fuzzy = ctx.cloud.settings.name_filter == "fuzzy"
    narrow = [(k, v[0]) for k, v in wanted.items() if len(v) == 1 and not (k == "name" and fuzzy)]
    if not ctx.is_admin and plural not in SHARED:
        narrow.append(("project_id", ctx.project_id))
    candidates = table.narrowest(narrow)
    if wanted:
        _refuse_unknown(ctx, wanted, table)
    rows = [
        r for r in candidates if visible(ctx, r) and all(_passes(ctx, r, k, v) for k, v in wanted.items())
    ]
    if ctx.q("sort_key"):
        rows = sort_rows(ctx, rows, lambda row, key: row.get(key), "id", False)
    fields = ctx.q_all("fields")

    def render(row: Row) -> JsonObject:
        made = show(ctx, row)
        return {k: v for k, v in made.items() if k in fields} if fields else made

    return linked(ctx, plural, rows, lambda row: row["id"], render, default=ctx.cloud.settings.pages.network)


def _refuse_unknown(ctx: Ctx, wanted: dict[str, list[str]], table: Table) -> None:
    sample = next(iter(table), None)
    if sample is None:
        return
    unknown = [key for key in wanted if key not in sample and key not in TAG_FILTERS]
    if unknown:
        raise ctx.service.bad_request(f"{unknown} is invalid attribute for filtering")


def _passes(ctx: Ctx, row: Row, key: str, values: list[str]) -> bool:
    if key in TAG_FILTERS:
        return _tags_pass(row.get("tags") or [], key, {t for v in values for t in v.split(",")})
    have = row.get(key)
    if key == "name":
        return any(
            (value != "" and name_matches(ctx, value, have)) or value == have == "" for value in values
        )
    if key == "fixed_ips":
        return any(_has_address(have or [], value) for value in values)
    if isinstance(have, list):
        return any(value in have for value in values)
    return any(_equal(have, value) for value in values)


def _equal(have: Any, value: str) -> bool:
    if isinstance(have, bool):
        return value.lower() in (("true", "1") if have else ("false", "0"))
    if have is None:
        return value in ("", "null", "None")
    return str(have) == value


def _has_address(fixed_ips: list[Row], wanted: str) -> bool:
    field, _, value = wanted.partition("=")
    if field == "ip_address_substr":
        return any(value in item["ip_address"] for item in fixed_ips)
    return any(item.get(field) == value for item in fixed_ips)


def _tags_pass(have: list[str], key: str, tags: set[str]) -> bool:
    found = tags & set(have)
    return {
        "tags": found == tags,
        "tags-any": bool(found),
        "not-tags": found != tags,
        "not-tags-any": not found,
    }[key]
