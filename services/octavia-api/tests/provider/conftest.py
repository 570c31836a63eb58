"""A migrated database, a broker, and the provider side and the noop provider on them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.tasks import end_all
from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer
from roadstead_octavia.call import _now
from roadstead_octavia.db.port import Change, Insert, Operation, Row, Touched, Tree, Write
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.options import Options
from roadstead_octavia.outside.network import NetworkRefused
from roadstead_octavia.provider.noop.driver import Manner
from roadstead_octavia.provider.noop.process import NoopProvider
from roadstead_octavia.provider.side import ProviderSide

from .trees import IDS, LB

OPTIONS = Options()


@pytest.fixture(scope="session")
def database_template(postgres_server: PostgresServer) -> str:
    """A database that was migrated once; each test gets a copy."""
    name = f"octavia_provider_template_{os.getpid()}"
    url = postgres_server.create_database(name)
    asyncio.run(migrate(url, ["octavia"]))
    return name


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[PostgresDatabase]:
    opened = PostgresDatabase(database_url, patience=2.0)
    await opened.open()
    yield opened
    await opened.close()


class NoNetwork:
    """Neutron: ports that were removed, and whether removing them fails."""

    def __init__(self) -> None:
        self.removed: list[tuple[str, str | None]] = []
        self.refuses = 0

    async def remove_vip_port(self, load_balancer_id: str, port_id: str | None) -> None:
        if self.refuses:
            self.refuses -= 1
            raise NetworkRefused(None, "the port is in use")
        self.removed.append((load_balancer_id, port_id))


class Clock:
    """Now, and how far a test has turned it on."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        return _now() + self._ahead

    def on(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)


class Rig:
    """One replica of the provider side."""

    def __init__(self, url: str, database: PostgresDatabase, **options: Any) -> None:
        self.database = database
        self.network = NoNetwork()
        self.clock = Clock()
        seed = options.pop("nkey_seed", None)
        bus = BusOptions((url,), "test-octavia", inbox_prefix="_INBOX_octavia-api", nkey_seed=seed)
        self.bus = Bus(bus)
        self.side = ProviderSide(
            self.bus,
            database,
            self.network,  # type: ignore[arg-type]  # of Neutron only the removal is needed here
            OPTIONS,
            now=self.clock,
            watch_every=options.pop("watch_every", 3600.0),
            **options,
        )
        self._tasks: list[asyncio.Task[Any]] = []

    async def start(self) -> None:
        await self.bus.connect()
        self._tasks.append(asyncio.create_task(self.side.run()))
        await asyncio.wait_for(self.side.bound.wait(), 20)

    async def stop(self) -> None:
        await end_all(self._tasks)
        await self.bus.close()

    async def commit(self, change: Change) -> Tree:
        """As an operation does it: commit and hand over."""
        tree = None if change.version is None else await self.database.tree(change.load_balancer_id)
        after = self.database.after(tree, change)
        revision = await self.database.commit(change, OPTIONS)
        if change.operation is not None:
            self.side.dispatch(change.operation, after, revision)
        return after

    async def operation(self, identifier: str) -> Row:
        row = await self.database.row("operation", {"id": identifier})
        assert row is not None
        return row

    async def statuses(self, load_balancer_id: str = LB) -> dict[str, str]:
        """Table -> provisioning status of its only row."""
        tree = await self.database.tree(load_balancer_id)
        assert tree is not None
        return {table: tree.of(table)[0]["provisioning_status"] for table in IDS if tree.of(table)}


def inserted(tree: Tree, operation: Operation | None = None, **given: Any) -> Change:
    """The change that makes the whole tree."""
    order = [*tree.rows]
    order.remove("pool")
    order.insert(order.index("listener"), "pool")
    writes: list[Write] = [Insert(table, row) for table in order for row in tree.rows[table]]
    return Change(tree.load_balancer["id"], None, tuple(writes), operation=operation, **given)


def operation(
    method: str, tables: Sequence[str], *, done: str = "ACTIVE", failed: str = "ERROR", **given: Any
) -> Operation:
    noun, _, verb = method.rpartition("_")
    touched = tuple(Touched(table, IDS[table], done, failed) for table in tables)
    return Operation(str(uuid4()), given.pop("provider", "noop"), method, noun, verb, touched, **given)


async def eventually(check: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Wait until it holds; the value that held."""
    ends = asyncio.get_running_loop().time() + seconds
    while True:
        value = check()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        if asyncio.get_running_loop().time() > ends:
            pytest.fail(f"not within {seconds:g} s")
        await asyncio.sleep(0.01)


@pytest.fixture
async def rig(nats_url: str, database: PostgresDatabase) -> AsyncIterator[Rig]:
    rig = Rig(nats_url, database)
    await rig.start()
    yield rig
    await rig.stop()


@asynccontextmanager
async def provider_of(
    url: str, name: str = "noop", manner: Manner | None = None
) -> AsyncIterator[NoopProvider]:
    """A replica of the noop provider at work."""
    bus = Bus(BusOptions((url,), f"test-{name}", inbox_prefix=f"_INBOX_provider-{name}"))
    await bus.connect()
    provider = NoopProvider(bus, name, manner)
    task = asyncio.create_task(provider.run())
    try:
        await asyncio.wait_for(provider.bound.wait(), 20)
        yield provider
    finally:
        await end_all([task])
        await bus.close()
