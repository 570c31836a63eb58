"""get, describe, watch, wait: how resources stand."""

import asyncio
import json
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from roadstead.cli.board import Board
from roadstead.cli.client import Client, connected
from roadstead.cli.describing import description
from roadstead.cli.failures import UserError, is_none_such
from roadstead.cli.following import TRANSIENT, following
from roadstead.cli.kinds import INVENTORIES, STORED, has_project, kind_of, stored_kind
from roadstead.cli.output import Form, FormOption, console, emit, say, show_table
from roadstead.cli.patience import Patience
from roadstead.cli.reading import columns, find, has_failed, is_provisioned, message_of, status_of
from roadstead.subjects import NO_PROJECT

KindArgument = Annotated[str, typer.Argument(help="Kind of the resource; plural and short forms are known.")]
ResourceArgument = Annotated[str, typer.Argument(help="Its id or name.", metavar="ID|NAME")]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", help="NAME=VALUE; all given ones must be there.")
]


def get(
    kind: Annotated[str, typer.Argument(help="A kind, or all.", metavar="KIND|all")],
    resource: Annotated[str, typer.Argument(help="Only this one.", metavar="[ID|NAME]")] = "",
    identity: Annotated[str, typer.Option(help="Only of this identity (id or name).")] = "",
    network: Annotated[str, typer.Option(help="Only of this network (id or name).")] = "",
    tag: TagOption = None,
    all_projects: Annotated[
        bool, typer.Option("--all-projects", help="Of every project; operators only.")
    ] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Show resources, or what the region offers (flavor, image, volumeclass, externalnetwork).

    Example: roadstead get server -o json
    """
    kinds = list(STORED) if kind == "all" else [kind_of(kind)]
    tags = _tags(tag)

    async def work() -> None:
        async with connected() as client:
            filters: dict[str, Any] = {"tags": tags or None}
            if identity:
                filters["identity"] = str((await find(client, "identity", identity))["metadata"]["id"])
            if network:
                filters["network"] = str((await find(client, "network", network))["metadata"]["id"])
            if kind == "all":
                found = await _everything(client, resource, filters, all_projects)
            else:
                found = {k: await _listed(client, k, resource, filters, all_projects) for k in kinds}
            if not any(found.values()):
                await refuse_unknown_region(client)
            _show(form, found, several=kind == "all")

    asyncio.run(work())


def _tags(given: list[str] | None) -> dict[str, str]:
    found = {}
    for text in given or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"--tag {text}: write NAME=VALUE", 2)
        found[name] = value
    return found


async def _listed(
    client: Client, kind: str, word: str, filters: Mapping[str, Any], all_projects: bool
) -> list[dict[str, Any]]:
    if kind in INVENTORIES:
        entries = await client.listing(kind)
        chosen = [e for e in entries if word in ("", e.get("id"), e.get("name"))]
        if word and not chosen:
            raise UserError(
                f"the region offers no {kind} {word}; `roadstead get {kind}` lists what it offers"
            )
        return chosen
    if word:
        return [await find(client, kind, word)]
    if kind == "region":
        return await client.listing(kind, allRegions=True)
    if all_projects:
        return await client.listing(kind, project=NO_PROJECT, allProjects=True, **filters)
    return await client.listing(kind, **filters)


async def _everything(
    client: Client, word: str, filters: Mapping[str, Any], all_projects: bool
) -> dict[str, list[dict[str, Any]]]:
    """All kinds, in the region of the context where there is one.  UserError when a word is given that nothing bears."""
    found = {k: await _listed(client, k, "", filters, all_projects) for k in STORED}
    if client.context.region:
        found["region"] = [d for d in found["region"] if d["metadata"]["id"] == client.context.region]
    if not word:
        return found
    named = {
        kind: [d for d in items if word in (d["metadata"].get("name"), d["metadata"]["id"])]
        for kind, items in found.items()
    }
    if not any(named.values()):
        raise UserError(f"nothing here is named {word}; `roadstead get all` lists what there is")
    return named


async def refuse_unknown_region(client: Client) -> None:
    """UserError when the region of the context is none that is registered: an empty list would look like an empty region."""
    region = client.context.region
    if region and not any(
        d["metadata"]["id"] == region for d in await client.listing("region", allRegions=True)
    ):
        raise UserError(f"there is no region {region}; `roadstead region list` shows all")


def _show(form: Form, found: Mapping[str, list[dict[str, Any]]], several: bool) -> None:
    if emit(form, [shaped(kind, document) for kind, items in found.items() for document in items]):
        return
    if not several:
        ((kind, items),) = found.items()
        head, rows = columns(kind, items)
        show_table(head, rows, none=f"there is no {kind} here")
        return
    rows = [
        [kind, d["metadata"].get("name"), d["metadata"]["id"], status_of(d), message_of(d)]
        for kind, items in found.items()
        for d in items
    ]
    show_table(
        ("KIND", "NAME", "ID", "STATUS", "MESSAGE"),
        rows,
        none="nothing is here yet; `roadstead apply -f FILE`",
    )


def shaped(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """As programs read it: kind, metadata, spec, status; an entry of an inventory as it is."""
    if kind in INVENTORIES:
        return {"kind": kind, **document}
    return {"kind": kind, **{name: document.get(name, {}) for name in ("metadata", "spec", "status")}}


def describe(kind: KindArgument, resource: ResourceArgument, form: FormOption = Form.TABLE) -> None:
    """Show one resource in full: spec, conditions, who uses it, its last decisions.

    Example: roadstead describe server web-1
    """

    name = stored_kind(kind)

    async def work() -> None:
        async with connected() as client:
            document = await find(client, name, resource)
            region, project = _place(document)
            history = await client.api(
                name,
                "history",
                {"id": document["metadata"]["id"], "limit": 20},
                region=region,
                project=project,
            )
            entries = history.get("entries", [])
            if not emit(form, {**document, "history": entries}):
                console().print(description(document, entries))

    asyncio.run(work())


def _place(document: Mapping[str, Any]) -> tuple[str, str]:
    metadata = document["metadata"]
    project = metadata.get("projectId") if has_project(str(document["kind"])) else NO_PROJECT
    return str(metadata["regionId"]), str(project or NO_PROJECT)


def watch(
    kind: Annotated[str, typer.Argument(help="A kind; all when left out.")] = "",
    form: FormOption = Form.TABLE,
) -> None:
    """Show every change of status as it comes, until Ctrl-C.

    Example: roadstead watch server
    """
    only = stored_kind(kind) if kind and kind != "all" else None

    async def show(subject: str, document: dict[str, Any]) -> None:
        name = subject.split(".")[3] if subject.count(".") == 4 else "?"
        if only is not None and name != only:
            return
        metadata = document.get("metadata", {})
        if form is Form.JSON:
            print(json.dumps(document), flush=True)
        elif form is Form.YAML:
            print("---")
            emit(form, document)
        else:
            text = message_of(document)
            generation = f"generation {metadata.get('generation')}"
            line = f"{name:<14} {metadata.get('name') or metadata.get('id')}  {status_of(document)}  {generation}"
            say(line + (f"  {text}" if text else ""))
        sys.stdout.flush()

    async def work() -> None:
        async with connected() as client:
            place = f"{client.context.region or '*'}.{client.context.project or '*'}"
            await client.follow("status.*._.region.*" if only == "region" else f"status.{place}.>", show)
            client.stay()
            project = client.context.project or "any"
            print(
                f"watching {only or 'everything'} of project {project} in region {client.context.region or 'any'}; "
                "Ctrl-C ends it",
                file=sys.stderr,
                flush=True,
            )
            await _stay_connected(client)

    asyncio.run(work())


async def _stay_connected(client: Client) -> None:
    """Until Ctrl-C; a broker that goes away is waited for, and what came meanwhile is not shown."""
    away = False
    while not client.nats.is_closed:
        if away == client.nats.is_connected:
            away = not away
            text = (
                "the broker is away; waiting goes on"
                if away
                else "the broker is back; changes meanwhile are not shown"
            )
            print(f"note: {text}", file=sys.stderr, flush=True)
        await asyncio.sleep(0.5)
    raise UserError("the broker ended the connection: see `roadstead status`")


class Goal(StrEnum):
    PROVISIONED = "provisioned"
    DELETED = "deleted"


def wait(
    kind: KindArgument,
    resource: ResourceArgument,
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.")] = Goal.PROVISIONED,
    timeout: Annotated[float, typer.Option(help="Seconds to wait.", min=0.1)] = 300.0,
) -> None:
    """Return when a resource stands as asked; exit status 1 when it errs or the time is over.

    Example: roadstead wait server web-1 --for provisioned --timeout 60
    """

    name = stored_kind(kind)

    async def work() -> None:
        async with connected() as client:
            client.patience = Patience(asyncio.get_running_loop().time() + timeout)
            await _until(client, name, resource, goal, timeout)

    asyncio.run(work())


async def _until(client: Client, kind: str, word: str, goal: Goal, timeout: float) -> None:
    try:
        document = await find(client, kind, word)
    except UserError as error:
        if goal is Goal.DELETED and is_none_such(error):
            return
        raise
    region, project = _place(document)
    target = (region, project, kind, str(document["metadata"]["id"]))
    name = str(document["metadata"].get("name") or target[3])
    board = Board()
    board.add(kind, name, target[3])
    async with following(client.at(region, project), {(region, project)}) as known:
        await known.take("", document)

        def stands(held: Mapping[str, Any] | None) -> bool:
            if goal is Goal.DELETED:
                return (kind, target[3]) in known.known and held is None
            if held is None:
                raise UserError(f"{kind} {name} was deleted meanwhile")
            if (
                has_failed(held)
                and held["status"].get("code") not in TRANSIENT
                and held["status"].get("observedGeneration") == held["metadata"]["generation"]
            ):
                raise UserError(
                    f"{kind} {name}: {message_of(held)}; `roadstead why {kind} {target[3]}` tells more"
                )
            return is_provisioned(held)

        def show() -> None:
            held = known.known.get((kind, target[3]))
            if held is None:
                board.tell(kind, target[3], "deleted", ended=True)
            else:
                board.tell(kind, target[3], status_of(held), message_of(held), ended=is_provisioned(held))

        with board.shown():
            deadline = (
                client.patience.deadline if client.patience else asyncio.get_running_loop().time() + timeout
            )
            if not await known.until({target: stands}, show, deadline):
                raise UserError(
                    f"{kind} {name} is not {goal.value} after {timeout:g} s; `roadstead why {kind} {target[3]}`"
                )
