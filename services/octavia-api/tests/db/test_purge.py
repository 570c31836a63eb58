"""DELETED load balancers go after their age with all that belongs to them; nothing else does."""

from datetime import timedelta

import pytest

from roadstead_octavia.db.port import Change, Insert, Update
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.purge import purge
from roadstead_octavia.db.refusals import now

from .samples import OPTIONS, creation, listener, load_balancer, member, operation, policy, pool, rule

pytestmark = pytest.mark.integration
TABLES = (
    "load_balancer",
    "vip",
    "listener",
    "pool",
    "member",
    "l7policy",
    "l7rule",
    "tags",
    "operation",
    "listener_statistics",
)


async def deleted(database: PostgresDatabase, age: float) -> str:
    """The id of a load balancer that was DELETED so many seconds ago while its children had never been reported."""
    row = load_balancer()
    p, one = pool(row["id"]), listener(row["id"])
    y = policy(one["id"])
    m, r = member(p["id"]), rule(y["id"])
    rest = [
        Insert("pool", p),
        Insert("listener", one),
        Insert("l7policy", y),
        Insert("l7rule", r),
        Insert("member", m),
    ]
    rest += [Insert("tags", {"resource_id": x["id"], "tag": "t"}) for x in (p, one, y, m, r)]
    counts = dict.fromkeys(
        ("bytes_in", "bytes_out", "active_connections", "total_connections", "request_errors"), 1
    )
    rest += [Insert("listener_statistics", {"listener_id": one["id"], "amphora_id": one["id"], **counts})]
    await database.commit(creation(row, *rest, tags=("t",)), OPTIONS)
    at = now() - timedelta(seconds=age)
    gone = (Update("load_balancer", {"id": row["id"]}, {"provisioning_status": "DELETED"}),)
    await database.commit(Change(row["id"], 1, gone, at=at), OPTIONS)
    identifier: str = row["id"]
    return identifier


async def test_old_deleted_load_balancers_go_with_all_that_is_theirs(database: PostgresDatabase) -> None:
    old, young = await deleted(database, 700000), await deleted(database, 600000)
    alive = load_balancer()
    await database.commit(creation(alive, at=now() - timedelta(days=30)), OPTIONS)
    assert await purge(database, now()) == {"load_balancers": 1, "operations": 0}
    assert {row["id"] for row in await database.rows("load_balancer", {})} == {young, alive["id"]}
    assert await database.tree(old) is None
    for table in TABLES[2:]:
        assert len(await database.rows(table, {})) == {"tags": 6, "operation": 2}.get(table, 1), table
    assert await purge(database, now(), timedelta(0)) == {"load_balancers": 1, "operations": 0}
    assert await database.rows("tags", {}) == []


async def test_more_than_a_batch_goes_in_one_call(database: PostgresDatabase) -> None:
    at = now() - timedelta(days=30)
    rows = [load_balancer(provisioning_status="DELETED", created_at=at) for _ in range(230)]
    await database.write([Insert("load_balancer", row) for row in rows])
    assert (await purge(database, now()))["load_balancers"] == 230
    assert await database.rows("load_balancer", {}) == []


async def test_ended_operations_go_after_the_same_age_and_open_ones_stay(database: PostgresDatabase) -> None:
    row = load_balancer()
    await database.commit(creation(row, operation=operation(row["id"], id="open")), OPTIONS)
    ended = operation(row["id"], "loadbalancer_update", id="ended")
    await database.commit(Change(row["id"], 1, (), ended), OPTIONS)
    await database.write(
        [Update("operation", {"id": "ended"}, {"state": "DONE", "ended_at": now() - timedelta(days=8)})]
    )
    assert await purge(database, now()) == {"load_balancers": 0, "operations": 1}
    assert [one["id"] for one in await database.rows("operation", {})] == ["open"]
