"""What a pass costs: requests are counted at the cloud, not believed."""

import asyncio
import uuid
from typing import Any

from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key

NET = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
RULES = {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": 22}}]}


async def server(world: SimWorld, network: Key, name: str, **parts: Any) -> Key:
    """Apply a server on the network; any flavor, the Ubuntu image."""
    admin = Admin(world.cloud)
    flavor = min(admin.call("GET", "/compute/v2.1/flavors/detail")["flavors"], key=lambda f: f["ram"])["id"]
    images = {i["name"]: i["id"] for i in admin.call("GET", "/image/v2/images")["images"]}
    spec = {
        "flavorID": flavor,
        "image": {"id": images["ubuntu-24.04"]},
        "networks": [{"id": network.id}],
        **parts,
    }
    key = world.key("server", str(uuid.uuid5(uuid.UUID(network.id), name)))
    return await world.apply(key, name, spec)


async def pass_over(world: SimWorld, key: Key) -> list[Any]:
    """Wake one resource; the requests of its pass, logins aside."""
    mark = world.cloud.sequence
    for replica in world.replicas:
        if replica.assembly is not None and key.kind in replica.assembly.handlers.kinds:
            await replica.assembly.platform.store.wake([(key.kind, key.id)], {"reason": "test"})
            replica.assembly.runner.nudge()
    await world.quiet()
    calls = [c for c in world.cloud.log if c.sequence > mark and not c.path.endswith("/auth/tokens")]
    return [c for c in calls if c.user_name != "admin"]


def test_a_pass_over_a_settled_server_makes_at_most_five_gets_and_no_write() -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            await world.register()
            network = await world.apply(world.key("network"), "net-1", NET)
            group = await world.apply(world.key("securitygroup"), "web", RULES, networkId=network.id)
            await world.until(network, "provisioned")
            web = await server(
                world,
                network,
                "web-1",
                securityGroups=[{"id": group.id}],
                publicIPAllocation={"enabled": True},
            )
            await world.until(web, "provisioned")
            await asyncio.sleep(5)  # it is shown to run: the monitor looks no more
            await world.quiet()
            calls = await pass_over(world, web)
            assert [c for c in calls if c.is_write] == []
            assert len([c for c in calls if c.service != "image" and "flavors" not in c.path]) <= 5, calls

    run_virtual(scenario())


def test_inv_230_the_sweep_of_1000_servers_in_10_projects_makes_no_request_per_server() -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            world.cloud.settings.quota_compute.update(instances=-1, cores=-1, ram=-1)
            world.cloud.settings.quota_network.update(port=-1, network=-1, router=-1)
            await world.register()
            servers: list[Key] = []
            for n in range(10):
                network = await world.apply(
                    world.key("network"), f"net-{n}", {**NET, "prefix": f"10.{n}.0.0/22"}
                )
                await world.until(network, "provisioned")
                servers += [await server(world, network, f"web-{i}") for i in range(100)]
            for key in servers:
                await world.until(key, "provisioned", within=3600)
            await world.quiet()
            monitor = next(r.assembly for r in world.replicas if r.service.name == "monitor")
            assert monitor is not None
            await monitor.extras["watch"].sweep_once()
            await world.quiet()
            mark = world.cloud.sequence
            await monitor.extras["watch"].sweep_once()
            calls = [c for c in world.cloud.log if c.sequence > mark and not c.path.endswith("/auth/tokens")]
            assert len(calls) == 10, [(c.method, c.path) for c in calls][:20]
            assert {c.path.rpartition("/")[2] for c in calls} == {"detail"}

    run_virtual(scenario())
