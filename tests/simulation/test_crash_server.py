"""A server with port and floating IP is made and removed while its service is killed at every await between two effects."""

from collections import Counter

from tests.simulation.test_calls import NET, RULES, server
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

COUNTED = ("servers", "ports", "floating_ips")


async def life(kill_at: int | None, service: str = "compute") -> tuple[int, int]:
    """One server's life; (awaits of the service, kills)."""
    async with SimWorld.running(ALL, seed=3) as world:
        await world.register()
        network = await world.apply(world.key("network"), "net-1", NET)
        group = await world.apply(world.key("securitygroup"), "web", RULES, networkId=network.id)
        await world.until(network, "provisioned")
        await world.until(group, "provisioned")
        before = Admin(world.cloud).objects()
        world.points.count, world.points.only, world.points.kill_at = 0, service, kill_at
        web = await server(
            world, network, "web-1", securityGroups=[{"id": group.id}], publicIPAllocation={"enabled": True}
        )
        await world.until(web, "provisioned", within=1800)
        made = Counter(kind for kind, _ in Admin(world.cloud).objects() - before)
        # the floating IP has a port of its own on the external network, which the administrator sees
        assert {k: made[k] for k in ("servers", "floating_ips")} == {"servers": 1, "floating_ips": 1}, made
        assert len([p for p in names(world, "ports") if p.startswith("server-")]) == 1
        await world.delete(web)
        await world.until(web, "gone", within=1800)
        left = Admin(world.cloud).objects() - before
        assert not left, left
        creates = [
            c for c in world.cloud.log if c.method == "POST" and c.path.endswith("/servers") and c.took_effect
        ]
        assert len(creates) == 1
        return world.points.count, world.kills


def names(world: SimWorld, kind: str) -> list[str]:
    return [str(o["name"]) for o in world.cloud.dump()["network"][kind]["objects"]]


def test_a_kill_at_every_await_of_compute_leaves_one_server_one_port_one_floating_ip() -> None:
    total, kills = run_virtual(life(None))
    assert (total > 40, kills) == (True, 0)
    for point in range(1, total + 1):
        _, kills = run_virtual(life(point))
        assert kills >= 1, point
