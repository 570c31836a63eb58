"""What others own: the last status of each resource, and then every change, over faults of the broker."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.follow import Follower, read_last
from roadstead.bus.pull import Delivery
from roadstead.bus.streams import ensure_streams
from roadstead.testing.servers import NatsServer

from .conftest import client_of, eventually, new_id, subject_of

pytestmark = pytest.mark.integration

ALL_NETWORKS = ("status.*.*.network.*",)


@pytest.fixture
async def bus(own_nats: NatsServer) -> AsyncIterator[Bus]:
    bus = Bus(BusOptions((own_nats.url,), "test", inbox_prefix="_INBOX_test"))
    await bus.connect()
    await ensure_streams(bus.js, ())
    bus.settle(0, {})
    yield bus
    await bus.close()


class Reader:
    """Follows networks and keeps what it heard."""

    def __init__(self, bus: Bus) -> None:
        self.heard: list[bytes] = []
        self.bus = bus
        self.follower = Follower(bus, "STATUS", ALL_NETWORKS, self._take, name="test-follows")
        self.task: asyncio.Task[None] | None = None

    async def _take(self, delivery: Delivery) -> None:
        if delivery.data == b"bad":
            raise ValueError("cannot be read")
        self.heard.append(delivery.data)

    def start(self) -> None:
        self.task = asyncio.create_task(self.follower.run())

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def put(server: NatsServer, ident: str, body: bytes, kind: str = "network") -> None:
    async with client_of(server.url) as client:
        await client.jetstream().publish(subject_of(ident, kind=kind, head="status"), body, timeout=5)


async def test_an_empty_stream_is_caught_up_with_at_once(bus: Bus) -> None:
    reader = Reader(bus)
    reader.start()
    await asyncio.wait_for(reader.follower.caught_up.wait(), 5)
    await reader.stop()


async def test_caught_up_means_the_last_of_every_subject_was_handled_before(
    own_nats: NatsServer, bus: Bus
) -> None:
    async with client_of(own_nats.url) as client:
        js = client.jetstream()
        idents = [new_id() for _ in range(300)]
        for version in (b"old", b"new"):
            for ident in idents:
                await js.publish(subject_of(ident, kind="network", head="status"), version + ident.encode())
        await js.publish(subject_of(new_id(), kind="server", head="status"), b"of another kind")
    reader = Reader(bus)
    reader.start()
    await asyncio.wait_for(reader.follower.caught_up.wait(), 10)
    assert sorted(reader.heard) == sorted(b"new" + i.encode() for i in idents)
    await put(own_nats, idents[0], b"newer")
    await eventually(lambda: reader.heard[-1] == b"newer")
    await reader.stop()


async def test_a_message_that_cannot_be_read_hides_no_later_one(own_nats: NatsServer, bus: Bus) -> None:
    await put(own_nats, new_id(), b"bad")
    await put(own_nats, new_id(), b"good")
    reader = Reader(bus)
    reader.start()
    await asyncio.wait_for(reader.follower.caught_up.wait(), 5)
    assert reader.heard == [b"good"]
    await reader.stop()


async def test_after_a_break_it_goes_on_behind_the_last_message_and_reads_nothing_twice(
    own_nats: NatsServer, bus: Bus
) -> None:
    reader = Reader(bus)
    ident = new_id()
    await put(own_nats, ident, b"1")
    reader.start()
    await asyncio.wait_for(reader.follower.caught_up.wait(), 5)
    await reader.stop()
    for body in (b"2", b"3"):
        await put(own_nats, ident, body)
    reader.start()
    await eventually(lambda: reader.heard == [b"1", b"2", b"3"])
    own_nats.restart()
    await eventually(lambda: bus.number == 1)
    await bus.connected()
    await reader.stop()
    await put(own_nats, ident, b"4")
    reader.start()
    await eventually(lambda: reader.heard == [b"1", b"2", b"3", b"4"])
    await reader.stop()


async def test_a_stream_made_anew_is_read_from_its_beginning(own_nats: NatsServer, bus: Bus) -> None:
    reader = Reader(bus)
    await put(own_nats, new_id(), b"1")
    await put(own_nats, new_id(), b"2")
    reader.start()
    await asyncio.wait_for(reader.follower.caught_up.wait(), 5)
    await reader.stop()
    await bus.js.delete_stream("STATUS")
    await ensure_streams(bus.js, ())
    await put(own_nats, new_id(), b"of the new one")
    reader.start()
    await eventually(lambda: reader.heard[-1] == b"of the new one")
    await reader.stop()


async def test_a_lost_message_is_noticed_and_fetched(own_nats: NatsServer, bus: Bus) -> None:
    reader = Reader(bus)
    reader.start()
    await asyncio.wait_for(reader.follower.caught_up.wait(), 5)
    await put(own_nats, new_id(), b"1")
    await eventually(lambda: reader.heard == [b"1"])
    reader.follower._expected = 1  # as if the last one had never been counted: the next does not fit
    await put(own_nats, new_id(), b"2")
    await put(own_nats, new_id(), b"3")
    await eventually(lambda: reader.heard == [b"1", b"2", b"3"])
    await reader.stop()


async def test_a_consumer_that_the_server_dropped_ends_the_part(
    own_nats: NatsServer, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roadstead.bus.failures import ConsumerGone

    monkeypatch.setattr("roadstead.bus.follow.secrets.token_hex", lambda _size: "x")
    reader = Reader(bus)
    reader.start()
    await asyncio.wait_for(reader.follower.caught_up.wait(), 5)
    await bus.js.delete_consumer("STATUS", "test-follows-x")
    assert reader.task is not None
    with pytest.raises(ConsumerGone):
        await asyncio.wait_for(reader.task, 10)


async def test_reading_the_last_of_each_raises_what_went_wrong_after_handling_the_others(
    own_nats: NatsServer, bus: Bus
) -> None:
    for body in (b"1", b"bad", b"2"):
        await put(own_nats, new_id(), body)
    heard: list[bytes] = []

    async def take(delivery: Delivery) -> None:
        if delivery.data == b"bad":
            raise ValueError("cannot be read")
        heard.append(delivery.data)

    with pytest.raises(ValueError, match="cannot be read"):
        await asyncio.wait_for(read_last(bus, "STATUS", ALL_NETWORKS, take, name="test-reread"), 10)
    assert heard == [b"1", b"2"]
