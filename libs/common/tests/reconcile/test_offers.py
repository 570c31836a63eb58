"""Parks for what a region offers end when it offers something else, and only then."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from roadstead.reconcile.decision import Code
from roadstead.reconcile.offers import Offers, digest
from roadstead.reconcile.views import Directory
from roadstead.store.api import Change, Row, Work
from roadstead.store.memory import MemoryStore
from roadstead.subjects import Key
from roadstead.testing.passbench import StandingClock, view

from .toy import KIND, PROJECT, REGION

ELSEWHERE = "33333333-3333-4333-8333-333333333333"


class Shop:
    """Offers over a store in memory; `paints` is what the region has to say of each colour, None while it is not known."""

    def __init__(self, store: Any = None) -> None:
        self.clock = StandingClock()
        self.store = store or MemoryStore(self.clock)
        self.directory = Directory()
        self.extras: dict[str, Any] = {"paints": {"red": 1}}
        kind = replace(KIND, judged=judged, judged_codes=frozenset({Code.NOT_OFFERED}))
        self.kind = kind
        self.offers = Offers((kind,), self.store, self.directory, self.clock, self.extras, every=3600)
        self.nudges = 0
        self.offers.nudge = self.nudged
        self.region(1)

    def nudged(self) -> None:
        self.nudges += 1

    def region(self, generation: int, **spec: Any) -> None:
        found = view(
            "region", REGION, REGION, "_", spec={"provider": "x", **spec}, resource_version=generation
        )
        moved = replace(found, generation=generation)
        self.directory.put(moved)
        self.offers.region_moved(moved)

    async def parked(self, number: int, colour: str = "red", by: Any = 1, **more: Any) -> Row:
        """A row that was judged by that."""
        key = Key(more.pop("region", REGION), PROJECT, "volume", f"{number:08}-0000-4000-8000-000000000000")
        status = {"code": "NOT_OFFERED", "judgedBy": digest(by), **more.pop("status", {})}
        spec = {"colour": colour}
        row = Row(key, key.id, {"name": "n"}, spec, 1, 1, 1, 1, status=status, **more)
        await self.store.change(key, lambda _row, _now: Change(row))
        return row

    async def due(self) -> list[int]:
        rows = [r for r in self.store._held.rows.values() if r.work.due_at is not None]
        return sorted(int(r.key.id[:8]) for r in rows)


def judged(resource: Any, _region: Any, extras: Any) -> Any:
    paints = extras["paints"]
    return None if paints is None else paints.get(resource.spec.colour, "none")


async def test_only_rows_that_were_judged_by_something_else_are_woken() -> None:
    shop = Shop()
    await shop.parked(1, by=1)
    await shop.parked(2, by="none")
    await shop.parked(3, "blue", by="none")
    await shop.parked(4, by=7, status={"code": "VOLUME_ERRORED"})
    await shop.parked(5, by=7, region=ELSEWHERE)
    await shop.parked(6, by=7, deleting=True)
    assert await shop.offers.look(REGION) == 1
    assert (await shop.due(), shop.nudges) == ([2], 1)
    shop.extras["paints"] = {"red": 1, "blue": 2}
    assert await shop.offers.look(REGION) == 1
    assert await shop.due() == [2, 3]


async def test_a_restart_makes_nothing_due_that_was_judged_by_the_same() -> None:
    first = Shop()
    await first.parked(1, by=1)
    again = Shop(first.store)
    assert await again.offers.look(REGION) == 0
    assert await again.due() == []


async def test_while_nothing_is_known_nothing_is_concluded() -> None:
    shop = Shop()
    await shop.parked(1, by="none")
    shop.extras["paints"] = None
    assert await shop.offers.look(REGION) == 0
    held = shop.directory.get("region", REGION)
    assert held is not None
    shop.directory.put(replace(held, gone=True, resource_version=9))
    shop.extras["paints"] = {"red": 1}
    assert await shop.offers.look(REGION) == 0


async def test_many_parked_rows_are_looked_through_a_page_at_a_time() -> None:
    shop = Shop()
    for number in range(1, 451):
        await shop.parked(number, by=number % 2)
    assert await shop.offers.look(REGION) == 225
    assert await shop.due() == list(range(2, 451, 2))


async def until(condition: Any) -> None:
    for _ in range(1000):
        if await condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come")


@pytest.fixture
async def shop() -> Any:
    made = Shop()
    job = asyncio.create_task(made.offers.run())
    yield made
    job.cancel()


async def test_a_new_spec_of_the_region_is_looked_at_and_a_repeated_status_is_not(shop: Shop) -> None:
    await until(lambda: asyncio.sleep(0, not shop.offers._pending))
    await shop.parked(1, by="none")
    shop.region(1, repeated=True)
    for _ in range(50):
        await asyncio.sleep(0)
    assert await shop.due() == []
    shop.region(2)
    await until(lambda: asyncio.sleep(0, shop.nudges == 1))
    assert await shop.due() == [1]


async def test_a_park_that_was_judged_by_what_changed_meanwhile_is_woken(shop: Shop) -> None:
    """The look through the rows came before the park was written."""
    await until(lambda: asyncio.sleep(0, not shop.offers._pending))
    row = await shop.parked(1, by="none")
    shop.offers.parked(shop.kind, row)
    await until(lambda: asyncio.sleep(0, shop.nudges == 1))
    assert await shop.due() == [1]
    fine = await shop.parked(2, by=1)
    shop.offers.parked(shop.kind, fine)
    assert not shop.offers._pending


async def test_a_store_that_fails_costs_no_wake(shop: Shop) -> None:
    await until(lambda: asyncio.sleep(0, not shop.offers._pending))
    await shop.parked(1, by="none")
    list_ = shop.store.list
    failures = 2

    async def failing(query: Any) -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise ConnectionError("the store is away")
        return await list_(query)

    shop.store.list = failing  # type: ignore[method-assign]  # a store that is away
    shop.offers.stir(REGION)
    await until(lambda: asyncio.sleep(0, shop.nudges == 1))
    assert await shop.due() == [1]


async def test_a_row_that_is_due_anyway_is_left_alone() -> None:
    shop = Shop()
    row = await shop.parked(1, by="none", work=Work(due_at=shop.clock.now()))
    assert await shop.offers.look(REGION) == 0
    shop.offers._pending.clear()  # the region's first word
    shop.offers.parked(shop.kind, row)
    assert not shop.offers._pending
