"""Streams and consumers on the server, made to match the table in `subjects.py`.

Any number of replicas may do this at the same time and again; nothing is ever deleted.  A stream bears the fingerprint of the
settings it was made from: an operator's edit of its limits stays until a release changes the table, and an older release that
still runs changes nothing back.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version

import structlog
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError

from roadstead.bus.failures import BusRefused
from roadstead.events import dump
from roadstead.subjects import STREAMS, ConsumerSettings, StreamSettings

log = structlog.get_logger("roadstead.bus")

FINGERPRINT = "roadstead-settings"
RELEASE = "roadstead-release"
NAME_IN_USE = 10058  # another replica made it a moment ago, from other settings
TRIES = 5


def release() -> str:
    return version("roadstead")


def fingerprint(settings: StreamSettings, replicas: int) -> str:
    """Changes when, and only when, the stream should."""
    return hashlib.sha256(dump({**asdict(settings), "replicas": replicas})).hexdigest()[:16]


def stream_config(settings: StreamSettings, replicas: int = 1) -> StreamConfig:
    """The settings in the words of the server.  Storage is always file."""
    return StreamConfig(
        name=settings.name,
        subjects=list(settings.subjects),
        retention=RetentionPolicy(settings.keep.value),
        storage=StorageType.FILE,
        num_replicas=replicas,
        discard=DiscardPolicy(settings.when_full.value),
        max_msgs_per_subject=settings.per_subject,
        max_age=settings.max_age,
        max_bytes=settings.max_bytes,
        max_msg_size=settings.max_message,
        duplicate_window=settings.duplicate_window,
        allow_direct=False,
        metadata={FINGERPRINT: fingerprint(settings, replicas), RELEASE: release()},
    )


def consumer_config(settings: ConsumerSettings) -> ConsumerConfig:
    """A durable pull consumer that delivers until acknowledged, however often."""
    return ConsumerConfig(
        name=settings.durable,
        durable_name=settings.durable,
        filter_subjects=list(settings.subjects),
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=settings.ack_wait,
        max_ack_pending=settings.max_ack_pending,
        max_deliver=-1,
        headers_only=settings.headers_only or None,
    )


def is_newer(held: str, ours: str) -> bool:
    """Whether the release `held` comes after `ours`; a text that is no release is older than any."""
    return _numbers(held) > _numbers(ours)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


async def ensure_streams(
    js: JetStreamContext, consumers: Iterable[ConsumerSettings], *, replicas: int = 1
) -> None:
    """Make every stream of the table and the given consumers.  BusRefused names what the server does not take."""
    for settings in STREAMS.values():
        await _ensure_stream(js, settings, replicas)
    for consumer in consumers:
        try:
            await js.add_consumer(consumer.stream, consumer_config(consumer))
        except APIError as error:
            raise _refused(f"consumer {consumer.durable}", error) from error


async def _ensure_stream(js: JetStreamContext, settings: StreamSettings, replicas: int) -> None:
    wanted = stream_config(settings, replicas)
    for attempt in range(1, TRIES + 1):
        try:
            held = (await js.stream_info(settings.name)).config.metadata or {}
        except NotFoundError:
            held = None
        if held is not None and (
            held.get(FINGERPRINT) == fingerprint(settings, replicas)
            or is_newer(held.get(RELEASE, ""), release())
        ):
            return
        try:
            await (js.add_stream(wanted) if held is None else js.update_stream(wanted))
        except APIError as error:
            raced = error.err_code == NAME_IN_USE and held is None
            if not raced or attempt == TRIES:
                raise _refused(f"stream {settings.name}", error) from error
            await asyncio.sleep(0.05 * attempt)
        else:
            log.info("stream made" if held is None else "stream changed", stream=settings.name)
            return


def _refused(what: str, error: APIError) -> Exception:
    """A server that is busy or has no leader yet is asked again by the caller; a bad setting needs a person."""
    if error.code is not None and error.code >= 500:
        return error
    return BusRefused(
        f"the broker refuses the {what}: {error.description} (err_code {error.err_code}); "
        "see its JetStream limits and the rights of this user"
    )
