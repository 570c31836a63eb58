"""Volumes through the whole product on virtual time."""

import asyncio
import uuid
from typing import Any

import pytest
from tests.world.admin import Admin
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import BadSubject, Key, parse_key
from roadstead.testing.cloudsim.faults import Fault
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


def cinder_calls(world: SimWorld) -> list[str]:
    """Every request about volumes; the lists of types belong to the inventory."""
    return [c.path for c in world.cloud.log if c.service == "volume" and "/volumes" in c.path]


def test_inv_138_no_call_goes_to_cinder_before_the_identity_is_provisioned() -> None:
    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            standard = classes(world)["standard"]
            await world.register(**offering(standard))
            world.cloud.faults.add(
                Fault("status", service="compute", path="/os-keypairs", status=503, times=None)
            )
            network, volume = await volume_in(world, standard)
            await asyncio.sleep(60)
            assert world.provisioning(volume) == "provisioning"
            assert cinder_calls(world) == []
            world.cloud.faults.clear()
            await world.until(volume, "provisioned")
            assert world.provisioning(network) == "provisioned"

    run_virtual(scenario())


def test_inv_159_ref_001_without_a_project_a_deletion_makes_no_call() -> None:
    """The identity's record is there, and says that its project never came to be."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            standard = classes(world)["standard"]
            await world.register(**offering(standard))
            world.cloud.faults.add(
                Fault("status", service="identity", method="POST", path="/projects$", status=503, times=None)
            )
            _, volume = await volume_in(world, standard)
            await asyncio.sleep(30)
            await world.delete(volume)
            await world.until(volume, "gone")
            assert cinder_calls(world) == []

    run_virtual(scenario())


def test_inv_158_ref_001_without_an_identity_a_deletion_makes_no_call() -> None:
    """Its network was never made, so nobody knows of an identity."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            standard = classes(world)["standard"]
            await world.register(**offering(standard))
            spec = {"networkID": str(uuid.UUID(int=7)), "volumeClassID": standard, "size": "10Gi"}
            volume = await world.apply(world.key("volume"), "data", spec)
            await asyncio.sleep(60)
            await world.delete(volume)
            await world.until(volume, "gone")
            assert cinder_calls(world) == []

    run_virtual(scenario())


def test_inv_181_classes_are_not_for_tenants_to_make_or_delete() -> None:
    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register(**offering(classes(world)["standard"]))
            (service,) = [r.assembly for r in world.replicas if r.service.name == "volumes"]
            assert service is not None
            for verb in ("apply", "delete"):
                subject = f"api.{world.region}.{world.project}.volumeclass.{verb}"
                reply = await service.api.request(subject, {"metadata": {"name": "mine"}, "spec": {}}, {})
                assert reply["error"]["code"] == "UNKNOWN_REQUEST"
            with pytest.raises(BadSubject):
                parse_key(f"spec.{world.region}.{world.project}.volumeclass.{uuid.UUID(int=7)}")
            listing = await service.api.request(f"api.{world.region}._.volumeclass.list", {}, {})
            assert [c["name"] for c in listing["items"]] == ["standard"]

    run_virtual(scenario())
