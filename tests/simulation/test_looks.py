"""Looks between two sweeps: how soon a server is shown to run, and what it costs."""

import asyncio
from typing import Any

import pytest
from tests.simulation.cases import region_section
from tests.simulation.test_server import network_of, server_in
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key
from roadstead_monitor.looks import LOOKS


def active(world: SimWorld, key: Key) -> str | None:
    document: dict[str, Any] = world.status(key) or {}
    conditions = document.get("status", {}).get("conditions", ())
    return next((c["reason"] for c in conditions if c["type"] == "Active"), None)


async def until_running(world: SimWorld, key: Key) -> float:
    """Seconds from now until the status says that the server runs; at most two minutes."""
    began = world.clock.monotonic()
    for _ in range(1200):
        if active(world, key) == "Running":
            return world.clock.monotonic() - began
        await asyncio.sleep(0.1)
    raise AssertionError("two minutes, and the status does not say that it runs")


def monitor_lists(world: SimWorld, since: int) -> list[Any]:
    """Detailed lists of servers without a name to narrow them: the monitor alone asks so."""
    calls = world.cloud.log.calls(since=since, service="compute", method="GET", path=r"/servers/detail$")
    return [c for c in calls if c.user_name != "admin" and not any(k == "name" for k, _ in c.query)]


@pytest.mark.parametrize("boot", [2.0, 20.0])
def test_inv_122_inv_231_a_server_is_shown_running_soon_after_it_is_provisioned(boot: float) -> None:
    """GIVEN servers that boot before and after their pass is done WHEN they run
    THEN the status says so long before the next sweep, at the cost of a few lists for all of them."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=122) as world:
            world.cloud.settings.durations.server_spawn = boot
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            await world.until(network, "provisioned")
            monitor = next(r.assembly for r in world.replicas if r.service.name == "monitor")
            assert monitor is not None
            sweeps = monitor.extras["watch"]
            await asyncio.sleep(60 - world.clock.monotonic() % 60 + 1)  # a sweep has just been
            swept, mark = sweeps.last, world.cloud.sequence + 1
            keys = [await server_in(world, network, f"web-{n}") for n in range(8)]
            for key in keys:
                await world.until(key, "provisioned")
            took = [await until_running(world, key) for key in keys]
            assert sweeps.last is swept, "no sweep came in between"
            assert max(took) <= 1.5 * (boot + 1) + 1, took
            assert len(monitor_lists(world, mark)) <= LOOKS, "one list for all"
            mark = world.cloud.sequence + 1
            await asyncio.sleep(600)
            assert len(monitor_lists(world, mark)) <= 10, "who runs asks for no looks"

    run_virtual(scenario())
