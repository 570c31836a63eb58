"""Volumes through the whole product on virtual time."""

import asyncio
import uuid
from typing import Any

from tests.world.admin import Admin
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key
from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_network.__main__ import SERVICE as NETWORK
from roadstead_volumes.__main__ import SERVICE as VOLUMES

NET = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
SERVICES = (IDENTITY, NETWORK, VOLUMES)
LEFT_BY_NEUTRON = {"security_groups"}  # the default group that Neutron makes by itself


def classes(world: SimWorld) -> dict[str, str]:
    """Ids of Cinder's types by name."""
    listed = Admin(world.cloud).call("GET", "/volume/v3/types")["volume_types"]
    return {kind["name"]: kind["id"] for kind in listed}


def offering(*idents: str) -> dict[str, Any]:
    """The Region's section that offers these types."""
    return {"blockStorage": {"volumeClasses": {"selector": {"ids": list(idents)}}}}


def claim_of(server: str, volume: Key) -> dict[str, Any]:
    return {"volumeId": volume.id, "claimant": {"kind": "Server", "id": server}}


def verbs(world: SimWorld, key: Key) -> list[str]:
    return [w["verb"] for w in world.writes(key)]


async def volume_in(world: SimWorld, kind: str) -> tuple[Key, Key]:
    """(network, volume), both asked for at once."""
    network = await world.apply(world.key("network"), "net-1", NET)
    spec = {"networkID": network.id, "volumeClassID": kind, "size": "10Gi"}
    return network, await world.apply(world.key("volume"), "data", spec)


def test_inv_157_a_volume_comes_and_goes_and_leaves_nothing() -> None:
    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            standard = classes(world)["standard"]
            await world.register(**offering(standard))
            before = Admin(world.cloud).objects()
            network, volume = await volume_in(world, standard)
            await world.until(volume, "provisioned")
            (found,) = [o for o in world.cloud.cinder.volumes if o["name"] == f"volume-{volume.id}"]
            assert (found["size"], found["volume_type_id"]) == (10, standard)
            creates = (
                [w for w in world.writes(volume) if w["creates"]]
                if "creates" in world.writes(volume)[0]
                else None
            )
            assert creates is None
            assert [w["verb"] for w in world.writes(volume)] == ["volume.create"]
            await world.delete(network)
            await world.until(network, "deprovisioning")
            await world.delete(volume)
            await world.until(volume, "gone")
            await world.until(network, "gone")
            assert verbs(world, volume) == ["volume.create", "volume.delete"]
            assert {k for k, _ in Admin(world.cloud).objects() - before} <= LEFT_BY_NEUTRON

    run_virtual(scenario())


def test_a_claim_is_one_servers_and_holds_the_deletion_up() -> None:
    """Compare-and-set over the bus, kept over edits and passes; its release ends the deletion that waited."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            standard = classes(world)["standard"]
            await world.register(**offering(standard))
            _, volume = await volume_in(world, standard)
            one, other = (str(uuid.UUID(int=n)) for n in (1, 2))
            await world.until(volume, "provisioned")

            async def ask(verb: str, server: str) -> Any:
                reply = await world.bus.request(f"rpc.volumes.{verb}", claim_of(server, volume))
                return reply.get("error", {}).get("code", "ok")

            assert [await ask("claim", s) for s in (one, one, other)] == ["ok", "ok", "CONFLICT"]
            assert await ask("release", other) == "CONFLICT"
            await world.delete(volume)
            await asyncio.sleep(60)
            document = world.status(volume)
            assert document is not None
            assert document["status"]["code"] == "IN_USE"
            assert await ask("claim", other) == "DELETING"
            assert verbs(world, volume) == ["volume.create"]
            assert await ask("release", one) == "ok"
            await world.until(volume, "gone")
            assert await ask("claim", one) == "NOT_FOUND"

    run_virtual(scenario())


def test_inv_169_a_class_that_is_not_offered_is_refused_by_request_and_parked_over_the_bus() -> None:
    """The same code in both, and no request to the cloud."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            standard = classes(world)["standard"]
            await world.register()
            _, volume = await volume_in(world, standard)
            document = await world.until(volume, "error")
            assert document["status"]["code"] == "NOT_OFFERED"
            assert verbs(world, volume) == []
            await world.delete(volume)
            await world.until(volume, "gone")
            assert verbs(world, volume) == []
            (service,) = [r.assembly for r in world.replicas if r.service.name == "volumes"]
            assert service is not None
            spec = {"networkID": document["spec"]["networkID"], "volumeClassID": standard, "size": "10Gi"}
            body = {"metadata": {"name": "data", "organizationId": world.organization}, "spec": spec}
            reply = await service.api.request(f"api.{world.region}.{world.project}.volume.apply", body, {})
            assert reply["error"]["code"] == "NOT_OFFERED"
            listing = await service.api.request(f"api.{world.region}._.volumeclass.list", {}, {})
            assert listing == {"items": [], "next": None}

    run_virtual(scenario())
