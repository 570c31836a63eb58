"""The noop provider on the bus: answers checks and questions, works its queue, reports.

It shows what any provider does: one durable consumer for calls, acknowledged once the report is stored; a call that comes again is
reported again.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import APIError

from roadstead.bus.connection import Bus
from roadstead.bus.durable import Durable
from roadstead.bus.pull import Delivery
from roadstead.bus.rights import provider_user
from roadstead.bus.streams import consumer_config
from roadstead.bus.tasks import end_all
from roadstead.subjects import provider_calls, provider_report_subject, provider_rpc_subject
from roadstead_octavia.provider.noop import driver
from roadstead_octavia.provider.noop.driver import Manner

log = structlog.get_logger("roadstead.octavia.noop")

PAUSE = 0.5


class NoopProvider:
    """One replica of a provider of that name.  `manner` may be replaced while it runs."""

    def __init__(self, bus: Bus, name: str = "noop", manner: Manner | None = None) -> None:
        self._bus = bus
        self.name = name
        self.manner = manner or Manner()
        self.taken: list[str] = []
        """Operation ids of the calls that came, newest last, at most a thousand."""
        self.bound = asyncio.Event()
        self._calls = Durable(
            bus,
            provider_calls(name),
            self._called,
            bus.answers,
            service=provider_user(name),
            lane=lambda delivery: str(delivery.sequence),
        )

    async def run(self) -> None:
        """Until cancelled, over one connection after another."""
        while True:
            number = await self._bus.connected()
            try:
                await self._one(number)
            except (NatsError, APIError, OSError, RuntimeError) as error:
                log.warning("not at work", error=str(error) or type(error).__name__)
            await asyncio.sleep(PAUSE)

    async def _one(self, number: int) -> None:
        settings = provider_calls(self.name)
        await self._bus.js.add_consumer(settings.stream, consumer_config(settings))
        self._bus.settle(number, {})
        subjects = (provider_rpc_subject(self.name, "check"), provider_rpc_subject(self.name, "ask", "*"))
        client = self._bus.client
        held = [await client.subscribe(s, queue=provider_user(self.name), cb=self._asked) for s in subjects]
        tasks = [asyncio.create_task(self._calls.run()), asyncio.create_task(self._bus.lost(number))]
        self.bound.set()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.bound.clear()
            await end_all(tasks)
            for subscription in held:
                if not client.is_closed and not client.is_reconnecting:
                    await subscription.unsubscribe()

    async def _asked(self, message: Msg) -> None:
        """A check or a question."""
        try:
            request = orjson.loads(message.data)
            method = message.subject.rpartition(".")[2]
            if not isinstance(request, Mapping):
                reply = {"error": {"class": "DriverError", "user": "the request is not an object"}}
            elif method == "check":
                reply = driver.check(request, self.manner)
            else:
                reply = driver.ask(method, request, self.manner)
        except orjson.JSONDecodeError:
            reply = {"error": {"class": "DriverError", "user": "the request is not JSON"}}
        await message.respond(orjson.dumps(reply))

    async def _called(self, delivery: Delivery, _epoch: int) -> None:
        call: Mapping[str, Any] = orjson.loads(delivery.data)
        self.taken = [*self.taken[-999:], call["operation"]]
        manner = self.manner
        if manner.is_silent(call["method"]):
            return
        if "tree" not in call:
            wanted = {"loadbalancer_id": call["loadbalancer_id"]}
            reply = await self._bus.request(provider_rpc_subject(self.name, "tree"), wanted)
            call = {**call, "tree": reply.get("tree")}
        if manner.delay:
            await asyncio.sleep(manner.delay)
        report = orjson.dumps(driver.result(call, manner))
        headers = {"Nats-Msg-Id": f"{call['operation']}.{call['send']}.result"}
        await self._bus.publish(provider_report_subject(self.name, "result"), report, headers)
