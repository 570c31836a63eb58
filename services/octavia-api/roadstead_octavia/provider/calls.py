"""The message that hands an operation to its provider, and how it goes out without anybody waiting for it.

The first sending follows the commit; whatever is lost on the way the watchdog sends again.  The operation's id is in every sending, and
the message id tells the sendings apart, so that the stream keeps each of them and a provider can tell that it has done the work already.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
import structlog

from roadstead.bus.connection import Bus
from roadstead.bus.failures import PublishFailed
from roadstead.bus.tasks import end_all
from roadstead.subjects import MAX_TREE_BYTES, provider_call_subject
from roadstead_octavia.call import _now
from roadstead_octavia.db.port import Operation, Row, Tree
from roadstead_octavia.provider import models, shown
from roadstead_octavia.provider.conclude import objects_of, removed_by
from roadstead_octavia.provider.recent import Recent
from roadstead_octavia.provider.rpc import NAME

log = structlog.get_logger("roadstead.octavia.provider")

AT_ONCE = 16  # messages on their way at the same time
WAITING = 10_000  # messages that may wait for it; more are left to the watchdog


@dataclass(frozen=True)
class Sending:
    """One message to a provider, before it is put together."""

    operation: Row
    tree: Tree
    revision: int
    number: int  # 1 for the first
    headers: Mapping[str, str]


def message(sending: Sending) -> tuple[str, bytes, dict[str, str]]:
    """Subject, body and headers (pure)."""
    operation = sending.operation
    body: dict[str, Any] = {
        "operation": operation["id"],
        "send": sending.number,
        "loadbalancer_id": operation["load_balancer_id"],
        "revision": sending.revision,
        "method": operation["method"],
        "object": operation["object"],
        "verb": operation["verb"],
        "objects": objects_of(operation),
        "removes": removed_by(operation),
        "deadline": f"{operation['deadline'].isoformat(timespec='milliseconds')}Z",
        "arguments": models.without_secrets(operation["arguments"]),
    }
    tree = orjson.dumps(shown.tree(sending.tree))
    if len(tree) < MAX_TREE_BYTES:
        body["tree"] = orjson.Fragment(tree)
    data = orjson.dumps(body)
    if len(data) > MAX_TREE_BYTES + MAX_TREE_BYTES // 2:
        del body["arguments"]  # a provider that needs them asks for the tree
        data = orjson.dumps(body)
    identifier = operation["id"] if sending.number == 1 else f"{operation['id']}.{sending.number}"
    subject = provider_call_subject(operation["provider"], operation["object"], operation["verb"])
    return subject, data, {**sending.headers, "Nats-Msg-Id": identifier}


def row_of(operation: Operation, load_balancer_id: str, at: datetime) -> dict[str, Any]:
    """The operation as its row has it, as far as a message needs it."""
    return {
        "id": operation.id,
        "load_balancer_id": load_balancer_id,
        "provider": operation.provider,
        "method": operation.method,
        "object": operation.object,
        "verb": operation.verb,
        "touched": [{"table": t.table, "id": t.id, "done": t.done} for t in operation.touched],
        "arguments": list(operation.arguments),
        "deadline": at + timedelta(seconds=operation.deadline),
    }


class Dispatcher:
    """`Parts.dispatch`: takes an operation over at once and sends it while `run` runs.  recent: is told of each."""

    def __init__(self, bus: Bus, recent: Recent | None = None) -> None:
        self._bus = bus
        self._recent = recent or Recent()
        self._queue: asyncio.Queue[Sending] = asyncio.Queue(WAITING)

    def __call__(self, operation: Operation, tree: Tree, revision: int) -> None:
        self._recent.keep(operation, tree, revision)
        row = row_of(operation, tree.load_balancer["id"], _now())
        self.send(Sending(row, tree, revision, 1, self._bus.tracing.headers()))

    def send(self, sending: Sending) -> None:
        """Never waits, never raises."""
        if not NAME.match(sending.operation["provider"]):
            log.error("a provider's name cannot be a subject", provider=sending.operation["provider"])
            return
        try:
            self._queue.put_nowait(sending)
        except asyncio.QueueFull:
            log.warning("too many calls wait; left to the watchdog", operation=sending.operation["id"])

    async def run(self) -> None:
        """Until cancelled."""
        workers = [asyncio.create_task(self._work()) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            await end_all(workers)

    async def drain(self, seconds: float) -> bool:
        """Wait until everything has gone out; whether it did in time."""
        try:
            await asyncio.wait_for(self._queue.join(), seconds)
        except TimeoutError:
            return False
        return True

    async def _work(self) -> None:
        while True:
            sending = await self._queue.get()
            try:
                await self._one(sending)
            finally:
                self._queue.task_done()

    async def _one(self, sending: Sending) -> None:
        operation = sending.operation["id"]
        try:
            subject, data, headers = message(sending)
            await self._bus.publish(subject, data, headers)
        except PublishFailed as failure:
            log.warning("call not sent; left to the watchdog", operation=operation, reason=str(failure))
        except Exception:
            # One operation that cannot be put into words must not keep all others from going out.
            log.exception("call not sent; left to the watchdog", operation=operation)
