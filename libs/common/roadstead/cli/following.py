"""The newest document of some resources: from STATUS messages as they come, and asked for now and then in case one was missed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from roadstead.cli.client import Client
from roadstead.cli.failures import NoAnswer, Refused
from roadstead.cli.patience import Patience
from roadstead.subjects import OWNERS

ASK_EVERY = 5.0
TRANSIENT = {
    "UNAVAILABLE",
    "UNKNOWN",
    "THROTTLED",
    "CONFLICT",
    "BUSY",
    "CREATE_RETRYING",
    "INTERNAL",
    "KEY",
}
"""Codes of errors that the service tries again by itself; waiting goes on."""

Target = tuple[str, str, str, str]  # region, project, kind, id
Test = Callable[[Mapping[str, Any] | None], bool]


class Following:
    """What is known of each resource that somebody waits for; None in `known` is one that is proved gone."""

    def __init__(self, client: Client) -> None:
        self._client = client.impatient()
        self.known: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._changed = asyncio.Event()

    async def take(self, _subject: str, document: dict[str, Any]) -> None:
        """A STATUS message or an answer; older ones change nothing."""
        ident = document.get("metadata", {}).get("id")
        key = (str(document.get("kind")), str(ident))
        held = self.known.get(key)
        if held is not None and held.get("resourceVersion", 0) > document.get("resourceVersion", 0):
            return
        self.known[key] = None if "gone" in document else document
        self._changed.set()

    async def ask(self, target: Target) -> None:
        """The owner's word on one resource."""
        region, project, kind, ident = target
        try:
            await self.take(
                "", await self._client.api(kind, "get", {"id": ident}, region=region, project=project)
            )
        except Refused as error:
            if error.http != 404:
                raise
            if (kind, ident) not in self.known or self.known[kind, ident] is not None:
                self.known[kind, ident] = None
                self._changed.set()

    async def until(
        self, targets: Mapping[Target, Test], on_change: Callable[[], None], deadline: float
    ) -> bool:
        """Whether all tests were met before the deadline (loop time).  A test that raises ends the wait with that.

        An owner that does not answer is a pause: what it publishes is still heard, and it is asked again.
        """
        loop = asyncio.get_running_loop()
        patience = Patience(deadline)
        asked = 0.0
        while True:
            self._changed.clear()
            open_ones = [t for t, test in targets.items() if not test(self.known.get((t[2], t[3])))]
            on_change()
            if not open_ones:
                return True
            if loop.time() >= deadline:
                return False
            if loop.time() - asked >= ASK_EVERY:
                asked = loop.time()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline):
                        await self._ask_all(open_ones, patience)
                continue
            pause = min(deadline - loop.time(), ASK_EVERY - (loop.time() - asked))
            try:
                async with asyncio.timeout(max(0.01, pause)):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _ask_all(self, targets: Sequence[Target], patience: Patience) -> None:
        away: set[str] = set()
        for target in targets:
            who = OWNERS[target[2]]
            if who in away:
                continue
            try:
                await self.ask(target)
            except NoAnswer:
                away.add(who)
                patience.missed(who)
            else:
                patience.answered(who)


@asynccontextmanager
async def following(client: Client, places: set[tuple[str, str]]) -> AsyncIterator[Following]:
    """STATUS of these (region, project) from now on; `*` stands for all."""
    client.stay()
    found = Following(client)
    subscriptions = [
        await client.follow(f"status.{region}.{project}.>", found.take) for region, project in sorted(places)
    ]
    try:
        yield found
    finally:
        for subscription in subscriptions:
            await subscription.unsubscribe()
