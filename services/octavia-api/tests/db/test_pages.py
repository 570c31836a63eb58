"""Pages: filters, tags, orders, markers, relations, hidden rows, and a constant number of statements."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from roadstead_octavia.db.port import RELATIONS, Change, Filter, Insert, Page, Row, Update
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.tables import NIL
from roadstead_octavia.errors import ApiError
from roadstead_octavia.resources.shown import shown

from .samples import (
    OPTIONS,
    PROJECT,
    creation,
    listener,
    load_balancer,
    made,
    member,
    monitor,
    policy,
    pool,
    rule,
)

pytestmark = pytest.mark.integration
LISTED = ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")


def names(rows: Sequence[Row]) -> list[Any]:
    return [row["name"] for row in rows]


async def balancers(database: PostgresDatabase, *given: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for one in given:
        tags = one.pop("tags", ())
        row = load_balancer(**one)
        await database.commit(creation(row, tags=tags), OPTIONS)
        rows.append(row)
    return rows


async def test_oc_04_tags_and_booleans_combine_with_other_filters(database: PostgresDatabase) -> None:
    await balancers(
        database,
        {"name": "lb1", "enabled": False, "tags": ("blue", "web")},
        {"name": "lb2", "tags": ("blue",)},
        {"name": "lb3"},
    )

    async def found(*filters: Filter, **given: Any) -> list[Any]:
        return names(await database.page(Page("load_balancer", None, filters=filters, **given)))

    assert await found(Filter("enabled", (False,))) == ["lb1"]
    assert await found(tags=(("blue", "web"), (), (), ())) == ["lb1"]
    assert await found(tags=(("blue",), (), (), ())) == ["lb1", "lb2"]
    assert await found(Filter("name", ("lb2",)), tags=(("blue",), (), (), ())) == ["lb2"]
    assert await found(tags=((), ("web", "green"), (), ())) == ["lb1"]
    assert await found(tags=((), (), ("blue",), ())) == ["lb3"]
    assert await found(tags=((), (), ("blue", "web"), ())) == ["lb2", "lb3"]
    assert await found(tags=((), (), (), ("blue", "web"))) == ["lb3"]
    assert await found(tags=(("blue",), ("blue", "x"), ("blue", "web"), ("y",))) == ["lb2"]
    assert await found(Filter("name", ("lb1", "lb3", "none"))) == ["lb1", "lb3"]
    assert await found(Filter("ip_address", ("192.0.2.5",), "vip")) == ["lb1", "lb2", "lb3"]
    assert await found(Filter("ip_address", ("192.0.2.6",), "vip")) == []
    assert await found(Filter("name", ("a\0",))) == []


async def test_rows_of_other_projects_and_deleted_ones_are_hidden(database: PostgresDatabase) -> None:
    rows = await balancers(database, {"name": "a"}, {"name": "b", "project_id": "other"}, {"name": "c"})
    gone = (Update("load_balancer", {"id": rows[0]["id"]}, {"provisioning_status": "DELETED"}),)
    await database.commit(Change(rows[0]["id"], 1, gone), OPTIONS)
    assert names(await database.page(Page("load_balancer", PROJECT))) == ["c"]
    assert names(await database.page(Page("load_balancer", None))) == ["b", "c"]
    assert names(await database.page(Page("load_balancer", None, hide_deleted=False))) == ["a", "b", "c"]
    assert await database.page(Page("flavor", None, sort=(("id", False),))) == []
    assert await database.page(Page("availability_zone", None, sort=(("name", False),))) == []


async def test_a_marker_must_be_a_row_that_the_caller_may_see(database: PostgresDatabase) -> None:
    mine, other = await balancers(database, {"name": "a"}, {"name": "b", "project_id": "other"})
    assert names(await database.page(Page("load_balancer", PROJECT, marker=mine["id"]))) == []
    for marker in (other["id"], "none", "a\0b", "\ud800"):
        with pytest.raises(ApiError) as refusal:
            await database.page(Page("load_balancer", PROJECT, marker=marker))
        assert (refusal.value.status, refusal.value.name) == (400, "InvalidMarker")
    assert names(await database.page(Page("load_balancer", None, marker=mine["id"]))) == ["b"]


async def test_a_deleted_row_still_marks_its_place(database: PostgresDatabase) -> None:
    rows = await balancers(database, *({"name": f"n{n}"} for n in range(4)))
    gone = (Update("load_balancer", {"id": rows[1]["id"]}, {"provisioning_status": "DELETED"}),)
    await database.commit(Change(rows[1]["id"], 1, gone), OPTIONS)
    assert names(await database.page(Page("load_balancer", PROJECT, marker=rows[1]["id"]))) == ["n2", "n3"]


ORDERS = (
    (("created_at", False), ("id", False)),
    (("name", False), ("created_at", False), ("id", False)),
    (("name", True), ("created_at", False), ("id", False)),
    (("description", True), ("name", False), ("id", True)),
    (("enabled", False), ("updated_at", True), ("id", False)),
    (("vip.ip_address", True), ("created_at", False), ("id", False)),
    (("vip.ip_address", False), ("id", False)),
)


def sorted_as(rows: Sequence[Row], sort: Sequence[tuple[str, bool]]) -> list[Row]:
    """Sorted by Python, NULL as the least value."""
    found = list(rows)
    for name, descends in reversed(sort):

        def place(row: Row, name: str = name) -> Any:
            value = row["vip"][name[4:]] if name.startswith("vip.") else row[name]
            return (value is not None, value)

        found.sort(key=place, reverse=descends)
    return found


@pytest.mark.parametrize(
    "sort", ORDERS, ids=lambda sort: "-".join(f"{n}{'_desc' if d else ''}" for n, d in sort)
)
async def test_walking_pages_forwards_and_back_shows_every_row_once_in_order(
    database: PostgresDatabase, sort: tuple[tuple[str, bool], ...]
) -> None:
    chance, rows = random.Random(7), []
    start = datetime(2026, 1, 1)  # noqa: DTZ001 - the columns have no zone
    for n in range(40):
        row = load_balancer(
            name=chance.choice((None, "", "a", "b", "é")),
            description=chance.choice((None, "x", "y")),
            enabled=chance.random() < 0.5,
            created_at=chance.choice((None, start, start + timedelta(seconds=n))),
            updated_at=chance.choice((None, start)),
        )
        await database.write([Insert("load_balancer", row)])
        await database.write(
            [Insert("vip", {"load_balancer_id": row["id"], "ip_address": chance.choice((None, "1", "2"))})]
        )
    rows = list(await database.page(Page("load_balancer", None)))
    wanted = [row["id"] for row in sorted_as(rows, sort)]
    query = Page("load_balancer", None, sort=sort, limit=7)
    pages: list[list[Any]] = []
    while page := await database.page(query):
        pages.append([row["id"] for row in page])
        query = replace(query, marker=page[-1]["id"])
    assert [one for page in pages for one in page] == wanted
    for n in range(1, len(pages)):
        before = await database.page(replace(query, marker=pages[n][0], reverse=True))
        assert [row["id"] for row in before] == pages[n - 1]
    assert await database.page(replace(query, marker=wanted[0], reverse=True)) == []


async def test_c24_the_page_before_a_marker_ends_just_before_it_in_list_order(
    database: PostgresDatabase,
) -> None:
    rows = await balancers(database, *({"name": n} for n in ("", "", "p0", "p1", "p2", "p3", "p4")))
    sort = (("name", False), ("created_at", False), ("id", False))
    query = Page("load_balancer", PROJECT, sort=sort, limit=2, marker=rows[5]["id"], reverse=True)
    assert names(await database.page(query)) == ["p1", "p2"]
    assert names(await database.page(replace(query, marker=None))) == ["", ""]


async def graph(database: PostgresDatabase) -> dict[str, Any]:
    row = load_balancer()
    pools = [pool(row["id"]) for _ in range(3)]
    listeners = [listener(row["id"], 90 - n, default_pool_id=pools[0]["id"]) for n in range(2)]
    members = [member(pools[0]["id"], n) for n in range(3)]
    hm = monitor(pools[0]["id"])
    policies = [
        policy(listeners[0]["id"], 3 - n, redirect_pool_id=pools[1 + n % 2]["id"], enabled=n != 1)
        for n in range(3)
    ]
    rules = [rule(policies[n]["id"]) for n in (1, 2, 2)]
    rest = [Insert("pool", p) for p in pools] + [Insert("listener", one) for one in listeners]
    rest += [Insert("member", m) for m in members] + [Insert("health_monitor", hm)]
    rest += [Insert("l7policy", y) for y in policies] + [Insert("l7rule", r) for r in rules]
    rest += [
        Insert("session_persistence", {"pool_id": pools[0]["id"], "type": "APP_COOKIE", "cookie_name": "c"})
    ]
    rest += [
        Insert("listener_cidr", {"listener_id": listeners[1]["id"], "cidr": c})
        for c in ("2.0.0.0/8", "1.0.0.0/8")
    ]
    rest += [
        Insert("sni", {"listener_id": listeners[1]["id"], "tls_container_id": c, "position": n})
        for n, c in enumerate("zy")
    ]
    rest += [
        Insert("additional_vip", {"load_balancer_id": row["id"], "subnet_id": s, "ip_address": "1"})
        for s in ("b", "a")
    ]
    rest += [Insert("vip_security_group", {"load_balancer_id": row["id"], "sg_id": g}) for g in ("g2", "g1")]
    rest += [
        Insert("tags", {"resource_id": x["id"], "tag": t})
        for x in (pools[0], hm, rules[0])
        for t in ("t2", "t1")
    ]
    await database.commit(creation(row, *rest, tags=("b", "a")), OPTIONS)
    return {
        "root": row,
        "pools": pools,
        "listeners": listeners,
        "members": members,
        "hm": hm,
        "policies": policies,
        "rules": rules,
    }


def ids(rows: Sequence[Row]) -> list[Any]:
    return [row["id"] for row in rows]


@pytest.mark.parametrize("limit", [1, 1000], ids=["few", "many"])
async def test_shown_rows_have_their_relations(database: PostgresDatabase, limit: int) -> None:
    known = await graph(database)

    async def shown(table: str, identifier: str) -> Row:
        (row,) = await database.page(Page(table, None, filters=(Filter("id", (identifier,)),), limit=limit))
        assert set(RELATIONS[table]) <= set(row)
        return row

    row = await shown("load_balancer", known["root"]["id"])
    assert row["vip"]["ip_address"] == "192.0.2.5"
    assert (row["listeners"], row["pools"]) == (ids(known["listeners"]), ids(known["pools"]))
    assert (row["vip_sg_ids"], row["tags"]) == (["g1", "g2"], ["a", "b"])
    assert [v["subnet_id"] for v in row["additional_vips"]] == ["a", "b"]
    assert row["additional_vips"][0]["ip_address"] == "1"
    first = await shown("pool", known["pools"][0]["id"])
    assert first["members"] == ids(known["members"])
    assert (first["health_monitor_id"], first["tags"]) == (known["hm"]["id"], ["t1", "t2"])
    assert first["session_persistence"]["cookie_name"] == "c"
    assert first["listeners"] == ids(known["listeners"])
    # The policy to the second pool that has rules is enabled, the one to the third is not.
    second, third = [await shown("pool", p["id"]) for p in known["pools"][1:]]
    assert (second["listeners"], third["listeners"]) == ([known["listeners"][0]["id"]], [])
    assert (second["session_persistence"], second["health_monitor_id"], second["members"]) == (None, None, [])
    one = await shown("listener", known["listeners"][0]["id"])
    assert one["l7policies"] == ids(known["policies"][::-1])
    two = await shown("listener", known["listeners"][1]["id"])
    assert (two["allowed_cidrs"], two["sni_containers"]) == (["1.0.0.0/8", "2.0.0.0/8"], ["z", "y"])
    assert (await shown("l7policy", known["policies"][2]["id"]))["rules"] == ids(known["rules"][1:])
    assert (await shown("l7rule", known["rules"][0]["id"]))["tags"] == ["t1", "t2"]


@pytest.mark.parametrize("limit", [20, 1000])
async def test_a_listed_row_is_the_row_that_a_tree_shows(database: PostgresDatabase, limit: int) -> None:
    known = await graph(database)
    tree = await database.tree(known["root"]["id"])
    assert tree is not None
    for table in LISTED:
        rows = await database.page(Page(table, None, limit=limit))
        assert rows
        assert [dict(row) for row in rows] == [shown(tree, table, row["id"]) for row in rows]


@pytest.mark.parametrize("table", LISTED)
async def test_a_page_takes_the_same_number_of_statements_whatever_it_holds(
    database: PostgresDatabase, table: str
) -> None:
    async def statements(**given: Any) -> int:
        before = database.session.round_trips
        await database.page(Page(table, None, **given))
        return database.session.round_trips - before

    for _ in range(3):
        known = await graph(database)
    assert await statements(limit=1000) == 2
    assert await statements() == 2
    assert await statements(limit=20) == 1
    any_row = (await database.page(Page(table, None, limit=1)))[0]["id"]
    assert await statements(limit=1000, marker=any_row) == 3
    assert await statements(limit=5, marker=any_row) == 2
    assert known["root"]["id"]


async def test_nested_lists_show_the_children_of_their_parent(database: PostgresDatabase) -> None:
    known = await graph(database)
    await graph(database)
    found = await database.page(Page("member", None, parent={"pool_id": known["pools"][0]["id"]}))
    assert ids(found) == ids(known["members"])
    assert await database.page(Page("member", "nobody", parent={"pool_id": known["pools"][0]["id"]})) == []
    assert await database.page(Page("member", None, parent={"pool_id": NIL})) == []


async def test_tables_without_an_id_are_paged_by_their_key(database: PostgresDatabase) -> None:
    profile = "f1"
    await database.write(
        [
            Insert(
                "availability_zone_profile",
                {"id": profile, "provider_name": "noop", "availability_zone_data": "{}"},
            ),
            *(
                Insert(
                    "availability_zone", {"name": n, "enabled": True, "availability_zone_profile_id": profile}
                )
                for n in ("z2", "z1", "z3")
            ),
            *(Insert("quotas", {"project_id": p}) for p in ("b", "a")),
        ]
    )
    zones = Page("availability_zone", None, sort=(("enabled", False), ("name", False)), limit=2)
    assert names(await database.page(zones)) == ["z1", "z2"]
    assert names(await database.page(replace(zones, marker="z2"))) == ["z3"]
    limits = Page("quotas", None, sort=(("pool", True), ("project_id", False)), limit=1, marker="a")
    assert [row["project_id"] for row in await database.page(limits)] == ["b"]


async def test_pools_sort_and_filter_by_their_monitor(database: PostgresDatabase) -> None:
    known = await graph(database)
    query = Page("pool", None, filters=(Filter("id", (known["hm"]["id"],), "health_monitor"),))
    assert ids(await database.page(query)) == [known["pools"][0]["id"]]
    by_monitor = Page("pool", None, sort=(("health_monitor.id", True), ("id", False)), limit=1)
    assert ids(await database.page(by_monitor)) == [known["pools"][0]["id"]]


async def test_without_a_limit_all_rows_come(database: PostgresDatabase) -> None:
    tree = await made(database)
    p = pool(tree.load_balancer["id"])
    writes = (Insert("pool", p), *(Insert("member", member(p["id"], n)) for n in range(1500)))
    await database.commit(Change(tree.load_balancer["id"], 1, writes), OPTIONS)
    rows = await database.page(Page("member", PROJECT))
    assert [row["ip_address"] for row in rows] == [w.row["ip_address"] for w in writes[1:]]
    assert len(await database.page(Page("member", PROJECT, limit=1000))) == 1000
