"""Identities through the whole product on virtual time."""

from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead_identity.__main__ import SERVICE as IDENTITY


def test_an_identity_is_realized_and_removed() -> None:
    async def scenario() -> None:
        async with SimWorld.running((IDENTITY,)) as world:
            await world.register()
            identity = await world.apply(world.key("identity"), "tenant", {"provider": "openstack"})
            await world.until(identity, "provisioned")
            await world.delete(identity)
            await world.until(identity, "gone")

    run_virtual(scenario())
