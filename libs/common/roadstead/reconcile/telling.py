"""Consumers of a resource as its STATUS tells them: not at once, but all of a moment's changes together.

Whoever takes or drops a reference changes the owner's row and is answered; that the list is no longer the one last told stands in
the row as well, so no end of a process loses it.  A resource with a thousand consumers that come within a second is told once or
twice, not a thousand times.
"""

from collections.abc import Callable

import structlog

from roadstead.clock import Clock
from roadstead.reconcile import rules
from roadstead.store.api import Store

log = structlog.get_logger("roadstead.telling")

TELL_AFTER = 1.0  # seconds, scaled by the caller
BATCH = 100


class Telling:
    """One per process; replicas may find the same row, and one of them tells it.  on_outbox is called after commits."""

    def __init__(self, store: Store, clock: Clock, on_outbox: Callable[[], None], *, after: float) -> None:
        self._store = store
        self._clock = clock
        self._on_outbox = on_outbox
        self._after = after

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(self._after)
            try:
                await self.tell(self._after)
            except Exception:
                log.warning("consumers could not be told; trying again", exc_info=True)

    async def tell(self, waited: float = 0.0) -> int:
        """Publish every row that has waited that long; how many there were."""
        told = 0
        while keys := await self._store.untold(waited, BATCH):
            for key in keys:
                await self._store.change(key, rules.tell)
            self._on_outbox()
            told += len(keys)
        return told
