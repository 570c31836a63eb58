"""doctor, migrate, rebuild: for those who run a deployment."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from roadstead.cli import chosen
from roadstead.cli.failures import UserError
from roadstead.cli.output import Form, FormOption, emit, say, show_table
from roadstead.cli.stack.build import service_modules
from roadstead.cli.stack.claim import refuse_supervised, refuse_unsettled

ServicesOption = Annotated[
    list[str] | None, typer.Option("--service", help="Only this one; may be repeated. All when left out.")
]


def doctor(form: FormOption = Form.TABLE) -> None:
    """Look at broker, streams, services, database, schemas, clocks, keys, regions and the Octavia API; status 1 when one is wrong.

    Example: roadstead doctor
    """
    from roadstead.cli.diagnosis import State, diagnose

    lines = asyncio.run(diagnose(chosen.context()))
    if not emit(form, [line.as_dict() for line in lines]):
        show_table(
            ("CHECK", "STATE", "WHAT", "REMEDY"),
            [(li.what, li.state.value, li.text, li.remedy) for li in lines],
        )
    if any(line.state is State.WRONG for line in lines):
        raise typer.Exit(1)


def chosen_services(given: list[str] | None, *, also: Sequence[str] = ()) -> list[str]:
    """Names of services, and of `also`; UserError for one that is not installed."""
    known = [*service_modules(), *also]
    unknown = [name for name in given or () if name not in known]
    if unknown:
        raise UserError(f"there is no service {', '.join(unknown)}; installed are {', '.join(known)}", 2)
    return given or known


def migrate(service: ServicesOption = None) -> None:
    """Bring the database schemas to the newest revision; safe while services run, and to repeat.

    Example: roadstead migrate
    """
    from roadstead.store.migrate import migrate as migrate_schemas
    from roadstead.store.postgres.revisions import MigrationRefused, own_migrations

    names = chosen_services(service, also=sorted(own_migrations()))
    if (home := chosen.local_home()) is not None:
        refuse_unsettled(home)
    url = chosen.context().need_database()
    try:
        asyncio.run(migrate_schemas(url, names))
    except MigrationRefused as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(
            f"the database does not answer: {error.strerror or error}; see databaseUrl of the context"
        ) from None
    say(f"at the newest revision: {', '.join(names)}")


class Source(StrEnum):
    DATABASE = "database"
    BUS = "bus"


def rebuild(
    source: Annotated[Source, typer.Option("--from", help="What is still whole.")],
    service: ServicesOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be written.")] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Make lost streams anew from the database, or lost rows from the streams; stop the services first.

    Example: roadstead rebuild --from database
    """
    from roadstead.cli.rebuilding import rebuild_from_bus, rebuild_from_database

    names = chosen_services(service)
    if (home := chosen.local_home()) is not None:
        refuse_unsettled(home)
        refuse_supervised(home, names)
    work = rebuild_from_database if source is Source.DATABASE else rebuild_from_bus
    counts = asyncio.run(work(chosen.context(), names, dry_run=dry_run))
    if not emit(form, counts):
        rows = [(name, *(str(v) for v in count.values())) for name, count in counts.items()]
        head = ("SERVICE", *(key.upper() for key in next(iter(counts.values()))))
        show_table(head, rows)
