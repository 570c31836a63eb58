"""A report of an operation that this replica committed: nothing is read for it, and a guess that is no longer true decides nothing."""

from typing import Any

from roadstead_octavia.db.port import Change, Operation, Touched, Update
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.provider.conclude import State
from roadstead_octavia.provider.recent import Recent
from roadstead_octavia.provider.reports import Enders, Reports
from roadstead_octavia.provider.store import SqlOperations

from .conftest import OPTIONS, inserted, operation
from .trees import IDS, LB, a_tree

PENDING = "PENDING_CREATE"


class Side:
    """What hears reports, on a real database."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database
        self.recent = Recent()
        operations = SqlOperations(database)
        enders = Enders(database, None, OPTIONS, operations=operations)  # type: ignore[arg-type]  # no port is removed
        self.reports = Reports(database, operations, enders, self.recent)

    async def committed(self, made: Operation) -> None:
        change = inserted(a_tree(PENDING), made)
        after = self.database.after(None, change)
        self.recent.keep(made, after, await self.database.commit(change, OPTIONS))

    async def report(self, made: Operation) -> int:
        """Round trips that it took."""
        before = self.database.session.round_trips
        await self.reports.result("noop", {"operation": made.id, "outcome": "success"})
        return self.database.session.round_trips - before

    async def statuses(self) -> set[str]:
        tree = await self.database.tree(LB)
        assert tree is not None
        return {tree.of(table)[0]["provisioning_status"] for table in IDS}

    async def row(self, made: Operation) -> Any:
        return await self.database.row("operation", {"id": made.id})


async def test_a_report_of_what_was_just_committed_is_one_round_trip(database: PostgresDatabase) -> None:
    side, made = Side(database), operation("loadbalancer_create", list(IDS))
    await side.committed(made)
    assert await side.report(made) == 1
    assert await side.statuses() == {"ACTIVE"}
    assert (await side.row(made))["state"] == State.DONE


async def test_the_same_report_again_changes_nothing(database: PostgresDatabase) -> None:
    side, made = Side(database), operation("loadbalancer_create", list(IDS))
    await side.committed(made)
    await side.report(made)
    tree = await database.tree(LB)
    await side.report(made)
    again = await database.tree(LB)
    assert tree is not None
    assert again is not None
    assert again.version == tree.version


async def test_a_guess_that_is_no_longer_true_is_made_again_on_what_the_database_says(
    database: PostgresDatabase,
) -> None:
    side, made = Side(database), operation("loadbalancer_create", list(IDS))
    await side.committed(made)
    tree = await database.tree(LB)
    assert tree is not None
    gone = Update("load_balancer", {"id": LB}, {"provisioning_status": "DELETED"})
    await database.commit(Change(LB, tree.version, (gone,), revises=True), OPTIONS)
    assert await side.report(made) > 1
    after = await database.tree(LB)
    assert after is not None
    assert after.load_balancer["provisioning_status"] == "DELETED"  # the guess would have made it ACTIVE


def test_only_so_many_are_kept_and_large_trees_are_not() -> None:
    recent, tree = Recent(most=2), a_tree(PENDING)
    made = [
        Operation(str(n), "noop", "pool_update", "pool", "update", (Touched("pool", "p"),)) for n in range(3)
    ]
    for one in made:
        recent.keep(one, tree, tree.revision)
    assert [recent.take(one.id) is not None for one in made] == [False, True, True]
    assert recent.take("1") is None
    recent.keep(made[0], tree, tree.revision + 1)
    assert recent.take("0") is None
