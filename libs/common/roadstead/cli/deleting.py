"""delete: the other way round, dependants first, each waited for where the next one needs it gone.

What is refused is told at the end, and keeps nothing else from going.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roadstead.cli.board import Board
from roadstead.cli.client import Client
from roadstead.cli.context import is_uuid
from roadstead.cli.documents import Document
from roadstead.cli.failures import NoAnswer, Refused, UserError, is_none_such
from roadstead.cli.following import Target, following
from roadstead.cli.kinds import ORDER
from roadstead.cli.naming import id_for, network_of
from roadstead.cli.patience import Patience
from roadstead.cli.reading import find, message_of, status_of
from roadstead.subjects import NO_PROJECT, OWNERS


async def delete_one(
    client: Client, kind: str, word: str, *, cascade: bool, wait: bool, timeout: float
) -> list[str]:
    """Delete one by id or name; its id in a list.  UserError when it is refused, or not gone in time."""
    if wait:
        client.patience = Patience(asyncio.get_running_loop().time() + timeout)
    held = await find(client, kind, word)
    return await _delete(client, [held], cascade=cascade, wait=wait, timeout=timeout)


async def delete_documents(
    client: Client, documents: Sequence[Document], *, cascade: bool, wait: bool, timeout: float
) -> list[str]:
    """Delete what the documents name; those that do not exist are passed over.  Ids in the order of deletion.

    UserError at the end, with each that was refused, could not be found for certain, or is not gone in time.
    """
    if wait:
        client.patience = Patience(asyncio.get_running_loop().time() + timeout)
    held: list[dict[str, Any]] = []
    missed: list[str] = []
    for document in sorted(documents, key=lambda d: ORDER.index(d.kind), reverse=True):
        try:
            found = await _existing(client, document)
        except NoAnswer as error:
            raise UserError(f"{error}; nothing was deleted", error.status) from None
        except UserError as error:
            missed.append(f"{document.where}: {document.label}: {error}")
        else:
            held += [found] if found is not None else []
    return await _delete(client, held, missed, cascade=cascade, wait=wait, timeout=timeout)


async def _existing(client: Client, document: Document) -> dict[str, Any] | None:
    """The resource that a document names, in the document's own region and project; None when there is none."""
    metadata, context = document.metadata, client.context
    if document.kind == "region":
        word = str(metadata.get("id") or metadata.get("regionId") or document.name)
        return await _if_any(client, "region", word)
    region = str(metadata.get("regionId") or context.region or context.need_region())
    project = metadata.get("projectId")
    client = client.at(region, str(project) if project else None)
    network = network_of(document)
    if network is not None and not is_uuid(network):
        held = await _if_any(client, "network", network)
        if held is None:
            return None  # what hangs on it is gone with it; something else may bear the same name elsewhere
        network = str(held["metadata"]["id"])
    if metadata.get("id"):
        return await _if_any(client, document.kind, str(metadata["id"]))
    if document.kind == "server":
        ident = id_for("server", document.name, region=region, project=project, network=network)
        return await _if_any(client, "server", ident)
    return await _if_any(client, document.kind, document.name, network)


async def _if_any(client: Client, kind: str, word: str, network: str | None = None) -> dict[str, Any] | None:
    try:
        return await find(client, kind, word, network=network)
    except UserError as error:
        if is_none_such(error):
            return None
        raise


async def _delete(
    client: Client,
    held: Sequence[Mapping[str, Any]],
    missed: Sequence[str] = (),
    *,
    cascade: bool,
    wait: bool,
    timeout: float,
) -> list[str]:
    """In the given order.  A refusal because something still refers to it is waited out while that is going too.

    missed: what is known already to go wrong, told with the rest.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    board = Board()
    names = {_target(document): str(document["metadata"].get("name") or "") for document in held}
    refused: list[tuple[Target, UserError]] = []
    asked: list[Target] = []
    away: dict[str, UserError] = {}  # owners that do not answer: asked once, not for each resource
    late = ""
    async with following(client, {(region, project) for region, project, _, _ in names}) as known:
        with board.shown():
            for target, name in names.items():
                board.add(target[2], name or target[3], target[3])

            def show() -> None:
                for _, _, kind, ident in names:
                    if (kind, ident) in known.known:
                        document = known.known[kind, ident]
                        if document is None:
                            board.tell(kind, ident, "deleted", ended=True)
                        elif "deletionTimestamp" in document["metadata"]:
                            board.tell(kind, ident, status_of(document), message_of(document))

            for target in names:
                try:
                    if OWNERS[target[2]] in away:
                        raise away[OWNERS[target[2]]]
                    await _ask(client, target, cascade, {t[3] for t in asked}, deadline, show)
                except UserError as error:
                    if isinstance(error, NoAnswer):
                        away[error.who] = error
                    refused.append((target, error))
                    board.tell(target[2], target[3], "not deleted", str(error))
                else:
                    asked.append(target)
                    board.tell(target[2], target[3], "deprovisioning")
            if wait and not await known.until({t: _gone(known.known, t) for t in asked}, show, deadline):
                left = [t for t in asked if known.known.get((t[2], t[3]), {}) is not None]
                late = f"time is over, not yet gone: {', '.join(f'{t[2]} {t[3]}' for t in left)}; `roadstead why KIND ID` tells more"
    if len(names) + len(missed) == 1 and refused:
        raise refused[0][1]
    told = [*missed, *(f"{t[2]} {names[t] or t[3]}: {error}" for t, error in refused)]
    if told:
        told.append(f"{len(asked)} of {len(names) + len(missed)} deleted")
    if told or late:
        raise UserError("; ".join([*told, *([late] if late else [])]))
    return [target[3] for target in asked]


def _target(document: Mapping[str, Any]) -> Target:
    metadata = document["metadata"]
    kind = str(document["kind"])
    project = NO_PROJECT if kind == "region" else str(metadata.get("projectId") or NO_PROJECT)
    return str(metadata["regionId"]), project, kind, str(metadata["id"])


def _gone(known: Mapping[tuple[str, str], Any], target: Target) -> Any:
    """A test on what is known: nothing known yet is not gone."""
    return lambda _document: (target[2], target[3]) in known and known[target[2], target[3]] is None


async def _ask(
    client: Client, target: Target, cascade: bool, going: set[str], deadline: float, show: Callable[[], None]
) -> None:
    """Send the delete.  While all that refers to it is being deleted too, it is sent again until they let go."""
    region, project, kind, ident = target
    loop = asyncio.get_running_loop()
    while True:
        try:
            await client.api(
                kind, "delete", {"id": ident, "cascade": cascade}, region=region, project=project
            )
        except Refused as error:
            if error.http == 404:
                return
            holders = {str(d.get("consumer", "")).rpartition("/")[2] for d in error.details}
            if error.code != "IN_USE" or not holders or not holders <= going or loop.time() > deadline:
                raise
        else:
            return
        show()
        await asyncio.sleep(0.5)
