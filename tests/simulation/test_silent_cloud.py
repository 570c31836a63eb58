"""A service of a cloud falls silent while its Region is at rest: the Region says so, once, and takes it back."""

import asyncio
import json
import uuid

from tests.simulation.cases import fault
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key, status_subject


def told(world: SimWorld, region: Key) -> list[str]:
    """CloudReachable in every STATUS message of the region, in order."""
    messages = [m for m in world.bus.streams["STATUS"] if m.subject == status_subject(region)]
    found = [json.loads(m.payload)["status"].get("conditions", ()) for m in messages]
    return [c["status"] for conditions in found for c in conditions if c["type"] == "CloudReachable"]


def test_a_silent_service_that_others_meet_is_a_condition_on_the_region_while_it_lasts() -> None:
    """GIVEN a region at rest WHEN Neutron gives no answer to the network service for ten minutes
    THEN the Region reads CloudReachable=False from then on, in two messages all in all, and True when Neutron is back."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=71) as world:
            region = await world.register()
            identity, network = world.key("identity"), world.key("network", str(uuid.UUID(int=7)))
            await world.apply(identity, "team", {"provider": "openstack"})
            await world.apply(network, "net", {"prefix": "10.0.0.0/24"}, identityId=identity.id)
            await world.until(network, "provisioned")
            await world.quiet()
            assert told(world, region)[-1] == "True"
            before = len(told(world, region))
            silence = fault(world, "no_answer_before", service="network", times=None)
            edit = {"prefix": "10.0.0.0/24", "dnsNameservers": ["192.0.2.1"]}
            await world.apply(network, "net", edit, identityId=identity.id)
            await world.until(region, "error", within=600)
            document = world.status(region)
            assert document is not None
            (condition,) = [c for c in document["status"]["conditions"] if c["type"] == "CloudReachable"]
            assert (condition["status"], condition["reason"]) == ("False", "NoAnswer")
            await asyncio.sleep(600)
            assert told(world, region)[before:].count("False") == 1, "said once, not at every look"
            world.cloud.faults.remove(silence)
            await world.until(region, "provisioned", within=600)
            await world.until(network, "provisioned", within=1800)
            await world.quiet()
            assert told(world, region)[-1] == "True"
            assert len(told(world, region)) <= before + 3

    run_virtual(scenario())
