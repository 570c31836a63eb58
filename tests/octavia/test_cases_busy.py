"""Cases from fault reports about operations under way: locks, refusals before anything is written, reports that cross a commit."""

import asyncio
import json
import time
import uuid
from typing import Any

import asyncpg
import nats
import pytest

from .building import build, member, removed
from .client import Client, Reply
from .ground import Ground
from .people import Home

DELAY = 4


def three_fields(reply: Reply) -> None:
    assert reply.status == 409, (reply.status, reply.body)
    assert set(reply.body) == {"faultcode", "faultstring", "debuginfo"}
    assert (reply.body["faultcode"], reply.body["debuginfo"]) == ("Client", None)


async def test_oc_05_while_busy_each_write_is_refused_and_after_it_all_pass(
    user: Client, red: Home, ground: Ground
) -> None:
    ground.add_provider("slow")
    built = await build(user, red.subnet, provider="slow")
    lb = f"loadbalancers/{built.lb}"
    ground.add_provider("slow", delay=str(DELAY))
    first_member = f"{built.members_path}/{built.members[0]}"
    calls: list[tuple[str, str, Any]] = [
        ("PUT", lb, {"loadbalancer": {"name": "x"}}),
        ("POST", built.members_path, {"member": member("192.0.2.77")}),
        ("DELETE", first_member, None),
        ("PUT", built.members_path, {"members": [member("192.0.2.78")]}),
        ("DELETE", f"{lb}?cascade=true", None),
    ]
    started = time.monotonic()
    listener = await user.ok(
        "POST",
        "listeners",
        {"listener": {"loadbalancer_id": built.lb, "protocol": "HTTP", "protocol_port": 81}},
    )
    before = ground.rows()
    for method, path, body in calls:
        reply = await user.call(method, path, body)
        three_fields(reply)
        if path.startswith(lb):
            assert "PENDING_UPDATE" in reply.fault
        else:
            assert "immutable" in reply.fault
        assert (await user.call("GET", path.partition("?")[0])).status == 200
    assert time.monotonic() - started < DELAY, "the provider was done too early for this test"
    assert ground.rows() == before
    await user.active(lb, within=DELAY + 10)
    assert (await user.ok("GET", f"listeners/{listener['id']}"))["provisioning_status"] == "ACTIVE"
    ground.add_provider("slow")
    for method, path, body in calls:
        reply = await user.call(method, path, body)
        assert reply.status < 300, (method, path, reply.body)
        await user.settled(lb)
    assert (await user.call("GET", lb)).status == 404


async def test_oc_06_what_a_provider_cannot_do_is_refused_before_anything_is_written(
    user: Client, admin: Client, red: Home, ground: Ground
) -> None:
    ground.add_provider(
        "picky",
        refuse=",".join(
            f"{method}:UnsupportedOption"
            for method in ("listener_create", "pool_create", "member_batch_update", "loadbalancer_failover")
        ),
    )
    lb = await user.load_balancer(vip_subnet_id=red.subnet, provider="picky")
    listener = {"loadbalancer_id": lb["id"], "protocol": "TCP", "protocol_port": 80}
    pool = {"loadbalancer_id": lb["id"], "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    before = ground.rows()
    for who, method, path, body in (
        (user, "POST", "listeners", {"listener": {**listener, "allowed_cidrs": ["203.0.113.0/24"]}}),
        (user, "POST", "pools", {"pool": pool}),
        (admin, "PUT", f"loadbalancers/{lb['id']}/failover", None),
    ):
        reply = await who.call(method, path, body)
        assert reply.status == 501, (path, reply.status, reply.body)
        assert "picky" in reply.fault
        assert "refused" in reply.fault  # the provider's own words
        assert ground.rows() == before, path
    await removed(user, lb["id"])


@pytest.mark.parametrize("said", [{}, {"allowed_cidrs": []}, {"allowed_cidrs": None}])
async def test_oc_06_the_empty_form_of_an_option_asks_for_nothing(
    user: Client, red: Home, said: dict[str, Any]
) -> None:
    lb = (await user.load_balancer(vip_subnet_id=red.subnet))["id"]
    made = await user.made(
        "listener", "listeners", lb, loadbalancer_id=lb, protocol="TCP", protocol_port=80, **said
    )
    assert made["allowed_cidrs"] is None
    await removed(user, lb)


async def test_oc_11_no_provider_hears_of_what_is_not_committed(
    user: Client, red: Home, ground: Ground
) -> None:
    lb = (await user.load_balancer(vip_subnet_id=red.subnet))["id"]
    heard: list[float] = []

    async def hear(_: Any) -> None:
        heard.append(time.monotonic())

    broker = await nats.connect(ground.nats.url)
    holder = await asyncpg.connect(ground.postgres.url_of(ground.database))
    try:
        await broker.subscribe("provider.noop.call.listener.create", cb=hear)
        await broker.flush()
        held = holder.transaction()
        await held.start()
        await holder.execute("SELECT 1 FROM octavia.load_balancer WHERE id = $1 FOR UPDATE", lb)
        wanted = {"loadbalancer_id": lb, "protocol": "TCP", "protocol_port": 80}
        asking = asyncio.create_task(user.call("POST", "listeners", {"listener": wanted}))
        await asyncio.sleep(0.5)
        assert not asking.done()
        assert heard == []
        await held.rollback()
        reply = await asking
        assert reply.status == 201, reply.body
        await user.active(f"loadbalancers/{lb}")
        assert len(heard) == 1
        shown = await user.ok("GET", f"listeners/{reply.body['listener']['id']}")
        assert shown["provisioning_status"] == "ACTIVE"
    finally:
        await holder.close()
        await broker.close()
    await removed(user, lb)


async def test_oc_11_reports_of_what_is_unknown_are_dropped_and_the_next_is_heard(
    user: Client, red: Home, ground: Ground
) -> None:
    marker = len(ground.replicas[0].words())
    broker = await nats.connect(ground.nats.url)
    try:
        stream = broker.jetstream()
        unknown = str(uuid.uuid4())
        for subject, body in (
            (
                "provider.noop.result",
                {"operation": unknown, "loadbalancer_id": unknown, "revision": 1, "outcome": "success"},
            ),
            (
                "provider.noop.status",
                {"listeners": [{"id": unknown, "provisioning_status": "ACTIVE"}]},
            ),
            ("provider.noop.statistics", {"listeners": [{"id": unknown, "bytes_in": 1}]}),
            ("provider.noop.status", [1, 2]),
        ):
            await stream.publish(subject, json.dumps(body).encode())
    finally:
        await broker.close()
    lb = await user.load_balancer(vip_subnet_id=red.subnet)
    assert lb["provisioning_status"] == "ACTIVE"
    logged = ground.replicas[0].words()[marker:]
    assert unknown in logged
    assert "Traceback" not in logged
    await removed(user, lb["id"])
