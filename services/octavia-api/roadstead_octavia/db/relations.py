"""What a shown row has beside its table's columns: how each relation is read.

`ONE` are rows that stand one to one beside a row and are joined; `MANY` are lists, read as arrays of texts either for all rows of a page at
once or, for a few rows, in the statement of the page itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from roadstead_octavia.db.rows import columns_of

IN_ORDER = "x.created_at NULLS FIRST, x.id"


@dataclass(frozen=True)
class One:
    """relation: name in the shown row.  table is joined as alias where its column `key` is the row's id.

    only: the one column that is shown instead of the whole row.
    """

    relation: str
    table: str
    key: str
    only: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.only,) if self.only else columns_of(self.table)


@dataclass(frozen=True)
class Many:
    """value: SQL of one element as text, of the row x of `source` ({s} is the schema).  owner: x's column that holds the row's id."""

    relation: str
    source: str
    owner: str
    value: str = "x.id"
    order: str = IN_ORDER
    json: tuple[str, ...] = ()  # the element is a row with these columns


ONE: Mapping[str, tuple[One, ...]] = {
    "load_balancer": (One("vip", "vip", "load_balancer_id"),),
    "pool": (
        One("session_persistence", "session_persistence", "pool_id"),
        One("health_monitor_id", "health_monitor", "pool_id", "id"),
    ),
}

TAGS = Many("tags", "{s}tags", "resource_id", "x.tag", "x.tag")
ADDITIONAL = columns_of("additional_vip")
# The listeners that use a pool: as default, then those that redirect to it in an enabled policy that has a rule; each once.
LISTENERS_OF_POOL = (
    "(SELECT u.pool_id, u.id, u.created_at, min(u.rank) AS rank FROM ("
    "SELECT l.default_pool_id AS pool_id, l.id, l.created_at, 0 AS rank FROM {s}listener l"
    " UNION ALL SELECT y.redirect_pool_id, l.id, l.created_at, 1 FROM {s}l7policy y JOIN {s}listener l ON l.id = y.listener_id"
    " WHERE y.enabled AND EXISTS (SELECT 1 FROM {s}l7rule r WHERE r.l7policy_id = y.id)"
    ") u GROUP BY u.pool_id, u.id, u.created_at)"
)

MANY: Mapping[str, tuple[Many, ...]] = {
    "load_balancer": (
        Many("vip_sg_ids", "{s}vip_security_group", "load_balancer_id", "x.sg_id", "x.sg_id"),
        Many(
            "additional_vips",
            "{s}additional_vip",
            "load_balancer_id",
            f"json_build_array({', '.join(f'x.{c}' for c in ADDITIONAL)})::text",
            "x.subnet_id",
            ADDITIONAL,
        ),
        Many("listeners", "{s}listener", "load_balancer_id"),
        Many("pools", "{s}pool", "load_balancer_id"),
        TAGS,
    ),
    "listener": (
        Many(
            "sni_containers",
            "{s}sni",
            "listener_id",
            "x.tls_container_id",
            "x.position NULLS FIRST, x.tls_container_id",
        ),
        Many("allowed_cidrs", "{s}listener_cidr", "listener_id", "x.cidr", "x.cidr"),
        Many("l7policies", "{s}l7policy", "listener_id", order=f"x.position, {IN_ORDER}"),
        TAGS,
    ),
    "pool": (
        Many("members", "{s}member", "pool_id"),
        Many("listeners", LISTENERS_OF_POOL, "pool_id", order=f"x.rank, {IN_ORDER}"),
        TAGS,
    ),
    "member": (TAGS,),
    "health_monitor": (TAGS,),
    "l7policy": (Many("rules", "{s}l7rule", "l7policy_id"), TAGS),
    "l7rule": (TAGS,),
}


def elements(many: Many, values: list[str]) -> list[Any]:
    """The relation's value from the array that was read."""
    if many.json:
        return [dict(zip(many.json, orjson.loads(value), strict=True)) for value in values]
    return values
