"""Who tells the Region's owner that its cloud gives no answer, how often, and when not."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from roadstead.reconcile.outages import LOOK, Outages
from roadstead.reconcile.views import Directory, RequestFailed
from roadstead.testing.passbench import view

REGION = "11111111-1111-4111-8111-111111111111"


class Turns:
    """A clock whose sleeps end when the test says so."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.ask = asyncio.Event()
        self.go = asyncio.Event()

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.ask.set()
        await self.go.wait()
        self.go.clear()
        self.passed += seconds


class Owner:
    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.silent = False

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.silent:
            raise RequestFailed("nobody answers")
        self.asked.append((subject, payload))
        return {"ok": True}


class Bench:
    def __init__(self) -> None:
        self.clock, self.owner, self.directory = Turns(), Owner(), Directory()
        clock: Any = self.clock
        self.outages = Outages(self.owner, self.directory, clock, every=60, again=10)
        self.task = asyncio.create_task(self.outages.run())

    async def turn(self) -> int:
        """Until the next sleep; how many hints were given so far."""
        self.clock.go.set()
        async with asyncio.timeout(2):
            await self.clock.ask.wait()
        self.clock.ask.clear()
        return len(self.owner.asked)

    async def opens(self) -> int:
        self.outages.moved(REGION, True)
        async with asyncio.timeout(2):
            await self.clock.ask.wait()
        self.clock.ask.clear()
        return len(self.owner.asked)

    def region_says(self, state: str, version: int) -> None:
        status = {"conditions": [{"type": "CloudReachable", "status": state}]}
        self.directory.put(view("region", REGION, REGION, "_", status=status, resource_version=version))


@pytest.fixture
async def bench() -> Any:
    made = Bench()
    yield made
    made.task.cancel()


async def test_an_opening_is_told_once_and_again_only_after_a_period(bench: Bench) -> None:
    assert await bench.opens() == 1
    assert bench.owner.asked == [(LOOK, {"region": REGION})]
    assert [await bench.turn() for _ in range(6)] == [1, 1, 1, 1, 1, 2]


async def test_what_the_region_says_already_is_not_told(bench: Bench) -> None:
    bench.region_says("False", 1)
    assert await bench.opens() == 0
    bench.region_says("True", 2)
    assert await bench.turn() == 1


async def test_a_hint_that_nobody_took_is_given_again(bench: Bench) -> None:
    bench.owner.silent = True
    assert await bench.opens() == 0
    bench.owner.silent = False
    assert await bench.turn() == 1


async def test_nothing_is_told_once_the_cloud_answers_again(bench: Bench) -> None:
    bench.owner.silent = True
    await bench.opens()
    bench.owner.silent = False
    bench.outages.moved(REGION, False)
    bench.clock.go.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert bench.owner.asked == []
    assert not bench.clock.ask.is_set(), "idle while every cloud answers"
