"""How a server leaves what it rests in: a park whose cause only its own pass saw, an attachment taken back, a wreck that no retry owns."""

import asyncio
from typing import Any

from tests.simulation.cases import region_section
from tests.simulation.test_server import named, network_of, server_in, volume_in
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key
from roadstead.testing.cloudsim.faults import Outcome

SWEEP = 60.0


async def after_a_sweep(world: SimWorld) -> None:
    await asyncio.sleep(SWEEP - world.clock.monotonic() % SWEEP + 1)


def machine(world: SimWorld, key: Key) -> Any:
    """The server of that resource in the cloud."""
    (found,) = [s for s in world.cloud.nova.servers.values() if s.metadata.get("serverID") == key.id]
    return found


def test_inv_097_a_park_ends_when_its_server_recovers_before_anybody_looked() -> None:
    """The error came and went between two sweeps: what the monitor reads is what it read before."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=97) as world:
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1")
            await world.until(server, "provisioned")
            await world.quiet()
            await after_a_sweep(world)
            images = named(world, "/image/v2/images", "images")
            await server_in(world, network, "web-1", image={"id": images["debian-12"]})
            await asyncio.sleep(1)
            await world.until(server, "provisioned", within=20)
            world.cloud.faults.add_outcome(Outcome("server_rebuild"))
            await server_in(world, network, "web-1")
            document = await world.until(server, "error", within=20)
            assert document["status"]["code"] == "REBUILD_CONVERGED_ERROR"
            assert document["status"]["observed"]["errored"] is False, "no sweep saw the error"
            path = f"/compute/v2.1/servers/{machine(world, server).id}/action"
            Admin(world.cloud).call("POST", path, {"reboot": {"type": "HARD"}})
            await world.until(server, "provisioned", within=2 * SWEEP)

    run_virtual(scenario())


def test_13_4_a_volume_that_was_wished_on_and_off_in_one_breath_can_be_deleted() -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=134) as world:
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            volume = await volume_in(world, network, "data")
            server = await server_in(world, network, "web-1")
            for key in (server, volume):
                await world.until(key, "provisioned")
            await world.quiet()
            await server_in(world, network, "web-1", volumes=[{"id": volume.id}])
            await asyncio.sleep(0.1)
            held = world.cloud.cinder.volume(next(iter(machine(world, server).attachments)))
            assert held is not None
            assert (held["status"], held["attachments"]) == ("reserved", []), "the cloud is at it still"
            await server_in(world, network, "web-1")
            await world.delete(volume)
            await world.until(volume, "gone")
            await world.until(server, "provisioned")
            assert machine(world, server).attachments == {}

    run_virtual(scenario())


def test_inv_081_inv_302_a_wreck_that_no_retry_owns_is_left_alone_until_it_is_removed() -> None:
    """GIVEN a server that booted once and whose second machine never did WHEN its image is edited
    THEN it waits and the machine stays; once somebody removes that, the server is made with the image of the spec."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=302) as world:
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1")
            await world.until(server, "provisioned")
            await after_a_sweep(world)
            document = world.status(server)
            assert document is not None
            assert document["status"]["provisionedAt"]
            world.cloud.faults.add_outcome(Outcome("server_build"))
            world.cloud.foreign("compute", "delete", machine(world, server).id)
            await asyncio.sleep(3 * SWEEP)
            wreck = machine(world, server)
            assert (wreck.vm_state, wreck.launched_at) == ("error", None)
            images = named(world, "/image/v2/images", "images")
            other = images["debian-12"]
            await server_in(world, network, "web-1", image={"id": other})
            await asyncio.sleep(1800)
            assert machine(world, server).id == wreck.id
            assert world.provisioning(server) == "provisioning"
            Admin(world.cloud).tries("DELETE", f"/compute/v2.1/servers/{wreck.id}")
            await world.until(server, "provisioned")
            await asyncio.sleep(SWEEP)
            assert (machine(world, server).image_id, machine(world, server).vm_state) == (other, "active")

    run_virtual(scenario())
