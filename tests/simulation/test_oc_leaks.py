"""What is left over when creates fail, builds take long and processes stop half way (OC-25, OC-26, OC-27)."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.simulation.cases import all_gone, fault, made_since, objects_named, posts
from tests.simulation.test_server import NET, network_of, server_in
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import Points, SimWorld
from tests.world.virtual import run_virtual

from roadstead.cloud import names
from roadstead.subjects import Key
from roadstead.testing.cloudsim.faults import Outcome

PROVIDER = {"physicalNetwork": "physnet1", "vlan": {"segments": [{"startId": 100, "endId": 101}]}}
BAD_KEY = {"badRequest": {"code": 400, "message": "Invalid key_name provided."}}
OVER_QUOTA = {"forbidden": {"code": 403, "message": "Quota exceeded for instances"}}
NO_HOST = {"computeFault": {"code": 500, "message": "No valid host was found."}}


# ---------------------------------------------------------------- OC-25


@pytest.mark.parametrize(
    ("status", "answer"),
    [(500, NO_HOST), (403, OVER_QUOTA), (400, BAD_KEY)],
    ids=["no_valid_host", "quota", "bad_key"],
)
def test_oc_25_a_server_that_never_came_leaves_nothing_when_it_goes(
    status: int, answer: Mapping[str, Any]
) -> None:
    """GIVEN a port made and every POST of its server refused WHEN server, group and network are deleted
    THEN there was never more than one port, and nothing is left."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=status) as world:
            await world.register()
            before = Admin(world.cloud).objects()
            network, group = await network_of(world)
            await world.until(group, "provisioned")
            fault(world, "status", method="POST", path="/servers$", status=status, answer=answer, times=None)
            groups = [{"id": group.id}]
            for number in range(10):
                tags = [{"name": "a.b/round", "value": str(number)}]
                server = await server_in(world, network, "web-1", securityGroups=groups, tags=tags)
                await asyncio.sleep(90)  # an answer of 5xx may hide an effect, so it is waited out each time
            assert world.provisioning(server) != "provisioned"
            assert posts(world, "/ports$") == 1
            assert len(world.cloud.log.calls(method="POST", path="/servers$")) >= 10
            await world.delete(server)
            await world.until(server, "gone")
            await world.delete(group)
            await world.until(group, "gone")
            await all_gone(world, network)
            assert not made_since(world, before)
            assert not objects_named(world, "network", "ports", names.port_name(server.id))

    run_virtual(scenario())


def test_oc_25_a_server_in_error_whose_port_the_cloud_took_off_leaves_nothing_when_it_goes() -> None:
    """GIVEN a build that failed and a port that hangs on nothing any more WHEN everything is deleted
    THEN the port is found by its name and goes, and nothing is left."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=254) as world:
            await world.register()
            before = Admin(world.cloud).objects()
            world.cloud.faults.add_outcome(Outcome("server_build", times=None, message="No valid host"))
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1")
            await world.until(server, "error", within=3600)
            for port in objects_named(world, "network", "ports", names.port_name(server.id)):
                world.cloud.foreign("network", "unbind", str(port["id"]))
            assert most_at_once(world, "/ports") == 1
            await all_gone(world, network)
            assert not made_since(world, before)
            assert not objects_named(world, "network", "ports", names.port_name(server.id))

    run_virtual(scenario())


def most_at_once(world: SimWorld, path: str) -> int:
    """How many objects of that path there were at the same time, by the log of what was asked."""
    now = most = 0
    for call in world.cloud.log.calls(path=path):
        if call.took_effect and call.status < 300:
            now += {"POST": 1, "DELETE": -1}.get(call.method, 0)
            most = max(most, now)
    return most


# ---------------------------------------------------------------- OC-26


def test_oc_26_a_build_that_takes_long_is_waited_for_and_nothing_is_removed() -> None:
    """GIVEN a server that stays BUILD for an hour WHEN it becomes ACTIVE
    THEN it is ready: asked for once, its port never touched, nothing deleted meanwhile."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=26) as world:
            world.cloud.settings.durations.server_spawn = 3600
            await world.register()
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1", publicIPAllocation={"enabled": True})
            await asyncio.sleep(3000)
            document = world.status(server)
            assert document is not None
            assert active(document) in ("Building", "Queued")
            assert world.provisioning(server) != "error"
            await until_active(world, server, "Running")
            assert world.provisioning(server) == "provisioned"
            assert [posts(world, path) for path in ("/servers$", "/ports$", "/floatingips$")] == [1, 1, 1]
            assert not [c for c in world.cloud.log if c.method == "DELETE"]

    run_virtual(scenario())


def active(document: Mapping[str, Any]) -> str:
    return next((str(c["reason"]) for c in document["status"]["conditions"] if c["type"] == "Active"), "none")


async def until_active(world: SimWorld, server: Key, reason: str, within: float = 1800.0) -> None:
    """Wait for the reason on the Active axis."""
    for _ in range(int(within)):
        document = world.status(server)
        if document is not None and active(document) == reason:
            return
        await asyncio.sleep(1.0)
    raise AssertionError(f"{server} does not read {reason}: {world.status(server)}")


# ---------------------------------------------------------------- OC-27


class Watched:
    """The VLAN table beside the cloud, looked at all the time."""

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self.looks = 0

    async def table(self) -> dict[str, int]:
        """Network id -> VLAN id."""
        document = await self.world.stores["network"].document(f"vlan.{self.world.region}") or {}
        return {str(e["physicalNetworkID"]): int(e["id"]) for e in document.get("allocations", ())}

    def in_cloud(self) -> dict[str, int]:
        """Network name -> segmentation id."""
        listed = Admin(self.world.cloud).call("GET", "/network/v2.0/networks")["networks"]
        return {
            str(n["name"]): int(n["provider:segmentation_id"])
            for n in listed
            if n["provider:network_type"] == "vlan" and str(n["name"]).startswith("network-")
        }

    async def look(self) -> None:
        """Every id in use in the cloud is held by the network that uses it, and no id is held twice."""
        table, cloud = await self.table(), self.in_cloud()
        assert len(set(table.values())) == len(table)
        assert len(set(cloud.values())) == len(cloud)
        for name, ident in cloud.items():
            assert table.get(name.removeprefix("network-")) == ident, (name, ident, table)
        self.looks += 1

    async def for_ever(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(0.5)


class At(Points):
    """Kills whoever reaches a point of that name first."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label: str | None = label

    def reached(self, service: str, label: str) -> bool:
        if label != self.label:
            return False
        self.label = None
        return True


TROUBLES = (
    "create_unanswered",
    "delete_busy",
    "create_refused",
    "killed_before_release",
    "killed_after_create",
)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_oc_27_inv_260_ref_018_ref_019_a_vlan_id_is_free_exactly_when_no_network_uses_it(
    trouble: str,
) -> None:
    """GIVEN a pool of two ids and two tenants' networks WHEN creates and deletes go wrong in every way
    THEN no id is in two hands, and with the last network the table is empty."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=27) as world:
            await world.register(network={"providerNetworks": PROVIDER})
            watched = Watched(world)
            watching = asyncio.create_task(watched.for_ever())
            if trouble == "create_unanswered":
                fault(world, "no_answer_after", method="POST", path="/networks$", times=2)
            elif trouble == "delete_busy":
                fault(world, "status", method="DELETE", path="/networks/", status=409, times=2)
            elif trouble == "create_refused":
                fault(world, "status", method="POST", path="/networks$", status=400, times=3)
            elif trouble == "killed_before_release":
                world.points = At("cloud.network.network.delete.after")
            else:
                world.points = At("cloud.network.network.create.after")
            for _ in range(3):
                first = await world.apply(world.key("network"), "net-1", NET)
                second = await world.apply(world.key("network"), "net-2", {**NET, "prefix": "10.9.0.0/24"})
                for key in (first, second):
                    await world.until(key, "provisioned", within=3600)
                assert sorted((await watched.table()).values()) == [100, 101]
                assert sorted(watched.in_cloud().values()) == [100, 101]
                for key in (first, second):
                    await world.delete(key, cascade=True)
                for key in (first, second):
                    await world.until(key, "gone", within=3600)
                assert await watched.table() == {}
                assert watched.in_cloud() == {}
            assert not watching.done(), watching
            watching.cancel()
            assert watched.looks > 20
            assert not world.cloud.faults.rules, "a fault was never met"
            assert not isinstance(world.points, At) or world.points.label is None, "the kill never came"

    run_virtual(scenario())


def test_oc_27_a_network_that_was_refused_keeps_its_id_until_its_wish_goes() -> None:
    """GIVEN a network that the cloud refuses WHEN its wish is deleted THEN its id is free for the next one."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=271) as world:
            one = {"physicalNetwork": "physnet1", "vlan": {"segments": [{"startId": 100, "endId": 100}]}}
            await world.register(network={"providerNetworks": one})
            watched = Watched(world)
            refusal = fault(world, "status", method="POST", path="/networks$", status=400, times=None)
            refused = await world.apply(world.key("network"), "net-1", NET)
            await asyncio.sleep(120)
            assert await watched.table() == {refused.id: 100}
            world.cloud.faults.remove(refusal)
            fault(world, "status", method="POST", path="/networks$", body=refused.id, status=400, times=None)
            waiting = await world.apply(world.key("network"), "net-2", {**NET, "prefix": "10.9.0.0/24"})
            await asyncio.sleep(120)
            assert world.provisioning(waiting) == "error"
            await world.delete(refused, cascade=True)
            await world.until(refused, "gone")
            await world.until(waiting, "provisioned")
            assert await watched.table() == {waiting.id: 100}

    run_virtual(scenario())
