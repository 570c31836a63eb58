"""Streams and consumers on the server: made by any number of replicas at once, changed by releases, never deleted."""

import asyncio
from dataclasses import replace

import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig

from roadstead.bus import streams
from roadstead.bus.failures import BusRefused
from roadstead.bus.streams import FINGERPRINT, ensure_streams, is_newer
from roadstead.subjects import STREAMS, consumers_of

from .conftest import client_of

pytestmark = pytest.mark.integration


async def test_many_replicas_make_the_same_streams_and_consumers_at_once(nats_url: str) -> None:
    services = ("identity", "network", "compute", "volumes", "loadbalancer")

    async def replica(service: str) -> None:
        async with client_of(nats_url) as client:
            await ensure_streams(client.jetstream(), consumers_of(service))

    await asyncio.gather(*(replica(service) for service in services for _ in range(3)))
    async with client_of(nats_url) as client:
        js = client.jetstream()
        made = {info.config.name: info.config for info in await js.streams_info()}
        assert set(made) == set(STREAMS)
        for settings in STREAMS.values():
            config = made[settings.name]
            assert sorted(config.subjects or ()) == sorted(settings.subjects)
            assert config.max_msgs_per_subject == settings.per_subject
            assert config.max_bytes == settings.max_bytes > 0
            assert config.max_msg_size == settings.max_message
            assert (config.max_age or 0) == settings.max_age
            assert str(config.storage) == "file"
            assert str(config.discard) == settings.when_full.value
        for service in services:
            for consumer in consumers_of(service):
                held = (await js.consumer_info(consumer.stream, consumer.durable)).config
                filters = held.filter_subjects or [held.filter_subject]
                assert sorted(filters) == sorted(consumer.subjects)
                assert (held.ack_wait, held.max_ack_pending, held.max_deliver) == (30.0, 256, -1)


async def test_spec_keeps_64_versions_of_a_subject_and_refuses_the_newcomer_when_full(person: Client) -> None:
    await ensure_streams(person.jetstream(), ())
    config = (await person.jetstream().stream_info("SPEC")).config
    assert (config.max_msgs_per_subject, str(config.discard), config.max_age or 0) == (64, "new", 0)


async def test_an_operators_limit_stays_until_the_table_changes(
    person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    js = person.jetstream()
    await ensure_streams(js, ())
    config = (await js.stream_info("OBSERVED")).config
    await js.update_stream(config.evolve(max_bytes=64 << 20))
    await ensure_streams(js, ())
    assert (await js.stream_info("OBSERVED")).config.max_bytes == 64 << 20

    changed = {**STREAMS, "OBSERVED": replace(STREAMS["OBSERVED"], per_subject=8)}
    monkeypatch.setattr(streams, "STREAMS", changed)
    await ensure_streams(js, ())
    config = (await js.stream_info("OBSERVED")).config
    assert (config.max_msgs_per_subject, config.max_bytes) == (8, STREAMS["OBSERVED"].max_bytes)


async def test_an_older_release_changes_nothing_back(person: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    js = person.jetstream()
    await ensure_streams(js, ())
    monkeypatch.setattr(streams, "release", lambda: "99.0.0")
    changed = {**STREAMS, "OBSERVED": replace(STREAMS["OBSERVED"], per_subject=8)}
    monkeypatch.setattr(streams, "STREAMS", changed)
    await ensure_streams(js, ())
    monkeypatch.undo()
    await ensure_streams(js, ())
    assert (await js.stream_info("OBSERVED")).config.max_msgs_per_subject == 8


async def test_messages_and_acknowledgements_survive_a_change_of_settings(
    person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    js = person.jetstream()
    await ensure_streams(js, consumers_of("volumes"))
    ack = await js.publish("spec.a.b.volume.c", b"{}")
    changed = {**STREAMS, "SPEC": replace(STREAMS["SPEC"], per_subject=32)}
    monkeypatch.setattr(streams, "STREAMS", changed)
    await ensure_streams(js, consumers_of("volumes"))
    assert (await js.get_msg("SPEC", seq=ack.seq)).data == b"{}"
    assert FINGERPRINT in ((await js.stream_info("SPEC")).config.metadata or {})


async def test_a_stream_of_somebody_else_on_our_subjects_is_an_error_with_its_reason(person: Client) -> None:
    await person.jetstream().add_stream(StreamConfig(name="OTHER", subjects=["spec.>"]))
    with pytest.raises(BusRefused, match=r"stream SPEC.*overlap"):
        await ensure_streams(person.jetstream(), ())


@pytest.mark.parametrize(
    ("held", "ours", "newer"),
    [("0.2.0", "0.1.0", True), ("0.10.0", "0.9.0", True), ("0.1.0", "0.1.0", False), ("", "0.1.0", False)],
)
def test_releases_are_compared_by_number(held: str, ours: str, newer: bool) -> None:
    assert is_newer(held, ours) is newer
