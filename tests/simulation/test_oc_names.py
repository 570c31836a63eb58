"""Whose an object is: names that nearly match, one name twice, a name that changed (OC-23, OC-24)."""

import asyncio
from typing import Any

import pytest
from tests.simulation.cases import LISTENER, all_gone, everything, objects_named, posts, region_section
from tests.simulation.test_oc_credentials import wake_all, writes
from tests.simulation.test_server import message, network_of, server_in
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.cloud import names
from roadstead.subjects import Key
from roadstead.testing.cloudsim.caller import Caller

NEAR = ("node-4", "node-45", "xnode-4", "a-b", "a.b", "axb", "x")


async def ten_passes(world: SimWorld, times: int = 10) -> None:
    for _ in range(times):
        await wake_all(world)
        await asyncio.sleep(30)
    await world.quiet()


def found(world: SimWorld, service: str, kind: str) -> list[dict[str, Any]]:
    return [dict(o) for o in world.cloud.dump()[service][kind]["objects"]]


# ---------------------------------------------------------------- OC-23


def test_oc_23_servers_of_names_that_a_pattern_would_match_are_told_apart() -> None:
    """GIVEN a cloud whose name filters are patterns and servers `node-4`, `node-45`, `xnode-4`, `a.b`, `axb` ... WHEN each is looked up
    for ten passes and one is deleted THEN each name has its one server, and no other goes."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=23) as world:
            world.cloud.settings.name_filter = "fuzzy"
            world.cloud.settings.quota_compute["instances"] = -1
            await world.register()
            network, _ = await network_of(world)
            keys = {name: await server_in(world, network, name) for name in NEAR}
            for key in keys.values():
                await world.until(key, "provisioned", within=1200)
            mark = world.cloud.sequence + 1
            await ten_passes(world)
            assert writes(world, mark) == []
            servers = {s["name"]: s["id"] for s in found(world, "compute", "servers")}
            assert sorted(servers) == sorted(NEAR)
            assert len(servers) == posts(world, "/servers$")
            for gone in ("node-4", "a.b"):
                await world.delete(keys[gone])
                await world.until(keys[gone], "gone")
            left = {s["name"]: s["id"] for s in found(world, "compute", "servers")}
            assert left == {name: servers[name] for name in NEAR if name not in ("node-4", "a.b")}

    run_virtual(scenario())


PLACES = {
    "network": ("network", "networks", names.network_name),
    "securitygroup": ("network", "security_groups", names.security_group_name),
    "volume": ("volume", "volumes", names.volume_name),
    "loadbalancer": ("load-balancer", "load_balancers", names.loadbalancer_name),
}


def likenesses(name: str) -> list[str]:
    """Names that a prefix, a regular expression or a comparison without case takes for this one."""
    return [f"{name}-extra", f"x{name}", name.upper(), name.replace("-", ".", 1), name[:-1]]


@pytest.mark.parametrize("kind", PLACES)
def test_oc_23_objects_whose_names_are_only_like_ours_change_nothing(kind: str) -> None:
    """GIVEN objects of somebody beside each of ours, with names that a pattern matches WHEN ten passes run and ours is deleted
    THEN nothing is written for them, and they stay."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=230) as world:
            world.cloud.settings.name_filter = "fuzzy"
            await world.register(**region_section(world))
            keys = await everything(world)
            for key in keys.values():
                await world.until(key, "provisioned", within=1200)
            await world.quiet()
            put = {
                ident
                for name in likenesses(own_name(kind, keys[kind]))
                for ident in [beside(world, kind, name)]
            }
            await asyncio.sleep(30)
            mark = world.cloud.sequence + 1
            await ten_passes(world)
            assert writes(world, mark) == []
            assert {world.provisioning(key) for key in keys.values()} == {"provisioned"}
            if kind == "loadbalancer":  # theirs hold on to the network
                await world.delete(keys[kind])
                await world.until(keys[kind], "gone")
            else:
                await all_gone(world, keys["network"])
            assert put <= {o["id"] for o in found(world, *PLACES[kind][:2])}

    run_virtual(scenario())


@pytest.mark.parametrize("kind", PLACES)
def test_oc_23_two_of_exactly_our_name_are_a_consistency_fault_and_nothing_follows(kind: str) -> None:
    """GIVEN a second object of exactly our name WHEN passes run, and a deletion THEN both say so and touch neither."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=231) as world:
            await world.register(**region_section(world))
            keys = await everything(world)
            for key in keys.values():
                await world.until(key, "provisioned", within=1200)
            await world.quiet()
            key = keys[kind]
            twin = beside(world, kind, own_name(kind, key))
            both = {o["id"] for o in objects_named(world, *PLACES[kind][:2], own_name(kind, key))}
            assert len(both) == 2
            mark = world.cloud.sequence + 1
            await wake_all(world)
            await world.until(key, "error")
            document = world.status(key)
            assert document is not None
            assert document["status"]["code"] == "CONSISTENCY", message(document)
            await asyncio.sleep(600)
            path = f"/{PLACES[kind][1].replace('_', '')}"
            assert [w for w in writes(world, mark) if path in w[1].replace("-", "").replace("_", "")] == []
            assert {o["id"] for o in objects_named(world, *PLACES[kind][:2], own_name(kind, key))} == both
            remove(world, kind, twin)
            await world.until(key, "provisioned", within=1200)

    run_virtual(scenario())


def own_name(kind: str, key: Key) -> str:
    return PLACES[kind][2](key.id)


def beside(world: SimWorld, kind: str, name: str) -> str:
    """An object of that name in the identity's project, made with the identity's own rights."""
    tenant = somebody(world)
    if kind == "network":
        made = tenant.call("network", "POST", "/v2.0/networks", {"network": {"name": name}})["network"]
    elif kind == "securitygroup":
        body = {"security_group": {"name": name}}
        made = tenant.call("network", "POST", "/v2.0/security-groups", body)["security_group"]
    elif kind == "volume":
        wish = {"volume": {"name": name, "size": 1}}
        made = tenant.call("volume", "POST", f"/v3/{tenant.project_id}/volumes", wish)["volume"]
    else:
        (subnet,) = {lb["vip_subnet_id"] for lb in world.cloud.octavia.state.lbs}
        body = {"loadbalancer": {"name": name, "vip_subnet_id": subnet}}
        made = tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", body)["loadbalancer"]
    return str(made["id"])


def somebody(world: SimWorld) -> Caller:
    """A person with the identity's own rights."""
    (identity,) = [r for r in world.stores["identity"]._held.rows.values() if r.key.kind == "identity"]
    replica = next(r.assembly for r in world.replicas if r.service.name == "compute")
    assert replica is not None
    held = replica.platform.keyring.identity(world.region, identity.key.id)
    assert held is not None
    assert held.user_id is not None
    assert held.password is not None
    scope = {"project": {"id": held.project_id}}
    return Caller.login(world.cloud, {"id": held.user_id}, held.password, scope)


def remove(world: SimWorld, kind: str, ident: str) -> None:
    tenant = somebody(world)
    service, path = {
        "network": ("network", "/v2.0/networks"),
        "securitygroup": ("network", "/v2.0/security-groups"),
        "volume": ("volume", f"/v3/{tenant.project_id}/volumes"),
        "loadbalancer": ("load-balancer", "/v2/lbaas/loadbalancers"),
    }[kind]
    tenant.call(service, "DELETE", f"{path}/{ident}")


# ---------------------------------------------------------------- OC-24


@pytest.mark.parametrize("where", ["one_network", "two_networks"])
def test_oc_24_two_load_balancers_of_one_display_name_are_two(where: str) -> None:
    """GIVEN two wishes named `web`, ports 6666 and 8888 WHEN both are made, one renamed in the cloud, and the first deleted
    THEN there were two, each with its own address and port, and the other stands untouched."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=24) as world:
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            other = network
            if where == "two_networks":
                other = await world.apply(world.key("network"), "net-1", {"prefix": "192.168.10.0/24"})
            first, second = [
                await world.apply(
                    world.key("loadbalancer"), "web", {"listeners": [{**LISTENER, "port": port}]}, networkId=where.id
                )
                for port, where in ((6666, network), (8888, other))
            ]  # fmt: skip
            addresses = {}
            for key in (first, second):
                document = await world.until(key, "provisioned", within=1200)
                addresses[key] = document["status"]["vipAddress"]
            state = world.cloud.octavia.state
            assert len({(lb["vip_address"], lb["vip_subnet_id"]) for lb in state.lbs}) == 2
            ports = {listener["name"]: listener["protocol_port"] for listener in state.listeners}
            assert ports == {f"lb-{first.id}-web-listener": 6666, f"lb-{second.id}-web-listener": 8888}
            (kept,) = [lb for lb in state.lbs if lb["name"] == f"lb-{second.id}"]
            kept["name"] = "web"  # by somebody in the cloud
            before = dict(kept)
            mark = world.cloud.sequence + 1
            await ten_passes(world, 3)
            assert writes(world, mark) == [], "the link is the mark, not the name"
            await world.delete(first)
            await world.until(first, "gone")
            assert [dict(lb) for lb in state.lbs] == [before]
            assert world.provisioning(second) == "provisioned"
            await world.delete(second)
            await world.until(second, "gone")
            assert not list(state.lbs)

    run_virtual(scenario())


def test_oc_24_two_deployments_in_one_cloud_leave_each_other_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN two deployments with wishes of the same names WHEN one takes all of its own away
    THEN the other's objects are the same as before, and its passes write nothing."""

    async def scenario() -> None:
        async with (
            SimWorld.running(ALL, seed=240) as one,
            SimWorld.running(ALL, seed=241, cloud=one.cloud) as two,
        ):
            worlds = {}
            for world, prefix in ((one, "one"), (two, "two")):
                await registered(world, prefix, monkeypatch)
                worlds[prefix] = await everything(world)
            for world, keys in ((one, worlds["one"]), (two, worlds["two"])):
                for key in keys.values():
                    await world.until(key, "provisioned", within=1800)
                await world.quiet()
            assert len({lb["vip_port_id"] for lb in one.cloud.octavia.state.lbs}) == 2
            await all_gone(one, worlds["one"]["network"])
            (left,) = list(one.cloud.octavia.state.lbs)
            assert left["name"] == f"lb-{worlds['two']['loadbalancer'].id}"
            mark = one.cloud.sequence + 1
            await ten_passes(two, 3)
            assert writes(two, mark) == []
            assert {two.provisioning(key) for key in worlds["two"].values()} == {"provisioned"}

    run_virtual(scenario())


async def registered(world: SimWorld, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `SimWorld.register`, with a domain of its own."""
    configure = Admin.configure
    with monkeypatch.context() as patched:
        patched.setattr(Admin, "configure", lambda admin: configure(admin, prefix))
        await world.register(**region_section(world))
