"""Both stores behind one fixture.  Times that tests give are those of a hand clock, in either store."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roadstead.store.api import Store
from roadstead.store.memory import MemoryStore


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


@pytest.fixture(params=["memory"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    clock = HandClock()
    store = MemoryStore(clock)
    yield Bench(store, store.reopened(), clock)


@pytest.fixture
def store(bench: Bench) -> Any:
    return bench.store
