"""`after` says what a fresh read says: random changes, carried out by the database and by the pure function."""

import random
from typing import Any

import pytest

from roadstead_octavia.db.folding import folded
from roadstead_octavia.db.port import Change, Delete, Insert, Tree, Update, Write
from roadstead_octavia.db.postgres import PostgresDatabase

from .samples import (
    OPTIONS,
    creation,
    listener,
    load_balancer,
    made,
    member,
    monitor,
    new_id,
    operation,
    plain,
    policy,
    pool,
    rule,
)

pytestmark = pytest.mark.integration


def random_write(chance: random.Random, rows: dict[str, list[dict[str, Any]]], root: str) -> Write | None:
    """Something that is allowed on these rows, which it keeps up to date as far as later choices need."""

    def some(table: str) -> dict[str, Any] | None:
        return chance.choice(rows[table]) if rows.get(table) else None

    def add(table: str, row: dict[str, Any]) -> Insert:
        rows.setdefault(table, []).append(row)
        return Insert(table, row)

    def drop(table: str, row: dict[str, Any]) -> Delete:
        rows[table].remove(row)
        return Delete(table, {"id": row["id"]})

    match chance.randrange(17):
        case 0:
            return add("pool", pool(root))
        case 1:
            given = some("pool")
            return add(
                "listener", listener(root, chance.randrange(1, 60000), default_pool_id=given and given["id"])
            )
        case 2 | 3:
            return add("member", member(p["id"], chance.randrange(62500))) if (p := some("pool")) else None
        case 4:
            return (
                add("l7policy", policy(p["id"], chance.randrange(1, 9))) if (p := some("listener")) else None
            )
        case 5:
            return add("l7rule", rule(p["id"])) if (p := some("l7policy")) else None
        case 6:
            table = chance.choice(("listener", "pool", "member", "l7policy", "l7rule"))
            row = some(table)
            return Update(table, {"id": row["id"]}, {"provisioning_status": "ACTIVE"}) if row else None
        case 7:
            row = some("member")
            return (
                Update("member", {"id": row["id"]}, {"weight": chance.randrange(9), "name": "é\n'"})
                if row
                else None
            )
        case 8:
            row = some("pool")
            return Update("member", {"pool_id": row["id"]}, {"operating_status": "ONLINE"}) if row else None
        case 9:
            row = some("pool")
            return (
                Update("listener", {"default_pool_id": row["id"]}, {"provisioning_status": "ERROR"})
                if row
                else None
            )
        case 10:
            return Update(
                "load_balancer", {"id": root}, {"name": chance.choice("abc"), "provisioning_status": "ACTIVE"}
            )
        case 11:
            return Update("vip", {"load_balancer_id": root}, {"ip_address": f"192.0.2.{chance.randrange(9)}"})
        case 12:
            row = some("member")
            return drop("member", row) if row else None
        case 13:
            row = some("l7policy")
            if row:
                rows["l7rule"] = [r for r in rows.get("l7rule", []) if r["l7policy_id"] != row["id"]]
            return drop("l7policy", row) if row else None
        case 14:
            row = some("pool")
            if row:
                rows["member"] = [r for r in rows.get("member", []) if r["pool_id"] != row["id"]]
                for one in rows.get("listener", []):
                    if one["default_pool_id"] == row["id"]:
                        one["default_pool_id"] = None
            return drop("pool", row) if row and chance.random() < 0.4 else None
        case 15:
            row = some("listener")
            if row is None or chance.random() < 0.6:
                return None
            gone = {r["id"] for r in rows.get("l7policy", []) if r["listener_id"] == row["id"]}
            rows["l7policy"] = [r for r in rows.get("l7policy", []) if r["id"] not in gone]
            rows["l7rule"] = [r for r in rows.get("l7rule", []) if r["l7policy_id"] not in gone]
            return drop("listener", row)
        case _:
            table = chance.choice(("load_balancer", "pool", "listener", "member"))
            owner = root if table == "load_balancer" else (r["id"] if (r := some(table)) else None)
            key = (owner, chance.choice("xyz"))
            if owner is None or key in rows.setdefault("_tags", []):  # type: ignore[comparison-overlap]  # keys of tags are pairs
                return None
            rows["_tags"].append(key)  # type: ignore[arg-type]  # keys of tags are pairs
            return Insert("tags", {"resource_id": owner, "tag": key[1]})


@pytest.mark.parametrize("seed", range(10))
async def test_random_changes_leave_what_after_foretold(database: PostgresDatabase, seed: int) -> None:
    chance = random.Random(seed)
    tree = await made(database)
    root = tree.load_balancer["id"]
    known: dict[str, list[dict[str, Any]]] = {}
    for _ in range(12):
        writes = [
            w for _ in range(chance.randrange(1, 12)) if (w := random_write(chance, known, root)) is not None
        ]
        change = Change(
            root,
            tree.version,
            tuple(writes),
            operation(root, "listener_update"),
            revises=chance.random() < 0.8,
        )
        foretold = database.after(tree, change)
        revision = await database.commit(change, OPTIONS)
        fresh = await database.tree(root)
        assert plain(fresh) == plain(foretold), f"{len(folded(change.writes, change.at))} batches"
        assert fresh is not None
        assert (fresh.version, fresh.revision, revision) == (
            foretold.version,
            foretold.revision,
            foretold.revision,
        )
        tree = fresh


async def test_a_created_graph_reads_back_as_foretold_in_the_order_of_its_writes(
    database: PostgresDatabase,
) -> None:
    row = load_balancer()
    pools = [pool(row["id"]) for _ in range(3)]
    listeners = [listener(row["id"], 80 + n, default_pool_id=p["id"]) for n, p in enumerate(pools)]
    rest: list[Write] = [Insert("pool", p) for p in pools]
    rest += [Insert("member", member(p["id"], n)) for n in range(4) for p in pools]
    rest += [Insert("health_monitor", monitor(pools[0]["id"]))]
    rest += [Insert("session_persistence", {"pool_id": pools[1]["id"], "type": "SOURCE_IP"})]
    rest += [Insert("listener", one) for one in listeners]
    policies = [policy(listeners[0]["id"], n + 1, redirect_pool_id=pools[2]["id"]) for n in range(3)]
    rest += [Insert("l7policy", one) for one in policies] + [
        Insert("l7rule", rule(one["id"])) for one in policies
    ]
    rest += [
        Insert("listener_cidr", {"listener_id": listeners[0]["id"], "cidr": c})
        for c in ("10.0.0.0/8", "1.0.0.0/8")
    ]
    rest += [
        Insert("sni", {"listener_id": listeners[0]["id"], "tls_container_id": c, "position": n})
        for n, c in enumerate("ba")
    ]
    rest += [Insert("additional_vip", {"load_balancer_id": row["id"], "subnet_id": s}) for s in ("t", "s")]
    rest += [Insert("vip_security_group", {"load_balancer_id": row["id"], "sg_id": g}) for g in ("2", "1")]
    change = creation(row, *rest, tags=("b", "a"))
    foretold = database.after(None, change)
    before = database.session.round_trips
    assert await database.commit(change, OPTIONS) == 1
    assert database.session.round_trips - before == 1
    fresh = await database.tree(row["id"])
    assert plain(fresh) == plain(foretold)
    assert [r["id"] for r in foretold.of("listener")] == [r["id"] for r in listeners]
    assert [r["id"] for r in foretold.of("pool")] == [r["id"] for r in pools]
    assert [r["tag"] for r in foretold.of("tags")] == ["a", "b"]


async def test_what_a_tree_uses_is_read_with_it(database: PostgresDatabase) -> None:
    profile, flavor = new_id(), new_id()
    await database.write(
        [
            Insert(
                "flavor_profile",
                {"id": profile, "name": "p", "provider_name": "noop", "flavor_data": '{"a": 1}'},
            ),
            Insert("flavor", {"id": flavor, "name": "f", "enabled": True, "flavor_profile_id": profile}),
        ]
    )
    tree = await made(database, flavor_id=flavor)
    assert tree.of("flavor_profile")[0]["flavor_data"] == '{"a": 1}'
    assert tree.of("flavor")[0]["name"] == "f"
    assert tree.of("availability_zone") == ()


def test_nothing_that_was_read_is_written_to() -> None:
    row = {**load_balancer(), "created_at": None}
    tree = Tree(3, 2, {"load_balancer": (row,)})
    from roadstead_octavia.db.tree import after

    changed = after(
        tree,
        Change(row["id"], 3, (Update("load_balancer", {"id": row["id"]}, {"name": "new"}),), revises=False),
    )
    assert (row.get("name"), changed.load_balancer["name"]) == (None, "new")
    assert (changed.version, changed.revision) == (4, 2)
