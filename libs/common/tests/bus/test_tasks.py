"""Background tasks: restarted and never silently dead; rows fall due spread after a release; old rows go."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from roadstead import service_tasks
from roadstead.bus.tasks import end_all
from roadstead.clock import SystemClock
from roadstead.service_health import Readiness
from roadstead.service_tasks import Spreading, Supervisor, purge_job, release_job, tables_hash
from roadstead.store.api import Change, Row, Work
from roadstead.store.memory import MemoryStore
from roadstead.subjects import Key
from roadstead.telemetry.metrics import Meters

from ..reconcile.toy import KIND
from .conftest import PROJECT, REGION, eventually


async def test_a_task_that_fails_is_started_again_later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_tasks, "BACK_OFF_FIRST", 0.02)
    meters, times, loop = Meters(), [], asyncio.get_running_loop()

    async def work() -> None:
        times.append(loop.time())
        raise RuntimeError("again")

    supervisor = Supervisor(meters)
    supervisor.start("work", work)
    await eventually(lambda: len(times) >= 5)
    await supervisor.stop_all()
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps[3] > gaps[0] * 3
    count = len(times)
    await asyncio.sleep(0.1)
    assert len(times) == count
    assert meters.value("roadstead_task_restarts_total", task="work") >= 4


async def test_a_task_that_returns_is_started_again_unless_it_was_told_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_tasks, "BACK_OFF_FIRST", 0.01)
    runs = 0

    async def work() -> None:
        nonlocal runs
        runs += 1

    supervisor = Supervisor(Meters())
    supervisor.start("work", work)
    await eventually(lambda: runs >= 2)
    supervisor.let_end("work")
    await supervisor.finish("work", 5)
    seen = runs
    await asyncio.sleep(0.1)
    assert runs == seen


async def test_a_fatal_fault_is_kept_and_told() -> None:
    supervisor = Supervisor(Meters(), fatal=(KeyError,))

    async def work() -> None:
        raise KeyError("schema")

    supervisor.start("work", work)
    await asyncio.wait_for(supervisor.failed.wait(), 5)
    assert isinstance(supervisor.fault, KeyError)


async def test_a_task_that_forgets_a_cancellation_is_asked_again() -> None:
    """As a wait for an answer does that comes in the same moment."""
    heard = 0

    async def deaf() -> None:
        nonlocal heard
        while heard < 3:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                heard += 1

    task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    await asyncio.wait_for(end_all((task,)), 5)
    assert task.done()


async def test_not_ready_names_what_is_missing() -> None:
    async def well() -> None:
        return None

    async def ill() -> str:
        return "no broker"

    readiness = Readiness({"database": well, "bus": ill})
    assert await readiness.faults() == {"bus": "no broker"}
    readiness.checks["bus"] = well
    assert await readiness.faults() == {}
    readiness.stopping = True
    assert await readiness.faults()


# ---------------------------------------------------------------- release


class FastClock(SystemClock):
    """Sleeps a thousandth and notes how long it was asked to, and how many rows of a store were due at each step."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.store: MemoryStore | None = None
        self.due_at_steps: list[int] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.store is not None and seconds == 1.0:
            self.due_at_steps.append(len(await due(self.store)))
        await asyncio.sleep(min(seconds, 100) / 1000)


def _put(row: Row, _held: Row | None, _now: datetime) -> Change:
    return Change(row)


def _bury(gone: datetime, held: Row | None, _now: datetime) -> Change:
    assert held is not None
    return Change(replace(held, gone_at=gone))


async def filled(clock: SystemClock, count: int) -> MemoryStore:
    store = MemoryStore(clock)
    for number in range(count):
        key = Key(REGION, PROJECT, "volume", f"{number:04}")
        row = Row(key, "i", {}, {"colour": "red"}, 1, 1, 1, number + 1, work=Work(due_at=None))
        await store.change(key, partial(_put, row))
    return store


async def due(store: MemoryStore) -> list[str]:
    rows = [await store.get("volume", ident) for _, ident in sorted(store._held.rows)]
    return [row.key.id for row in rows if row is not None and row.work.due_at is not None]


async def run_release(store: MemoryStore, clock: SystemClock, seconds: float = 10.0) -> "asyncio.Task[None]":
    spreading = Spreading(seconds=seconds, step=1.0, page=7)
    job = release_job(store, clock, {"volume": KIND}, lambda: None, spreading)
    return asyncio.create_task(job)


async def ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def document(store: MemoryStore) -> Mapping[str, Any]:
    return await store.document("release.volume") or {}


async def test_a_first_start_and_a_plain_restart_make_nothing_due() -> None:
    clock = FastClock()
    store = await filled(clock, 20)
    for _ in range(2):
        task = await run_release(store, clock)
        await eventually(lambda: document(store))
        await asyncio.sleep(0.05)
        assert await due(store) == []
        await ended(task)


async def test_changed_tables_make_all_rows_due_step_by_step_over_the_time() -> None:
    clock = FastClock()
    store = await filled(clock, 50)
    await store.change_document("release.volume", lambda _d, _n: ({"tables": "older", "done": "x"}, None))
    clock.store = store
    task = await run_release(store, clock, seconds=10)

    async def done() -> bool:
        found = await document(store)
        return found["tables"] != "older" and "done" in found

    await eventually(done)
    await ended(task)
    assert len(await due(store)) == 50
    assert clock.slept.count(1.0) == 10  # 50 rows in ten steps of a second
    assert clock.due_at_steps == [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    assert (await document(store))["tables"] == tables_hash(KIND)


async def test_one_replica_spreads_and_another_goes_on_where_it_died() -> None:
    clock = FastClock()
    store = await filled(clock, 50)
    until = (datetime.fromisoformat("2020-01-01T00:00:00+00:00")).isoformat()
    half = {"tables": tables_hash(KIND), "owner": "dead", "until": until, "marker": "0029"}
    await store.change_document("release.volume", lambda _d, _n: (half, None))
    task = await run_release(store, clock)
    await eventually(lambda: _is_done(store))
    await ended(task)
    assert await due(store) == [f"{n:04}" for n in range(30, 50)]


async def _is_done(store: MemoryStore) -> bool:
    return "done" in await document(store)


async def test_a_replica_that_is_at_it_is_left_alone() -> None:
    clock = FastClock()
    store = await filled(clock, 10)
    until = (clock.now() + timedelta(minutes=5)).isoformat()
    held = {"tables": tables_hash(KIND), "owner": "alive", "until": until, "marker": ""}
    await store.change_document("release.volume", lambda _d, _n: (held, None))
    task = await run_release(store, clock)
    await asyncio.sleep(0.1)
    await ended(task)
    assert await due(store) == []


def test_the_hash_is_of_the_tables() -> None:
    assert tables_hash(KIND) == tables_hash(replace(KIND, max_verbs=3))


async def test_old_tombstones_go_every_hour() -> None:
    clock = FastClock()
    store = await filled(clock, 2)
    old = clock.now() - timedelta(days=31)
    for ident, gone in (("0000", old), ("0001", clock.now())):
        key = Key(REGION, PROJECT, "volume", ident)
        await store.change(key, partial(_bury, gone))
    task = asyncio.create_task(purge_job(store, clock))
    await eventually(lambda: clock.slept)
    await ended(task)
    assert clock.slept[0] == 3600
    assert await store.get("volume", "0000") is None
    assert await store.get("volume", "0001") is not None
