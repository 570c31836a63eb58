"""History lies in one partition per UTC day, so that a month of it is dropped and not deleted row by row.

Partitions are made days ahead when a store opens and when it purges, and on demand when an entry's day has none (a clock that
is not today's, a purge that has not run for long).
"""

# ruff: noqa: S608 - only checked schema names and our own column names are put into statements

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

import asyncpg

from roadstead.store.postgres.session import Link

DAYS_AHEAD = 7
_NAME = re.compile(r"^history_(\d{8})$")
# Any fixed number: the second key of the advisory lock under which partitions of a schema come and go.
_LOCK = 0x0A17


def day_of(moment: datetime) -> date:
    """The UTC day."""
    return moment.astimezone(UTC).date()


def days_ahead(moment: datetime) -> list[date]:
    """Yesterday (a clock behind ours), that day and the following ones."""
    first = day_of(moment) - timedelta(days=1)
    return [first + timedelta(days=n) for n in range(DAYS_AHEAD + 2)]


async def make_partitions(link: Link, schema: str, days: Iterable[date]) -> None:
    """Make those that are missing, in one transaction and one round trip."""
    statements = [f"SELECT pg_advisory_xact_lock(hashtext('{schema}.history'), {_LOCK})"]
    for day in sorted(set(days)):
        following = day + timedelta(days=1)
        statements.append(
            f"CREATE TABLE IF NOT EXISTS {schema}.history_{day:%Y%m%d} PARTITION OF {schema}.history"
            f" FOR VALUES FROM ('{day} 00:00+00') TO ('{following} 00:00+00')"
        )
    await link.execute("; ".join(statements))


async def partition_days(link: Link, schema: str) -> list[date]:
    """The days that have a partition, oldest first."""
    records = await link.fetch(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace n ON n.oid = p.relnamespace"
        " WHERE n.nspname = $1 AND p.relname = 'history'",
        schema,
    )
    found = (_NAME.match(r["relname"]) for r in records)
    return sorted(datetime.strptime(m[1], "%Y%m%d").replace(tzinfo=UTC).date() for m in found if m)


async def drop_day(link: Link, schema: str, day: date, moment: datetime) -> int:
    """Remove what a day's partition has from before `moment`, with the partition when the day is over; how many entries went."""
    name = f"{schema}.history_{day:%Y%m%d}"
    try:
        if day == day_of(moment):
            statement = (
                f"WITH gone AS (DELETE FROM {name} WHERE at < $1 RETURNING 1) SELECT count(*) FROM gone"
            )
            return int(await link.fetchval(statement, moment))
        removed = int(await link.fetchval(f"SELECT count(*) FROM {name}"))
    except asyncpg.UndefinedTableError:
        return 0  # another replica, or this operation's first try, has dropped it
    lock = f"SELECT pg_advisory_xact_lock(hashtext('{schema}.history'), {_LOCK})"
    await link.execute(f"{lock}; DROP TABLE IF EXISTS {name}")
    return removed
