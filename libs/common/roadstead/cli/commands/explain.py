"""why and history: how a resource came to be as it is."""

import asyncio
from typing import Annotated, Any

import typer

from roadstead.cli.client import Client, connected
from roadstead.cli.commands.read import KindArgument, ResourceArgument
from roadstead.cli.context import is_uuid
from roadstead.cli.describing import chain_lines, history_lines
from roadstead.cli.kinds import has_project, stored_kind
from roadstead.cli.output import Form, FormOption, console, emit, say
from roadstead.cli.reading import find, message_of, status_of
from roadstead.subjects import NO_PROJECT

LimitOption = Annotated[
    int, typer.Option("--limit", help="Newest entries that are looked at.", min=1, max=2000)
]


def why(
    kind: KindArgument, resource: ResourceArgument, limit: LimitOption = 500, form: FormOption = Form.TABLE
) -> None:
    """Show the chain from event to rule to cloud request, oldest first, with the ids of the requests.

    Example: roadstead why server web-1
    """

    name = stored_kind(kind)

    async def work() -> None:
        async with connected() as client:
            reply = await _ask(client, name, resource, "why", {"limit": limit})
            if emit(form, reply):
                return
            lines = list(chain_lines(reply))
            for line in lines:
                console().print(line)
            if not lines:
                say("nothing has been decided about it yet")

    asyncio.run(work())


def history(
    kind: KindArgument,
    resource: ResourceArgument,
    at: Annotated[
        str | None,
        typer.Option("--at", help="Only what was before this time (RFC 3339), and how it stood then."),
    ] = None,
    limit: LimitOption = 200,
    form: FormOption = Form.TABLE,
) -> None:
    """Show every decision and every write to the cloud, oldest first, and how it stands, or stood at a time of the last 30 days.

    Example: roadstead history network quickstart --at 2026-01-31T12:00:00Z
    """

    name = stored_kind(kind)

    async def work() -> None:
        async with connected() as client:
            payload: dict[str, Any] = {"limit": limit, **({"at": at} if at else {})}
            reply = await _ask(client, name, resource, "history", payload)
            if emit(form, reply):
                return
            for line in history_lines(reply.get("entries", [])):
                console().print(line)
            document, when = reply.get("status"), reply.get("at", "now")
            if document is not None:
                say(f"{when} {status_of(document)} {message_of(document)}".rstrip())
            if reply.get("note"):
                say(f"{when} {reply['note']}")

    asyncio.run(work())


async def _ask(client: Client, kind: str, word: str, verb: str, payload: dict[str, Any]) -> dict[str, Any]:
    """By id also what is deleted already; its history is kept for 30 days."""
    if is_uuid(word):
        region = word.lower() if kind == "region" else None
        return await client.api(kind, verb, {**payload, "id": word.lower()}, region=region)
    document = await find(client, kind, word)
    metadata = document["metadata"]
    project = str(metadata.get("projectId") or NO_PROJECT) if has_project(kind) else NO_PROJECT
    return await client.api(
        kind, verb, {**payload, "id": metadata["id"]}, region=str(metadata["regionId"]), project=project
    )
