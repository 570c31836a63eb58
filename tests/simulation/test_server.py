"""Servers through the whole product on virtual time: with network, group, volume and public address."""

import asyncio
from typing import Any

from tests.world.admin import Admin
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key
from roadstead.testing.cloudsim.faults import Fault
from roadstead_compute.__main__ import SERVICE as COMPUTE
from roadstead_compute.server.model import server_id
from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_network.__main__ import SERVICE as NETWORK
from roadstead_volumes.__main__ import SERVICE as VOLUMES

NET = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
RULES = {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": 22}}]}
SERVICES = (IDENTITY, NETWORK, VOLUMES, COMPUTE)
LEFT_BY_NEUTRON = {"security_groups"}  # the default group that Neutron makes by itself


def named(world: SimWorld, path: str, plural: str) -> dict[str, str]:
    """Ids by name of what the cloud offers."""
    return {item["name"]: item["id"] for item in Admin(world.cloud).call("GET", path)[plural]}


def offering(world: SimWorld) -> dict[str, Any]:
    """The Region's section that offers the type `standard`."""
    ids = [named(world, "/volume/v3/types", "volume_types")["standard"]]
    return {"blockStorage": {"volumeClasses": {"selector": {"ids": ids}}}}


async def network_of(world: SimWorld) -> tuple[Key, Key]:
    """(network, security group), not waited for."""
    network = await world.apply(world.key("network"), "net-1", NET)
    group = await world.apply(world.key("securitygroup"), "web", RULES, networkId=network.id)
    return network, group


async def volume_in(world: SimWorld, network: Key, name: str) -> Key:
    kind = named(world, "/volume/v3/types", "volume_types")["standard"]
    spec = {"networkID": network.id, "volumeClassID": kind, "size": "10Gi"}
    return await world.apply(world.key("volume"), name, spec)


async def server_in(world: SimWorld, network: Key, name: str, **spec: Any) -> Key:
    wish = {
        "flavorID": named(world, "/compute/v2.1/flavors", "flavors")["small"],
        "image": {"id": named(world, "/image/v2/images", "images")["ubuntu-24.04"]},
        "networks": [{"id": network.id}],
        **spec,
    }
    return await world.apply(world.key("server", server_id(network.id, name)), name, wish)


def verbs(world: SimWorld, key: Key) -> list[str]:
    return [w["verb"] for w in world.writes(key)]


def message(document: dict[str, Any]) -> str:
    """The text of the provisioning axis."""
    (found,) = [c["message"] for c in document["status"]["conditions"] if c["type"] == "Available"]
    return str(found)


def claim(world: SimWorld, volume: Key) -> Any:
    document = world.status(volume)
    assert document is not None
    return document["status"].get("claimRef")


def test_ref_051_a_server_with_everything_comes_and_goes_and_leaves_nothing() -> None:
    """All specs are published at once; a cascade of the network takes all of it away."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register(**offering(world))
            before = Admin(world.cloud).objects()
            network, group = await network_of(world)
            volume = await volume_in(world, network, "data")
            server = await server_in(
                world,
                network,
                "web-1",
                securityGroups=[{"id": group.id}],
                publicIPAllocation={"enabled": True},
                volumes=[{"id": volume.id}],
            )
            document = await world.until(server, "provisioned")
            status = document["status"]
            assert status["privateIP"].startswith("192.168.10.")
            assert status["publicIP"]
            assert [(r["id"], r["provisioningStatus"]) for r in status["volumes"]] == [
                (volume.id, "Provisioned")
            ]
            assert claim(world, volume) == {"kind": "Server", "id": server.id}
            assert verbs(world, server) == [
                "port.create",
                "floatingip.create",
                "server.create",
                "attachment.create",
            ]
            await asyncio.sleep(5)  # the guest has the volume now
            await world.delete(network, cascade=True)
            await world.until(network, "gone")
            await world.quiet()
            assert [world.provisioning(key) for key in (server, volume, group)] == ["gone"] * 3
            assert verbs(world, server)[4:] == [
                "attachment.delete",
                "server.delete",
                "floatingip.delete",
                "port.delete",
            ]
            assert {k for k, _ in Admin(world.cloud).objects() - before} <= LEFT_BY_NEUTRON

    run_virtual(scenario())


def test_a_claimed_volume_waits_for_its_server() -> None:
    """Its deletion names the server, and ends once an edit takes the volume off."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register(**offering(world))
            network, _ = await network_of(world)
            volume = await volume_in(world, network, "data")
            server = await server_in(world, network, "web-1", volumes=[{"id": volume.id}])
            await world.until(server, "provisioned")
            await world.delete(volume)
            await asyncio.sleep(60)
            waiting = world.status(volume)
            assert waiting is not None
            assert waiting["status"]["code"] == "IN_USE"
            assert server.id in message(waiting)
            assert verbs(world, volume) == ["volume.create"]
            await server_in(world, network, "web-1")
            await world.until(volume, "gone")
            document = await world.until(server, "provisioned")
            assert "volumes" not in document["status"]

    run_virtual(scenario())


def test_a_claim_that_its_server_forgot_ends_when_the_volume_is_to_go() -> None:
    """A process may die between claim and attachment, and the wish be another by the time the owner's STATUS is heard."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register(**offering(world))
            network, _ = await network_of(world)
            volume = await volume_in(world, network, "data")
            server = await server_in(world, network, "web-1")
            await world.until(server, "provisioned")
            await world.until(volume, "provisioned")
            await world.quiet()
            ask = {"volumeId": volume.id, "claimant": {"kind": "Server", "id": server.id}}
            assert await world.bus.request("rpc.volumes.claim", ask) == {"ok": True}
            await world.quiet()
            assert claim(world, volume) == {"kind": "Server", "id": server.id}
            await world.delete(volume)
            await world.until(volume, "gone", within=60)

    run_virtual(scenario())


def test_of_two_servers_one_gets_the_volume() -> None:
    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register(**offering(world))
            network, _ = await network_of(world)
            volume = await volume_in(world, network, "data")
            servers = [
                await server_in(world, network, name, volumes=[{"id": volume.id}])
                for name in ("web-1", "web-2")
            ]
            await asyncio.sleep(120)
            states = sorted(world.provisioning(server) for server in servers)
            assert states == ["error", "provisioned"], states
            held = claim(world, volume)
            assert held["id"] in [s.id for s in servers if world.provisioning(s) == "provisioned"]
            attached = [w for s in servers for w in world.writes(s) if w["verb"] == "attachment.create"]
            assert len(attached) == 1

    run_virtual(scenario())


def test_an_image_that_the_region_does_not_offer_parks_the_server() -> None:
    """Over the bus nobody checks the inventory beforehand: the first pass does, and makes nothing."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register()
            network, _ = await network_of(world)
            images = named(world, "/image/v2/images", "images")
            server = await server_in(world, network, "web-1", image={"id": images["unlabelled"]})
            document = await world.until(server, "error")
            assert images["unlabelled"] in message(document)
            assert verbs(world, server) == []
            await server_in(world, network, "web-1")
            await world.until(server, "provisioned")

    run_virtual(scenario())


def test_inv_206_ref_001_without_a_project_a_server_with_volumes_goes_without_a_call() -> None:
    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register(**offering(world))
            world.cloud.faults.add(
                Fault("status", service="identity", method="POST", path="/projects$", status=503, times=None)
            )
            network, _ = await network_of(world)
            volume = await volume_in(world, network, "data")
            server = await server_in(world, network, "web-1", volumes=[{"id": volume.id}])
            await asyncio.sleep(30)
            await world.delete(server)
            await world.until(server, "gone")
            asked = [c.path for c in world.cloud.log if "/servers" in c.path or "/volumes" in c.path]
            assert asked == []

    run_virtual(scenario())
