"""The outbox on its way to the broker.

Rows that are still there are taken, published and removed; a message that the broker did not acknowledge is taken again later with
the same id, so the broker stores it once.  Messages of one subject keep their order, whichever relay sends them: the store hands
out none while an earlier one is in another relay's hands, and what a relay has not sent while it was its own it leaves alone.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from roadstead.clock import Clock
from roadstead.reconcile.handlers import PublishFailed
from roadstead.store.api import OutboxItem, Store

log = structlog.get_logger("roadstead.relay")


class Out(Protocol):
    """The broker as the relay sees it."""

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        """Store one message; (epoch, sequence).  PublishFailed when not acknowledged."""
        ...

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        """Remove messages of the subject: those up to sequence `up_to` (0: no such limit), but for the newest `keep`."""
        ...


class Relay:
    """One per process; `nudge()` after a commit."""

    def __init__(self, store: Store, out: Out, clock: Clock, *, batch: int = 128, hide: float = 15.0) -> None:
        self._store = store
        self._out = out
        self._clock = clock
        self._batch = batch
        self._hide = hide
        self._nudged = asyncio.Event()
        self.sent = 0

    def nudge(self) -> None:
        self._nudged.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._nudged.clear()
            try:
                sent = await self.flush()
            except Exception:
                log.warning("outbox", exc_info=True)
                await self._clock.sleep(0.5)
                continue
            if sent == 0:
                try:
                    async with asyncio.timeout(1.0):
                        await self._nudged.wait()
                except TimeoutError:
                    continue

    async def flush(self) -> int:
        """One batch; how many left."""
        ends = self._clock.monotonic() + self._hide
        items = await self._store.outbox_take(self._batch, self._hide)
        if not items:
            return 0
        lanes: dict[str, list[OutboxItem]] = defaultdict(list)
        for item in items:
            lanes[item.outgoing.subject].append(item)
        done = [
            i
            for lane in await asyncio.gather(*(self._lane(lane, ends) for lane in lanes.values()))
            for i in lane
        ]
        if done:
            await self._store.outbox_done(done)
        self.sent += len(done)
        return len(done)

    async def _lane(self, items: Sequence[OutboxItem], ends: float) -> list[int]:
        done = []
        for item in items:
            if self._clock.monotonic() >= ends:
                break  # it may be another relay's by now
            try:
                await self._one(item)
            except PublishFailed as error:
                log.warning("not published", subject=item.outgoing.subject, reason=str(error))
                break
            done.append(item.id)
        return done

    async def _one(self, item: OutboxItem) -> None:
        out = item.outgoing
        if out.purge_to is not None:
            keep = int(out.headers.get("keep", "0"))
            await self._out.purge(out.headers["stream"], out.subject, up_to=out.purge_to, keep=keep)
            return
        headers = {**out.headers, "Nats-Msg-Id": out.message_id or f"{self._prefix}-{item.id}"}
        await self._out.publish(out.subject, out.payload, headers)

    _prefix = "outbox"

    def named(self, prefix: str) -> "Relay":
        """Message ids begin with `prefix` (service and database), so that two outboxes never share one."""
        self._prefix = prefix
        return self
