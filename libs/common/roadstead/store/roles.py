"""A role per service that owns the service's schema, so that one service's credentials open no other's tables.

The role cannot log in by itself: an operator grants it to the user that the service connects as (`GRANT roadstead_compute TO
compute_user`).  Where the migrating user may not make roles the schema is simply that user's own.
"""

import structlog
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

log = structlog.get_logger(__name__)

# Roles belong to the whole server: a runner on another database may make the same one at the same moment.
_ALREADY_THERE = {"42710", "23505", "XX000"}  # duplicate object, unique violation, tuple concurrently updated
_NOT_ALLOWED = {"42501", "0LP01"}  # insufficient privilege, invalid grant


def role_name(schema: str) -> str:
    """The role that owns a schema."""
    return f"roadstead_{schema}"


async def owner_of_schema(connection: AsyncConnection, schema: str) -> str | None:
    """Make the role when it is missing and make it usable for the connected user (autocommit); None when not allowed."""
    role = role_name(schema)
    user = (
        await connection.execute(
            text("SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user")
        )
    ).one()
    if not (user.rolsuper or user.rolcreaterole):
        log.info("no role is made for the schema: the connecting user may not create roles", schema=schema)
        return None
    found = await connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role})
    if not found:
        await _unless(connection, f"CREATE ROLE {role} NOLOGIN", _ALREADY_THERE)
    database = await connection.scalar(text("SELECT quote_ident(current_database())"))
    needed = [f"GRANT CREATE ON DATABASE {database} TO {role}"]
    if not user.rolsuper:
        needed.append(f"GRANT {role} TO CURRENT_USER")
    for statement in needed:
        if not await _unless(connection, statement, _NOT_ALLOWED):
            log.warning("the role exists and is not ours to use: the schema stays without it", role=role)
            return None
    return role


async def _unless(connection: AsyncConnection, statement: str, states: set[str]) -> bool:
    """Execute; False when it failed with one of those SQLSTATEs."""
    try:
        await connection.execute(text(statement))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in states:
            return False
        raise
    return True
