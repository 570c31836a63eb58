"""Recorded exchanges that need no rows: versions, health, what clients read, and the way through the routes."""

from collections.abc import Mapping
from typing import Any

import pytest

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.http.routes import ROUTES

from .client import POOL, Got, Rows, an_app, ask
from .facts import Exchange, exchanges, needs_recordings

pytestmark = needs_recordings
COMPARED = ("content-type", "allow", "www-authenticate", "location")
PREFIXES = (
    "prefix.",
    "slash.",
    "json.",
    "patch.",
    "misc.v",
    "misc.load-balancer",
    "misc.accept",
    "misc.unknown-route",
)
QUERIES = (
    "limit",
    "sort-bad-direction",
    "sort-unknown",
    "sort-two",
    "filter-unknown",
    "filter-tenant",
    "filter-lb",
)
POLICY = "058105b4-1163-446a-9bb3-b3364d574ff7"


def options_of(world: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "api_settings.healthcheck_enabled": "healthcheck_enabled",
        "api_settings.healthcheck_refresh_interval": "healthcheck_refresh_interval",
        "healthcheck.detailed": "healthcheck_detailed",
        "healthcheck.backends": "healthcheck_backends",
    }
    found = {names[k]: v for k, v in (world.get("config") or {}).items() if k in names}
    if "healthcheck_backends" in found:
        found["healthcheck_backends"] = tuple(found["healthcheck_backends"])
    return found


async def nothing(call: Call) -> Answer:
    return Answer(200, {})


async def replay(exchange: Exchange, **more: Any) -> Got:
    rows = Rows({"pool": [{"id": POOL, "project_id": "p"}], "l7policy": [{"id": POLICY, "project_id": "p"}]})
    if exchange.world.get("faults"):
        rows.fault = RuntimeError(exchange.world["faults"][0]["message"])
    app = an_app(rows, options=options_of(exchange.world), **more)
    request = exchange.request
    return await ask(app, request["method"], request["path"], request["headers"], request.get("body"))


def headers_of(exchange: Exchange) -> dict[str, str]:
    return {name: value for name, value in exchange.response["headers"].items() if name in COMPARED}


def assert_same(got: Got, exchange: Exchange) -> None:
    assert got.status == exchange.response["status"]
    assert {name: value for name, value in got.headers.items() if name in COMPARED} == headers_of(exchange)
    assert got.headers["x-openstack-request-id"].startswith("req-")
    if exchange.loose.get("body"):
        return
    body: Any = got.body if "json" in got.headers.get("content-type", "") else got.text
    if "json_keys" in exchange.loose:
        assert set(body) == set(exchange.body)
        for name in exchange.loose["json_keys"]:
            body.pop(name, None)
            exchange.body.pop(name, None)
        assert body["reasons"] == exchange.body["reasons"]
    else:
        assert body == exchange.body


@pytest.mark.parametrize("name", ["root_controller", "content_types", "healthcheck"])
async def test_versions_and_health_are_answered_as_recorded(name: str) -> None:
    seen = 0
    for exchange in exchanges(name):
        assert_same(await replay(exchange), exchange)
        seen += 1
    assert seen == {"root_controller": 1, "content_types": 10, "healthcheck": 27}[name]


async def test_the_way_to_every_recorded_route_is_the_same() -> None:
    everything = dict.fromkeys((route.operation for route in ROUTES), nothing)
    seen = 0
    for exchange in exchanges("extra_forms"):
        name = exchange.test.removeprefix("extra_forms.")
        if not name.startswith(PREFIXES):
            continue
        got = await replay(exchange, operations=everything)
        if exchange.response["status"] == 200 and "versions" not in exchange.response["body"][:20]:
            # What is listed is not here: that it is answered, and in which form.
            assert (got.status, got.headers["content-type"]) == (
                200,
                exchange.response["headers"]["content-type"],
            )
        else:
            assert_same(got, exchange)
        seen += 1
    assert seen > 60


async def test_the_query_of_a_list_is_refused_as_recorded() -> None:
    seen = 0
    for exchange in exchanges("extra_forms"):
        name = exchange.test.removeprefix("extra_forms.")
        if exchange.kind or not name.startswith("query.") or exchange.response["status"] == 200:
            continue
        if not any(part in name for part in QUERIES):
            continue
        assert_same(await replay(exchange), exchange)
        seen += 1
    assert seen > 15


async def test_a_collection_that_cannot_be_deleted_says_so_b3() -> None:
    """The original calls its handler and misses an argument: 400."""
    seen = 0
    for exchange in exchanges("extra_forms"):
        if exchange.test.startswith("extra_forms.delete-list."):
            got = await replay(exchange)
            assert (got.status, exchange.response["status"]) == (405, 400)
            assert "DELETE" not in got.headers["allow"]
            seen += 1
    assert seen > 5


async def test_what_lies_behind_an_object_is_no_attribute_of_it_b1() -> None:
    """The original takes the segment for `fields` and answers an empty object."""
    seen = 0
    for exchange in exchanges("extra_forms"):
        if exchange.test.startswith("extra_forms.deeper."):
            assert (await replay(exchange)).status == 404
            seen += 1
    assert seen > 3
