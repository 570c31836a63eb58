"""What runs while one connection to the broker lasts: the consumer of calls, checks and questions.

A provider makes its consumer and no stream: the Octavia API makes those, and is waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from nats.errors import Error as NatsError
from nats.js.errors import APIError, NotFoundError

from roadstead.bus.connection import Bus
from roadstead.bus.failures import ConsumerGone
from roadstead.bus.session import Part
from roadstead.bus.streams import consumer_config
from roadstead.bus.tasks import end_all
from roadstead.subjects import provider_calls

log = structlog.get_logger("roadstead.ovn.bus")

PAUSE = 0.5


class BusSide:
    """name: the provider's.  parts: are run over one connection after another.  first: is waited for before anything is taken."""

    def __init__(
        self, bus: Bus, name: str, parts: Sequence[Part], first: Callable[[], Awaitable[None]]
    ) -> None:
        self._first = first
        self._bus = bus
        self._consumer = provider_calls(name)
        self._parts = parts
        self.bound = asyncio.Event()
        """Set while calls are taken and questions answered."""

    async def run(self) -> None:
        """Until cancelled.  BusRefused when a person must look at the broker."""
        if self._bus.number == 0:
            await self._bus.connect()
        while True:
            number = await self._bus.connected()
            try:
                await self._one(number)
            except NotFoundError:
                log.info("the stream of calls is not there yet; the Octavia API makes it")
            except (NatsError, APIError, OSError, ConsumerGone) as error:
                log.warning("not at work", error=str(error) or type(error).__name__)
            await asyncio.sleep(PAUSE)

    async def _one(self, number: int) -> None:
        await self._bus.js.add_consumer(self._consumer.stream, consumer_config(self._consumer))
        await self._first()  # meanwhile calls wait in the stream
        self._bus.settle(number, {})
        tasks = [asyncio.create_task(part.run()) for part in self._parts]
        tasks.append(asyncio.create_task(self._bus.lost(number)))
        self.bound.set()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.bound.clear()
            await end_all(tasks)
