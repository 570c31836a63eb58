"""Figures of the bus on this machine, with the store in memory so that only the bus is measured: `python -m tests.bench.bus`.

Latency: from just before a publish to the handler, one message at a time.  Throughput: a backlog consumed and acknowledged,
beside plain nats-py fetching and acknowledging the same one.
"""

import asyncio
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.dead import DeadLetter
from roadstead.bus.durable import Durable
from roadstead.bus.epochs import Epochs
from roadstead.bus.pull import Delivery
from roadstead.bus.session import Sessions
from roadstead.clock import SystemClock
from roadstead.store.memory import MemoryStore
from roadstead.subjects import ConsumerSettings
from roadstead.telemetry.traces import start_tracing
from roadstead.testing.servers import NatsServer

SETTINGS = ConsumerSettings("SPEC", "bench-spec", ("spec.*.*.volume.*",))
BODY = (
    b'{"metadata": {"name": "web-1", "organizationId": "o"}, "spec": {"size": 10, "class": "fast"}}'
    + b" " * 160
)


def subject() -> str:
    return f"spec.{uuid.uuid4()}.project.volume.{uuid.uuid4()}"


class Bench:
    """A bus with one durable consumer whose handler only notes the time."""

    def __init__(self, url: str, traces: Path | None) -> None:
        tracing = start_tracing("bench", "one", "0", file=traces) if traces else None
        self.bus = Bus(BusOptions((url,), "bench", inbox_prefix="_INBOX_bench"), tracing=tracing)
        self.epochs = Epochs(MemoryStore(SystemClock()), "SPEC")
        self.seen: asyncio.Queue[float] = asyncio.Queue()
        self.durable = Durable(
            self.bus, SETTINGS, self._handle, self._well, service="bench", epochs=self.epochs
        )
        self.sessions = Sessions(
            self.bus, [SETTINGS], [self.durable], epochs={"SPEC": self.epochs}, reread=self._reread
        )

    async def _handle(self, _delivery: Delivery, _epoch: int) -> DeadLetter | None:
        self.seen.put_nowait(time.perf_counter())
        return None

    async def _well(self) -> bool:
        return True

    async def _reread(self, _epochs: Epochs) -> None:
        return

    async def latency(self, count: int, per_second: float) -> list[float]:
        """Milliseconds from publish to handler at a steady rate."""
        found = []
        for _ in range(count):
            began = time.perf_counter()
            await self.bus.client.publish(subject(), BODY)
            found.append((await self.seen.get() - began) * 1000)
            await asyncio.sleep(1 / per_second)
        return sorted(found)


async def throughput(count: int, take: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await take()
    return count / (time.perf_counter() - began)


async def backlog(bus: Bus, count: int) -> None:
    for _ in range(count):
        await bus.client.publish(subject(), BODY)
    await bus.client.flush(30)


async def plain(bus: Bus, count: int) -> None:
    """nats-py alone: fetch and acknowledge."""
    reader = await bus.js.pull_subscribe("spec.>", stream="SPEC")
    left = count
    while left > 0:
        for message in await reader.fetch(min(64, left), timeout=5):
            await message.ack()
            left -= 1
    await bus.client.flush()


async def measure(url: str, traces: Path | None) -> None:
    bench = Bench(url, traces)
    await bench.bus.connect()
    running = asyncio.create_task(bench.sessions.run())
    await asyncio.wait_for(bench.sessions.bound.wait(), 10)
    await bench.latency(100, 1000)
    figures = await bench.latency(1500, 500)
    cut = statistics.quantiles(figures, n=100)
    what = "with traces written" if traces else "without a trace receiver"
    print(
        f"publish to handler, {what}: p50 {cut[49]:.2f} ms, p99 {cut[98]:.2f} ms, highest {figures[-1]:.2f} ms"
    )

    count = 20_000
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await bench.durable.idle(10)
    await bench.bus.js.purge_stream("SPEC")
    bench.bus.settle(bench.bus.number, {"SPEC": bench.epochs})
    await backlog(bench.bus, count)
    alone = await throughput(count, lambda: plain(bench.bus, count))

    async def consumed() -> None:
        task = asyncio.create_task(bench.durable.run())
        for _ in range(count):
            await bench.seen.get()
        await bench.durable.idle(10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    ours = await throughput(count, consumed)
    print(
        f"a backlog of {count}: {ours:,.0f} messages/s handled and acknowledged; nats-py alone {alone:,.0f}/s"
    )
    await bench.bus.close()


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        for traces in (None, Path(folder) / "traces.jsonl"):
            server = NatsServer(Path(folder) / ("traced" if traces else "plain"), die_with_parent=True)
            server.start()
            try:
                uvloop.run(measure(server.url, traces))
            finally:
                server.stop()


if __name__ == "__main__":
    main()
