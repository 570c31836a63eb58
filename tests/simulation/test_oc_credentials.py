"""Credentials of the wrong cloud, new credentials without a restart, and failures that heal (OC-29, OC-31, OC-32)."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.simulation.cases import all_gone, fault, posts, region_section
from tests.simulation.test_oc_leaks import active, until_active
from tests.simulation.test_server import NET, network_of, server_in
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key

SWEEP = 60.0
NUMBER = 12


async def hand_in(world: SimWorld, secret: Mapping[str, str]) -> None:
    """New credentials of the region, as `region register` hands them in."""
    reply = await world.bus.request(
        "rpc.identity.region.credentials", {"region": world.region, "secret": dict(secret)}
    )
    assert reply.get("version"), reply


async def wake_all(world: SimWorld) -> None:
    """Every row of every service passes."""
    for name, store in world.stores.items():
        rows = [(r.key.kind, r.key.id) for r in store._held.rows.values() if r.gone_at is None]
        await store.wake(rows, {"reason": "test"})
        for replica in world.replicas:
            if replica.service.name == name and replica.assembly is not None:
                replica.assembly.runner.nudge()


def secret_of(world: SimWorld) -> dict[str, str]:
    """The region's secret as the identity service holds it."""
    assembly = next(r.assembly for r in world.replicas if r.service.name == "identity")
    assert assembly is not None
    held = assembly.platform.keyring.region(world.region)
    assert held is not None
    return {
        "domain-id": held.domain_id,
        "user-id": held.user_id,
        "password": held.password,
        "project-id": held.project_id,
    }


def writes(world: SimWorld, since: int) -> list[tuple[str, str, str | None]]:
    """What the product wrote; administrators aside."""
    return [
        (c.method, c.path, c.user_name) for c in world.cloud.log.writes(since=since) if c.user_name != "admin"
    ]


async def fleet(world: SimWorld) -> tuple[Key, list[Key]]:
    network, _ = await network_of(world)
    servers = [await server_in(world, network, f"web-{n}") for n in range(NUMBER)]
    for key in servers:
        await world.until(key, "provisioned")
        await until_active(world, key, "Running")
    await world.quiet()
    return network, servers


def test_oc_29_credentials_of_another_project_lose_and_make_nothing() -> None:
    """GIVEN servers on record WHEN the region's credentials are those of another domain and project for ten minutes
    THEN nothing is made, changed or lost, the rows say why, and with the right ones back nothing is written either."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=29) as world:
            region = await world.register()
            network, servers = await fleet(world)
            right, wrong = secret_of(world), Admin(world.cloud).configure("another")
            mark = world.cloud.sequence + 1
            await hand_in(world, wrong)
            for _ in range(10):
                await wake_all(world)
                await asyncio.sleep(SWEEP)
            assert writes(world, mark) == []
            assert len(world.cloud.nova.servers) == NUMBER
            for key in servers:
                document = world.status(key)
                assert document is not None
                assert active(document) == "Running"
            assert code(world, region) == "WRONG_CLOUD"
            for key in (identity_of(world, network), network, *servers):
                assert code(world, key) == "WAITING", world.status(key)
            await hand_in(world, right)
            await wake_all(world)
            for key in (region, network, *servers):
                await world.until(key, "provisioned")
            assert writes(world, mark) == []

    run_virtual(scenario())


def code(world: SimWorld, key: Key) -> Any:
    document = world.status(key)
    assert document is not None
    return document["status"].get("code")


def identity_of(world: SimWorld, network: Key) -> Key:
    document = world.status(network)
    assert document is not None
    return world.key("identity", document["metadata"]["identityId"])


def test_oc_31_a_server_that_was_in_error_and_came_back_reads_healthy_again() -> None:
    """GIVEN a booted server WHEN it goes to ERROR in the cloud and comes back
    THEN its record follows both times, by itself, and it is neither deleted nor made again."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=31) as world:
            await world.register()
            network, _ = await network_of(world)
            server = await server_in(world, network, "web-1")
            await world.until(server, "provisioned")
            await until_active(world, server, "Running")
            mark = world.cloud.sequence + 1
            (found,) = world.cloud.nova.servers
            for _ in range(2):
                world.cloud.foreign("compute", "error", found, message="disk on fire")
                await until_active(world, server, "Error")
                world.cloud.foreign("compute", "recover", found)
                await until_active(world, server, "Running")
            await world.quiet()
            assert world.provisioning(server) == "provisioned"
            assert writes(world, mark) == []
            assert list(world.cloud.nova.servers) == [found]

    run_virtual(scenario())


def test_oc_31_one_bad_answer_of_the_load_balancer_service_heals() -> None:
    """GIVEN a load balancer being made WHEN a write of it is answered 502 once THEN it reaches provisioned by itself."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=311) as world:
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            fault(world, "status", service="load-balancer", method="POST", status=502)
            member = {"address": "192.168.10.200", "port": 8080}
            listener = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": [member]}}
            spec = {"listeners": [listener]}
            balancer = await world.apply(world.key("loadbalancer"), "front", spec, networkId=network.id)
            await world.until(balancer, "provisioned")
            assert not world.cloud.faults.rules
            assert posts(world, "/loadbalancers$") == 1
            await all_gone(world, network)

    run_virtual(scenario())


def new_provider_user(world: SimWorld) -> dict[str, str]:
    """Another service user with the same rights in the same domain; the right secret for it."""
    admin, old = Admin(world.cloud), secret_of(world)
    domain, project = old["domain-id"], old["project-id"]
    user = admin.call(
        "POST",
        "/identity/v3/users",
        {"user": {"name": "second", "domain_id": domain, "password": "secret-2"}},
    )["user"]["id"]
    roles = {r["name"]: r["id"] for r in admin.call("GET", "/identity/v3/roles")["roles"]}
    for role in ("member", "load-balancer_member", "manager"):
        admin.call("PUT", f"/identity/v3/domains/{domain}/users/{user}/roles/{roles[role]}")
    for role in ("member", "manager"):
        admin.call("PUT", f"/identity/v3/projects/{project}/users/{user}/roles/{roles[role]}")
    return {**old, "user-id": user, "password": "secret-2"}


def test_oc_32_inv_027_new_credentials_of_the_region_are_used_within_a_minute() -> None:
    """GIVEN creates under way WHEN the region gets a new service user and the old one loses its rights
    THEN within a minute every call uses the new one, nothing is made twice, and nothing is replaced."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=32, replicas=2) as world:
            await world.register()
            settled, _ = await network_of(world)
            standing = await server_in(world, settled, "standing")
            await world.until(standing, "provisioned")
            old = secret_of(world)["user-id"]
            wanted = [
                await world.apply(world.key("network"), f"net-{n}", {**NET, "prefix": f"10.{n}.0.0/24"})
                for n in range(10)
            ]
            servers = [await server_in(world, settled, f"web-{n}") for n in range(10)]
            await asyncio.sleep(1)
            await hand_in(world, new_provider_user(world))
            world.cloud.foreign("identity", "drop_roles", old)
            await asyncio.sleep(60)
            mark = world.cloud.sequence + 1
            for key in (*wanted, *servers):
                await world.until(key, "provisioned", within=1800)
            await wake_all(world)
            await world.quiet()
            late = [c for c in world.cloud.log if c.sequence >= mark and c.user_id == old]
            assert late == []
            assert posts(world, "/networks$") == 11
            assert posts(world, "/servers$") == 11
            assert len(world.cloud.nova.servers) == 11
            assert not [c for c in world.cloud.log if c.method == "DELETE" and "/servers/" in c.path]
            assert world.provisioning(standing) == "provisioned"

    run_virtual(scenario())


def test_oc_32_a_lost_application_credential_hurts_nobody_s_resources() -> None:
    """GIVEN two networks with an identity each WHEN the application credential of one identity vanishes in the cloud
    THEN it is made anew by the identity's next pass, and servers are still made for both."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=322) as world:
            await world.register()
            networks = [
                await world.apply(world.key("network"), name, {**NET, "prefix": prefix})
                for name, prefix in (("one", "10.1.0.0/24"), ("two", "10.2.0.0/24"))
            ]
            for key in networks:
                await world.until(key, "provisioned")
            store = world.cloud.keystone.store
            whose = identity_of(world, networks[0]).id
            (lost,) = [c.id for c in store.credentials.values() if whose in c.name]
            del store.credentials[lost]
            await wake_all(world)
            for network in networks:
                await world.until(await server_in(world, network, "web-1"), "provisioned")
            await world.quiet()
            (made,) = [c.id for c in store.credentials.values() if whose in c.name]
            assert made != lost
            key = identity_of(world, networks[0])
            told = world.stores["identity"]._held.history[key.kind, key.id]
            assert any(e.body.get("rule") == "4.1-6-gone" for e in told), "history says why"

    run_virtual(scenario())
