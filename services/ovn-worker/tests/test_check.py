"""Refusals beyond the recorded ones: whole graphs, updates, empty forms of options, and calls without surroundings."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead_ovn.balancer import balancer_of
from roadstead_ovn.check import BATCH_MONITOR, MIXED, NO_TYPE, Surroundings, check

from .shapes import SIXTH, facts, listener, member, monitor, pool, tree

AROUND = Surroundings(
    balancer_of(tree([listener()], [pool(members=[member("known", "198.51.100.10")])])), facts()
)


def text(method: str, *arguments: Any, around: Surroundings | None = AROUND) -> str | None:
    refusal = check(method, arguments, around)
    return None if refusal is None else refusal.text


@pytest.mark.parametrize("cidrs", [[], None])
def test_oc_06_the_empty_form_of_an_option_is_not_the_option(cidrs: list[str] | None) -> None:
    assert text("listener_create", listener(allowed_cidrs=cidrs)) is None
    assert text("listener_create", listener()) is None


@pytest.mark.parametrize(
    ("method", "model", "part"),
    [
        ("listener_create", listener(allowed_cidrs=["203.0.113.0/24"]), "allowed_cidrs option"),
        ("listener_update", listener(allowed_cidrs=["203.0.113.0/24"]), "allowed_cidrs option"),
        ("pool_create", pool(lb_algorithm="ROUND_ROBIN"), "ROUND_ROBIN algorithm"),
        ("pool_update", pool(lb_algorithm="LEAST_CONNECTIONS"), "LEAST_CONNECTIONS algorithm"),
        ("pool_create", pool(session_persistence={"type": "APP_COOKIE"}), "APP_COOKIE session persistence"),
        ("pool_update", pool(session_persistence={"type": "HTTP_COOKIE"}), "HTTP_COOKIE session persistence"),
        ("health_monitor_create", monitor(type="HTTP"), "HTTP health monitor type"),
        ("loadbalancer_failover", "lb", "loadbalancer failover"),
    ],
)
def test_oc_06_what_ovn_cannot_do_is_named(method: str, model: Any, part: str) -> None:
    refusal = check(method, [{}, model] if method.endswith("update") else [model], AROUND)
    assert refusal is not None
    assert refusal.kind == "UnsupportedOption"
    assert part in refusal.text


def test_what_stands_already_is_not_refused_again() -> None:
    made = listener(default_pool=pool(lb_algorithm="ROUND_ROBIN"))
    assert text("listener_create", made) is None
    assert (
        text("listener_update", listener(allowed_cidrs=["203.0.113.0/24"]), {"listener_id": "listener"})
        is None
    )


def test_a_monitor_without_a_type_is_refused() -> None:
    assert text("health_monitor_create", monitor(type=None)) == NO_TYPE
    assert text("health_monitor_update", monitor(), {"healthmonitor_id": "hm", "delay": 9}) is None


def graph(**parts: Any) -> dict[str, Any]:
    model: dict[str, Any] = tree()["loadbalancer"]
    return {**model, **parts}


@pytest.mark.parametrize(
    ("parts", "part"),
    [
        ({"listeners": [listener(protocol="HTTP")]}, "HTTP protocol"),
        ({"listeners": [listener(l7policies=[{"action": "REJECT"}])]}, "creating l7policies"),
        ({"pools": [pool(lb_algorithm="ROUND_ROBIN")]}, "ROUND_ROBIN"),
        ({"pools": [pool(members=[member("m", "2001:db8::9", subnet="sub-6")])]}, MIXED),
        ({"pools": [pool(members=[member("m", "198.51.100.9", subnet=None)])]}, "for Member creation"),
        ({"pools": [pool(members=[member("m", "192.0.2.9", monitor_port=1)])]}, "monitor address or port"),
        ({"pools": [pool(healthmonitor=monitor(type="PING"))]}, "PING"),
    ],
)
def test_a_graph_is_refused_for_any_of_its_parts(parts: dict[str, Any], part: str) -> None:
    assert part in (text("loadbalancer_create", graph(**parts), around=Surroundings(facts=facts())) or "")


def test_a_graph_that_ovn_can_do_is_taken() -> None:
    pools = [pool(members=[member("m", "192.0.2.9"), member("m6", "2001:db8::9", subnet="sub-6")])]
    whole = graph(listeners=[listener()], pools=pools, additional_vips=[SIXTH], flavor={"x": 1})
    assert text("loadbalancer_create", whole, around=Surroundings(facts=facts())) is None


def test_a_batch_looks_at_new_members_for_their_subnet_and_at_all_for_monitors() -> None:
    assert text("member_batch_update", "pool", [member("known", "198.51.100.10", subnet=None)]) is None
    refused = text("member_batch_update", "pool", [member("new", "198.51.100.11", subnet=None)]) or ""
    assert "for Member batch update" in refused
    assert (
        text("member_batch_update", "pool", [member("known", "192.0.2.9", monitor_port=9)]) == BATCH_MONITOR
    )
    assert text("member_batch_update", "pool", []) is None


def test_deleting_a_member_that_nobody_can_place_has_its_own_words() -> None:
    refused = text("member_delete", member("m", "198.51.100.11", subnet=None)) or ""
    assert "for Member deletion if it is with OVN Provider Driver" in refused


@pytest.mark.parametrize("values", [{"weight": 0}, {"weight": 256}, {"backup": True}])
def test_weights_and_backups_are_taken(values: dict[str, Any]) -> None:
    for method, arguments in (
        ("member_create", [member("m", "192.0.2.9", **values)]),
        ("member_update", [member("m", "192.0.2.9"), {"member_id": "m", **values}]),
        ("member_batch_update", ["pool", [member("m", "192.0.2.9", **values)]]),
    ):
        assert check(method, arguments, AROUND) is None


def test_without_surroundings_only_the_call_itself_is_judged() -> None:
    assert text("member_create", member("m", "2001:db8::9", subnet=None), around=None) is None
    assert text("member_create", member("m", "2001:db8::9", monitor_port=1), around=None) is not None


def test_a_method_that_nobody_knows_is_not_implemented() -> None:
    refusal = check("amphora_update", [])
    assert refusal is not None
    assert refusal.kind == "NotImplemented"


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "listeners",
                    "pools",
                    "members",
                    "healthmonitor",
                    "type",
                    "address",
                    "subnet_id",
                    "session_persistence",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_methods = st.sampled_from(
    [
        "loadbalancer_create",
        "listener_update",
        "pool_create",
        "member_create",
        "member_delete",
        "member_batch_update",
        "health_monitor_create",
        "l7rule_update",
    ]
)


@settings(max_examples=300, deadline=None)
@given(_methods, st.lists(_values, max_size=3), st.booleans())
def test_checking_is_total_and_repeatable(method: str, arguments: list[Any], is_known: bool) -> None:
    around = AROUND if is_known else None
    assert check(method, arguments, around) == check(method, arguments, around)
