"""Cases from fault reports about what is read: dates and lists."""

import re
from typing import Any

import pytest

from .building import build, removed
from .client import Client
from .people import Home

STRICT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")


async def test_oc_01_dates_have_neither_zone_nor_fraction_and_reading_changes_none(
    user: Client, red: Home
) -> None:
    made = await user.ok("POST", "loadbalancers", {"loadbalancer": {"vip_subnet_id": red.subnet}})
    assert STRICT.fullmatch(made["created_at"])
    assert made["updated_at"] is None
    await user.active(f"loadbalancers/{made['id']}")
    await removed(user, made["id"])

    built = await build(user, red.subnet)
    for path in built.paths:
        kind = next(iter((await user.call("GET", path)).body))
        change = {"value": "/other"} if kind == "rule" else {"name": "renamed"}
        await user.ok("PUT", path, {kind: change})
        await user.active(f"loadbalancers/{built.lb}")
        shown = await user.ok("GET", path)
        listed = await user.call("GET", path.rpartition("/")[0])
        rows = next(v for k, v in listed.body.items() if not k.endswith("_links"))
        (row,) = [r for r in rows if r["id"] == shown["id"]]
        for one in (shown, row):
            assert STRICT.fullmatch(one["created_at"]), (path, one["created_at"])
            assert STRICT.fullmatch(one["updated_at"]), (path, one["updated_at"])
        again = await user.ok("GET", path)
        assert (again["created_at"], again["updated_at"]) == (shown["created_at"], shown["updated_at"])
    await removed(user, built.lb)


@pytest.fixture
async def three(user: Client, red: Home) -> Any:
    """lb1 disabled with tags blue and web, lb2 with tag blue, lb3 without."""
    wanted: dict[str, dict[str, Any]] = {
        "lb1": {"admin_state_up": False, "tags": ["blue", "web"]},
        "lb2": {"tags": ["blue"]},
        "lb3": {},
    }
    made = [
        await user.load_balancer(vip_subnet_id=red.subnet, name=name, description="three", **more)
        for name, more in wanted.items()
    ]
    yield made
    for one in made:
        await removed(user, one["id"])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("admin_state_up=false", ["lb1"]),
        ("admin_state_up=False", ["lb1"]),
        ("admin_state_up=true", ["lb2", "lb3"]),
        ("tags=blue,web", ["lb1"]),
        ("tags=blue&name=lb2", ["lb2"]),
        ("tags-any=web,green", ["lb1"]),
        ("not-tags=blue", ["lb3"]),
        ("not-tags-any=web,green", ["lb2", "lb3"]),
        ("tags=blue&admin_state_up=true&name=lb1", []),
    ],
)
async def test_oc_04_filters_combine_and_give_exactly_the_right_ones(
    user: Client, three: Any, query: str, names: list[str]
) -> None:
    reply = await user.call("GET", f"loadbalancers?description=three&{query}")
    assert reply.status == 200, reply.body
    assert sorted(one["name"] for one in reply.body["loadbalancers"]) == names


async def test_oc_04_no_boolean_is_refused_and_links_keep_the_filter(user: Client, three: Any) -> None:
    reply = await user.call("GET", "loadbalancers?admin_state_up=maybe")
    assert reply.status == 400, reply.body
    assert set(reply.body) == {"faultcode", "faultstring", "debuginfo"}
    seen = []
    path = "loadbalancers?description=three&tags=blue&limit=1&sort=name:asc"
    for _ in range(3):
        page = await user.call("GET", path)
        assert page.status == 200, page.body
        seen += [one["name"] for one in page.body["loadbalancers"]]
        links = [x["href"] for x in page.body["loadbalancers_links"] if x["rel"] == "next"]
        if not links:
            break
        assert "tags=blue" in links[0]
        path = "/" + links[0].split("/", 3)[3]
    assert seen == ["lb1", "lb2"]
