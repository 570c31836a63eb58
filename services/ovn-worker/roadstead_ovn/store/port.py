"""Work rows as the worker sees them: one for each load balancer, with what is due, who is at it, and what is still to be reported.

The row is the lease: whoever holds it is the only one that passes over that load balancer, and every write of theirs is fenced by the
epoch, which rises with each lease.  All times are the database's.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = Mapping[str, Any]


class LeaseLost(Exception):
    """The lease ran out and somebody else has the row, or the row is gone: nothing was written."""


@dataclass(frozen=True)
class NewCall:
    """A call of the API.  entry: what reporting it needs."""

    load_balancer_id: str
    revision: int
    operation: str
    entry: Json


@dataclass(frozen=True)
class Work:
    """A row as its holder read it.

    revision: the highest that was heard of; done: the highest that was rendered.  wakes: counts what came; another count at the end of a
    pass means that something came meanwhile.  failures: passes in a row that failed.  calls: operation id -> entry.  told: object id ->
    operating status last reported.  uses: what must be given back once it is not wanted any more.  probes: ids of subnets whose probe ports
    it has said to need.
    """

    id: str
    revision: int = 0
    done: int = 0
    reason: str = ""
    wakes: int = 0
    epoch: int = 0
    failures: int = 0
    fault: str | None = None
    calls: Mapping[str, Json] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    uses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    probes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class End:
    """How a pass ended.

    reported: operations that need no report any more; patch: entries that changed.  again: seconds until the next pass, None when only a
    stimulus brings one.  keep: whether the lease stays with its holder when something came meanwhile.
    """

    done: int = 0
    reported: Collection[str] = ()
    patch: Mapping[str, Json] = field(default_factory=dict)
    told: Mapping[str, str] | None = None
    uses: Mapping[str, Sequence[str]] | None = None
    failures: int = 0
    fault: str | None = None
    again: float | None = None
    keep: bool = True


@dataclass(frozen=True)
class Queue:
    """due: rows that wait; lag: seconds that the oldest of them waits; failing: rows whose last pass failed."""

    due: int
    lag: float
    failing: int


class Store(Protocol):
    """StoreUnavailable from everything when the database does not answer."""

    async def take(self, call: NewCall, owner: str | None, lease: float) -> Work | None:
        """Keep a call and take the lease when it is free, in one statement; None when it was not taken.  owner None: keep only."""

    async def wake(self, identifiers: Collection[str], reason: str) -> int:
        """Make rows due now; how many.  Ids without a row are left out, rows that wait already stay as they are."""

    async def wake_all(self, reason: str, spread: float) -> int:
        """The same for all rows, within that many seconds."""

    async def learn(
        self, revisions: Mapping[str, int], due: Collection[str], reason: str, spread: float
    ) -> None:
        """Make rows that are missing; those in `due` fall due within `spread` seconds."""

    async def claim(self, owner: str, limit: int, lease: float) -> Sequence[Work]:
        """Rows that are due and free, the longest waiting first."""

    async def end(self, work: Work, owner: str, end: End, lease: float) -> Work | None:
        """Write the end of a pass.  Something came meanwhile: the row as it is now, still leased (`keep`); else None.  LeaseLost."""

    async def forget(self, work: Work, owner: str, lease: float) -> Work | None:
        """Remove the row, unless something came meanwhile: then as `end`.  LeaseLost."""

    async def renew(self, owner: str, lease: float) -> frozenset[str]:
        """Prolong every lease of the owner; ids of those it has."""

    async def release(self, owner: str) -> int:
        """Give every lease back; the rows are due at once."""

    async def one(self, identifier: str) -> Work | None: ...

    async def view(self, identifier: str) -> Json | None:
        """The whole row, for people."""

    async def use_probes(self, identifier: str, subnets: Collection[str]) -> None:
        """Say that a load balancer needs the probe ports of these subnets."""

    async def others_need_probes(self, identifier: str, subnet: str) -> bool:
        """Whether a load balancer but this one needs that subnet's probe port."""

    async def drop_probes(self, identifier: str, subnet: str) -> None:
        """Say that it does not need the port of that subnet any more."""

    async def hold(self, name: str, owner: str, seconds: float) -> bool:
        """Become the one who does something, when it is due and nobody else does; again by the same owner prolongs it."""

    async def let_go(self, name: str, owner: str, after: float) -> None:
        """It is done, and due again in that many seconds."""

    async def hasten(self, name: str) -> None:
        """Make it due now."""

    async def queue(self) -> Queue: ...

    async def ping(self) -> None: ...
