"""Services in this process, so that their work can be counted and profiled; production code but for what a figure leaves out."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind

from roadstead.assembly import Service
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.sending import Access, Login, Outgoing, RawAnswer, Sender
from roadstead.service import Process
from roadstead.settings import Settings
from roadstead.store.api import Lease
from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.traces import Tracing

from .ground import BenchFailed, Ground

READY_WITHIN = 90.0


class NoMeters(Meters):
    """Takes every figure and keeps none."""

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None: ...

    def observe(self, name: str, value: float, /, **labels: str) -> None: ...

    def put(self, name: str, value: float, /, **labels: str) -> None: ...


class NoSpans(Tracing):
    """No spans, no ids, no headers."""

    def __init__(self) -> None:
        super().__init__(Resource.get_empty())

    @contextmanager
    def span(
        self,
        name: str,
        carrier: Mapping[str, str] | None = None,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        **attributes: str | int | float | bool,
    ) -> Iterator[Span]:
        yield INVALID_SPAN

    def past(
        self, name: str, began_ns: int, ended_ns: int, *, failed: bool, **attributes: str | int
    ) -> None: ...

    def headers(self) -> dict[str, str]:
        return {}

    def close(self) -> None: ...


class Remembering:
    """A sender that asks the cloud once for each read and answers from memory afterwards: what is left is our own cost."""

    def __init__(self, inner: Sender) -> None:
        self._inner = inner
        self._answers: dict[tuple[str, str, Any], RawAnswer] = {}
        self.asked = 0

    async def login(self, login: Login, deadline: float) -> Access | RawAnswer:
        return await self._inner.login(login, deadline)

    async def send(self, login: Login, request: Outgoing) -> RawAnswer:
        if request.method != "GET":
            raise BenchFailed(
                f"a pass that should find nothing to do asked for {request.method} {request.url}"
            )
        key = (request.url, request.headers["X-Auth-Token"], tuple(request.query))
        answer = self._answers.get(key)
        if answer is None:
            self.asked += 1
            answer = self._answers[key] = await self._inner.send(login, request)
        return answer

    async def close(self) -> None:
        await self._inner.close()


class Inside(Process):
    """The process, told to end by `stopping`.  passes False: specs are taken and STATUS goes out, and that is all."""

    def __init__(self, service: Service, settings: Settings, *, telemetry: bool, passes: bool = True) -> None:
        super().__init__(service, settings)
        self._passes = passes
        if not telemetry:
            self.meters, self.tracing = NoMeters(), NoSpans()

    async def _start_passes(self) -> None:
        if self._passes:
            await super()._start_passes()
            return
        assert self.assembly is not None
        self.supervisor.start("outbox", self.assembly.relay.run)

    @property
    def engine(self) -> CloudEngine:
        assert isinstance(self._cloud, CloudEngine)
        return self._cloud

    def answer_from_memory(self) -> Remembering:
        """From now on reads are answered from memory."""
        made = self.engine._sender = self.engine._tokens._sender = Remembering(self.engine._sender)
        return made


@asynccontextmanager
async def inside(
    g: Ground, service: Service, *, telemetry: bool, passes: bool = True
) -> AsyncIterator[Inside]:
    """A service in this process, ready.  telemetry: spans go to a file, and metrics are kept."""
    more: dict[str, Any] = {"trace_file": Path(g.folder / "spans.jsonl")} if telemetry else {}
    process = Inside(service, g.settings(**more), telemetry=telemetry, passes=passes)
    running = asyncio.create_task(process.main())
    try:
        began = time.monotonic()
        while process.streams is None or await process.streams.fault() is not None:
            if running.done() or time.monotonic() - began > READY_WITHIN:
                raise BenchFailed(f"the {service.name} service did not become ready in this process")
            await asyncio.sleep(0.02)
        yield process
    finally:
        process.stopping.set()
        await asyncio.wait({running}, timeout=40)


@contextmanager
def noting_lags(process: Inside) -> Iterator[list[float]]:
    """Seconds from due to claimed of each row that is claimed meanwhile."""
    lags: list[float] = []
    store = process.store
    claim = store.claim

    async def noting(*arguments: Any, **options: Any) -> list[Lease]:
        leases = await claim(*arguments, **options)
        now = time.time()
        lags.extend(max(0.0, now - lease.due_at.timestamp()) for lease in leases)
        return leases

    store.claim = noting  # type: ignore[method-assign]  # taken back below
    try:
        yield lags
    finally:
        store.claim = claim  # type: ignore[method-assign]  # as it was
