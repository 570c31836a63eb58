"""An operation ends once: whoever looks at it while another one ends it sees that, wherever between two reads the other end comes."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from roadstead_octavia.call import _now
from roadstead_octavia.db.port import Operation, Row, Tree
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.provider.calls import Dispatcher
from roadstead_octavia.provider.reports import Enders, Reports
from roadstead_octavia.provider.store import SqlOperations
from roadstead_octavia.provider.watchdog import Watchdog

from .conftest import OPTIONS, inserted, operation
from .trees import IDS, LB, a_tree

pytestmark = pytest.mark.integration

Interloper = Callable[[], Awaitable[None]]


class Between:
    """Runs an interloper once, after as many reads as it is told."""

    def __init__(self, reads: int, interloper: Interloper) -> None:
        self._left = reads
        self._interloper = interloper

    async def read(self) -> None:
        self._left -= 1
        if self._left == 0:
            await self._interloper()


class WatchedOperations(SqlOperations):
    def __init__(self, database: PostgresDatabase, between: Between) -> None:
        super().__init__(database)
        self._between = between

    async def one(self, identifier: str) -> Row | None:
        found = await super().one(identifier)
        await self._between.read()
        return found

    async def due(self, now: datetime, limit: int) -> Sequence[Row]:
        found = await super().due(now, limit)
        await self._between.read()
        return found


class WatchedDatabase:
    """Only `tree` is watched; everything else is the database's own."""

    def __init__(self, database: PostgresDatabase, between: Between) -> None:
        self._database = database
        self._between = between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def tree(self, load_balancer_id: str) -> Tree | None:
        found = await self._database.tree(load_balancer_id)
        await self._between.read()
        return found


class NoBus(Dispatcher):
    """What would be sent again."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, sending: Any) -> None:
        self.sent.append(sending)


async def committed(database: PostgresDatabase) -> Operation:
    made = operation("loadbalancer_create", list(IDS))
    await database.commit(inserted(a_tree("PENDING_CREATE"), made), OPTIONS)
    return made


def failing(database: PostgresDatabase, made: Operation) -> Interloper:
    """Another replica that hears of the operation's failure."""
    operations = SqlOperations(database)
    enders = Enders(database, None, OPTIONS, operations=operations)  # type: ignore[arg-type]  # no port is removed
    reports = Reports(database, operations, enders)
    message = {"operation": made.id, "loadbalancer_id": LB, "outcome": "failure", "user": "no room"}

    async def fail() -> None:
        await reports.result("noop", message)

    return fail


async def row_of(database: PostgresDatabase, made: Operation) -> Row:
    row = await database.row("operation", {"id": made.id})
    assert row is not None
    return row


@pytest.mark.parametrize("seconds", [6, 61], ids=["to be sent again", "past its deadline"])
@pytest.mark.parametrize("reads", [1, 2, 3])
async def test_a_failure_that_is_reported_while_the_watchdog_looks_stays_a_failure(
    database: PostgresDatabase, reads: int, seconds: int
) -> None:
    made = await committed(database)
    ended: list[Row] = []

    async def interloper() -> None:
        await failing(database, made)()
        ended.append(await row_of(database, made))

    between = Between(reads, interloper)
    watched: Any = WatchedDatabase(database, between)
    operations = WatchedOperations(database, between)
    enders = Enders(watched, None, OPTIONS, operations=operations)  # type: ignore[arg-type]  # no port is removed
    bus = NoBus()
    watchdog = Watchdog(operations, enders, bus, now=lambda: _now() + timedelta(seconds=seconds))
    assert await watchdog.once() == 1
    assert len(ended) == 1
    row = await row_of(database, made)
    assert (row["state"], row["reason"]) == ("FAILED", "no room")
    assert row["ended_at"] == ended[0]["ended_at"], "it was ended a second time"
    tree = await database.tree(LB)
    assert tree is not None
    assert tree.load_balancer["provisioning_status"] == "ERROR"


@pytest.mark.parametrize("reads", [1, 2])
@pytest.mark.parametrize("told", [{}, {"loadbalancer_id": LB}, {"loadbalancer_id": "of-another"}])
async def test_a_report_that_another_one_overtakes_does_not_end_it_again(
    database: PostgresDatabase, reads: int, told: dict[str, str]
) -> None:
    made = await committed(database)
    ended: list[Row] = []

    async def interloper() -> None:
        await failing(database, made)()
        ended.append(await row_of(database, made))

    between = Between(reads, interloper)
    watched: Any = WatchedDatabase(database, between)
    operations = WatchedOperations(database, between)
    enders = Enders(watched, None, OPTIONS, operations=operations)  # type: ignore[arg-type]  # no port is removed
    reports = Reports(watched, operations, enders)
    message = {"operation": made.id, "outcome": "failure", "user": "it took too long", **told}
    await reports.result("noop", message)
    assert len(ended) == 1
    row = await row_of(database, made)
    assert (row["state"], row["ended_at"]) == ("FAILED", ended[0]["ended_at"])


async def test_a_report_to_a_replica_that_did_not_commit_it_reads_twice_and_writes_once(
    database: PostgresDatabase,
) -> None:
    made = await committed(database)
    before = database.session.round_trips
    await failing(database, made)()
    assert database.session.round_trips - before == 3
