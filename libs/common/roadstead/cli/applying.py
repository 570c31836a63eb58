"""apply: documents become requests in the order of their dependencies, and are followed until they stand."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roadstead.cli.board import Board
from roadstead.cli.client import Client
from roadstead.cli.documents import Document, ordered
from roadstead.cli.failures import Refused, UserError
from roadstead.cli.following import TRANSIENT, Following, Target, Test, following
from roadstead.cli.naming import with_addresses
from roadstead.cli.patience import Patience
from roadstead.cli.reading import condition, has_failed, is_provisioned, message_of, status_of
from roadstead.cli.resolving import Resolved, Resolver

REFUSED, FAILED, SKIPPED = ("refused", "failed", "skipped")
REGION_KNOWN_WITHIN = 10.0
POLL = 0.2


@dataclass(frozen=True)
class Applying:
    """timeout: seconds for the whole of it, waiting for addresses included.  quiet: nothing is shown on the way."""

    wait: bool = False
    timeout: float = 300.0
    quiet: bool = False


@dataclass(frozen=True)
class Applied:
    """What became of one document: what ingest said (accepted, unchanged, ...), else refused, failed or skipped with the reason."""

    kind: str
    name: str
    id: str
    result: str
    generation: int = 0
    warnings: tuple[str, ...] = ()
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "id": self.id,
            "result": self.result,
            "generation": self.generation,
            "warnings": list(self.warnings),
            **({"message": self.message} if self.message else {}),
        }


class _Late(UserError):
    """The time is over; names what is not provisioned."""


class NotApplied(UserError):
    """Not all of it is as it should be; done: what became of every document."""

    def __init__(self, message: str, done: Sequence[Applied]) -> None:
        super().__init__(message)
        self.done = tuple(done)


async def apply_documents(client: Client, documents: Sequence[Document], how: Applying) -> list[Applied]:
    """Apply all of them; what does not depend on a refused one goes on without it.

    NotApplied at the end when one was refused, ended in an error, or is not provisioned in time.  UserError for a word that names
    nothing; then nothing was sent.
    """
    deadline = asyncio.get_running_loop().time() + how.timeout
    if how.wait:
        client.patience = Patience(deadline)
    try:
        wanted = await Resolver(client).all(ordered(documents))
    except UserError as error:
        if len(documents) == 1:
            raise
        raise UserError(f"{error}; nothing was sent", error.status) from None
    places = {(item.region, item.project or "_") for item in wanted}
    board = Board(quiet=how.quiet)
    async with following(client, places) as known:
        with board.shown():
            run = _Run(client, known, board, deadline)
            for item in wanted:
                board.add(item.kind, item.name, item.id)
            for item in wanted:
                await run.apply(item)
            if how.wait:
                try:
                    await run.until_provisioned()
                except _Late as error:
                    raise NotApplied("; ".join(filter(None, (str(error), run.missed()))), run.done) from None
                except UserError as error:
                    parts = (str(error), run.unfinished(), run.missed())
                    raise NotApplied("; ".join(filter(None, parts)), run.done) from None
    if missed := run.missed():
        raise NotApplied(missed, run.done)
    return run.done


@dataclass
class _Run:
    client: Client
    known: Following
    board: Board
    deadline: float
    done: list[Applied] = field(default_factory=list)
    items: dict[Target, tuple[Resolved, int]] = field(default_factory=dict)
    lost: dict[str, Resolved] = field(default_factory=dict)  # by id, those that were refused or left out
    why: list[str] = field(default_factory=list)

    async def apply(self, item: Resolved) -> None:
        """Send it; what becomes of it stands in `done` whatever it is."""
        needed = [self.lost[ident].document.label for ident in item.needs if ident in self.lost]
        if needed:
            self._lose(item, SKIPPED, f"it needs {', '.join(needed)}")
            return
        try:
            document = item.document
            if item.servers:
                document = with_addresses(document, await self._addresses(item))
            reply = await self._sent(item, {"metadata": dict(document.metadata), "spec": dict(document.spec)})
        except UserError as error:
            self._lose(item, REFUSED if isinstance(error, Refused) else FAILED, str(error))
            self.why.append(f"{item.document.where}: {item.document.label}: {error}")
            return
        applied = Applied(
            item.kind,
            item.name,
            item.id,
            str(reply.get("result") or "accepted"),
            int(reply.get("generation") or 0),
            tuple(str(w) for w in reply.get("warnings") or ()),
        )
        self.done.append(applied)
        target = (item.region, item.project or "_", item.kind, item.id)
        self.items[target] = (item, applied.generation)
        self.board.tell(item.kind, item.id, applied.result, "; ".join(applied.warnings))

    def _lose(self, item: Resolved, result: str, message: str) -> None:
        self.lost[item.id] = item
        self.done.append(Applied(item.kind, item.name, item.id, result, message=message))
        self.board.tell(item.kind, item.id, result, message)

    def missed(self) -> str:
        """What was not applied, in one line; empty when everything was."""
        skipped = [f"{x.kind} {x.name}" for x in self.done if x.result == SKIPPED]
        if len(self.done) == 1 or not self.lost:
            return "; ".join(self.why)
        more = f"; left out, because they need it: {', '.join(skipped)}" if skipped else ""
        return f"{'; '.join(self.why)}{more} ({len(self.done) - len(self.lost)} of {len(self.done)} applied)"

    def unfinished(self) -> str:
        """Which others are still on their way while one has failed; empty for none."""
        open_ones = []
        for target, (item, generation) in self.items.items():
            document = self.known.known.get((target[2], target[3]))
            if not _stands(document, generation) and not (document and has_failed(document)):
                open_ones.append(f"{item.kind} {item.name}")
        return f"still on their way: {', '.join(open_ones)}" if open_ones else ""

    async def _sent(self, item: Resolved, body: Mapping[str, Any]) -> dict[str, Any]:
        """A service that has not heard of a region yet that was registered a moment ago is asked again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + REGION_KNOWN_WITHIN
        while True:
            try:
                return await self.client.api(
                    item.kind, "apply", body, region=item.region, project=item.project
                )
            except Refused as error:
                if error.code != "REGION_NOT_FOUND" or loop.time() > until:
                    raise
                try:
                    await self.client.api("region", "get", {"id": item.region}, region=item.region)
                except Refused:
                    raise error from None
            await asyncio.sleep(POLL)

    async def _addresses(self, item: Resolved) -> dict[str, str]:
        """The private address of every server that the members name."""
        self.board.tell(item.kind, item.id, "waiting", f"for the addresses of {', '.join(item.servers)}")

        def has_address(document: Mapping[str, Any] | None) -> bool:
            return bool(document and document.get("status", {}).get("privateIP")) or self._failed(document, 0)

        targets: dict[Target, Test] = {
            (item.region, item.project or "_", "server", ident): has_address
            for ident in item.servers.values()
        }
        for target in targets:
            await self.known.ask(target)
        if not await self.known.until(targets, self._show, self.deadline):
            raise UserError(
                f"no address of {', '.join(item.servers)} in time; "
                "see `roadstead get server`, and apply again later"
            )
        return {
            word: str(self._held("server", ident)["status"]["privateIP"])
            for word, ident in item.servers.items()
        }

    async def until_provisioned(self) -> None:
        """Return when all are; UserError names those that are not."""
        targets: dict[Target, Test] = {}
        for target, (_, generation) in self.items.items():

            def stands(document: Mapping[str, Any] | None, least: int = generation) -> bool:
                return _stands(document, least) or self._failed(document, least)

            targets[target] = stands
        if not await self.known.until(targets, self._show, self.deadline):
            late = [
                f"{item.document.label} ({self._words(target)})"
                for target, (item, generation) in self.items.items()
                if not _stands(self.known.known.get((target[2], target[3])), generation)
            ]
            raise _Late(
                f"time is over, not yet provisioned: {', '.join(late)}; `roadstead why KIND NAME` tells more"
            )

    def _failed(self, document: Mapping[str, Any] | None, least: int) -> bool:
        """Raises for a resource whose newest spec was refused or ended in an error that nobody tries again."""
        if document is None or document["metadata"].get("generation", 0) < least or not has_failed(document):
            return False
        refused = condition(document, "Accepted").get("status") == "False"
        status, metadata = document.get("status", {}), document["metadata"]
        judged = status.get("observedGeneration") == metadata.get("generation")
        if not refused and (not judged or status.get("code") in TRANSIENT):
            return False
        self._show()
        raise UserError(
            f"{document['kind']} {metadata.get('name') or metadata['id']}: {message_of(document)}; "
            f"`roadstead why {document['kind']} {metadata['id']}` tells how it came to that"
        )

    def _held(self, kind: str, ident: str) -> dict[str, Any]:
        return self.known.known[kind, ident] or {}

    def _words(self, target: Target) -> str:
        document = self.known.known.get((target[2], target[3]))
        if document is None:
            return "nothing is known of it"
        return ": ".join(filter(None, (status_of(document), message_of(document))))

    def _show(self) -> None:
        for target, (_, generation) in self.items.items():
            document = self.known.known.get((target[2], target[3]))
            if document is None or document["metadata"].get("generation", 0) < generation:
                continue
            ended = _stands(document, generation)
            self.board.tell(target[2], target[3], status_of(document), message_of(document), ended=ended)


def _stands(document: Mapping[str, Any] | None, least: int) -> bool:
    """Provisioned at that generation or a later one."""
    return (
        document is not None
        and document["metadata"].get("generation", 0) >= least
        and is_provisioned(document)
    )
