"""The route table against what is known of the original, and what the router makes of paths."""

import re
from typing import Any

import pytest

from roadstead_octavia.http.faults import RoutingError
from roadstead_octavia.http.router import find
from roadstead_octavia.http.routes import EVERYWHERE, ROUTES, entries
from roadstead_octavia.policy_rules import PREFIX, RULES

from .facts import facts_of, needs_facts


def test_there_are_75_operations_and_297_entries_and_none_twice() -> None:
    served = list(entries())
    assert (len(ROUTES), len(served), len(set(served))) == (75, 297, 297)


def test_every_rule_that_a_route_asks_is_a_default_rule_and_none_is_left_over() -> None:
    asked = {PREFIX + rule for route in ROUTES for rule in route.rules}
    assert asked == {rule.name for rule in RULES if rule.name.startswith(PREFIX)}


@needs_facts
def test_routes_statuses_prefixes_rules_and_arguments_are_those_of_the_original() -> None:
    facts = facts_of("routes")["operations"]
    assert {_told(o) for o in facts} == {
        (r.operation, r.method, _blank(r.path), r.prefixes, r.success, r.rules) for r in ROUTES
    }
    strict = {o["id"] for o in facts if "Unknown argument" in str(o["query"]["unknown_query"])}
    assert strict == {r.operation for r in ROUTES if r.arguments is not None}


def _told(operation: dict[str, Any]) -> tuple[Any, ...]:
    rules = tuple(p.split(" ")[0].removeprefix(PREFIX) for p in operation["policy"])
    path, prefixes = _blank(operation["path"]), tuple(operation["prefixes"])
    return operation["id"], operation["method"], path, prefixes, operation["success"], rules


def _blank(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
def test_every_route_is_found_under_each_prefix_with_a_slash_and_with_endings(route: Any) -> None:
    ids = tuple(f"id-{n}" for n in range(route.path.count("{")))
    path = re.sub(r"\{[^}]*\}", "%s", route.path) % ids
    for prefix in route.prefixes:
        for ending, as_xml in (("", False), ("/", False), (".json", False), (".xml", True)):
            found = find(route.method, prefix + path + ending)
            assert (found.route, found.ids, found.as_xml) == (route, ids, as_xml)


def refused(method: str, path: str) -> tuple[int, str | None, dict[str, str]]:
    with pytest.raises(RoutingError) as caught:
        find(method, path)
    return caught.value.status, caught.value.description, dict(caught.value.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/loadbalancers",
        "/load-balancer/v2/lbaas/pools",
        "//v2/pools",
        "/v2//pools",
        "v2/pools",
        "/v3/",
        "/v2",
    ],
)
def test_paths_outside_of_the_api_are_404_without_a_description(path: str) -> None:
    assert refused("GET", path) == (404, None, {})


@pytest.mark.parametrize(
    "path",
    [
        "/v2/lbaas/nonsense",
        "/v2/lbaas/quotas/p/nonsense",
        "/v2/lbaas/loadbalancers/x/nonsense",  # B1: not the name of an attribute
        "/v2/pools//",
        "/v2/pools/x/members/y/z",
        "/v2/amphorae",
        "/v2/octavia/pools",
        "/v2/lbaas/pools.txt",
        "/v2/lbaas/pools/a\0b",
    ],
)
def test_paths_that_lead_nowhere_are_404(path: str) -> None:
    assert refused("GET", path) == (404, "", {})


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PATCH", "/v2/lbaas/pools", "DELETE, GET, POST, PUT"),
        ("PATCH", "/v2/lbaas/pools/x/members", "DELETE, GET, POST, PUT"),
        ("HEAD", "/v2/lbaas/pools", "DELETE, GET, POST, PUT"),
        ("POST", "/v2/lbaas/quotas", "DELETE, GET, PUT"),
        ("PATCH", "/v2/lbaas/providers", "GET"),
        ("GET", "/v2/lbaas/providers/x", "GET"),
        ("PUT", "/v2/octavia/amphorae/x/bogus", "DELETE, GET"),
        ("DELETE", "/v2/lbaas/pools", "GET, POST"),  # B3
        ("PUT", "/v2/lbaas/loadbalancers", "GET, POST"),
        ("POST", "/v2/lbaas/loadbalancers/x", "DELETE, GET, PUT"),
        ("GET", "/v2/lbaas/loadbalancers/x/failover", "PUT"),  # B2
        ("POST", "/v2/lbaas/loadbalancers/x/failover", "PUT"),
        ("DELETE", "/v2/lbaas/loadbalancers/x/status", "GET"),
    ],
)
def test_methods_that_are_not_there_are_405_and_told(method: str, path: str, allow: str) -> None:
    assert refused(method, path) == (405, "", {"Allow": allow})


def test_a_name_with_a_dot_is_a_name() -> None:
    assert find("GET", f"{EVERYWHERE[0]}/availabilityzones/az.one").ids == ("az.one",)
