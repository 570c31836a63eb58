"""What the worker says to the Octavia API and asks of it, over the bus."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

import orjson

from roadstead.bus.connection import Bus
from roadstead.bus.failures import RequestFailed
from roadstead.subjects import provider_report_subject, provider_rpc_subject
from roadstead_ovn.store.port import Json

PAGE_WITHIN = 20.0  # seconds that a page of trees may take


class Api(Protocol):
    """RequestFailed when an answer does not come or is a failure; PublishFailed when a report is not stored."""

    async def tree(self, load_balancer_id: str) -> Json | None:
        """The tree; None when the API says that there is none."""

    async def tree_of(self, kind: str, identifier: str) -> Json | None:
        """The tree of the load balancer that an object belongs to.  kind: as in a get request, `pools` for example."""

    def pages(self) -> AsyncIterator[Sequence[Json]]:
        """All trees, page by page."""

    async def result(self, body: Json, message_id: str) -> None: ...

    async def status(self, body: Json) -> None: ...


class BusApi:
    """name: the provider's."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._bus = bus
        self._trees = provider_rpc_subject(name, "tree")
        self._results = provider_report_subject(name, "result")
        self._statuses = provider_report_subject(name, "status")

    async def tree(self, load_balancer_id: str) -> Json | None:
        return await self._tree({"loadbalancer_id": load_balancer_id})

    async def tree_of(self, kind: str, identifier: str) -> Json | None:
        return await self._tree({"object": kind, "id": identifier})

    async def _tree(self, question: Mapping[str, Any]) -> Json | None:
        reply = await self._bus.request(self._trees, question)
        if "tree" not in reply:
            raise RequestFailed(f"no tree: {reply.get('fault_string') or 'the answer has none'}")
        found: Json | None = reply["tree"]
        return found

    async def pages(self) -> AsyncIterator[Sequence[Json]]:
        after = None
        while True:
            reply = await self._bus.request(self._trees, {"after": after}, within=PAGE_WITHIN)
            if "trees" not in reply:
                raise RequestFailed(f"no trees: {reply.get('fault_string') or 'the answer has none'}")
            yield reply["trees"]
            after = reply.get("next")
            if after is None:
                return

    async def result(self, body: Json, message_id: str) -> None:
        await self._bus.publish(self._results, orjson.dumps(body), {"Nats-Msg-Id": message_id})

    async def status(self, body: Json) -> None:
        await self._bus.publish(self._statuses, orjson.dumps(body), {})
