"""Migrations: one runner at a time, resumable, one head, and a store that refuses what is behind."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine

from roadstead.clock import parse_time
from roadstead.store import migrate as migrate_module
from roadstead.store.api import SchemaBehind
from roadstead.store.migrate import drop_schema, migrate
from roadstead.store.postgres import PostgresStore, revisions
from roadstead.store.postgres.names import driver_url, sqlalchemy_url
from roadstead.store.postgres.revisions import MIGRATIONS, MigrationRefused, configuration
from roadstead.store.postgres.store import WrongEncoding
from roadstead.store.postgres.tables import tables_of
from roadstead.testing.servers import PostgresServer

from .conftest import SCHEMA
from .rows import blank, existing, key, put

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def database_template() -> str:
    """These tests begin with an empty database."""
    return "template1"


@pytest.fixture
async def admin(database_url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(database_url, timeout=10)
    yield connection
    await connection.close(timeout=5)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the migrations with the first revision alone, which the test may add to; its folder of revisions."""
    folder = tmp_path / "migrations"
    later = shutil.ignore_patterns("__pycache__", "000[2-9]*")
    shutil.copytree(revisions.MIGRATIONS, folder, ignore=later)
    monkeypatch.setattr(revisions, "MIGRATIONS", folder)
    revisions.known_revisions.cache_clear()
    yield folder / "versions"
    revisions.known_revisions.cache_clear()


def revision(name: str, after: str, *statements: str) -> str:
    lines = "\n".join(f"    op.execute({s!r})" for s in statements) or "    pass"
    return (
        f'from alembic import op\nrevision = "{name}"\ndown_revision = "{after}"\n\ndef upgrade():\n{lines}\n'
    )


async def version(admin: Any, schema: str = SCHEMA) -> Any:
    return await admin.fetchval(f"SELECT version_num FROM {schema}.alembic_version")


async def sleeping_backend(admin: Any) -> int:
    """The pid of the session that executes pg_sleep in this database."""
    query = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND datname = current_database()"
    for _ in range(500):
        if pid := await admin.fetchval(query):
            return int(pid)
        await asyncio.sleep(0.02)
    raise AssertionError("nobody sleeps")


async def opens(url: str, schema: str = SCHEMA, **options: Any) -> None:
    store = PostgresStore(url, schema, **options)
    await store.open()
    await store.close()


async def test_the_migrated_schema_is_the_one_that_the_statements_are_made_from(database_url: str) -> None:
    await migrate(database_url, [SCHEMA])

    def differences(connection: Connection) -> list[Any]:
        connection.exec_driver_sql(f"SET search_path TO {SCHEMA}")
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        found: list[Any] = compare_metadata(context, tables_of(None))
        return [d for d in found if "alembic_version" not in str(d)]

    engine = create_async_engine(sqlalchemy_url(database_url))
    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engine.dispose()


async def test_a_store_refuses_a_schema_that_was_never_migrated(database_url: str) -> None:
    with pytest.raises(SchemaBehind, match="never migrated: run `roadstead migrate`"):
        await opens(database_url)


async def test_a_store_refuses_a_schema_that_is_behind(database_url: str, scripts: Path) -> None:
    await migrate(database_url, [SCHEMA])
    (scripts / "0002_more.py").write_text(revision("0002", "0001"))
    revisions.known_revisions.cache_clear()
    with pytest.raises(SchemaBehind, match="at 0001 and not at 0002: run `roadstead migrate`"):
        await opens(database_url)
    await migrate(database_url, [SCHEMA])
    await opens(database_url)


async def test_a_store_refuses_a_database_that_cannot_hold_every_text(database_url: str, admin: Any) -> None:
    name = f"{await admin.fetchval('SELECT current_database()')}_ascii"
    await admin.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(WrongEncoding, match="SQL_ASCII"):
            await opens(database_url.rpartition("/")[0] + f"/{name}")
    finally:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_store_takes_a_schema_of_a_newer_program(database_url: str, admin: Any) -> None:
    """While replicas are upgraded one by one the older ones keep running: revisions only widen."""
    await migrate(database_url, [SCHEMA])
    await admin.execute(f"UPDATE {SCHEMA}.alembic_version SET version_num = '9999'")
    await opens(database_url)


async def test_oc_40_three_runners_at_once_migrate_once_and_all_end_well(
    database_url: str, admin: Any, scripts: Path
) -> None:
    (scripts / "0002_slow.py").write_text(
        revision(
            "0002", "0001", "CREATE TABLE once (n int)", "SELECT pg_sleep(0.3)", "INSERT INTO once VALUES (1)"
        )
    )
    await asyncio.gather(*(migrate(database_url, [SCHEMA, "other"]) for _ in range(3)))
    for schema in (SCHEMA, "other"):
        assert await version(admin, schema) == "0002"
        assert await admin.fetchval(f"SELECT count(*) FROM {schema}.once") == 1


async def test_oc_40_a_run_that_stopped_half_way_is_resumed(
    database_url: str, admin: Any, scripts: Path
) -> None:
    second = scripts / "0002_second.py"
    second.write_text(revision("0002", "0001", "CREATE TABLE made (n int)", "SELECT 1/0"))
    (scripts / "0003_third.py").write_text(revision("0003", "0002", "CREATE TABLE last (n int)"))
    with pytest.raises(Exception, match="division by zero"):
        await migrate(database_url, [SCHEMA])
    assert await version(admin) == "0001"
    assert await admin.fetchval(f"SELECT to_regclass('{SCHEMA}.made')") is None, (
        "a revision is made whole or not at all"
    )
    second.write_text(revision("0002", "0001", "CREATE TABLE made (n int)"))
    await migrate(database_url, [SCHEMA])
    assert await version(admin) == "0003"
    assert await admin.fetchval(f"SELECT to_regclass('{SCHEMA}.last')") is not None


async def test_oc_40_a_runner_killed_half_way_leaves_no_lock(
    database_url: str, admin: Any, scripts: Path
) -> None:
    slow = scripts / "0002_slow.py"
    slow.write_text(revision("0002", "0001", "CREATE TABLE made (n int)", "SELECT pg_sleep(30)"))
    run = asyncio.create_task(migrate(database_url, [SCHEMA]))
    pid = await sleeping_backend(admin)
    assert await admin.fetchval("SELECT pg_terminate_backend($1, 5000)", pid)
    with pytest.raises(Exception, match=r"terminat|closed"):
        await asyncio.wait_for(run, 10)
    slow.write_text(revision("0002", "0001", "CREATE TABLE made (n int)"))
    await asyncio.wait_for(migrate(database_url, [SCHEMA]), 20)
    assert await version(admin) == "0002"


async def test_a_filled_database_of_the_first_revision_is_brought_to_the_newest(
    database_url: str, admin: Any, scripts: Path
) -> None:
    await migrate(database_url, [SCHEMA])
    assert await version(admin) == "0001"
    columns = [
        f'"{c.name}"' for c in tables_of(None).tables["resource"].columns if c.name not in ("untold_since",)
    ]
    values = {"kind": "'server'", "spec": "'{\"size\": 7}'", "consumers": "'[\"volumes.g/1\"]'"}
    texts = dict.fromkeys(("region", "project", "identity"), "'x'")
    objects = dict.fromkeys(("metadata", "status", "references"), "'{}'")
    lists = dict.fromkeys(("warnings", "refusal", "intents"), "'[]'")
    flags = dict.fromkeys(("deleting", "cascade", "ever_provisioned", "paused"), "false")
    nothing = dict.fromkeys(
        ("gone_at", "deletion_timestamp", "next_spec", "observed", "observed_at", "record", "decided"), "NULL"
    ) | dict.fromkeys(("written_at", "paused_until", "created_at"), "NULL")
    given = {"id": f"'{key(1).id}'", **texts, **objects, **lists, **flags, **nothing, **values}
    row = ", ".join(given.get(c.strip('"'), "1") for c in columns)
    await admin.execute(f"INSERT INTO {SCHEMA}.resource ({', '.join(columns)}) VALUES ({row})")
    await admin.execute(
        f"INSERT INTO {SCHEMA}.work (kind, id, region, project, identity, gone, wake_seq, lease_epoch, cause)"
        f" VALUES ('server', '{key(1).id}', 'x', 'x', 'x', false, 0, 0, '{{}}'),"
        " ('server', 'of nothing', 'x', 'x', 'x', false, 0, 0, '{}')"
    )
    await admin.execute(
        f"INSERT INTO {SCHEMA}.outbox (subject, payload, headers, message_id)"
        " SELECT 's' || n % 7, 'x', '{}', 'm' || n FROM generate_series(1, 2000) n"
    )
    for revised in sorted(p for p in MIGRATIONS.glob("versions/000[2-9]*.py")):
        shutil.copy(revised, scripts)
    revisions.known_revisions.cache_clear()
    before = datetime.now(UTC)
    await migrate(database_url, [SCHEMA])
    store = PostgresStore(database_url, SCHEMA)
    await store.open()
    kept = await existing(store, key(1))
    assert (kept.spec, kept.consumers, kept.untold_since) == ({"size": 7}, ("volumes.g/1",), None)
    assert await admin.fetchval(f"SELECT count(*) FROM {SCHEMA}.work") == 1, "work of no resource is gone"
    taken = await store.outbox_take(2000, 5)
    assert [i.outgoing.message_id for i in taken] == [f"m{n}" for n in range(1, 2001)]
    since = await store.document("history.status")
    assert since is not None
    assert before <= parse_time(since["since"]) <= datetime.now(UTC)
    await store.close()


async def test_no_revision_is_taken_back(database_url: str) -> None:
    """As for the first one: going back is restoring a backup."""
    await migrate(database_url, [SCHEMA])
    engine = create_async_engine(sqlalchemy_url(database_url))
    async with engine.connect() as connection:
        with pytest.raises(AttributeError, match="downgrade"):
            await connection.run_sync(lambda c: command.downgrade(configuration(c, SCHEMA), "0002"))
    await engine.dispose()


async def test_oc_40_the_old_version_goes_on_while_the_new_one_migrates_and_afterwards(
    database_url: str, admin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN three replicas of the present version that write all the time WHEN three of a newer one start and widen the schema
    THEN no write fails or is lost, one of the three migrates, and the old ones go on with the wider schema."""
    await asyncio.gather(*(migrate(database_url, [SCHEMA]) for _ in range(3)))
    newest = await version(admin)
    old = [PostgresStore(database_url, SCHEMA) for _ in range(3)]
    for store in old:
        await store.open()
    done = asyncio.Event()
    written: list[int] = []

    async def serves(store: PostgresStore, first: int) -> None:
        number = first
        while not done.is_set():
            await store.change(key(number), put(blank(key(number))))
            written.append(number)
            number += len(old)

    serving = [asyncio.create_task(serves(store, n)) for n, store in enumerate(old)]
    folder = tmp_path / "newer"
    shutil.copytree(revisions.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9998_wider.py").write_text(
        revision(
            "9998",
            newest,
            "ALTER TABLE resource ADD COLUMN wider text",
            "CREATE TABLE once (n int)",
            "SELECT pg_sleep(0.3)",
            "INSERT INTO once VALUES (1)",
        )
    )
    monkeypatch.setattr(revisions, "MIGRATIONS", folder)
    revisions.known_revisions.cache_clear()
    await asyncio.gather(*(migrate(database_url, [SCHEMA]) for _ in range(3)))
    between = len(written)
    while len(written) < between + 10:
        assert not any(task.done() for task in serving), [t.exception() for t in serving if t.done()]
        await asyncio.sleep(0.01)
    done.set()
    await asyncio.gather(*serving)
    assert await version(admin) == "9998"
    assert await admin.fetchval(f"SELECT count(*) FROM {SCHEMA}.once") == 1
    assert await admin.fetchval(f"SELECT count(*) FROM {SCHEMA}.resource") == len(written) > 10
    for store in old:
        await store.close()
    revisions.known_revisions.cache_clear()


async def test_oc_40_two_heads_are_refused_before_anything_is_done(
    database_url: str, admin: Any, scripts: Path
) -> None:
    for name in ("0002a", "0002b"):
        (scripts / f"{name}.py").write_text(revision(name, "0001"))
    with pytest.raises(MigrationRefused, match="2 heads"):
        await migrate(database_url, [SCHEMA])
    assert await admin.fetchval("SELECT to_regnamespace($1)", SCHEMA) is None


async def test_the_wait_for_another_runner_is_bounded(database_url: str, admin: Any) -> None:
    await admin.execute(f"SELECT pg_advisory_lock({migrate_module.MIGRATION_LOCK})")
    with pytest.raises(MigrationRefused, match="another migration holds the lock"):
        await migrate(database_url, [SCHEMA], wait=0.3)


async def test_schemas_are_apart_and_one_can_be_dropped_and_made_anew(database_url: str) -> None:
    await migrate(database_url, ["one", "two"])
    one, two = PostgresStore(database_url, "one"), PostgresStore(database_url, "two")
    await one.open()
    await two.open()
    await one.change(key(1), put(blank(key(1), spec={"of": "one"})))
    assert await two.get("server", key(1).id) is None
    await two.change(key(1), put(blank(key(1), spec={"of": "two"})))
    await one.close()
    await drop_schema(database_url, "one")
    with pytest.raises(SchemaBehind):
        await opens(database_url, "one")
    await migrate(database_url, ["one", "two"])
    await one.open()
    assert await one.get("server", key(1).id) is None
    assert (await existing(two, key(1))).spec == {"of": "two"}
    await one.close()
    await two.close()


@pytest.mark.parametrize("bad", ["", "A", "1a", 'a"; DROP', "a-b", "x" * 49])
async def test_a_schema_name_that_could_be_sql_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="schema name"):
        PostgresStore("postgresql://h/d", bad)
    with pytest.raises(ValueError, match="schema name"):
        await migrate("postgresql://h/d", [bad])


def test_addresses_of_both_spellings_are_taken_and_others_refused() -> None:
    for url in ("postgresql://u@h:1/d", "postgresql+asyncpg://u@h:1/d", "postgres://u@h:1/d"):
        assert driver_url(url) == "postgresql://u@h:1/d"
        assert sqlalchemy_url(url) == "postgresql+asyncpg://u@h:1/d"
    with pytest.raises(ValueError, match="must begin with postgresql://"):
        driver_url("mysql://u@h/d")


# ---- roles


async def owner(admin: Any, schema: str) -> Any:
    return await admin.fetchval("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = $1", schema)


def as_user(url: str, user: str) -> str:
    return url.replace("://postgres@", f"://{user}@")


@pytest.fixture
async def login(
    admin: Any, postgres_server: PostgresServer, request: pytest.FixtureRequest
) -> AsyncIterator[str]:
    """A user with the attributes given as parameter, who may make schemas in this database only."""
    name = f"user_{abs(hash(request.node.name)) % 10**8}"
    await admin.execute(f"CREATE ROLE {name} LOGIN {getattr(request, 'param', '')}")
    database = await admin.fetchval("SELECT current_database()")
    await admin.execute(f"GRANT CREATE ON DATABASE {database} TO {name} WITH GRANT OPTION")
    yield name
    await admin.execute(f"DROP OWNED BY {name} CASCADE")
    await admin.execute(f"DROP ROLE {name}")


async def test_each_schema_belongs_to_its_services_role(database_url: str, admin: Any) -> None:
    await migrate(database_url, ["alpha", "beta"])
    assert [await owner(admin, s) for s in ("alpha", "beta")] == ["roadstead_alpha", "roadstead_beta"]
    tables = await admin.fetch("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'alpha'")
    assert [r["tableowner"] for r in tables] == ["roadstead_alpha"]
    assert not await admin.fetchval("SELECT rolcanlogin FROM pg_roles WHERE rolname = 'roadstead_alpha'")


async def test_a_user_with_one_services_role_cannot_read_anothers_tables(
    database_url: str, admin: Any, login: str
) -> None:
    await migrate(database_url, ["alpha", "beta"])
    await admin.execute(f"GRANT roadstead_alpha TO {login}")
    await opens(as_user(database_url, login), "alpha", role="roadstead_alpha")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await opens(as_user(database_url, login), "beta")


async def test_a_user_who_may_not_make_roles_owns_the_schema(
    database_url: str, admin: Any, login: str
) -> None:
    url = as_user(database_url, login)
    await migrate(url, ["gamma"])
    assert await owner(admin, "gamma") == login
    await opens(url, "gamma")


@pytest.mark.parametrize("login", ["CREATEROLE"], indirect=True)
async def test_a_user_who_may_make_roles_but_is_no_superuser_makes_them(
    database_url: str, admin: Any, login: str
) -> None:
    url = as_user(database_url, login)
    await migrate(url, ["delta"])
    assert await owner(admin, "delta") == "roadstead_delta"
    await migrate(url, ["delta"])
    await opens(url, "delta", role="roadstead_delta")
    await opens(url, "delta")
    await drop_schema(url, "delta")
