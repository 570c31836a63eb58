"""A service's place on the bus: what it answers, consumes, follows and publishes, declared through FastStream.

Requests are answered by FastStream's subscribers.  Streams are read by `roadstead.bus` (docs/adr/0002) and only declared here, so
that one document shows all of it; a broker that serves the document is never connected.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import structlog
from faststream import FastStream
from faststream.nats import NatsBroker, PullSub
from faststream.specification import AsyncAPI
from nats.js.api import DeliverPolicy
from opentelemetry.trace import SpanKind
from pydantic import BaseModel

from roadstead import service_shapes as shapes
from roadstead.assembly import Assembly, Service
from roadstead.bus.connection import Bus
from roadstead.bus.streams import consumer_config, release
from roadstead.events import Refusal, dump, read_json
from roadstead.reconcile.handlers import PublishFailed, error_reply
from roadstead.reconcile.kind import Kind
from roadstead.store.api import StoreUnavailable
from roadstead.subjects import LATER, ConsumerSettings, consumers_of

log = structlog.get_logger("roadstead.requests")

WORKERS = 32
MAX_REQUEST = 1 << 20
VERBS = (
    "apply",
    "plan",
    "get",
    "list",
    "delete",
    "why",
    "history",
    "pause",
    "resume",
    "reference.add",
    "reference.remove",
)

Answer = Callable[[str, bytes, Mapping[str, str]], Awaitable[bytes]]


class Answers:
    """Replies to requests: always one JSON object, an error of ours included, whatever was asked."""

    def __init__(self, assembly: Assembly, bus: Bus) -> None:
        self._api = assembly.api
        self._bus = bus
        self._rpc = f"rpc.{assembly.service.name}."
        more = {f"{kind}.{verb}" for kind, verb in assembly.api.more}
        owned = {f"{kind.name}.{verb}" for kind in assembly.service.kinds for verb in VERBS}
        self._known = more | owned
        self._known_rpc = {"reference.add", "reference.remove", *assembly.handlers.more}

    def label(self, subject: str) -> str:
        """The subject for metrics and spans: people may send any word, so only words that we answer are told apart."""
        if subject.startswith(self._rpc):
            verb = subject.removeprefix(self._rpc)
            return self._rpc + (verb if verb in self._known_rpc else "other")
        verb = ".".join(subject.split(".")[3:])
        return f"api.<region>.<project>.{verb if verb in self._known else 'other'}"

    async def __call__(self, subject: str, raw: bytes, headers: Mapping[str, str]) -> bytes:
        name = self.label(subject)
        began = time.monotonic()
        carrier = headers if "traceparent" in headers else {}
        with self._bus.tracing.span(f"answer {name}", carrier, kind=SpanKind.SERVER):
            reply = await self._answer(subject, raw, {**headers, **self._bus.tracing.headers()})
        outcome = "ok"
        if "error" in reply:
            outcome = str(reply["error"].get("status", "error"))
        self._bus.meters.count("roadstead_requests_total", subject=name, outcome=outcome)
        self._bus.meters.observe("roadstead_request_seconds", time.monotonic() - began, subject=name)
        return dump(reply)

    async def _answer(self, subject: str, raw: bytes, headers: Mapping[str, str]) -> Mapping[str, Any]:
        body = read_json(raw or b"{}", limit=MAX_REQUEST, strict=True)
        if isinstance(body, Refusal):
            return error_reply(body.code, body.message.replace("message", "request", 1), 400, body.details)
        try:
            if subject.startswith(self._rpc):
                return await self._api.rpc(subject.removeprefix(self._rpc), body)
            return await self._api.request(subject, body, headers)
        except (StoreUnavailable, PublishFailed) as error:
            log.warning("request failed", subject=self.label(subject), error=str(error))
            return error_reply(
                "UNAVAILABLE", "the service cannot reach its database or broker; try again", 503
            )
        except Exception:
            log.exception("request failed", subject=self.label(subject))
            return error_reply("INTERNAL", "an internal error; the service's log has it", 500)


def api_kinds(service: Service, more: Iterable[tuple[str, str]] = ()) -> list[str]:
    """Kinds whose api subjects the service answers: its own, and inventories it registered."""
    return list(dict.fromkeys([*(k.name for k in service.kinds), *(kind for kind, _ in more)]))


def declare_requests(
    broker: NatsBroker, service: Service, more: Iterable[tuple[str, str]], answer: Answer
) -> None:
    """`api.*.*.<kind>.>` and `rpc.<service>.>` as queue groups of the service's name."""

    async def handle(message: Any) -> bytes:
        raw = message.raw_message
        return await answer(raw.subject, raw.data, dict(raw.headers or {}))

    subjects: list[tuple[str, str, type[BaseModel]]] = [
        (f"api.*.*.{kind}.>", f"Requests of people about a {kind}", shapes.Request)
        for kind in api_kinds(service, more)
    ]
    subjects.append((f"rpc.{service.name}.>", "Requests of other services", shapes.ServiceRequest))
    for subject, text, shape in subjects:
        broker.subscriber(
            subject,
            queue=service.name,
            max_workers=WORKERS,
            title=title(service.name, "answers", subject),
            description=text,
        )(_shaped(handle, shape))


def title(service: str, does: str, subject: str) -> str:
    """A name for a channel of the document: `identity-consumes-spec-region`."""
    head, *rest = subject.split(".")
    own = service if head in ("rpc", "dlq") else None
    return "-".join([service, does, head, *(token for token in rest if token not in ("*", ">", own))])


def _shaped(
    handler: Callable[[Any], Awaitable[Any]], shape: type[BaseModel]
) -> Callable[[Any], Awaitable[Any]]:
    """The handler with the message's shape as its annotation, which is where the document takes it from."""

    async def shaped(message: Any) -> Any:
        return await handler(message)

    shaped.__annotations__ = {"message": shape}
    return shaped


def declare_streams(broker: NatsBroker, service: Service, kinds: Mapping[str, Kind[Any, Any, Any]]) -> None:
    """For the document only: durable consumers, what is followed, and what is published.

    kinds: of all services, by name, for the shapes of what is followed.
    """

    async def consumed(_message: Any) -> None:
        raise RuntimeError("declared for the document; streams are read by roadstead.bus")

    for consumer in consumers_of(service.name):
        for subject in consumer.subjects:
            if subject.split(".")[3:4] and subject.split(".")[3] in LATER:
                continue  # it is read only to say so to whoever publishes there
            broker.subscriber(
                subject,
                stream=consumer.stream,
                durable=consumer.durable,
                config=consumer_config(ConsumerSettings(consumer.stream, consumer.durable, (subject,))),
                pull_sub=PullSub(),
                title=title(service.name, "consumes", subject),
                description=f"Durable pull consumer {consumer.durable} of {consumer.stream}",
            )(_shaped(consumed, shape_of(subject, kinds)))
    for stream, subject in followed(service):
        broker.subscriber(
            subject,
            stream=stream,
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
            ordered_consumer=True,
            title=title(service.name, "follows", subject),
            description="The last message of each subject, then every change",
        )(_shaped(consumed, shape_of(subject, kinds)))
    for subject, text in published(service):
        broker.publisher(
            subject,
            title=title(service.name, "publishes", subject),
            description=text,
            schema=shape_of(subject, kinds),
        )


def shape_of(subject: str, kinds: Mapping[str, Kind[Any, Any, Any]]) -> type[BaseModel]:
    """What stands in messages of a subject of a stream."""
    head, *rest = subject.split(".")
    fixed: dict[str, type[BaseModel]] = {
        "observed": shapes.Observed,
        "decided": shapes.Decided,
        "acted": shapes.Acted,
        "credential": shapes.Credential,
        "dlq": shapes.DeadLetter,
    }
    if head in fixed:
        return fixed[head]
    kind = kinds.get(rest[2]) if len(rest) == 4 else None
    if kind is None:
        return shapes.Shape
    if head == "spec":
        return shapes.spec_shape(kind)
    return shapes.status_shape(kind)


def followed(service: Service) -> list[tuple[str, str]]:
    """(stream, subject) of what the service needs to know of others."""
    return [
        *(("STATUS", f"status.*.*.{kind}.*") for kind in service.follows),
        ("CREDENTIAL", "credential.*.*"),
    ]


def published(service: Service) -> list[tuple[str, str]]:
    """(subject, meaning) of what the service publishes."""
    found: dict[str, str] = {}
    for kind in service.kinds:
        name = kind.name
        found[f"status.*.*.{name}.*"] = "The accepted spec and how it stands"
        found[f"decided.*.*.{name}.*"] = "Decisions, when rule, verb, generation or reason change"
        found[f"acted.*.*.{name}.*"] = "Every write to the cloud"
        if kind.publishes_record:
            found["credential.*.*"] = "Sealed credentials"
    if service.kinds:
        found[f"dlq.{service.name}.*.*.*.*"] = "Messages that were refused or quarantined"
    return list(found.items())


def make_app(
    service: Service,
    *,
    broker: NatsBroker | None = None,
    answer: Answer | None = None,
    more: Iterable[tuple[str, str]] = (),
    kinds: Mapping[str, Kind[Any, Any, Any]] | None = None,
) -> FastStream:
    """The service as a FastStream application.

    Without a broker it is for the document: everything is declared and nothing is ever connected.  kinds: those of other
    services that it follows, for their shapes.
    """

    async def nobody(_subject: str, _raw: bytes, _headers: Mapping[str, str]) -> bytes:
        raise RuntimeError("this application serves the document only")

    for_document = broker is None
    made = broker or NatsBroker("nats://broker:4222", apply_types=False, logger=None)
    declare_requests(made, service, more, answer or nobody)
    if for_document:
        declare_streams(made, service, {**(kinds or {}), **{k.name: k for k in service.kinds}})
    specification = AsyncAPI(
        made,
        title=f"Roadstead {service.name}",
        version=release(),
        description=f"What the {service.name} service answers, consumes, follows and publishes.",
    )
    return FastStream(made, specification=specification, logger=None)
