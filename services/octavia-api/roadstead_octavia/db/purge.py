"""What nobody asks for any more goes: load balancers that were DELETED long ago, and what is left of objects that are gone.

In batches, each a transaction of its own that passes over rows which somebody else holds, so that any number of replicas may purge at
once and no request waits for it.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values travel as parameters

from collections.abc import Mapping
from datetime import datetime, timedelta

from roadstead_octavia.db.postgres import PostgresDatabase

EXPIRY = timedelta(seconds=604800)
BATCH = 100
MOST_BATCHES = 1000


def _statements(schema: str) -> Mapping[str, str]:
    """What is purged -> the statement that removes a batch of it; $1: what is older, $2: rows at most."""
    s = f"{schema}."
    listeners = f"SELECT id FROM {s}listener WHERE load_balancer_id IN (SELECT id FROM old)"
    pools = f"SELECT id FROM {s}pool WHERE load_balancer_id IN (SELECT id FROM old)"
    policies = f"SELECT id FROM {s}l7policy WHERE listener_id IN ({listeners})"
    of_the_tree = (
        "SELECT id FROM old",
        listeners,
        pools,
        policies,
        f"SELECT id FROM {s}l7rule WHERE l7policy_id IN ({policies})",
        f"SELECT id FROM {s}member WHERE pool_id IN ({pools})",
        f"SELECT id FROM {s}health_monitor WHERE pool_id IN ({pools})",
    )
    return {
        # The index on updated_at holds DELETED rows alone; one that was never updated counts from its creation.
        "load_balancers": f"""
            WITH old AS MATERIALIZED (
                SELECT id FROM {s}load_balancer
                WHERE provisioning_status = 'DELETED' AND coalesce(updated_at, created_at, $1) <= $1
                LIMIT $2 FOR UPDATE SKIP LOCKED),
            tagged AS (DELETE FROM {s}tags WHERE resource_id IN ({" UNION ALL ".join(of_the_tree)})),
            counted AS (DELETE FROM {s}listener_statistics WHERE listener_id IN ({listeners})),
            gone AS (DELETE FROM {s}load_balancer WHERE id IN (SELECT id FROM old) RETURNING 1)
            SELECT count(*) FROM gone""",
        "operations": f"""
            WITH gone AS (DELETE FROM {s}operation WHERE id IN (
                SELECT id FROM {s}operation WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)
                RETURNING 1)
            SELECT count(*) FROM gone""",
    }


async def purge(database: PostgresDatabase, now: datetime, age: timedelta = EXPIRY) -> Mapping[str, int]:
    """Remove load balancers (with their trees, tags, statistics and operations) that have been DELETED for that long, and operations
    that ended that long ago; how many of each."""
    counts: dict[str, int] = {}
    for what, text in _statements(database.schema).items():
        counts[what] = 0
        for _ in range(MOST_BATCHES):
            removed = await database.run(lambda link, _, text=text: link.fetchval(text, now - age, BATCH))  # type: ignore[misc]  # default binds
            counts[what] += removed
            if removed < BATCH:
                break
    return counts
