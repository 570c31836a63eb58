"""Wakes that a message asks for, kept until the store has them.

What a message tells is known in memory at once; that its rows are due must not be lost when the store fails in between, because the
same message again is no news.  So the rows stand here first, and leave when the store has made them due.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from roadstead.clock import Clock
from roadstead.store.api import Store

log = structlog.get_logger("roadstead.handlers")

AGAIN = 1.0  # seconds between tries while the store fails

Pair = tuple[str, str]


class Owed:
    """Rows by (kind, id) with what wakes them; as many as there are rows at most, the newest cause of each."""

    def __init__(self, store: Store, woken: Callable[[], None]) -> None:
        """woken: called after rows were made due."""
        self._store = store
        self._woken = woken
        self._rows: dict[Pair, Mapping[str, Any]] = {}
        self._paying = asyncio.Lock()
        self._left = asyncio.Event()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Iterable[Pair], cause: Mapping[str, Any]) -> None:
        self._rows.update(dict.fromkeys(rows, cause))

    async def pay(self) -> None:
        """Make all of them due: one write a cause.  Raises what the store raises; what is left is tried again by `run`."""
        async with self._paying:
            try:
                while self._rows:
                    cause = next(iter(self._rows.values()))
                    some = [pair for pair, why in self._rows.items() if why is cause]
                    await self._store.wake(some, cause)
                    for pair in some:
                        if self._rows.get(pair) is cause:
                            del self._rows[pair]
                    self._woken()
            finally:
                if self._rows:
                    self._left.set()

    async def run(self, clock: Clock) -> None:
        """Until cancelled: pay what a failure left."""
        while True:
            await self._left.wait()
            await clock.sleep(AGAIN)
            self._left.clear()
            try:
                await self.pay()
            except Exception as error:  # noqa: BLE001 - whatever the store raises, the rows are still owed
                log.warning(
                    "rows are still to be woken", rows=len(self), error=str(error) or type(error).__name__
                )
