"""Runs passes of one kind against the simulated cloud, without bus or store.

For tests of `observe` and `act`: the production `drive`, the production engine, the simulator's request log.  Status, record and
unanswered creates are carried from pass to pass the way the loop does it; references are granted by what the test puts in the directory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from roadstead.clock import parse_time
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import Cloud as CloudPort
from roadstead.reconcile.drive import Asked, Ending, Memory, drive
from roadstead.reconcile.kind import Kind, Metadata, Resource
from roadstead.reconcile.notes import Notes
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.status import conditions_of, merged
from roadstead.reconcile.views import Directory, Requests, StatusView
from roadstead.region import RegionSpec
from roadstead.subjects import Key
from roadstead.testing.direct import DirectSender


class StandingClock:
    """Time that moves only when a test says so."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._mono = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._mono

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._mono += seconds


class NoRequests:
    """Answers every request to another service with what the test put in `replies` (by subject), else with an error."""

    def __init__(self) -> None:
        self.replies: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {}
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((subject, payload))
        reply = self.replies.get(subject)
        return (
            reply(payload)
            if reply
            else {"error": {"code": "UNKNOWN", "message": f"nobody answers {subject}"}}
        )


@dataclass
class MemoryBook:
    """Keeps what the loop would store."""

    intents: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    documents: dict[str, Any] = field(default_factory=dict)
    holds: bool = True
    on_record: Callable[[Mapping[str, Any]], None] = lambda _record: None

    async def intend(self, intent: Mapping[str, Any], *, hold: bool) -> None:
        self.intents.append(dict(intent))

    def lease_holds(self) -> bool:
        return self.holds

    async def save_record(self, record: Mapping[str, Any]) -> None:
        self.record = dict(record)
        self.on_record(record)

    async def change_document(self, name: str, rule: Callable[..., Any]) -> Any:
        document, result = rule(self.documents.get(name), datetime.now(UTC))
        if document is None:
            self.documents.pop(name, None)
        else:
            self.documents[name] = document
        return result


@dataclass
class PassBench:
    """One resource and its passes.  `cloud` may be any port; `of_simulator` makes one over the simulator's state."""

    kind: Kind[Any, Any, Any]
    key: Key
    metadata: dict[str, Any]
    spec: dict[str, Any]
    cloud: CloudPort
    clock: StandingClock
    keyring: Keyring
    region: RegionSpec | None = None
    identity: str | None = None
    directory: Directory = field(default_factory=Directory)
    requests: NoRequests = field(default_factory=NoRequests)
    book: MemoryBook = field(default_factory=MemoryBook)
    extras: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    generation: int = 1
    deleting: bool = False
    asked: tuple[Asked, ...] = ()
    notes: Notes = field(default_factory=Notes)
    settle: float = 65.0
    writes: list[Mapping[str, Any]] = field(default_factory=list)
    _requests: Requests | None = None

    async def run(self) -> Ending:
        """One pass; status and record carry over."""
        p: Pass[Any, Any, Any] = Pass(
            resource=self.resource(),
            region_id=self.key.region,
            region=self.region,
            identity_id=self.key.id if self.key.kind == "identity" else self.identity,
            now=self.clock.now(),
            cloud=self.cloud,
            directory=self.directory,
            requests=self._requests or self.requests,
            book=self.book,
            extras={"keyring": self.keyring, **self.extras},
            remembered=self.notes.of(self.key),
        )
        if self.key.kind == "identity":
            versions = iter(range(len(self.book.intents) + 1, 1_000_000))
            self.book.on_record = lambda r: self.keyring.put_identity(
                self.key.region, self.key.id, dict(r), next(versions)
            )
        ending = await drive(self.kind, p, self.memory())
        self.status = merged(self.status, {"absentSince": None, **ending.status}, self.clock.now())
        self.status["observedGeneration"] = self.generation
        self.notes.add(p.resource.key, p.noted)
        self.writes = list(p.writes)
        opened = [w for w in p.writes if w["creates"] and not w["answered"]]
        self.asked = tuple(Asked(w["service"], w["verb"], parse_time(w["at"])) for w in opened)
        return ending

    def memory(self) -> Memory:
        """What earlier passes leave for the next one."""
        absent = self.status.get("absentSince")
        return Memory(
            asked=self.asked, settle=self.settle, absent_since=parse_time(absent) if absent else None
        )

    async def until_settled(self, passes: int = 20, pause: float = 10.0) -> Ending:
        """Passes, `pause` seconds apart, until one does not yield."""
        from roadstead.reconcile.decision import Yield

        for _ in range(passes):
            ending = await self.run()
            if not isinstance(ending.outcome, Yield):
                return ending
            self.clock.advance(pause)
        return ending

    def resource(self) -> Resource[Any, Any]:
        bare = {k: v for k, v in self.status.items() if k != "conditions"}
        return Resource(
            key=self.key,
            metadata=Metadata.model_validate(self.metadata),
            spec=self.kind.spec.model_validate(self.spec),
            status=self.kind.status.model_validate(bare),
            generation=self.generation,
            incarnation=1,
            deleting=self.deleting,
            conditions=conditions_of(self.status),
            record=dict(self.book.record),
        )

    def edit(self, **spec: Any) -> None:
        """A spec edit: the generation goes up."""
        self.spec = {**self.spec, **spec}
        self.generation += 1


def view(kind: str, ident: str, region: str, project: str = "p", **parts: Any) -> StatusView:
    """A provisioned StatusView for a directory: parts may give metadata, spec, status."""
    status = {"provisioningStatus": "provisioned", "observedGeneration": 1, **parts.get("status", {})}
    return StatusView(
        key=Key(region, project, kind, ident),
        metadata=parts.get("metadata", {}),
        spec=parts.get("spec", {}),
        status=status,
        generation=1,
        incarnation=1,
        resource_version=parts.get("resource_version", 1),
    )


def engine(simulator: Any, keyring: Keyring, clock: StandingClock, **options: Any) -> CloudEngine:
    """The production engine over the simulator's state."""
    return CloudEngine(DirectSender(simulator, clock), keyring, clock, **options)


__all__ = ["MemoryBook", "NoRequests", "PassBench", "StandingClock", "engine", "replace", "view"]
