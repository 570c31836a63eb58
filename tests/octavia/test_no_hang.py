"""Nothing hangs: a provider that is killed at any step of any operation leaves nothing PENDING, the reason can be read, and what it
carries out after it came back is no longer in ERROR."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import nats
import pytest

from roadstead.subjects import OCTAVIA_API, rpc_subject
from roadstead_octavia.provider.noop import driver
from roadstead_octavia.provider.noop.driver import Manner

from .client import Client
from .ground import Ground
from .operations import CREATIONS, OPERATIONS, Request, plant

pytestmark = pytest.mark.timeout(400)
DEADLINE = 6
WATCH = 8.0  # seconds that the watchdog may be late on a busy machine
REDELIVERY = 75.0  # the broker gives a call that nobody acknowledged to the next provider after 30 s
OBJECTS = re.compile("(?!vip_port_claim)")  # a claim stays until its port is known to be gone


@pytest.fixture(scope="module")
def hurried(make_ground: Callable[..., Ground]) -> Ground:
    """A service that gives providers little time."""
    return make_ground(operation_deadline=DEADLINE)


@pytest.fixture
async def root(hurried: Ground) -> AsyncIterator[Client]:
    """The administrator, who may do everything; the provider is at work."""
    hurried.add_provider("noop")
    client = Client(hurried.url, hurried.people.admin_token)
    yield client
    client.close()


async def requests(ground: Ground, client: Client) -> dict[str, tuple[str | None, Request]]:
    """Every operation as (its load balancer, request), each on its own tree."""
    subnet = ground.people.red.subnet
    found: dict[str, tuple[str | None, Request]] = {}
    for method, make in OPERATIONS.items():
        tree = await plant(client, method, subnet)
        found[method] = (tree.built.lb, make(tree))
    for name, create in CREATIONS.items():
        found[name] = (None, create(subnet))
    return found


@asynccontextmanager
async def agreeing(ground: Ground) -> AsyncIterator[None]:
    """Checks and questions are answered as the provider would; calls wait."""
    broker = await nats.connect(ground.nats.url)

    async def answer(message: Any) -> None:
        request, method = json.loads(message.data), message.subject.rpartition(".")[2]
        told = driver.check(request, Manner()) if method == "check" else driver.ask(method, request, Manner())
        await message.respond(json.dumps(told).encode())

    try:
        for subject in ("rpc.provider.noop.check", "rpc.provider.noop.ask.*"):
            await broker.subscribe(subject, cb=answer)
        await broker.flush()
        yield
    finally:
        await broker.close()


async def operations_of(ground: Ground, lb: str) -> list[dict[str, Any]]:
    """As `roadstead octavia operations` asks for them, newest first."""
    broker = await nats.connect(ground.nats.url)
    try:
        body = json.dumps({"loadbalancer_id": lb}).encode()
        reply = await broker.request(rpc_subject(OCTAVIA_API, "operations"), body, timeout=10)
        found: list[dict[str, Any]] = json.loads(reply.data)["operations"]
        return found
    finally:
        await broker.close()


async def none_pending(ground: Ground, within: float) -> None:
    ends = time.monotonic() + within
    while left := ground.pending():
        assert time.monotonic() < ends, left
        await asyncio.sleep(0.5)


async def run_all(client: Client, wanted: dict[str, tuple[str | None, Request]]) -> dict[str, str]:
    """Every request is accepted; the load balancer of each."""
    lbs = {}
    for name, (lb, (method, path, body)) in wanted.items():
        reply = await client.call(method, path, body)
        assert reply.status < 300, (name, reply.status, reply.body)
        lbs[name] = lb or reply.body["loadbalancer"]["id"]
    return lbs


async def gave_up_with_reasons(ground: Ground, lbs: dict[str, str]) -> None:
    """Nothing waits any more, every operation is over, and each says why."""
    await none_pending(ground, DEADLINE + WATCH)
    for name, lb in lbs.items():
        newest = (await operations_of(ground, lb))[0]
        assert newest["state"] == "TIMED_OUT", (name, newest)
        assert newest["reason"].startswith("provider noop did not report the end of"), newest
        assert f"within {DEADLINE} s" in newest["reason"]
    in_error = ground.number(
        "SELECT "
        + " + ".join(
            f"(SELECT count(*) FROM {table} WHERE provisioning_status = 'ERROR')"
            for table in (
                "load_balancer",
                "listener",
                "pool",
                "member",
                "health_monitor",
                "l7policy",
                "l7rule",
            )
        )
    )
    assert in_error >= len(lbs)


async def mended(ground: Ground, client: Client, lbs: dict[str, str], within: float) -> None:
    """All operations are done, and nothing is in ERROR."""
    ends = time.monotonic() + within
    waiting = dict(lbs)
    while waiting:
        for name, lb in list(waiting.items()):
            if (await operations_of(ground, lb))[0]["state"] == "DONE":
                del waiting[name]
        assert time.monotonic() < ends, waiting
        await asyncio.sleep(0.5)
    for name, lb in lbs.items():
        reply = await client.call("GET", f"loadbalancers/{lb}/status")
        if name == "loadbalancer_delete":
            assert reply.status == 404
            continue
        assert '"ERROR"' not in json.dumps(reply.body), (name, reply.body)
        shown = await client.ok("GET", f"loadbalancers/{lb}")
        assert shown["provisioning_status"] == "ACTIVE", name


async def swept(client: Client, lbs: dict[str, str]) -> None:
    for name, lb in lbs.items():
        if name != "loadbalancer_delete":
            reply = await client.call("DELETE", f"loadbalancers/{lb}?cascade=true")
            assert reply.status == 204, (name, reply.body)
    for lb in lbs.values():
        assert await client.settled(f"loadbalancers/{lb}") is None


async def test_killed_before_it_is_asked_every_operation_is_refused_and_nothing_is_written(
    hurried: Ground, root: Client
) -> None:
    wanted = await requests(hurried, root)
    hurried.providers["noop"].kill()
    before = hurried.rows(OBJECTS)
    for name, (_, (method, path, body)) in wanted.items():
        reply = await root.call(method, path, body)
        assert reply.status == 503, (name, reply.status, reply.body)
        assert int(reply.headers["retry-after"]) > 0, name
        assert reply.fault, name
        assert hurried.rows(OBJECTS) == before, name
    hurried.add_provider("noop")
    lbs = await run_all(root, wanted)
    await none_pending(hurried, 20)
    await swept(root, lbs)


async def test_killed_between_its_agreement_and_the_call_all_ends_and_is_mended_when_it_is_back(
    hurried: Ground, root: Client
) -> None:
    wanted = await requests(hurried, root)
    hurried.providers["noop"].kill()
    async with agreeing(hurried):
        lbs = await run_all(root, wanted)
    await gave_up_with_reasons(hurried, lbs)
    hurried.add_provider("noop")
    await mended(hurried, root, lbs, 40)
    await swept(root, lbs)


async def test_killed_before_its_report_all_ends_and_is_mended_when_it_is_back(
    hurried: Ground, root: Client
) -> None:
    wanted = await requests(hurried, root)
    hurried.add_provider("noop", delay="300")
    lbs = await run_all(root, wanted)
    ends = time.monotonic() + 10
    while await _taken(hurried) < len(lbs):
        assert time.monotonic() < ends
        await asyncio.sleep(0.1)
    hurried.providers["noop"].kill()
    await gave_up_with_reasons(hurried, lbs)
    hurried.add_provider("noop")
    await mended(hurried, root, lbs, REDELIVERY)
    await swept(root, lbs)


async def _taken(ground: Ground) -> int:
    """Calls that the provider has taken and not yet reported."""
    broker = await nats.connect(ground.nats.url)
    try:
        found = await broker.jetstream().consumer_info("PROVIDER_CALLS", "provider-noop")
        return found.num_ack_pending or 0
    finally:
        await broker.close()


async def test_what_a_failed_provider_left_in_error_can_be_deleted(hurried: Ground, root: Client) -> None:
    wanted = await requests(hurried, root)
    hurried.add_provider("noop", fail="*")
    lbs = await run_all(root, wanted)
    await none_pending(hurried, 20)
    for name, lb in lbs.items():
        newest = (await operations_of(hurried, lb))[0]
        assert newest["state"] == "FAILED", (name, newest)
        assert "failed" in newest["reason"]
    hurried.add_provider("noop")
    assert (await root.ok("GET", f"loadbalancers/{lbs['loadbalancer_delete']}"))[
        "provisioning_status"
    ] == "ERROR"
    del lbs["loadbalancer_delete"], wanted["loadbalancer_delete"]
    await swept(root, lbs)


async def test_oc_12_a_deletion_that_is_reported_twice_or_late_leaves_the_count_right(
    hurried: Ground, root: Client
) -> None:
    home = hurried.people.blue
    user = Client(hurried.url, hurried.people.token_of(home))
    await root.ok("PUT", f"quotas/{home.project}", {"quota": {"pool": 1}})
    hurried.add_provider("silent", silent="pool_delete")
    broker = await nats.connect(hurried.nats.url)
    results: list[bytes] = []
    calls: list[dict[str, Any]] = []

    async def hear(message: Any) -> None:
        if ".call." in message.subject:
            calls.append(json.loads(message.data))
        else:
            results.append(message.data)

    for subject in ("provider.*.call.pool.delete", "provider.*.result"):
        await broker.subscribe(subject, cb=hear)
    await broker.flush()

    async def in_use() -> int:
        return hurried.number(f"SELECT count(*) FROM pool WHERE project_id = '{home.project}'")

    async def pool(lb: str) -> str:
        wanted = {"loadbalancer_id": lb, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
        made = await user.made("pool", "pools", lb, **wanted)
        second = await user.call("POST", "pools", {"pool": wanted})
        assert second.status == 403, second.body
        return str(made["id"])

    # reported twice
    lb = (await user.load_balancer(vip_subnet_id=home.subnet))["id"]
    one = await pool(lb)
    results.clear()
    assert (await user.call("DELETE", f"pools/{one}")).status == 204
    await user.active(f"loadbalancers/{lb}")
    assert (await user.call("GET", f"pools/{one}")).status == 404
    for again in range(2):
        await broker.jetstream().publish(
            "provider.noop.result", results[0], headers={"Nats-Msg-Id": f"again-{again}"}
        )
    await user.made("listener", "listeners", lb, loadbalancer_id=lb, protocol="TCP", protocol_port=80)
    assert await in_use() == 0
    two = await pool(lb)
    assert (await user.call("DELETE", f"pools/{two}")).status == 204
    await user.active(f"loadbalancers/{lb}")

    # never reported, then long after the deadline
    late = (await user.load_balancer(vip_subnet_id=home.subnet, provider="silent"))["id"]
    three = await pool(late)
    calls.clear()
    assert (await user.call("DELETE", f"pools/{three}")).status == 204
    assert (await user.settled(f"pools/{three}", within=DEADLINE + WATCH))["provisioning_status"] == "ERROR"
    assert await in_use() == 1
    names = ("operation", "loadbalancer_id", "revision")
    result = {name: calls[0][name] for name in names} | {"outcome": "success"}
    for again in range(2):
        await broker.jetstream().publish(
            "provider.silent.result",
            json.dumps(result).encode(),
            headers={"Nats-Msg-Id": f"late-{again}"},
        )
    assert await user.settled(f"pools/{three}", within=DEADLINE + WATCH) is None or await _gone(user, three)
    assert await in_use() == 0
    await pool(late)
    for each in (lb, late):
        assert (await user.call("DELETE", f"loadbalancers/{each}?cascade=true")).status == 204
        await user.settled(f"loadbalancers/{each}")
    await broker.close()
    user.close()


async def _gone(user: Client, pool: str) -> bool:
    for _ in range(200):
        if (await user.call("GET", f"pools/{pool}")).status == 404:
            return True
        await asyncio.sleep(0.05)
    return False
