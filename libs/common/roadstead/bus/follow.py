"""The newest message of each subject, and then every change, in order: how a service knows what others own.

An ephemeral consumer that is made again wherever it broke off: after a gap, a lost connection or a restart of the broker it goes
on behind the last sequence that was seen, and from the beginning when the stream is not the one it was.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence

import structlog
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from roadstead.bus.connection import Bus
from roadstead.bus.epochs import Known, Seen, compare, micros
from roadstead.bus.pull import Delivery, Pull, Room
from roadstead.bus.tasks import end_all

log = structlog.get_logger("roadstead.bus")

IDLE_LIFE = 60.0  # seconds after which the server forgets a follower that stopped asking
BATCH = 256


class GapSeen(Exception):
    """A message was lost between server and here."""


def follower_config(subjects: Sequence[str], name: str, start: int) -> ConsumerConfig:
    """start 0: the last message of each subject first; else from that sequence on."""
    return ConsumerConfig(
        name=name,
        filter_subjects=list(subjects),
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE if start else DeliverPolicy.LAST_PER_SUBJECT,
        opt_start_seq=start or None,
        ack_policy=AckPolicy.NONE,
        inactive_threshold=IDLE_LIFE,
        mem_storage=True,
        num_replicas=1,
    )


class Follower:
    """Follows subjects of one stream.  `handle` may be called again for a message after a failure on the way.

    `caught_up` is set once everything that was there at the beginning was handled, and stays set.
    """

    def __init__(
        self,
        bus: Bus,
        stream: str,
        subjects: Sequence[str],
        handle: Callable[[Delivery], Awaitable[None]],
        *,
        name: str,
    ) -> None:
        self._bus = bus
        self.stream = stream
        self._subjects = tuple(subjects)
        self._handle = handle
        self._name = name
        self._known: Known | None = None
        self._expected = 1
        self._broken = asyncio.Event()
        self.caught_up = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled or the connection ends; raises what the broker raises."""
        while True:
            try:
                await self._follow()
            except GapSeen:
                log.warning("gap; going on from the last message", stream=self.stream, name=self._name)

    async def _follow(self) -> None:
        js = self._bus.js
        start = await self._start(js)
        name = f"{self._name}-{secrets.token_hex(4)}"
        info = await js.add_consumer(self.stream, follower_config(self._subjects, name, start))
        self._expected = 1
        self._broken.clear()
        if not info.num_pending:
            self.caught_up.set()
        self._room = Room(BATCH)
        pull = asyncio.create_task(Pull(self._bus.client, self.stream, name, self._room, self._arrived).run())
        broken = asyncio.create_task(self._broken.wait())
        try:
            await asyncio.wait({pull, broken}, return_when=asyncio.FIRST_COMPLETED)
            if pull.done():
                pull.result()
            raise GapSeen
        finally:
            await end_all((pull, broken))

    async def _start(self, js: JetStreamContext) -> int:
        """Where to go on; 0: from the beginning, because the stream is new to us or not the one it was."""
        info = await js.stream_info(self.stream)
        assert info.created is not None
        known = self._known
        at = None
        if known is not None and known.sequence:
            try:
                found = await js.get_msg(self.stream, seq=known.sequence)
                at = micros(found.time) if found.time is not None else None
            except NotFoundError:
                at = None
        fresh, reason = compare(known, Seen(micros(info.created), int(info.state.last_seq), at))
        if reason is not None:
            log.warning("stream begins anew", stream=self.stream, reason=reason)
        self._known = fresh
        return fresh.sequence + 1 if fresh.sequence and self.caught_up.is_set() else 0

    async def _arrived(self, delivery: Delivery) -> None:
        try:
            if self._broken.is_set() or self._known is None:
                return
            if delivery.consumer_sequence != self._expected:
                self._broken.set()
                return
            self._expected += 1
            await self._handle_safely(delivery)
            if delivery.sequence > self._known.sequence:
                self._known = Known(
                    self._known.created,
                    self._known.lives,
                    delivery.sequence,
                    delivery.time,
                    self._known.reread,
                )
            if delivery.pending == 0:
                self.caught_up.set()
        finally:
            self._room.give()

    async def _handle_safely(self, delivery: Delivery) -> None:
        try:
            await self._handle(delivery)
        except Exception:
            # One bad message must not hide all later ones; its resource comes again with its next change.
            log.exception("message could not be taken over", stream=self.stream, subject=delivery.subject)
            self._bus.meters.count("roadstead_bus_errors_total", error="follow")


async def read_last(
    bus: Bus,
    stream: str,
    subjects: Sequence[str],
    handle: Callable[[Delivery], Awaitable[None]],
    *,
    name: str,
) -> int:
    """Handle the last message of each subject once, in order; how many there were.  Raises the first failure."""
    failures: list[Exception] = []
    count = 0

    async def counted(delivery: Delivery) -> None:
        nonlocal count
        count += 1
        try:
            await handle(delivery)
        except Exception as error:  # noqa: BLE001 - raised below, when all others were handled
            failures.append(error)

    follower = Follower(bus, stream, subjects, counted, name=name)
    reading = asyncio.create_task(follower.run())
    through = asyncio.create_task(follower.caught_up.wait())
    try:
        await asyncio.wait({reading, through}, return_when=asyncio.FIRST_COMPLETED)
        if not through.done():
            reading.result()
    finally:
        await end_all((reading, through))
    if failures:
        raise failures[0]
    return count
