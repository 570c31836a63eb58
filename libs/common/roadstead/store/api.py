"""The store's contract: rows, and whole operations on them.

Two stores keep it: PostgreSQL and memory; one contract suite runs over both.  The rules of what may change live in pure
functions over a Row (`rules.py`), so the stores differ in nothing but where the bytes lie: `change` locks one row, hands it to
such a function and writes what comes back, with outgoing messages and history, in one transaction.  The function may be
called again (deadlock, serialisation failure, lost connection), so it has no outside effects.
"""

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from roadstead.subjects import Key


@dataclass(frozen=True)
class Work:
    """The queue columns of a row.  due_at None: nothing due."""

    due_at: datetime | None = None
    wake_seq: int = 0
    lease_owner: str | None = None
    lease_until: datetime | None = None
    lease_epoch: int = 0
    cause: Mapping[str, Any] = field(default_factory=dict)  # {"subject", "sequence"} of the last wake


@dataclass(frozen=True)
class Row:
    """A resource as stored.  Column groups and their one writer: spec (ingest), observed (monitor facts), status (pass),
    queue (`work`).  JSON columns hold plain dicts; times are aware UTC."""

    key: Key
    # spec columns
    identity: str  # fair-share group: the identity's id, else the network's, else the own id
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    generation: int
    incarnation: int
    epoch: int
    sequence: int
    born_epoch: int = 0  # where in the stream this life began
    born_sequence: int = 0
    deleting: bool = False
    cascade: bool = False
    deletion_timestamp: datetime | None = None
    gone_at: datetime | None = None  # tombstone
    next_spec: Mapping[str, Any] | None = (
        None  # envelope newer than the delete: the next incarnation, with its position
    )
    warnings: tuple[str, ...] = ()
    refusal: tuple[Mapping[str, Any], ...] = ()  # problems of the newest spec when it was refused
    # observed columns
    observed: Mapping[str, Any] | None = None
    observed_at: datetime | None = None  # when the accepted observation's read began
    # status columns
    status: Mapping[str, Any] = field(default_factory=dict)
    resource_version: int = 0
    consumers: tuple[str, ...] = ()
    references: Mapping[str, int] = field(
        default_factory=dict
    )  # reference target "kind/id" -> generation it was granted for
    record: str | None = None  # sealed
    record_version: int = 0
    intents: tuple[Mapping[str, Any], ...] = ()
    decided: Mapping[str, Any] | None = None
    written_at: datetime | None = None  # our last accepted cloud write
    failures: int = 0  # consecutive with one reason, for the back-off
    ever_provisioned: bool = False
    paused_until: datetime | None = None
    paused: bool = False
    created_at: datetime | None = None
    untold_since: datetime | None = None  # when the consumers became others than those that STATUS last told
    work: Work = field(default_factory=Work)


@dataclass(frozen=True)
class Known:
    """A row as the store last read or wrote it for the caller.  mark: the store's own note of which version that is."""

    row: Row
    mark: Any = None


@dataclass(frozen=True)
class Outgoing:
    """A message to publish after the commit.  message_id deduplicates; None: the store makes a unique one."""

    subject: str
    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    message_id: str | None = None
    # purge the subject up to this sequence instead of publishing (stream name in headers["stream"])
    purge_to: int | None = None


@dataclass(frozen=True)
class HistoryEntry:
    """One record.  "status": the STATUS document that stood until `at`, without its consumers."""

    kind: str  # "decided" | "acted" | "event" | "status"
    at: datetime
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What a pure rule makes of a row.  row None: nothing is written (the rest still is).  result goes to the caller.

    known is the store's to fill: the row as it stands now, for the caller's next change of it.
    """

    row: Row | None = None
    outgoing: Sequence[Outgoing] = ()
    history: Sequence[HistoryEntry] = ()
    result: Any = None
    known: Known | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Lease:
    """A claimed row: who holds it, until when, and the wake it answers.  Valid while lease_epoch is unchanged.

    known: the row as it was claimed; None when it moved in that moment and has to be read.
    """

    key: Key
    owner: str
    epoch: int
    until: datetime
    wake_seq: int
    due_at: datetime  # when it was due, for the due-lag metric
    known: Known | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class OutboxItem:
    id: int
    outgoing: Outgoing


@dataclass(frozen=True)
class Query:
    """Filters of a listing; all given ones must match.  Cut by count; `marker` is the last id of the page before."""

    kind: str
    region: str | None = None
    project: str | None = None
    identity: str | None = None
    network: str | None = None
    name: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    codes: tuple[str, ...] = ()  # one of these is its `status.code`; none given: any
    gone: bool = False  # False: live rows only; True: tombstones only
    limit: int = 100
    marker: str | None = None


RowRule = Callable[[Row | None, datetime], Change]
DocumentRule = Callable[[Mapping[str, Any] | None, datetime], tuple[Mapping[str, Any] | None, Any]]


class Store(Protocol):
    """A dozen whole operations.  `now` is passed by tests only; None: the database's own clock (replicas share it)."""

    async def open(self) -> None:
        """Connect and check the schema; SchemaBehind when it must be migrated first."""
        ...

    async def close(self) -> None: ...

    async def now(self) -> datetime:
        """The store's clock."""
        ...

    async def change(self, key: Key, rule: RowRule, known: Known | None = None) -> Change:
        """Lock the row with key.kind and key.id (also when its region or project differ: the rule sees it), apply, write,
        commit.  None is passed when there is no such row; two callers that insert the same id are serialised.

        known: what the caller believes to stand there; it saves the read, and is not believed once the row has moved.
        """
        ...

    async def get(self, kind: str, ident: str) -> Row | None: ...

    async def list(self, query: Query) -> builtins.list[Row]:
        """Matching rows, ordered by id."""
        ...

    async def untold(self, seconds: float, limit: int) -> builtins.list[Key]:
        """Rows whose consumers have been others than STATUS tells for that long, the longest first."""
        ...

    async def wake(self, keys: Iterable[tuple[str, str]], cause: Mapping[str, Any]) -> int:
        """(kind, id) pairs: wake_seq + 1 and due_at = least(due_at, now) for those that exist and are not gone."""
        ...

    async def claim(
        self, owner: str, limit: int, lease_seconds: float, per_identity: int = 4
    ) -> builtins.list[Lease]:
        """Take due rows without a live lease, a few of each identity that has due ones, walking on from where this
        store object's last claim ended, so that one identity's burst starves nobody.  Bumps lease_epoch."""
        ...

    async def next_due(self) -> datetime | None:
        """When the next row without a live lease falls due (or the next lease of a due row ends)."""
        ...

    async def renew(self, leases: Sequence[Lease], seconds: float) -> dict[Key, datetime]:
        """Extend those that are still ours; key -> new end.  One that is missing is lost."""
        ...

    async def release(self, leases: Sequence[Lease]) -> None:
        """Give back unfinished work on shutdown: due now, no owner."""
        ...

    async def outbox_take(self, limit: int, seconds: float) -> builtins.list[OutboxItem]:
        """Messages that wait, oldest first; hidden from other relays for `seconds`.  message_id is always filled.

        None whose subject has an earlier message that another relay still has: messages of a subject go out in their order.
        """
        ...

    async def outbox_done(self, ids: Sequence[int]) -> None: ...

    async def history(
        self, key: Key, since: datetime | None = None, until: datetime | None = None, limit: int = 200
    ) -> builtins.list[HistoryEntry]:
        """The newest `limit` entries of since <= at < until, oldest first; those of kind "status" are for `stood`."""
        ...

    async def stood(self, key: Key, at: datetime) -> HistoryEntry | None:
        """The "status" entry of what stood at that time: the first that is later.  None: it stands still, or the resource
        was not there."""
        ...

    async def document(self, name: str) -> Mapping[str, Any] | None:
        """A named JSON document (stream positions, VLAN tables, brakes)."""
        ...

    async def change_document(self, name: str, rule: DocumentRule) -> Any:
        """Lock the document, apply the pure rule, write what it returns first (None: delete), give back the second."""
        ...

    async def purge(self, tombstones_before: datetime, history_before: datetime) -> int:
        """Remove old tombstones and history; how many rows went."""
        ...


class SchemaBehind(RuntimeError):
    """The database schema is older than the program: run `roadstead migrate`."""


class StoreUnavailable(RuntimeError):
    """The store did not answer within its patience; whether the last write happened is unknown."""
