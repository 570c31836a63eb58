"""Messages late, twice, out of order, and work that takes longer than the broker waits (OC-36, OC-37, OC-38)."""

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest
from tests.simulation.cases import fault, posts
from tests.simulation.test_oc_credentials import writes
from tests.simulation.test_oc_leaks import active, until_active
from tests.simulation.test_server import network_of, server_in
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.simbus import Weather
from tests.world.virtual import run_virtual

from roadstead.clock import iso
from roadstead.events import dump
from roadstead.subjects import Key, observed_subject, spec_subject

LOST = {"present": False}
BROKEN = {
    "present": True, "novaStatus": "ERROR", "taskState": None, "powerState": 0, "launchedAt": None, "image": None,
}  # fmt: skip


async def settled(world: SimWorld) -> Key:
    network, _ = await network_of(world)
    server = await server_in(world, network, "web-1")
    await world.until(server, "provisioned")
    await until_active(world, server, "Running")
    await world.quiet()
    return server


async def observe(world: SimWorld, key: Key, facts: dict[str, Any], seconds_ago: float) -> None:
    """What a monitor says whose read began that long ago."""
    began = world.clock.now() - timedelta(seconds=seconds_ago)
    body = {**facts, "readStartedAt": iso(began), "sweep": "late", "knownResourceVersion": 1}
    await world.bus.publish(observed_subject(key), dump(body), {})
    await asyncio.sleep(1)


# ---------------------------------------------------------------- OC-36


@pytest.mark.parametrize("facts", [LOST, BROKEN], ids=["absent", "error"])
def test_oc_36_an_observation_from_before_our_last_write_changes_nothing(facts: dict[str, Any]) -> None:
    """GIVEN a server that was just made WHEN a view from before that comes in THEN its status stays and nothing is written."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=36) as world:
            await world.register()
            server = await settled(world)
            before = world.status(server)
            mark = world.cloud.sequence + 1
            await observe(world, server, facts, seconds_ago=3600)
            await world.quiet()
            assert world.status(server) == before
            assert writes(world, mark) == []

    run_virtual(scenario())


def test_oc_36_an_observation_of_what_is_being_deleted_changes_nothing() -> None:
    """GIVEN a server whose deletion the cloud holds up WHEN the monitor says that it is absent or in error
    THEN the deletion goes on as it stands, and ends only with the cloud's own word."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=361) as world:
            await world.register()
            server = await settled(world)
            busy = fault(world, "status", method="DELETE", path="/servers/", status=409, times=None)
            await world.delete(server)
            await asyncio.sleep(60)
            for facts in (LOST, BROKEN):
                await observe(world, server, facts, seconds_ago=0)
                await asyncio.sleep(60)
                assert world.provisioning(server) == "deprovisioning"
                document = world.status(server)
                assert document is not None
                assert active(document) == "Running"
            assert world.cloud.nova.servers
            world.cloud.faults.remove(busy)
            await world.until(server, "gone")

    run_virtual(scenario())


# ---------------------------------------------------------------- OC-37


def test_oc_37_a_pass_longer_than_the_ack_window_has_its_effect_once() -> None:
    """GIVEN a cloud that answers each POST after 50 s and a broker that delivers everything twice
    WHEN a server is made by two replicas THEN its message is taken at once, and each thing is asked for once."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=37, replicas=2) as world:
            await world.register()
            world.bus.weather = Weather(late=40.0, twice=1.0)
            fault(world, "slow", method="POST", path="/(servers|ports|floatingips)$", delay=50.0, times=None)
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1", publicIPAllocation={"enabled": True})
            other = await server_in(world, network, "web-2")
            for key in (server, other):
                await world.until(key, "provisioned", within=3600)
            await world.quiet()
            assert [posts(world, path) for path in ("/servers$", "/ports$", "/floatingips$")] == [2, 2, 1]

    run_virtual(scenario())


def test_oc_37_a_cloud_that_never_answers_holds_up_nobody_else() -> None:
    """GIVEN a cloud that never answers the POST of one server WHEN others are asked for after it
    THEN each call ends at its deadline, and the others are ready while it still tries."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=371) as world:
            await world.register()
            network, _ = await network_of(world)
            await world.until(network, "provisioned")
            fault(world, "slow", method="POST", path="/servers$", body="stuck", delay=1e6, times=None)
            stuck = await server_in(world, network, "stuck")
            others = [await server_in(world, network, f"web-{n}") for n in range(5)]
            for key in others:
                await world.until(key, "provisioned", within=120)
            await world.until(stuck, "provisioned", within=600)  # made by the first request, and found
            assert len(world.cloud.nova.servers) == 6

    run_virtual(scenario())


# ---------------------------------------------------------------- OC-38


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_oc_38_events_in_any_order_end_the_same(order: tuple[int, ...]) -> None:
    """GIVEN two edits and a delete WHEN they arrive in any order and the first once more an hour later
    THEN the group is gone, its generation never fell, and nothing brings it back."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=38) as world:
            await world.register()
            network, group = await network_of(world)
            await world.until(group, "provisioned")
            await world.quiet()
            bodies = [edit(world, network, port) for port in (80, 443)] + [dump({"delete": True})]
            base = world.bus.sequences["SPEC"]
            world.bus.sequences["SPEC"] += len(bodies)
            assembly = next(
                r.assembly for r in world.replicas if r.service.name == "network" and r.assembly is not None
            )

            async def arrives(number: int) -> tuple[int, int]:
                """(sequence, generation) of the row after the message."""
                position = (1, base + 1 + number)
                await assembly.handlers.spec(spec_subject(group), bodies[number], position, {})
                row = await world.stores["network"].get("securitygroup", group.id)
                assert row is not None
                return row.sequence, row.generation

            reached = [await arrives(number) for number in order]
            await asyncio.sleep(3600)
            reached.append(await arrives(0))
            assert reached == sorted(reached)
            await world.until(group, "gone")
            await asyncio.sleep(600)
            await world.quiet()
            assert world.provisioning(group) == "gone"

    run_virtual(scenario())


def edit(world: SimWorld, network: Key, port: int) -> bytes:
    rules = [{"direction": "ingress", "protocol": "tcp", "port": {"number": port}}]
    metadata = {
        "name": "web",
        "organizationId": world.organization,
        "projectId": world.project,
        "networkId": network.id,
    }
    return dump({"metadata": metadata, "spec": {"rules": rules}})
