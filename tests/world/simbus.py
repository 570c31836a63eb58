"""A broker in memory with the faults of a real one: messages come late, twice and out of order; requests go unanswered.

It keeps streams with sequences, deduplicates by message id, and delivers to assemblies until they take a message.  All chance comes
from one seeded generator.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roadstead.assembly import Assembly
from roadstead.reconcile.handlers import Dead, PublishFailed
from roadstead.reconcile.views import RequestFailed
from roadstead.subjects import OWNERS


@dataclass(frozen=True)
class Stored:
    subject: str
    sequence: int
    payload: bytes
    headers: Mapping[str, str]


@dataclass
class Weather:
    """How bad the broker is; chances per message."""

    late: float = 0.0  # longest extra delay, seconds
    twice: float = 0.0
    lost_ack: float = 0.0  # stored, but the publisher is told that it failed
    unanswered: float = 0.0  # request fails before or after its effect


STREAM_OF = {
    "spec": "SPEC",
    "observed": "OBSERVED",
    "status": "STATUS",
    "decided": "HISTORY",
    "acted": "HISTORY",
    "credential": "CREDENTIAL",
    "dlq": "DLQ",
}


@dataclass
class SimBus:
    """Publisher, Out and Requests in one; `bind` an assembly to let it receive."""

    seed: int = 0
    weather: Weather = field(default_factory=Weather)
    streams: dict[str, list[Stored]] = field(default_factory=lambda: defaultdict(list))
    sequences: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    epochs: dict[str, int] = field(default_factory=lambda: defaultdict(lambda: 1))
    dead: list[tuple[str, Dead]] = field(default_factory=list)
    bound: list[Assembly] = field(default_factory=list)
    delivering: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._ids: dict[str, tuple[int, int]] = {}

    # ------------------------------------------------------------ publishing

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        await asyncio.sleep(0)
        name = STREAM_OF[subject.split(".", 1)[0]]
        ident = headers.get("Nats-Msg-Id")
        if ident is not None and ident in self._ids:
            return self._ids[ident]
        self.sequences[name] += 1
        position = (self.epochs[name], self.sequences[name])
        message = Stored(subject, position[1], payload, dict(headers))
        self.streams[name].append(message)
        if ident is not None:
            self._ids[ident] = position
        self._deliver(name, message)
        if self.random.random() < self.weather.lost_ack:
            raise PublishFailed("no acknowledgement")
        return position

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        await asyncio.sleep(0)
        mine = [m for m in self.streams[stream] if m.subject == subject]
        going = [m for m in mine if up_to == 0 or m.sequence <= up_to]
        going = going[: max(0, len(mine) - keep)] if keep else going
        ids = {m.sequence for m in going}
        self.streams[stream] = [
            m for m in self.streams[stream] if m.subject != subject or m.sequence not in ids
        ]

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        _, service, verb = subject.split(".", 2)
        answering = [a for a in self.bound if a.service.name == service]
        fate = self.random.random()
        if not answering or fate < self.weather.unanswered / 2:
            await asyncio.sleep(5.0)
            raise RequestFailed(f"nobody answered {subject}")
        chosen = self.random.choice(answering)
        try:
            reply = await chosen.api.rpc(verb, payload)
        except asyncio.CancelledError:
            if chosen in self.bound:
                raise
            await asyncio.sleep(5.0)
            raise RequestFailed(f"the service that answers {subject} was killed") from None
        if fate < self.weather.unanswered:
            await asyncio.sleep(5.0)
            raise RequestFailed(f"the answer to {subject} was lost")
        return reply

    # ------------------------------------------------------------ receiving

    def bind(self, assembly: Assembly) -> None:
        """Deliver what it follows from now on, after all that is stored (the last per subject)."""
        self.bound.append(assembly)
        newest = {m.subject: m for name in ("STATUS", "CREDENTIAL") for m in self.streams[name]}
        for message in newest.values():
            self._send(assembly, STREAM_OF[message.subject.split(".", 1)[0]], message)

    async def catch_up(self, assembly: Assembly) -> None:
        """Hand over the newest status and credential of every subject, in order, before the service works."""
        for name in ("CREDENTIAL", "STATUS"):
            newest = {m.subject: m for m in self.streams[name]}
            for message in newest.values():
                await self._handle(assembly, name, message)

    def unbind(self, assembly: Assembly) -> None:
        self.bound = [a for a in self.bound if a is not assembly]

    def _deliver(self, name: str, message: Stored) -> None:
        if name in ("SPEC", "OBSERVED"):
            self._spawn(self._to_group(name, message))
            if self.random.random() < self.weather.twice:
                self._spawn(self._to_group(name, message))
            return
        for assembly in self.bound:
            self._send(assembly, name, message)

    def _send(self, assembly: Assembly, name: str, message: Stored) -> None:
        self._spawn(self._to_one(assembly, name, message))

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.delivering.add(task)
        task.add_done_callback(self.delivering.discard)

    async def _late(self) -> None:
        if self.weather.late:
            await asyncio.sleep(self.random.random() * self.weather.late)
        else:
            await asyncio.sleep(0)

    async def _to_one(self, assembly: Assembly, name: str, message: Stored) -> None:
        await self._late()
        if assembly in self.bound:
            await self._handle(assembly, name, message)

    async def _to_group(self, name: str, message: Stored) -> None:
        """Until one member of the owner's group has taken it, as an unacknowledged message is delivered again."""
        owner = OWNERS.get(message.subject.split(".")[3]) if message.subject.count(".") == 4 else None
        for _ in range(200):
            await self._late()
            members = [a for a in self.bound if a.service.name == owner]
            if members and await self._handle(self.random.choice(members), name, message):
                return
            await asyncio.sleep(1.0)

    async def _handle(self, assembly: Assembly, name: str, message: Stored) -> bool:
        """Whether it was taken; what the handler raises is a redelivery, as on the real bus."""
        handlers = assembly.handlers
        try:
            if name == "SPEC":
                position = (self.epochs[name], message.sequence)
                result = await handlers.spec(message.subject, message.payload, position, message.headers)
                if isinstance(result, Dead):
                    self.dead.append((message.subject, result))
            elif name == "OBSERVED":
                seen = await handlers.observed(message.subject, message.payload, message.headers)
                if isinstance(seen, Dead):
                    self.dead.append((message.subject, seen))
            elif name == "STATUS" and message.subject.split(".")[3] in assembly.service.follows:
                await handlers.status(message.subject, message.payload)
            elif name == "CREDENTIAL":
                await handlers.credential(message.subject, message.payload)
        except ConnectionError:
            return False
        except asyncio.CancelledError:
            if assembly in self.bound:
                raise
            return False  # the receiver was killed while it worked; the message is delivered again
        return True
