"""Whole operations on the tables of one service.

A write is optimistic at first: read without a lock, apply the rule, and write in one statement that first checks that the versions
read are still there; two round trips, and nobody waits inside a transaction for the program.  When the row moved the rule is applied
again; from the third time on the row is locked first, so that a busy row cannot starve a writer.  A caller that knows the row,
as a pass knows the one it claimed, saves the read.
"""

import builtins
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import asyncpg

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
from roadstead.store.plain_json import check_text, copy_plain, same_json, to_plain
from roadstead.store.postgres.columns import (
    ROW_COLUMNS,
    WORK_COLUMNS,
    changed,
    row_from,
    row_values,
    work_values,
)
from roadstead.store.postgres.listing import listing
from roadstead.store.postgres.partitions import day_of, days_ahead, drop_day, make_partitions, partition_days
from roadstead.store.postgres.revisions import check_revision
from roadstead.store.postgres.session import Link, Moved, Session
from roadstead.store.postgres.statements import Statements
from roadstead.store.shapes import (
    checked_change,
    checked_history,
    checked_limits,
    checked_outgoing,
    checked_pairs,
    checked_query,
    ordered,
)
from roadstead.subjects import Key

OPTIMISTIC_TRIES = 2
PURGE_BATCH = 500


@dataclass(frozen=True)
class _Version:
    """Of a row that was read or written: the transactions that wrote its two parts, and the database's time `now` at a moment
    not before `at` on our monotonic clock; so times from it are never early, which leases rely on."""

    row: int | None
    work: int | None
    now: datetime
    at: float

    def time(self) -> datetime:
        return self.now + timedelta(seconds=time.monotonic() - self.at)


class WrongEncoding(RuntimeError):
    """The database cannot hold every text."""


class PostgresStore:
    """Store in the given schema of a database that `migrate` has prepared.

    `pool_size` bounds its connections, `patience` (seconds) how long a lost database is waited for, `role` is taken on by
    each connection when given.  `now` replaces the database's clock and is for tests only.
    """

    def __init__(
        self,
        url: str,
        schema: str,
        *,
        pool_size: int = 8,
        patience: float = 15.0,
        role: str | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._sql = Statements(schema)
        self._session = Session(
            url, size=pool_size, patience=patience, role=role, application=f"roadstead-{schema}"
        )
        self._given_now = now
        self._cursor = ""

    @property
    def schema(self) -> str:
        return self._sql.schema

    @property
    def round_trips(self) -> int:
        """Statements sent so far, BEGIN and COMMIT among them."""
        return self._session.round_trips

    @property
    def replays(self) -> int:
        """Operations that were run again after a conflict or a lost connection."""
        return self._session.replays

    def _time(self) -> datetime | None:
        return self._given_now() if self._given_now else None

    async def open(self) -> None:
        await self._session.open()

        async def prepare(link: Link, _conflicts: int) -> None:
            found = await link.fetchrow(
                "SELECT clock_timestamp() AS now, current_setting('server_encoding') AS encoding"
            )
            if found["encoding"] != "UTF8":
                raise WrongEncoding(
                    f"the database is encoded in {found['encoding']}: create it anew with ENCODING 'UTF8' TEMPLATE template0"
                )
            await check_revision(link.fetch, self.schema)
            await make_partitions(link, self.schema, days_ahead(self._time() or found["now"]))

        try:
            await self._session.run(prepare)
        except BaseException:
            await self._session.close()
            raise

    async def close(self) -> None:
        await self._session.close()

    async def now(self) -> datetime:
        given = self._time()
        if given is not None:
            return given
        moment: datetime = await self._fetchval("SELECT clock_timestamp()")
        return moment

    # ---- rows

    async def change(self, key: Key, rule: RowRule, known: Known | None = None) -> Change:
        check_text(key.id)
        return await self._session.run(partial(self._change, key, rule, known))

    async def _change(
        self, key: Key, rule: RowRule, known: Known | None, link: Link, conflicts: int
    ) -> Change:
        try:
            if known is not None and known.mark is not None and not conflicts:
                with suppress(Moved):
                    return await self._write(key, rule, link, known.row, known.mark)
            if conflicts < OPTIMISTIC_TRIES:
                return await self._apply(key, rule, link, self._sql.load)
            async with link.transaction():
                return await self._apply(key, rule, link, self._sql.load_locked)
        except _NoPartition as missing:
            await make_partitions(link, self.schema, missing.days)
            raise Moved from missing

    async def _apply(self, key: Key, rule: RowRule, link: Link, load: str) -> Change:
        at = time.monotonic()
        record = await link.fetchrow(load, self._time(), key.kind, key.id)
        if record is None:  # the locking read found no row to lock
            at = time.monotonic()
            record = await link.fetchrow(self._sql.load, self._time(), key.kind, key.id)
        stored = row_from(record) if record["kind"] is not None else None
        version = _Version(record["row_version"], record["work_version"], record["now"], at)
        return await self._write(key, rule, link, stored, version, record["now"])

    async def _write(
        self,
        key: Key,
        rule: RowRule,
        link: Link,
        stored: Row | None,
        version: _Version,
        now: datetime | None = None,
    ) -> Change:
        """Apply the rule to what stands at that version, and write; Moved when it does not stand there any more.

        now: when the row was read, in this very operation; None for a row that is only believed to be so.
        """
        made = rule(stored, now or self._time() or version.time())
        change = checked_change(key, stored, stored, made)
        row, work, statement, arguments = self._statement(stored, version, change)
        if statement is None:
            if now is None:
                raise Moved  # no write has shown that the row is still the known one
            return replace(made, known=Known(stored, version)) if stored is not None else made
        try:
            ours = await link.fetchval(statement, key.kind, key.id, *arguments)
        except asyncpg.CheckViolationError as error:
            if error.constraint_name is not None:
                raise
            raise _NoPartition([day_of(h.at) for h in change.history]) from error
        if ours is None:
            raise Moved
        stands = change.row or stored
        if stands is None:
            return made
        fresh = replace(version, row=ours if row else version.row, work=ours if work else version.work)
        return replace(made, known=Known(stands, fresh))

    def _statement(
        self, stored: Row | None, version: _Version, change: Change
    ) -> tuple[bool, bool, str | None, builtins.list[Any]]:
        """Whether each part of the row is written, the statement (None: nothing to write), its arguments after kind and id."""
        appended, outbox, history = self._appended(change)
        if stored is None and change.row is None:
            return False, False, self._sql.append(outbox, history) if appended else None, appended
        if stored is None:
            assert change.row is not None
            row, work = row_values(change.row), work_values(change.row)
            values = [*(row[c] for c in ROW_COLUMNS), *(work[c] for c in WORK_COLUMNS)]
            return True, True, self._sql.insert(outbox, history), [*values, *appended]
        row, work = {}, {}
        if change.row is not None and change.row is not stored:
            row = changed(row_values(stored), row_values(change.row))
            work = changed(work_values(stored), work_values(change.row))
        if not (row or work or appended):
            return False, False, None, []
        statement = self._sql.update(tuple(row), tuple(work), outbox, history)
        arguments = [version.row, version.work, *row.values(), *work.values(), *appended]
        return bool(row), bool(work), statement, arguments

    def _appended(self, change: Change) -> tuple[builtins.list[Any], bool, bool]:
        """Arguments for outgoing messages and history, a list per column, and whether there are any of each."""
        arguments: builtins.list[Any] = []
        sent = [checked_outgoing(o) for o in change.outgoing]
        if sent:
            arguments += [
                [o.subject for o in sent],
                [o.payload for o in sent],
                [o.headers for o in sent],
                [o.message_id or uuid4().hex for o in sent],
                [o.purge_to for o in sent],
            ]
        entries = [checked_history(h) for h in change.history]
        if entries:
            arguments += [[h.at for h in entries], [h.kind for h in entries], [h.body for h in entries]]
        return arguments, bool(sent), bool(entries)

    async def get(self, kind: str, ident: str) -> Row | None:
        records = await self._fetch(self._sql.get, kind, check_text(ident))
        return row_from(records[0]) if records else None

    async def list(self, query: Query) -> builtins.list[Row]:
        statement, arguments = listing(self.schema, checked_query(query))
        return [row_from(r) for r in await self._fetch(statement, *arguments)]

    async def untold(self, seconds: float, limit: int) -> builtins.list[Key]:
        checked_limits(limit=limit)
        records = await self._fetch(self._sql.untold, self._time(), float(seconds), limit)
        return [Key(r["region"], r["project"], r["kind"], r["id"]) for r in records]

    # ---- queue

    async def wake(self, keys: Iterable[tuple[str, str]], cause: Mapping[str, Any]) -> int:
        pairs, plain = checked_pairs(keys), to_plain(cause)
        if not pairs:
            return 0
        kinds, ids = [p[0] for p in pairs], [p[1] for p in pairs]
        woken: int = await self._fetchval(self._sql.wake, self._time(), kinds, ids, plain)
        return woken

    async def claim(
        self, owner: str, limit: int, lease_seconds: float, per_identity: int = 4
    ) -> builtins.list[Lease]:
        checked_limits(limit=limit, lease_seconds=lease_seconds, per_identity=per_identity)
        before, at = self._cursor, time.monotonic()
        records = await self._fetch(
            self._sql.claim, self._time(), owner, limit, per_identity, before, float(lease_seconds)
        )
        walked_to = records[0]["walked_to"]
        claimed = [r for r in records if r["kind"] is not None]

        def lap(identity: str) -> tuple[bool, str]:
            return identity <= before, identity

        claimed.sort(key=lambda r: (lap(r["fair"]), r["due_at"], r["kind"], r["id"]))
        if walked_to is not None and len(claimed) < limit:
            self._cursor = walked_to
        elif claimed:
            last = claimed[-1]["fair"]
            # What comes after the walk's end was found by age, and nobody between has been asked yet.
            self._cursor = last if walked_to is None else min(last, walked_to, key=lap)
        return [
            Lease(
                Key(r["region"], r["project"], r["kind"], r["id"]),
                owner,
                r["lease_epoch"],
                r["lease_until"],
                r["wake_seq"],
                r["due_at"],
                _known(r, at),
            )
            for r in claimed
        ]

    async def next_due(self) -> datetime | None:
        moment: datetime | None = await self._fetchval(self._sql.next_due, self._time())
        return moment

    async def renew(self, leases: Sequence[Lease], seconds: float) -> dict[Key, datetime]:
        checked_limits(seconds=seconds)
        if not leases:
            return {}
        records = await self._fetch(self._sql.renew, self._time(), *_columns(leases), float(seconds))
        ends = {(r["kind"], r["id"]): r["lease_until"] for r in records}
        found = ((lease.key, ends.get((lease.key.kind, lease.key.id))) for lease in leases)
        return {key: end for key, end in found if end is not None}

    async def release(self, leases: Sequence[Lease]) -> None:
        if leases:
            await self._fetch(self._sql.release, self._time(), *_columns(leases))

    # ---- outbox and history

    async def outbox_take(self, limit: int, seconds: float) -> builtins.list[OutboxItem]:
        checked_limits(limit=limit, seconds=seconds)
        records = await self._fetch(self._sql.outbox_take, self._time(), limit, float(seconds))
        return [
            OutboxItem(
                r["id"], Outgoing(r["subject"], r["payload"], r["headers"], r["message_id"], r["purge_to"])
            )
            for r in sorted(records, key=lambda r: r["id"])
        ]

    async def outbox_done(self, ids: Sequence[int]) -> None:
        if ids:
            await self._fetch(self._sql.outbox_done, [*ids])

    async def history(
        self, key: Key, since: datetime | None = None, until: datetime | None = None, limit: int = 200
    ) -> builtins.list[HistoryEntry]:
        checked_limits(limit=limit)
        records = await self._fetch(self._sql.history, key.kind, key.id, since, until, limit)
        return [HistoryEntry(r["kind"], r["at"], r["body"]) for r in reversed(records)]

    async def stood(self, key: Key, at: datetime) -> HistoryEntry | None:
        records = await self._fetch(self._sql.stood, key.kind, key.id, at)
        return HistoryEntry(records[0]["kind"], records[0]["at"], records[0]["body"]) if records else None

    # ---- documents

    async def document(self, name: str) -> Mapping[str, Any] | None:
        body: Mapping[str, Any] | None = await self._fetchval(self._sql.document, name)
        return body

    async def change_document(self, name: str, rule: DocumentRule) -> Any:
        check_text(name)
        return await self._session.run(partial(self._change_document, name, rule))

    async def _change_document(self, name: str, rule: DocumentRule, link: Link, conflicts: int) -> Any:
        if conflicts < OPTIMISTIC_TRIES:
            return await self._apply_document(name, rule, link, None)
        async with link.transaction():
            locked = await link.fetchrow(self._sql.document_load_locked, self._time(), name)
            return await self._apply_document(name, rule, link, locked)

    async def _apply_document(self, name: str, rule: DocumentRule, link: Link, locked: Any) -> Any:
        record = locked or await link.fetchrow(self._sql.document_load, self._time(), name)
        stored, version = record["body"], record["version"]
        kept = copy_plain(stored)
        body, result = rule(stored, record["now"])
        plain = kept if body is stored else to_plain(body)
        if plain is None and version is None:
            return result
        if plain is None:
            written = await link.fetchval(self._sql.document_delete, name, version)
        elif version is None:
            written = await link.fetchval(self._sql.document_insert, name, plain)
        elif same_json(plain, kept):
            return result
        else:
            written = await link.fetchval(self._sql.document_update, name, plain, version)
        if written is None:
            raise Moved
        return result

    async def purge(self, tombstones_before: datetime, history_before: datetime) -> int:
        removed = 0
        while True:
            went: int = await self._fetchval(self._sql.purge_tombstones, tombstones_before, PURGE_BATCH)
            removed += went
            if went < PURGE_BATCH:
                break
        now = await self.now()

        async def prepare(link: Link, _conflicts: int) -> builtins.list[date]:
            await make_partitions(link, self.schema, days_ahead(now))
            return await partition_days(link, self.schema)

        for day in await self._session.run(prepare):
            if day <= day_of(history_before):
                removed += await self._session.run(partial(self._purge_day, day, history_before))
        return removed

    async def _purge_day(self, day: date, before: datetime, link: Link, _conflicts: int) -> int:
        return await drop_day(link, self.schema, day, before)

    # ---- single statements

    async def _fetch(self, statement: str, *arguments: Any) -> builtins.list[Any]:
        async def fetch(link: Link, _conflicts: int) -> builtins.list[Any]:
            return await link.fetch(statement, *arguments)

        return await self._session.run(fetch)

    async def _fetchval(self, statement: str, *arguments: Any) -> Any:
        async def fetch(link: Link, _conflicts: int) -> Any:
            return await link.fetchval(statement, *arguments)

        return await self._session.run(fetch)


class _NoPartition(Exception):
    def __init__(self, days: builtins.list[Any]) -> None:
        super().__init__(f"history has no partition for some of {days}")
        self.days = days


def _known(record: Mapping[str, Any], at: float) -> Known | None:
    """A claimed row as it was read with its claim; None when it may have been read from before its last wake."""
    if record["row_version"] is None:
        return None
    version = _Version(record["row_version"], record["work_version"], record["now"], at)
    return Known(row_from(record), version)


def _columns(leases: Sequence[Lease]) -> tuple[list[str], list[str], list[str], list[int]]:
    sorted_leases = ordered(leases)
    return (
        [lease.key.kind for lease in sorted_leases],
        [lease.key.id for lease in sorted_leases],
        [lease.owner for lease in sorted_leases],
        [lease.epoch for lease in sorted_leases],
    )
