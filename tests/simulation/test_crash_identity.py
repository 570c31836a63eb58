"""An identity is made and removed while its service is killed at every await between two effects."""

from tests.world.admin import Admin
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead_identity.__main__ import SERVICE as IDENTITY


async def life(kill_at: int | None) -> tuple[int, list[str], int]:
    """One life of an identity; (awaits counted, leftovers, kills)."""
    async with SimWorld.running((IDENTITY,), seed=7) as world:
        await world.register()
        before = Admin(world.cloud).objects()
        world.points.count = 0
        world.points.only = "identity"
        world.points.kill_at = kill_at
        identity = await world.apply(world.key("identity"), "tenant", {"provider": "openstack"})
        await world.until(identity, "provisioned", within=900)
        made = Admin(world.cloud).objects() - before
        count_up = world.points.count
        kinds = sorted(k for k, _ in made if k != "security_groups")
        assert kinds == ["application_credentials", "keypairs", "projects", "server_groups", "users"], made
        await world.delete(identity)
        await world.until(identity, "gone", within=900)
        left = Admin(world.cloud).objects() - before
        assert {k for k, _ in left} <= {"security_groups"}, left  # the default group is Neutron's own
        assert count_up > 0
        return world.points.count, [], world.kills


def test_quiet_life_leaves_nothing() -> None:
    count, _, kills = run_virtual(life(None))
    assert count > 20
    assert kills == 0


def test_a_kill_at_every_await_leaves_one_of_each_and_then_nothing() -> None:
    total, _, _ = run_virtual(life(None))
    for point in range(1, total + 1):
        _, _, kills = run_virtual(life(point))
        assert kills >= 1, point
