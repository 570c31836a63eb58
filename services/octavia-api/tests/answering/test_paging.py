"""What a query asks for, and the links of a page."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead_octavia.db.port import Filter, Page
from roadstead_octavia.errors import ApiError
from roadstead_octavia.http.operations import resource_of
from roadstead_octavia.http.paging import Nothing, asked, links_of, page_of
from roadstead_octavia.http.routes import ROUTES
from roadstead_octavia.options import Options

from .client import LB, OTHER, READER, Rows, an_app, ask
from .facts import facts_of, needs_facts
from .rows import a_load_balancer

DEFAULT = Options()
LISTED = sorted({r.resource for r in ROUTES if r.function == "list_"} - {"provider"})


def page(resource: str, *query: tuple[str, str], options: Options = DEFAULT) -> Page | Nothing:
    return page_of(resource_of(resource), asked(query, options), query, options, project_id=None)


def a_page(resource: str, *query: tuple[str, str], options: Options = DEFAULT) -> Page:
    found = page(resource, *query, options=options)
    assert isinstance(found, Page)
    return found


def refusal(resource: str, *query: tuple[str, str]) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        page(resource, *query)
    return caught.value.status, caught.value.text


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (None, 1000),
        ("1", 1),
        (" 7 ", 7),
        ("+5", 5),
        ("1000", 1000),
        ("1001", 1000),
        ("9" * 400, 1000),
        ("0", None),
        ("000", None),
        ("-1", None),
        ("infinite", None),
        ("None", None),  # what links of a list without a limit say
    ],
)
def test_a_limit_is_lowered_to_the_most_and_nothing_positive_means_none(text: str | None, limit: Any) -> None:
    assert asked([("limit", text)] if text is not None else [], DEFAULT).limit == limit


@pytest.mark.parametrize("text", ["", "x", "1.5", "0x10", "1_000", "\u0661", "1\0"])
def test_a_limit_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        asked([("limit", text)], DEFAULT)
    assert (caught.value.status, caught.value.name) == (400, "InvalidLimit")


def test_without_a_most_a_limit_is_what_was_asked() -> None:
    options = replace(DEFAULT, pagination_max_limit=None)
    assert asked([], options).limit is None
    assert asked([("limit", "5000")], options).limit == 5000


# ---------------------------------------------------------------- sorting


def test_sorting_is_total_and_a_name_on_the_wire_is_its_column() -> None:
    assert a_page("loadbalancer").sort == (("created_at", False), ("id", False))
    got = a_page("loadbalancer", ("sort", "admin_state_up:desc,vip_address,id:desc"))
    assert got.sort == (("enabled", True), ("vip.ip_address", False), ("id", True), ("created_at", False))
    assert a_page("quota").sort == (("project_id", False),)
    assert a_page("availability_zone").sort == (("name", False),)
    assert a_page("flavor").sort == (("id", False),)


def test_the_older_form_of_sorting() -> None:
    got = a_page("pool", ("sort_key", "name,protocol,id"), ("sort_dir", "desc"))
    assert got.sort == (("name", True), ("protocol", False), ("id", False), ("created_at", False))


@pytest.mark.parametrize("name", ["listeners", "tags", "nonsense", "", "vip.ip_address", "__class__"])
def test_what_cannot_be_sorted_by_is_400_a15(name: str) -> None:
    assert refusal("loadbalancer", ("sort", f"{name}:asc")) == (
        400,
        f"Supplied sort key '{name}' is not valid.",
    )


@pytest.mark.parametrize("resource", LISTED)
def test_every_name_that_can_be_sorted_by_takes_a_marker_a15(resource: str) -> None:
    """The original fails on a marker with a renamed, nested or boolean key, and on tables without an id."""
    for name in resource_of(resource).sorts:
        got = a_page(resource, ("sort", name), ("marker", "m"), ("limit", "2"))
        assert got.marker == "m"
        assert len({column for column, _ in got.sort}) == len(got.sort)


# ---------------------------------------------------------------- filters


def test_filters_have_the_types_of_their_columns() -> None:
    got = a_page(
        "member",
        ("protocol_port", "80"),
        ("address", "192.0.2.1"),
        ("backup", "Yes"),
        ("created_at", "2026-01-01T00:00:00"),
    )
    assert got.filters == (
        Filter("protocol_port", (80,)),
        Filter("ip_address", ("192.0.2.1",)),
        Filter("backup", (True,)),
        Filter("created_at", (datetime.fromisoformat("2026-01-01T00:00:00"),)),
    )
    assert a_page("loadbalancer", ("vip_address", "10.0.0.1")).filters == (
        Filter("ip_address", ("10.0.0.1",), "vip"),
    )
    assert a_page("pool", ("healthmonitor_id", LB)).filters == (Filter("id", (LB,), "health_monitor"),)


@pytest.mark.parametrize(
    ("resource", "name", "value"),
    [
        ("member", "protocol_port", "http"),
        ("member", "protocol_port", "1e3"),
        ("member", "protocol_port", "99999999999999999999999"),
        ("member", "protocol_port", "2147483648"),
        ("member", "created_at", "yesterday"),
        ("loadbalancer", "name", "a\0b"),
        ("listener", "insert_headers", "{}"),
    ],
)
def test_a_value_that_no_row_can_have_makes_an_empty_list(resource: str, name: str, value: str) -> None:
    assert isinstance(page(resource, (name, value)), Nothing)


async def test_an_empty_list_is_answered_without_asking_the_database() -> None:
    rows = Rows({"load_balancer": [a_load_balancer()]})
    got = await ask(an_app(rows), "GET", "/v2/lbaas/loadbalancers?name=a%00b")
    assert (got.status, got.body) == (200, {"loadbalancers": [], "loadbalancers_links": []})
    assert rows.pages == []


@pytest.mark.parametrize("value", ["maybe", "", "2", "None"])
def test_oc_04_a_boolean_filter_that_is_none_is_400(value: str) -> None:
    status, text = refusal("loadbalancer", ("admin_state_up", value))
    assert status == 400
    assert "admin_state_up" in text


@pytest.mark.parametrize(
    ("value", "wanted"), [("false", False), ("False", False), ("0", False), ("TRUE", True)]
)
def test_oc_04_a_boolean_filter_is_a_boolean(value: str, wanted: bool) -> None:
    assert a_page("loadbalancer", ("admin_state_up", value)).filters == (Filter("enabled", (wanted,)),)


def test_oc_04_a_comma_list_is_several_tags_and_goes_with_other_filters() -> None:
    got = a_page(
        "loadbalancer", ("tags", "blue,web"), ("tags", "x"), ("name", "lb2"), ("not-tags-any", "a,b")
    )
    assert got.tags == (("blue", "web", "x"), (), (), ("a", "b"))
    assert got.filters == (Filter("name", ("lb2",)),)


@pytest.mark.parametrize(
    "query",
    [
        [("nonsense", "1")],
        [("name", "a"), ("name", "b")],  # A16
        [("listeners", "x")],  # A16
        [("additional_vips", "x")],
        [("loadbalancer_id", LB)],
        [("tenant_id", "x")],
        [("name", "a"), ("provider", "b"), ("", "c")],
        [("project_id", "a"), ("project_id", "b")],
    ],
)
def test_what_cannot_be_filtered_by_is_400_a16(query: list[tuple[str, str]]) -> None:
    text = "One or more arguments are either duplicate or invalid"
    assert refusal("loadbalancer", *query) == (400, text)


def test_the_load_balancer_of_a_child_has_two_names() -> None:
    for resource in ("listener", "pool", "amphora"):
        assert a_page(resource, ("loadbalancer_id", LB)).filters == (Filter("load_balancer_id", (LB,)),)


@needs_facts
def test_names_to_filter_and_sort_by_are_those_of_the_original() -> None:
    keys = facts_of("routes")["list_keys"]
    # Never did anything on the original (healthmonitor, the rows of other tables); departures.
    left_out = {"healthmonitor", "sni_container_refs", "vip_sg_ids"}
    for name, known in keys.items():
        resource = resource_of(name)
        wanted = set(known["filter_names_model"]) | set(known["filter_names_wire_renamed"])
        able = set(resource.filters) | (
            {"loadbalancer_id"} if "load_balancer_id" in resource.filters else set()
        )
        assert wanted - able <= (left_out if name != "quota" else set()), name
        assert set(known["sort_names"]) - set(resource.sorts) <= left_out, name


# ---------------------------------------------------------------- what the operator switched off


def test_what_is_switched_off_is_ignored() -> None:
    query = (("limit", "1"), ("marker", "m"), ("sort", "nonsense"), ("nonsense", "1"), ("tags", "a"))
    options = replace(DEFAULT, allow_pagination=False, allow_sorting=False, allow_filtering=False)
    got = a_page("loadbalancer", *query, options=options)
    assert (got.limit, got.marker, got.filters, got.tags) == (None, None, (), ((), (), (), ()))
    assert links_of(resource_of("pool"), asked(query, options), query, [{"id": "x"}], "u", options) is None
    off = replace(DEFAULT, allow_field_selection=False)
    assert asked([("fields", "id")], off).fields == ()


async def test_without_paging_a_list_is_whole_and_its_links_are_null() -> None:
    rows = Rows({"load_balancer": [a_load_balancer(), a_load_balancer(OTHER)]})
    got = await ask(
        an_app(rows, options={"allow_pagination": False}), "GET", "/v2/lbaas/loadbalancers?limit=1"
    )
    assert (len(got.body["loadbalancers"]), got.body["loadbalancers_links"]) == (2, None)


# ---------------------------------------------------------------- links


def links(*query: tuple[str, str], rows: int = 1) -> dict[str, str]:
    found = links_of(
        resource_of("pool"),
        asked(query, DEFAULT),
        query,
        [{"id": f"p{n}"} for n in range(rows)],
        "http://h/v2/lbaas/pools",
        DEFAULT,
    )
    assert found is not None
    return {link["rel"]: link["href"] for link in found}


def test_links_are_the_recorded_ones() -> None:
    url = "http://h/v2/lbaas/pools?"
    assert links(("limit", "2"), rows=1) == {}
    assert links(("limit", "2"), rows=2) == {"next": f"{url}limit=2&marker=p1"}
    assert links(("limit", "1"), ("marker", "x")) == {
        "previous": f"{url}limit=1&marker=p0&page_reverse=True",
        "next": f"{url}limit=1&marker=p0",
    }
    assert links(("limit", "0")) == {"next": f"{url}limit=None&marker=p0"}
    assert links(("limit", "1"), rows=0) == {}


def test_oc_04_links_keep_order_and_filters() -> None:
    got = links(("limit", "1"), ("sort", "name:desc"), ("name", "a&b"), ("tags", "x,y"), ("fields", "id"))
    assert got["next"] == (
        "http://h/v2/lbaas/pools?limit=1&sort=name:desc&marker=p0&name=a%26b&tags=x%2Cy&fields=id"
    )


async def test_following_the_links_shows_every_row_once() -> None:
    rows = Rows({"load_balancer": [a_load_balancer(f"id-{n}", name=f"n{n % 3}") for n in range(7)]})
    path, seen = "/v2/lbaas/loadbalancers?limit=2&sort=name:desc&fields=id", []
    for _ in range(10):
        body = (await ask(an_app(rows), "GET", path)).body
        seen += [lb["id"] for lb in body["loadbalancers"]]
        following = [link["href"] for link in body["loadbalancers_links"] if link["rel"] == "next"]
        if not following:
            break
        path = following[0].removeprefix("http://localhost")
    assert sorted(seen) == [f"id-{n}" for n in range(7)]


async def test_a_row_that_cannot_be_seen_is_no_marker_c23() -> None:
    rows = Rows({"load_balancer": [a_load_balancer(), a_load_balancer(OTHER, project_id=OTHER)]})
    got = await ask(an_app(rows, READER), "GET", f"/v2/lbaas/loadbalancers?marker={OTHER}")
    assert (got.status, got.body["faultstring"]) == (
        400,
        f"Supplied pagination marker '{OTHER}' is not valid.",
    )


# ---------------------------------------------------------------- anything

NAMES = st.sampled_from(
    [
        *(
            "limit",
            "marker",
            "sort",
            "sort_key",
            "sort_dir",
            "fields",
            "page_reverse",
            "tags",
            "not-tags-any",
        ),
        *("name", "admin_state_up", "created_at", "project_id", "vip_address", "protocol_port", "_method"),
        *("", "\0"),
    ]
)


@given(st.lists(st.tuples(NAMES, st.text(max_size=20)), max_size=6), st.sampled_from(LISTED))
def test_no_query_does_anything_but_ask_or_be_refused(query: list[tuple[str, str]], resource: str) -> None:
    outcome: Any
    try:
        outcome = page(resource, *query)
    except ApiError as error:
        outcome = error
    assert isinstance(outcome, Page | Nothing) or outcome.status == 400
