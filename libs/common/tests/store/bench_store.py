"""Prints how fast the PostgreSQL store is on this machine, next to asyncpg alone: `python bench_store.py [DATABASE_URL]`.

Without an address it starts a server of its own that syncs every commit.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from roadstead.store.api import Change, HistoryEntry, Lease, Outgoing, Row
from roadstead.store.migrate import drop_schema, migrate
from roadstead.store.postgres import PostgresStore
from roadstead.subjects import Key
from roadstead.testing.due_rows import due_rows
from roadstead.testing.servers import PostgresServer

SCHEMA = "bench"
REGION = "00000000-0000-4000-8000-000000000001"
SPEC = {
    "flavorId": "f" * 36,
    "image": {"id": "i" * 36},
    "networks": [{"id": "n" * 36}],
    "tags": [{"name": "a", "value": "b"}],
}
ROWS, BURST = 100_000, 90_000


def key(number: int) -> Key:
    return Key(REGION, "p", "server", str(UUID(int=number)))


def ingested(number: int) -> Callable[[Row | None, datetime], Change]:
    """A spec that arrives: a row and a status message."""

    def rule(row: Row | None, now: datetime) -> Change:
        base = row or Row(key(number), f"i{number % 50}", {"name": "n"}, {}, 0, 1, 1, 0, created_at=now)
        work = replace(
            base.work,
            due_at=now,
            wake_seq=base.work.wake_seq + 1,
            cause={"subject": "spec.x", "sequence": number},
        )
        status = {"conditions": [{"type": "Accepted", "status": "True"}], "n": base.generation}
        new = replace(
            base, spec={**SPEC, "size": base.generation}, generation=base.generation + 1, status=status,
            resource_version=base.resource_version + 1, work=work,
        )  # fmt: skip
        return Change(new, [Outgoing("status.x", b"x" * 1200)])

    return rule


def finished(lease: Lease) -> Callable[[Row | None, datetime], Change]:
    """The end of a pass: status, two messages, two history entries."""

    def rule(row: Row | None, now: datetime) -> Change:
        if row is None or row.work.lease_epoch != lease.epoch:
            return Change()
        work = replace(row.work, due_at=None, lease_owner=None, lease_until=None)
        new = replace(
            row,
            status={"phase": "up", "at": now.isoformat()},
            resource_version=row.resource_version + 1,
            work=work,
        )
        entries = [HistoryEntry(kind, now, {"rule": "S1", "verb": "create"}) for kind in ("decided", "acted")]
        return Change(new, [Outgoing("status.x", b"x" * 1200), Outgoing("decided.x", b"x" * 300)], entries)

    return rule


async def rate(count: int, in_flight: int, call: Callable[[int], Awaitable[Any]]) -> str:
    """Run call(0..count-1) with so many in flight; the rate and latencies as text."""
    numbers, took = iter(range(count)), []

    async def worker() -> None:
        for n in numbers:
            began = time.perf_counter()
            await call(n)
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return f"{count / (time.perf_counter() - began):8.0f}/s  {percentiles(took)}"


def percentiles(seconds: list[float]) -> str:
    ordered = sorted(s * 1000 for s in seconds)
    return f"p50 {statistics.median(ordered):6.2f} ms  p99 {ordered[int(len(ordered) * 0.99) - 1]:6.2f} ms"


async def bench_changes(url: str, store: PostgresStore) -> None:
    pool = await asyncpg.create_pool(url, min_size=16, max_size=16)
    await pool.execute("DROP TABLE IF EXISTS bench_raw; CREATE TABLE bench_raw (n int, body text)")
    for flight in (1, 16):
        line = await rate(
            1500 * flight // 4,
            flight,
            lambda n: pool.execute("INSERT INTO bench_raw VALUES ($1, $2)", n, "x" * 1200),
        )
        print(f"asyncpg, one insert a commit, {flight:2} in flight  {line}")
    await pool.close()
    for flight, first in ((1, 1_000_000), (16, 2_000_000)):
        count = 500 * flight // (1 if flight == 1 else 4)
        for what in ("insert", "update"):
            line = await rate(count, flight, lambda n, f=first: store.change(key(f + n), ingested(f + n)))  # type: ignore[misc]
            print(f"change like ingest, {what}, {flight:2} in flight   {line}")
        leases: list[Lease] = []
        while batch := await store.claim("bench", 200, 600, per_identity=50):
            leases += batch
        line = await rate(len(leases), flight, lambda n, ls=leases: store.change(ls[n].key, finished(ls[n])))  # type: ignore[misc]  # likewise
        print(f"change like finish, {flight:2} in flight           {line}")


async def bench_claims(url: str, store: PostgresStore) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"TRUNCATE {SCHEMA}.resource, {SCHEMA}.work")
    select = (
        f"SELECT lpad(n::text, 36, '0') AS id, '{REGION}' AS region, CASE WHEN n < {BURST} THEN 'm-burst' ELSE 'i' || n % 1000 END"
        f" AS identity, CASE WHEN n < {BURST} THEN 60 ELSE 1 END AS age FROM generate_series(1, {ROWS}) n"
    )
    for statement in due_rows(SCHEMA, select):
        await connection.execute(statement)
    if "analyze" in sys.argv:
        await connection.execute(f"ANALYZE {SCHEMA}.work")
    took, found = [], 0
    waited: dict[str, float] = {}
    held: list[Lease] = []
    ended_statement = (
        f"UPDATE {SCHEMA}.work SET due_at = NULL, lease_owner = NULL, lease_until = NULL"
        " WHERE kind = 'server' AND id = ANY($1::text[])"
    )
    for _ in range(600):
        before = time.perf_counter()
        leases = await store.claim("bench", 16, 600)
        took.append(time.perf_counter() - before)
        found += len(leases)
        for lease in leases:
            number = int(lease.key.id)
            waited.setdefault("m-burst" if number < BURST else f"i{number % 1000}", sum(took))
        if len(held := held + leases) > 128:  # as many as a replica has in flight; the oldest ends
            ended, held = held[:16], held[16:]
            await connection.execute(ended_statement, [lease.key.id for lease in ended])
    total = sum(took)
    others = [seconds for identity, seconds in waited.items() if identity != "m-burst"]
    print(
        f"claim of 16 from {ROWS} due, {BURST * 100 // ROWS} % one identity    {found / total:8.0f} rows/s  {percentiles(took)}"
    )
    print(
        f"  the other {len(others)} of 1000 identities waited     {percentiles(others)} for their first row"
    )
    line = await rate(300, 1, lambda _n: store.next_due())
    print(f"next_due                                    {line}")
    line = await rate(300, 1, lambda n: store.wake([("server", str(n).rjust(36, "0"))], {}))
    print(f"wake of one                                 {line}")
    await connection.close()


async def bench(url: str) -> None:
    await drop_schema(url, SCHEMA)
    await migrate(url, [SCHEMA])
    store = PostgresStore(url, SCHEMA, pool_size=16)
    await store.open()
    await bench_changes(url, store)
    await bench_claims(url, store)
    await store.close()
    await drop_schema(url, SCHEMA)


def main() -> None:
    given = [a for a in sys.argv[1:] if "://" in a]
    if given:
        asyncio.run(bench(given[0]))
        return
    with tempfile.TemporaryDirectory(prefix="roadstead-bench-") as folder:
        Path(folder).chmod(0o711)
        server = PostgresServer(Path(folder) / "postgres", die_with_parent=True)
        server.start()
        try:
            asyncio.run(bench(server.url))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
