"""Both stores behind one fixture.  Times that tests give are those of a hand clock, in either store."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from roadstead.store.api import Store
from roadstead.store.memory import MemoryStore
from roadstead.store.migrate import migrate
from roadstead.store.postgres import PostgresStore
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


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Both stores, not open."""
    clock = HandClock()
    if request.param == "memory":
        store = MemoryStore(clock)
        return Bench(store, store.reopened(), clock)
    url = request.getfixturevalue("database_url")
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
