"""A VIP port has one owner at every moment: the claim, then the load balancer, or else the sweep."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from roadstead_octavia.db.claims import Claims
from roadstead_octavia.db.port import Change, Delete, Insert, Stale
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.refusals import now
from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options

from .samples import OPTIONS, PROJECT, creation, load_balancer

pytestmark = pytest.mark.integration


async def claimed(database: PostgresDatabase, seconds: float = 60, **given: Any) -> dict[str, Any]:
    row = load_balancer(**given)
    at = now()
    claim = {"load_balancer_id": row["id"], "project_id": PROJECT, "provider": "noop", "maker": "network"}
    times = {"created_at": at, "deadline": at + timedelta(seconds=seconds)}
    await database.write([Insert("vip_port_claim", {**claim, **times})])
    return row


def taking(row: dict[str, Any], **given: Any) -> Change:
    return creation(row, Delete("vip_port_claim", {"load_balancer_id": row["id"]}), **given)


async def test_the_creation_takes_its_claim_in_one_round_trip(database: PostgresDatabase) -> None:
    row = await claimed(database)
    before = database.session.round_trips
    assert await database.commit(taking(row, quota={"load_balancer": 1}), OPTIONS) == 1
    assert database.session.round_trips - before == 1
    assert await database.rows("vip_port_claim", {}) == []
    assert await database.tree(row["id"]) is not None


async def test_a_creation_whose_claim_is_being_removed_writes_nothing(database: PostgresDatabase) -> None:
    row = await claimed(database, seconds=-1)
    (overdue,) = await Claims(database).take_overdue(now())
    assert (overdue["load_balancer_id"], overdue["maker"]) == (row["id"], "network")
    with pytest.raises(Stale):
        await database.commit(taking(row), OPTIONS)
    assert await database.tree(row["id"]) is None
    await Claims(database).forget(row["id"])
    with pytest.raises(Stale):
        await database.commit(taking(row), OPTIONS)
    assert await database.rows("operation", {}) == []


async def test_a_refused_creation_keeps_its_claim_for_the_sweep(database: PostgresDatabase) -> None:
    row = await claimed(database)
    none_left = Options(default_quotas={**OPTIONS.default_quotas, "load_balancer": 0})
    with pytest.raises(ApiError, match="Quota"):
        await database.commit(taking(row, quota={"load_balancer": 1}), none_left)
    assert len(await database.rows("vip_port_claim", {})) == 1
    assert await Claims(database).take_one(row["id"], now())
    assert not await Claims(database).take_one(row["id"], now())


async def test_creation_and_sweep_at_the_same_moment_have_one_winner(database: PostgresDatabase) -> None:
    claims = Claims(database)
    for _ in range(10):
        row = await claimed(database, seconds=-1)
        made, taken = await asyncio.gather(
            database.commit(taking(row), OPTIONS), claims.take_overdue(now()), return_exceptions=True
        )
        tree = await database.tree(row["id"])
        assert isinstance(taken, list)
        if tree is None:
            assert isinstance(made, Stale)
            assert [one["load_balancer_id"] for one in taken] == [row["id"]]
        else:
            assert (made, taken) == (1, [])
        await claims.forget(row["id"])


async def test_each_overdue_claim_goes_to_one_replica_and_to_another_after_a_minute(
    database: PostgresDatabase,
) -> None:
    for _ in range(6):
        await claimed(database, seconds=-1)
    await claimed(database, seconds=60)
    claims, at = Claims(database), now()
    shares = await asyncio.gather(*(claims.take_overdue(at, 4) for _ in range(4)))
    given = [row["load_balancer_id"] for share in shares for row in share]
    assert len(given) == len(set(given)) == 6
    assert await claims.take_overdue(at) == []
    assert len(await claims.take_overdue(at + timedelta(seconds=59.5))) == 0
    assert len(await claims.take_overdue(at + timedelta(seconds=61))) == 7
