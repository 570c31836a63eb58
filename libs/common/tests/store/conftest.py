"""Both stores behind one fixture.  Times that tests give are those of a hand clock, in either store."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from roadstead.store.api import Store
from roadstead.store.memory import MemoryStore
from roadstead.store.migrate import migrate
from roadstead.store.postgres import PostgresStore, session
from roadstead.testing.servers import PostgresServer


class HandClock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.moment = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def forward(self, seconds: float) -> datetime:
        self.moment += timedelta(seconds=seconds)
        return self.moment


@dataclass
class Bench:
    """A store, a second replica of it on the same rows, and their common clock."""

    store: Store
    replica: Store
    clock: HandClock


SCHEMA = "store"


@pytest.fixture(scope="session")
def database_template(postgres_server: PostgresServer) -> str:
    """A database that was migrated once; each test gets a copy."""
    name = f"store_template_{os.getpid()}"
    url = postgres_server.create_database(name)
    asyncio.run(migrate(url, [SCHEMA]))
    return name


@pytest.fixture(scope="session")
def contract_database(postgres_server: PostgresServer, database_template: str) -> str:
    """Address of one database for the whole contract suite; each test empties its tables."""
    return postgres_server.create_database(f"store_contract_{os.getpid()}", template=database_template)


async def empty(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    tables = ("work", "resource", "outbox", "history", "document")
    await connection.execute("; ".join(f"DELETE FROM {SCHEMA}.{table}" for table in tables))
    await connection.close()


def inject_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sixth statement or so fails before it is sent, as after a deadlock, a serialisation failure or a lost connection."""
    dice = random.Random(11)
    errors = (
        asyncpg.DeadlockDetectedError("injected"),
        asyncpg.SerializationError("injected"),
        asyncpg.InterfaceError("connection is closed"),
        ConnectionResetError("injected"),
    )

    def faulty(original: Any) -> Any:
        async def run(link: session.Link, statement: str, *arguments: Any) -> Any:
            if dice.random() < 0.16:
                raise dice.choice(errors)
            return await original(link, statement, *arguments)

        return run

    for name in ("fetch", "fetchrow", "fetchval", "execute"):
        monkeypatch.setattr(session.Link, name, faulty(getattr(session.Link, name)))
    monkeypatch.setattr(session, "LONGEST_PAUSE", 0.002)


STORES = (
    "memory",
    pytest.param("postgres", marks=pytest.mark.integration),
    pytest.param("faulty-postgres", marks=pytest.mark.integration),
)


@pytest.fixture(params=STORES)
def bench(request: pytest.FixtureRequest) -> Bench:
    """A store and a replica, not open."""
    clock = HandClock()
    if request.param == "memory":
        store = MemoryStore(clock)
        return Bench(store, store.reopened(), clock)
    url = request.getfixturevalue("contract_database")
    asyncio.run(empty(url))
    if request.param == "faulty-postgres":
        inject_faults(request.getfixturevalue("monkeypatch"))
    return Bench(
        PostgresStore(url, SCHEMA, now=clock.now),
        PostgresStore(url, SCHEMA, now=clock.now, pool_size=3),
        clock,
    )


@pytest.fixture
async def opened(bench: Bench) -> AsyncIterator[Bench]:
    """Both stores, open."""
    await bench.store.open()
    await bench.replica.open()
    yield bench
    await bench.replica.close()
    await bench.store.close()


@pytest.fixture
def store(opened: Bench) -> Store:
    return opened.store


@pytest.fixture
def replica(opened: Bench) -> Store:
    return opened.replica


@pytest.fixture
def clock(opened: Bench) -> HandClock:
    return opened.clock


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[PostgresStore]:
    """PostgreSQL on its own clock."""
    store = PostgresStore(database_url, SCHEMA)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def foreign(database_url: str) -> AsyncIterator[Any]:
    """Somebody else's connection to the same database."""
    connection = await asyncpg.connect(database_url, timeout=10)
    yield connection
    await connection.close(timeout=5)
