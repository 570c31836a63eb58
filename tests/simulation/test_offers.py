"""What waits for something that the region does not offer goes on by itself once the region offers it, and not before."""

import asyncio
from typing import Any

import pytest
from tests.simulation.test_loadbalancer import OVN, balanced
from tests.simulation.test_server import named, network_of, server_in
from tests.simulation.test_volume import NET, classes, offering, volume_in
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.reconcile.offers import CAUSE
from roadstead.store.api import Row
from roadstead.subjects import Key
from roadstead.testing.cloudsim.faults import Fault
from roadstead_compute.server.model import server_id

LISTS = {"volume": "/types", "compute": "/flavors/detail", "network": r"/networks$", "image": r"/images$"}


async def refit(world: SimWorld, region: Key, **openstack: Any) -> None:
    """The operator edits the Region."""
    document = world.status(region)
    assert document is not None
    part = {**document["spec"]["openstack"], **openstack}
    await world.apply(region, "simulated", {"provider": "openstack", "openstack": part})


async def parked(world: SimWorld, key: Key) -> dict[str, Any]:
    """Errored, with nothing due anywhere."""
    document = await world.until(key, "error")
    await world.quiet()
    return document


def wished(world: SimWorld) -> dict[str, Any]:
    """A server's spec but for its network, looked up while nobody lies."""
    return {
        "flavorID": named(world, "/compute/v2.1/flavors", "flavors")["small"],
        "image": {"id": named(world, "/image/v2/images", "images")["ubuntu-24.04"]},
    }


async def server_on(world: SimWorld, network: Key, wish: dict[str, Any]) -> Key:
    key = world.key("server", server_id(network.id, "web-1"))
    return await world.apply(key, "web-1", {**wish, "networks": [{"id": network.id}]})


def passes(world: SimWorld, key: Key) -> int:
    """How often the row was claimed."""
    return row_of(world, key).work.lease_epoch


def row_of(world: SimWorld, key: Key) -> Row:
    rows = (s._held.rows.get((key.kind, key.id)) for s in world.stores.values())
    return next(r for r in rows if r is not None)


def reads(world: SimWorld, service: str) -> int:
    """List requests for what the service offers, by the region's own user in its own project."""
    end = LISTS[service].rstrip("$")
    return len([c for c in world.cloud.log if c.service == service and c.path.split("?")[0].endswith(end)])


def kill(world: SimWorld, service: str, *, restart: bool = True) -> None:
    for replica in world.replicas:
        if replica.service.name == service:
            world.kill(replica, restart=restart)


async def again(world: SimWorld, service: str) -> None:
    for replica in world.replicas:
        if replica.service.name == service:
            await world.start(replica)


@pytest.mark.parametrize("down", [False, True], ids=["while it runs", "while the service is down"])
def test_oc_10_a_balancing_method_that_the_operator_mends_makes_the_load_balancer(down: bool) -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            region = await world.register()
            _, balancer = await balanced(world)
            await parked(world, balancer)
            if down:
                kill(world, "loadbalancer", restart=False)
            await refit(world, region, **OVN)
            if down:
                await asyncio.sleep(30)
                await again(world, "loadbalancer")
            await world.until(balancer, "provisioned", within=60)

    run_virtual(scenario())


@pytest.mark.parametrize("down", [False, True], ids=["while it runs", "while the service is down"])
def test_inv_169_a_class_that_the_region_offers_later_makes_the_volume(down: bool) -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            region = await world.register()
            _, volume = await volume_in(world, classes(world)["standard"])
            assert (await parked(world, volume))["status"]["code"] == "NOT_OFFERED"
            if down:
                kill(world, "volumes", restart=False)
            await refit(world, region, **offering(classes(world)["standard"]))
            if down:
                await asyncio.sleep(30)
                await again(world, "volumes")
            document = await world.until(volume, "provisioned", within=60)
            assert "judgedBy" not in document["status"]

    run_virtual(scenario())


def test_an_image_that_becomes_fit_makes_the_server() -> None:
    """Somebody labels it; the list is read once a minute."""

    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            await world.register()
            network, _ = await network_of(world)
            image = named(world, "/image/v2/images", "images")["unlabelled"]
            server = await server_in(world, network, "web-1", image={"id": image})
            assert (await parked(world, server))["status"]["code"] == "IMAGE_NOT_FOUND"
            rows = world.cloud.glance.images
            fit = next(r for r in rows if r["name"] == "ubuntu-24.04")
            next(r for r in rows if r["id"] == image)["_properties"].update(fit["_properties"])
            await world.until(server, "provisioned", within=90)

    run_virtual(scenario())


def test_a_flavor_that_the_region_offers_later_makes_the_server() -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            flavors = named(world, "/compute/v2.1/flavors", "flavors")
            others = {"flavors": {"selector": {"ids": [i for name, i in flavors.items() if name != "small"]}}}
            region = await world.register(compute=others)
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1")
            assert (await parked(world, server))["status"]["code"] == "FLAVOR_GONE"
            await refit(world, region, compute={"flavors": {"selector": {"ids": [flavors["small"]]}}})
            await world.until(server, "provisioned", within=60)

    run_virtual(scenario())


def test_what_changes_for_others_and_a_restart_wake_no_parked_row() -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            region = await world.register()
            network, volume = await volume_in(world, classes(world)["standard"])
            images = named(world, "/image/v2/images", "images")
            server = await server_in(world, network, "web-1", image={"id": images["unlabelled"]})
            for key in (volume, server):
                await parked(world, key)
            await refit(world, region, **offering(classes(world)["fast"]))
            await asyncio.sleep(70)
            before = passes(world, volume), passes(world, server)
            rows = world.cloud.glance.images
            next(r for r in rows if r["name"] == "debian-12")["_properties"].clear()
            await asyncio.sleep(3700)
            assert (passes(world, volume), passes(world, server)) == before
            kill(world, "volumes")
            kill(world, "compute")
            await asyncio.sleep(3700)
            for key in (volume, server):
                assert row_of(world, key).work.cause["reason"] != CAUSE["reason"]

    run_virtual(scenario())


@pytest.mark.parametrize("lies", [1, 2, 3])
def test_lists_that_lie_are_not_believed_for_long(lies: int) -> None:
    """The cloud answers the first requests for everything it offers with empty lists, as it does where it means an error."""

    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            standard = classes(world)["standard"]
            wish = wished(world)
            for service, path in LISTS.items():
                world.cloud.faults.add(
                    Fault("empty_list", service=service, method="GET", path=path, times=lies)
                )
            await world.register(**offering(standard))
            network, volume = await volume_in(world, standard)
            server = await server_on(world, network, {**wish, "publicIPAllocation": {"enabled": True}})
            for key in (network, volume, server):
                await world.until(key, "provisioned", within=200)

    run_virtual(scenario())


def test_a_region_that_offers_nothing_is_asked_once_a_minute_and_no_more() -> None:
    """An empty list is legal: a project that has access to no flavor."""

    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            wish = wished(world)
            for service in ("volume", "compute", "image"):
                world.cloud.faults.add(
                    Fault("empty_list", service=service, method="GET", path=LISTS[service], times=None)
                )
            await world.register()
            network = await world.apply(world.key("network"), "net-1", NET)
            server = await server_on(world, network, wish)
            document = await parked(world, server)
            assert document["status"]["code"] == "FLAVOR_GONE"
            before = {s: reads(world, s) for s in ("volume", "compute", "image")}
            epochs = passes(world, server)
            await asyncio.sleep(3600)
            asked = {s: reads(world, s) - n for s, n in before.items()}
            assert all(45 <= n <= 61 for n in asked.values()), asked
            assert passes(world, server) == epochs

    run_virtual(scenario())


def test_a_region_that_opens_to_an_organization_makes_its_identities() -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            region = await world.register()
            document = world.status(region)
            assert document is not None
            closed = {**document["spec"], "security": {"organizations": [{"id": "somebody-else"}]}}
            await world.apply(region, "simulated", closed)
            await world.until(region, "provisioned")
            identity = await world.apply(world.key("identity"), "mine", {})
            assert (await parked(world, identity))["status"]["code"] == "NOT_FOUND"
            await world.apply(region, "simulated", {**closed, "security": {"organizations": []}})
            await world.until(identity, "provisioned", within=60)

    run_virtual(scenario())
