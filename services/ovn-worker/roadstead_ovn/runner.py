"""Passes side by side: those that a call began, and those that fell due.

What is due is looked for when something says so and from time to time; rows in the hands of a worker that died come back that way too.
"""

import asyncio

import structlog

from roadstead.bus.tasks import end_all
from roadstead.store.api import StoreUnavailable
from roadstead.telemetry.metrics import Meters
from roadstead_ovn.passes import Passes
from roadstead_ovn.store.port import Json, Store, Work

log = structlog.get_logger("roadstead.ovn.runner")

MEASURE_EVERY = 5.0


class Runner:
    """owner: this process.  most: passes at the same time.  lease, poll: seconds."""

    def __init__(
        self,
        store: Store,
        passes: Passes,
        owner: str,
        *,
        most: int,
        lease: float,
        poll: float,
        meters: Meters,
    ) -> None:
        self._store = store
        self._passes = passes
        self.owner = owner
        self._most = most
        self.lease = lease
        self._poll = poll
        self._meters = meters
        self._tasks: set[asyncio.Task[None]] = set()
        self._nudged = asyncio.Event()
        self.stopping = False

    @property
    def has_room(self) -> bool:
        return len(self._tasks) < self._most and not self.stopping

    def start(self, work: Work, tree: Json | None = None) -> None:
        """Begin a pass over a row whose lease is held."""
        task = asyncio.create_task(self._passes.run(work, tree))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a pass broke off; its lease runs out", exc_info=error)
        if len(self._tasks) == self._most - 1:
            self._nudged.set()

    def nudge(self) -> None:
        """Something is due."""
        self._nudged.set()

    async def run(self) -> None:
        """Until cancelled."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                self._nudged.clear()
                room = self._most - len(self._tasks) if self.has_room else 0
                found = await self._store.claim(self.owner, room, self.lease) if room else ()
                for work in found:
                    self.start(work)
                if room and len(found) == room and self.has_room:
                    continue
                try:
                    async with asyncio.timeout(self._poll):
                        await self._nudged.wait()
                except TimeoutError:
                    pass
                if renewing.done():
                    renewing.result()
        finally:
            await end_all((renewing,))

    async def _renew(self) -> None:
        """Leases of passes that take long are prolonged."""
        while True:
            await asyncio.sleep(self.lease / 3)
            if self._tasks:
                try:
                    await self._store.renew(self.owner, self.lease)
                except StoreUnavailable as error:
                    log.warning("leases are not prolonged", error=str(error))

    async def measure(self) -> None:
        """Figures of the queue, until cancelled."""
        while True:
            queue = await self._store.queue()
            self._meters.put("roadstead_ovn_due", queue.due)
            self._meters.put("roadstead_ovn_due_lag_seconds", queue.lag)
            self._meters.put("roadstead_ovn_failing", queue.failing)
            await asyncio.sleep(MEASURE_EVERY)

    async def drain(self, seconds: float) -> None:
        """Begin nothing more, let passes end, end those that do not, give every lease back."""
        self.stopping = self._passes.stopping = True
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        await end_all(self._tasks)
        given_back = await self._store.release(self.owner)
        if given_back:
            log.info("leases given back", rows=given_back)
