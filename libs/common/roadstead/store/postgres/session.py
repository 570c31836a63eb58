"""Connections, and the one function that runs every operation.

An operation is a function of a connection that may be run again from its start: after a deadlock, a serialisation failure, a
version that moved, or a lost connection, also when nobody knows whether its last statement was carried out.  That is safe
because an operation decides from what it reads, and a rule it applies has no outside effects.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import asyncpg
import orjson
from sqlalchemy.exc import DBAPIError

from roadstead.store.api import StoreUnavailable
from roadstead.store.postgres.names import driver_url

T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
STATEMENT_TIMEOUT = 30.0
LOCK_TIMEOUT = 10.0
STATEMENT_CACHE = 512
# Every statement of the store is written for an index and joins by primary key.  What the planner may not choose it cannot choose
# by mistake while a table has grown and its statistics have not: a claim that reads the whole queue.  Compiling takes longer than
# any of these statements.
PLANNER = {f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin")} | {
    "jit": "off"
}
MOST_CONFLICTS = 40
LONGEST_PAUSE = 1.0

CONFLICTS = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,  # a migration ran meanwhile; it is prepared anew
)
LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shut down, crashed, starting, statement cancelled
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,
    DBAPIError,
)
_DEAD_INTERFACE = (
    "connection is closed",
    "connection was closed",
    "connection has been released",
    "pool is closing",
)


class Moved(Exception):
    """What the operation read is no longer so."""


def is_lost(error: BaseException) -> bool:
    """Whether the database could not be reached or went away; a wrong statement is no such thing."""
    if isinstance(error, asyncpg.InterfaceError):
        # asyncpg has one class for misuse and for a connection that died; only the text tells them apart.
        return any(text in str(error) for text in _DEAD_INTERFACE)
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_lost(error.orig))
    return isinstance(error, LOST)


class Link:
    """A connection that counts its round trips."""

    def __init__(self, connection: Any, count: Callable[[], None]) -> None:
        self.connection = connection
        self._count = count

    async def fetch(self, statement: str, *arguments: Any) -> list[Any]:
        self._count()
        records: list[Any] = await self.connection.fetch(statement, *arguments)
        return records

    async def fetchrow(self, statement: str, *arguments: Any) -> Any:
        self._count()
        return await self.connection.fetchrow(statement, *arguments)

    async def fetchval(self, statement: str, *arguments: Any) -> Any:
        self._count()
        return await self.connection.fetchval(statement, *arguments)

    async def execute(self, statements: str) -> None:
        """One or more statements without arguments; several are one transaction."""
        self._count()
        await self.connection.execute(statements)

    def transaction(self) -> "Transaction":
        return Transaction(self)


class Transaction:
    """BEGIN and COMMIT as two counted round trips; ROLLBACK on an error."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._inner = link.connection.transaction(isolation="read_committed")

    async def __aenter__(self) -> None:
        self._link._count()
        await self._inner.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if self._link.connection.is_closed():
            return  # the server has rolled back
        self._link._count()
        await (self._inner.commit() if kind is None else self._inner.rollback())


class Session:
    """A pool of at most `size` connections.  `patience` (seconds) bounds how long a lost database is waited for.

    settings: of the server, for every connection; those that are not given are the store's (`PLANNER`, the lock's time-out).
    """

    def __init__(
        self,
        url: str,
        *,
        size: int,
        patience: float,
        role: str | None,
        application: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._url = driver_url(url)
        self._size = size
        self._patience = patience
        self._settings = {
            "application_name": application,
            "timezone": "UTC",
            "lock_timeout": f"{LOCK_TIMEOUT * 1000:.0f}",
            "idle_in_transaction_session_timeout": f"{STATEMENT_TIMEOUT * 1000:.0f}",
            **PLANNER,
            **(settings or {}),
            **({"role": role} if role else {}),
        }
        self._pool: Any = None
        # Connections between two operations.  They are the pool's but stay taken, since giving one back and taking it again costs a task
        # and two timers, as much as a short statement; whoever waits for one has the pool to give it.
        self._idle: list[Any] = []
        self._waiting = 0
        self.round_trips = 0
        self.replays = 0

    async def open(self) -> None:
        """Make the pool; it connects when first used."""
        if self._pool is None:
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=self._size,
                init=_teach_json,
                reset=_keep_session,
                timeout=CONNECT_TIMEOUT,
                command_timeout=STATEMENT_TIMEOUT,
                statement_cache_size=STATEMENT_CACHE,
                max_cached_statement_lifetime=0,
                server_settings=self._settings,
            )

    async def close(self) -> None:
        """Give idle connections back; running operations get a moment to end, then are cut."""
        pool, self._pool = self._pool, None
        idle, self._idle = self._idle, []
        if pool is not None:
            try:
                for connection in idle:
                    await pool.release(connection, timeout=1.0)
                await asyncio.wait_for(pool.close(), CONNECT_TIMEOUT)
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                pool.terminate()

    def _counted(self) -> None:
        self.round_trips += 1

    async def run(self, operation: Callable[[Link, int], Awaitable[T]]) -> T:
        """Run `operation(link, conflicts so far)`, again where that helps.

        StoreUnavailable when the database stays away for longer than the patience, or the operation meets a conflict
        forty times; every other error comes through as it is.
        """
        if self._pool is None:
            raise StoreUnavailable("the store is not open: call open() first")
        conflicts, lost, deadline = 0, 0, time.monotonic() + self._patience
        while True:
            try:
                return await self._once(operation, conflicts)
            except (Moved, *CONFLICTS) as error:
                conflicts += 1
                if conflicts >= MOST_CONFLICTS:
                    raise StoreUnavailable(
                        f"gave up after {conflicts} conflicts with other writers"
                    ) from error
                pause = min(LONGEST_PAUSE, 0.001 * 2.0 ** min(conflicts, 8))
            except (*LOST, asyncpg.InterfaceError) as error:
                if not is_lost(error):
                    raise
                lost += 1
                pause = min(LONGEST_PAUSE, 0.02 * 2.0**lost)
                if time.monotonic() + pause > deadline:
                    raise StoreUnavailable(
                        f"the database does not answer ({type(error).__name__})"
                    ) from error
            self.replays += 1
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    async def _once(self, operation: Callable[[Link, int], Awaitable[T]], conflicts: int) -> T:
        pool = self._pool
        if pool is None:
            raise StoreUnavailable("the store was closed")
        connection = await self._take(pool)
        well = False
        try:
            value = await operation(Link(connection, self._counted), conflicts)
            well = True
        finally:
            if well and pool is self._pool and not self._waiting and not connection.is_in_transaction():
                self._idle.append(connection)
            else:
                await pool.release(connection)
        return value

    async def _take(self, pool: Any) -> Any:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            await pool.release(connection)
        self._waiting += 1
        try:
            return await pool.acquire(timeout=CONNECT_TIMEOUT)
        finally:
            self._waiting -= 1


async def _teach_json(connection: Any) -> None:
    """jsonb as plain values, in its binary form: a version byte and the text."""
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(memoryview(data)[1:]),
    )


async def _keep_session(_connection: Any) -> None:
    # The pool's own reset would cost a round trip per operation; no operation leaves settings or locks behind, and the pool
    # rolls an open transaction back before it calls this.
    return
