"""apply and delete: what changes resources."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from roadstead.cli import tracing
from roadstead.cli.applying import Applied, Applying, NotApplied, apply_documents
from roadstead.cli.client import connected
from roadstead.cli.deleting import delete_documents, delete_one
from roadstead.cli.documents import ordered, read_documents
from roadstead.cli.failures import UserError
from roadstead.cli.kinds import stored_kind
from roadstead.cli.output import Form, FormOption, emit, say, show_table
from roadstead.cli.resolving import Resolved, Resolver

FilesOption = Annotated[
    list[Path] | None,
    typer.Option("--file", "-f", help="YAML or JSON; may be repeated; - is standard input."),
]


def apply(
    files: FilesOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Until all are provisioned; shows how it goes.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Resolve names and show; send nothing.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds for all of it.", min=1)] = 300.0,
    form: FormOption = Form.TABLE,
) -> None:
    """Make resources as the files say; the same again changes nothing.

    Of several documents those that depend on a refused one are left out, the others go on; exit status 1 tells it.

    Example: roadstead apply -f examples/quickstart.yaml --wait
    """
    documents = read_documents(_files(files))

    async def work() -> None:
        async with connected() as client:
            if dry_run:
                _show_plan(form, await Resolver(client).all(ordered(documents)))
                return
            how = Applying(wait, timeout, quiet=form is not Form.TABLE)
            try:
                done = await apply_documents(client, documents, how)
            except NotApplied as error:
                _tell(form, error.done)
                raise
            _tell(form, done)

    with tracing.traced("apply"):
        asyncio.run(work())


def _files(files: list[Path] | None) -> list[Path]:
    if not files:
        raise UserError("no file is given: use -f FILE", 2)
    return files


def _show_plan(form: Form, items: list[Resolved]) -> None:
    value = [{"kind": i.kind, **i.envelope(), "exists": i.exists, "waitsFor": dict(i.servers)} for i in items]
    if not emit(form, value):
        rows = [
            (
                i.kind,
                i.name,
                i.id,
                "edit" if i.exists else "make",
                ", ".join(f"address of {w}" for w in i.servers),
            )
            for i in items
        ]
        show_table(("KIND", "NAME", "ID", "WOULD", "WAITS FOR"), rows)


def _tell(form: Form, done: Sequence[Applied]) -> None:
    emit(form, [item.as_dict() for item in done])
    for item in done:
        for warning in item.warnings:
            typer.echo(f"note: {item.kind} {item.name}: {warning}", err=True)


def delete(
    kind: Annotated[str, typer.Argument(help="Kind of the resource.")] = "",
    resource: Annotated[str, typer.Argument(help="Its id or name.", metavar="ID|NAME")] = "",
    files: FilesOption = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="Also what depends on it (networks).")] = False,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Until its absence is proved.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait.", min=1)] = 300.0,
) -> None:
    """Delete a resource, or all of a file, last dependency last.

    Of a file, what is refused keeps nothing else from going; exit status 1 tells it.

    Example: roadstead delete server web-1 --wait
    """
    if bool(files) == bool(kind):
        raise UserError("give KIND and ID, or -f FILE", 2)
    name = stored_kind(kind) if kind else ""
    if kind and not resource:
        raise UserError(f"which {name}? Give its id or name", 2)

    async def work() -> None:
        async with connected() as client:
            if files:
                gone = await delete_documents(
                    client, read_documents(files), cascade=cascade, wait=wait, timeout=timeout
                )
            else:
                gone = await delete_one(client, name, resource, cascade=cascade, wait=wait, timeout=timeout)
            if not gone:
                say("nothing of that exists")

    with tracing.traced("delete"):
        asyncio.run(work())
