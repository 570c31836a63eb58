"""What the seam needs of the database beside `Database`: operations that are due, and the ids of a provider's load balancers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from roadstead_octavia.db.port import Change, Database, Row
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.refusals import storable
from roadstead_octavia.db.rows import columns_of
from roadstead_octavia.options import Options

AGAIN = tuple(timedelta(seconds=s) for s in (5, 15, 35))  # after the commit: when a call is sent again
ENDING = timedelta(seconds=5)  # how long one replica has for the end of an operation before another one tries


class SeamDatabase(Database, Protocol):
    """`Database` with changes of several load balancers in one transaction."""

    async def commit_all(self, changes: Sequence[Change], options: Options) -> list[int]: ...


class Operations(Protocol):
    """Rows of `operation`."""

    async def one(self, identifier: str) -> Row | None: ...

    async def due(self, now: datetime, limit: int) -> Sequence[Row]:
        """Operations whose time has come, each for one caller alone: the next time is set before they are given out."""

    async def next_due(self) -> datetime | None: ...

    async def recent(self, load_balancer_id: str | None, limit: int) -> Sequence[Row]:
        """The newest ones, of one load balancer or of all."""

    async def ids(self, provider: str, after: str, limit: int) -> Sequence[str]:
        """Load balancers of the provider that are not DELETED, in order of their ids."""

    async def listeners(self, provider: str | None, identifiers: Sequence[str]) -> Sequence[str]:
        """Those of the listeners that are there (and the provider's)."""


class SqlOperations:
    """`Operations` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._table = f"{database.schema}.operation"
        self._columns = ", ".join(columns_of("operation"))

    async def one(self, identifier: str) -> Row | None:
        if not storable(identifier):
            return None
        text = f"SELECT {self._columns} FROM {self._table} WHERE id = $1"  # noqa: S608 - names of ours
        return _row(await self._database.run(lambda link, _: link.fetchrow(text, identifier)))

    async def due(self, now: datetime, limit: int) -> Sequence[Row]:
        text = f"""
            UPDATE {self._table} o SET sends = o.sends + CASE WHEN o.deadline > $1 THEN 1 ELSE 0 END,
                next_send_at = coalesce(
                    (SELECT min(t) FROM unnest(ARRAY[o.created_at + $3, o.created_at + $4, o.created_at + $5, o.deadline]) t
                     WHERE t > $1 AND t <= o.deadline),
                    $1 + $6)
            WHERE o.id IN (
                SELECT id FROM {self._table} WHERE next_send_at <= $1
                ORDER BY next_send_at LIMIT $2 FOR UPDATE SKIP LOCKED)
            RETURNING {", ".join(f"o.{name}" for name in columns_of("operation"))}"""  # noqa: S608 - our own names alone
        found = await self._database.run(lambda link, _: link.fetch(text, now, limit, *AGAIN, ENDING))
        return sorted((dict(record) for record in found), key=lambda row: row["created_at"])

    async def next_due(self) -> datetime | None:
        text = f"SELECT min(next_send_at) FROM {self._table} WHERE next_send_at IS NOT NULL"  # noqa: S608 - our own names alone
        found: datetime | None = await self._database.run(lambda link, _: link.fetchval(text))
        return found

    async def recent(self, load_balancer_id: str | None, limit: int) -> Sequence[Row]:
        if not storable(load_balancer_id):
            return []
        where, values = ("WHERE load_balancer_id = $2", [load_balancer_id]) if load_balancer_id else ("", [])
        text = f"SELECT {self._columns} FROM {self._table} {where} ORDER BY created_at DESC, id LIMIT $1"  # noqa: S608 - our own names alone
        found = await self._database.run(lambda link, _: link.fetch(text, limit, *values))
        return [dict(record) for record in found]

    async def ids(self, provider: str, after: str, limit: int) -> Sequence[str]:
        if not storable(after):
            return []
        text = f"""SELECT id FROM {self._database.schema}.load_balancer
            WHERE provider = $1 AND id > $2 AND provisioning_status <> 'DELETED' ORDER BY id LIMIT $3"""  # noqa: S608 - our own names alone
        found = await self._database.run(lambda link, _: link.fetch(text, provider, after, limit))
        return [record["id"] for record in found]

    async def listeners(self, provider: str | None, identifiers: Sequence[str]) -> Sequence[str]:
        schema = self._database.schema
        text = f"""SELECT l.id FROM {schema}.listener l JOIN {schema}.load_balancer b ON b.id = l.load_balancer_id
            WHERE l.id = ANY($1::varchar[]) AND ($2::varchar IS NULL OR b.provider = $2)"""  # noqa: S608 - our own names alone
        wanted = [i for i in identifiers if storable(i)]
        found = await self._database.run(lambda link, _: link.fetch(text, wanted, provider))
        return [record["id"] for record in found]


def _row(record: Mapping[str, Any] | None) -> Row | None:
    return None if record is None else dict(record)
