"""Dead letters on a real broker: read, and taken out when they are settled."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from roadstead.bus.streams import ensure_streams
from roadstead.cli.client import Client, connected
from roadstead.cli.dead_letters import dismiss_all, dismissed, listed
from roadstead.cli.diagnosis import State, dead_letters
from roadstead.cli.failures import UserError
from roadstead.testing.servers import NatsServer

from .stand_ins import CONTEXT


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """With three dead letters, two of compute and one of network."""
    server = NatsServer(tmp_path / "nats")
    server.start()
    try:
        async with connected(replace(CONTEXT, nats_url=server.url)) as found:
            await ensure_streams(found.js, ())
            for service in ("compute", "network", "compute"):
                await found.js.publish(f"dlq.{service}.a.b.c.d", b"{}", headers={"Roadstead-Reason": "X"})
            yield found
    finally:
        server.stop()


async def numbers(client: Client) -> list[int]:
    return [letter.sequence for letter in await listed(client, "*", 100)]


async def test_one_is_dismissed_and_a_second_time_there_is_none(client: Client) -> None:
    await dismissed(client, 2)
    assert await numbers(client) == [1, 3]
    with pytest.raises(UserError, match="there is no dead letter 2"):
        await dismissed(client, 2)
    with pytest.raises(UserError, match="there is no dead letter 99"):
        await dismissed(client, 99)


async def test_all_of_a_service_are_dismissed_then_all_and_doctor_is_content(client: Client) -> None:
    assert [line.state async for line in dead_letters(client)] == [State.WARNING]
    assert await dismiss_all(client, "compute") == 2
    assert await numbers(client) == [2]
    assert await dismiss_all(client, "*") == 1
    assert await dismiss_all(client, "*") == 0
    assert [line.state async for line in dead_letters(client)] == [State.OK]


async def test_what_comes_while_all_are_dismissed_stays(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listed_then_one_more(client: Client, service: str, limit: int) -> object:
        found = await listed(client, service, limit)
        await client.js.publish("dlq.compute.a.b.c.d", b"{}")
        return found

    monkeypatch.setattr("roadstead.cli.dead_letters.listed", listed_then_one_more)
    assert await dismiss_all(client, "*") == 3
    assert await numbers(client) == [4]
