"""The tables: the original's names, types, keys and defaults; and the migrations lead to just these tables."""

import asyncio
import re
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Table, UniqueConstraint
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import create_async_engine

from roadstead.store.api import SchemaBehind
from roadstead.store.migrate import migrate
from roadstead.store.postgres.names import sqlalchemy_url
from roadstead.testing.servers import PostgresServer
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.rows import blank, columns_of, key_of
from roadstead_octavia.db.tables import LOOKUPS, NIL, PLACEHOLDERS, tables_of

FACTS = next(
    (
        p / "shared" / "octavia-facts" / "tables.yaml"
        for p in Path(__file__).resolve().parents
        if (p / "shared").is_dir()
    ),
    Path("tables.yaml"),
)
OWN = {"operation", "vip_port_claim"}
# Types of ours that are not what their spelling says.
TYPES = {"DATETIME": "TIMESTAMP WITHOUT TIME ZONE", "BLOB": "JSONB", "FLOAT": "DOUBLE PRECISION"}


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    if not FACTS.exists():
        pytest.skip(f"the facts about the original's tables are not here ({FACTS.name})")
    loaded: dict[str, Any] = yaml.safe_load(FACTS.read_text())["tables"]
    return loaded


def spelled(column: Any) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    return re.sub(r" COLLATE .*", "", column.type.compile(dialect))


def test_the_originals_39_tables_have_its_columns_types_and_keys(facts: dict[str, Any]) -> None:
    tables = tables_of(None).tables
    assert set(tables) - OWN == set(facts)
    assert len(facts) == 39
    for name, fact in facts.items():
        assert set(columns_of(name)) == set(fact["columns"]), name
        assert set(key_of(name)) == {c for c, v in fact["columns"].items() if v.get("pk")}, name
        for column, told in fact["columns"].items():
            ours = tables[name].columns[column]
            wanted = TYPES.get(told["type"], told["type"])
            if (name, column) == ("sni", "tls_container_id"):
                wanted = "VARCHAR(255)"
            assert spelled(ours) == wanted, (name, column)
            assert ours.nullable == told["null"], (name, column)


def test_foreign_keys_and_unique_keys_are_the_originals(facts: dict[str, Any]) -> None:
    for name, fact in facts.items():
        table: Table = tables_of(None).tables[name]
        wanted = {v["fk_name"]: (c, v["fk"]) for c, v in fact["columns"].items() if "fk" in v}
        found = {
            fk.name: (fk.column_keys[0], next(iter(fk.elements)).target_fullname)
            for fk in table.foreign_key_constraints
        }
        assert found == wanted, name
        unique = {u["name"]: set(u["columns"]) for u in fact.get("unique", ())}
        have = {
            c.name: {k.name for k in c.columns} for c in table.constraints if isinstance(c, UniqueConstraint)
        }
        assert have == unique, name
        assert {i["name"] for i in fact.get("indexes", ())} <= {i.name for i in table.indexes}, name


def test_look_up_values_and_defaults_are_the_originals(facts: dict[str, Any]) -> None:
    assert {t: sorted(f["lookup_rows"]) for t, f in facts.items() if "lookup_rows" in f} == {
        t: sorted(v) for t, v in LOOKUPS.items()
    }
    for name, fact in facts.items():
        for column, told in fact["columns"].items():
            if "default" in told and not str(told["default"]).startswith(("generated", "now")):
                assert blank(name)[column] == told["default"], (name, column)


@pytest.mark.integration
async def test_the_migrations_make_just_these_tables(database: PostgresDatabase, database_url: str) -> None:
    def differences(connection: Connection) -> list[Any]:
        options = {
            "compare_type": True,
            "version_table_schema": "octavia",
            "include_schemas": True,
            "include_name": lambda name, kind, _: kind != "schema" or name == "octavia",
        }
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, tables_of("octavia")))

    engine = create_async_engine(sqlalchemy_url(database_url))
    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engine.dispose()


@pytest.mark.integration
async def test_look_up_and_placeholder_rows_are_there(database: PostgresDatabase) -> None:
    for table, names in LOOKUPS.items():
        assert {row["name"] for row in await database.rows(table, {})} == set(names)
    for table, row in PLACEHOLDERS.items():
        assert await database.row(table, {key_of(table)[0]: NIL}) == row


@pytest.mark.integration
async def test_defaults_of_the_database_are_those_of_rows(
    database: PostgresDatabase, database_url: str
) -> None:
    connection = await asyncpg.connect(database_url)
    found = await connection.fetch(
        "SELECT table_name, column_name, column_default FROM information_schema.columns"
        " WHERE table_schema = 'octavia' AND column_default IS NOT NULL"
    )
    await connection.close()
    told = {(r["table_name"], r["column_name"]): r["column_default"] for r in found}
    for (table, column), value in told.items():
        if column in columns_of(table) and "now()" not in value:
            wanted = blank(table)[column]
            text = str(wanted).lower() if isinstance(wanted, bool) else str(wanted)
            assert text == value.split("'")[1 if "'" in value else 0], (table, column)


@pytest.mark.integration
async def test_a_database_that_was_never_migrated_is_refused_with_the_remedy(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.create_database("octavia_empty")
    database = PostgresDatabase(url, patience=1.0)
    with pytest.raises(SchemaBehind, match="roadstead migrate"):
        await database.open()
    await database.close()
    await asyncio.gather(*(migrate(url, ["octavia"]) for _ in range(3)))
    await database.open()
    await database.close()
    postgres_server.drop_database("octavia_empty")
