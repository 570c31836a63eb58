"""What only the PostgreSQL store can show: round trips, plans, and faults of the database."""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from roadstead.store.api import Change, HistoryEntry, Outgoing, Row, RowRule, StoreUnavailable
from roadstead.store.migrate import migrate
from roadstead.store.postgres import PostgresStore
from roadstead.store.postgres import session as session_module
from roadstead.store.postgres.session import Link
from roadstead.testing.servers import PostgresServer

from .conftest import SCHEMA
from .rows import add_due, alter, alter_work, blank, existing, key, put

pytestmark = pytest.mark.integration


def add(item: int) -> RowRule:
    """Put an item into the row's list unless it is there: the same however often it is applied."""

    def rule(row: Row | None, _now: datetime) -> Change:
        row = row or blank(key(1), spec={"items": []})
        if item in row.spec["items"]:
            return Change(result=item)
        return Change(replace(row, spec={"items": [*row.spec["items"], item]}), result=item)

    return rule


async def waits_for_lock(connection: Any, seconds: float = 5.0) -> int:
    """The pid of a session that waits for a row lock."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid = await connection.fetchval(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() LIMIT 1"
        )
        if pid is not None:
            return int(pid)
        await asyncio.sleep(0.01)
    raise AssertionError("nobody waits for a lock")


# ---- round trips


async def test_round_trips_of_each_operation(postgres: PostgresStore) -> None:
    store, now = postgres, datetime.now(UTC)
    of = key(1)
    appended: Any = ([Outgoing("s", b"x")], [HistoryEntry("acted", now, {})])
    due = blank(of, work=replace(blank(of).work, due_at=now))
    took: dict[str, int] = {}

    async def count(name: str, call: Any) -> Any:
        before = store.round_trips
        result = await call
        took[name] = store.round_trips - before
        return result

    await count("insert", store.change(of, put(due, *appended)))
    await count("update", store.change(of, lambda r, _n: Change(replace(due, failures=4), *appended)))
    await count("nothing to write", store.change(of, lambda _r, _n: Change(result=1)))
    await count("get", store.get("server", of.id))
    leases = await count("claim", store.claim("me", 10, 20))
    assert leases
    await count("renew", store.renew(leases, 20))
    await count("release", store.release(leases))
    await count("wake", store.wake([("server", of.id)], {}))
    await count("next_due", store.next_due())
    woken = await count("claim again", store.claim("me", 10, 20))
    first = await count("update of a claimed row", store.change(of, alter(failures=5), woken[0].known))
    await count("update after it", store.change(of, alter_work(due_at=None), first.known))
    await count("untold", store.untold(0, 10))
    items = await count("outbox_take", store.outbox_take(10, 10))
    await count("outbox_done", store.outbox_done([i.id for i in items]))
    await count("history", store.history(of))
    await count("stood", store.stood(of, now))
    await count("document made", store.change_document("d", lambda _d, _n: ({"n": 1}, None)))
    await count("document changed", store.change_document("d", lambda _d, _n: ({"n": 2}, None)))
    two = {"insert", "update", "document made", "document changed"}
    assert took == {name: 2 if name in two else 1 for name in took}


async def test_a_contended_change_locks_first_and_takes_four_round_trips_the_last_time(
    postgres: PostgresStore, foreign: Any
) -> None:
    """Two tries without lock (two round trips each), then BEGIN, read, write, COMMIT."""
    of, calls = key(1), 0
    await postgres.change(of, put(blank(of)))
    before = postgres.round_trips

    async def interfere() -> None:
        await foreign.execute(f"UPDATE {SCHEMA}.work SET wake_seq = wake_seq + 1")

    original = Link.fetchrow

    async def fetchrow(link: Link, statement: str, *arguments: Any) -> Any:
        nonlocal calls
        record = await original(link, statement, *arguments)
        calls += 1
        if calls <= 2:
            await interfere()
        return record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Link, "fetchrow", fetchrow)
        await postgres.change(of, alter(failures=1))
    row = await existing(postgres, of)
    assert (row.failures, row.work.wake_seq) == (1, 2)
    assert postgres.round_trips - before == 2 + 2 + 4 + 1


async def test_what_is_known_of_a_row_follows_each_change_and_is_read_again_when_somebody_else_changed_it(
    postgres: PostgresStore, foreign: Any
) -> None:
    store, of = postgres, await add_due(postgres, 1, "i")
    (lease,) = await store.claim("me", 10, 20)
    assert lease.known is not None
    assert lease.known.row == await existing(store, of)
    change = await store.change(of, alter(failures=1, consumers=("a/1",)), lease.known)
    assert change.known is not None
    assert change.known.row == await existing(store, of)
    change = await store.change(of, lambda _r, _n: Change(result=1), change.known)
    for columns in ({"failures": 2}, {"spec": {"a": [1, 2.5]}}):
        before = store.round_trips
        change = await store.change(of, alter(**columns), change.known)
        assert store.round_trips - before == 1
        assert change.known is not None
        assert change.known.row == await existing(store, of)
    for table, column in (("work", "wake_seq"), ("resource", "record_version")):
        await foreign.execute(f"UPDATE {SCHEMA}.{table} SET {column} = 77")
        before = store.round_trips
        change = await store.change(of, alter(failures=3), change.known)
        assert store.round_trips - before == (
            3 if table == "work" else 1
        )  # then there is nothing left to write
        assert change.known is not None
        assert change.known.row == await existing(store, of)
    row = await existing(store, of)
    assert (row.work.wake_seq, row.record_version, row.failures) == (77, 77, 3)


async def test_a_row_that_was_woken_while_it_was_claimed_is_not_known(
    postgres: PostgresStore, foreign: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim's snapshot is older than the wake that it locks: what it read of the row may be from before."""
    of = await add_due(postgres, 1, "i", late=5)
    monkeypatch.setattr(
        postgres._sql,
        "claim",
        postgres._sql.claim.replace(
            "crowd AS MATERIALIZED (SELECT count(*)",
            "crowd AS MATERIALIZED (SELECT pg_sleep(0.4) IS NULL OR count(*)",
        ),
    )
    claiming = asyncio.create_task(postgres.claim("me", 10, 20))
    await asyncio.sleep(0.15)
    await foreign.execute(f"UPDATE {SCHEMA}.resource SET spec = '{{\"new\": 1}}'")
    await foreign.execute(f"UPDATE {SCHEMA}.work SET wake_seq = wake_seq + 1")
    (lease,) = await claiming
    assert lease.known is None
    assert (await existing(postgres, of)).work.wake_seq == lease.wake_seq == 1


async def test_times_of_a_change_to_a_known_row_are_the_databases_and_never_early(
    postgres: PostgresStore, foreign: Any
) -> None:
    of = await add_due(postgres, 1, "i")
    (lease,) = await postgres.claim("me", 10, 20)
    await asyncio.sleep(0.05)
    times: list[datetime] = []
    before = await foreign.fetchval("SELECT clock_timestamp()")

    def noting(row: Row | None, now: datetime) -> Change:
        times.append(now)
        return Change(row and replace(row, failures=9))

    await postgres.change(of, noting, lease.known)
    after = await foreign.fetchval("SELECT clock_timestamp()")
    assert before <= times[0] <= after + timedelta(seconds=0.2)


async def test_only_changed_columns_are_written(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, statements = key(1), []
    await postgres.change(of, put(blank(of, spec={"big": ["x"] * 50})))
    original = Link.fetchval

    async def fetchval(link: Link, statement: str, *arguments: Any) -> Any:
        statements.append((statement, arguments))
        return await original(link, statement, *arguments)

    monkeypatch.setattr(Link, "fetchval", fetchval)
    await postgres.change(
        of, lambda r, _n: Change(replace(r, status={"a": 1}, spec=dict(r.spec)) if r else None)
    )
    ((statement, arguments),) = statements
    assert 'SET "status" = $5 FROM' in statement
    assert "put_work" not in statement
    assert arguments[4:] == ({"a": 1},)


# ---- what cannot be


async def test_neither_work_nor_its_resource_stands_without_the_other(
    postgres: PostgresStore, foreign: Any
) -> None:
    """Nobody could read what such a row is for: it would be claimed for ever."""
    await postgres.change(key(1), put(blank(key(1))))
    lone = (
        f"INSERT INTO {SCHEMA}.work (kind, id, region, project, identity, gone, wake_seq, lease_epoch, cause)"
        " VALUES ('server', 'lone', 'r', 'p', 'i', false, 0, 0, '{}')"
    )
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await foreign.execute(lone)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await foreign.execute(f"DELETE FROM {SCHEMA}.resource")
    assert (await existing(postgres, key(1))).spec == {"size": 1}


# ---- time


async def test_without_a_given_clock_all_times_are_the_databases(
    postgres: PostgresStore, foreign: Any
) -> None:
    of = await add_due(postgres, 1, "a")
    (lease,) = await postgres.claim("me", 1, 0.3)
    ahead = lease.until - await foreign.fetchval("SELECT clock_timestamp()")
    assert timedelta(0) < ahead < timedelta(seconds=0.31)
    assert await postgres.claim("other", 1, 5) == []
    await asyncio.sleep(0.35)
    assert [x.key for x in await postgres.claim("other", 1, 5)] == [of]
    times: list[datetime] = []

    def look(_row: Row | None, now: datetime) -> Change:
        times.append(now)
        return Change()

    await postgres.change(of, look)
    assert abs(times[0] - await postgres.now()) < timedelta(seconds=5)


# ---- conflicts


async def test_a_real_deadlock_is_run_again_and_both_sides_end(postgres: PostgresStore, foreign: Any) -> None:
    one, two = sorted(key(n) for n in (1, 2))
    for of in (one, two):
        await postgres.change(of, put(blank(of)))
    touch = f"UPDATE {SCHEMA}.work SET wake_seq = wake_seq + 10 WHERE id = $1"
    await foreign.execute("SET deadlock_timeout = '20s'")  # so that the store's session is the one to find it
    transaction = foreign.transaction()
    await transaction.start()
    await foreign.execute(touch, two.id)
    woken = asyncio.create_task(postgres.wake([("server", one.id), ("server", two.id)], {}))
    await waits_for_lock(foreign)
    await asyncio.wait_for(foreign.execute(touch, one.id), 10)
    await transaction.commit()
    assert await asyncio.wait_for(woken, 10) == 2
    assert postgres.replays >= 1
    assert [(await existing(postgres, of)).work.wake_seq for of in (one, two)] == [11, 11]


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.DeadlockDetectedError("injected"),
        asyncpg.SerializationError("injected"),
        asyncpg.LockNotAvailableError("injected"),
        asyncpg.ConnectionDoesNotExistError("injected"),
        asyncpg.AdminShutdownError("injected"),
        asyncpg.CannotConnectNowError("injected"),
        asyncpg.InterfaceError("connection is closed"),
        ConnectionResetError("injected"),
        TimeoutError("injected"),
    ],
    ids=lambda e: type(e).__name__,
)
async def test_a_transient_error_before_or_after_the_write_leads_to_one_result(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    original = Link.fetchval
    faults: list[str] = []

    async def fetchval(link: Link, statement: str, *arguments: Any) -> Any:
        if faults and faults[-1] == "before":
            faults.pop()
            raise error
        result = await original(link, statement, *arguments)
        if faults and faults[-1] == "after":
            faults.pop()
            raise error
        return result

    monkeypatch.setattr(Link, "fetchval", fetchval)
    for item, when in enumerate(("before", "after", "before", "after")):
        faults[:] = [when]
        assert (await postgres.change(key(1), add(item))).result == item
    assert postgres.replays == 4
    assert (await existing(postgres, key(1))).spec["items"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "error", [asyncpg.UndefinedTableError("x"), asyncpg.InterfaceError("misuse"), RuntimeError("x")], ids=repr
)
async def test_other_errors_are_not_run_again(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fetchval(_link: Link, _statement: str, *_arguments: Any) -> Any:
        raise error

    monkeypatch.setattr(Link, "fetchval", fetchval)
    with pytest.raises(type(error)):
        await postgres.change(key(1), put(blank(key(1))))
    assert postgres.replays == 0


async def test_endless_conflicts_end_in_a_clear_error(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "MOST_CONFLICTS", 3)

    async def fetchval(_link: Link, _statement: str, *_arguments: Any) -> Any:
        raise asyncpg.DeadlockDetectedError("injected")

    monkeypatch.setattr(Link, "fetchval", fetchval)
    with pytest.raises(StoreUnavailable, match="3 conflicts"):
        await postgres.change(key(1), put(blank(key(1))))


async def test_random_faults_at_every_statement_lose_nothing(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred changes by eight writers, every sixth statement fails before or after it was carried out."""
    dice = random.Random(7)
    errors = (asyncpg.DeadlockDetectedError("x"), asyncpg.SerializationError("x"), ConnectionResetError("x"))

    def faulty(original: Any) -> Any:
        async def run(link: Link, statement: str, *arguments: Any) -> Any:
            if dice.random() < 0.08:
                raise dice.choice(errors)
            result = await original(link, statement, *arguments)
            if dice.random() < 0.08:
                raise ConnectionResetError("after")
            return result

        return run

    for name in ("fetchval", "fetchrow"):
        monkeypatch.setattr(Link, name, faulty(getattr(Link, name)))
    monkeypatch.setattr(session_module, "LONGEST_PAUSE", 0.005)
    numbers = iter(range(200))

    async def writer() -> None:
        for n in numbers:
            await postgres.change(key(1), add(n))

    await asyncio.gather(*(writer() for _ in range(8)))
    monkeypatch.undo()
    assert sorted((await existing(postgres, key(1))).spec["items"]) == list(range(200))
    assert postgres.replays > 20


async def test_a_busy_row_starves_no_writer(database_url: str) -> None:
    stores = [PostgresStore(database_url, SCHEMA, pool_size=8) for _ in range(3)]
    for store in stores:
        await store.open()
    await asyncio.wait_for(asyncio.gather(*(stores[n % 3].change(key(1), add(n)) for n in range(60))), 30)
    assert sorted((await existing(stores[0], key(1))).spec["items"]) == list(range(60))
    for store in stores:
        await store.close()


# ---- lost connections


async def test_a_session_killed_while_it_waits_for_the_row_is_made_anew(
    postgres: PostgresStore, foreign: Any
) -> None:
    await postgres.change(key(1), add(0))
    transaction = foreign.transaction()
    await transaction.start()
    await foreign.execute(f"SELECT 1 FROM {SCHEMA}.work FOR UPDATE")
    change = asyncio.create_task(postgres.change(key(1), add(1)))
    pid = await waits_for_lock(foreign)
    assert await foreign.fetchval("SELECT pg_terminate_backend($1, 5000)", pid)
    await transaction.rollback()
    assert (await asyncio.wait_for(change, 10)).result == 1
    assert postgres.replays >= 1
    assert (await existing(postgres, key(1))).spec["items"] == [0, 1]


async def test_idle_sessions_killed_are_not_noticed(postgres: PostgresStore, foreign: Any) -> None:
    await asyncio.gather(*(postgres.change(key(1), add(n)) for n in range(6)))
    killed = await foreign.fetchval(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    assert killed >= 1
    await asyncio.gather(*(postgres.change(key(1), add(n)) for n in range(6, 12)))
    assert sorted((await existing(postgres, key(1))).spec["items"]) == list(range(12))


async def test_a_cancelled_change_leaves_nothing_locked(postgres: PostgresStore, foreign: Any) -> None:
    await postgres.change(key(1), add(0))
    transaction = foreign.transaction()
    await transaction.start()
    await foreign.execute(f"SELECT 1 FROM {SCHEMA}.work FOR UPDATE")
    change = asyncio.create_task(postgres.change(key(1), add(1)))
    await waits_for_lock(foreign)
    change.cancel()
    with pytest.raises(asyncio.CancelledError):
        await change
    await transaction.rollback()
    await asyncio.wait_for(postgres.change(key(1), add(2)), 10)
    assert 2 in (await existing(postgres, key(1))).spec["items"]
    assert (
        await foreign.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database()"
        )
        == 0
    )


@pytest.fixture
def own_postgres(server_directory: Path) -> Iterator[PostgresServer]:
    """A durable server of this test alone."""
    server = PostgresServer(server_directory / "store-restarts", durable=True, die_with_parent=True)
    server.start()
    yield server
    server.kill()


async def test_changes_go_on_over_a_restart_and_a_crash_and_what_was_acknowledged_is_there(
    own_postgres: PostgresServer,
) -> None:
    await migrate(own_postgres.url, [SCHEMA])
    store = PostgresStore(own_postgres.url, SCHEMA, patience=30)
    await store.open()
    acknowledged: list[int] = []
    numbers = iter(range(10_000))
    ended = asyncio.Event()

    async def writer() -> None:
        while not ended.is_set():
            n = next(numbers)
            await store.change(key(1), add(n))
            acknowledged.append(n)

    async def progress() -> None:
        mark = len(acknowledged) + 10
        while len(acknowledged) < mark:  # noqa: ASYNC110 - a count that others raise
            await asyncio.sleep(0.01)

    writers = [asyncio.create_task(writer()) for _ in range(4)]
    await asyncio.wait_for(progress(), 20)
    await asyncio.to_thread(own_postgres.restart)
    await asyncio.wait_for(progress(), 20)
    await asyncio.to_thread(own_postgres.kill)
    await asyncio.sleep(0.3)
    await asyncio.to_thread(own_postgres.start)
    await asyncio.wait_for(progress(), 20)
    ended.set()
    await asyncio.wait_for(asyncio.gather(*writers), 30)
    items = (await existing(store, key(1))).spec["items"]
    assert sorted(items) == sorted(acknowledged)
    assert store.replays >= 2
    await store.close()


async def test_a_database_that_stays_away_is_a_clear_error_within_the_patience(
    own_postgres: PostgresServer,
) -> None:
    await migrate(own_postgres.url, [SCHEMA])
    store = PostgresStore(own_postgres.url, SCHEMA, patience=0.5)
    await store.open()
    await asyncio.to_thread(own_postgres.kill)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.get("server", key(1).id)
    assert time.monotonic() - began < 5
    await store.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.now()


# ---- partitions


async def test_two_replicas_that_miss_the_same_partition_both_write(database_url: str) -> None:
    stores = [PostgresStore(database_url, SCHEMA) for _ in range(2)]
    for store in stores:
        await store.open()
    day = datetime(2044, 2, 29, 12, tzinfo=UTC)

    def write(n: int) -> RowRule:
        return put(blank(key(n)), history=[HistoryEntry("acted", day, {"n": n})])

    await asyncio.gather(*(stores[n % 2].change(key(n), write(n)) for n in range(8)))
    for n in range(8):
        assert [e.body for e in await stores[0].history(key(n))] == [{"n": n}]
    for store in stores:
        await store.close()


async def test_old_days_are_dropped_and_coming_ones_are_there(postgres: PostgresStore, foreign: Any) -> None:
    async def days() -> set[str]:
        names = await foreign.fetch("SELECT inhrelid::regclass::text AS name FROM pg_inherits")
        return {d for r in names if (d := r["name"].removeprefix(f"{SCHEMA}.history_")).isdigit()}

    now = datetime.now(UTC)
    coming = {f"{now + timedelta(days=n):%Y%m%d}" for n in range(-1, 8)}
    assert await days() == coming
    old = now - timedelta(days=40)
    await postgres.change(key(1), put(blank(key(1)), history=[HistoryEntry("acted", old, {})]))
    assert await days() == coming | {f"{old:%Y%m%d}"}
    assert await postgres.purge(old, now - timedelta(days=30)) == 1
    assert await days() == coming


async def test_a_lease_column_alone_does_not_rewrite_the_wide_row(
    postgres: PostgresStore, foreign: Any
) -> None:
    of = key(1)
    await postgres.change(of, put(blank(of)))
    version = f"SELECT xmin::text FROM {SCHEMA}.resource"
    before = await foreign.fetchval(version)
    await postgres.change(of, alter_work(lease_owner="me"))
    assert await foreign.fetchval(version) == before
    assert (await existing(postgres, of)).work.lease_owner == "me"
