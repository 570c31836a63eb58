"""The loop asks the store no more often than it must, because what it asks stands in the way of the passes it started."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from roadstead.clock import SystemClock
from roadstead.reconcile.runner import SHARE
from roadstead.store.api import Change, Row, Work
from roadstead.subjects import Key

from .test_drain import running
from .toy import KEY, PROJECT, REGION


async def seen(rows: int) -> list[str]:
    """Operations of the loop from the moment at which that many rows of one identity fall due until all of them were passed over."""
    assembly, store, _ = await running(seconds=0.02, drain=1.0)
    first = await store.get(KEY.kind, KEY.id)
    assert first is not None
    await store.change(KEY, lambda _r, _n: Change(replace(first, work=Work())))
    task = asyncio.create_task(assembly.runner.run())
    await asyncio.sleep(0.05)
    operations: list[str] = []

    async def edge(operation: str, after: bool) -> None:
        if not after and operation in ("claim", "next_due", "get"):
            operations.append(operation)

    store.edge = edge
    due = datetime.now(UTC) - timedelta(seconds=1)
    for number in range(rows):
        key = Key(REGION, PROJECT, KEY.kind, f"22222222-2222-4222-8222-{number:012d}")
        row: Row = replace(first, key=key, work=Work(due_at=due, wake_seq=1))
        await store.change(key, lambda _r, _n, row=row: Change(row))  # type: ignore[misc]  # mypy takes the default for a parameter of the rule
    before = assembly.runner.passes
    assembly.runner.nudge()
    async with asyncio.timeout(5):
        while assembly.runner.passes < before + rows:  # noqa: ASYNC110 - the runner counts, it does not tell
            await asyncio.sleep(0.001)
    assembly.runner.stop()
    await task
    return operations


async def test_one_row_is_one_claim_until_its_pass_has_ended() -> None:
    operations = await seen(1)
    assert operations[:2] == ["claim", "next_due"]
    assert "get" not in operations


async def test_more_than_an_identitys_share_is_claimed_without_waiting() -> None:
    operations = await seen(SHARE * 2 + 1)
    assert operations[:3] == ["claim", "claim", "claim"]


async def test_a_clock_that_is_ahead_of_the_stores_is_no_reason_to_ask_all_the_time() -> None:
    """GIVEN a row that falls due in five minutes by the store's clock WHEN ours says that it is due THEN a claim a second is made."""
    assembly, store, _ = await running(seconds=0.02, drain=1.0)
    first = await store.get(KEY.kind, KEY.id)
    assert first is not None
    due = datetime.now(UTC) + timedelta(minutes=5)
    await store.change(KEY, lambda _r, _n: Change(replace(first, work=Work(due_at=due, wake_seq=1))))
    wiring = assembly.runner.w
    assembly.runner.w = replace(wiring, clock=Ahead())
    claims = 0

    async def edge(operation: str, after: bool) -> None:
        nonlocal claims
        claims += operation == "claim" and not after

    store.edge = edge
    task = asyncio.create_task(assembly.runner.run())
    await asyncio.sleep(1.5)
    assembly.runner.stop()
    await task
    assert 2 <= claims <= 12


class Ahead(SystemClock):
    """An hour ahead of everybody else."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)
