"""One durable consumer of a service: every message handled, acknowledged after the commit, or put aside with its reason.

Messages of one lane (their subject, unless a consumer says otherwise) are handled in order and those of different lanes side by side,
so a slow one holds back only its own resource.  What fails is delivered again, later each time.  A message is put aside only for what
is wrong with it: when it was refused, or failed five times while database and broker were well (architecture.md section 3.11).
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from nats.js.errors import NotFoundError
from opentelemetry.trace import SpanKind

from roadstead.bus.connection import Bus, label
from roadstead.bus.dead import MAX_BODY, DeadLetter, Origin, dead_message, key_of
from roadstead.bus.epochs import Epochs
from roadstead.bus.failures import PublishFailed
from roadstead.bus.pull import Delivery, Pull, Room
from roadstead.subjects import ConsumerSettings

log = structlog.get_logger("roadstead.bus")

FAILURES_MAX = 5
DELAY_MAX = 30.0
OF_ACK_WAIT = 0.8  # of the time until the broker gives a message to somebody else
LIMIT_MIN = 10.0  # however fast the pace: a busy machine is no stuck handler
REMEMBERED = 10_000
HEADERS_MAX = 32 * 1024  # room for them beside the body, in what the broker takes

K = TypeVar("K")
V = TypeVar("V")
Handle = Callable[[Delivery, int], Awaitable[DeadLetter | None]]


def delay_after(deliveries: int) -> float:
    """Seconds until a failed message comes again: 1, 2, 4 ... 30."""
    return min(DELAY_MAX, 2.0 ** max(0, min(deliveries, 10) - 1))


@dataclass(frozen=True)
class Arrived:
    """A message with the epoch that held when it came; a later rise does not change its position."""

    delivery: Delivery
    epoch: int
    lane: str = ""


class Bounded(dict[K, V]):
    """A dict that lets its oldest entry go when there are too many."""

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > REMEMBERED:
            del self[next(iter(self))]


class Durable:
    """Consumes for as long as `run` runs; what is in hand when it is cancelled is finished all the same.

    handle: (message, its epoch) -> None when done, or why it is refused; it raises for trouble that may pass.
    healthy: whether database and broker are well right now.  epochs None: positions play no part (observations).
    lane: messages with the same one are handled in order; the subject unless given.
    limit: seconds after which a handler is ended, as if it had failed; by default less than the contract's ack_wait of 30 s, so
    that no message is in two hands.
    """

    def __init__(
        self,
        bus: Bus,
        settings: ConsumerSettings,
        handle: Handle,
        healthy: Callable[[], Awaitable[bool]],
        *,
        service: str,
        epochs: Epochs | None = None,
        in_hand: int = 64,
        lane: Callable[[Delivery], str] = lambda delivery: delivery.subject,
        limit: float | None = None,
    ) -> None:
        self._bus = bus
        self._lane_of = lane
        self.settings = settings
        self._handle = handle
        self._healthy = healthy
        self._service = service
        self._epochs = epochs
        self.limit = max(LIMIT_MIN, settings.ack_wait * OF_ACK_WAIT) if limit is None else limit
        self.room = Room(in_hand)
        self._lanes: dict[str, deque[Arrived]] = {}
        self._held: Bounded[str, tuple[int, float]] = Bounded()
        self._failures: Bounded[tuple[int, int], int] = Bounded()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled.  ConsumerGone when the server lost the consumer."""
        s = self.settings
        await Pull(self._bus.client, s.stream, s.durable, self.room, self._arrived).run()

    async def idle(self, seconds: float) -> bool:
        """Wait until nothing is in hand; whether that came about in time."""
        try:
            async with asyncio.timeout(seconds):
                await self.room.empty()
                while self._tasks:
                    await asyncio.wait(set(self._tasks))
        except TimeoutError:
            return False
        return True

    # ------------------------------------------------------------ lanes

    async def _arrived(self, delivery: Delivery) -> None:
        epoch = self._epochs.epoch_of(delivery.sequence, delivery.time) if self._epochs is not None else 1
        name = self._lane_of(delivery)
        arrived = Arrived(delivery, epoch, name)
        lane = self._lanes.get(name)
        if lane is not None:
            lane.append(arrived)
            return
        self._lanes[name] = deque([arrived])
        self._spawn(self._drive(name))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drive(self, name: str) -> None:
        lane = self._lanes[name]
        while lane:
            arrived = lane.popleft()
            try:
                await self._one(arrived)
            except Exception:
                # Not even the negative acknowledgement went out: the server delivers it again after ack_wait.
                log.exception(
                    "message left to the broker",
                    subject=label(arrived.delivery.subject),
                    sequence=arrived.delivery.sequence,
                )
                self.room.give()
        del self._lanes[name]

    # ------------------------------------------------------------ one message

    async def _one(self, arrived: Arrived) -> None:
        delivery = arrived.delivery
        name = label(delivery.subject)
        held = self._held.get(arrived.lane)
        if held is not None and time.monotonic() > held[1]:
            del self._held[arrived.lane]
            held = None
        if held is not None and delivery.sequence > held[0]:
            # An earlier message of this subject waits to be delivered again; this one comes after it.
            await self._again(delivery, delay_after(1), "waiting")
            return
        began = time.monotonic()
        self._bus.meters.observe(
            "roadstead_message_age_seconds", max(0.0, time.time() - delivery.time / 1e6), subject=name
        )
        carrier = delivery.headers if "traceparent" in delivery.headers else {}
        with self._bus.tracing.span(f"process {name}", carrier, kind=SpanKind.CONSUMER) as span:
            span.set_attribute("messaging.nats.sequence", delivery.sequence)
            try:
                async with asyncio.timeout(self.limit):
                    letter = await self._handle(delivery, arrived.epoch)
                if letter is not None:
                    await self.put_aside(letter, arrived)
            except Exception as error:  # noqa: BLE001 - whatever it is, the message is delivered again; _failed logs it
                await self._failed(arrived, error)
                return
            finally:
                self._bus.meters.observe("roadstead_message_seconds", time.monotonic() - began, subject=name)
        if held is not None and held[0] == delivery.sequence:
            self._held.pop(arrived.lane, None)
        self._failures.pop((arrived.epoch, delivery.sequence), None)
        self._bus.meters.count("roadstead_messages_total", subject=name, outcome="dead" if letter else "done")
        self._spawn(self._acknowledge(arrived))
        self.room.give()

    async def _acknowledge(self, arrived: Arrived) -> None:
        """After the stream's document knows of it: a restored stream must not look as if it had never been there."""
        try:
            if self._epochs is not None and arrived.epoch == self._epochs.epoch:
                await self._epochs.cover(arrived.epoch, arrived.delivery.sequence, arrived.delivery.time)
            await arrived.delivery.raw.ack()
        except Exception as error:  # noqa: BLE001 - the store or the broker, in many spellings
            # It was handled; delivered again it changes nothing.
            log.warning(
                "not acknowledged", stream=self.settings.stream, error=str(error) or type(error).__name__
            )

    async def _again(self, delivery: Delivery, delay: float, outcome: str) -> None:
        await delivery.raw.nak(delay=delay)
        self._bus.meters.count("roadstead_messages_total", subject=label(delivery.subject), outcome=outcome)
        self.room.give()

    async def _failed(self, arrived: Arrived, error: Exception) -> None:
        delivery = arrived.delivery
        place = (arrived.epoch, delivery.sequence)
        well = not isinstance(error, PublishFailed) and await self._healthy()
        failures = self._failures.get(place, 0) + (1 if well else 0)
        log.warning(
            "message failed",
            subject=label(delivery.subject), key=key_of(delivery.subject), sequence=delivery.sequence,
            failures=failures, platform_is_well=well, exc_info=error,
        )  # fmt: skip
        if failures >= FAILURES_MAX:
            letter = DeadLetter(
                "QUARANTINED",
                f"it failed {failures} times while database and broker were well: {type(error).__name__}; the log has more",
                key=key_of(delivery.subject),
            )
            try:
                await self.put_aside(letter, arrived)
            except PublishFailed as refused:
                log.warning("not put aside", reason=str(refused))
            else:
                self._failures.pop(place, None)
                self._held.pop(arrived.lane, None)
                self._bus.meters.count(
                    "roadstead_messages_total", subject=label(delivery.subject), outcome="quarantined"
                )
                self._spawn(self._acknowledge(arrived))
                self.room.give()
                return
        self._failures[place] = failures
        delay = delay_after(delivery.delivered)
        first = self._held.get(arrived.lane, (delivery.sequence, 0.0))[0]
        self._held[arrived.lane] = (min(first, delivery.sequence), time.monotonic() + delay + 5.0)
        await self._again(delivery, delay, "failed")

    async def _body(self, delivery: Delivery) -> bytes:
        """The body of a message that came without it; empty when the stream has let it go."""
        try:
            return (await self._bus.js.get_msg(delivery.stream, seq=delivery.sequence)).data or b""
        except NotFoundError:
            return b""

    async def put_aside(self, letter: DeadLetter, arrived: Arrived) -> None:
        """Publish the dead letter.  PublishFailed when the broker did not take it: then nothing is acknowledged."""
        d = arrived.delivery
        data = await self._body(d) if self.settings.headers_only else d.data
        origin = Origin(d.stream, d.subject, arrived.epoch, d.sequence, data, d.headers.get("traceparent"))
        limit = min(MAX_BODY, self._bus.client.max_payload - HEADERS_MAX)
        subject, body, headers = dead_message(self._service, letter, origin, limit)
        await self._bus.publish(subject, body, headers)
        self._bus.meters.count("roadstead_dead_letters_total", subject=label(d.subject), reason=letter.code)
        log.warning(
            "dead letter", subject=label(d.subject), key=letter.key, reason=letter.code, text=letter.message
        )
