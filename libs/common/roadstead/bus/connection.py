"""One connection to the broker, and what goes out over it.

It reconnects for ever.  Each connection has a number; a number is `settled` once its streams were made and their epochs checked,
and only then does anything go out that needs a position.  A publication whose connection went away meanwhile is repeated with the
same message id, so the broker stores it once.
"""

import asyncio
import secrets
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats.errors
import orjson
import structlog
from faststream.nats import NatsBroker
from faststream.nats.security import NatsNKey, NatsSecurity
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError
from opentelemetry.trace import SpanKind

from roadstead.bus.failures import BusRefused, PublishFailed, RequestFailed
from roadstead.events import dump
from roadstead.subjects import KINDS, STREAMS, template
from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.traces import Tracing, no_tracing

log = structlog.get_logger("roadstead.bus")

WRONG_LAST_SEQUENCE = 10071
STREAM_FULL = (10077, 10047)  # its limit of messages or bytes; the storage of the account
REFUSED_FOR_GOOD = (10054,)  # larger than the stream takes
RECONNECT_WAIT = 0.2
PING_EVERY = 2.0
PINGS_LOST = 2
SAME_ERROR_EVERY = 10.0  # seconds between two log lines of the same connection error
NOBODY_THERE_FOR = 1.0  # seconds in which a service that is being restarted may come back


def label(subject: str) -> str:
    """The subject as metrics and spans name it: its template, and one word for kinds that we do not know."""
    parts = subject.split(".")
    if parts[0] in ("spec", "status", "observed", "decided", "acted"):
        kind = parts[3] if len(parts) == 5 and parts[3] in KINDS else "other"
        return template(f"{parts[0]}._._.{kind}._")
    return template(subject)


def stream_of(subject: str) -> str:
    """The stream that keeps a subject.  KeyError for one that none keeps."""
    tokens = subject.split(".")
    for stream in STREAMS.values():
        if any(_matches(pattern.split("."), tokens) for pattern in stream.subjects):
            return stream.name
    raise KeyError(subject)


def _matches(pattern: Sequence[str], tokens: Sequence[str]) -> bool:
    if pattern[-1] == ">":
        pattern = pattern[:-1]
        if len(tokens) <= len(pattern):
            return False
        tokens = tokens[: len(pattern)]
    return len(tokens) == len(pattern) and all(p in ("*", t) for p, t in zip(pattern, tokens, strict=True))


@dataclass(frozen=True)
class BusOptions:
    """How to reach the broker.  Times in seconds."""

    servers: tuple[str, ...]
    name: str
    inbox_prefix: str = "_INBOX"
    nkey_seed: str | None = None
    ca_file: Path | None = None
    replicas: int = 1
    publish_patience: float = 15.0
    request_timeout: float = 5.0


class Bus:
    """The connection.  `publish`, `purge` and `request` are what the rest of the product sees of it."""

    def __init__(
        self, options: BusOptions, *, meters: Meters | None = None, tracing: Tracing | None = None
    ) -> None:
        self.options = options
        self.meters = meters or Meters()
        self.tracing = tracing or no_tracing()
        self.number = 0
        """Of the connection, raised with each loss; 0 before the first."""
        self._settled_number = -1
        self._connected = asyncio.Event()
        self._settled = asyncio.Event()
        self._lost = asyncio.Event()
        self.closed = asyncio.Event()
        """Set when the broker ended the connection in a way that no reconnect mends."""
        self._closing = False
        self._epochs: dict[str, Any] = {}
        self._last_error = ("", 0.0)
        self._client: Client | None = None
        self._js: JetStreamContext | None = None
        self.broker = NatsBroker(
            list(options.servers),
            name=options.name,
            security=_security(options),
            inbox_prefix=options.inbox_prefix,
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_WAIT,  # type: ignore[arg-type]  # handed on to nats-py, which takes fractions
            connect_timeout=2,
            ping_interval=PING_EVERY,  # type: ignore[arg-type]  # likewise
            max_outstanding_pings=PINGS_LOST,
            drain_timeout=5,
            error_cb=self._on_error,
            disconnected_cb=self._on_lost,
            reconnected_cb=self._on_connected,
            closed_cb=self._on_closed,
            graceful_timeout=5,
            logger=None,
            apply_types=False,
            decoder=_whole_message,
        )

    # ------------------------------------------------------------ the connection

    @property
    def client(self) -> Client:
        if self._client is None:
            raise RuntimeError("the bus was not connected yet")
        return self._client

    @property
    def js(self) -> JetStreamContext:
        if self._js is None:
            self._js = self.client.jetstream()
        return self._js

    async def connect(self) -> None:
        """Wait until the broker is there, however long.  BusRefused when it turns us away."""
        try:
            self._client = await self.broker.connect()
        except nats.errors.Error as error:
            raise BusRefused(
                f"the broker refuses the connection: {error}; see the user and its nkey"
            ) from None
        await self._on_connected()

    async def close(self) -> None:
        """Send what is buffered, and end."""
        self._closing = True
        self._settled.clear()
        client = self._client
        if client is not None and not client.is_closed:
            if client.is_connected:
                try:
                    await asyncio.wait_for(client.drain(), 6)
                except (TimeoutError, OSError, nats.errors.Error) as error:
                    log.warning("the connection was not drained", error=str(error) or type(error).__name__)
            if not client.is_closed:
                try:
                    await client.close()
                except OSError as error:  # the broker went away at this very moment
                    log.warning("the connection was lost while it was closed", error=str(error))

    async def connected(self) -> int:
        """The number of the connection, once there is one."""
        await self._connected.wait()
        return self.number

    def settle(self, number: int, epochs: Mapping[str, Any]) -> None:
        """The streams of this connection were checked: `epochs` (stream name to Epochs) holds."""
        if number != self.number:
            return
        self._epochs = dict(epochs)
        self._settled_number = number
        self._settled.set()
        self.meters.put("roadstead_bus_connected", 1)
        for stream, held in self._epochs.items():
            self.meters.put("roadstead_stream_epoch", held.epoch, stream=stream)

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set() and self._settled_number == self.number

    async def lost(self, number: int) -> None:
        """Return when that connection is gone."""
        while number == self.number and not self.closed.is_set():
            self._lost.clear()
            await self._lost.wait()

    async def answers(self, seconds: float = 2.0) -> bool:
        """Whether the broker answers a ping in time."""
        if self._client is None or not self._client.is_connected:
            return False
        try:
            await self._client.flush(seconds)  # type: ignore[arg-type]  # handed to asyncio, which takes fractions
        except (nats.errors.Error, TimeoutError, OSError):
            return False
        return True

    async def _on_connected(self) -> None:
        log.info("broker connected", connection=self.number)
        self.meters.count("roadstead_bus_connections_total")
        self._connected.set()

    async def _on_lost(self) -> None:
        self.number += 1
        self._connected.clear()
        self._settled.clear()
        self._lost.set()
        self.meters.put("roadstead_bus_connected", 0)
        if not self._closing:
            log.warning("broker connection lost", connection=self.number)

    async def _on_closed(self) -> None:
        self._lost.set()
        if not self._closing:
            log.error(
                "the broker closed the connection for good",
                error=str(self._client and self._client.last_error),
            )
            self.closed.set()

    async def _on_error(self, error: Exception) -> None:
        """Everything that the client cannot tell any caller, refused permissions among it."""
        self.meters.count("roadstead_bus_errors_total", error=type(error).__name__)
        text = str(error) or type(error).__name__
        now = time.monotonic()
        if text == self._last_error[0] and now - self._last_error[1] < SAME_ERROR_EVERY:
            return
        self._last_error = (text, now)
        log.warning("broker", error=text, error_type=type(error).__name__)

    # ------------------------------------------------------------ publishing

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        """Store one message in its stream; its (epoch, sequence).

        Tried for `publish_patience` under one message id.  PublishFailed afterwards, at once when the stream refuses it for good.
        """
        name = label(subject)
        full = {"Nats-Msg-Id": secrets.token_hex(12), **headers}
        began = time.monotonic()
        outcome = "failed"
        carrier = headers if "traceparent" in headers else None
        with self.tracing.span(f"publish {name}", carrier, kind=SpanKind.PRODUCER) as span:
            if self.tracing.sends or "traceparent" not in full:
                full.update(self.tracing.headers())
            try:
                position = await self._publish(subject, payload, full, began + self.options.publish_patience)
                outcome = "stored"
                span.set_attribute("messaging.nats.sequence", position[1])
                return position
            except PublishFailed as failure:
                outcome = "conflict" if failure.conflict else "failed"
                raise
            finally:
                self.meters.count("roadstead_published_total", subject=name, outcome=outcome)
                self.meters.observe("roadstead_publish_seconds", time.monotonic() - began, subject=name)

    async def _publish(
        self, subject: str, payload: bytes, headers: Mapping[str, str], ends: float
    ) -> tuple[int, int]:
        pause = 0.05
        reason = "the broker was not connected"
        while (left := ends - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._settled.wait()
                number = self.number
                ack = await self.js.publish(
                    subject,
                    payload,
                    timeout=min(5.0, max(0.1, ends - time.monotonic())),
                    headers=dict(headers),
                )
            except APIError as error:
                if error.err_code == WRONG_LAST_SEQUENCE:
                    return await self._own_or_conflict(subject, headers["Nats-Msg-Id"])
                reason = _judged(subject, error)
            except NoStreamResponseError:
                reason = f"no stream takes {label(subject)}"
            except nats.errors.MaxPayloadError:
                raise PublishFailed("the message is larger than the broker takes") from None
            except (nats.errors.Error, TimeoutError, OSError) as error:
                reason = str(error) or "no acknowledgement in time"
            else:
                if number == self.number:
                    held = self._epochs.get(ack.stream)
                    return (held.epoch if held is not None else 1), ack.seq
                # The stream may have begun another life meanwhile: asked again, the broker says where the message is now.
                reason = "the connection was lost on the way"
            await asyncio.sleep(min(pause, max(0.0, ends - time.monotonic())))
            pause = min(pause * 2, 1.0)
        raise PublishFailed(f"not acknowledged within {self.options.publish_patience:g} s: {reason}")

    async def _own_or_conflict(self, subject: str, message_id: str) -> tuple[int, int]:
        """A lost compare-and-set, unless it was lost to our own first try, whose acknowledgement did not arrive.

        The server looks at the expectation before the message id, so it cannot tell the two apart.
        """
        stream = stream_of(subject)
        try:
            last = await self.js.get_msg(stream, subject=subject)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise PublishFailed(f"whether the subject moved on is not known: {error}") from None
        if last.seq and (last.headers or {}).get("Nats-Msg-Id") == message_id:
            held = self._epochs.get(stream)
            return (held.epoch if held is not None else 1), last.seq
        raise PublishFailed("the subject moved on meanwhile", conflict=True)

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        """Remove messages of the subject: those up to sequence `up_to` (0: no such limit), but for the newest `keep`.

        PublishFailed when the broker did not confirm it.  With both limits given two requests are made.
        """
        if up_to < 0 or keep < 0:
            raise ValueError("up_to and keep count from 0")
        try:
            if up_to and keep:
                up_to = min(up_to, await self._before_newest(stream, subject, keep))
                if up_to == 0:
                    return
                keep = 0
            # The server purges below a sequence, and takes either a sequence or a count.
            await self.js.purge_stream(
                stream, seq=up_to + 1 if up_to else None, subject=subject, keep=keep or None
            )
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise PublishFailed(f"the purge of {label(subject)} was not confirmed: {error}") from error

    async def _before_newest(self, stream: str, subject: str, keep: int) -> int:
        """The highest sequence that may go when the newest `keep` messages of one subject stay; 0: none."""
        if keep != 1:
            raise ValueError("with up_to only keep=1 can be asked for")
        try:
            last = await self.js.get_msg(stream, subject=subject)
        except nats.js.errors.NotFoundError:
            return 0
        return int(last.seq or 1) - 1

    # ------------------------------------------------------------ requests

    async def request(
        self, subject: str, payload: Mapping[str, Any], *, within: float | None = None
    ) -> Mapping[str, Any]:
        """Another service's reply.  RequestFailed when none came within that time (seconds; `request_timeout` unless given), or nobody
        is there for a second."""
        began = time.monotonic()
        ends = began + (within or self.options.request_timeout)
        body = dump(dict(payload))
        with self.tracing.span(f"request {label(subject)}", kind=SpanKind.CLIENT):
            headers = self.tracing.headers()
            while True:
                left = ends - time.monotonic()
                if left <= 0 or self._client is None:
                    raise RequestFailed(f"no answer to {label(subject)} in time")
                try:
                    reply = await self.client.request(subject, body, timeout=left, headers=headers)
                except nats.errors.NoRespondersError:
                    if time.monotonic() - began > NOBODY_THERE_FOR:
                        raise RequestFailed(f"nobody answers {label(subject)}") from None
                    await asyncio.sleep(0.1)
                    continue
                except (nats.errors.Error, TimeoutError, OSError) as error:
                    text = str(error) or type(error).__name__
                    raise RequestFailed(f"no answer to {label(subject)}: {text}") from None
                return _object(subject, reply.data)


def _object(subject: str, data: bytes) -> Mapping[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise RequestFailed(f"the answer to {label(subject)} is no JSON object")
    return value


def _judged(subject: str, error: APIError) -> str:
    """What a refused publication means: a reason to try again, or PublishFailed."""
    if error.err_code in STREAM_FULL:
        log.error(
            "stream is full; raise its limit or remove what nobody needs",
            subject=label(subject),
            error=str(error),
        )
        raise PublishFailed(f"the stream is full: {error.description}") from None
    if error.err_code in REFUSED_FOR_GOOD:
        raise PublishFailed(f"the stream refuses the message: {error.description}") from None
    return str(error.description or error)


def _security(options: BusOptions) -> NatsSecurity | None:
    context = ssl.create_default_context(cafile=str(options.ca_file)) if options.ca_file else None
    if options.nkey_seed is not None:
        return NatsNKey.from_seed(options.nkey_seed, ssl_context=context)
    return NatsSecurity(ssl_context=context) if context is not None else None


async def _whole_message(message: Any) -> Any:
    """FastStream's handlers get the message as it came: reading the body is `events.py`'s, which never raises."""
    return message
