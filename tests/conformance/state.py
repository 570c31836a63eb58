"""The rows of the database as the recordings spell them: loaded before an exchange, read back after it.

A recorded state is complete: what it lacks is not there.  Loading writes only the difference to what the last exchange left.
Values that mean the same keep the recorded spelling, so that a row nobody touched is equal to the row that was loaded.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg
import orjson
from sqlalchemy import DateTime

from roadstead_octavia.db.tables import LOOKUPS, tables_of

State = Mapping[str, Sequence[Mapping[str, Any]]]

# Columns that are ours alone: the recordings do not know them.
OWN = {"load_balancer": {"version", "revision"}}
OWN_TABLES = ("operation", "vip_port_claim")


class Rows:
    """The database under test through a connection of its own, on which foreign keys are not checked."""

    def __init__(self, connection: asyncpg.Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._tables = {t.name: t for t in tables_of(schema).sorted_tables}
        self._held: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._fresh = True
        self._lookups: dict[str, Sequence[Mapping[str, Any]]] = {}

    @classmethod
    async def connect(cls, url: str, schema: str) -> "Rows":
        connection = await asyncpg.connect(url)
        await connection.execute("SET session_replication_role = replica")
        await connection.execute("SET timezone = 'UTC'")
        return cls(connection, schema)

    async def close(self) -> None:
        await self._connection.close()

    def _name(self, table: str) -> str:
        return f'"{self._schema}"."{table}"'

    def _key(self, table: str, row: Mapping[str, Any]) -> str:
        return orjson.dumps([row.get(c.name) for c in self._tables[table].primary_key.columns]).decode()

    async def load(self, state: State) -> None:
        """Make the database hold exactly this."""
        if self._fresh:
            everything = [t for t in self._tables if t not in LOOKUPS]
            await self._connection.execute("; ".join(f"DELETE FROM {self._name(t)}" for t in everything))
            self._fresh = False
        else:
            self._held = {k: v for k, v in self._keyed(await self.read()).items() if k not in LOOKUPS}
        self._lookups = {t: rows for t, rows in state.items() if t in LOOKUPS}
        wanted = self._keyed({t: rows for t, rows in state.items() if t not in LOOKUPS})
        async with self._connection.transaction():
            await self._connection.execute(
                "; ".join(f"DELETE FROM {self._name(t)}" for t in OWN_TABLES) or "SELECT 1"
            )
            for table in self._tables:
                if table not in LOOKUPS:
                    await self._bring(table, self._held.get(table, {}), wanted.get(table, {}))
        self._held = wanted

    async def _bring(
        self, table: str, held: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]]
    ) -> None:
        stale = [row for key, row in held.items() if wanted.get(key) != row]
        keys = [c.name for c in self._tables[table].primary_key.columns]
        if stale:
            columns = ", ".join(f'"{k}"' for k in keys)
            await self._connection.execute(
                f"DELETE FROM {self._name(table)} WHERE ({columns}) IN"
                f" (SELECT {columns} FROM jsonb_populate_recordset(NULL::{self._name(table)}, $1))",
                _json(stale),
            )
        new = [row for key, row in wanted.items() if held.get(key) != row]
        if new:
            names = [c.name for c in self._tables[table].columns if c.name in new[0]]
            columns = ", ".join(f'"{n}"' for n in names)
            await self._connection.execute(
                f"INSERT INTO {self._name(table)} ({columns})"
                f" SELECT {columns} FROM jsonb_populate_recordset(NULL::{self._name(table)}, $1)",
                _json(new),
            )

    def _keyed(self, state: State) -> dict[str, dict[str, Mapping[str, Any]]]:
        return {t: {self._key(t, r): r for r in rows} for t, rows in state.items() if t in self._tables}

    async def read(self) -> dict[str, list[dict[str, Any]]]:
        """All rows, spelled as they were loaded where they mean the same; those of look-up tables never change."""
        parts = ", ".join(
            f"'{t}', (SELECT jsonb_agg(to_jsonb(r)) FROM {self._name(t)} r)"
            for t in self._tables
            if t not in LOOKUPS and t not in OWN_TABLES
        )
        found: dict[str, list[dict[str, Any]] | None] = orjson.loads(
            await self._connection.fetchval(f"SELECT jsonb_build_object({parts})")
        )
        changing = {t: [self._spelled(t, row) for row in rows] for t, rows in found.items() if rows}
        return {**{t: list(map(dict, rows)) for t, rows in self._lookups.items()}, **changing}

    def _spelled(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        loaded = self._held.get(table, {}).get(self._key(table, row), {})
        own = OWN.get(table, set())
        spelled = {}
        for column in self._tables[table].columns:
            if column.name in own:
                continue
            value = row[column.name]
            if isinstance(column.type, DateTime) and value is not None:
                value = _same_time(value, loaded.get(column.name))
            spelled[str(column.name)] = value
        # Columns that the recording's rows lack (the original grew them later) are left out where they hold nothing.
        return {k: v for k, v in spelled.items() if not loaded or k in loaded or v is not None}


def _json(rows: Sequence[Mapping[str, Any]]) -> str:
    return orjson.dumps(rows).decode()


def _same_time(value: str, loaded: Any) -> str:
    moment = datetime.fromisoformat(value)
    if isinstance(loaded, str) and datetime.fromisoformat(loaded) == moment:
        return loaded
    return moment.isoformat(timespec="microseconds")
