"""Publishing, purging, requests: what goes out, and how it fails."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from nats.aio.client import Client

from roadstead.bus.connection import Bus, BusOptions, label
from roadstead.bus.failures import BusRefused, PublishFailed, RequestFailed
from roadstead.bus.streams import ensure_streams
from roadstead.testing.servers import NatsServer

from .conftest import eventually, new_id, subject_of

pytestmark = pytest.mark.integration


@pytest.fixture
async def bus(own_nats: NatsServer) -> AsyncIterator[Bus]:
    bus = Bus(BusOptions((own_nats.url,), "test", publish_patience=10, request_timeout=2))
    await bus.connect()
    await ensure_streams(bus.js, ())
    bus.settle(0, {})
    yield bus
    await bus.close()


async def test_a_message_is_at_the_position_it_is_said_to_be(bus: Bus) -> None:
    subject = subject_of(new_id())
    epoch, first = await bus.publish(subject, b"one", {})
    _, second = await bus.publish(subject, b"two", {})
    assert (epoch, second) == (1, first + 1)
    assert (await bus.js.get_msg("SPEC", seq=second)).data == b"two"


async def test_the_same_message_id_is_stored_once(bus: Bus) -> None:
    subject = subject_of(new_id())
    first = await bus.publish(subject, b"one", {"Nats-Msg-Id": "a"})
    assert await bus.publish(subject, b"one", {"Nats-Msg-Id": "a"}) == first
    assert (await bus.js.stream_info("SPEC")).state.messages == 1


async def test_a_lost_compare_and_set_is_a_conflict_at_once(bus: Bus) -> None:
    subject = subject_of(new_id())
    await bus.publish(subject, b"one", {"Nats-Expected-Last-Subject-Sequence": "0"})
    began = time.monotonic()
    with pytest.raises(PublishFailed) as failure:
        await bus.publish(subject, b"two", {"Nats-Expected-Last-Subject-Sequence": "0"})
    assert failure.value.conflict
    assert time.monotonic() - began < 2


async def test_a_compare_and_set_that_is_tried_again_is_no_conflict_with_itself(bus: Bus) -> None:
    """Its first try was stored and the acknowledgement lost; the server looks at the expectation before the message id."""
    subject = subject_of(new_id())
    headers = {"Nats-Msg-Id": "edit-1", "Nats-Expected-Last-Subject-Sequence": "0"}
    first = await bus.publish(subject, b"one", headers)
    assert await bus.publish(subject, b"one", headers) == first


async def test_an_outage_is_waited_for_and_the_message_stored_once(own_nats: NatsServer, bus: Bus) -> None:
    subject = subject_of(new_id())
    own_nats.kill()
    await eventually(lambda: bus.number == 1)

    async def settle() -> None:
        number = await bus.connected()
        bus.settle(number, {})

    settling = asyncio.create_task(settle())
    sending = asyncio.create_task(bus.publish(subject, b"one", {}))
    await asyncio.sleep(0.5)
    assert not sending.done()
    own_nats.start()
    position = await asyncio.wait_for(sending, 10)
    await settling
    assert position == (1, 1)
    assert (await bus.js.stream_info("SPEC")).state.messages == 1


async def test_without_a_broker_it_fails_when_patience_ends(own_nats: NatsServer) -> None:
    bus = Bus(BusOptions((own_nats.url,), "test", publish_patience=1))
    await bus.connect()
    await ensure_streams(bus.js, ())
    bus.settle(0, {})
    own_nats.kill()
    began = time.monotonic()
    with pytest.raises(PublishFailed, match="not acknowledged within 1 s") as failure:
        await bus.publish(subject_of(new_id()), b"one", {})
    assert not failure.value.conflict
    assert 0.9 < time.monotonic() - began < 4
    own_nats.start()
    await bus.close()


async def test_nothing_is_published_before_the_streams_of_the_connection_were_checked(
    own_nats: NatsServer,
) -> None:
    bus = Bus(BusOptions((own_nats.url,), "test", publish_patience=10))
    await bus.connect()
    await ensure_streams(bus.js, ())
    sending = asyncio.create_task(bus.publish(subject_of(new_id()), b"one", {}))
    await asyncio.sleep(0.2)
    assert (await bus.js.stream_info("SPEC")).state.messages == 0
    bus.settle(0, {})
    assert await sending == (1, 1)
    await bus.close()


async def test_a_full_stream_refuses_the_newcomer_at_once(bus: Bus) -> None:
    config = (await bus.js.stream_info("SPEC")).config
    await bus.js.update_stream(config.evolve(max_bytes=4000, max_msg_size=1000))
    for _ in range(5):
        await bus.publish(subject_of(new_id()), b"x" * 500, {})
    with pytest.raises(PublishFailed, match="full"):
        await bus.publish(subject_of(new_id()), b"x" * 500, {})
    with pytest.raises(PublishFailed, match="refuses"):
        await bus.publish(subject_of(new_id()), b"x" * 1500, {})


async def test_the_last_sequence_of_a_stream_of_another_epoch_comes_with_that_epoch(bus: Bus) -> None:
    class Third:
        epoch = 3

    bus.settle(0, {"SPEC": Third()})
    assert (await bus.publish(subject_of(new_id()), b"one", {}))[0] == 3
    assert (await bus.publish(subject_of(new_id(), head="status"), b"one", {}))[0] == 1


@pytest.mark.parametrize(
    ("up_to", "keep", "left"),
    [
        (0, 0, []),
        (3, 0, [4, 5]),
        (0, 1, [5]),
        (0, 2, [4, 5]),
        (3, 1, [4, 5]),
        (5, 1, [5]),
        (9, 1, [5]),
        (9, 0, []),
    ],
)
async def test_a_purge_removes_what_it_is_told_and_nothing_of_others(
    bus: Bus, up_to: int, keep: int, left: list[int]
) -> None:
    subject, other = subject_of(new_id()), subject_of(new_id())
    for _ in range(5):
        await bus.publish(subject, b"x", {})
    await bus.publish(other, b"x", {})
    await bus.purge("SPEC", subject, up_to=up_to, keep=keep)
    state = (await bus.js.stream_info("SPEC", subjects_filter=">")).state
    assert state.messages == len(left) + 1
    for sequence in left:
        assert (await bus.js.get_msg("SPEC", seq=sequence)).subject == subject


async def test_a_purge_without_a_broker_is_not_taken_for_done(own_nats: NatsServer, bus: Bus) -> None:
    own_nats.kill()
    with pytest.raises(PublishFailed):
        await bus.purge("SPEC", subject_of(new_id()), up_to=1, keep=0)
    own_nats.start()


# ---------------------------------------------------------------- requests


async def test_a_request_brings_the_reply_as_an_object(bus: Bus, person: Client) -> None:
    async def answer(message: Any) -> None:
        await message.respond(b'{"ok": true}')

    await person.subscribe("rpc.identity.>", cb=answer)
    await person.flush()
    assert await bus.request("rpc.identity.reference.add", {"id": "a"}) == {"ok": True}


async def test_a_service_that_is_just_being_restarted_is_waited_for_a_moment(
    bus: Bus, person: Client
) -> None:
    async def answer(message: Any) -> None:
        await message.respond(b"{}")

    asking = asyncio.create_task(bus.request("rpc.identity.x", {}))
    await asyncio.sleep(0.3)
    await person.subscribe("rpc.identity.>", cb=answer)
    assert await asking == {}


async def test_nobody_there_no_answer_and_no_object_are_failures(bus: Bus, person: Client) -> None:
    began = time.monotonic()
    with pytest.raises(RequestFailed, match="nobody answers"):
        await bus.request("rpc.nobody.x", {})
    assert time.monotonic() - began < 2

    async def silence(_message: Any) -> None:
        return

    async def nonsense(message: Any) -> None:
        await message.respond(b"[1]")

    await person.subscribe("rpc.silent.x", cb=silence)
    await person.subscribe("rpc.odd.x", cb=nonsense)
    await person.flush()
    with pytest.raises(RequestFailed, match="no answer"):
        await bus.request("rpc.silent.x", {})
    with pytest.raises(RequestFailed, match="no JSON object"):
        await bus.request("rpc.odd.x", {})


async def test_a_broker_that_turns_us_away_is_an_error_at_once(server_directory: Any) -> None:
    server = NatsServer(
        server_directory / f"auth-{new_id()}",
        extra='authorization { users: [ { user: "a", password: "b" } ] }',
        die_with_parent=True,
    )
    server.start()
    try:
        with pytest.raises(BusRefused, match="refuses the connection"):
            await asyncio.wait_for(Bus(BusOptions((server.url,), "test")).connect(), 10)
    finally:
        server.kill()


def test_labels_bear_no_ids_and_no_words_of_strangers() -> None:
    assert label(subject_of(new_id())) == "spec.<region>.<project>.volume.<id>"
    assert label("spec.a.b.anything-goes.c") == "spec.<region>.<project>.other.<id>"
    assert label("spec.a.b") == "spec.<region>.<project>.other.<id>"
    assert label("dlq.volumes.a.b.c.d") == "dlq.volumes.<key>"
    assert label("credential.a.b") == "credential.<region>.<identity>"
