"""The seam as it runs: operations through a real broker to the noop provider and back into a real database."""

import asyncio
import json
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import nats
import pytest

from roadstead.testing.servers import NatsServer
from roadstead_octavia.db.port import Change, Insert, Update
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.errors import ApiError
from roadstead_octavia.provider.noop.driver import Manner
from roadstead_octavia.provider.noop.process import NoopProvider
from roadstead_octavia.provider.store import SqlOperations

from .conftest import OPTIONS, Rig, eventually, inserted, operation, provider_of
from .trees import IDS, LB, LISTENER, MEMBER, POLICY, POOL, RULE, a_tree

pytestmark = pytest.mark.integration

ALL = list(IDS)
PENDING = "PENDING_CREATE"


def all_are(rig: Rig, status: str) -> Any:
    async def check() -> bool:
        return set((await rig.statuses()).values()) == {status}

    return check


def is_ended(rig: Rig, identifier: str, state: str) -> Any:
    async def check() -> bool:
        return bool((await rig.operation(identifier))["state"] == state)

    return check


def has_taken(provider: NoopProvider, calls: int) -> bool:
    return len(provider.taken) == calls


async def test_a_creation_reaches_active_and_online_and_the_operation_is_done(
    rig: Rig, nats_url: str
) -> None:
    async with provider_of(nats_url) as provider:
        made = operation("loadbalancer_create", ALL)
        began = time.monotonic()
        await rig.commit(inserted(a_tree(PENDING), made))
        await eventually(all_are(rig, "ACTIVE"))
        assert time.monotonic() - began < 5
        row = await rig.operation(made.id)
        assert (row["state"], row["reason"], row["next_send_at"], row["sends"]) == ("DONE", None, None, 1)
        tree = await rig.database.tree(LB)
        assert tree is not None
        assert tree.load_balancer["operating_status"] == "ONLINE"
        assert provider.taken == [made.id]


async def test_the_call_carries_ids_revision_and_the_tree_without_keys(rig: Rig, nats_url: str) -> None:
    heard: list[dict[str, Any]] = []
    client = await nats.connect(nats_url)
    try:

        async def hear(message: Any) -> None:
            heard.append({"subject": message.subject, **json.loads(message.data)})

        await client.subscribe("provider.noop.call.>", cb=hear)
        await client.flush()
        secret = {"$type": "Pool", "pool_id": POOL, "tls_container_data": {"private_key": "KEY"}}
        made = operation("pool_update", ["load_balancer", "pool"], arguments=[secret])
        await rig.commit(inserted(a_tree(PENDING), made))
        await eventually(lambda: heard)
    finally:
        await client.close()
    call = heard[0]
    assert call["subject"] == "provider.noop.call.pool.update"
    assert (call["operation"], call["send"], call["revision"]) == (made.id, 1, call["tree"]["revision"])
    assert call["objects"] == {"loadbalancers": [LB], "pools": [POOL]}
    assert call["arguments"] == [{"$type": "Pool", "pool_id": POOL}]
    assert [p["pool_id"] for p in call["tree"]["loadbalancer"]["pools"]] == [POOL]
    assert call["tree"]["statuses"]["members"] == {MEMBER: [PENDING, "OFFLINE"]}
    assert "KEY" not in json.dumps(call)
    stored = await rig.operation(made.id)
    assert "KEY" not in json.dumps(stored["arguments"])


async def test_a_silent_provider_is_asked_again_at_5_15_and_35_seconds_and_the_deadline_ends_it(
    rig: Rig, nats_url: str
) -> None:
    async with provider_of(nats_url, manner=Manner(silent=frozenset("*"))) as provider:
        made = operation("loadbalancer_create", ALL)
        await rig.commit(inserted(a_tree(PENDING), made))
        await eventually(lambda: len(provider.taken) == 1)
        await rig.side.watchdog.once()
        assert (await rig.operation(made.id))["sends"] == 1  # nothing was due yet
        for sends, seconds in ((2, 5.5), (3, 10), (4, 20)):
            rig.clock.on(seconds)
            assert await rig.side.watchdog.once() == 1
            await eventually(partial(has_taken, provider, sends))
            assert await rig.side.watchdog.once() == 0
        assert set(provider.taken) == {made.id}
        rig.clock.on(20)
        assert await rig.side.watchdog.once() == 0
        assert set((await rig.statuses()).values()) == {PENDING}
        rig.clock.on(5)
        assert await rig.side.watchdog.once() == 1
        assert set((await rig.statuses()).values()) == {"ERROR"}
        row = await rig.operation(made.id)
        assert (row["state"], row["next_send_at"]) == ("TIMED_OUT", None)
        assert row["reason"] == (
            "provider noop did not report the end of loadbalancer_create within 60 s (4 times sent, 7 objects waiting)"
        )

        report = {
            "operation": made.id,
            "loadbalancer_id": LB,
            "revision": row["revision"],
            "outcome": "success",
        }
        await rig.bus.publish("provider.noop.result", json.dumps(report).encode(), {})
        await eventually(all_are(rig, "ACTIVE"))
        assert (await rig.operation(made.id))["state"] == "DONE"


async def test_a_failure_is_told_and_leaves_error(rig: Rig, nats_url: str) -> None:
    manner = Manner(fails=frozenset({"loadbalancer_create"}))
    async with provider_of(nats_url, manner=manner):
        made = operation("loadbalancer_create", ALL)
        await rig.commit(inserted(a_tree(PENDING), made))
        await eventually(all_are(rig, "ERROR"))
        assert (await rig.operation(made.id))["reason"] == "loadbalancer_create failed; as it was told to"


async def test_a_provider_that_was_away_does_its_work_when_it_comes(rig: Rig, nats_url: str) -> None:
    made = operation("loadbalancer_create", ALL)
    await rig.commit(inserted(a_tree(PENDING), made))
    await asyncio.sleep(0.2)
    async with provider_of(nats_url):
        await eventually(all_are(rig, "ACTIVE"))


async def test_a_broker_that_was_away_costs_one_sending(
    own_nats: NatsServer, database: PostgresDatabase
) -> None:
    rig = Rig(own_nats.url, database)
    await rig.start()
    try:
        async with provider_of(own_nats.url) as provider:
            made = operation("loadbalancer_create", ALL)
            own_nats.kill()
            change = inserted(a_tree(PENDING), made)
            await database.commit(change, OPTIONS)  # and the process that would have sent it died here
            own_nats.start()
            await eventually(lambda: rig.side.bound.is_set() and provider.bound.is_set(), 20)
            rig.clock.on(6)
            assert await rig.side.watchdog.once() == 1
            await eventually(all_are(rig, "ACTIVE"), 20)
    finally:
        await rig.stop()


async def test_the_deadline_holds_without_a_broker(own_nats: NatsServer, database: PostgresDatabase) -> None:
    rig = Rig(own_nats.url, database)
    await rig.start()
    try:
        made = operation("loadbalancer_create", ALL)
        await database.commit(inserted(a_tree(PENDING), made), OPTIONS)
        own_nats.kill()
        rig.clock.on(61)
        assert await rig.side.watchdog.once() == 1
        assert set((await rig.statuses()).values()) == {"ERROR"}
    finally:
        await rig.stop()


async def test_replicas_share_the_queue_and_nobody_gets_what_another_one_has(
    rig: Rig, nats_url: str, database: PostgresDatabase
) -> None:
    await database.commit(inserted(a_tree(PENDING)), OPTIONS)
    for _ in range(20):
        tree = await database.tree(LB)
        assert tree is not None
        change = Change(LB, tree.version, (), operation=operation("pool_update", ["pool"]))
        await database.commit(change, OPTIONS)
    now = rig.clock() + timedelta(seconds=6)
    queue = SqlOperations(database)
    shares = await asyncio.gather(*(queue.due(now, 8) for _ in range(4)))
    found = [row["id"] for share in shares for row in share]
    assert len(found) == len(set(found))
    left = await queue.due(now, 100)
    assert len(found) + len(left) == 20
    assert await queue.due(now, 100) == []


async def test_an_operation_whose_objects_were_reported_one_by_one_is_not_sent_again(
    rig: Rig, nats_url: str
) -> None:
    async with provider_of(nats_url, manner=Manner(silent=frozenset("*"))) as provider:
        made = operation("loadbalancer_create", ["load_balancer", "pool"])
        await rig.commit(inserted(a_tree(PENDING), made))
        await eventually(lambda: provider.taken)
        lists = {"pools": POOL, "loadbalancers": LB}
        message = {kind: [{"id": i, "provisioning_status": "ACTIVE"}] for kind, i in lists.items()}
        reply = await rig.bus.request("rpc.provider.noop.status", message)
        assert reply == {"status_code": 200}
        rig.clock.on(6)
        assert await rig.side.watchdog.once() == 1
        assert (await rig.operation(made.id))["state"] == "DONE"
        assert len(provider.taken) == 1


async def test_a_deleted_load_balancer_loses_its_children_and_the_port_that_we_made(
    rig: Rig, nats_url: str
) -> None:
    tree = a_tree("PENDING_DELETE")
    tree.rows["vip"][0]["octavia_owned"] = True  # type: ignore[index]  # a test's own rows
    rig.network.refuses = 1  # the report comes again
    async with provider_of(nats_url):
        made = operation("loadbalancer_delete", ["load_balancer"], done="DELETED")
        await rig.commit(inserted(tree, made))
        await eventually(is_ended(rig, made.id, "DONE"))
    assert await rig.statuses() == {"load_balancer": "DELETED"}
    assert rig.network.removed == [(LB, "port-1")]


async def test_a_port_that_neutron_keeps_leaves_the_load_balancer_as_it_is(rig: Rig) -> None:
    tree = a_tree("PENDING_DELETE")
    tree.rows["vip"][0]["octavia_owned"] = True  # type: ignore[index]  # rows made by this test may be written
    await rig.database.commit(inserted(tree), OPTIONS)
    rig.network.refuses = 1
    message = {"loadbalancers": [{"id": LB, "provisioning_status": "DELETED"}]}
    reply = await rig.bus.request("rpc.provider.noop.status", message)
    assert reply == {
        "status_code": 500,
        "fault_string": "the port is in use",
        "status_object": "loadbalancers",
        "status_object_id": LB,
    }
    assert (await rig.statuses())["load_balancer"] == "PENDING_DELETE"


async def test_d9_a_status_of_an_older_revision_changes_nothing(rig: Rig) -> None:
    await rig.database.commit(inserted(a_tree()), OPTIONS)
    tree = await rig.database.tree(LB)
    assert tree is not None
    revision = await rig.database.commit(Change(LB, tree.version, ()), OPTIONS)
    record = {"pools": [{"id": POOL, "operating_status": "ERROR"}], "loadbalancer_id": LB}
    for at, expected in ((revision - 1, "OFFLINE"), (revision, "ERROR")):
        reply = await rig.bus.request("rpc.provider.noop.status", {**record, "revision": at})
        assert reply["status_code"] == 200
        row = await rig.database.row("pool", {"id": POOL})
        assert row is not None
        assert row["operating_status"] == expected


async def test_d10_a_message_over_two_load_balancers_is_carried_out_whole_or_not_at_all(rig: Rig) -> None:
    await rig.database.commit(inserted(a_tree()), OPTIONS)
    other = "10000000-0000-4000-8000-000000000002"
    row = {**a_tree().load_balancer, "id": other}
    second = {**a_tree().rows["vip"][0], "load_balancer_id": other}

    await rig.database.commit(
        Change(other, None, (Insert("load_balancer", row), Insert("vip", second))), OPTIONS
    )
    ids = (LB, other)
    good = {"loadbalancers": [{"id": i, "operating_status": "DEGRADED"} for i in ids]}
    bad = {"loadbalancers": [*good["loadbalancers"], {"id": RULE, "operating_status": "ERROR"}]}
    for message, expected in ((bad, "OFFLINE"), (good, "DEGRADED")):
        await rig.bus.request("rpc.provider.noop.status", message)
        for identifier in ids:
            tree = await rig.database.tree(identifier)
            assert tree is not None
            assert tree.load_balancer["operating_status"] == expected


async def test_two_reports_at_once_are_both_carried_out(rig: Rig) -> None:
    await rig.database.commit(inserted(a_tree()), OPTIONS)
    lists = {"pools": POOL, "listeners": LISTENER, "members": MEMBER, "l7policies": POLICY, "l7rules": RULE}
    replies = await asyncio.gather(
        *(
            rig.bus.request("rpc.provider.noop.status", {kind: [{"id": i, "operating_status": "ONLINE"}]})
            for kind, i in lists.items()
        )
    )
    assert all(reply == {"status_code": 200} for reply in replies)
    tree = await rig.database.tree(LB)
    assert tree is not None
    for table in ("pool", "listener", "member", "l7policy", "l7rule"):
        assert tree.of(table)[0]["operating_status"] == "ONLINE", table


async def test_another_provider_neither_changes_nor_sees_what_is_not_its_own(rig: Rig) -> None:
    await rig.database.commit(inserted(a_tree()), OPTIONS)
    message = {"pools": [{"id": POOL, "operating_status": "ERROR"}]}
    assert (await rig.bus.request("rpc.provider.ovn.status", message))["status_code"] == 500
    assert await rig.bus.request("rpc.provider.ovn.get", {"object": "pools", "id": POOL}) == {}
    assert await rig.bus.request("rpc.provider.ovn.tree", {"loadbalancer_id": LB}) == {"tree": None}
    row = await rig.database.row("pool", {"id": POOL})
    assert row is not None
    assert row["operating_status"] == "OFFLINE"


async def test_statistics_replace_what_was_there(rig: Rig) -> None:
    await rig.database.commit(inserted(a_tree()), OPTIONS)
    counters = ("active_connections", "bytes_in", "bytes_out", "request_errors", "total_connections")
    for value in (5, 3):
        message = {"listeners": [{"id": LISTENER, **dict.fromkeys(counters, value)}]}
        await rig.bus.publish("provider.noop.statistics", json.dumps(message).encode(), {})

        async def stored(value: int = value) -> bool:
            found = await rig.database.statistics([LISTENER])
            return found == dict.fromkeys(counters, value)

        await eventually(stored)
    bad = {"listeners": [{"id": LISTENER, **dict.fromkeys(counters, -1)}]}
    reply = await rig.bus.request("rpc.provider.noop.statistics", bad)
    assert (reply["status_code"], reply["stats_object"]) == (500, "listeners")


async def test_a_tree_is_answered_alone_and_in_pages_that_are_cut_by_bytes(rig: Rig) -> None:

    await rig.database.commit(inserted(a_tree()), OPTIONS)
    ids = [LB]
    for number in range(2, 7):
        identifier = f"10000000-0000-4000-8000-00000000000{number}"
        row = {**a_tree().load_balancer, "id": identifier}
        await rig.database.commit(Change(identifier, None, (Insert("load_balancer", row),)), OPTIONS)
        ids.append(identifier)
    one = await rig.bus.request("rpc.provider.noop.tree", {"loadbalancer_id": LB})
    by_part = await rig.bus.request("rpc.provider.noop.tree", {"object": "pools", "id": POOL})
    assert by_part == one
    unknown = await rig.bus.request("rpc.provider.noop.tree", {"object": "pools", "id": LB})
    assert unknown == {"tree": None}
    assert one["tree"]["loadbalancer"]["listeners"][0]["l7policies"][0]["rules"][0]["l7rule_id"] == RULE
    found: list[str] = []
    after, pages = None, 0
    while True:
        page = await rig.bus.request("rpc.provider.noop.tree", {"after": after, "bytes": 2500})
        assert page["trees"]
        found += [tree["loadbalancer_id"] for tree in page["trees"]]
        pages += 1
        after = page["next"]
        if after is None:
            break
    assert found == ids
    assert 1 < pages < 6


BAD_REQUESTS = [
    ("rpc.provider.noop.tree", b"[]"),
    ("rpc.provider.noop.tree", b'{"after": 5}'),
    ("rpc.provider.noop.tree", b'{"object": "routers", "id": "x"}'),
    ("rpc.provider.noop.tree", b'{"bytes": 0}'),
    ("rpc.provider.noop.get", b'{"id": "x"}'),
    ("rpc.provider.noop.status", b"{"),
    ("rpc.provider.noop.status", b'{"pools": [{"id": "\\u0000", "operating_status": "ONLINE"}]}'),
    ("rpc.provider.noop.status", b'{"revision": "x"}'),
    ("rpc.octavia-api.operations", b'{"limit": true}'),
]


async def test_a_bad_request_is_answered_with_its_reason(rig: Rig) -> None:
    for subject, body in BAD_REQUESTS:
        reply = await rig.bus.client.request(subject, body, timeout=5)
        said = json.loads(reply.data)
        assert said["status_code"] == 500, (subject, body)
        assert said["fault_string"]


async def test_a_bad_report_is_put_aside_with_its_reason(rig: Rig) -> None:
    for what, body in (("result", b"{}"), ("status", b"nonsense"), ("statistics", b'{"listeners": 5}')):
        await rig.bus.publish(f"provider.noop.{what}", body, {})

    async def three() -> bool:
        return bool((await rig.bus.js.stream_info("DLQ")).state.messages == 3)

    await eventually(three)
    letter = await rig.bus.js.get_msg("DLQ", seq=1)
    assert letter.headers is not None
    assert letter.headers["Roadstead-Reason"] == "BAD_REPORT"


async def test_a_report_that_comes_twice_changes_nothing(rig: Rig, nats_url: str) -> None:
    async with provider_of(nats_url, manner=Manner(silent=frozenset("*"))):
        made = operation("loadbalancer_create", ALL)
        await rig.commit(inserted(a_tree(PENDING), made))
        report = {"operation": made.id, "loadbalancer_id": LB, "revision": 1, "outcome": "success"}
        for _ in range(2):
            await rig.bus.publish("provider.noop.result", json.dumps(report).encode(), {})
        await eventually(all_are(rig, "ACTIVE"))
        tree = await rig.database.tree(LB)
        assert tree is not None
        later = Update("pool", {"id": POOL}, {"operating_status": "ERROR"})
        await rig.database.commit(Change(LB, tree.version, (later,), revises=False), OPTIONS)
        await rig.bus.publish("provider.noop.result", json.dumps(report).encode(), {})
        await asyncio.sleep(0.3)
        row = await rig.database.row("pool", {"id": POOL})
        assert row is not None
        assert row["operating_status"] == "ERROR"


async def test_a_check_is_answered_over_the_bus(rig: Rig, nats_url: str) -> None:
    manner = Manner(refuses={"pool_create": "UnsupportedOption"})
    async with provider_of(nats_url, manner=manner):
        await rig.side.provider.check("noop", "listener_create", [{"$type": "Listener"}], 1)
        with pytest.raises(ApiError) as caught:
            await rig.side.provider.check("noop", "pool_create", [{"$type": "Pool"}], 1)
        assert caught.value.status == 501
        vip, more = await rig.side.provider.ask(
            "noop", "create_vip_port", [LB, "p", {"vip_subnet_id": "s"}, []]
        )
        assert (vip["vip_address"], vip["vip_subnet_id"], more) == ("198.0.2.5", "s", [])
        with pytest.raises(ApiError) as caught:
            await rig.side.provider.ask("noop", "something_else", [])
        assert caught.value.text.endswith("This feature is not implemented by the provider.")
    with pytest.raises(ApiError) as caught:
        await rig.side.provider.check("nobody", "pool_create", [], 1)
    assert (caught.value.status, dict(caught.value.headers)) == (503, {"Retry-After": "5"})


async def test_operations_can_be_read_with_their_reasons(rig: Rig, nats_url: str, tmp_path: Path) -> None:
    made = operation("loadbalancer_create", ALL)
    await rig.database.commit(inserted(a_tree(PENDING), made), OPTIONS)
    rig.clock.on(61)
    await rig.side.watchdog.once()
    for wanted in ({"loadbalancer_id": LB}, {}):
        reply = await rig.bus.request("rpc.octavia-api.operations", wanted)
        (told,) = reply["operations"]
        assert (told["id"], told["state"], told["method"]) == (made.id, "TIMED_OUT", "loadbalancer_create")
        assert "60 s" in told["reason"]
    other = await rig.bus.request("rpc.octavia-api.operations", {"loadbalancer_id": POOL})
    assert other["operations"] == []

    context = tmp_path / "here.yaml"
    context.write_text(json.dumps({"natsUrl": nats_url}))
    command = [sys.executable, "-m", "roadstead.cli", "--context", str(context), "octavia", "operations", LB]
    program = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    shown, _ = await asyncio.wait_for(program.communicate(), 30)
    assert program.returncode == 0
    assert b"TIMED_OUT" in shown
    assert b"did not report the end of loadbalancer_create within 60 s" in shown
