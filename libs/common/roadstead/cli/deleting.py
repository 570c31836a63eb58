"""delete: the other way round, dependants first, each waited for where the next one needs it gone."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roadstead.cli.board import Board
from roadstead.cli.client import Client
from roadstead.cli.context import is_uuid
from roadstead.cli.documents import Document
from roadstead.cli.failures import Refused, UserError
from roadstead.cli.following import Target, following
from roadstead.cli.kinds import ORDER
from roadstead.cli.naming import id_for
from roadstead.cli.patience import Patience
from roadstead.cli.reading import find, message_of, status_of
from roadstead.subjects import NO_PROJECT


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
    """Delete what the documents name; those that do not exist are passed over.  Ids in the order of deletion."""
    if wait:
        client.patience = Patience(asyncio.get_running_loop().time() + timeout)
    held: list[dict[str, Any]] = []
    for document in sorted(documents, key=lambda d: ORDER.index(d.kind), reverse=True):
        found = await _existing(client, document, documents)
        if found is not None:
            held.append(found)
    return await _delete(client, held, cascade=cascade, wait=wait, timeout=timeout)


async def _existing(
    client: Client, document: Document, documents: Sequence[Document]
) -> dict[str, Any] | None:
    """The resource that a document names; None when there is none."""
    word = str(document.metadata.get("id") or document.name)
    network = await _network(client, document, documents)
    if document.kind == "server" and network is not None and not document.metadata.get("id"):
        word = id_for("server", document.name, region="", project=None, network=network)
    try:
        return await find(client, document.kind, word, network=network)
    except Refused as error:
        if error.http == 404:
            return None
        raise
    except UserError as error:
        if "there is no" in str(error):
            return None
        raise


async def _network(client: Client, document: Document, documents: Sequence[Document]) -> str | None:
    """Id of the network that a document hangs on, by id or name; None when it names none, or one that is gone."""
    from roadstead.cli.naming import network_of

    word = network_of(document)
    if word is None or is_uuid(word):
        return word
    try:
        return str((await find(client, "network", word))["metadata"]["id"])
    except UserError:
        return None


async def _delete(
    client: Client, held: Sequence[Mapping[str, Any]], *, cascade: bool, wait: bool, timeout: float
) -> list[str]:
    """In the given order.  A refusal because something still refers to it is waited out while that is going too."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    board = Board()
    targets = [_target(document) for document in held]
    async with following(client, {(region, project) for region, project, _, _ in targets}) as known:
        with board.shown():
            for document, target in zip(held, targets, strict=True):
                board.add(target[2], str(document["metadata"].get("name") or target[3]), target[3])

            def show() -> None:
                for _, _, kind, ident in targets:
                    if (kind, ident) in known.known:
                        document = known.known[kind, ident]
                        if document is None:
                            board.tell(kind, ident, "deleted", ended=True)
                        elif "deletionTimestamp" in document["metadata"]:
                            board.tell(kind, ident, status_of(document), message_of(document))

            going: set[str] = set()
            for target in targets:
                await _ask(client, target, cascade, going, deadline, show)
                going.add(target[3])
                board.tell(target[2], target[3], "deprovisioning")
            if wait and not await known.until(
                {target: _gone(known.known, target) for target in targets}, show, deadline
            ):
                left = [t for t in targets if known.known.get((t[2], t[3]), {}) is not None]
                names = ", ".join(f"{t[2]} {t[3]}" for t in left)
                raise UserError(f"time is over, not yet gone: {names}; `roadstead why KIND ID` tells more")
    return [target[3] for target in targets]


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
