"""One contract for both ways to a cloud: straight into the simulated cloud, and over HTTP through openstacksdk."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from roadstead.clock import SystemClock
from roadstead.cloud.configure import Wanted, configure
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.lookup import one
from roadstead.cloud.port import (
    Call,
    CloudError,
    Principal,
    PrivilegedPrincipal,
    RegionDomain,
    RegionProject,
    Scope,
    Verdict,
)
from roadstead.cloud.sdk import SdkSender
from roadstead.cloud.settings import CloudSettings
from roadstead.testing.cloudsim import Cloud, Fault, SimSettings
from roadstead.testing.cloudsim.http import Front
from roadstead.testing.direct import DirectAdministrator, DirectSender

REGION, IDENTITY = "r1", "i1"
DOMAIN = RegionDomain(REGION)
INVENTORY = RegionProject(REGION)
PRINCIPAL = Principal(REGION, IDENTITY)
PRIVILEGED = PrivilegedPrincipal(REGION, IDENTITY)

pytestmark = pytest.mark.timeout(60)


@dataclass
class World:
    """A simulated cloud with one region registered and one identity made, and a way to it."""

    sim: Cloud
    keyring: Keyring
    secret: dict[str, str]
    make: Callable[..., CloudEngine]
    engine: CloudEngine
    sender: DirectSender | SdkSender

    async def ask(self, scope: Scope, service: str, verb: str, **args: Any) -> Any:
        return (await self.engine.call(Call(scope, service, verb, args))).value

    async def refusal(self, scope: Scope, service: str, verb: str, **args: Any) -> CloudError:
        with pytest.raises(CloudError) as caught:
            await self.engine.call(Call(scope, service, verb, args))
        return caught.value

    def fault(self, kind: str, **more: Any) -> None:
        self.sim.faults.add(Fault(kind, **more))

    def requests(self, service: str, method: str) -> int:
        return len(self.sim.log.calls(service=service, method=method))


async def _identity(
    engine: CloudEngine, keyring: Keyring, region_user: str, identity: str = IDENTITY
) -> None:
    """Project, user and grants of an identity, as its passes make them."""

    async def ask(verb: str, **args: Any) -> Any:
        return (await engine.call(Call(DOMAIN, "identity", verb, args))).value

    credential = keyring.region(REGION)
    assert credential is not None
    roles = {role["name"]: role["id"] for role in await ask("role.list")}
    name = f"unikorn-identity-{identity}"
    project = await ask("project.create", json={"project": {"name": name, "domain_id": credential.domain_id}})
    await ask("grant.put", project=project["id"], user=region_user, role=roles["manager"])
    password = str(uuid.uuid4())
    user = await ask(
        "user.create", json={"user": {"name": name, "domain_id": credential.domain_id, "password": password}}
    )
    for role in ("member", "load-balancer_member"):
        await ask("grant.put", project=project["id"], user=user["id"], role=roles[role])
    record = {"projectID": project["id"], "userID": user["id"], "password": password}
    keyring.put_identity(REGION, identity, record, 1)


@pytest.fixture(params=["direct", pytest.param("http", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    settings = SimSettings()
    settings.durations.scale(0)
    sim = Cloud(settings=settings, seed=7)
    front = Front(sim) if request.param == "http" else None
    if front is not None:
        front.__enter__()
    senders: list[DirectSender | SdkSender] = []
    try:
        keyring = Keyring()
        clock = SystemClock()

        def make(**changes: Any) -> CloudEngine:
            bounds = CloudSettings(**changes)
            sender = SdkSender(bounds) if front is not None else DirectSender(sim, clock)
            senders.append(sender)
            return CloudEngine(sender, keyring, clock, bounds)

        found = (await configure(DirectAdministrator(sim), Wanted())).values
        secret = {
            "domain-id": found["DOMAIN_ID"],
            "user-id": found["USER_ID"],
            "password": found["PASSWORD"],
            "project-id": found["PROJECT_ID"],
        }
        keyring.put_endpoint(REGION, f"{sim.settings.base_url}/identity/v3", "RegionOne")
        keyring.put_region_secret(REGION, secret, 1)
        engine = make()
        await _identity(engine, keyring, secret["user-id"])
        sim.log.clear()
        yield World(sim, keyring, secret, make, engine, senders[0])
    finally:
        for sender in senders:
            await sender.close()
        if front is not None:
            front.__exit__(None, None, None)


async def _network(world: World, name: str) -> dict[str, Any]:
    found: dict[str, Any] = await world.ask(
        PRIVILEGED, "network", "network.create", json={"network": {"name": name}}
    )
    return found


# ---------------------------------------------------------------- scopes


async def test_inv_001_inv_002_each_scope_reaches_what_is_its_own(world: World) -> None:
    assert {each["id"] for each in await world.ask(DOMAIN, "identity", "project.list")} >= {
        world.secret["project-id"]
    }
    assert await world.ask(INVENTORY, "compute", "flavor.detail")
    assert await world.ask(PRINCIPAL, "compute", "server.detail") == []
    assert (await world.ask(PRIVILEGED, "compute", "quota.get"))["instances"]
    scopes = {(call.scope, call.project_id or call.domain_id) for call in world.sim.log.calls(method="GET")}
    record = world.keyring.record(REGION, IDENTITY)
    assert scopes == {
        ("domain", world.secret["domain-id"]),
        ("project", world.secret["project-id"]),
        ("project", record["projectID"]),
    }


async def test_inv_290_the_microversion_is_2_90(world: World) -> None:
    server = await world.ask(PRINCIPAL, "compute", "server.detail")
    assert server == []
    with pytest.raises(ValueError, match=r"2\.92"):
        world.make(nova_microversion="2.93")


async def test_a_member_is_refused_what_a_manager_may(world: World) -> None:
    error = await world.refusal(PRINCIPAL, "compute", "quota.put", json={"quota_set": {"instances": 5}})
    assert error.verdict is Verdict.FORBIDDEN
    await world.ask(PRIVILEGED, "compute", "quota.put", json={"quota_set": {"instances": 5}})


# ---------------------------------------------------------------- lists and look-ups


@pytest.mark.parametrize("count", [1, 2, 3, 5])
async def test_lists_are_whole_with_pages_of_two(world: World, count: int) -> None:
    engine = world.make(page_limit=2)
    names = {f"n{i}" for i in range(count)}
    for name in names:
        await _network(world, name)
    for i in range(count):
        await world.ask(
            PRINCIPAL, "block-storage", "volume.create", json={"volume": {"name": f"v{i}", "size": 1}}
        )
    networks = await engine.call(Call(PRIVILEGED, "network", "network.list"))
    assert sorted(each["name"] for each in networks.value if each["name"] in names) == sorted(names)
    assert networks.requests > count // 2
    volumes = await engine.call(Call(PRINCIPAL, "block-storage", "volume.detail"))
    assert sorted(each["name"] for each in volumes.value) == [f"v{i}" for i in range(count)]
    images = await engine.call(Call(INVENTORY, "image", "image.list"))
    assert len({each["id"] for each in images.value}) == len(images.value) >= 3
    assert images.requests == 2


async def test_a_small_page_size_of_the_cloud_cuts_nothing(world: World) -> None:
    pages = world.sim.settings.pages
    pages.compute = pages.image = pages.volume = pages.load_balancer = 2
    assert len(await world.ask(INVENTORY, "image", "image.list")) >= 3
    assert len(await world.ask(INVENTORY, "compute", "flavor.detail")) >= 3


async def test_inv_142_names_that_only_look_alike_are_not_found(world: World) -> None:
    world.sim.settings.name_filter = "fuzzy"
    for name in ("network-1", "network-12", "NETWORK-1x", "xnetwork-1"):
        await _network(world, name)
    found = await world.ask(PRIVILEGED, "network", "network.list", query={"name": "network-1"})
    assert len(found) > 1
    match = one(found, "network-1")
    assert match is not None
    assert match["name"] == "network-1"
    assert one(found, "network-") is None


async def test_two_of_one_name_are_a_consistency_error(world: World) -> None:
    for _ in range(2):
        await _network(world, "twin")
    with pytest.raises(CloudError) as caught:
        one(await world.ask(PRIVILEGED, "network", "network.list", query={"name": "twin"}), "twin")
    assert caught.value.verdict is Verdict.CONSISTENCY


# ---------------------------------------------------------------- verdicts


async def test_gone_exists_in_use_quota_refused(world: World) -> None:
    missing = str(uuid.uuid4())
    for service, verb in (
        ("compute", "server.get"),
        ("compute", "server.delete"),
        ("network", "port.get"),
        ("network", "network.delete"),
        ("block-storage", "volume.get"),
        ("block-storage", "volume.delete"),
        ("image", "image.get"),
        ("load-balancer", "loadbalancer.get"),
        ("load-balancer", "pool.delete"),
    ):
        assert (await world.refusal(PRINCIPAL, service, verb, id=missing)).verdict is Verdict.GONE, (
            service,
            verb,
        )

    key = {"keypair": {"name": "k", "public_key": _public_key()}}
    await world.ask(PRINCIPAL, "compute", "keypair.create", json=key)
    assert (await world.refusal(PRINCIPAL, "compute", "keypair.create", json=key)).verdict is Verdict.EXISTS
    project = {"project": {"name": f"unikorn-identity-{IDENTITY}", "domain_id": world.secret["domain-id"]}}
    assert (await world.refusal(DOMAIN, "identity", "project.create", json=project)).verdict is Verdict.EXISTS

    network = await _network(world, "n")
    port = {"port": {"network_id": network["id"]}}
    made = await world.ask(PRINCIPAL, "network", "port.create", json=port)
    assert (
        await world.refusal(PRIVILEGED, "network", "network.delete", id=network["id"])
    ).verdict is Verdict.IN_USE
    await world.ask(PRINCIPAL, "network", "port.delete", id=made["id"])

    await world.ask(PRIVILEGED, "network", "quota.put", json={"quota": {"port": 0}})
    await world.ask(PRIVILEGED, "compute", "quota.put", json={"quota_set": {"server_groups": 0}})
    await world.ask(PRIVILEGED, "block-storage", "quota.put", json={"quota_set": {"volumes": 0}})
    group = {"server_group": {"name": "g", "policy": "soft-anti-affinity"}}
    volume = {"volume": {"name": "v", "size": 1}}
    for service, verb, body in (
        ("network", "port.create", port),
        ("compute", "servergroup.create", group),
        ("block-storage", "volume.create", volume),
    ):
        assert (await world.refusal(PRINCIPAL, service, verb, json=body)).verdict is Verdict.QUOTA, (
            service,
            verb,
        )

    assert (
        await world.refusal(PRINCIPAL, "compute", "server.create", json={"server": {}})
    ).verdict is Verdict.REFUSED


async def test_a_gone_project_is_forbidden_and_told_by_list(world: World) -> None:
    missing = uuid.uuid4().hex
    assert (
        await world.refusal(DOMAIN, "identity", "project.delete", id=missing)
    ).verdict is Verdict.FORBIDDEN
    query = {"name": "unikorn-identity-none", "domain_id": world.secret["domain-id"]}
    assert await world.ask(DOMAIN, "identity", "project.list", query=query) == []


async def test_inv_295_attach_rebuild_and_detach_answers(world: World) -> None:
    world.sim.settings.durations.volume_detach = 3600.0
    image = next(
        each for each in await world.ask(INVENTORY, "image", "image.list") if each["status"] == "active"
    )
    flavor = (await world.ask(INVENTORY, "compute", "flavor.detail"))[0]
    network = await _network(world, "n")
    subnet = {"subnet": {"network_id": network["id"], "cidr": "10.0.0.0/24", "ip_version": 4}}
    await world.ask(PRIVILEGED, "network", "subnet.create", json=subnet)
    server = await world.ask(
        PRINCIPAL, "compute", "server.create",
        json={"server": {"name": "web", "imageRef": image["id"], "flavorRef": flavor["id"],
                         "networks": [{"uuid": network["id"]}]}},
    )  # fmt: skip
    volume = await world.ask(
        PRINCIPAL, "block-storage", "volume.create", json={"volume": {"name": "v", "size": 1}}
    )
    ident = server["id"]
    assert (await world.ask(PRINCIPAL, "compute", "server.get", id=ident))["status"] == "ACTIVE"

    rebuild = {"rebuild": {"imageRef": str(uuid.uuid4())}}
    error = await world.refusal(PRINCIPAL, "compute", "server.rebuild", id=ident, json=rebuild)
    assert error.verdict is Verdict.IMAGE_NOT_FOUND

    attach = {"volumeAttachment": {"volumeId": volume["id"]}}
    await world.ask(PRINCIPAL, "compute", "attachment.create", server=ident, json=attach)
    again = await world.refusal(PRINCIPAL, "compute", "attachment.create", server=ident, json=attach)
    assert again.verdict is Verdict.EXISTS
    in_use = await world.refusal(PRINCIPAL, "block-storage", "volume.delete", id=volume["id"])
    assert in_use.verdict is Verdict.IN_USE
    await world.ask(PRINCIPAL, "compute", "attachment.delete", server=ident, volume=volume["id"])
    busy = await world.refusal(PRINCIPAL, "compute", "attachment.delete", server=ident, volume=volume["id"])
    assert busy.verdict in (Verdict.BUSY, Verdict.CONFLICT)

    world.sim.settings.durations.rebuild_spawn = 3600.0
    good = {"rebuild": {"imageRef": image["id"]}}
    await world.ask(PRINCIPAL, "compute", "server.rebuild", id=ident, json=good)
    busy = await world.refusal(PRINCIPAL, "compute", "server.rebuild", id=ident, json=good)
    assert busy.verdict is Verdict.BUSY


async def test_load_balancer_refusals(world: World) -> None:
    network = await _network(world, "n")
    subnet = await world.ask(
        PRIVILEGED, "network", "subnet.create",
        json={"subnet": {"network_id": network["id"], "cidr": "10.0.0.0/24", "ip_version": 4}},
    )  # fmt: skip
    body = {"loadbalancer": {"name": "lb", "vip_subnet_id": subnet["id"], "provider": "ovn"}}
    world.sim.settings.durations.lb_build = 3600.0
    made = await world.ask(PRINCIPAL, "load-balancer", "loadbalancer.create", json=body)
    change = {"loadbalancer": {"description": "x"}}
    busy = await world.refusal(PRINCIPAL, "load-balancer", "loadbalancer.update", id=made["id"], json=change)
    assert busy.verdict is Verdict.BUSY
    pool = {"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    body = {
        "loadbalancer": {"name": "lb2", "vip_subnet_id": subnet["id"], "provider": "ovn", "pools": [pool]}
    }
    refused = await world.refusal(PRINCIPAL, "load-balancer", "loadbalancer.create", json=body)
    assert refused.verdict is Verdict.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("status", "read", "update", "create"),
    [
        (400, Verdict.REFUSED, Verdict.REFUSED, Verdict.REFUSED),
        (403, Verdict.FORBIDDEN, Verdict.FORBIDDEN, Verdict.FORBIDDEN),
        (406, Verdict.NOT_SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.NOT_SUPPORTED),
        (409, Verdict.CONFLICT, Verdict.CONFLICT, Verdict.CONFLICT),
        (429, Verdict.THROTTLED, Verdict.THROTTLED, Verdict.THROTTLED),
        (500, Verdict.UNAVAILABLE, Verdict.UNAVAILABLE, Verdict.UNKNOWN),
        (501, Verdict.NOT_SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.NOT_SUPPORTED),
        (503, Verdict.UNAVAILABLE, Verdict.UNAVAILABLE, Verdict.UNKNOWN),
    ],
)
async def test_every_status_is_judged_alike(
    world: World, status: int, read: Verdict, update: Verdict, create: Verdict
) -> None:
    world.fault("status", service="compute", status=status, times=None)
    engine = world.make(throttle_repeats=0)
    for verb, expected in (("server.detail", read), ("quota.put", update), ("server.create", create)):
        with pytest.raises(CloudError) as caught:
            await engine.call(
                Call(PRIVILEGED, "compute", verb, {"json": {}} if verb != "server.detail" else {})
            )
        assert caught.value.verdict is expected
        assert caught.value.status == status
        # The region's pause after a 429 would keep the next one here.
        engine = world.make(throttle_repeats=0)


# ---------------------------------------------------------------- cut connections


async def test_a_create_cut_before_its_effect_is_unknown_and_nothing_is_there(world: World) -> None:
    world.fault("no_answer_before", service="network", method="POST")
    error = await world.refusal(PRIVILEGED, "network", "network.create", json={"network": {"name": "cut"}})
    assert error.verdict is Verdict.UNKNOWN
    assert await world.ask(PRIVILEGED, "network", "network.list", query={"name": "cut"}) == []


async def test_a_create_cut_after_its_effect_is_unknown_and_one_is_there(world: World) -> None:
    world.fault("no_answer_after", service="network", method="POST")
    error = await world.refusal(PRIVILEGED, "network", "network.create", json={"network": {"name": "cut"}})
    assert error.verdict is Verdict.UNKNOWN
    assert len(await world.ask(PRIVILEGED, "network", "network.list", query={"name": "cut"})) == 1


async def test_no_library_sends_a_create_twice(world: World) -> None:
    world.fault("no_answer_before", service="network", method="POST", times=None)
    await world.refusal(PRIVILEGED, "network", "network.create", json={"network": {"name": "cut"}})
    world.sim.faults.clear()
    world.fault("status_after", service="network", method="POST", status=503, times=None)
    await world.refusal(PRIVILEGED, "network", "network.create", json={"network": {"name": "cut"}})
    assert world.requests("network", "POST") == 2
    assert len(await world.ask(PRIVILEGED, "network", "network.list", query={"name": "cut"})) == 1


async def test_a_cut_read_is_unavailable(world: World) -> None:
    world.fault("no_answer_before", service="network", method="GET")
    assert (await world.refusal(PRIVILEGED, "network", "network.list")).verdict is Verdict.UNAVAILABLE


# ---------------------------------------------------------------- tokens


async def test_a_read_survives_a_revoked_token_and_a_create_does_not_pretend(world: World) -> None:
    await world.ask(PRIVILEGED, "network", "network.list")
    world.fault("status", service="network", status=401)
    await world.ask(PRIVILEGED, "network", "network.list")
    world.fault("status", service="network", status=401)
    error = await world.refusal(PRIVILEGED, "network", "network.create", json={"network": {"name": "n"}})
    assert error.verdict is Verdict.UNAUTHORIZED
    assert world.requests("network", "POST") == 1
    await _network(world, "n")


async def test_many_calls_log_in_once(world: World) -> None:
    await asyncio.gather(*(world.ask(PRINCIPAL, "compute", "server.detail") for _ in range(10)))
    assert len(world.sim.log.calls(service="identity", method="POST")) == 1


async def test_a_wrong_password_is_unauthorized(world: World) -> None:
    record = {**world.keyring.record(REGION, IDENTITY), "password": "wrong"}
    world.keyring.put_identity(REGION, IDENTITY, record, 2)
    assert (await world.refusal(PRINCIPAL, "compute", "server.detail")).verdict is Verdict.UNAUTHORIZED
    assert world.sim.log.calls(service="compute") == []


async def test_a_project_of_another_domain_is_the_wrong_cloud(world: World) -> None:
    """The region's domain is recorded; a project elsewhere must not be worked in, however good its token."""
    world.keyring.put_region_secret(REGION, {**world.secret, "domain-id": "default"}, 2)
    error = await world.refusal(PRINCIPAL, "compute", "server.detail")
    assert error.verdict is Verdict.WRONG_CLOUD
    assert world.sim.log.calls(service="compute") == []


async def test_a_region_that_the_catalog_lacks_is_the_wrong_cloud(world: World) -> None:
    world.keyring.put_endpoint(REGION, f"{world.sim.settings.base_url}/identity/v3", "Elsewhere")
    engine = world.make()
    with pytest.raises(CloudError) as caught:
        await engine.call(Call(PRINCIPAL, "compute", "server.detail"))
    assert caught.value.verdict is Verdict.WRONG_CLOUD


# ---------------------------------------------------------------- guard, pause, deadline


async def test_a_refusing_guard_keeps_the_request_here(world: World) -> None:
    body = {"network": {"name": "guarded"}}
    with pytest.raises(CloudError) as caught:
        await world.engine.call(
            Call(PRIVILEGED, "network", "network.create", {"json": body}, guard=lambda: False)
        )
    assert caught.value.verdict is Verdict.LEASE_LOST
    assert world.requests("network", "POST") == 0
    await world.engine.call(Call(PRIVILEGED, "network", "network.create", {"json": body}, guard=lambda: True))
    assert world.requests("network", "POST") == 1


async def test_a_short_pause_is_waited_out(world: World) -> None:
    world.fault("status", service="compute", status=429, headers={"Retry-After": "0.2"}, times=2)
    begun = asyncio.get_running_loop().time()
    assert await world.ask(PRINCIPAL, "compute", "server.detail") == []
    assert asyncio.get_running_loop().time() - begun >= 0.4


async def test_a_long_pause_is_told(world: World) -> None:
    world.fault("status", service="compute", status=429, headers={"Retry-After": "77"})
    error = await world.refusal(PRINCIPAL, "compute", "server.detail")
    assert (error.verdict, error.retry_after) == (Verdict.THROTTLED, 77.0)


async def test_a_slow_cloud_is_left_at_the_deadline(world: World) -> None:
    await world.ask(PRIVILEGED, "network", "network.list")
    world.fault("slow", service="network", delay=5.0, times=2)
    begun = asyncio.get_running_loop().time()
    for verb, expected in (("network.list", Verdict.UNAVAILABLE), ("network.create", Verdict.UNKNOWN)):
        args: dict[str, Any] = {} if verb.endswith("list") else {"json": {"network": {"name": "slow"}}}
        with pytest.raises(CloudError) as caught:
            await world.engine.call(Call(PRIVILEGED, "network", verb, args, deadline=0.3))
        assert caught.value.verdict is expected
    assert asyncio.get_running_loop().time() - begun < 2.0


async def test_request_ids_come_back(world: World) -> None:
    got = await world.engine.call(Call(PRINCIPAL, "compute", "server.detail"))
    assert got.request_id == world.sim.log.calls(service="compute")[-1].request_id


def _public_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = Ed25519PrivateKey.generate().public_key()
    return public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
