"""Commits: one round trip, all or nothing, one winner of two writers, quotas that hold, refusals instead of failures."""

import asyncio
from typing import Any

import asyncpg
import pytest

from roadstead.testing.servers import free_port
from roadstead_octavia.db.port import Change, Delete, Insert, Stale, Touched, Update, Write
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options

from .samples import (
    OPTIONS,
    PROJECT,
    creation,
    listener,
    load_balancer,
    made,
    member,
    new_id,
    operation,
    plain,
    policy,
    pool,
    rule,
)

pytestmark = pytest.mark.integration


def quotas(**limits: int) -> Options:
    return Options(default_quotas={**OPTIONS.default_quotas, **limits})


async def trips(database: PostgresDatabase, work: Any) -> int:
    before = database.session.round_trips
    await work
    return database.session.round_trips - before


async def test_each_request_takes_one_round_trip_with_and_without_quotas(database: PostgresDatabase) -> None:
    row = load_balancer()
    assert await trips(database, database.commit(creation(row, tags=("a",)), OPTIONS)) == 1
    assert (
        await trips(
            database,
            database.commit(creation(load_balancer(), quota={"load_balancer": 1}), quotas(load_balancer=9)),
        )
        == 1
    )
    tree = await database.tree(row["id"])
    assert tree is not None
    assert await trips(database, database.tree(row["id"])) == 1
    p = pool(row["id"])
    writes: list[Write] = [
        Insert("pool", p),
        *(Insert("member", member(p["id"], n)) for n in range(300)),
    ]
    writes += [Update("load_balancer", {"id": row["id"]}, {"provisioning_status": "PENDING_UPDATE"})]
    change = Change(
        row["id"], tree.version, tuple(writes), operation(row["id"], "pool_create"), PROJECT, {"pool": 1}
    )
    assert await trips(database, database.commit(change, quotas(pool=5))) == 1
    assert await trips(database, database.usage(PROJECT)) == 1
    assert await trips(database, database.statistics([])) == 1
    assert await trips(database, database.tree_of("pool", p["id"])) == 1


async def test_of_two_writers_on_one_tree_one_wins_and_the_other_writes_nothing(
    database: PostgresDatabase,
) -> None:
    tree = await made(database)
    root = tree.load_balancer["id"]

    def change(name: str, port: int) -> Change:
        writes = (
            Update("load_balancer", {"id": root}, {"name": name}),
            Insert("listener", listener(root, port, name=name)),
        )
        return Change(root, tree.version, writes, operation(root, "listener_create"))

    told = await asyncio.gather(
        *(database.commit(change(f"n{n}", 80 + n), OPTIONS) for n in range(8)), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in told) == ["Stale"] * 7 + ["int"]
    fresh = await database.tree(root)
    assert fresh is not None
    assert [one["name"] for one in fresh.of("listener")] == [fresh.load_balancer["name"]]
    assert fresh.version == tree.version + 1
    assert len(await database.rows("operation", {"load_balancer_id": root})) == 2


async def test_a_change_that_lost_leaves_nothing_of_all_it_would_have_done(
    database: PostgresDatabase,
) -> None:
    tree = await made(database)
    root = tree.load_balancer["id"]
    await database.commit(Change(root, tree.version, (Insert("pool", pool(root)),)), OPTIONS)
    before = plain(await database.tree(root))
    writes = (
        Insert("pool", pool(root)),
        Update("pool", {"load_balancer_id": root}, {"name": "x"}),
        Delete("vip", {"load_balancer_id": root}),
        Insert("tags", {"resource_id": root, "tag": "t"}),
    )
    with pytest.raises(Stale):
        await database.commit(Change(root, tree.version, writes, operation(root)), OPTIONS)
    assert plain(await database.tree(root)) == before
    assert len(await database.rows("operation", {"load_balancer_id": root})) == 1


async def test_of_twenty_creations_with_a_limit_of_five_exactly_five_pass(database: PostgresDatabase) -> None:
    limited = quotas(load_balancer=5)
    told = await asyncio.gather(
        *(database.commit(creation(load_balancer(), quota={"load_balancer": 1}), limited) for _ in range(20)),
        return_exceptions=True,
    )
    refused = [one for one in told if isinstance(one, ApiError)]
    assert [one for one in told if not isinstance(one, ApiError)] == [1] * 5
    assert {(one.status, one.text) for one in refused} == {
        (403, "Quota has been met for resources: Load Balancer")
    }
    assert (await database.usage(PROJECT))["load_balancer"] == 5
    assert len(await database.rows("quotas", {"project_id": PROJECT})) == 1


async def test_a_projects_own_limit_outranks_the_standard_and_deleted_load_balancers_do_not_count(
    database: PostgresDatabase,
) -> None:
    await database.write([Insert("quotas", {"project_id": PROJECT, "load_balancer": 1})])
    tree = await made(database)
    with pytest.raises(ApiError) as refusal:
        await database.commit(creation(load_balancer(), quota={"load_balancer": 1}), OPTIONS)
    assert refusal.value.name == "QuotaException"
    root = tree.load_balancer["id"]
    gone = (Update("load_balancer", {"id": root}, {"provisioning_status": "DELETED"}),)
    await database.commit(Change(root, tree.version, gone), OPTIONS)
    assert await database.commit(creation(load_balancer(), quota={"load_balancer": 1}), OPTIONS) == 1
    await database.write([Update("quotas", {"project_id": PROJECT}, {"load_balancer": -1})])
    assert (
        await database.commit(creation(load_balancer(), quota={"load_balancer": 1}), quotas(load_balancer=1))
        == 1
    )


async def test_a_graph_is_refused_whole_when_one_kind_of_its_objects_is_too_many(
    database: PostgresDatabase,
) -> None:
    row = load_balancer()
    p = pool(row["id"])
    rest = [Insert("pool", p), *(Insert("member", member(p["id"], n)) for n in range(3))]
    wanted = {"load_balancer": 1, "pool": 1, "member": 3}
    with pytest.raises(ApiError, match="Member"):
        await database.commit(creation(row, *rest, quota=wanted), quotas(member=2))
    assert await database.tree(row["id"]) is None
    assert await database.row("member", {"pool_id": p["id"]}) is None
    assert await database.commit(creation(row, *rest, quota=wanted), quotas(member=3, pool=1)) == 1


async def test_quota_of_one_project_does_not_wait_for_another(
    database: PostgresDatabase, database_url: str
) -> None:
    await database.write([Insert("quotas", {"project_id": PROJECT, "load_balancer": 5})])
    holder = await asyncpg.connect(database_url)
    async with holder.transaction():
        await holder.execute("SELECT 1 FROM octavia.quotas WHERE project_id = $1 FOR UPDATE", PROJECT)
        other = load_balancer(project_id="another")
        change = creation(other, quota={"load_balancer": 1})
        assert await asyncio.wait_for(database.commit(change, quotas(load_balancer=3)), 3) == 1
        waiting = asyncio.create_task(
            database.commit(creation(load_balancer(), quota={"load_balancer": 1}), OPTIONS)
        )
        await asyncio.sleep(0.3)
        assert not waiting.done()
    assert await waiting == 1
    await holder.close()


async def test_a_lock_that_is_not_to_be_had_is_503_project_busy(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roadstead_octavia.db import postgres

    monkeypatch.setitem(postgres.SETTINGS, "lock_timeout", "200")
    database = PostgresDatabase(database_url, patience=2.0)
    await database.open()
    tree = await made(database)
    root = tree.load_balancer["id"]
    holder = await asyncpg.connect(database_url)
    async with holder.transaction():
        await holder.execute("SELECT 1 FROM octavia.load_balancer WHERE id = $1 FOR UPDATE", root)
        with pytest.raises(ApiError) as refusal:
            await database.commit(Change(root, tree.version, (Insert("pool", pool(root)),)), OPTIONS)
    assert (refusal.value.status, refusal.value.name) == (503, "ProjectBusy")
    await holder.close()
    await database.close()


async def test_deadlocks_are_tried_again_and_no_client_sees_one(
    database: PostgresDatabase, database_url: str
) -> None:
    first, second = await made(database), await made(database)
    roots = [first.load_balancer["id"], second.load_balancer["id"]]
    holder = await asyncpg.connect(database_url)
    await holder.execute("SET deadlock_timeout = '20s'")  # so that the other side is the one that is chosen
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("UPDATE octavia.load_balancer SET name = 'held' WHERE id = $1", roots[1])
    changes = [
        Change(
            root, tree.version, (Update("load_balancer", {"id": root}, {"description": "d"}),), revises=False
        )
        for root, tree in zip(roots, (first, second), strict=True)
    ]
    both = asyncio.create_task(database.commit_all(changes, OPTIONS))
    await asyncio.sleep(0.3)
    await holder.execute("UPDATE octavia.load_balancer SET name = 'held' WHERE id = $1", roots[0])
    await transaction.commit()
    await holder.close()
    assert await both == [1, 1]
    assert database.session.replays >= 1
    trees = [await database.tree(root) for root in roots]
    assert [(t.load_balancer["name"], t.load_balancer["description"]) for t in trees if t] == [
        ("held", "d")
    ] * 2


async def test_several_changes_are_one_transaction(database: PostgresDatabase) -> None:
    first, second = await made(database), await made(database)
    a, b = first.load_balancer["id"], second.load_balancer["id"]
    changes = [
        Change(a, first.version, (Update("load_balancer", {"id": a}, {"name": "a"}),)),
        Change(b, second.version + 7, (Update("load_balancer", {"id": b}, {"name": "b"}),)),
    ]
    with pytest.raises(Stale):
        await database.commit_all(changes, OPTIONS)
    assert plain(await database.tree(a)) == plain(first)
    assert await database.commit_all([changes[0]], OPTIONS) == [2]


@pytest.mark.parametrize("again", ["id", "port"])
async def test_a_key_that_somebody_else_took_meanwhile_is_stale_and_never_a_failure(
    database: PostgresDatabase, again: str
) -> None:
    row = load_balancer()
    await database.commit(creation(row), OPTIONS)
    if again == "id":
        with pytest.raises(Stale):
            await database.commit(creation(row), OPTIONS)
        return
    tree = await database.tree(row["id"])
    assert tree is not None
    change = Change(
        row["id"], tree.version, tuple(Insert("listener", listener(row["id"], 80)) for _ in range(2))
    )
    with pytest.raises(Stale, match="uq_listener"):
        await database.commit(change, OPTIONS)
    assert plain(await database.tree(row["id"])) == plain(tree)


async def test_deleting_takes_children_parts_tags_and_references_along(database: PostgresDatabase) -> None:
    row = load_balancer()
    p, m = pool(row["id"]), None
    m = member(p["id"])
    one = listener(row["id"], default_pool_id=p["id"])
    y = policy(one["id"], redirect_pool_id=p["id"])
    r = rule(y["id"])
    rest = [
        Insert("pool", p),
        Insert("member", m),
        Insert("listener", one),
        Insert("l7policy", y),
        Insert("l7rule", r),
    ]
    rest += [Insert("tags", {"resource_id": x["id"], "tag": "t"}) for x in (p, m, one, y, r)]
    rest += [Insert("session_persistence", {"pool_id": p["id"], "type": "SOURCE_IP"})]
    await database.commit(creation(row, *rest, tags=("t",)), OPTIONS)
    await database.commit(Change(row["id"], 1, (Delete("pool", {"id": p["id"]}),)), OPTIONS)
    tree = await database.tree(row["id"])
    assert tree is not None
    assert (tree.of("pool"), tree.of("member"), tree.of("session_persistence")) == ((), (), ())
    assert tree.of("listener")[0]["default_pool_id"] is None
    assert tree.of("l7policy")[0]["redirect_pool_id"] is None
    assert await database.rows("tags", {"resource_id": m["id"]}) == []
    await database.commit(Change(row["id"], 2, (Delete("listener", {"id": one["id"]}),)), OPTIONS)
    assert {t["resource_id"] for t in await database.rows("tags", {})} == {row["id"]}
    assert await database.rows("l7rule", {}) == []


async def test_tags_are_replaced_in_one_statement_also_by_the_same_ones(database: PostgresDatabase) -> None:
    row = load_balancer()
    await database.commit(creation(row, tags=("a", "b")), OPTIONS)
    writes: tuple[Write, ...] = (
        Delete("tags", {"resource_id": row["id"]}),
        *(Insert("tags", {"resource_id": row["id"], "tag": tag}) for tag in ("c", "b")),
    )
    assert await trips(database, database.commit(Change(row["id"], 1, writes), OPTIONS)) == 1
    tree = await database.tree(row["id"])
    assert tree is not None
    assert [t["tag"] for t in tree.of("tags")] == ["b", "c"]


async def test_an_operation_is_written_with_the_change_and_holds_no_key_material(
    database: PostgresDatabase,
) -> None:
    row = load_balancer()
    secret = {
        "$type": "Listener",
        "default_tls_container_ref": "r",
        "default_tls_container_data": {"private_key": "k"},
    }
    touched = (Touched("load_balancer", row["id"]), Touched("listener", "l", done="DELETED"))
    asked = operation(row["id"], arguments=[{"listeners": [secret]}], touched=touched)
    await database.commit(creation(row, operation=asked), OPTIONS)
    stored = await database.row("operation", {"id": asked.id})
    assert stored is not None
    assert stored["arguments"] == [{"listeners": [{"$type": "Listener", "default_tls_container_ref": "r"}]}]
    assert stored["touched"][1] == {"table": "listener", "id": "l", "done": "DELETED", "failed": "ERROR"}
    assert (stored["revision"], stored["state"], stored["sends"]) == (1, "SENT", 1)
    assert (stored["deadline"] - stored["created_at"]).total_seconds() == 60
    assert (stored["next_send_at"] - stored["created_at"]).total_seconds() == 5


async def test_a_commit_whose_answer_was_lost_is_not_made_twice(database: PostgresDatabase) -> None:
    row = load_balancer()
    change = creation(row)
    guarded, calls = database._guarded, 0

    async def loses_its_first_answer(*arguments: Any) -> int:
        nonlocal calls
        calls += 1
        revision = await guarded(*arguments)
        if calls == 1:
            raise ConnectionResetError
        return revision

    database._guarded = loses_its_first_answer  # type: ignore[method-assign, assignment]  # a stand-in for this test
    assert await database.commit(change, OPTIONS) == 1
    assert calls == 1
    assert len(await database.rows("operation", {"load_balancer_id": row["id"]})) == 1


async def test_a_database_that_is_away_is_503_with_retry_after() -> None:
    database = PostgresDatabase(f"postgresql://postgres@127.0.0.1:{free_port()}/none", patience=0.5)
    await database.session.open()
    with pytest.raises(ApiError) as refusal:
        await database.tree("x")
    assert (refusal.value.status, refusal.value.headers) == (503, (("Retry-After", "5"),))
    await database.close()


@pytest.mark.parametrize("name", ["n" * 300, "a\0b", "\ud800"])
async def test_a_value_that_cannot_be_stored_is_400_and_nothing_is_written(
    database: PostgresDatabase, name: str
) -> None:
    row = load_balancer(name=name)
    with pytest.raises(ApiError) as refusal:
        await database.commit(creation(row), OPTIONS)
    assert refusal.value.status == 400
    assert await database.rows("load_balancer", {}) == []


@pytest.mark.parametrize("identifier", ["a\0b", "\ud800", "x" * 5000, "'; --"])
async def test_an_id_that_cannot_be_is_not_there(database: PostgresDatabase, identifier: str) -> None:
    assert await database.tree(identifier) is None
    assert await database.tree_of("member", identifier) is None
    assert await database.row("load_balancer", {"id": identifier}) is None


async def test_writes_outside_load_balancers_refuse_keys_in_use_with_the_rules_texts(
    database: PostgresDatabase,
) -> None:
    profile, flavor = new_id(), new_id()
    await database.write(
        [Insert("flavor_profile", {"id": profile, "name": "p", "provider_name": "noop", "flavor_data": "{}"})]
    )
    made_flavor = {"id": flavor, "name": "gold", "enabled": True, "flavor_profile_id": profile}
    await database.write([Insert("flavor", made_flavor)])
    with pytest.raises(ApiError, match=r"A flavor of gold already exists\."):
        await database.write([Insert("flavor", {**made_flavor, "id": new_id()})])
    with pytest.raises(ApiError, match=rf"Flavor profile {profile} is in use and cannot be modified\."):
        await database.write([Delete("flavor_profile", {"id": profile})])
    with pytest.raises(ApiError, match=r"Flavor profile none not found\."):
        await database.write(
            [Insert("flavor", {**made_flavor, "id": new_id(), "name": "b", "flavor_profile_id": "none"})]
        )
    await database.write(
        [Update("flavor", {"id": new_id()}, {"name": "nobody"}), Delete("flavor", {"id": new_id()})]
    )
    assert len(await database.rows("flavor", {"flavor_profile_id": profile})) == 1


async def test_quotas_are_written_over_what_is_there(database: PostgresDatabase) -> None:
    await database.write([Insert("quotas", {"project_id": PROJECT, "pool": 3})])
    await database.write([Insert("quotas", {"project_id": PROJECT, "listener": 4})])
    row = await database.row("quotas", {"project_id": PROJECT})
    assert row is not None
    assert (row["pool"], row["listener"], row["in_use_pool"]) == (3, 4, None)


async def test_a_tree_of_a_thousand_members_is_one_round_trip_each_way(database: PostgresDatabase) -> None:
    row = load_balancer()
    p = pool(row["id"])
    members = [member(p["id"], n) for n in range(1000)]
    await database.commit(creation(row, Insert("pool", p), *(Insert("member", m) for m in members)), OPTIONS)
    tree = await database.tree_of("member", members[-1]["id"])
    assert tree is not None
    assert [m["id"] for m in tree.of("member")] == [m["id"] for m in members]
    writes = tuple(
        Update("member", {"id": m["id"]}, {"provisioning_status": "PENDING_UPDATE"}) for m in members
    )
    change = Change(row["id"], 1, writes)
    assert await trips(database, database.commit(change, OPTIONS)) == 1
    assert plain(await database.tree(row["id"])) == plain(database.after(tree, change))


async def test_statistics_sum_rows_and_count_connections_of_live_amphorae_alone(
    database: PostgresDatabase,
) -> None:
    counts = {
        "bytes_in": 2**62,
        "bytes_out": 1,
        "active_connections": 5,
        "total_connections": 7,
        "request_errors": 1,
    }
    await database.write(
        [
            Insert("amphora", {"id": "live", "status": "ALLOCATED"}),
            Insert("amphora", {"id": "gone", "status": "DELETED"}),
            *(
                Insert("listener_statistics", {"listener_id": "l", "amphora_id": a, **counts})
                for a in ("l", "live", "gone")
            ),
        ]
    )
    assert await database.statistics(["l", "none"]) == {
        "bytes_in": 3 * 2**62,
        "bytes_out": 3,
        "active_connections": 10,
        "total_connections": 21,
        "request_errors": 3,
    }
    assert set((await database.statistics([])).values()) == {0}
