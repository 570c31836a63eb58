"""Answers that never come: each thing is made once, whatever becomes of the answer (OC-21, OC-22)."""

import asyncio
import uuid
from dataclasses import replace

import pytest
from tests.simulation.cases import (
    ONE_OF_EACH,
    POSTS,
    all_gone,
    everything,
    fault,
    made_since,
    objects_named,
    posts,
    region_section,
)
from tests.simulation.test_server import message, network_of, server_in, verbs
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.cloud import names
from roadstead.testing.cloudsim.faults import Outcome

PASS = 12.0  # virtual seconds in which a row that fails or waits passes at least once


@pytest.mark.parametrize("kind", ["no_answer_after", "status_after", "no_answer_before", "status"])
def test_oc_21_inv_141_inv_143_every_create_whose_answer_is_lost_is_made_once(kind: str) -> None:
    """GIVEN the answer to every POST lost (or 503), with or without its effect WHEN one of everything is wanted
    THEN there is one of everything, and a cascade leaves nothing."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=21) as world:
            await world.register(**region_section(world))
            before = Admin(world.cloud).objects()
            for path in POSTS:
                fault(world, kind, method="POST", path=path, times=1)
            keys = await everything(world)
            for key in keys.values():
                await world.until(key, "provisioned", within=3600)
            assert made_since(world, before) == ONE_OF_EACH
            assert len(objects_named(world, "network", "ports", names.port_name(keys["server"].id))) == 1
            assert not world.cloud.faults.rules, "a fault was never met"
            await all_gone(world, keys["network"])
            assert not made_since(world, before)

    run_virtual(scenario())


def test_oc_21_ten_lost_answers_in_one_history_are_ten_servers_not_twenty() -> None:
    """GIVEN ten servers WHEN the answer to each POST of server, port and floating IP is lost
    THEN there are ten of each, and each was asked for once."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=22, replicas=2) as world:
            await world.register()
            network, _ = await network_of(world)
            await world.until(network, "provisioned")
            before = Admin(world.cloud).objects()
            for path in ("/servers$", "/ports$", "/floatingips$"):
                fault(world, "no_answer_after", method="POST", path=path, times=10)
            servers = [
                await server_in(world, network, f"web-{n}", publicIPAllocation={"enabled": True})
                for n in range(10)
            ]
            for key in servers:
                await world.until(key, "provisioned", within=3600)
            made = made_since(world, before)
            assert (made["servers"], made["floating_ips"]) == (10, 10)
            assert [posts(world, path) for path in ("/servers$", "/ports$", "/floatingips$")] == [10, 10, 10]
            assert not world.cloud.faults.rules

    run_virtual(scenario())


def test_oc_21_two_servers_with_our_claim_are_reported_and_left_alone() -> None:
    """GIVEN a settled server WHEN somebody makes another one with its claim
    THEN the server says that an operator must look, and neither is deleted or changed."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=23) as world:
            await world.register()
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1")
            await world.until(server, "provisioned")
            ours = next(iter(world.cloud.nova.servers.values()))
            twin = replace(ours, id=str(uuid.uuid4()), nics=[], metadata=dict(ours.metadata))
            world.cloud.nova.servers[twin.id] = twin
            mark = world.cloud.sequence + 1
            await server_in(world, network, "web-1", tags=[{"name": "a.b/c", "value": "d"}])
            await asyncio.sleep(120)
            document = world.status(server)
            assert document is not None
            assert world.provisioning(server) in ("error", "provisioning")
            assert "operator" in message(document)
            assert [w.path for w in world.cloud.log.writes(since=mark)] == []
            assert {ours.id, twin.id} <= set(world.cloud.nova.servers)

    run_virtual(scenario())


def test_oc_22_thirty_passes_that_fail_at_the_server_leave_one_port_and_one_address() -> None:
    """GIVEN a cloud that answers 500 to every POST of a server WHEN thirty passes try
    THEN there is one port and one floating IP, each asked for once."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=24) as world:
            await world.register()
            network, _ = await network_of(world)
            await world.until(network, "provisioned")
            refusal = fault(world, "status", method="POST", path="/servers$", status=500, times=None)
            server = await server_in(world, network, "web-1", publicIPAllocation={"enabled": True})
            await tried(world, "POST", "/servers$", 30)
            assert verbs(world, server).count("port.create") == 1
            assert verbs(world, server).count("floatingip.create") == 1
            assert len(objects_named(world, "network", "ports", names.port_name(server.id))) == 1
            world.cloud.faults.remove(refusal)
            await world.until(server, "provisioned")
            assert [posts(world, path) for path in ("/servers$", "/ports$", "/floatingips$")] == [1, 1, 1]

    run_virtual(scenario())


def test_oc_22_an_address_that_cannot_be_put_on_the_port_is_used_again_not_made_again() -> None:
    """GIVEN a server whose address somebody took off WHEN putting it back fails thirty times
    THEN no other address is asked for, and the same one is on the port in the end."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=25) as world:
            await world.register()
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1", publicIPAllocation={"enabled": True})
            document = await world.until(server, "provisioned")
            address = document["status"]["publicIP"]
            admin = Admin(world.cloud)
            listed = admin.call("GET", "/network/v2.0/floatingips")["floatingips"]
            (ours,) = [a for a in listed if a["floating_ip_address"] == address]
            world.cloud.foreign("network", "disassociate", ours["id"])
            refusal = fault(world, "status", method="PUT", path="/floatingips/", status=404, times=None)
            wish = {"publicIPAllocation": {"enabled": True}, "tags": [{"name": "a.b/c", "value": "d"}]}
            await server_in(world, network, "web-1", **wish)
            await tried(world, "PUT", "/floatingips/", 30)
            assert posts(world, "/floatingips$") == 1
            world.cloud.faults.remove(refusal)
            document = await world.until(server, "provisioned")
            assert document["status"]["publicIP"] == address

    run_virtual(scenario())


def test_oc_22_a_load_balancer_in_error_gets_no_address() -> None:
    """GIVEN a load balancer whose build fails for ever WHEN thirty passes look at it
    THEN no floating IP is asked for, and the load balancer was asked for a bounded number of times."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=26) as world:
            await world.register(**region_section(world))
            world.cloud.faults.add_outcome(Outcome("lb_build", times=None, message="no host"))
            network, _ = await network_of(world)
            wish = {"listeners": [], "publicIP": True}
            balancer = await world.apply(world.key("loadbalancer"), "front", wish, networkId=network.id)
            await asyncio.sleep(30 * PASS)
            assert world.provisioning(balancer) != "provisioned"
            assert posts(world, "/floatingips$") == 0
            assert posts(world, "/loadbalancers$") <= 3
            await all_gone(world, network)

    run_virtual(scenario())


async def tried(world: SimWorld, method: str, path: str, times: int) -> None:
    """Wait until the cloud was asked that often, at most five minutes apart; fails when the passes stop trying."""
    for _ in range(times * 31):
        if len(world.cloud.log.calls(method=method, path=path)) >= times:
            return
        await asyncio.sleep(PASS)
    raise AssertionError(
        f"{method} {path} was tried {len(world.cloud.log.calls(method=method, path=path))} times"
    )
