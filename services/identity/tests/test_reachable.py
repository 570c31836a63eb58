"""A cloud that gives no answer is a condition on its Region, and stops being one when it answers (architecture.md section 6)."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from services.identity.tests.test_region import GOOD, KEY, resource
from services.identity.tests.world import World

from roadstead.events import dump
from roadstead.reconcile.decision import Code, Done, Retry
from roadstead.reconcile.status import conditions_of
from roadstead.store.api import Row
from roadstead.testing.passbench import PassBench
from roadstead_identity.region.decide import decide
from roadstead_identity.region.model import RegionSeen
from roadstead_identity.requests import doubt

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reachable(bench: PassBench) -> tuple[str, str]:
    """(status, since) of the condition."""
    found = conditions_of(bench.status)["CloudReachable"]
    return found["status"], found["lastTransitionTime"]


async def settled(world: World) -> PassBench:
    bench = world.region_bench()
    assert (await bench.run()).outcome == Done()
    world.cloud.log.clear()
    return bench


@pytest.mark.parametrize("service", ["network", "volume", "image", "load-balancer"])
async def test_one_silent_service_is_told_once_asked_again_and_taken_back(world: World, service: str) -> None:
    bench = await settled(world)
    assert reachable(bench)[0] == "True"
    bench.status["doubted"] = "2026-01-01T00:00:00.000Z"
    fault = world.fail("no_answer_before", service=service, times=None)
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.UNAVAILABLE
    state, since = reachable(bench)
    assert state == "False"
    before = dump(bench.status)
    for _ in range(5):  # past the point where the circuit opens and nothing is asked any more
        world.clock.advance(10)
        await bench.run()
    assert dump(bench.status) == before, "nothing is written while nothing moves"
    assert reachable(bench) == ("False", since)
    world.cloud.faults.remove(fault.id)
    world.clock.advance(20)
    await bench.run()
    world.clock.advance(20)
    assert (await bench.run()).outcome == Done()
    assert reachable(bench)[0] == "True"
    assert "doubted" not in bench.status


async def test_the_look_costs_four_requests_more_while_there_is_doubt_and_none_afterwards(
    world: World,
) -> None:
    bench = await settled(world)
    bench.status["doubted"] = "2026-01-01T00:00:00.000Z"
    await bench.run()
    assert len(world.calls()) == 6
    world.cloud.log.clear()
    await bench.run()
    assert len(world.calls()) == 2


async def test_a_silent_keystone_is_seen_without_anybodys_doubt(world: World) -> None:
    bench = await settled(world)
    world.fail("no_answer_before", service="identity", times=None)
    await bench.run()
    assert reachable(bench)[0] == "False"


async def test_an_answer_with_an_error_is_an_answer(world: World) -> None:
    bench = await settled(world)
    silence = world.fail("no_answer_before", service="identity", times=None)
    await bench.run()
    assert reachable(bench)[0] == "False"
    world.cloud.faults.remove(silence.id)
    world.fail("status", service="identity", path="/roles$", status=403, times=None)
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.FORBIDDEN
    assert reachable(bench)[0] == "True"


async def test_a_service_that_the_cloud_lacks_is_not_silent(world: World) -> None:
    world.cloud.services = tuple(s for s in world.cloud.services if s.name != "load-balancer")
    bench = world.region_bench()
    bench.status["doubted"] = "2026-01-01T00:00:00.000Z"
    assert (await bench.run()).outcome == Done()


def test_nothing_is_said_of_a_cloud_that_was_not_asked() -> None:
    for seen in (RegionSeen(), RegionSeen(missing=("password",)), RegionSeen(held=True)):
        assert "CloudReachable" not in decide(resource(), seen, NOW).status
    refused = decide(resource(), replace(GOOD, roles=frozenset({"member"})), NOW)
    assert refused.status["CloudReachable"]["status"] == "True"


# ---------------------------------------------------------------- the hint


def region_row(**status: Any) -> Row:
    return Row(KEY, "", {"name": "north"}, {}, 1, 1, 1, 1, status=status)


def test_a_hint_makes_the_region_due_and_a_second_one_writes_nothing() -> None:
    first = doubt(region_row(), NOW)
    assert first.row is not None
    assert first.row.work.due_at == NOW
    assert first.row.status["doubted"] == "2026-01-01T00:00:00.000Z"
    assert list(first.outgoing) == []
    again = doubt(first.row, NOW)
    assert (again.row, again.result) == (None, {"ok": True})


def test_a_doubted_region_with_nothing_due_is_woken_again() -> None:
    assert doubt(region_row(doubted="2026-01-01T00:00:00.000Z"), NOW).row is not None


@pytest.mark.parametrize(
    "row", [None, replace(region_row(), gone_at=NOW), replace(region_row(), generation=0)]
)
def test_a_hint_about_no_region_of_ours_is_refused(row: Row | None) -> None:
    change = doubt(row, NOW)
    assert change.row is None
    assert change.result["error"]["code"] == "NOT_FOUND"
