"""A service of one kind on a real broker, with the store in memory; passes do not run."""

import asyncio
import itertools
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import nats
import pytest
import structlog
from nats.aio.client import Client

from roadstead.assembly import Assembly, Platform, Service, assemble
from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.tasks import end_all
from roadstead.clock import SystemClock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Answer, Call
from roadstead.reconcile.relay import Relay
from roadstead.seal import Sealer, new_key
from roadstead.service_app import Answers, make_app
from roadstead.service_streams import Streams
from roadstead.store.memory import MemoryStore

from ..reconcile.toy import KIND

REGION = "11111111-1111-4111-8111-111111111111"
PROJECT = "project-a"
SERVICE = Service("volumes", kinds=(KIND,), follows=("network",))
SEAL_KEY = new_key()


class NoCloud:
    """A cloud that nobody may ask."""

    async def call(self, call: Call) -> Answer:
        raise AssertionError(f"the cloud was asked for {call.verb}")


def subject_of(ident: str, *, kind: str = "volume", head: str = "spec") -> str:
    return f"{head}.{REGION}.{PROJECT}.{kind}.{ident}"


def spec_body(colour: str = "red", **metadata: Any) -> bytes:
    return json.dumps(
        {"metadata": {"name": "tin", "organizationId": "org", **metadata}, "spec": {"colour": colour}}
    ).encode()


_numbers = itertools.count(1)


def new_id() -> str:
    """An id that nothing else in this run has; the same in every run, so that the names of tests are too."""
    return str(uuid.UUID(int=next(_numbers), version=4))


async def eventually(
    check: Callable[[], Awaitable[Any]] | Callable[[], Any], *, seconds: float = 15.0, what: str = ""
) -> Any:
    """The first true value of the check; fails the test when there is none in time."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    while True:
        value = check()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        if loop.time() > ends:
            pytest.fail(f"not within {seconds:g} s: {what or check}")
        await asyncio.sleep(0.02)


class Rig:
    """One replica of the toy service, without passes."""

    def __init__(
        self, url: str, *, store: MemoryStore | None = None, service: Service = SERVICE, **options: Any
    ) -> None:
        self.service = service
        self.store = store or MemoryStore(SystemClock())
        given: dict[str, Any] = {
            "inbox_prefix": f"_INBOX_{service.name}",
            "publish_patience": 15.0,
            **options,
        }
        self.bus = Bus(BusOptions((url,), f"test-{service.name}", **given))
        self.assembly: Assembly = assemble(
            service,
            Platform(
                store=self.store,
                cloud=NoCloud(),
                broker=self.bus,
                keyring=Keyring(),
                sealer=Sealer([SEAL_KEY]),
                clock=SystemClock(),
            ),
        )
        self.relay: Relay = self.assembly.relay
        self.streams = Streams(self.assembly, self.bus, in_hand=64, start=self._started)
        self._tasks: list[asyncio.Task[None]] = []

    async def _started(self) -> None:
        await self.bus.broker.start()
        self._tasks.append(asyncio.create_task(self.relay.run()))

    async def start(self, *, ready: bool = True) -> None:
        await self.bus.connect()
        make_app(
            self.service,
            broker=self.bus.broker,
            answer=Answers(self.assembly, self.bus),
            more=tuple(self.assembly.api.more),
        )
        self._tasks.append(asyncio.create_task(self.streams.run()))
        if ready:
            await self.ready()

    async def ready(self) -> None:
        async def is_ready() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return await self.streams.fault() is None and self.bus.is_settled

        await eventually(is_ready, what="the service is ready")

    async def stop(self) -> None:
        await end_all(self._tasks)
        await self.bus.close()

    async def row(self, ident: str) -> Any:
        return await self.store.get("volume", ident)

    async def colour(self, ident: str) -> str | None:
        row = await self.row(ident)
        return None if row is None else row.spec.get("colour")

    @property
    def epochs(self) -> Any:
        return self.streams._epochs["SPEC"]


@asynccontextmanager
async def client_of(url: str, **options: Any) -> AsyncIterator[Client]:
    """A plain client, as a person at a terminal has."""
    client = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, **options)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Tracebacks without local variables: drawing those takes longer than a test may wait."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )
    yield
    structlog.reset_defaults()


@pytest.fixture
async def rig(nats_url: str) -> AsyncIterator[Rig]:
    rig = Rig(nats_url)
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
async def person(nats_url: str) -> AsyncIterator[Client]:
    async with client_of(nats_url) as client:
        yield client


async def dead_letters(
    client: Client, service: str = "volumes"
) -> list[tuple[str, Mapping[str, str], bytes]]:
    """Everything in the dead letter stream of a service: subject, headers, body."""
    js = client.jetstream()
    info = await js.stream_info("DLQ")
    found: list[tuple[str, Mapping[str, str], bytes]] = []
    for sequence in range(info.state.first_seq or 1, (info.state.last_seq or 0) + 1):
        message = await js.get_msg("DLQ", seq=sequence)
        if str(message.subject).startswith(f"dlq.{service}."):
            found.append((str(message.subject), dict(message.headers or {}), message.data or b""))
    return found


async def messages_of(client: Client, stream: str, subject: str) -> list[dict[str, Any]]:
    """All messages of one subject, oldest first."""
    subscription = await client.jetstream().pull_subscribe(subject, stream=stream)
    found = []
    try:
        while True:
            for message in await subscription.fetch(50, timeout=0.3):
                found.append(json.loads(message.data))
                await message.ack()
    except (TimeoutError, nats.errors.TimeoutError):
        return found
