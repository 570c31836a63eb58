"""The streams of a service: its handlers bound to what it consumes and follows, over one connection after another."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog
from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from roadstead.assembly import Assembly
from roadstead.bus.connection import Bus
from roadstead.bus.dead import DeadLetter
from roadstead.bus.durable import Arrived, Durable
from roadstead.bus.epochs import Epochs
from roadstead.bus.follow import Follower, read_last
from roadstead.bus.heard import Heard
from roadstead.bus.pull import Delivery
from roadstead.bus.session import Sessions
from roadstead.reconcile.handlers import Dead
from roadstead.seal import SealBroken
from roadstead.service_app import followed
from roadstead.store.api import StoreUnavailable
from roadstead.subjects import OWNERS, STRAYS, BadSubject, ConsumerSettings, consumers_of, parse_key

log = structlog.get_logger("roadstead.service")

MEASURE_EVERY = 15.0
REMEMBER_EVERY = 5.0
CATCH_UP_LOG = 30.0


class Streams:
    """What `service.py` runs of the bus.  start: awaited once, when what others own is known for the first time."""

    def __init__(
        self, assembly: Assembly, bus: Bus, *, in_hand: int, start: Callable[[], Awaitable[None]]
    ) -> None:
        self._assembly = assembly
        self._handlers = assembly.handlers
        self._bus = bus
        self._start = start
        self._started = False
        service = assembly.service
        pace = assembly.platform.pace
        self._consumers = tuple(_paced(c, pace) for c in consumers_of(service.name) if service.kinds)
        own = {c.stream: c for c in self._consumers if not _is_strays(c)}
        self._epochs = {"SPEC": Epochs(assembly.platform.store, "SPEC")} if "SPEC" in own else {}
        self._heard = Heard(assembly.platform.store, "STATUS")
        handles = {"SPEC": self._spec, "OBSERVED": self._observed}
        self.durables = [
            Durable(
                bus,
                consumer,
                self._stray if _is_strays(consumer) else handles[consumer.stream],
                self._healthy,
                service=service.name,
                epochs=self._epochs.get(consumer.stream),
                in_hand=in_hand,
                lane=lane_of,
            )
            for consumer in self._consumers
        ]
        wanted: dict[str, list[str]] = {}
        for stream, subject in followed(service):
            wanted.setdefault(stream, []).append(subject)
        follow = {"STATUS": self._status, "CREDENTIAL": self._credential}
        self.followers = [
            Follower(bus, stream, subjects, follow[stream], name=f"{service.name}-follows")
            for stream, subjects in wanted.items()
        ]
        self._sessions = Sessions(
            bus,
            self._consumers,
            self.durables,
            epochs=self._epochs,
            reread=self._reread,
            early=self.followers,
            first=self._know_all,
        )

    async def run(self) -> None:
        """Until cancelled.  BusRefused when a person must look at the broker."""
        await self._sessions.run()

    async def idle(self, seconds: float) -> None:
        """Messages in hand are finished, as far as the time allows."""
        for durable in self.durables:
            if not await durable.idle(seconds):
                log.warning("messages are left to the broker", consumer=durable.settings.durable)
        await self._heard.keep()

    async def fault(self) -> str | None:
        """What keeps them from running, for readiness."""
        behind = [f.stream for f in self.followers if not f.caught_up.is_set()]
        if behind:
            return f"still reading {', '.join(behind)}"
        return None if self._sessions.bound.is_set() else "consumers are not bound"

    async def _know_all(self) -> None:
        for follower in self.followers:
            while not follower.caught_up.is_set():
                try:
                    async with asyncio.timeout(CATCH_UP_LOG):
                        await follower.caught_up.wait()
                except TimeoutError:
                    log.info("still reading what others own", stream=follower.stream)
        if not self._started:
            self._started = True
            await self._start()

    # ------------------------------------------------------------ handlers

    async def _spec(self, delivery: Delivery, epoch: int) -> DeadLetter | None:
        position = (epoch, delivery.sequence)
        headers = {**delivery.headers, **self._bus.tracing.headers()}
        return _letter(await self._handlers.spec(delivery.subject, delivery.data, position, headers))

    async def _observed(self, delivery: Delivery, _epoch: int) -> DeadLetter | None:
        headers = {**delivery.headers, **self._bus.tracing.headers()}
        return _letter(await self._handlers.observed(delivery.subject, delivery.data, headers))

    async def _stray(self, delivery: Delivery, _epoch: int) -> DeadLetter | None:
        """Bodies do not travel here; the few that no owner's consumer matches are fetched for their dead letter."""
        tokens = delivery.subject.split(".")
        if len(tokens) == 5 and tokens[3] in OWNERS:
            return None  # whatever is wrong with it, its owner says so
        try:
            parse_key(delivery.subject)
        except BadSubject as error:
            return DeadLetter("BAD_SUBJECT", str(error))
        return None

    async def _status(self, delivery: Delivery) -> None:
        try:
            news = await self._heard.is_news(delivery.sequence, delivery.time)
            await self._handlers.status(delivery.subject, delivery.data, delivery.headers, news=news)
        except Exception:
            self._heard.miss()
            raise
        self._heard.note(delivery.sequence, delivery.time)

    async def _credential(self, delivery: Delivery) -> None:
        try:
            await self._handlers.credential(delivery.subject, delivery.data, delivery.headers)
        except SealBroken as error:
            log.warning(
                "a credential cannot be opened; every service needs the same sealing keys", reason=str(error)
            )

    async def _reread(self, epochs: Epochs) -> None:
        """After a rise: the last spec of each subject; older ones that come later change nothing."""
        consumer = next(c for c in self._consumers if c.stream == epochs.stream and not _is_strays(c))
        durable = next(d for d in self.durables if d.settings is consumer)

        async def handle(delivery: Delivery) -> None:
            epoch = epochs.epoch_of(delivery.sequence, delivery.time)
            letter = await self._spec(delivery, epoch)
            if letter is not None:
                await durable.put_aside(letter, Arrived(delivery, epoch))

        name = f"{self._assembly.service.name}-reread"
        count = await read_last(self._bus, epochs.stream, consumer.subjects, handle, name=name)
        log.info("specs were read again", stream=epochs.stream, epoch=epochs.epoch, messages=count)

    async def _healthy(self) -> bool:
        try:
            async with asyncio.timeout(2.0):
                await self._assembly.platform.store.now()
        except (StoreUnavailable, TimeoutError, OSError):
            return False
        return await self._bus.answers(2.0)

    async def remember(self) -> None:
        """Until cancelled: write down how far STATUS was acted on."""
        while True:
            await asyncio.sleep(REMEMBER_EVERY)
            await self._heard.keep()

    # ------------------------------------------------------------ figures

    async def measure(self) -> None:
        """Until cancelled: how full streams are and what waits for our consumers."""
        meters = self._bus.meters
        while True:
            await asyncio.sleep(MEASURE_EVERY)
            if not self._bus.is_settled:
                continue
            try:
                for stream in sorted({c.stream for c in self._consumers}):
                    info = await self._bus.js.stream_info(stream)
                    limit = info.config.max_bytes or 0
                    if limit > 0:
                        meters.put("roadstead_stream_fill_ratio", info.state.bytes / limit, stream=stream)
                for consumer in self._consumers:
                    held = await self._bus.js.consumer_info(consumer.stream, consumer.durable)
                    name = consumer.durable
                    meters.put("roadstead_consumer_pending", held.num_pending or 0, consumer=name)
                    meters.put("roadstead_consumer_unacknowledged", held.num_ack_pending or 0, consumer=name)
            except (NatsError, NotFoundError, TimeoutError, OSError) as error:
                log.info("no figures this time", error=str(error) or type(error).__name__)


def lane_of(delivery: Delivery) -> str:
    """Messages about one id are handled in order, whatever region and project they name: the first one is to have it."""
    tokens = delivery.subject.split(".")
    return ".".join(tokens[3:]) if len(tokens) == 5 else delivery.subject


def _paced(consumer: ConsumerSettings, pace: float) -> ConsumerSettings:
    """The time until an unacknowledged message comes again is one of the loop's waiting times; never below a second."""
    return replace(consumer, ack_wait=max(1.0, consumer.ack_wait * pace))


def _is_strays(consumer: ConsumerSettings) -> bool:
    return consumer.durable == STRAYS.durable


def _letter(result: object) -> DeadLetter | None:
    if isinstance(result, Dead):
        return DeadLetter(result.code, result.message, result.details, result.key)
    return None
