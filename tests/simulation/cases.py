"""What the cases of lost answers, leaks and slow clouds have in common: one of everything, and what the cloud holds of it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.simulation.test_loadbalancer import OVN
from tests.simulation.test_server import named, network_of, offering, server_in, volume_in
from tests.world.admin import Admin
from tests.world.sim import SimWorld

from roadstead.subjects import Key
from roadstead.testing.cloudsim.faults import Fault

ONE_OF_EACH = {
    "projects": 1, "users": 1, "application_credentials": 1, "server_groups": 1, "keypairs": 1,
    "networks": 1, "subnets": 1, "routers": 1, "servers": 1, "volumes": 1, "floating_ips": 1, "load_balancers": 1, "listeners": 1, "pools": 1, "members": 1,
}  # fmt: skip
MEMBER = {"address": "192.168.10.200", "port": 8080}
LISTENER = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": [MEMBER]}}
POSTS = (
    "/projects$", "/users$", "/application_credentials$", "/os-server-groups$", "/os-keypairs$",
    "/networks$", "/subnets$", "/routers$", "/security-groups$", "/security-group-rules$", "/ports$", "/floatingips$",
    "/servers$", "/volumes$", "/os-volume_attachments$", "/loadbalancers$",
)  # fmt: skip


async def everything(world: SimWorld) -> dict[str, Key]:
    """A network with its identity, a group, a volume, a server with all of them and an address, and a load balancer."""
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
    wish = {"listeners": [LISTENER]}
    balancer = await world.apply(world.key("loadbalancer"), "front", wish, networkId=network.id)
    return {
        "network": network, "securitygroup": group, "volume": volume, "server": server, "loadbalancer": balancer,
    }  # fmt: skip


def region_section(world: SimWorld) -> dict[str, Any]:
    return {**offering(world), **OVN}


def made_since(world: SimWorld, before: set[tuple[str, str]]) -> Counter[str]:
    """Objects by kind, without what the cloud makes by itself."""
    found = Counter(kind for kind, _ in Admin(world.cloud).objects() - before)
    return Counter({kind: number for kind, number in found.items() if kind in ONE_OF_EACH})


def objects_named(world: SimWorld, service: str, kind: str, name: str) -> list[Mapping[str, Any]]:
    return [o for o in world.cloud.dump()[service][kind]["objects"] if o["name"] == name]


def posts(world: SimWorld, path: str, *, since: int = 0) -> int:
    """How many POSTs to a path had an effect."""
    calls = world.cloud.log.calls(method="POST", path=path, since=since)
    return len([c for c in calls if c.took_effect and (c.status < 300 or c.no_answer or c.fault is not None)])


def fault(world: SimWorld, kind: str, **criteria: Any) -> str:
    return world.cloud.faults.add(Fault(kind, **criteria))


async def all_gone(world: SimWorld, network: Key, *, within: float = 7200.0) -> None:
    """Delete the network with all its children; nothing of it may be left anywhere."""
    await world.delete(network, cascade=True)
    await world.until(network, "gone", within=within)
    await world.quiet(within=within)


__all__ = [
    "LISTENER", "ONE_OF_EACH", "POSTS", "all_gone", "everything", "fault", "made_since", "named", "objects_named",
    "posts", "region_section",
]  # fmt: skip
