"""Create: what a wish becomes in the cloud."""

from tests.world.base import World


async def test_inv_129_inv_130_identity_create_minimal(world: World) -> None:
    """GIVEN a region WHEN an identity is applied THEN project, user, group, key pair and quotas bear its names."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    name = f"unikorn-identity-{identity.id}"
    project = await world.cloud_project(identity)
    users = await world.cloud.users(name=name)
    assert [u["name"] for u in users] == [name]
    assert [g["name"] for g in await world.cloud.server_groups(project)] == [name]
    assert [k["name"] for k in await world.cloud.keypairs(users[0]["id"])] == ["unikorn-openstack-provider"]
