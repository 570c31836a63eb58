"""Either side from the other: lost streams from the database, a lost database from the streams.

Both directions may be stopped and run again: what is there already stays.  The services whose rows are meant do not run meanwhile.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import orjson

from roadstead.bus.epochs import Known, Life, Seen, compare, micros
from roadstead.clock import Clock
from roadstead.events import dump
from roadstead.reconcile import rebuild as pure
from roadstead.reconcile.relay import Out, Relay
from roadstead.reconcile.status import status_document
from roadstead.store.api import Query, Row, Store
from roadstead.subjects import OWNERS, consumers_of, credential_subject, spec_subject, status_subject

PAGE = 500
SPREAD = 0.02  # seconds between two rebuilt rows that fall due, so that a region is not asked for everything at once


@dataclass(frozen=True)
class Last:
    """The newest message of a subject.  time: microseconds since 1970."""

    subject: str
    sequence: int
    time: int
    data: bytes


class Streams(Out, Protocol):
    """The broker as a rebuild needs it; a service's relay goes out through it too."""

    async def last(self, stream: str, subject: str) -> Last | None: ...

    async def all_last(self, stream: str, subject: str) -> list[Last]:
        """The last message of each subject that matches, in the stream's order."""
        ...

    async def seen(self, stream: str, sequence: int) -> Seen:
        """The stream as it is now, with the time of the message at `sequence` (0: of none)."""
        ...

    async def compare_and_publish(self, subject: str, body: bytes, expected: int) -> int | None:
        """Store when `expected` is the last sequence of the subject (0: none); the new sequence, None when it moved on."""
        ...


@dataclass
class Counts:
    """How many messages or rows were made.  kept: were there already; unreadable: messages that no row can be made from."""

    specs: int = 0
    statuses: int = 0
    credentials: int = 0
    rows: int = 0
    kept: int = 0
    unreadable: list[str] = field(default_factory=list)


Documents = Callable[
    [Sequence[Mapping[str, Any]], Mapping[tuple[str, str], Mapping[str, Any]]], Mapping[str, Any]
]


def kinds_of(service: str) -> list[str]:
    """Kinds whose rows are the service's."""
    return [kind for kind, owner in OWNERS.items() if owner == service]


# ---------------------------------------------------------------- streams from rows


async def to_bus(
    service: str, store: Store, streams: Streams, clock: Clock, *, dry_run: bool = False
) -> Counts:
    """Publish what the service's rows say: accepted specs that SPEC lacks, every status, sealed credentials that are missing."""
    counts = Counts()
    held = await store.document("stream.SPEC")
    known = Known.of_document(held) if held else None
    if known is not None:
        # As the service will find it at its start: what is in a stream that was made anew belongs to the next epoch.
        known, _ = compare(known, await streams.seen("SPEC", known.sequence))
    for kind in kinds_of(service):
        async for row in _rows(store, kind):
            await _spec(row, streams, known, counts, dry_run)
            await _credential(row, store, streams, counts, dry_run)
            await _status(row, store, streams, counts, dry_run)
    if not dry_run:
        # The outbox, not a publication from here: its order per subject is the order of the rows' versions.
        relay = Relay(store, streams, clock).named(f"outbox-{service}")
        while await relay.flush():
            pass
    return counts


async def _rows(store: Store, kind: str) -> Any:
    marker: str | None = None
    while True:
        page = await store.list(Query(kind, limit=PAGE, marker=marker))
        for row in page:
            yield row
        if len(page) < PAGE:
            return
        marker = page[-1].key.id


async def _spec(row: Row, streams: Streams, known: Known | None, counts: Counts, dry_run: bool) -> None:
    """Only behind a message that is older than what the row accepted: a newer one is somebody's edit and will be consumed."""
    wish = pure.wish_of(row)
    if wish is None:
        return
    subject = spec_subject(wish.key)
    last = await streams.last("SPEC", subject)
    expected, there = 0, (0, 0)
    if last is not None:
        expected = last.sequence
        there = (known.epoch_of(last.sequence, last.time) if known is not None else 1, last.sequence)
    bodies = [body for position, body in wish.messages if position > there]
    if not bodies:
        counts.kept += 1
    for body in bodies:
        if dry_run:
            counts.specs += 1
            continue
        stored = await streams.compare_and_publish(subject, body, expected)
        if stored is None:
            counts.kept += 1
            return
        expected = stored
        counts.specs += 1


async def _status(row: Row, store: Store, streams: Streams, counts: Counts, dry_run: bool) -> None:
    """Again unless the stream's last one says exactly what the row says."""
    last = await streams.last("STATUS", status_subject(row.key))
    if last is not None and _object(last.data) == orjson.loads(dump(status_document(row))):
        counts.kept += 1
        return
    counts.statuses += 1
    if not dry_run:
        await store.change(row.key, pure.republish)


def _object(data: bytes) -> Any:
    """None for what is no JSON."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


async def _credential(row: Row, store: Store, streams: Streams, counts: Counts, dry_run: bool) -> None:
    subject, body = credential_subject(row.key.region, row.key.id), pure.credential_body(row)
    if row.key.kind == "region":
        document = await store.document(f"region-credential.{row.key.id}")
        subject, body = credential_subject(row.key.id, None), dump(dict(document)) if document else None
    if body is None:
        return
    last = await streams.last("CREDENTIAL", subject)
    if last is not None and _version(last.data) >= _version(body):
        counts.kept += 1
        return
    if not dry_run:
        stored = await streams.compare_and_publish(subject, body, last.sequence if last is not None else 0)
        if stored is None:
            counts.kept += 1  # somebody published a newer one just now
            return
    counts.credentials += 1


def _version(data: bytes) -> tuple[int, int]:
    """(incarnation, version) of a CREDENTIAL message; nothing readable is older than everything."""
    try:
        body = orjson.loads(data)
        return int(body.get("incarnation", 0)), int(body["version"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return -1, -1


# ---------------------------------------------------------------- rows from streams


async def to_database(
    service: str,
    store: Store,
    streams: Streams,
    documents_of: Documents,
    *,
    settling: float,
    dry_run: bool = False,
) -> Counts:
    """Make the service's rows from STATUS and CREDENTIAL, and the documents that follow from them.

    settling: seconds until the first row falls due.  SPEC newer than a row is consumed by the service when it starts.
    """
    counts = Counts()
    credentials = await _credentials(streams)
    now = await store.now()
    due = now + timedelta(seconds=settling)
    statuses: list[Mapping[str, Any]] = []
    rows: list[Row] = []
    for kind in kinds_of(service):
        for message in await streams.all_last("STATUS", f"status.*.*.{kind}.*"):
            try:
                document = orjson.loads(message.data)
                row = pure.row_of(document, now, due, *_record(document, credentials))
            except (orjson.JSONDecodeError, pure.NotAStatus) as error:
                counts.unreadable.append(f"{message.subject}: {error}")
                continue
            statuses.append(document)
            rows.append(row)
            due += timedelta(seconds=SPREAD)
    for row in rows:
        if dry_run:
            made = await store.get(row.key.kind, row.key.id) is None
        else:
            change = await store.change(row.key, lambda held, at, row=row: pure.restore(held, at, made=row))  # type: ignore[misc]  # mypy takes the default for a parameter of the rule
            made = bool(change.result)
        counts.rows += made
        counts.credentials += made and row.record is not None
        counts.kept += not made
    if not dry_run:
        for name, document in documents_of(statuses, credentials).items():
            await store.change_document(name, lambda held, _now, fresh=document: (held or fresh, None))  # type: ignore[misc]  # likewise
        if consumers_of(service):
            await _position(store, streams, rows)
    return counts


async def _credentials(streams: Streams) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Newest CREDENTIAL message by region and whom it is for (`_region`: the region's own)."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for message in await streams.all_last("CREDENTIAL", "credential.*.*"):
        _, region, who = message.subject.split(".")
        try:
            body = orjson.loads(message.data)
        except orjson.JSONDecodeError:
            continue  # the row is made without it, and its pass says what it lacks
        if isinstance(body, dict) and "sealed" in body:
            found[region, who] = body
    return found


def _record(
    document: Mapping[str, Any], credentials: Mapping[tuple[str, str], Mapping[str, Any]]
) -> tuple[str | None, int]:
    metadata = document.get("metadata") or {}
    if document.get("kind") != "identity" or not isinstance(metadata, dict):
        return None, 0
    body = credentials.get((str(metadata.get("regionId")), str(metadata.get("id"))))
    if body is None or body.get("incarnation", metadata.get("incarnation")) != metadata.get("incarnation"):
        return None, 0
    return str(body["sealed"]), int(body.get("version", 0))


async def _position(store: Store, streams: Streams, rows: Iterable[Row]) -> None:
    """How far the stream of specs was read, as far as rows tell; each subject's last message is read once more."""
    seen = await streams.seen("SPEC", 0)
    known = known_of([(row.epoch, row.sequence) for row in rows], seen.created, micros(datetime.now(UTC)))
    await store.change_document("stream.SPEC", lambda held, _now: (held or known.to_document(), None))


def known_of(positions: Sequence[tuple[int, int]], created: int, now: int) -> Known:
    """What is known of a stream from the positions of rows alone.

    Its newest epoch begins no later than at the lowest sequence that a row has in it.  Messages below that are told apart from new
    ones by their time: what is published from now on belongs to the newest epoch.
    """
    newest = max((epoch for epoch, _ in positions), default=1)
    if newest <= 1:
        return Known(created, reread=0)
    lowest = min(sequence for epoch, sequence in positions if epoch == newest)
    lives = (Life(newest - 1), Life(newest, max(0, lowest - 1), now))
    return Known(created, lives, reread=0)
