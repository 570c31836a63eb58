"""What a service does with each message and request, whatever carried it.

Streams come in through `spec`, `observed`, `status` and `credential`; people and other services through `api` and `rpc`.  The
bus binds these to subjects, the simulation calls them directly, so both run the same code.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import structlog

from roadstead.bus.failures import PublishFailed
from roadstead.clock import parse_time
from roadstead.cloud.credentials import Keyring
from roadstead.events import ObservedMessage, Refusal, read_json, read_spec
from roadstead.reconcile import rules
from roadstead.reconcile.accepting import Ingested, IngestResult
from roadstead.reconcile.gate import view_of
from roadstead.reconcile.ingest import ingest, refuse_unread
from roadstead.reconcile.kind import Kind, Problem
from roadstead.reconcile.owed import Owed
from roadstead.reconcile.past import superseding
from roadstead.reconcile.views import Directory, StatusView
from roadstead.seal import Sealer
from roadstead.store.api import Store
from roadstead.subjects import BadSubject, parse_key, parse_reference

log = structlog.get_logger("roadstead.handlers")


NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Publisher(Protocol):
    """The way out for what must be acknowledged before we go on."""

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        """Store one message in its stream; (epoch, sequence) of it.  PublishFailed when it is not known to be stored."""
        ...


@dataclass(frozen=True)
class Dead:
    """A message for the dead letters: why, in one code and one line, with every detail."""

    code: str
    message: str
    details: tuple[Mapping[str, Any], ...] = ()
    key: str = "unknown._.unknown.unknown"


@dataclass
class Handlers:
    """One per process.  `nudge` tells the loop that something may be due; `on_outbox` that messages wait to go out."""

    service: str
    kinds: Mapping[str, Kind[Any, Any, Any]]
    store: Store
    directory: Directory
    keyring: Keyring
    sealer: Sealer
    nudge: Callable[[], None] = lambda: None
    on_outbox: Callable[[], None] = lambda: None
    on_credential: list[Callable[[str, str | None], None]] = field(default_factory=list)
    on_status: list[Callable[[Any], None]] = field(default_factory=list)
    # who waits for the first word of a resource: (kind, id) -> our rows
    awaited: dict[tuple[str, str], set[tuple[str, str]]] = field(default_factory=dict)
    # further rpc verbs of the service: name after `rpc.<service>.` -> handler
    more: dict[str, Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]] = field(default_factory=dict)
    owed: Owed = field(init=False)

    def __post_init__(self) -> None:
        self.owed = Owed(self.store, self._on_woken)

    def _on_woken(self) -> None:
        self.nudge()  # as it is by then: the loop puts its own there after we were made

    # ------------------------------------------------------------ streams

    async def spec(
        self, subject: str, raw: bytes, position: tuple[int, int], headers: Mapping[str, str]
    ) -> IngestResult | Dead:
        """A message of SPEC: stored, or dead with its reasons.  Database trouble raises; the message is delivered again."""
        try:
            key = parse_key(subject)
        except BadSubject as error:
            return Dead("BAD_SUBJECT", str(error))
        kind = self.kinds.get(key.kind)
        if kind is None:
            return Dead("UNKNOWN_KIND", f"the kind {key.kind} is not served yet", key=str(key))
        message = read_spec(raw)
        if isinstance(message, Refusal):
            await self._refused(kind, key, message)
            return Dead(message.code, message.message, message.details, str(key))
        cause = {"subject": subject, "sequence": position[1]}
        if headers.get("traceparent"):
            cause["traceparent"] = headers["traceparent"]
        change = await self.store.change(
            key,
            lambda row, now: superseding(
                row,
                ingest(row, now, kind=kind, key=key, message=message, position=position, cause=cause),
                now,
            ),
        )
        result: IngestResult = change.result
        if result.what is not Ingested.REFUSED:
            self.nudge()  # the pass first: somebody waits for what it does, nobody for the word that it was accepted
        self.on_outbox()
        if result.what is Ingested.REFUSED:
            details = tuple({"code": p.code, "field": p.field, "message": p.message} for p in result.problems)
            return Dead(
                result.problems[0].code, "; ".join(p.message for p in result.problems), details, str(key)
            )
        return result

    async def _refused(self, kind: Kind[Any, Any, Any], key: Any, refusal: Refusal) -> None:
        """An unreadable message: the resource it names says so; the accepted spec stays in force."""
        problem = Problem(refusal.code, refusal.field, refusal.message, 400)
        await self.store.change(
            key, lambda row, now: superseding(row, refuse_unread(row, now, key, problem), now)
        )
        self.on_outbox()

    async def observed(self, subject: str, raw: bytes, headers: Mapping[str, str]) -> str | Dead:
        """A message of OBSERVED: facts for a resource we own."""
        try:
            key = parse_key(subject)
        except BadSubject as error:
            return Dead("BAD_SUBJECT", str(error))
        kind = self.kinds.get(key.kind)
        body = read_json(raw, limit=1 << 20)
        if kind is None or isinstance(body, Refusal):
            text = body.message if isinstance(body, Refusal) else f"the kind {key.kind} is not served"
            return Dead("UNREADABLE", text, key=str(key))
        try:
            message = ObservedMessage(
                present=bool(body.pop("present")),
                read_started_at=parse_time(str(body.pop("readStartedAt"))),
                sweep=str(body.pop("sweep", "")),
                known_resource_version=int(body.pop("knownResourceVersion", 0)),
                facts=body,
            )
        except (KeyError, ValueError, TypeError) as error:
            return Dead("BAD_ENVELOPE", f"not an observation: {type(error).__name__}", key=str(key))
        cause: dict[str, Any] = {"subject": subject}
        if headers.get("traceparent"):
            cause["traceparent"] = headers["traceparent"]
        change = await self.store.change(
            key,
            lambda row, now: superseding(
                row, rules.observe(row, now, kind=kind, message=message, cause=cause), now
            ),
        )
        self.on_outbox()
        if change.result == "woken":
            self.nudge()
        return str(change.result)

    async def status(
        self, subject: str, raw: bytes, headers: Mapping[str, str] = NO_HEADERS, *, news: bool = True
    ) -> bool:
        """A message of STATUS: what others own.  Our rows that it names as consumers fall due at once, in its trace.

        news False: it was acted on before this process began, and is only to be known.
        """
        body = read_json(raw, limit=1 << 20)
        if isinstance(body, Refusal):
            log.warning("unreadable status", subject=subject, reason=body.message)
            return False
        try:
            view = view_of(body)
        except (KeyError, ValueError, TypeError):
            log.warning("unreadable status", subject=subject)
            return False
        # Against the last message, not against what a reply to a reference has told meanwhile: that one woke nobody.
        before = self.directory.heard(view.key.kind, view.key.id)
        if not self.directory.hear(view):
            return False
        ours = list(self.awaited.pop((view.key.kind, view.key.id), ())) if not view.gone else []
        if news if before is None else _moved(before, view):
            ours += [
                p for c in view.consumers if (p := parse_reference(c)) is not None and p[0] in self.kinds
            ]
        self.owed.add(
            ours, {"subject": subject, "reason": f"{view.key.kind} moved", **rules.trace_of(headers)}
        )
        self._region_endpoint(view)
        for listener in self.on_status:
            listener(view)
        await self.owed.pay()
        return True

    async def credential(self, subject: str, raw: bytes, headers: Mapping[str, str] = NO_HEADERS) -> bool:
        """A message of CREDENTIAL: sealed; the newest version wins."""
        body = read_json(raw, limit=1 << 20)
        parts = subject.split(".")
        if isinstance(body, Refusal) or len(parts) != 3 or "sealed" not in body:
            log.warning("unreadable credential", subject=subject)
            return False
        region, who = parts[1], parts[2]
        record = self.sealer.open_json(str(body["sealed"]))
        version = int(body.get("version", 0))
        if who == "_region":
            self.keyring.put_region_secret(region, record, version)
            for listener in self.on_credential:
                listener(region, None)
        else:
            self.keyring.put_identity(region, who, record, version)
            waiting = self.awaited.pop(("credential", who), ())
            self.owed.add(waiting, {"subject": subject, "reason": "credential", **rules.trace_of(headers)})
            for listener in self.on_credential:
                listener(region, who)
            await self.owed.pay()
        return True

    def _region_endpoint(self, view: StatusView) -> None:
        """Where a region's Keystone is comes with the Region's accepted spec."""
        part = view.spec.get("openstack")
        if view.key.kind == "region" and not view.gone and isinstance(part, dict) and part.get("endpoint"):
            self.keyring.put_endpoint(view.key.region, str(part["endpoint"]), part.get("regionName"))


def _moved(before: StatusView, view: StatusView) -> bool:
    """Whether those who need the resource may have something to do."""
    return (before.provisioned, before.deleting, before.gone, before.generation) != (
        view.provisioned,
        view.deleting,
        view.gone,
        view.generation,
    )


def error_reply(code: str, message: str, status: int, details: Any = ()) -> dict[str, Any]:
    """The one shape of an error in a reply."""
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


__all__ = ["Dead", "Handlers", "PublishFailed", "Publisher", "error_reply"]
