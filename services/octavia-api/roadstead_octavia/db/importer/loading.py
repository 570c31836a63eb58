"""Writing an imported database: all of it in one transaction, counted before it is kept.

An import that was stopped has written nothing; it is simply run again.  It goes into a schema that holds no load balancers; one that
holds those of the source already is left as it is, and one that holds others is refused.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values travel as parameters

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import asyncpg
import orjson

from roadstead.store.postgres.names import checked_schema, driver_url
from roadstead.store.postgres.revisions import check_revision
from roadstead_octavia.db.importer.fitting import TABLES, Notes, fitted
from roadstead_octavia.db.importer.problem import ImportRefused
from roadstead_octavia.db.importer.unsettled import operations
from roadstead_octavia.db.refusals import now
from roadstead_octavia.db.rows import columns_of
from roadstead_octavia.db.tables import SCHEMA

Said = Callable[[str], None]
EVERY = 20000


@dataclass(frozen=True)
class Outcome:
    """rows: written, by table.  asked: load balancers whose providers are asked for what waits.  already: the schema held the load balancers before, and nothing was written."""

    rows: Mapping[str, int]
    notes: Notes
    asked: int = 0
    already: bool = False


async def load(
    url: str,
    source: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    schema: str = SCHEMA,
    dry_run: bool = False,
    settle: bool = False,
    say: Said = lambda _: None,
) -> Outcome:
    """Read everything, check everything, write everything, count everything; or write nothing.  ImportRefused, SchemaBehind.

    settle: what waits for an operation is asked of its provider once more when the API runs (`unsettled.py`); without it such an import
    is refused.  dry_run: all but keeping it.
    """
    tables, notes = _read(source, say)
    if notes.pending and not settle:
        waiting = ", ".join(f"{count} {what}" for what, count in sorted(notes.pending.items()))
        raise ImportRefused(
            f"operations are under way in the database ({waiting}): wait until they have ended and dump again, or"
            " import with --settle, and their providers are asked for them once more"
        )
    if not any(tables.values()):
        raise ImportRefused("the source holds no rows of an Octavia database")
    asked = operations(tables, now())
    connection = await asyncpg.connect(driver_url(url), timeout=10)
    try:
        # COPY is binary: a version byte and the text.
        await connection.set_type_codec(
            "jsonb",
            schema="pg_catalog",
            format="binary",
            encoder=lambda value: b"\x01" + orjson.dumps(value),
            decoder=lambda data: orjson.loads(bytes(data)[1:]),
        )
        await check_revision(connection.fetch, checked_schema(schema))
        transaction = connection.transaction()
        await transaction.start()
        try:
            already = await _write(connection, schema, {**tables, "operation": asked}, say)
        except BaseException:
            await transaction.rollback()
            raise
        await (transaction.rollback() if dry_run or already else transaction.commit())
        if not dry_run and not already:
            await connection.execute("ANALYZE")
    finally:
        await connection.close(timeout=5)
    return Outcome({table: len(rows) for table, rows in tables.items() if rows}, notes, len(asked), already)


def _read(
    source: Iterable[tuple[str, Mapping[str, Any]]], say: Said
) -> tuple[dict[str, list[dict[str, Any]]], Notes]:
    tables: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    notes = Notes()
    for number, (table, row) in enumerate(source, 1):
        fit = fitted(table, row, notes)
        if fit is not None:
            tables[table].append(fit)
        if number % EVERY == 0:
            say(f"{number} rows read, now {table}")
    return tables, notes


async def _write(connection: Any, schema: str, tables: Mapping[str, list[dict[str, Any]]], say: Said) -> bool:
    """Whether all was there before."""
    await connection.execute(f"LOCK TABLE {schema}.load_balancer IN SHARE ROW EXCLUSIVE MODE")
    held = await connection.fetchval(f"SELECT count(*) FROM {schema}.load_balancer")
    if held:
        wanted = {row["id"] for row in tables["load_balancer"]}
        same = {
            record["id"] for record in await connection.fetch(f"SELECT id FROM {schema}.load_balancer")
        } >= wanted
        if same and wanted:
            return True
        raise ImportRefused(
            f"the schema {schema} holds {held} load balancers already: import into an empty one"
            f" (drop the schema {schema} and run `roadstead migrate`), or into another database"
        )
    for table, rows in tables.items():
        if not rows:
            continue
        columns = columns_of(table)
        before = await connection.fetchval(f"SELECT count(*) FROM {schema}.{table}")
        try:
            await connection.copy_records_to_table(
                table,
                schema_name=schema,
                columns=columns,
                records=[tuple(row[name] for name in columns) for row in rows],
            )
        except asyncpg.ForeignKeyViolationError as error:
            raise ImportRefused(
                f"a row of {table} refers to one that the source lacks: {error.detail}"
            ) from None
        except asyncpg.UniqueViolationError as error:
            raise ImportRefused(f"two rows of {table} have the same key: {error.detail}") from None
        except asyncpg.PostgresError as error:
            raise ImportRefused(f"rows of {table} cannot be written: {error}") from None
        written = await connection.fetchval(f"SELECT count(*) FROM {schema}.{table}") - before
        if written != len(rows):
            raise ImportRefused(
                f"{len(rows)} rows of {table} were read and {written} written: nothing was kept"
            )
        say(f"{table}: {written} rows")
    return False
