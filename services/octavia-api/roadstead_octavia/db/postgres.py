"""The Database on PostgreSQL.

Each function is one transaction and nearly always one round trip.  Nothing here decides: what was validated on a tree is written if the
tree is still at its version.  Conflicts that only the database sees (deadlocks, serialisation) are tried again inside; a lock that is
not to be had in time is 503, and so is a database that stays away.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values travel as parameters

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import asyncpg
import structlog

from roadstead.store.api import StoreUnavailable
from roadstead.store.postgres.names import checked_schema
from roadstead.store.postgres.revisions import check_revision
from roadstead.store.postgres.session import Link, Session
from roadstead_octavia.db import pages
from roadstead_octavia.db.folding import folded, head_values
from roadstead_octavia.db.port import QUOTAS, Change, Page, Row, Stale, Tree, Write
from roadstead_octavia.db.reading import tree_from, tree_statement
from roadstead_octavia.db.refusals import exists_already, not_storable, now, refers_wrongly, storable
from roadstead_octavia.db.rows import columns_of, order
from roadstead_octavia.db.tables import SCHEMA
from roadstead_octavia.db.tree import after
from roadstead_octavia.db.writing import Statement, first_statement, further_statement
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.options import Options

T = TypeVar("T")

LOCK_TIMEOUT = 5.0
RETRY_AFTER = "5"
MOST_ROWS = 5000
# One plan a statement and connection: all are written for an index, and none of them is better off with another plan for other values.
SETTINGS = {"lock_timeout": f"{LOCK_TIMEOUT * 1000:.0f}", "plan_cache_mode": "force_generic_plan"}
# Somebody else was faster: what the decision rested on is no longer so.
OVERTAKEN = (asyncpg.UniqueViolationError, asyncpg.ForeignKeyViolationError)

log = structlog.get_logger(__name__)


class PostgresDatabase:
    """See `port.Database`.  `patience` (seconds): how long a lost database is waited for."""

    def __init__(
        self,
        url: str,
        schema: str = SCHEMA,
        *,
        pool_size: int = 20,
        patience: float = 5.0,
        role: str | None = None,
    ) -> None:
        self._schema = checked_schema(schema)
        self.session = Session(
            url,
            size=pool_size,
            patience=patience,
            role=role,
            application="roadstead-octavia",
            settings=SETTINGS,
        )

    async def open(self) -> None:
        """Connect and look at the schema; SchemaBehind when it must be migrated first, StoreUnavailable."""
        await self.session.open()
        await self.session.run(lambda link, _: check_revision(link.fetch, self._schema))

    async def close(self) -> None:
        await self.session.close()

    @property
    def schema(self) -> str:
        return self._schema

    async def ping(self) -> None:
        """One statement; ApiError 503 when the database does not answer."""
        await self.run(lambda link, _: link.fetchval("SELECT 1"))

    async def run(self, operation: Callable[[Link, int], Awaitable[T]]) -> T:
        """`Session.run` with the refusals that clients get."""
        try:
            return await self.session.run(_without_waiting(operation))
        except StoreUnavailable as error:
            log.warning("the database does not answer", error=str(error))
            text = "The service is not available at the moment. Please try again."
            raise ApiError(503, text, "Unavailable", (("Retry-After", RETRY_AFTER),)) from error
        except asyncpg.DataError as error:
            # A value that no column takes: rules refuse these; one that slipped through is the client's all the same.
            log.warning("a value cannot be stored", error=str(error))
            raise not_storable() from error

    # Reading

    async def tree(self, load_balancer_id: str) -> Tree | None:
        return await self.tree_of("load_balancer", load_balancer_id)

    async def tree_of(self, table: str, identifier: str) -> Tree | None:
        if not storable(identifier):
            return None
        statement = tree_statement(self._schema, table)
        return tree_from(await self.run(lambda link, _: link.fetchrow(statement, identifier)))

    async def row(self, table: str, key: Row) -> Row | None:
        found = await self._select(table, key, 1)
        return found[0] if found else None

    async def rows(self, table: str, key: Row) -> Sequence[Row]:
        return await self._select(table, key, MOST_ROWS)

    async def _select(self, table: str, key: Row, limit: int) -> list[Row]:
        if not all(storable(value) for value in key.values()):
            return []
        columns, values = columns_of(table), []
        wanted = []
        for name, value in key.items():
            if name not in columns:
                raise KeyError(f"{table} has no column {name}")
            if value is not None:
                values.append(value)
            wanted.append(f"{name} IS NULL" if value is None else f"{name} = ${len(values)}")
        where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
        by = ", ".join(f"{name} NULLS FIRST" for name in order(table))
        text = f"SELECT {', '.join(columns)} FROM {self._schema}.{table}{where} ORDER BY {by} LIMIT {limit}"
        return [dict(record) for record in await self.run(lambda link, _: link.fetch(text, *values))]

    async def usage(self, project_id: str) -> Mapping[str, int]:
        counts = ", ".join(
            f"(SELECT count(*) FROM {self._schema}.{table} WHERE project_id = $1 AND provisioning_status <> 'DELETED') AS {column}"
            for table, (column, _) in QUOTAS.items()
        )
        if not storable(project_id):
            return dict.fromkeys((column for column, _ in QUOTAS.values()), 0)
        return dict(await self.run(lambda link, _: link.fetchrow(f"SELECT {counts}", project_id)))

    async def page(self, query: Page) -> Sequence[Row]:
        return await pages.page(self.run, self._schema, query)

    async def statistics(self, listener_ids: Sequence[str]) -> Mapping[str, int]:
        own = "a.status = 'ALLOCATED' OR s.amphora_id = s.listener_id"
        sums = ", ".join(
            f"coalesce(sum({name}), 0) AS {name}"
            for name in ("bytes_in", "bytes_out", "total_connections", "request_errors")
        )
        text = (
            f"SELECT {sums}, coalesce(sum(active_connections) FILTER (WHERE {own}), 0) AS active_connections"
            f" FROM {self._schema}.listener_statistics s LEFT JOIN {self._schema}.amphora a ON a.id = s.amphora_id"
            " WHERE s.listener_id = ANY($1::varchar[])"
        )
        record = await self.run(lambda link, _: link.fetchrow(text, list(listener_ids)))
        return {name: int(value) for name, value in record.items()}

    # Writing

    def after(self, tree: Tree | None, change: Change) -> Tree:
        return after(tree, change)

    async def commit(self, change: Change, options: Options) -> int:
        return (await self.commit_all([change], options))[0]

    async def commit_all(self, changes: Sequence[Change], options: Options) -> list[int]:
        """Several changes in one transaction, in the order given (of load balancer ids, or two callers may block each other for a
        moment and one of them is tried again); the revisions.  As `commit`: all of them or none."""
        planned = [(change, _planned(self._schema, change, options)) for change in changes]
        tries = 0

        async def operation(link: Link, _: int) -> list[int]:
            nonlocal tries
            tries += 1
            if tries > 1 and (done := await self._already(link, changes)) is not None:
                return done
            if len(planned) == 1 and len(planned[0][1]) == 1:
                return [await self._guarded(link, *planned[0])]
            async with link.transaction():
                return [await self._guarded(link, change, statements) for change, statements in planned]

        try:
            return await self.run(operation)
        except OVERTAKEN as error:
            log.info("overtaken", constraint=error.constraint_name)
            raise Stale(str(error.constraint_name)) from error

    async def _guarded(self, link: Link, change: Change, statements: Sequence[Statement]) -> int:
        first, *others = statements
        record = await link.fetchrow(first.text, *first.arguments)
        if record["revision"] is None:
            if record["refused"] is not None:
                raise refuse("QuotaException", resource=QUOTAS[record["refused"]][1])
            raise Stale(change.load_balancer_id)
        for statement in others:
            await link.fetchrow(statement.text, *statement.arguments)
        revision: int = record["revision"]
        return revision

    async def _already(self, link: Link, changes: Sequence[Change]) -> list[int] | None:
        """The revisions when an earlier try was carried out although its answer was lost: operations tell."""
        ids = [change.operation.id for change in changes if change.operation is not None]
        if len(ids) != len(changes):
            return None
        text = f"SELECT id, revision FROM {self._schema}.operation WHERE id = ANY($1::varchar[])"
        found = {record["id"]: record["revision"] for record in await link.fetch(text, ids)}
        return [found[one] for one in ids] if len(found) == len(ids) else None

    async def write(self, writes: Sequence[Write]) -> None:
        batches = [batch for batch in folded(writes, now()) if not batch.empty]
        statements = [further_statement(self._schema, batch) for batch in batches]

        async def operation(link: Link, _: int) -> None:
            if len(statements) == 1:
                await link.fetchrow(statements[0].text, *statements[0].arguments)
                return
            async with link.transaction():
                for statement in statements:
                    await link.fetchrow(statement.text, *statement.arguments)

        if not statements:
            return
        try:
            await self.run(operation)
        except asyncpg.UniqueViolationError as error:
            raise exists_already(error, writes) from error
        except asyncpg.ForeignKeyViolationError as error:
            raise refers_wrongly(error, writes) from error


def _planned(schema: str, change: Change, options: Options) -> list[Statement]:
    """The statements of a change; the first one guards it."""
    values, rest = head_values(change.writes, change.load_balancer_id)
    first, *others = folded(rest, change.at)
    statements = [first_statement(schema, change, values, first, options.default_quotas)]
    return statements + [further_statement(schema, batch) for batch in others if not batch.empty]


def _without_waiting(operation: Callable[[Link, int], Awaitable[T]]) -> Callable[[Link, int], Awaitable[T]]:
    """A lock that was not to be had in its time is not waited for again: the client is told to come back."""

    async def run(link: Link, conflicts: int) -> T:
        try:
            return await operation(link, conflicts)
        except asyncpg.LockNotAvailableError as error:
            raise refuse("ProjectBusy") from error

    return run
