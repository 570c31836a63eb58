"""The loop: claim what is due, run its pass, write how it ended.

One Runner per process.  Rows are the queue; nothing is remembered between passes but what stands in them.  A pass that loses its
lease writes nothing.  Wakes from this process arrive as a nudge at once, those of other replicas by polling.
"""

import asyncio
import contextlib
from datetime import datetime
from typing import Any

import structlog

from roadstead.reconcile.passes import Passes
from roadstead.reconcile.wiring import Held, Wiring
from roadstead.store.api import Lease

log = structlog.get_logger("roadstead.runner")

POLL = 1.0  # seconds after which rows that other replicas woke are looked for
SOON = 0.005
SHARE = 4  # rows of one identity that a claim takes at most


class Runner:
    """Runs passes until told to stop.  `nudge()` says that something may be due now."""

    def __init__(self, wiring: Wiring) -> None:
        self.w = wiring
        self.performing = Passes(wiring)
        self._running: dict[Any, Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._nudged = asyncio.Event()
        self._stopping = False
        self.passes = 0
        self._in_vain = 0  # claims in a row that brought nothing though something was due by our clock
        self.dead = False  # set by a harness that ends this process without a drain

    def passing(self) -> tuple["asyncio.Task[None]", ...]:
        """The passes under way."""
        return tuple(self._tasks)

    def nudge(self) -> None:
        self._nudged.set()

    # ------------------------------------------------------------ the loop

    async def run(self) -> None:
        """Claim and run until cancelled or `stop`; then let running passes end within the drain time and give the rest back."""
        renewing = asyncio.create_task(self._renew_for_ever())
        try:
            while not self._stopping:
                await self._claim_some()
        finally:
            if not self.dead:
                await self._drain()
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing

    def stop(self) -> None:
        self._stopping = True
        self._nudged.set()

    async def _claim_some(self) -> None:
        free = self.w.max_passes - len(self._running)
        self._nudged.clear()
        leases: list[Lease] = []
        before = self.w.clock.monotonic()
        if free > 0:
            try:
                leases = await self.w.store.claim(self.w.owner, free, self.w.durations.lease, SHARE)
            except Exception:
                log.exception("claim failed; trying again")
                await self.w.clock.sleep(1.0)
                return
        for lease in leases:
            held = Held(lease, before + self.w.durations.lease, known=lease.known)
            self._running[lease.key] = held
            task = asyncio.create_task(self._guarded(held))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._in_vain = 0 if leases else self._in_vain
        # Fewer rows than one identity's share: there were no more, and asking again would only stand in their passes' way.
        if len(leases) < SHARE or len(self._running) >= self.w.max_passes:
            await self._wait()

    async def _wait(self) -> None:
        """Until a nudge, or until something falls due; never longer than a second (other replicas wake rows too)."""
        pause = POLL
        if len(self._running) < self.w.max_passes and not self._nudged.is_set():
            try:
                due = await self.w.store.next_due()
            except Exception:
                log.warning("what is due next is not known; looking again", exc_info=True)
            else:
                pause = self._until(due)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._nudged.wait()

    def _until(self, due: datetime | None) -> float:
        """Seconds until the next claim.  What is due is the store's word and by its clock: where ours is ahead a claim brings nothing
        until that moment, so each one in vain waits twice as long as the last."""
        if due is None:
            return POLL
        left = (due - self.w.clock.now()).total_seconds()
        if left > 0:
            self._in_vain = 0
            return min(POLL, max(SOON, left))
        pause = min(POLL, SOON * 2.0 ** min(self._in_vain, 10))
        self._in_vain += 1
        return pause

    async def _guarded(self, held: Held) -> None:
        key = held.lease.key
        try:
            await self.performing.one(held)
        except asyncio.CancelledError:
            raise
        except Exception:
            # The store is out of reach or the program is wrong: the lease runs out and the row is claimed again.
            log.exception("pass failed", key=str(key))
        finally:
            self._running.pop(key, None)
            self.passes += 1
            self._nudged.set()

    async def _renew_for_ever(self) -> None:
        while True:
            await self.w.clock.sleep(self.w.durations.renew_every)
            held = [h for h in self._running.values() if not h.lost]
            if not held:
                continue
            before = self.w.clock.monotonic()
            try:
                kept = await self.w.store.renew([h.lease for h in held], self.w.durations.lease)
            except Exception:
                log.warning("leases could not be renewed", exc_info=True)
                continue
            for h in held:
                if h.lease.key in kept:
                    h.sure_until = max(h.sure_until, before + self.w.durations.lease)
                else:
                    h.lost = True

    async def _drain(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=self.w.durations.drain)
        # Taken down before the passes are cancelled, which forget their leases with everything else.  A create that is under way
        # stays known by its intent, so whoever claims the row next looks before it asks.
        left = [h.lease for h in self._running.values() if not h.lost]
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=5)
        if left:
            await self.w.store.release(left)
