"""Work rows: what every store of them promises, in PostgreSQL and in memory."""

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from roadstead.store.api import SchemaBehind
from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer
from roadstead_ovn.store.memory import MemoryWork
from roadstead_ovn.store.port import End, LeaseLost, NewCall, Store
from roadstead_ovn.store.postgres import SCHEMA, PostgresWork

LEASE = 5.0
A, B = "10000000-0000-4000-8000-00000000000a", "10000000-0000-4000-8000-00000000000b"


@pytest.fixture(scope="session")
def work_template(postgres_server: PostgresServer) -> str:
    """A database that was migrated once."""
    name = f"ovn_work_{os.getpid()}"
    url = postgres_server.create_database(name)
    with ThreadPoolExecutor(1) as apart:  # a fixture of the session may be asked for while a test's loop runs
        apart.submit(lambda: asyncio.run(migrate(url, [SCHEMA]))).result(60)
    return name


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryWork(asyncio.get_running_loop().time)
        return
    server, template = (request.getfixturevalue(name) for name in ("postgres_server", "work_template"))
    name = f"{template}_{os.urandom(3).hex()}"
    opened = PostgresWork(server.create_database(name, template=template))
    await opened.open()
    yield opened
    await opened.close()
    server.drop_database(name)


def call(identifier: str = A, revision: int = 1, operation: str = "op-1", **entry: Any) -> NewCall:
    return NewCall(identifier, revision, operation, {"revision": revision, **entry})


async def test_a_call_is_kept_and_leased_at_once(store: Store) -> None:
    work = await store.take(call(), "w1", LEASE)
    assert work is not None
    assert (work.id, work.revision, work.reason, work.epoch) == (A, 1, "call", 1)
    assert work.calls == {"op-1": {"revision": 1}}
    assert await store.claim("w2", 10, LEASE) == []


async def test_a_call_for_a_leased_row_is_kept_for_the_pass_that_runs(store: Store) -> None:
    work = await store.take(call(), "w1", LEASE)
    assert work is not None
    assert await store.take(call(revision=2, operation="op-2"), "w1", LEASE) is None
    assert await store.take(call(revision=2, operation="op-2"), "w2", LEASE) is None
    left = await store.end(work, "w1", End(done=1, reported=["op-1"]), LEASE)
    assert left is not None
    assert (left.revision, left.done, left.epoch) == (2, 1, work.epoch)
    assert set(left.calls) == {"op-2"}
    assert await store.end(left, "w1", End(done=2, reported=["op-2"]), LEASE) is None
    assert await store.claim("w2", 10, LEASE) == []


async def test_a_call_that_finds_no_room_is_due_for_anybody(store: Store) -> None:
    assert await store.take(call(), None, LEASE) is None
    claimed = await store.claim("w2", 10, LEASE)
    assert [work.id for work in claimed] == [A]
    assert claimed[0].calls


async def test_a_revision_never_falls(store: Store) -> None:
    await store.take(call(revision=7), None, LEASE)
    await store.take(call(revision=5, operation="op-2"), None, LEASE)
    work = (await store.claim("w", 1, LEASE))[0]
    assert work.revision == 7
    assert set(work.calls) == {"op-1", "op-2"}


async def test_a_lease_that_ran_out_goes_to_another_and_fences_the_first(store: Store) -> None:
    work = await store.take(call(), "w1", 0.05)
    assert work is not None
    await asyncio.sleep(0.1)
    other = (await store.claim("w2", 1, LEASE))[0]
    assert other.epoch > work.epoch
    with pytest.raises(LeaseLost):
        await store.end(work, "w1", End(reported=["op-1"]), LEASE)
    with pytest.raises(LeaseLost):
        await store.forget(work, "w1", LEASE)
    assert await store.end(other, "w2", End(reported=["op-1"]), LEASE) is None


async def test_a_renewed_lease_holds(store: Store) -> None:
    work = await store.take(call(), "w1", 0.2)
    assert work is not None
    assert await store.renew("w1", LEASE) == {A}
    assert await store.renew("w", LEASE) == set()
    await asyncio.sleep(0.3)
    assert await store.claim("w2", 1, LEASE) == []


async def test_leases_given_back_are_free_at_once(store: Store) -> None:
    work = await store.take(call(), "w1", LEASE)
    assert work is not None
    assert await store.release("w2") == 0
    assert await store.release("w1") == 1
    with pytest.raises(LeaseLost):
        await store.end(work, "w1", End(), LEASE)
    assert len(await store.claim("w2", 1, LEASE)) == 1


async def test_a_failed_pass_is_due_again_after_its_pause(store: Store) -> None:
    work = await store.take(call(), "w1", LEASE)
    assert work is not None
    end = End(failures=1, fault="no", again=0.2, patch={"op-1": {"revision": 1, "failed": True}})
    assert await store.end(work, "w1", end, LEASE) is None
    assert await store.claim("w1", 1, LEASE) == []
    await asyncio.sleep(0.3)
    again = (await store.claim("w1", 1, LEASE))[0]
    assert (again.failures, again.fault, again.calls["op-1"]["failed"]) == (1, "no", True)


async def test_what_comes_during_a_pass_makes_its_row_due_though_the_lease_is_given_back(
    store: Store,
) -> None:
    work = await store.take(call(), "w1", LEASE)
    assert work is not None
    assert await store.wake([A, B], "port") == 1
    assert await store.end(work, "w1", End(keep=False), LEASE) is None
    again = (await store.claim("w2", 1, LEASE))[0]
    assert again.reason == "port"


async def test_a_row_that_waits_is_not_woken_again(store: Store) -> None:
    await store.take(call(), None, LEASE)
    assert await store.wake([A], "port") == 0


async def test_a_row_is_forgotten_unless_something_came(store: Store) -> None:
    work = await store.take(call(), "w1", LEASE)
    assert work is not None
    await store.take(call(revision=2, operation="op-2"), "w1", LEASE)
    left = await store.forget(work, "w1", LEASE)
    assert left is not None
    assert await store.forget(left, "w1", LEASE) is None
    assert await store.one(A) is None


async def test_rows_are_learnt_and_only_those_that_differ_fall_due(store: Store) -> None:
    await store.learn({A: 3, B: 4}, {B}, "sync", 0.0)
    assert [(w.id, w.reason, w.revision) for w in await store.claim("w", 10, LEASE)] == [(B, "sync", 4)]
    await store.learn({A: 3, B: 4}, (), "sync", 0.0)
    assert await store.claim("w", 10, LEASE) == []


async def test_all_fall_due_within_the_spread(store: Store) -> None:
    await store.learn({A: 1, B: 1}, (), "sync", 0.0)
    assert await store.wake_all("reconnect", 0.0) == 2
    assert {w.id for w in await store.claim("w", 10, LEASE)} == {A, B}
    assert (await store.queue()).due >= 2


async def test_what_was_told_and_used_is_kept(store: Store) -> None:
    work = await store.take(call(), "w", LEASE)
    assert work is not None
    await store.end(work, "w", End(told={"x": "ONLINE"}, uses={"subnets": ["s"]}, again=0.0), LEASE)
    again = (await store.claim("w", 1, LEASE))[0]
    assert (again.told, again.uses) == ({"x": "ONLINE"}, {"subnets": ["s"]})


async def test_who_needs_a_port_for_probes_is_known_to_the_others_and_to_itself(store: Store) -> None:
    await store.use_probes(A, ["s1", "s2"])
    await store.use_probes(A, ["s1"])
    await store.use_probes(B, ["s1"])
    assert await store.others_need_probes(A, "s1")
    assert not await store.others_need_probes(A, "s2")
    work = await store.take(call(), "w", LEASE)
    assert work is not None
    assert work.probes == {"s1", "s2"}
    await store.drop_probes(A, "s1")
    assert not await store.others_need_probes(B, "s1")
    assert not await store.others_need_probes(A, "s2")


async def test_a_duty_is_one_owners_until_it_is_due_again(store: Store) -> None:
    assert await store.hold("sync", "w1", LEASE)
    assert await store.hold("sync", "w1", LEASE)
    assert not await store.hold("sync", "w2", LEASE)
    await store.let_go("sync", "w2", 0.0)
    assert not await store.hold("sync", "w2", LEASE)
    await store.let_go("sync", "w1", 60.0)
    assert not await store.hold("sync", "w2", LEASE)
    await store.hasten("sync")
    assert await store.hold("sync", "w2", LEASE)


async def test_a_duty_whose_owner_died_goes_to_another(store: Store) -> None:
    assert await store.hold("sync", "w1", 0.05)
    await asyncio.sleep(0.1)
    assert await store.hold("sync", "w2", LEASE)


@pytest.mark.integration
async def test_each_operation_of_the_loop_is_one_statement(
    postgres_server: PostgresServer, work_template: str
) -> None:
    name = f"{work_template}_{os.urandom(3).hex()}"
    store = PostgresWork(postgres_server.create_database(name, template=work_template))
    await store.open()
    try:
        await store.ping()
        before = store.session.round_trips
        work = await store.take(call(), "w", LEASE)
        assert work is not None
        assert store.session.round_trips == before + 1
        await store.end(work, "w", End(done=1, reported=["op-1"], told={"x": "ONLINE"}), LEASE)
        assert store.session.round_trips == before + 2
        await store.wake([A], "port")
        await store.claim("w", 10, LEASE)
        assert store.session.round_trips == before + 4
    finally:
        await store.close()
        postgres_server.drop_database(name)


@pytest.mark.integration
async def test_a_schema_that_was_not_migrated_is_refused(database_url: str) -> None:
    store = PostgresWork(database_url)
    with pytest.raises(SchemaBehind, match="roadstead migrate"):
        await store.open()
    await store.close()
