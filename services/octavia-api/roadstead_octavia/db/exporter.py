"""The database as a file that MariaDB or MySQL reads into an existing Octavia's: the way back from an import.

What the file holds is one consistent snapshot.  It replaces everything in the original's tables, in one transaction, and leaves alone what
the original's own migrations put there.  Counters of quotas come as NULL, upon which the original counts anew.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values are quoted

import io
import pickle
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TextIO

import asyncpg
import orjson

from roadstead.store.postgres.names import checked_schema, driver_url
from roadstead.store.postgres.revisions import check_revision
from roadstead_octavia.db.importer.fitting import TABLES
from roadstead_octavia.db.rows import columns_of, key_of
from roadstead_octavia.db.tables import LOOKUPS, NIL, PLACEHOLDERS, SCHEMA

BATCH = 200
PROTOCOL = 4  # of pickles: any Python that the original ran on reads it
HEAD = """-- Rows for the database of an existing Octavia, of the same release as the one they came from.
SET NAMES utf8mb4;
SET SESSION sql_mode = 'STRICT_ALL_TABLES';
SET SESSION time_zone = '+00:00';
SET FOREIGN_KEY_CHECKS = 0;
START TRANSACTION;
"""
TAIL = "COMMIT;\nSET FOREIGN_KEY_CHECKS = 1;\n"
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})


class ExportRefused(Exception):
    """The database cannot be handed over now; the text says what to do."""


async def export(url: str, out: TextIO, *, schema: str = SCHEMA) -> Mapping[str, int]:
    """Rows by table.  ExportRefused while operations are under way; nothing is written to the database."""
    tables = [table for table in TABLES if table not in LOOKUPS]
    counts: dict[str, int] = {}
    connection = await asyncpg.connect(driver_url(url), timeout=10)
    try:
        await check_revision(connection.fetch, checked_schema(schema))
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await _nothing_waits(connection, schema)
            out.write(HEAD)
            for table in reversed(tables):
                out.write(f"DELETE FROM `{table}`{_but_placeholders(table, '`')};\n")
            for table in tables:
                counts[table] = await _rows(connection, schema, table, out)
            out.write(TAIL)
    finally:
        await connection.close(timeout=5)
    return {table: count for table, count in counts.items() if count}


async def _nothing_waits(connection: Any, schema: str) -> None:
    waiting = []
    for table in TABLES:
        if "provisioning_status" in columns_of(table) and table not in LOOKUPS:
            found = await connection.fetchval(
                f"SELECT count(*) FROM {schema}.{table} WHERE provisioning_status LIKE 'PENDING%'"
            )
            if found:
                waiting.append(f"{found} {table}")
    if waiting:
        raise ExportRefused(
            f"operations are under way ({', '.join(waiting)}): stop the API for clients, let the providers finish"
            " (`roadstead octavia operations`), then export again"
        )


async def _rows(connection: Any, schema: str, table: str, out: TextIO) -> int:
    columns = columns_of(table)
    names = ", ".join(f'"{name}"' for name in columns)
    order = ", ".join(f'"{name}"' for name in key_of(table)) or names
    head = f"INSERT INTO `{table}` ({', '.join(f'`{name}`' for name in columns)}) VALUES\n"
    count = 0
    batch = io.StringIO()
    async for row in connection.cursor(
        f"SELECT {names} FROM {schema}.{table}{_but_placeholders(table, chr(34))} ORDER BY {order}"
    ):
        values = ",".join(_quoted(name, row[name]) for name in columns)
        batch.write(f"{head if count % BATCH == 0 else ',' + chr(10)}({values})")
        count += 1
        if count % BATCH == 0:
            out.write(f"{batch.getvalue()};\n")
            batch = io.StringIO()
    if count % BATCH:
        out.write(f"{batch.getvalue()};\n")
    return count


def _but_placeholders(table: str, mark: str) -> str:
    """The condition that leaves out the row that migrations make."""
    if table not in PLACEHOLDERS:
        return ""
    return f" WHERE {mark}{key_of(table)[0]}{mark} <> '{NIL}'"


def _quoted(name: str, value: Any) -> str:
    """A value in MariaDB's notation."""
    if value is None:
        return "NULL"
    if name == "insert_headers":
        headers = orjson.loads(value) if isinstance(value, str | bytes) else value
        return f"0x{pickle.dumps(headers, protocol=PROTOCOL).hex()}"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime):
        return f"'{value.replace(microsecond=0, tzinfo=None).isoformat(sep=' ')}'"
    return f"'{str(value).translate(_ESCAPES)}'"
