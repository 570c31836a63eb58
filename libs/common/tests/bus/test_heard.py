"""What a restart need not act on again."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from roadstead.bus.heard import Heard
from roadstead.cloud.credentials import Keyring
from roadstead.reconcile.handlers import Handlers
from roadstead.reconcile.views import Directory
from roadstead.seal import Sealer, new_key

NOON = 1_800_000_000_000_000  # microseconds
NETWORK, SERVER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
REGION = "33333333-3333-4333-8333-333333333333"


class Documents:
    """Documents in memory, as the store keeps them."""

    def __init__(self) -> None:
        self.held: dict[str, Mapping[str, Any]] = {}
        self.writes = 0

    async def change_document(self, name: str, rule: Any) -> Any:
        before = self.held.get(name)
        after, result = rule(before, datetime.now(UTC))
        if after is not before:
            self.held[name] = after
            self.writes += 1
        return result


async def heard_up_to(documents: Documents, sequence: int, time: int) -> None:
    heard = Heard(documents, "STATUS")
    assert await heard.is_news(sequence, time)
    heard.note(sequence, time)
    await heard.keep()


async def test_the_next_process_acts_on_what_is_newer_only() -> None:
    documents = Documents()
    await heard_up_to(documents, 10, NOON)
    later = Heard(documents, "STATUS")
    assert not await later.is_news(10, NOON)
    assert not await later.is_news(3, NOON - 5)
    assert await later.is_news(11, NOON + 1)


async def test_a_message_heard_by_this_process_is_news_until_its_end() -> None:
    """Another replica may have kept a mark meanwhile; what this one found at its beginning holds."""
    documents = Documents()
    heard = Heard(documents, "STATUS")
    assert await heard.is_news(5, NOON)
    await heard_up_to(documents, 9, NOON + 9)
    assert await heard.is_news(6, NOON + 1)


async def test_a_stream_made_anew_or_restored_tells_news_again() -> None:
    documents = Documents()
    await heard_up_to(documents, 1000, NOON)
    later = Heard(documents, "STATUS")
    assert await later.is_news(1, NOON + 1), "made anew: counted from 1, but later"
    assert await later.is_news(1001, NOON - 1), "a clock that was set back"


async def test_a_replica_that_is_behind_moves_nothing_back_and_a_standing_mark_is_not_written_again() -> None:
    documents = Documents()
    slow = Heard(documents, "STATUS")
    assert await slow.is_news(4, NOON)
    slow.note(4, NOON)
    await heard_up_to(documents, 9, NOON + 9)
    await slow.keep()
    assert documents.held["heard.STATUS"] == {"time": NOON + 9, "sequence": 9}
    writes = documents.writes
    await slow.keep()
    assert documents.writes == writes


async def test_after_a_message_that_could_not_be_acted_on_the_mark_stays() -> None:
    documents = Documents()
    heard = Heard(documents, "STATUS")
    assert await heard.is_news(4, NOON)
    heard.note(4, NOON)
    heard.miss()
    heard.note(6, NOON + 2)
    await heard.keep()
    assert documents.held["heard.STATUS"]["sequence"] == 4


class Woken:
    """A store that notes who is woken."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, str]] = []

    async def wake(self, keys: Iterable[tuple[str, str]], _cause: Mapping[str, Any]) -> int:
        self.keys += keys
        return 1


def status(version: int, state: str) -> bytes:
    document = {
        "kind": "network",
        "metadata": {"id": NETWORK, "regionId": REGION, "projectId": "p", "generation": 1, "incarnation": 1},
        "status": {"provisioningStatus": state, "observedGeneration": 1},
        "resourceVersion": version,
        "consumers": [f"servers.region.unikorn-cloud.org/{SERVER}"],
    }
    return json.dumps(document).encode()


@pytest.mark.parametrize(("news", "woken"), [(True, [("server", SERVER)]), (False, [])])
async def test_a_plain_restart_wakes_nobody_and_news_wake_the_consumers(
    news: bool, woken: list[tuple[str, str]]
) -> None:
    store: Any = Woken()
    kinds: Any = {"server": None}
    handlers = Handlers("compute", kinds, store, Directory(), Keyring(), Sealer([new_key()]))
    assert await handlers.status(f"status.{REGION}.p.network.{NETWORK}", status(1, "provisioning"), news=news)
    assert store.keys == woken
    store.keys.clear()
    assert await handlers.status(f"status.{REGION}.p.network.{NETWORK}", status(2, "provisioned"), news=news)
    assert store.keys == [("server", SERVER)], "what moves before our eyes is always news"
