"""What stands below a load balancer: what is refused before anything is written, and what a change holds.

Names in the form `c_09` and `a_12` are lines of the faults that are mended on purpose, `oc_03` cases.
"""

from dataclasses import replace
from typing import Any

import pytest

from roadstead_octavia.call import Operation
from roadstead_octavia.db.port import Tree
from roadstead_octavia.resources.healthmonitor import operations as healthmonitor
from roadstead_octavia.resources.l7policy import operations as l7policy
from roadstead_octavia.resources.l7rule import operations as l7rule
from roadstead_octavia.resources.listener import operations as listener
from roadstead_octavia.resources.member import operations as member
from roadstead_octavia.resources.pool import operations as pool

from .world import LB, OPTIONS, World, a_row, inserted

LISTENER, OTHER, POOL = "listener-1", "listener-2", "pool-1"
MEMBER, MONITOR, POLICY, RULE = "member-1", "monitor-1", "policy-1", "rule-1"
NEW_POOL = {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
NEW_LISTENER = {"loadbalancer_id": LB, "protocol": "HTTP", "protocol_port": 81}


def a_listener(identifier: str = LISTENER, **given: Any) -> tuple[str, dict[str, Any]]:
    own = {"load_balancer_id": LB, "protocol": "HTTP", "protocol_port": 80, "peer_port": 1025}
    return "listener", a_row("listener", **{"id": identifier, **own, **given})


def a_pool(identifier: str = POOL, **given: Any) -> tuple[str, dict[str, Any]]:
    own = {"load_balancer_id": LB, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    return "pool", a_row("pool", **{"id": identifier, **own, **given})


def a_member(identifier: str = MEMBER, **given: Any) -> tuple[str, dict[str, Any]]:
    own = {"pool_id": POOL, "ip_address": "192.0.2.10", "protocol_port": 80, "weight": 1, "backup": False}
    return "member", a_row("member", **{"id": identifier, **own, **given})


def a_monitor(**given: Any) -> tuple[str, dict[str, Any]]:
    own = {
        "pool_id": POOL,
        "type": "HTTP",
        "delay": 5,
        "timeout": 3,
        "rise_threshold": 2,
        "fall_threshold": 3,
    }
    return "health_monitor", a_row("health_monitor", **{"id": MONITOR, **own, **given})


def a_policy(identifier: str = POLICY, position: int = 1, **given: Any) -> tuple[str, dict[str, Any]]:
    own = {"listener_id": LISTENER, "action": "REJECT", "position": position}
    return "l7policy", a_row("l7policy", **{"id": identifier, **own, **given})


def a_rule(**given: Any) -> tuple[str, dict[str, Any]]:
    own = {"l7policy_id": POLICY, "type": "PATH", "compare_type": "EQUAL_TO", "value": "/"}
    return "l7rule", a_row("l7rule", **{"id": RULE, **own, **given})


def a_world(**given: Any) -> World:
    """One of everything; the listener sends to the pool."""
    return World(
        a_listener(default_pool_id=POOL), a_pool(), a_member(), a_monitor(), a_policy(), a_rule(), **given
    )


def statuses(tree: Tree) -> dict[str, str]:
    tables = ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")
    return {
        row["id"]: row["provisioning_status"]
        for table in tables
        for row in tree.of(table)
        if row["provisioning_status"] != "ACTIVE"
    }


UPDATE, DELETE = "PENDING_UPDATE", "PENDING_DELETE"
CHANGES: list[tuple[Operation, dict[str, Any] | None, tuple[str, ...], dict[str, str]]] = [
    (listener.update, {"name": "a"}, (LISTENER,), {LB: UPDATE, LISTENER: UPDATE}),
    (listener.delete, None, (LISTENER,), {LB: UPDATE, LISTENER: DELETE}),
    (pool.update, {"name": "a"}, (POOL,), {LB: UPDATE, LISTENER: UPDATE, POOL: UPDATE}),
    (pool.delete, None, (POOL,), {LB: UPDATE, LISTENER: UPDATE, POOL: DELETE}),
    (
        member.update,
        {"weight": 5},
        (POOL, MEMBER),
        {LB: UPDATE, LISTENER: UPDATE, POOL: UPDATE, MEMBER: UPDATE},
    ),
    (member.delete, None, (POOL, MEMBER), {LB: UPDATE, LISTENER: UPDATE, POOL: UPDATE, MEMBER: DELETE}),
    (
        healthmonitor.update,
        {"delay": 9},
        (MONITOR,),
        {LB: UPDATE, LISTENER: UPDATE, POOL: UPDATE, MONITOR: UPDATE},
    ),
    (healthmonitor.delete, None, (MONITOR,), {LB: UPDATE, LISTENER: UPDATE, POOL: UPDATE, MONITOR: DELETE}),
    (l7policy.update, {"name": "a"}, (POLICY,), {LB: UPDATE, LISTENER: UPDATE, POLICY: UPDATE}),
    (l7policy.delete, None, (POLICY,), {LB: UPDATE, LISTENER: UPDATE, POLICY: DELETE}),
    (
        l7rule.update,
        {"value": "/b"},
        (POLICY, RULE),
        {LB: UPDATE, LISTENER: UPDATE, POLICY: UPDATE, RULE: UPDATE},
    ),
    (l7rule.delete, None, (POLICY, RULE), {LB: UPDATE, LISTENER: UPDATE, POLICY: UPDATE, RULE: DELETE}),
]
NAMES = [f"{operation.__module__.split('.')[-2]}-{operation.__name__}" for operation, *_ in CHANGES]


@pytest.mark.parametrize(("operation", "body", "ids", "expected"), CHANGES, ids=NAMES)
async def test_a_change_holds_the_object_and_what_stands_above_it(
    operation: Operation, body: Any, ids: tuple[str, ...], expected: dict[str, str]
) -> None:
    world = a_world()
    await world.do(operation, body, *ids)
    assert statuses(world.tree) == expected
    (asked,) = world.dispatched
    assert {one.id for one in asked.touched} == set(expected)
    for one in asked.touched:
        assert one.failed == ("ERROR" if one.id == ids[-1] else "ACTIVE")
        assert one.done == ("DELETED" if expected[one.id] == DELETE else "ACTIVE")


@pytest.mark.parametrize(("operation", "body", "ids", "expected"), CHANGES, ids=NAMES)
async def test_oc_05_while_the_load_balancer_is_busy_changes_below_it_are_immutable(
    operation: Operation, body: Any, ids: tuple[str, ...], expected: dict[str, str]
) -> None:
    world = a_world()
    rows = {**world.tree.rows, "load_balancer": [{**world.tree.load_balancer, "provisioning_status": UPDATE}]}
    world.database.now = replace(world.tree, rows=rows)
    refusal = await world.refusal(operation, body, *ids)
    assert (refusal.status, refusal.text) == (409, f"Load Balancer {LB} is immutable and cannot be updated.")
    assert not world.yes.told


@pytest.mark.parametrize(("operation", "body", "ids", "expected"), CHANGES, ids=NAMES)
async def test_c_09_an_object_under_change_is_immutable_itself(
    operation: Operation, body: Any, ids: tuple[str, ...], expected: dict[str, str]
) -> None:
    world = a_world()
    rows = {
        table: [{**row, "provisioning_status": DELETE} if row.get("id") == ids[-1] else row for row in of]
        for table, of in world.tree.rows.items()
    }
    world.database.now = replace(world.tree, rows=rows)
    refusal = await world.refusal(operation, body, *ids)
    assert refusal.status == 409
    assert f"{ids[-1]} is immutable" in refusal.text
    assert not world.yes.told


@pytest.mark.parametrize(("operation", "body", "ids", "expected"), CHANGES, ids=NAMES)
async def test_what_a_provider_refuses_is_not_written(
    operation: Operation, body: Any, ids: tuple[str, ...], expected: dict[str, str]
) -> None:
    world = a_world()
    probe = a_world()
    await probe.do(operation, body, *ids)
    world.yes.refused.add(probe.dispatched[0].method)
    assert (await world.refusal(operation, body, *ids)).status == 501


async def test_a_decision_is_made_again_when_the_tree_moved_and_given_up_after_three() -> None:
    world = a_world()
    world.database.moves_under = 2
    assert (await world.do(pool.update, {"name": "a"}, POOL)).status == 200
    world.settle()
    world.database.moves_under = 3
    refusal = await world.refusal(pool.update, {"name": "b"}, POOL)
    assert (refusal.status, refusal.text) == (409, f"Load Balancer {LB} is immutable and cannot be updated.")


async def test_what_was_in_error_before_goes_back_to_error_when_a_change_fails() -> None:
    world = World(a_listener(default_pool_id=POOL, provisioning_status="ERROR"), a_pool(), a_member())
    await world.do(member.update, {"weight": 2}, POOL, MEMBER)
    failed = {one.id: one.failed for one in world.dispatched[0].touched}
    assert failed == {LB: "ACTIVE", LISTENER: "ERROR", POOL: "ACTIVE", MEMBER: "ERROR"}


# ---------------------------------------------------------------- pools


async def test_c_01_a_pool_does_not_serve_another_load_balancers_listener() -> None:
    foreign = {**a_listener(OTHER)[1], "load_balancer_id": "another"}
    world = World(a_listener(), others={"listener": [foreign]})
    refusal = await world.refusal(pool.create, {**NEW_POOL, "loadbalancer_id": LB, "listener_id": OTHER})
    assert refusal.status == 400
    assert OTHER in refusal.text


async def test_a_04_a_listener_that_is_not_there_is_404() -> None:
    for place in ({"listener_id": OTHER}, {"loadbalancer_id": LB, "listener_id": OTHER}):
        refusal = await World().refusal(pool.create, {**NEW_POOL, **place})
        assert (refusal.status, refusal.text) == (404, f"Listener {OTHER} not found.")


async def test_c_02_the_protocols_of_pool_and_listener_are_compared_however_the_place_is_named() -> None:
    for place in ({"listener_id": LISTENER}, {"loadbalancer_id": LB, "listener_id": LISTENER}):
        world = World(a_listener(protocol="UDP"))
        refusal = await world.refusal(pool.create, {**NEW_POOL, **place})
        assert "'HTTP' is invalid while the listener protocol is 'UDP'" in refusal.text
        world = World(a_listener(protocol="PROMETHEUS"))
        refusal = await world.refusal(pool.create, {**NEW_POOL, **place})
        assert "PROMETHEUS listeners cannot have child objects" in refusal.text


async def test_a_new_pool_becomes_the_listeners_default_pool_and_holds_it() -> None:
    world = World(a_listener())
    await world.do(pool.create, {**NEW_POOL, "listener_id": LISTENER})
    (made,) = inserted(world, "pool")
    assert world.row("listener", LISTENER)["default_pool_id"] == made["id"]
    assert statuses(world.tree) == {LB: UPDATE, LISTENER: UPDATE, made["id"]: "PENDING_CREATE"}


# ---------------------------------------------------------------- listeners and policies


@pytest.mark.parametrize(("status", "code"), [("DELETED", 404), ("PENDING_DELETE", 409)])
async def test_c_03_nothing_is_pointed_at_a_pool_that_goes(status: str, code: int) -> None:
    def fresh() -> World:
        return World(a_listener(), a_pool(provisioning_status=status), a_policy())

    redirect = {"action": "REDIRECT_TO_POOL", "redirect_pool_id": POOL}
    for operation, body, ids in (
        (listener.update, {"default_pool_id": POOL}, (LISTENER,)),
        (listener.create, {**NEW_LISTENER, "default_pool_id": POOL}, ()),
        (l7policy.update, redirect, (POLICY,)),
        (l7policy.create, {**redirect, "listener_id": LISTENER, "position": 1}, ()),
    ):
        assert (await fresh().refusal(operation, body, *ids)).status == code


async def test_c_05_a_deleted_listener_has_no_policies() -> None:
    world = World(a_listener(provisioning_status="DELETED"))
    refusal = await world.refusal(
        l7policy.create, {"listener_id": LISTENER, "action": "REJECT", "position": 1}
    )
    assert refusal.status == 404


async def test_c_04_a_rule_is_found_in_its_own_policy_alone() -> None:
    for operation, body in ((l7rule.update, {"value": "/b"}), (l7rule.delete, None)):
        world = World(a_listener(), a_policy(), a_policy("policy-2", 2), a_rule())
        assert (await world.refusal(operation, body, "policy-2", RULE)).status == 404


TLS = {"protocol": "TERMINATED_HTTPS", "default_tls_container_ref": "own", "sni_container_refs": ["b", "a"]}


async def test_a_provider_gets_the_certificates_of_a_new_listener_with_those_for_sni() -> None:
    world = a_world()
    world.yes.certificates = {name: {"id": name} for name in ("own", "a", "b")}
    await world.do(listener.create, {**NEW_LISTENER, **TLS})
    ((_, (told,)),) = world.yes.told
    assert told["default_tls_container_data"] == {"id": "own"}
    assert [data["id"] for data in told["sni_container_data"]] == told["sni_container_refs"]
    (made,) = inserted(world, "listener")
    assert made["tls_versions"] == ",".join(OPTIONS.default_listener_tls_versions)


async def test_a_certificate_that_cannot_be_read_stops_a_change_and_no_deletion() -> None:
    world = a_world()
    world.yes.refused.add("b")
    refusal = await world.refusal(listener.create, {**NEW_LISTENER, **TLS})
    assert refusal.text == "Could not retrieve certificate: ['b']"
    tls = a_listener(protocol="TERMINATED_HTTPS", tls_certificate_id="gone")
    assert (await World(tls).refusal(listener.update, {"name": "a"}, LISTENER)).status == 400
    assert (await World(tls).do(listener.delete, None, LISTENER)).status == 204


async def test_a_19_a_new_metrics_listener_with_certificates_has_the_standard_settings() -> None:
    world = World(options=replace(OPTIONS, minimum_tls_version="TLSv1.2"))
    world.yes.certificates = {name: {"id": name} for name in ("own", "a", "b")}
    await world.do(listener.create, {**NEW_LISTENER, **TLS, "protocol": "PROMETHEUS"})
    (made,) = inserted(world, "listener")
    assert made["tls_versions"] == "TLSv1.2,TLSv1.3"


async def test_a_19_null_gives_the_standard_versions_back_under_a_minimum() -> None:
    options = replace(OPTIONS, minimum_tls_version="TLSv1.2")
    world = World(a_listener(protocol="TERMINATED_HTTPS", tls_versions="TLSv1.3"), options=options)
    answer = await world.do(listener.update, {"tls_versions": None}, LISTENER)
    assert answer.body is not None
    assert answer.body["listener"]["tls_versions"] == ["TLSv1.2", "TLSv1.3"]


async def test_c_12_versions_are_checked_whether_tls_is_on_or_not() -> None:
    world = a_world()
    for operation, body in (
        (listener.create, {**NEW_LISTENER, "tls_versions": ["TLSv9"]}),
        (pool.create, {**NEW_POOL, "loadbalancer_id": LB, "tls_versions": ["TLSv9"]}),
    ):
        refusal = await world.refusal(operation, body)
        assert refusal.text == "Validation failure: Invalid TLS versions: TLSv9"


async def test_a_12_tags_and_networks_go_from_what_there_is_to_what_is_wanted() -> None:
    world = a_world()
    await world.do(
        listener.update, {"tags": ["b", "a"], "allowed_cidrs": ["10.0.0.0/8", "192.0.2.0/24"]}, LISTENER
    )
    world.settle()
    answer = await world.do(listener.update, {"tags": ["a", "c"], "allowed_cidrs": ["10.0.0.0/8"]}, LISTENER)
    assert answer.body is not None
    assert answer.body["listener"]["tags"] == ["a", "c"]
    assert answer.body["listener"]["allowed_cidrs"] == ["10.0.0.0/8"]


async def test_policies_are_numbered_from_one_without_gaps() -> None:
    world = World(a_listener(), a_policy("a", 1), a_policy("b", 2), a_policy("c", 3))
    await world.do(l7policy.create, {"listener_id": LISTENER, "action": "REJECT", "position": 2})
    (new,) = inserted(world, "l7policy")
    assert [row["id"] for row in world.tree.of("l7policy")] == ["a", new["id"], "b", "c"]
    world.settle()
    await world.do(l7policy.update, {"position": 99}, "a")
    order = [(row["id"], row["position"]) for row in world.tree.of("l7policy")]
    assert order == [(new["id"], 1), ("b", 2), ("c", 3), ("a", 4)]


async def test_what_would_pass_a_quota_never_reaches_a_provider() -> None:
    world = a_world(limits={"pool": 1})
    refusal = await world.refusal(pool.create, {**NEW_POOL, "loadbalancer_id": LB})
    assert (refusal.status, refusal.text) == (403, "Quota has been met for resources: Pool")
    assert not world.yes.told


# ---------------------------------------------------------------- batches of members


def wanted(*addresses: str, **more: Any) -> dict[str, Any]:
    one = {"protocol_port": 80, "weight": 1, "backup": False, "admin_state_up": True, **more}
    return {"members": [{"address": address, **one} for address in addresses]}


@pytest.mark.parametrize(
    "addresses",
    [
        ("192.0.2.10", "192.0.2.10"),
        ("192.0.2.20", "192.0.2.20"),
        ("2001:db8::5", "2001:0db8:0:0:0:0:0:5"),
    ],
)
async def test_oc_03_a_member_twice_in_a_batch_is_refused_and_locks_nothing(
    addresses: tuple[str, ...],
) -> None:
    world = a_world()
    refusal = await world.refusal(member.batch, wanted(*addresses), POOL)
    assert refusal.status == (400 if addresses[0] == "192.0.2.10" else 409)
    assert not statuses(world.tree)
    assert (await world.do(member.batch, wanted("192.0.2.10", "192.0.2.20"), POOL)).status == 202


async def test_c_11_a_member_is_known_by_its_address_however_it_is_spelt() -> None:
    world = World(a_pool(), a_member(ip_address="fe80:0::1"))
    body = {"address": "fe80::1", "protocol_port": 80, "weight": 1, "backup": False}
    assert (await world.refusal(member.create, body, POOL)).status == 409
    await world.do(member.batch, wanted("fe80::1", weight=7), POOL)
    assert [(row["id"], row["weight"]) for row in world.tree.of("member")] == [(MEMBER, 7)]
    reserved = replace(OPTIONS, reserved_ips=("2001:DB8::1",))
    world = World(a_pool(), options=reserved)
    body["address"] = "2001:db8:0::1"
    assert (await world.refusal(member.create, body, POOL)).status == 400


async def test_c_10_a_batch_does_not_move_a_member_to_another_subnet() -> None:
    world = World(a_pool(), a_member(subnet_id="subnet-1"))
    refusal = await world.refusal(member.batch, wanted("192.0.2.10", subnet_id="subnet-2"), POOL)
    assert refusal.status == 400
    assert MEMBER in refusal.text
    await world.do(member.batch, wanted("192.0.2.10", subnet_id="subnet-1"), POOL)
    assert world.row("member", MEMBER)["subnet_id"] == "subnet-1"


async def test_oc_02_an_empty_batch_empties_the_pool_and_does_nothing_to_an_empty_one() -> None:
    world = World(a_pool(), a_member(), a_member("member-2", ip_address="192.0.2.11"))
    assert (await world.do(member.batch, {"members": []}, POOL)).status == 202
    assert {status for one, status in statuses(world.tree).items() if one.startswith("member")} == {DELETE}
    world = World(a_pool())
    before = world.tree
    assert (await world.do(member.batch, {"members": []}, POOL)).status == 202
    assert world.tree is before
    assert not world.yes.told


async def test_an_additive_batch_keeps_what_it_does_not_name_and_tells_the_provider_all() -> None:
    world = a_world()
    await world.do(member.batch, wanted("192.0.2.20"), POOL, additive_only="True")
    ((method, (pool_id, told)),) = world.yes.told
    assert (method, pool_id) == ("member_batch_update", POOL)
    assert [one["address"] for one in told] == ["192.0.2.20", "192.0.2.10"]
    assert MEMBER not in statuses(world.tree)


async def test_the_batch_of_another_project_asks_for_every_right_it_uses() -> None:
    for right in ("member:post", "member:put", "member:delete"):
        world = a_world()
        world.yes.refused.add(right)
        assert (await world.refusal(member.batch, wanted("192.0.2.20"), POOL)).status == 403
    world = a_world()
    world.yes.refused.add("member:delete")
    assert (await world.do(member.batch, wanted("192.0.2.20"), POOL, additive_only="true")).status == 202


async def test_oc_07_each_subnet_that_the_caller_cannot_see_is_refused_and_looked_up_once() -> None:
    world = a_world()
    await world.do(member.batch, wanted("192.0.2.20", "192.0.2.21", subnet_id="subnet-1"), POOL)
    assert world.yes.asked == ["subnet-1"]
    world = a_world()
    world.yes.refused.add("foreign")
    refusal = await world.refusal(member.batch, wanted("192.0.2.20", subnet_id="foreign"), POOL)
    assert (refusal.status, refusal.text) == (400, "Subnet foreign not found.")
