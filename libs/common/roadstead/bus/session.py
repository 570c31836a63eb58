"""What runs while one connection lasts.

Each connection begins with the same steps: streams and consumers are made, epochs compared, the last specs read again where an
epoch rose; then the parts run, until the connection or one of them fails, and all begins again.  So every fault of the broker has
one way back, the one that every start takes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from roadstead.bus.connection import Bus
from roadstead.bus.epochs import Epochs
from roadstead.bus.failures import BusRefused
from roadstead.bus.streams import ensure_streams
from roadstead.bus.tasks import end_all
from roadstead.subjects import ConsumerSettings

log = structlog.get_logger("roadstead.bus")

PAUSE_FIRST = 0.2
PAUSE_MAX = 5.0


class Part(Protocol):
    """Something that reads over a connection until cancelled, and may be run again over the next one."""

    async def run(self) -> None: ...


class Sessions:
    """Runs the parts over one connection after another.

    reread: called with each Epochs whose new life was not yet read from its beginning.
    """

    def __init__(
        self,
        bus: Bus,
        consumers: Sequence[ConsumerSettings],
        parts: Sequence[Part],
        *,
        epochs: Mapping[str, Epochs],
        reread: Callable[[Epochs], Awaitable[None]],
        early: Sequence[Part] = (),
        first: Callable[[], Awaitable[Any]] | None = None,
    ) -> None:
        """early: parts that run as soon as the connection is settled; `first` is awaited before the others start."""
        self._bus = bus
        self._consumers = consumers
        self._parts = parts
        self._early = early
        self._first = first
        self._epochs = epochs
        self._reread = reread
        self.bound = asyncio.Event()
        """Set while all parts run."""

    async def run(self) -> None:
        """Until cancelled.  BusRefused when a person must look at the broker first."""
        pause = PAUSE_FIRST
        while True:
            number = await self._bus.connected()
            loop = asyncio.get_running_loop()
            began = loop.time()
            try:
                await self._one(number)
            except BusRefused:
                raise
            except Exception as error:
                if number == self._bus.number:
                    log.warning("session broke off", error=str(error) or type(error).__name__, exc_info=error)
            finally:
                self.bound.clear()
            pause = PAUSE_FIRST if loop.time() - began > PAUSE_MAX else min(pause * 2, PAUSE_MAX)
            if number == self._bus.number:
                await asyncio.sleep(pause)

    async def _one(self, number: int) -> None:
        lost = asyncio.create_task(self._bus.lost(number))
        running = [lost, asyncio.create_task(self._through(number))]
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await end_all(running)

    async def _through(self, number: int) -> None:
        bus = self._bus
        await ensure_streams(bus.js, self._consumers, replicas=bus.options.replicas)
        for epochs in self._epochs.values():
            await epochs.check(bus.js)
        bus.settle(number, self._epochs)
        tasks = [asyncio.create_task(part.run()) for part in self._early]
        try:
            begun = asyncio.create_task(self._begin())
            tasks.append(begun)
            await _first_failure(tasks, begun)
            tasks.remove(begun)
            tasks += [asyncio.create_task(part.run()) for part in self._parts]
            self.bound.set()
            if not tasks:
                await asyncio.Event().wait()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.bound.clear()
            await end_all(tasks)

    async def _begin(self) -> None:
        if self._first is not None:
            await self._first()
        for epochs in self._epochs.values():
            if epochs.reread_is_due:
                await self._reread(epochs)
                await epochs.reread_done()


async def _first_failure(tasks: Sequence["asyncio.Task[None]"], until: "asyncio.Task[None]") -> None:
    """Wait for `until`; raise what one of the tasks raises before."""
    while not until.done():
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
