"""What operations need of the database: whole reads and whole changes.

A row is a plain dict under the original's table and column names; times are UTC without zone; JSON columns are plain values.
A `Tree` is everything that belongs to one load balancer, read in one statement.  A `Change` is everything that one request writes:
it is committed in one transaction that holds only if the load balancer is still at the version that the tree was read at, so what
was validated on the tree is true when it is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from roadstead_octavia.options import Options

Row = Mapping[str, Any]

# What a *shown* row has beside its table's columns: relations under these names, as `Database.page` and `shown.py` fill them in.
# ids are lists in order of creation (l7policies by position); tags are sorted lists of texts.
RELATIONS = {
    "load_balancer": ("vip", "vip_sg_ids", "additional_vips", "listeners", "pools", "tags"),
    "listener": ("sni_containers", "allowed_cidrs", "l7policies", "tags"),
    "pool": ("session_persistence", "members", "health_monitor_id", "listeners", "tags"),
    "member": ("tags",),
    "health_monitor": ("tags",),
    "l7policy": ("rules", "tags"),
    "l7rule": ("tags",),
}

# Quota columns by table, and the noun in the refusal.
QUOTAS = {
    "load_balancer": ("load_balancer", "Load Balancer"),
    "listener": ("listener", "Listener"),
    "pool": ("pool", "Pool"),
    "health_monitor": ("health_monitor", "Health Monitor"),
    "member": ("member", "Member"),
    "l7policy": ("l7policy", "L7 Policy"),
    "l7rule": ("l7rule", "L7 Rule"),
}

# Tables of a tree; `tags` rows are those of the tree's objects.  A tree that was read has beside them the rows that it uses of `flavor`,
# `flavor_profile`, `availability_zone` and `availability_zone_profile`.
TREE_TABLES = (
    "load_balancer",
    "vip",
    "additional_vip",
    "vip_security_group",
    "listener",
    "listener_cidr",
    "sni",
    "pool",
    "session_persistence",
    "member",
    "health_monitor",
    "l7policy",
    "l7rule",
    "tags",
)


@dataclass(frozen=True)
class Tree:
    """One load balancer with all its rows.  version rises with every write to any of them, revision with every change of the wish.

    rows: table -> rows in insertion order (l7policy by position).  A load balancer that is DELETED is a tree all the same.
    """

    version: int
    revision: int
    rows: Mapping[str, Sequence[Row]]

    @property
    def load_balancer(self) -> Row:
        return self.rows["load_balancer"][0]

    def of(self, table: str) -> Sequence[Row]:
        return self.rows.get(table, ())

    def get(self, table: str, identifier: str) -> Row | None:
        """The row of that id, or None."""
        return next((row for row in self.of(table) if row["id"] == identifier), None)


@dataclass(frozen=True)
class Insert:
    table: str
    row: Row


@dataclass(frozen=True)
class Update:
    """key: columns that name the rows (all must match).  values: columns to set."""

    table: str
    key: Row
    values: Row


@dataclass(frozen=True)
class Delete:
    table: str
    key: Row


Write = Insert | Update | Delete


@dataclass(frozen=True)
class Touched:
    """An object that an operation holds PENDING, what success makes of it, and what a failure does.

    done: status on success (ACTIVE, or DELETED: the row goes, a load balancer's stays as DELETED).  failed: status on failure.
    """

    table: str
    id: str
    done: str = "ACTIVE"
    failed: str = "ERROR"


@dataclass(frozen=True)
class Operation:
    """What the provider is to carry out.  method: the provider method, e.g. `listener_create`.  args: as checked.

    id: also the message id, so sending it again does nothing twice.  deadline: seconds from the commit.
    """

    id: str
    provider: str
    method: str
    object: str  # noun in the subject, e.g. `listener`
    verb: str  # create, update, delete, failover, batch_update
    touched: tuple[Touched, ...]
    arguments: Sequence[Any] = ()
    deadline: float = 60.0


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


@dataclass(frozen=True)
class Change:
    """All that one request writes; later writes see earlier ones.

    load_balancer_id and version: the tree it was decided on (version None: the load balancer is made by this change).
    quota: project id and how many objects of each quota column this change adds; empty when quotas are not in force.
    revises: whether the provider's wish changes (revision + 1).
    at: when; `created_at` and `updated_at` of what is written, unless the rows say otherwise (rows made by one change are one microsecond
    apart in the order of the writes, so that times tell the order of creation).
    Deleting a row takes along what belongs to it: children, parts and tags; a reference to a pool that goes becomes NULL.
    """

    load_balancer_id: str
    version: int | None
    writes: tuple[Write, ...]
    operation: Operation | None = None
    project_id: str | None = None
    quota: Mapping[str, int] = field(default_factory=dict)
    revises: bool = True
    at: datetime = field(default_factory=_now)


class Stale(Exception):
    """The load balancer was written since the tree was read: read again, decide again."""


class Busy(Exception):
    """A lock was not to be had in time."""


class Database(Protocol):
    """Every function is one transaction; the number of statements of each does not depend on what the rows hold."""

    async def tree(self, load_balancer_id: str) -> Tree | None:
        """One statement."""

    async def tree_of(self, table: str, identifier: str) -> Tree | None:
        """The tree that holds the object with that id (listener, pool, member, health_monitor, l7policy, l7rule); one statement."""

    async def row(self, table: str, key: Row) -> Row | None:
        """One row, e.g. of flavor, flavor_profile, availability_zone, quotas, amphora."""

    async def rows(self, table: str, key: Row) -> Sequence[Row]:
        """All rows with these values; at most a few thousand, in order of creation where the table has a time."""

    async def usage(self, project_id: str) -> Mapping[str, int]:
        """Objects of the project by quota column, counted from rows that are not DELETED."""

    def after(self, tree: Tree | None, change: Change) -> Tree:
        """The tree with the change applied, as a fresh read would give it (pure; database defaults filled in)."""

    async def commit(self, change: Change, options: Options) -> int:
        """Carry the change out; the load balancer's new revision.

        Stale when the version moved.  ApiError QuotaException when a count would pass its limit (`limits` of the options and the
        project's row).  ApiError IDAlreadyExists and the like for unique keys are decided by the caller from the tree.
        """

    async def write(self, writes: Sequence[Write]) -> None:
        """Writes outside any load balancer: flavors, profiles, zones, quotas.  KeyError-free: a missing row is no error."""

    async def page(self, query: "Page") -> Sequence[Row]:
        """One page of rows with what the resource's answer shows of other tables; a constant number of statements.

        Rows are the table's columns plus relations under the names of `Page.relations`.
        """

    async def statistics(self, listener_ids: Sequence[str]) -> Mapping[str, int]:
        """Sums over the listeners: bytes_in, bytes_out, active_connections, total_connections, request_errors."""


@dataclass(frozen=True)
class Filter:
    """column = value; an IN when there are several values.  table: when the column stands in a joined one (vip)."""

    column: str
    values: tuple[Any, ...]
    table: str | None = None


@dataclass(frozen=True)
class Page:
    """A list request after it has been understood (http/paging.py).

    project_id: None for all projects.  parent: e.g. {"pool_id": id} for nested paths.  sort: (column, descending) pairs, the
    tie-breakers included.  limit None: no limit.  tags: (all of, any of, not all of, not any of).
    """

    table: str
    project_id: str | None
    parent: Row = field(default_factory=dict)
    filters: tuple[Filter, ...] = ()
    tags: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]] = ((), (), (), ())
    sort: tuple[tuple[str, bool], ...] = (("created_at", False), ("id", False))
    limit: int | None = None
    marker: str | None = None
    reverse: bool = False
    hide_deleted: bool = True
    now: datetime | None = None
