"""Background tasks that are never silently dead, and the jobs that every service runs."""

import asyncio
import hashlib
import inspect
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from roadstead.bus.tasks import end_all
from roadstead.clock import Clock, iso, parse_time
from roadstead.reconcile.kind import Kind
from roadstead.reconcile.past import KEPT_FOR
from roadstead.service_health import CannotListen
from roadstead.store.api import Query, Store
from roadstead.telemetry.metrics import Meters

log = structlog.get_logger("roadstead.service")

BACK_OFF_FIRST = 0.5
BACK_OFF_MAX = 30.0
CALM = 60.0  # seconds without a failure after which the back-off begins again
PURGE_EVERY = 3600.0


class Supervisor:
    """Starts tasks and starts them again, later each time, when they fail or return.

    fatal: errors for which a task is not started again; the first one is kept in `fault` and `failed` is set.
    """

    def __init__(self, meters: Meters, *, fatal: tuple[type[BaseException], ...] = ()) -> None:
        self._meters = meters
        self._fatal = fatal
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[str] = set()
        self.fault: BaseException | None = None
        self.failed = asyncio.Event()

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks[name] = asyncio.create_task(self._keep(name, work), name=name)

    async def stop(self, name: str, seconds: float = 5.0) -> None:
        """Cancel one and wait for it; nothing happens when there is none."""
        task = self._tasks.pop(name, None)
        if task is None:
            return
        try:
            async with asyncio.timeout(seconds):
                await end_all((task,))
        except TimeoutError:
            log.warning("task did not end in time", task=name)

    def let_end(self, name: str) -> None:
        """The task is about to be told to end: it is not started again."""
        self._ending.add(name)

    async def finish(self, name: str, seconds: float) -> None:
        """Let one end by itself, which it was told to; cancel it when the time is over."""
        task = self._tasks.get(name)
        if task is not None:
            await asyncio.wait({task}, timeout=seconds)
            await self.stop(name)

    async def stop_all(self) -> None:
        for name in list(self._tasks):
            await self.stop(name)

    async def _keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        back_off = BACK_OFF_FIRST
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await work()
                if name in self._ending:
                    return
                log.error("task ended by itself", task=name)
            except self._fatal as fault:
                log.critical("task cannot go on", task=name, error=str(fault))
                self.fault = self.fault or fault
                self.failed.set()
                return
            except CannotListen as error:
                # A person must look at it, and its place in the program tells nothing.
                log.error("task failed", task=name, reason=str(error), again_in=back_off)  # noqa: TRY400
            except Exception:
                log.exception("task failed", task=name, again_in=back_off)
            self._meters.count("roadstead_task_restarts_total", task=name)
            if loop.time() - began > CALM:
                back_off = BACK_OFF_FIRST
            await asyncio.sleep(back_off)
            back_off = min(back_off * 2, BACK_OFF_MAX)


async def purge_job(store: Store, clock: Clock) -> None:
    """Old tombstones and history go, once an hour."""
    while True:
        before = await store.now() - KEPT_FOR
        gone = await store.purge(before, before)
        if gone:
            log.info("old rows removed", rows=gone)
        await clock.sleep(PURGE_EVERY)


# ---------------------------------------------------------------- a release whose tables changed


@dataclass(frozen=True)
class Spreading:
    """How rows are made due after a change of the tables: over `seconds`, a step every `step`, a page of ids at a time."""

    seconds: float = 600.0
    step: float = 2.0
    page: int = 500
    lease: float = 60.0


def tables_hash(kind: Kind[Any, Any, Any]) -> str:
    """Of the source of the modules that hold a kind's decisions; changes when a rule may decide otherwise."""
    modules = {kind.decide.__module__, kind.rules.__module__, kind.needs.__module__}
    package = kind.decide.__module__.rpartition(".")[0]
    modules |= {m for m in sys.modules if m.startswith(f"{package}.") and "decide" in m.rpartition(".")[2]}
    text = "".join(inspect.getsource(sys.modules[name]) for name in sorted(modules))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


async def release_job(
    store: Store,
    clock: Clock,
    kinds: Mapping[str, Kind[Any, Any, Any]],
    nudge: Callable[[], None],
    spreading: Spreading,
) -> None:
    """Rows of a kind whose tables changed fall due spread over ten minutes (architecture.md section 3.12).

    One replica does it, and another goes on where it stopped.
    """
    owner = secrets.token_hex(8)
    while True:
        for name, kind in kinds.items():
            await _after_release(store, clock, name, tables_hash(kind), owner, nudge, spreading)
        await clock.sleep(spreading.lease / 2)


async def _after_release(
    store: Store,
    clock: Clock,
    name: str,
    tables: str,
    owner: str,
    nudge: Callable[[], None],
    spreading: Spreading,
) -> None:
    document = f"release.{name}"
    marker = await store.change_document(
        document, lambda d, now: _take(d, now, tables, owner, spreading.lease)
    )
    if marker is None:
        return
    log.info("decision tables changed; rows fall due one after another", kind=name, seconds=spreading.seconds)
    ids = await _ids_after(store, name, marker, spreading.page)
    steps = max(1, int(spreading.seconds / spreading.step))
    size = max(1, -(-len(ids) // steps))
    for begin in range(0, len(ids), size):
        some = ids[begin : begin + size]
        await store.wake([(name, i) for i in some], {"reason": "release"})
        nudge()
        last = some[-1]
        mine = await store.change_document(
            document, partial(_advance, owner=owner, marker=last, lease=spreading.lease)
        )
        if not mine:
            return
        await clock.sleep(spreading.step)
    await store.change_document(document, lambda d, now: _finish(d, now, owner))
    log.info("all rows were made due after the release", kind=name, rows=len(ids))


async def _ids_after(store: Store, name: str, marker: str, page: int) -> list[str]:
    ids: list[str] = []
    while True:
        rows = await store.list(Query(name, limit=page, marker=(ids[-1] if ids else marker) or None))
        ids += [row.key.id for row in rows]
        if len(rows) < page:
            return ids


Document = Mapping[str, Any] | None


def _take(
    document: Document, now: datetime, tables: str, owner: str, lease: float
) -> tuple[Document, str | None]:
    """The id to go on behind when there is work for this replica, else None.  A first start has nothing to catch up with."""
    if document is None:
        return {"tables": tables, "done": iso(now)}, None
    if document["tables"] == tables:
        open_work = "done" not in document
        taken = parse_time(str(document.get("until", iso(now)))) > now and document.get("owner") != owner
        if not open_work or taken:
            return document, None
        marker = str(document.get("marker", ""))
    else:
        marker = ""
    until = iso(now + timedelta(seconds=lease))
    return {"tables": tables, "owner": owner, "until": until, "marker": marker}, marker


def _advance(
    document: Document, now: datetime, owner: str, marker: str, lease: float
) -> tuple[Document, bool]:
    if document is None or document.get("owner") != owner:
        return document, False
    return {**document, "marker": marker, "until": iso(now + timedelta(seconds=lease))}, True


def _finish(document: Document, now: datetime, owner: str) -> tuple[Document, None]:
    if document is None or document.get("owner") != owner:
        return document, None
    return {"tables": document["tables"], "done": iso(now)}, None
