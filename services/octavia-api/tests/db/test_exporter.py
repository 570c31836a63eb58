"""The way back to an existing Octavia: everything is in the file as the original stores it, or there is no file."""

import asyncio
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import roadstead.cli.main as program
from roadstead_octavia.db.importer import dump
from roadstead_octavia.db.importer.fitting import TABLES, Notes, fitted
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.rows import key_of
from roadstead_octavia.db.tables import LOOKUPS, NIL

from .test_importer_loading import DUMP, HEADERS, dumped, run

pytestmark = pytest.mark.integration
HARD = r"""It\'s \\ and a\nline; -- no comment, (1),(\'x\')"""
MORE = DUMP.replace("Zürich \\'one\\'", HARD)


def export(target: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("ROADSTEAD_DATABASE_URL", database_url)
    return program.run(["octavia", "export", str(target)])


async def stored(database_url: str) -> dict[str, list[dict[str, Any]]]:
    """All rows that are not there from the start."""
    database = PostgresDatabase(database_url)
    await database.open()
    found = {}
    for table in TABLES:
        if table not in LOOKUPS:
            rows = [dict(row) for row in await database.rows(table, {})]
            found[table] = [row for row in rows if not key_of(table) or row[key_of(table)[0]] != NIL]
    await database.close()
    return {table: sorted(rows, key=str) for table, rows in found.items() if rows}


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What an import of the file would write."""
    found: dict[str, list[dict[str, Any]]] = {}
    with path.open("rb") as stream:
        for table, row in dump.rows(stream, TABLES):
            if (whole := fitted(table, row, Notes())) is not None:
                found.setdefault(table, []).append(whole)
    return {table: sorted(rows, key=str) for table, rows in found.items()}


def test_what_was_imported_is_exported_the_same(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(dumped(tmp_path, MORE), database_url, monkeypatch) == 0
    back = tmp_path / "back.sql"
    assert export(back, database_url, monkeypatch) == 0
    rows = asyncio.run(stored(database_url))
    assert {"load_balancer", "vip", "listener", "pool", "health_monitor", "tags", "quotas"} <= rows.keys()
    assert read(back) == rows
    text = back.read_text()
    (headers,) = re.findall(r"0x([0-9a-f]+)", text)
    assert pickle.loads(bytes.fromhex(headers)) == HEADERS
    # What the original's migrations made is neither removed nor repeated.
    assert "provisioning_status` (" not in text
    assert f"DELETE FROM `flavor` WHERE `id` <> '{NIL}'" in text
    assert text.index("DELETE FROM `listener`") < text.index("DELETE FROM `load_balancer`")
    assert text.rstrip().endswith("SET FOREIGN_KEY_CHECKS = 1;")
    assert back.stat().st_mode & 0o077 == 0
    capsys.readouterr()
    assert export(back, database_url, monkeypatch) != 0
    assert "is there already" in capsys.readouterr().err


def test_nothing_is_exported_while_an_operation_is_under_way(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(dumped(tmp_path), database_url, monkeypatch) == 0

    async def begin() -> None:
        import asyncpg

        from roadstead.store.postgres.names import driver_url

        connection = await asyncpg.connect(driver_url(database_url))
        await connection.execute("UPDATE octavia.pool SET provisioning_status = 'PENDING_UPDATE'")
        await connection.close()

    asyncio.run(begin())
    capsys.readouterr()
    assert export(tmp_path / "back.sql", database_url, monkeypatch) == 1
    assert "1 pool" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("back")) == []
