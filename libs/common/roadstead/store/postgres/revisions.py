"""What this program knows of the schema's revisions, and whether a schema is far enough for it."""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from roadstead.store.api import SchemaBehind
from roadstead.store.postgres.names import checked_schema

MIGRATIONS = Path(__file__).parent.parent / "migrations"


class MigrationRefused(RuntimeError):
    """The revisions or the database are in a state that a person must look at."""


@cache
def own_migrations() -> dict[str, Path]:
    """Folders of migrations by schema, for schemas that are no service's store.

    A distribution declares them in the entry point group `roadstead.migrations`: the schema's name, and the package in which
    `env.py` lies (it is told connection and schema as ours is).
    """
    found = {}
    for entry in entry_points(group="roadstead.migrations"):
        package = find_spec(entry.value)
        if package is not None and package.origin is not None:
            found[entry.name] = Path(package.origin).parent
    return found


def configuration(connection: Connection | None = None, schema: str | None = None) -> Config:
    """Alembic's settings; `env.py` takes connection and schema from the attributes."""
    folder = own_migrations().get(schema or "", MIGRATIONS)
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["schema"] = schema
    return config


def newest_revision(scripts: ScriptDirectory) -> str:
    """The one head.  MigrationRefused when there are two, or none."""
    heads = scripts.get_heads()
    if len(heads) != 1:
        raise MigrationRefused(
            f"the migrations have {len(heads)} heads ({', '.join(heads)}): merge them into one line"
        )
    return heads[0]


@cache
def known_revisions(schema: str | None = None) -> tuple[str, frozenset[str]]:
    """The newest revision, and all that lead to it."""
    scripts = ScriptDirectory.from_config(configuration(schema=schema))
    return newest_revision(scripts), frozenset(s.revision for s in scripts.walk_revisions())


async def check_revision(fetch: Callable[..., Awaitable[list[Any]]], schema: str) -> None:
    """SchemaBehind unless the schema is at this program's revision or at one that it does not know (a newer program's)."""
    newest, known = known_revisions(schema)
    table = f"{checked_schema(schema)}.alembic_version"
    found = await fetch("SELECT to_regclass($1) IS NOT NULL AS made", table)
    if not found[0]["made"]:
        raise SchemaBehind(f"the schema {schema} was never migrated: run `roadstead migrate`")
    revisions = {r["version_num"] for r in await fetch(f"SELECT version_num FROM {table}")}  # noqa: S608 - a checked name
    if not revisions or (revisions & known and newest not in revisions):
        at = ", ".join(sorted(revisions)) or "nothing"
        raise SchemaBehind(f"the schema {schema} is at {at} and not at {newest}: run `roadstead migrate`")
