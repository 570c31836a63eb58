"""Which life of a stream a sequence belongs to (architecture.md section 3.2).

A stream may be made anew or come back from an older copy; its sequences then begin again below what rows already hold.  Positions
are therefore (epoch, sequence).  One document per stream keeps what was last known of it; at each connection, before anything is
consumed, the stream is compared with it.  When the epoch rises, messages that were there before keep their old epoch: they are told
from new ones by the stream's last sequence at the rise and by the time of the highest message that was known.  So a restored copy
cannot bring back an older spec, and whatever is published after the restore counts as newer.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from roadstead.store.api import DocumentRule

log = structlog.get_logger("roadstead.bus")

LIVES_KEPT = 8
COVER_EVERY = 0.01  # seconds between two writes of the document while messages flow


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exact: what both ways of learning a message's time have in common."""
    delta = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


@dataclass(frozen=True)
class Life:
    """Where an epoch begins: messages with a higher sequence than `above`, or later than `after` (microseconds)."""

    epoch: int
    above: int = 0
    after: int = 0


@dataclass(frozen=True)
class Known:
    """The document.  sequence and time: of the highest message handled in this epoch, 0 when there was none.

    reread: the last epoch whose first reading of all subjects was completed.
    """

    created: int
    lives: tuple[Life, ...] = (Life(1),)
    sequence: int = 0
    time: int = 0
    reread: int = 1

    @property
    def epoch(self) -> int:
        return self.lives[-1].epoch

    def epoch_of(self, sequence: int, time: int) -> int:
        """The epoch of a message of this stream."""
        for life in reversed(self.lives[1:]):
            if sequence > life.above or time > life.after:
                return life.epoch
        return self.lives[0].epoch

    def to_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "Known":
        lives = tuple(Life(**life) for life in document["lives"])
        return cls(**{**document, "lives": lives})


@dataclass(frozen=True)
class Seen:
    """The stream as it is now.  time_at: when the message at the known sequence was stored; None: it is not there."""

    created: int
    last_sequence: int
    time_at: int | None = None


def compare(known: Known | None, seen: Seen) -> tuple[Known, str | None]:
    """What to hold from now on, and why the epoch rose (None: it did not).

    A message that is gone (purged with its resource, or cut by the per-subject limit) proves nothing.
    """
    if known is None:
        return Known(seen.created), None
    reason = difference(known, seen)
    return (known, None) if reason is None else (risen(known, seen), reason)


def compare_again(held: Known | None, known: Known | None, seen: Seen) -> tuple[Known, str | None]:
    """As `compare`, when time passed.  held: what was known before the stream was looked at; known: what is known now.

    What another replica noted meanwhile comes from a stream that has grown since the look, so it is not compared; a rise that
    another one noted is not made twice.
    """
    if held is None or known is None:
        return (known, None) if known is not None else compare(None, seen)
    reason = difference(held, seen)
    if reason is None or known.epoch != held.epoch:
        return known, None
    return risen(known, seen), reason


def difference(known: Known, seen: Seen) -> str | None:
    """Why the stream is not the one that is known; None when it may be."""
    if seen.created != known.created:
        return "the stream was made anew"
    if seen.last_sequence < known.sequence:
        return f"its last sequence is {seen.last_sequence}, and {known.sequence} was there before"
    if seen.time_at is not None and known.sequence and seen.time_at != known.time:
        return f"the message at {known.sequence} is another one than before"
    return None


def risen(known: Known, seen: Seen) -> Known:
    """The next epoch, which begins behind what the stream holds now."""
    after = max(known.time, known.lives[-1].after)
    life = Life(known.epoch + 1, seen.last_sequence, after)
    lives = (*known.lives, life)[-LIVES_KEPT:]
    return replace(known, created=seen.created, lives=lives, sequence=0, time=0)


class Documents(Protocol):
    """The part of the store that is used here."""

    async def change_document(self, name: str, rule: DocumentRule) -> Any: ...


class Epochs:
    """One stream's epochs, shared by all replicas through the service's store."""

    def __init__(self, documents: Documents, stream: str) -> None:
        self._documents = documents
        self.stream = stream
        self._known = Known(0)
        self._noted = (0, 0, 0)  # epoch, sequence, time of the highest message handled here
        self._covered = (0, 0)
        self._writing = asyncio.Lock()
        self._written_at = 0.0

    @property
    def known(self) -> Known:
        return self._known

    @property
    def epoch(self) -> int:
        return self._known.epoch

    @property
    def reread_is_due(self) -> bool:
        return self._known.reread < self._known.epoch

    async def check(self, js: JetStreamContext) -> str | None:
        """Compare with the stream now; why the epoch rose, None when it did not.  Raises what broker and store raise."""
        document = await self._documents.change_document(
            self._name, lambda document, _now: (document, document)
        )
        held = Known.of_document(document) if document else None
        # Asked after the document was read: the other way round, a stream that grew in between would look shorter than it is.
        info = await js.stream_info(self.stream)
        at = await self._time_at(js, held.sequence) if held else None
        assert info.created is not None
        seen = Seen(micros(info.created), int(info.state.last_seq), at)

        def rule(document: Mapping[str, Any] | None, _now: datetime) -> tuple[Mapping[str, Any], Any]:
            known = Known.of_document(document) if document else None
            fresh, reason = compare_again(held, known, seen)
            return fresh.to_document(), (fresh, reason)

        outcome: tuple[Known, str | None] = await self._documents.change_document(self._name, rule)
        self._known, reason = outcome
        self._covered = (self._known.epoch, self._known.sequence)
        if reason is not None:
            log.warning("stream epoch rose", stream=self.stream, epoch=self.epoch, reason=reason)
        return reason

    async def reread_done(self) -> None:
        """Every subject's last message was handled in this epoch."""
        epoch = self.epoch

        def rule(document: Mapping[str, Any] | None, _now: datetime) -> tuple[Mapping[str, Any] | None, Any]:
            if document is None:
                return None, None
            known = Known.of_document(document)
            fresh = replace(known, reread=max(known.reread, epoch))
            return fresh.to_document(), fresh

        self._known = await self._documents.change_document(self._name, rule) or self._known

    def epoch_of(self, sequence: int, time: int) -> int:
        return self._known.epoch_of(sequence, time)

    async def cover(self, epoch: int, sequence: int, time: int) -> None:
        """Return once the document knows of a message at least this high; a message is acknowledged only after that.

        Many callers share one write.
        """
        self._noted = max(self._noted, (epoch, sequence, time))
        if (epoch, sequence) <= self._covered:
            return
        async with self._writing:
            if (epoch, sequence) <= self._covered:
                return
            loop = asyncio.get_running_loop()
            pause = self._written_at + COVER_EVERY - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            await self._write(*self._noted)
            self._written_at = loop.time()

    async def _write(self, epoch: int, sequence: int, time: int) -> None:
        def rule(document: Mapping[str, Any] | None, _now: datetime) -> tuple[Mapping[str, Any] | None, Any]:
            if document is None:
                return None, None
            known = Known.of_document(document)
            if known.epoch == epoch and sequence > known.sequence:
                known = replace(known, sequence=sequence, time=time)
            return known.to_document(), known

        known: Known | None = await self._documents.change_document(self._name, rule)
        if known is not None and known.epoch > self.epoch:
            self._known = known  # another replica saw the stream change
        self._covered = max(self._covered, (epoch, sequence))

    @property
    def _name(self) -> str:
        return f"stream.{self.stream}"

    @staticmethod
    async def _stored_at(js: JetStreamContext, stream: str, sequence: int) -> datetime | None:
        try:
            found = await js.get_msg(stream, seq=sequence)
        except NotFoundError:
            return None
        moment: datetime | None = found.time
        return moment

    async def _time_at(self, js: JetStreamContext, sequence: int) -> int | None:
        moment = await self._stored_at(js, self.stream, sequence) if sequence else None
        return micros(moment) if moment is not None else None
