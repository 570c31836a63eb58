"""What broker and database do by themselves, on the same machine in the same run: the measure of everything above them."""

import asyncio
import time
from collections.abc import Iterable

import asyncpg
from nats.js.api import StreamConfig

from .figures import Figure, hammer, percentile
from .ground import Ground

GROUP = "raw broker and database"
BODY = b"x" * 600
PUBLISH, PUBLISH_MANY, CONSUME = (
    "NATS publish, one at a time",
    "NATS publish, 64 in flight",
    "NATS fetch of 50 and ack",
)
INSERT, INSERT_MANY = "PostgreSQL one-row transaction", "PostgreSQL one-row transactions, 8 in flight"
CHANGE_MANY = "PostgreSQL read, then update with a message, 8 in flight"


async def measure(g: Ground, scale: float) -> list[Figure]:
    """Streams and tables of its own, removed afterwards."""
    return [*await _broker(g, scale), *await _database(g, scale)]


async def _broker(g: Ground, scale: float) -> list[Figure]:
    js = g.client.jetstream()
    await js.add_stream(StreamConfig(name="BENCH", subjects=["bench.>"], max_bytes=256 << 20))
    figures = []
    try:
        for name, count, flight in ((PUBLISH, 3000, 1), (PUBLISH_MANY, 20_000, 64)):
            with g.processors.watch() as cpu:
                rate, took = await hammer(
                    int(count * scale), flight, lambda n: js.publish(f"bench.{n % 100}", BODY)
                )
            figures.append(_figure(name, rate, took, cpu))
        reader = await js.pull_subscribe("bench.>", stream="BENCH", durable="bench")
        wanted = int(20_000 * scale)
        with g.processors.watch() as cpu:
            began, seen = time.perf_counter(), 0
            while seen < wanted:
                messages = await reader.fetch(50, timeout=5)
                await asyncio.gather(*(message.ack() for message in messages))
                seen += len(messages)
            rate = seen / (time.perf_counter() - began)
        figures.append(Figure(GROUP, CONSUME, rate=rate, samples=seen, cpu=cpu))
    finally:
        await js.delete_stream("BENCH")
    return figures


async def _database(g: Ground, scale: float) -> list[Figure]:
    pool = await asyncpg.create_pool(g.postgres.url, min_size=8, max_size=8)
    try:
        await pool.execute("CREATE TABLE bench_raw (n int PRIMARY KEY, body text, version int)")
        await pool.execute("CREATE TABLE bench_outbox (id bigserial PRIMARY KEY, body text)")
        text = BODY.decode()
        insert = "INSERT INTO bench_raw VALUES ($1, $2, 1)"
        figures = []
        for name, count, flight, first in ((INSERT, 1000, 1, 0), (INSERT_MANY, 5000, 8, 1_000_000)):
            with g.processors.watch() as cpu:
                rate, took = await hammer(
                    int(count * scale),
                    flight,
                    lambda n, f=first: pool.execute(insert, f + n, text),  # type: ignore[misc]  # mypy cannot type a default
                )
            figures.append(_figure(name, rate, took, cpu))

        async def change(number: int) -> None:
            """The least that a change of a resource with its message can be: two round trips, one commit."""
            async with pool.acquire() as connection:
                version = await connection.fetchval(
                    "SELECT version FROM bench_raw WHERE n = $1", 1_000_000 + number
                )
                await connection.fetchval(
                    "WITH put AS (UPDATE bench_raw SET version = $2 + 1 WHERE n = $1 AND version = $2 RETURNING 1)"
                    " INSERT INTO bench_outbox (body) SELECT $3 FROM put RETURNING id",
                    1_000_000 + number, version, text,
                )  # fmt: skip

        with g.processors.watch() as cpu:
            rate, took = await hammer(int(4000 * scale), 8, change)
        figures.append(_figure(CHANGE_MANY, rate, took, cpu))
        return figures
    finally:
        await pool.execute("DROP TABLE IF EXISTS bench_raw, bench_outbox")
        await pool.close()


def _figure(name: str, rate: float, took: Iterable[float], cpu: dict[str, float]) -> Figure:
    times = list(took)
    return Figure(
        GROUP, name, rate, percentile(times, 0.5) * 1000, percentile(times, 0.99) * 1000, len(times), cpu
    )
