"""`roadstead octavia ...`: commands for those who run the Octavia API."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from roadstead.cli import chosen
from roadstead.cli.failures import USAGE, UserError
from roadstead.cli.output import Form, FormOption, emit, say, show_table
from roadstead_octavia.provider.command import operations

group = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The Octavia API: its database and its providers."
)


@group.callback()
def octavia() -> None:
    """The Octavia API: take over an existing database, and what providers were asked."""


group.command()(operations)


@group.command("import")
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A file made by mysqldump or mariadb-dump, or mysql://user:password@host:port/database."
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, keep nothing.")] = False,
    settle: Annotated[
        bool,
        typer.Option("--settle", help="Providers are asked once more for what waits, instead of refusing."),
    ] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Take over the database of an existing Octavia: all of it in one transaction, or nothing.

    Example: roadstead octavia import octavia.sql --dry-run
    """
    # Slow to import, and needed by this command alone.
    from roadstead.store.api import SchemaBehind
    from roadstead_octavia.db.importer.fitting import TABLES
    from roadstead_octavia.db.importer.loading import load
    from roadstead_octavia.db.importer.problem import ImportRefused

    url = chosen.context().need_database()
    try:
        with _rows(source, TABLES) as rows:
            outcome = asyncio.run(load(url, rows, dry_run=dry_run, settle=settle, say=_progress))
    except (ImportRefused, SchemaBehind) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{source} or the database cannot be read: {error.strerror or error}") from None
    shown = {
        "rows": dict(outcome.rows),
        "notTakenOver": dict(outcome.notes.dropped),
        "askedOnceMore": outcome.asked,
        "already": outcome.already,
    }
    if not emit(form, shown | {"dryRun": dry_run}):
        show_table(("TABLE", "ROWS"), [(table, str(count)) for table, count in outcome.rows.items()])
        for column, count in sorted(outcome.notes.dropped.items()):
            say(f"not taken over: {count} values of {column}, which the tables here have not")
        if outcome.asked:
            say(
                f"{outcome.asked} load balancers had operations under way: their providers are asked when the API runs"
            )
        say(_ending(outcome.already, dry_run))


@group.command("export")
def export_(
    target: Annotated[Path, typer.Argument(help="The file to write; it must not be there yet.")],
    form: FormOption = Form.TABLE,
) -> None:
    """Write the database as SQL for an existing Octavia, which takes load balancers back with it.

    Example: roadstead octavia export back.sql && mariadb octavia < back.sql
    """
    # Slow to import, and needed by this command alone.
    from roadstead.store.api import SchemaBehind
    from roadstead_octavia.db.exporter import ExportRefused, export

    url = chosen.context().need_database()
    part = target.with_name(f"{target.name}.part")
    try:
        if target.exists():
            raise UserError(f"{target} is there already: give another name", USAGE)
        with part.open("w", encoding="utf-8") as stream:
            part.chmod(0o600)
            rows = asyncio.run(export(url, stream))
        part.rename(target)
    except (ExportRefused, SchemaBehind) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{target} or the database: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)
    if not emit(form, {"rows": dict(rows), "file": str(target)}):
        show_table(("TABLE", "ROWS"), [(table, str(count)) for table, count in rows.items()])
        say(f"written to {target}")


def _progress(text: str) -> None:
    """Progress is no result: it goes to standard error."""
    typer.echo(text, err=True)


def _ending(already: bool, dry_run: bool) -> str:
    if already:
        return "these load balancers are there already: nothing was written"
    return "all of it can be taken over; nothing was kept" if dry_run else "taken over"


@contextmanager
def _rows(source: str, tables: tuple[str, ...]) -> Iterator[Iterator[tuple[str, Mapping[str, Any]]]]:
    from roadstead_octavia.db.importer import dump, server

    if "://" in source:
        scheme = source.partition("://")[0].partition("+")[0]
        if scheme not in ("mysql", "mariadb"):
            raise UserError(f"{scheme}:// is not read; give mysql://... or a dump", USAGE)
        yield server.rows(source, tables)
        return
    path = Path(source)
    if not path.is_file():
        raise UserError(f"there is no file {source}; make one with `mariadb-dump --hex-blob octavia`", USAGE)
    with path.open("rb") as stream:
        yield dump.rows(stream, tables)
