"""The next change of the parts: which, in what order, and that they end in the spec."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.loadbalancer.tests.test_tree import LISTENERS, echoed
from services.loadbalancer.tests.world import BALANCER, DNS, NAME, WEB, spec_of

from roadstead_loadbalancer.loadbalancer.mend import Change, Halt, next_step
from roadstead_loadbalancer.loadbalancer.rules import LoadBalancerVerb as Verb
from roadstead_loadbalancer.loadbalancer.tree import (
    Tree,
    WantedListener,
    differences,
    render,
    seen_listener,
    seen_monitor,
    seen_pool,
)

METHOD = "SOURCE_IP_PORT"
PARTS = {"listener": "listeners", "pool": "pools", "healthmonitor": "monitors"}


def wanted_of(**spec: Any) -> tuple[WantedListener, ...]:
    return render(BALANCER, spec_of(**spec), METHOD)


def rested(tree: Tree) -> Tree:
    """The same parts, all ACTIVE."""
    return Tree(
        tuple(replace(part, status="ACTIVE") for part in tree.listeners),
        tuple(replace(part, status="ACTIVE") for part in tree.pools),
        tuple(replace(part, status="ACTIVE") for part in tree.monitors),
    )


def step_of(tree: Tree, **spec: Any) -> Change | Halt | None:
    return next_step("b", wanted_of(**spec), tree)


def web(changes: dict[str, Any] | None = None, pool: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Both listeners, the first one changed."""
    return [{**WEB, **(changes or {}), "pool": {**WEB["pool"], **(pool or {})}}, DNS]


TREE = rested(echoed())
WEB_LISTENER, WEB_POOL, WEB_MONITOR = (f"{NAME}-web-{part}" for part in ("listener", "pool", "monitor"))


def test_inv_268_a_tree_as_wanted_needs_nothing() -> None:
    assert step_of(TREE) is None


@pytest.mark.parametrize(
    ("listeners", "verb", "args"),
    [
        pytest.param(
            web({"allowedCIDRs": ["10.0.0.0/8"]}),
            Verb.UPDATE_LISTENER,
            {"id": "l-0", "json": {"listener": {"allowed_cidrs": ["10.0.0.0/8"]}}},
            id="ranges",
        ),
        pytest.param(
            web({"idleTimeoutSeconds": 5}),
            Verb.UPDATE_LISTENER,
            {"id": "l-0", "json": {"listener": {"timeout_client_data": 5000, "timeout_member_data": 5000}}},
            id="timeout",
        ),
        pytest.param(
            web(pool={"members": WEB["pool"]["members"][:1]}),
            Verb.REPLACE_MEMBERS,
            {"pool": "pool-0", "json": {"members": [{"address": "192.168.10.200", "protocol_port": 8080}]}},
            id="members",
        ),
        pytest.param(
            web(pool={"members": []}),
            Verb.REPLACE_MEMBERS,
            {"pool": "pool-0", "json": {"members": []}},
            id="no members",
        ),
        pytest.param(
            web(pool={"healthCheck": {"intervalSeconds": 30, "timeoutSeconds": 9, "healthyThreshold": 4}}),
            Verb.UPDATE_MONITOR,
            {
                "id": "m-0",
                "json": {
                    "healthmonitor": {"delay": 30, "timeout": 9, "max_retries": 4, "max_retries_down": 2}
                },
            },
            id="check",
        ),
        pytest.param(web(pool={"healthCheck": None}), Verb.DELETE_MONITOR, {"id": "m-0"}, id="no check"),
        pytest.param([DNS], Verb.DELETE_LISTENER, {"id": "l-0"}, id="listener gone"),
    ],
)
def test_inv_271_inv_274_inv_275_inv_276_inv_277_inv_278_an_edit_is_one_write_of_what_differs(
    listeners: list[dict[str, Any]], verb: Verb, args: dict[str, Any]
) -> None:
    step = step_of(TREE, listeners=listeners)
    assert isinstance(step, Change)
    assert (step.verb, step.args, step.absence) == (verb, args, False)


def test_inv_272_ranges_that_are_wanted_no_more_are_cleared_by_an_empty_list() -> None:
    tree = rested(echoed(listeners=web({"allowedCIDRs": ["10.0.0.0/8"]})))
    step = step_of(tree)
    assert isinstance(step, Change)
    assert step.args["json"] == {"listener": {"allowed_cidrs": []}}


def test_inv_273_a_lost_default_pool_is_linked_again() -> None:
    tree = replace(TREE, listeners=(replace(TREE.listeners[0], pool=None), *TREE.listeners[1:]))
    step = step_of(tree)
    assert isinstance(step, Change)
    assert (step.verb, step.args["json"]) == (
        Verb.UPDATE_LISTENER,
        {"listener": {"default_pool_id": "pool-0"}},
    )


def test_inv_282_a_udp_listener_is_made_without_timeouts() -> None:
    tree = replace(TREE, listeners=TREE.listeners[:1])
    step = step_of(tree)
    assert isinstance(step, Change)
    assert step.args["json"]["listener"] == {
        "name": f"{NAME}-dns-listener",
        "protocol": "UDP",
        "protocol_port": 53,
        "loadbalancer_id": "b",
        "default_pool_id": "pool-1",
    }
    assert step.absence


def test_ref_059_a_listener_of_another_name_leaves_its_port_first() -> None:
    listeners = [{**WEB, "name": "www"}, DNS]
    first = step_of(TREE, listeners=listeners)
    assert isinstance(first, Change)
    assert (first.verb, first.name) == (Verb.DELETE_LISTENER, WEB_LISTENER)
    then = step_of(replace(TREE, listeners=TREE.listeners[1:]), listeners=listeners)
    assert isinstance(then, Change)
    assert (then.verb, then.name) == (Verb.CREATE_POOL, f"{NAME}-www-pool")


def test_pools_and_monitors_that_nobody_wants_go_last() -> None:
    """The new name's parts stand before the old name's pool goes."""
    done = rested(echoed(listeners=[{**WEB, "name": "www"}, DNS]))
    old = replace(TREE.pools[0], id="old"), replace(TREE.monitors[0], id="old-m", pool="old")
    both = replace(done, pools=(*done.pools, old[0]), monitors=(*done.monitors, old[1]))
    wish: dict[str, Any] = {"listeners": [{**WEB, "name": "www"}, DNS]}
    first, second = step_of(both, **wish), step_of(replace(both, pools=done.pools), **wish)
    assert isinstance(first, Change)
    assert isinstance(second, Change)
    assert (first.verb, first.name) == (Verb.DELETE_POOL, WEB_POOL)
    assert (second.verb, second.name) == (Verb.DELETE_MONITOR, WEB_MONITOR)


@pytest.mark.parametrize("changes", [{"pool": "another"}, {"facts": ("PING", 10, 5, 2, 3)}])
def test_a_monitor_that_cannot_become_the_wanted_one_goes_first(changes: dict[str, Any]) -> None:
    monitors = (replace(TREE.monitors[0], **changes), *TREE.monitors[1:])
    step = step_of(replace(TREE, monitors=monitors))
    assert isinstance(step, Change)
    assert (step.verb, step.name) == (Verb.DELETE_MONITOR, WEB_MONITOR)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("listeners", {"port": 81}), ("listeners", {"protocol": "HTTP"}), ("pools", {"protocol": "PROXYV2"})],
)
def test_what_octavia_never_changes_halts(kind: str, changes: dict[str, Any]) -> None:
    parts = getattr(TREE, kind)
    step = step_of(replace(TREE, **{kind: (replace(parts[0], **changes), *parts[1:])}))
    assert step == Halt(parts[0].name, "ACTIVE", fixed=True)


@pytest.mark.parametrize("kind", ["listeners", "pools", "monitors"])
def test_inv_270_a_part_in_error_halts_before_it_is_touched(kind: str) -> None:
    parts = getattr(TREE, kind)
    step = step_of(replace(TREE, **{kind: (replace(parts[0], status="ERROR"), *parts[1:])}))
    assert step == Halt(parts[0].name, "ERROR")


# ---------------------------------------------------------------- every edit


def performed(change: Change, tree: Tree, number: int) -> Tree:
    """What Octavia has after the change."""
    noun, _, act = change.operation.partition(".")
    if noun == "member":
        made = change.args["json"]["members"]
        members = frozenset((m["address"], m["protocol_port"]) for m in made)
        pools = [replace(p, members=members) if p.id == change.args["pool"] else p for p in tree.pools]
        return replace(tree, pools=tuple(pools))
    field = PARTS[noun]
    parts = list(getattr(tree, field))
    if act == "delete":
        ident = change.args["id"]
        left = replace(tree, **{field: tuple(p for p in parts if p.id != ident)})
        if noun == "pool":
            monitors = tuple(m for m in left.monitors if m.pool != ident)
            listeners = tuple(replace(x, pool=None) if x.pool == ident else x for x in left.listeners)
            left = replace(left, monitors=monitors, listeners=listeners)
        return left
    body = change.args["json"][noun]
    if act == "create":
        told = {"id": f"new-{number}", "provisioning_status": "ACTIVE", **body}
        part: Any
        if noun == "pool":
            part = seen_pool(told, [])
        elif noun == "listener":
            taken = {(x.protocol, x.port) for x in tree.listeners}
            assert (body["protocol"], body["protocol_port"]) not in taken
            part = seen_listener(told)
        else:
            assert body["pool_id"] not in {m.pool for m in tree.monitors}
            part = seen_monitor({**told, "pools": [{"id": body["pool_id"]}]})
        return replace(tree, **{field: (*parts, part)})
    (old,) = [p for p in parts if p.id == change.args["id"]]
    return replace(tree, **{field: tuple(_updated(p, body) if p is old else p for p in parts)})


def _updated(part: Any, body: dict[str, Any]) -> Any:
    if "lb_algorithm" in body:
        return replace(part, algorithm=body["lb_algorithm"])
    if "delay" in body:
        numbers = (body[k] for k in ("delay", "timeout", "max_retries", "max_retries_down"))
        return replace(part, facts=(part.facts[0], *numbers))
    if "allowed_cidrs" in body:
        part = replace(part, cidrs=frozenset(body["allowed_cidrs"]))
    if "default_pool_id" in body:
        part = replace(part, pool=body["default_pool_id"])
    if "timeout_client_data" in body:
        part = replace(part, timeouts=(body["timeout_client_data"], body["timeout_member_data"]))
    return part


NAMED = st.lists(st.tuples(st.sampled_from("abcd"), LISTENERS), min_size=1, max_size=4)


def spelled(named: list[tuple[str, dict[str, Any]]], order: list[int], taken: dict[str, Any]) -> list[Any]:
    """Listeners of different names and ports; what a name has once, it keeps."""
    found: dict[str, Any] = {}
    for (name, wish), port in zip(named, order, strict=False):
        kept = taken.get(name)
        fixed = {"protocol": wish["protocol"], "port": port}
        proxy = wish["pool"]["proxyProtocolV2"]
        if kept is not None:
            fixed = {"protocol": kept["protocol"], "port": kept["port"]}
            proxy = kept["pool"]["proxyProtocolV2"]
        if any((o["protocol"], o["port"]) == (fixed["protocol"], fixed["port"]) for o in found.values()):
            continue
        pool = {**wish["pool"], "proxyProtocolV2": proxy and fixed["protocol"] == "tcp"}
        made = {**wish, **fixed, "name": name, "pool": pool}
        if fixed["protocol"] == "udp":
            made.pop("idleTimeoutSeconds", None)
        found.setdefault(name, made)
    return list(found.values())


@given(NAMED, NAMED, st.permutations([1, 2, 3, 4]), st.permutations([1, 2, 3, 4]))
def test_inv_263_any_edit_ends_in_the_new_spec_one_write_at_a_time(
    before: list[Any], after: list[Any], ports: list[int], others: list[int]
) -> None:
    old = spelled(before, ports, {})
    new = spelled(after, others, {listener["name"]: listener for listener in old})
    tree = rested(echoed(listeners=old))
    wanted = wanted_of(listeners=new)
    for number in range(60):
        step = next_step("b", wanted, tree)
        if step is None:
            break
        assert isinstance(step, Change)
        tree = performed(step, tree, number)
    assert differences(wanted, tree) == ()
    names = {name for w in wanted for name in (w.listener, w.pool, *([w.monitor] if w.check else ()))}
    assert {part.name for part in tree.parts} == names
