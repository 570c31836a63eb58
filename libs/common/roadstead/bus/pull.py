"""Messages of one pull consumer as they come, over one connection.

A request for as many messages as there is room for stands at the server all the time, so that a message travels the moment it is
stored; the room is what bounds memory.  Heartbeats tell a quiet stream from a request that was lost.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from roadstead.bus.failures import ConsumerGone
from roadstead.events import dump

log = structlog.get_logger("roadstead.bus")

HEARTBEAT = 2.0
EXPIRES = 20.0
SILENCE = 2.5 * HEARTBEAT
_NANO = 1_000_000_000
_GONE = ("consumer deleted", "consumer is push based")


@dataclass(frozen=True)
class Delivery:
    """One message as a consumer hands it over.  time: microseconds since 1970, when the stream stored it."""

    subject: str
    data: bytes
    headers: dict[str, str]
    stream: str
    sequence: int
    consumer_sequence: int
    delivered: int
    pending: int
    time: int
    raw: Msg = field(repr=False)


def delivery_of(message: Msg) -> Delivery:
    """Read what the reply subject says of a message.  ValueError when it is no JetStream message."""
    tokens = message.reply.split(".")
    if (
        len(tokens) == 9
    ):  # $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<consumer sequence>.<time>.<pending>
        stream, numbers = tokens[2], tokens[4:9]
    elif len(tokens) >= 11:  # the same after <domain>.<account>
        stream, numbers = tokens[4], tokens[6:11]
    else:
        raise ValueError("not a message of a stream")
    delivered, sequence, consumer_sequence, nanos, pending = (int(n) for n in numbers)
    return Delivery(
        message.subject, message.data, dict(message.headers or {}), stream, sequence, consumer_sequence,
        delivered, pending, nanos // 1000, message,
    )  # fmt: skip


class Room:
    """How many messages may be in hand; several connections of a consumer share one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._changed = asyncio.Event()
        self._changed.set()

    @property
    def free(self) -> int:
        return max(0, self.size - self.taken)

    def take(self) -> None:
        self.taken += 1

    def give(self) -> None:
        self.taken -= 1
        self._changed.set()

    async def some(self) -> int:
        """The room there is, once there is any."""
        while self.free == 0:
            self._changed.clear()
            await self._changed.wait()
        return self.free

    async def empty(self) -> None:
        """Return when nothing is in hand."""
        while self.taken > 0:
            self._changed.clear()
            await self._changed.wait()


class Pull:
    """Reads one consumer until cancelled.

    arrived is called for each message in order; while it is awaited later ones wait, so it only takes them over or handles them
    quickly.  It must not raise.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        consumer: str,
        room: Room,
        arrived: Callable[[Delivery], Awaitable[None]],
    ) -> None:
        self._client = client
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._consumer = consumer
        self._room = room
        self._arrived = arrived
        self._outstanding = 0
        self._spent = asyncio.Event()
        self._heard = 0.0
        self._gone: str | None = None

    async def run(self) -> None:
        """ConsumerGone when the server has no such consumer."""
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox, cb=self._on_message)
        try:
            while True:
                batch = await self._room.some()
                await self._ask(batch, inbox)
                await self._until_spent()
                if self._gone is not None:
                    raise ConsumerGone(f"{self._consumer}: {self._gone}")
        finally:
            if not self._client.is_closed and not self._client.is_reconnecting:
                await subscription.unsubscribe()

    async def _ask(self, batch: int, inbox: str) -> None:
        self._outstanding = batch
        self._spent.clear()
        self._heard = time.monotonic()
        wanted = {"batch": batch, "expires": int(EXPIRES * _NANO), "idle_heartbeat": int(HEARTBEAT * _NANO)}
        await self._client.publish(self._next, dump(wanted), reply=inbox)

    async def _until_spent(self) -> None:
        """The request brought all its messages, ended, or was lost."""
        while not self._spent.is_set():
            silent = time.monotonic() - self._heard
            if silent > SILENCE:
                log.warning("no heartbeat; asking again", consumer=self._consumer)
                return
            try:
                async with asyncio.timeout(SILENCE - silent + 0.05):
                    await self._spent.wait()
            except TimeoutError:
                continue

    async def _on_message(self, message: Msg) -> None:
        self._heard = time.monotonic()
        status = (message.headers or {}).get("Status") if not message.data else None
        if status is not None and not message.reply.startswith("$JS.ACK."):
            self._on_status(status, (message.headers or {}).get("Description", ""))
            return
        try:
            delivery = delivery_of(message)
        except ValueError:
            log.warning("not a message of a stream", subject=message.subject)
            return
        self._outstanding -= 1
        if self._outstanding <= 0:
            self._spent.set()
        self._room.take()
        await self._arrived(delivery)

    def _on_status(self, status: str, description: str) -> None:
        if status == "100":
            return
        if status == "503" or description.lower() in _GONE:
            self._gone = description or "nobody answers for it"
        elif status not in ("404", "408", "409"):
            log.warning("pull request ended", consumer=self._consumer, status=status, reason=description)
        self._spent.set()
