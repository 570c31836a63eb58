"""Bringing schemas to the newest revision: one runner at a time, resumable, refusing two heads.

Several replicas may call `migrate` at once: the first takes an advisory lock in the database and the others wait for it, then find
nothing to do.  Each revision is its own transaction, so a run that was stopped goes on where it stopped.  Revisions widen first
and narrow a release later; therefore a program accepts a schema that is newer than itself, and never one that is behind.
"""

import asyncio
import time
from collections.abc import Sequence

import structlog
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from roadstead.store.postgres.names import checked_schema, sqlalchemy_url
from roadstead.store.postgres.revisions import MigrationRefused, configuration, newest_revision
from roadstead.store.roles import owner_of_schema

# The key of the advisory lock: any fixed number that nothing else in the database uses.
MIGRATION_LOCK = 0x526F616473746561
LOCK_POLL = 0.1

log = structlog.get_logger(__name__)


async def migrate(url: str, schemas: Sequence[str], *, roles: bool = True, wait: float = 600.0) -> None:
    """Make each schema where it is missing and bring it to the newest revision.

    `roles`: each schema gets a role that owns it, where the connecting user may make roles.  `wait` (seconds) bounds the
    wait for another runner; MigrationRefused after it.
    """
    for schema in schemas:
        newest_revision(ScriptDirectory.from_config(configuration(schema=checked_schema(schema))))
    engine = create_async_engine(sqlalchemy_url(url), poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await _lock(connection, wait)
            try:
                for schema in schemas:
                    await _migrate_one(connection, schema, roles)
            finally:
                await connection.execute(text("SELECT pg_advisory_unlock_all()"))
    finally:
        await engine.dispose()


async def _lock(connection: AsyncConnection, wait: float) -> None:
    deadline = time.monotonic() + wait
    while not await connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": MIGRATION_LOCK}):
        if time.monotonic() > deadline:
            raise MigrationRefused(
                f"another migration holds the lock for {wait:g} s: see pg_stat_activity, end it or wait longer"
            )
        await asyncio.sleep(LOCK_POLL)


async def _migrate_one(connection: AsyncConnection, schema: str, roles: bool) -> None:
    owner = await owner_of_schema(connection, schema) if roles else None
    if owner:
        await connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {owner}"))
        await connection.execute(text(f"SET ROLE {owner}"))
    else:
        await connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema}"))
    # From here on Alembic opens and commits a transaction per revision; the advisory lock belongs to the session and stays.
    await connection.commit()
    await connection.execution_options(isolation_level="READ COMMITTED")
    try:
        await connection.run_sync(lambda c: command.upgrade(configuration(c, schema), "head"))
        await connection.commit()
    finally:
        await connection.rollback()
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("RESET ROLE"))
    log.info("schema is at the newest revision", schema=schema, owner=owner)


async def drop_schema(url: str, schema: str) -> None:
    """Remove a service's schema with all it holds; for rebuilding it from the streams."""
    engine = create_async_engine(sqlalchemy_url(url), poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"DROP SCHEMA IF EXISTS {checked_schema(schema)} CASCADE"))
    finally:
        await engine.dispose()
