"""The store in memory: same operations, same results, on a clock that the caller owns.

Every operation is one uninterrupted step of the event loop, which makes it a transaction.  `edge` is awaited just before
and just after that step; a harness uses it to interleave, to delay and to raise, before the step (nothing happened) or
after it (it happened, and the caller never learns).  Rows handed out share nothing with the rows kept.
"""

import builtins
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from roadstead.clock import Clock
from roadstead.store.api import (
    Change,
    DocumentRule,
    HistoryEntry,
    Known,
    Lease,
    OutboxItem,
    Outgoing,
    Query,
    Row,
    RowRule,
)
from roadstead.store.plain_json import check_text, copy_plain, to_plain
from roadstead.store.shapes import (
    checked_change,
    checked_history,
    checked_limits,
    checked_outgoing,
    checked_pairs,
    checked_query,
    copied_row,
    lease_is_free,
    matches,
)
from roadstead.subjects import Key

Edge = Callable[[str, bool], Awaitable[None]]


async def _no_edge(_operation: str, _after: bool) -> None:
    return


@dataclass
class _Waiting:
    outgoing: Outgoing
    hidden_until: datetime | None = None


@dataclass(frozen=True)
class _Held:
    """Everything a process would find again after a crash; see MemoryStore.reopened."""

    rows: dict[tuple[str, str], Row]
    due: set[tuple[str, str]]
    outbox: dict[int, _Waiting]
    history: dict[tuple[str, str], builtins.list[HistoryEntry]]
    documents: dict[str, Any]
    numbers: builtins.list[int]  # the last outbox id given, in a list so that all views share it


class MemoryStore:
    """Store without a database.  `edge(operation, after)` as the module says; `name` makes message ids unique."""

    def __init__(self, clock: Clock, *, name: str = "memory", edge: Edge = _no_edge) -> None:
        self.clock = clock
        self.name = name
        self.edge = edge
        self._held = _Held({}, set(), {}, defaultdict(list), {}, [0])
        self._cursor = ""

    def reopened(self, *, edge: Edge | None = None) -> "MemoryStore":
        """Another replica, or the same one after a crash: the same rows, its own claim cursor."""
        other = MemoryStore(self.clock, name=self.name, edge=edge or self.edge)
        other._held = self._held
        return other

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    async def now(self) -> datetime:
        return self.clock.now()

    # ---- rows

    async def change(self, key: Key, rule: RowRule, known: Known | None = None) -> Change:
        await self.edge("change", False)
        kept = self._held.rows.get((key.kind, key.id))
        handed = copied_row(kept) if kept else None
        made = rule(handed, self.clock.now())
        change = checked_change(key, handed, kept, made)
        outgoing = [checked_outgoing(o) for o in change.outgoing]
        history = [checked_history(h) for h in change.history]
        if change.row is not None:
            self._keep(change.row)
        self._send(outgoing)
        self._held.history[key.kind, key.id].extend(history)
        await self.edge("change", True)
        return made

    async def get(self, kind: str, ident: str) -> Row | None:
        await self.edge("get", False)
        row = self._held.rows.get((kind, check_text(ident)))
        return copied_row(row) if row else None

    async def list(self, query: Query) -> builtins.list[Row]:
        await self.edge("list", False)
        query = checked_query(query)
        found = sorted((r for r in self._held.rows.values() if matches(query, r)), key=lambda r: r.key.id)
        after = [r for r in found if query.marker is None or r.key.id > query.marker]
        return [copied_row(r) for r in after[: query.limit]]

    async def untold(self, seconds: float, limit: int) -> builtins.list[Key]:
        checked_limits(limit=limit)
        await self.edge("untold", False)
        before = self.clock.now() - timedelta(seconds=seconds)
        found = [
            (r.untold_since, r.key.kind, r.key.id, r.key)
            for r in self._held.rows.values()
            if r.untold_since is not None and r.untold_since <= before
        ]
        return [key for *_, key in sorted(found)[:limit]]

    # ---- queue

    async def wake(self, keys: Iterable[tuple[str, str]], cause: Mapping[str, Any]) -> int:
        await self.edge("wake", False)
        now, plain, woken = self.clock.now(), to_plain(cause), 0
        for pair in checked_pairs(keys):
            row = self._held.rows.get(pair)
            if row is None or row.gone_at is not None:
                continue
            due = now if row.work.due_at is None else min(row.work.due_at, now)
            self._work(row, due_at=due, wake_seq=row.work.wake_seq + 1, cause=plain)
            woken += 1
        await self.edge("wake", True)
        return woken

    async def claim(
        self, owner: str, limit: int, lease_seconds: float, per_identity: int = 4
    ) -> builtins.list[Lease]:
        checked_limits(limit=limit, lease_seconds=lease_seconds, per_identity=per_identity)
        await self.edge("claim", False)
        now = self.clock.now()
        waiting: dict[str, builtins.list[Row]] = defaultdict(list)
        for pair in self._held.due:
            row = self._held.rows[pair]
            if _due(row) <= now and lease_is_free(row.work, now):
                waiting[row.identity].append(row)
        until = now + timedelta(seconds=lease_seconds)
        leases: builtins.list[Lease] = []
        for identity in sorted(waiting, key=lambda i: (i <= self._cursor, i)):
            rows = sorted(waiting[identity], key=lambda r: (_due(r), r.key.kind, r.key.id))
            for row in rows[: min(per_identity, limit - len(leases))]:
                work = self._work(
                    row, lease_owner=owner, lease_until=until, lease_epoch=row.work.lease_epoch + 1
                )
                known = Known(copied_row(self._held.rows[row.key.kind, row.key.id]))
                leases.append(Lease(row.key, owner, work.lease_epoch, until, work.wake_seq, _due(row), known))
            self._cursor = identity
            if len(leases) >= limit:
                break
        await self.edge("claim", True)
        return leases

    async def next_due(self) -> datetime | None:
        await self.edge("next_due", False)
        now = self.clock.now()
        rows = (self._held.rows[pair] for pair in self._held.due)
        return min(
            (
                _due(r)
                if r.work.lease_until is None or lease_is_free(r.work, now)
                else max(_due(r), r.work.lease_until)
                for r in rows
            ),
            default=None,
        )

    async def renew(self, leases: Sequence[Lease], seconds: float) -> dict[Key, datetime]:
        checked_limits(seconds=seconds)
        await self.edge("renew", False)
        until, renewed = self.clock.now() + timedelta(seconds=seconds), {}
        for lease in leases:
            row = self._ours(lease)
            if row is not None:
                end = max(until, row.work.lease_until or until)
                self._work(row, lease_until=end)
                renewed[lease.key] = end
        await self.edge("renew", True)
        return renewed

    async def release(self, leases: Sequence[Lease]) -> None:
        await self.edge("release", False)
        now = self.clock.now()
        for lease in leases:
            row = self._ours(lease)
            if row is not None:
                due = now if row.work.due_at is None else min(row.work.due_at, now)
                self._work(row, due_at=due, lease_owner=None, lease_until=None)
        await self.edge("release", True)

    # ---- outbox and history

    async def outbox_take(self, limit: int, seconds: float) -> builtins.list[OutboxItem]:
        checked_limits(limit=limit, seconds=seconds)
        await self.edge("outbox_take", False)
        now = self.clock.now()
        taken: builtins.list[OutboxItem] = []
        busy: set[str] = set()
        for number, waiting in self._held.outbox.items():
            if len(taken) == limit:
                break
            if waiting.hidden_until is not None and waiting.hidden_until > now:
                busy.add(waiting.outgoing.subject)
            elif waiting.outgoing.subject not in busy:
                waiting.hidden_until = now + timedelta(seconds=seconds)
                sent = replace(waiting.outgoing, headers=dict(waiting.outgoing.headers))
                taken.append(OutboxItem(number, sent))
        await self.edge("outbox_take", True)
        return taken

    async def outbox_done(self, ids: Sequence[int]) -> None:
        await self.edge("outbox_done", False)
        for number in ids:
            self._held.outbox.pop(number, None)
        await self.edge("outbox_done", True)

    async def history(
        self, key: Key, since: datetime | None = None, until: datetime | None = None, limit: int = 200
    ) -> builtins.list[HistoryEntry]:
        checked_limits(limit=limit)
        await self.edge("history", False)
        entries = self._held.history.get((key.kind, key.id), [])
        chosen = sorted(
            (
                e
                for e in entries
                if e.kind != "status" and (since is None or e.at >= since) and (until is None or e.at < until)
            ),
            key=lambda e: e.at,
        )
        return [replace(e, body=copy_plain(e.body)) for e in chosen[-limit:]]

    async def stood(self, key: Key, at: datetime) -> HistoryEntry | None:
        await self.edge("stood", False)
        entries = self._held.history.get((key.kind, key.id), [])
        later = min(
            (e for e in entries if e.kind == "status" and e.at > at), key=lambda e: e.at, default=None
        )
        return None if later is None else replace(later, body=copy_plain(later.body))

    # ---- documents

    async def document(self, name: str) -> Mapping[str, Any] | None:
        await self.edge("document", False)
        found: Mapping[str, Any] | None = copy_plain(self._held.documents.get(name))
        return found

    async def change_document(self, name: str, rule: DocumentRule) -> Any:
        check_text(name)
        await self.edge("change_document", False)
        handed = copy_plain(self._held.documents.get(name))
        body, result = rule(handed, self.clock.now())
        if body is None:
            self._held.documents.pop(name, None)
        elif body is not handed:
            self._held.documents[name] = to_plain(body)
        await self.edge("change_document", True)
        return result

    async def purge(self, tombstones_before: datetime, history_before: datetime) -> int:
        await self.edge("purge", False)
        removed = 0
        for pair, row in builtins.list(self._held.rows.items()):
            if row.gone_at is not None and row.gone_at < tombstones_before:
                del self._held.rows[pair]
                self._held.due.discard(pair)
                removed += 1
        for pair, entries in builtins.list(self._held.history.items()):
            left = [e for e in entries if e.at >= history_before]
            removed += len(entries) - len(left)
            if left:
                self._held.history[pair] = left
            else:
                del self._held.history[pair]
        await self.edge("purge", True)
        return removed

    # ---- inside a step

    def _keep(self, row: Row) -> None:
        pair = (row.key.kind, row.key.id)
        self._held.rows[pair] = row
        if row.work.due_at is None:
            self._held.due.discard(pair)
        else:
            self._held.due.add(pair)

    def _work(self, row: Row, **changes: Any) -> Any:
        work = replace(row.work, **changes)
        self._keep(replace(row, work=work))
        return work

    def _ours(self, lease: Lease) -> Row | None:
        row = self._held.rows.get((lease.key.kind, lease.key.id))
        if row is None or (row.work.lease_owner, row.work.lease_epoch) != (lease.owner, lease.epoch):
            return None
        return row

    def _send(self, outgoing: Iterable[Outgoing]) -> None:
        for message in outgoing:
            self._held.numbers[0] += 1
            number = self._held.numbers[0]
            if message.message_id is None:
                message = replace(message, message_id=f"{self.name}-{number}")
            self._held.outbox[number] = _Waiting(message)


def _due(row: Row) -> datetime:
    assert row.work.due_at is not None, "only rows with due work are kept in the due set"
    return row.work.due_at
