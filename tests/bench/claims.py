"""Claims from a queue in which one identity owns nine of ten due rows, and how long all others wait meanwhile."""

import time

import asyncpg

from roadstead.store.api import Lease
from roadstead.store.migrate import drop_schema, migrate
from roadstead.store.postgres import PostgresStore
from roadstead.testing.due_rows import due_rows

from .figures import Figure, hammer, of_times, percentile
from .ground import Ground

GROUP = "queue with 100 000 due rows"
SCHEMA = "bench_claims"
ROWS, BURST, OTHERS = 100_000, 90_000, 1000
BATCH, IN_FLIGHT = 16, 128
FILL = due_rows(
    SCHEMA,
    f"SELECT lpad(n::text, 36, '0') AS id, 'r' AS region, CASE WHEN n <= {BURST} THEN 'm-burst' ELSE 'i' || n % {OTHERS} END"
    f" AS identity, CASE WHEN n <= {BURST} THEN 60 ELSE 1 END AS age FROM generate_series(1, {ROWS}) n",
)
ENDED = (
    f"UPDATE {SCHEMA}.work SET due_at = NULL, lease_owner = NULL, lease_until = NULL"
    " WHERE kind = 'server' AND id = ANY($1::text[])"
)


async def measure(g: Ground, scale: float) -> list[Figure]:
    """A schema of its own, removed afterwards.  Passes are not run: a row's pass ends when 128 later ones were claimed."""
    url = g.postgres.url
    await migrate(url, [SCHEMA])
    store = PostgresStore(url, SCHEMA)
    await store.open()
    connection = await asyncpg.connect(url)
    try:
        for statement in FILL:
            await connection.execute(statement)
        await connection.execute(f"ANALYZE {SCHEMA}.work")
        await connection.execute(f"ANALYZE {SCHEMA}.resource")
        claims, found = int(600 * scale), 0
        took: list[float] = []
        waited: dict[str, float] = {}
        held: list[Lease] = []
        with g.processors.watch() as cpu:
            for _ in range(claims):
                began = time.perf_counter()
                leases = await store.claim("bench", BATCH, 600)
                took.append(time.perf_counter() - began)
                found += len(leases)
                for lease in leases:
                    number = int(lease.key.id)
                    owner = "m-burst" if number <= BURST else f"i{number % OTHERS}"
                    waited.setdefault(owner, sum(took))
                if len(held := held + leases) > IN_FLIGHT:
                    ended, held = held[:BATCH], held[BATCH:]
                    await connection.execute(ENDED, [lease.key.id for lease in ended])
        if not found:
            raise RuntimeError(f"{claims} claims of {ROWS} due rows brought none")
        others = [seconds for owner, seconds in waited.items() if owner != "m-burst"]
        claim = of_times(
            GROUP, f"claims of {BATCH}, one identity owning 90 %", took, rate=found / sum(took), cpu=cpu
        )
        rate, probes = await hammer(int(300 * scale), 1, lambda _n: store.next_due())
        return [
            claim,
            of_times(
                GROUP,
                "the other identities' wait for their first row",
                others or [float("inf")],
                note=f"{len(others)} of {OTHERS} came by in {claims} claims",
            ),
            Figure(
                GROUP,
                "next due",
                rate,
                percentile(probes, 0.5) * 1000,
                percentile(probes, 0.99) * 1000,
                len(probes),
            ),
        ]
    finally:
        await connection.close()
        await store.close()
        await drop_schema(url, SCHEMA)
