"""Deleting what was never finished: an identity without a project, one that never was, a status that was lost (OC-28)."""

import asyncio
import uuid
from typing import Any

import pytest
from tests.simulation.cases import everything, fault, made_since, region_section
from tests.simulation.test_oc_leaks import PROVIDER, At, Watched
from tests.simulation.test_server import NET, RULES, named
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key
from roadstead_compute.server.model import server_id


@pytest.mark.parametrize("pause", [0, 1, 30])
@pytest.mark.parametrize("trouble", ["refused", "unanswered"])
def test_oc_28_what_is_deleted_before_its_identity_has_a_project_goes(trouble: str, pause: int) -> None:
    """GIVEN an identity whose project is not made WHEN network, group, volume, server and load balancer are asked for and deleted
    THEN all deletions end while the project still cannot be made, the VLAN id is given back, and nothing is left."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=28) as world:
            await world.register(**region_section(world), network={"providerNetworks": PROVIDER})
            before = Admin(world.cloud).objects()
            kind = {"refused": "status", "unanswered": "no_answer_before"}[trouble]
            fault(
                world,
                kind,
                method="POST",
                path="/projects$",
                status=409 if trouble == "refused" else 503,
                times=None,
            )
            keys = await everything(world)
            await asyncio.sleep(pause)
            for key in keys.values():  # the network first
                await world.delete(key)
            for key in reversed(keys.values()):
                await world.until(key, "gone", within=1800)
            await world.quiet()
            assert not made_since(world, before)
            assert await Watched(world).table() == {}
            assert not [
                c for c in world.cloud.log if c.method == "POST" and c.path.endswith(("/networks", "/ports"))
            ]

    run_virtual(scenario())


STEPS = {
    "manager": ("PUT", "/roles/", 0),
    "quota": ("PUT", "/os-quota-sets/", 0),
    "user": ("POST", "/users$", 0),
    "role": ("PUT", "/roles/", 1),
    "credential": ("POST", "/application_credentials$", 0),
    "group": ("POST", "/os-server-groups$", 0),
}
# Where the identity stays, a user whom the cloud does not let in yet is waited for: in his name it can be asked one day.
ONE_BY_ONE = [step for step in STEPS if step != "role"]


@pytest.mark.parametrize(
    ("step", "cascade"), [*((s, False) for s in ONE_BY_ONE), *((s, True) for s in STEPS)]
)
def test_oc_28_what_is_deleted_before_its_identity_is_whole_goes(step: str, cascade: bool) -> None:
    """GIVEN an identity with a project that lacks one of the rest WHEN what waits for it is deleted
    THEN all deletions end while that still cannot be made, and nothing is left."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=28) as world:
            await world.register(**region_section(world), network={"providerNetworks": PROVIDER})
            before = Admin(world.cloud).objects()
            method, path, skip = STEPS[step]
            fault(world, "status", method=method, path=path, skip=skip, status=409, times=None)
            keys = await everything(world)
            await asyncio.sleep(30)
            assert made_since(world, before)["projects"] == 1
            for key in list(keys.values())[: 1 if cascade else None]:  # the network first
                await world.delete(key, cascade=cascade)
            for key in reversed(keys.values()):
                if not cascade or key.kind == "network":
                    await world.until(key, "gone", within=1800)
            assert not made_since(world, before)
            if not cascade:  # a cascade leaves out whoever is no consumer yet, and he goes on waiting
                await world.quiet()
            assert await Watched(world).table() == {}

    run_virtual(scenario())


def wishes(world: SimWorld, network: str) -> dict[str, tuple[Key, dict[str, Any], dict[str, Any]]]:
    """kind -> (key, spec, metadata) of one of each, in a network that nobody knows."""
    flavor = named(world, "/compute/v2.1/flavors", "flavors")["small"]
    image = named(world, "/image/v2/images", "images")["ubuntu-24.04"]
    volume = named(world, "/volume/v3/types", "volume_types")["standard"]
    server = {"flavorID": flavor, "image": {"id": image}, "networks": [{"id": network}]}
    member = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": []}}
    return {
        "network": (world.key("network"), NET, {"identityId": str(uuid.uuid4())}),
        "securitygroup": (world.key("securitygroup"), RULES, {"networkId": network}),
        "volume": (world.key("volume"), {"networkID": network, "volumeClassID": volume, "size": "10Gi"}, {}),
        "server": (world.key("server", server_id(network, "web-1")), server, {}),
        "loadbalancer": (world.key("loadbalancer"), {"listeners": [member]}, {"networkId": network}),
    }


@pytest.mark.parametrize("kind", ["network", "securitygroup", "volume", "server", "loadbalancer"])
@pytest.mark.parametrize("pause", [0, 120])
def test_oc_28_what_names_an_identity_or_network_that_never_was_goes(kind: str, pause: int) -> None:
    """GIVEN a wish whose identity or network has no record WHEN it is deleted THEN it goes, and the workload was never touched."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=281) as world:
            await world.register(**region_section(world))
            mark = world.cloud.sequence + 1
            key, spec, metadata = wishes(world, str(uuid.uuid4()))[kind]
            await world.apply(key, "web-1", spec, **metadata)
            await asyncio.sleep(pause)
            await world.delete(key)
            await world.until(key, "gone")
            await world.quiet()
            assert [
                c
                for c in world.cloud.log.writes(since=mark)
                if c.user_name != "admin" and "/auth/" not in c.path
            ] == []

    run_virtual(scenario())


POINTS = {
    "network": ("network", "network.create"),
    "securitygroup": ("network", "securitygroup.create"),
    "server": ("compute", "server.create"),
    "loadbalancer": ("load-balancer", "loadbalancer.create"),
    "volume": ("block-storage", "volume.create"),
}


@pytest.mark.parametrize("kind", POINTS)
def test_oc_28_what_was_made_and_whose_status_was_lost_is_found_and_goes(kind: str) -> None:
    """GIVEN a process killed between the cloud's answer and its own write, and a cloud that shuts the door on its next pass
    WHEN the thing is deleted THEN the decision comes from a look-up in the cloud, and nothing is left."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=282) as world:
            await world.register(**region_section(world))
            before = Admin(world.cloud).objects()
            service, verb = POINTS[kind]
            point = At(f"cloud.{service}.{verb}.after")
            world.points = point
            keys = await everything(world)
            for _ in range(600):
                if point.label is None:
                    break
                await asyncio.sleep(0.5)
            assert point.label is None, "the kill never came"
            document = world.status(keys[kind])
            assert document is None or document["status"].get("provisioningStatus") != "provisioned"
            for key in keys.values():  # the network first
                await world.delete(key)
            for key in reversed(keys.values()):
                await world.until(key, "gone", within=3600)
            await world.quiet()
            assert not made_since(world, before)

    run_virtual(scenario())
