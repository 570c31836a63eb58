"""Nothing stays PENDING: every operation is looked at until it has ended.

One queue over SQL, shared by all replicas (rows that another one holds are skipped): when its time has come, an operation whose objects
were all reported is done, one that still waits is sent again, and at its deadline it is ended.  The queue does not need the broker.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from roadstead_octavia.call import _now
from roadstead_octavia.db.port import Row, Stale, Tree
from roadstead_octavia.errors import ApiError
from roadstead_octavia.provider.calls import Dispatcher, Sending
from roadstead_octavia.provider.conclude import End, Outcome, State, deadline_reason, waiting
from roadstead_octavia.provider.reports import Enders
from roadstead_octavia.provider.store import Operations

log = structlog.get_logger("roadstead.octavia.watchdog")

BATCH = 50
LOOK_EVERY = 1.0  # seconds; also how late an operation may be ended
AT_ONCE = 4


class Watchdog:
    """Runs in every replica."""

    def __init__(
        self,
        operations: Operations,
        enders: Enders,
        dispatcher: Dispatcher,
        *,
        now: Callable[[], datetime] = _now,
        every: float = LOOK_EVERY,
    ) -> None:
        self._operations = operations
        self._enders = enders
        self._dispatcher = dispatcher
        self._now = now
        self._every = every

    async def run(self) -> None:
        """Until cancelled; a database that is away is waited for."""
        while True:
            try:
                more = await self.once()
            except (ApiError, OSError) as error:
                log.warning("the queue could not be read", error=str(error))
                more = 0
            if more < BATCH:
                await asyncio.sleep(self._every)

    async def once(self) -> int:
        """Everything that is due now, at most a batch; how many there were."""
        found = await self._operations.due(self._now(), BATCH)
        room = asyncio.Semaphore(AT_ONCE)

        async def one(row: Row) -> None:
            async with room:
                try:
                    await self._one(row)
                except (ApiError, Stale) as error:
                    # Its next time is set already: it comes again.
                    log.warning("operation not looked after", operation=row["id"], error=str(error))

        await asyncio.gather(*(one(row) for row in found))
        return len(found)

    async def _one(self, due: Row) -> None:
        tree = await self._enders.tree(due["load_balancer_id"])
        # Once more, behind the tree: a report may have ended it since it was found due.
        row = await self._operations.one(due["id"])
        if tree is None or row is None or row["state"] != State.SENT:
            return  # purged, or ended
        if self._now() >= row["deadline"]:
            reason = deadline_reason(row, tree)
            ended = await self._enders.end(row, Outcome(End.DEADLINE, reason), tree)
            if ended and waiting(row, tree):
                log.error(
                    "operation past its deadline",
                    operation=row["id"],
                    loadbalancer=row["load_balancer_id"],
                    reason=reason,
                )
        elif not waiting(row, tree):
            await self._enders.end(row, Outcome(End.SUCCESS), tree)
        else:
            self._send(row, tree)

    def _send(self, row: Row, tree: Tree) -> None:
        log.info("call is sent again", operation=row["id"], send=row["sends"], provider=row["provider"])
        self._dispatcher.send(Sending(row, tree, tree.revision, row["sends"], {}))
