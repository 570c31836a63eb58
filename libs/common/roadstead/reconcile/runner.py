"""The loop: claim what is due, run its pass, write how it ended.

One Runner per process.  Rows are the queue; nothing is remembered between passes but what stands in them.  A pass that loses its
lease writes nothing.  Wakes from this process arrive as a nudge at once, those of other replicas by polling.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from roadstead.clock import Clock, Durations, parse_time
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Cloud, CloudError
from roadstead.events import dump
from roadstead.reconcile import gate, rules
from roadstead.reconcile.decision import Code, Done, Outcome, Retry, Yield
from roadstead.reconcile.drive import LOOK_AGAIN, Asked, Decided, Ending, Memory, drive
from roadstead.reconcile.finish import Finished, Timing, finish
from roadstead.reconcile.kind import Kind, Need, Publication, Resource
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.views import Directory, RequestFailed, Requests, StatusView
from roadstead.region import RegionSpec
from roadstead.seal import Sealer
from roadstead.store.api import Lease, Outgoing, Row, Store
from roadstead.subjects import OWNERS, credential_subject, rpc_subject

log = structlog.get_logger("roadstead.runner")
MAX_AWAITED = 10_000


class Watcher(Protocol):
    """Telemetry of passes; every method returns at once and never raises."""

    def began(self, kind: str, row: Row, lag: float) -> "contextlib.AbstractContextManager[Any]": ...

    def ended(self, kind: str, row: Row, ending: Ending, seconds: float) -> None: ...


class Silent:
    """No telemetry."""

    def began(self, kind: str, row: Row, lag: float) -> "contextlib.AbstractContextManager[Any]":
        return contextlib.nullcontext()

    def ended(self, kind: str, row: Row, ending: Ending, seconds: float) -> None:
        return None


@dataclass
class Held:
    """A lease in memory: until when it surely holds, on the monotonic clock."""

    lease: Lease
    sure_until: float
    lost: bool = False
    resource: Resource[Any, Any] | None = None  # the row as its kind reads it, without the record

    def read(self, kind: Kind[Any, Any, Any], row: Row) -> Resource[Any, Any]:
        """Validated once a pass.  Raises what the kind's models raise."""
        if self.resource is None:
            self.resource = rules.resource_of(kind, row)
        return self.resource


@dataclass(frozen=True)
class Wiring:
    """What a Runner works with."""

    service: str
    kinds: Sequence[Kind[Any, Any, Any]]
    store: Store
    cloud: Cloud
    directory: Directory
    requests: Requests
    keyring: Keyring
    sealer: Sealer
    clock: Clock
    durations: Durations = field(default_factory=Durations)
    pace: float = 1.0
    owner: str = "one"
    max_passes: int = 64
    extras: Mapping[str, Any] = field(default_factory=dict)
    watcher: Watcher = field(default_factory=Silent)
    seed: int | None = None


class Runner:
    """Runs passes until told to stop.  `nudge()` says that something may be due now; `on_outbox` is called after commits."""

    def __init__(self, wiring: Wiring) -> None:
        self.w = wiring
        self.kinds = {k.name: k for k in wiring.kinds}
        self._running: dict[Any, Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._nudged = asyncio.Event()
        self._random = random.Random(wiring.seed)
        self._stopping = False
        self.on_outbox: Callable[[], None] = lambda: None
        self.passes = 0
        self.awaited: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self.dead = False  # set by a harness that ends this process without a drain

    def passing(self) -> tuple["asyncio.Task[None]", ...]:
        """The passes under way."""
        return tuple(self._tasks)

    def nudge(self) -> None:
        self._nudged.set()

    # ------------------------------------------------------------ the loop

    async def run(self) -> None:
        """Claim and run until cancelled or `stop`; then let running passes end within the drain time and give the rest back."""
        renewing = asyncio.create_task(self._renew_for_ever())
        try:
            while not self._stopping:
                await self._claim_some()
        finally:
            if not self.dead:
                await self._drain()
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing

    def stop(self) -> None:
        self._stopping = True
        self._nudged.set()

    async def _claim_some(self) -> None:
        free = self.w.max_passes - len(self._running)
        self._nudged.clear()
        leases: list[Lease] = []
        before = self.w.clock.monotonic()
        if free > 0:
            try:
                leases = await self.w.store.claim(self.w.owner, free, self.w.durations.lease)
            except Exception:
                log.exception("claim failed; trying again")
                await self.w.clock.sleep(1.0)
                return
        for lease in leases:
            held = Held(lease, before + self.w.durations.lease)
            self._running[lease.key] = held
            task = asyncio.create_task(self._guarded(held))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if not leases or len(self._running) >= self.w.max_passes:
            await self._wait()

    async def _wait(self) -> None:
        """Until a nudge, or until something falls due; never longer than a second (other replicas wake rows too)."""
        pause = 1.0
        if len(self._running) < self.w.max_passes:
            with contextlib.suppress(Exception):
                due = await self.w.store.next_due()
                if due is not None:
                    pause = min(pause, max(0.005, (due - await self._now()).total_seconds()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._nudged.wait()

    async def _now(self) -> datetime:
        return self.w.clock.now()

    async def _guarded(self, held: Held) -> None:
        key = held.lease.key
        try:
            await self.one(held)
        except asyncio.CancelledError:
            raise
        except Exception:
            # The store is out of reach or the program is wrong: the lease runs out and the row is claimed again.
            log.exception("pass failed", key=str(key))
        finally:
            self._running.pop(key, None)
            self.passes += 1
            self._nudged.set()

    async def _renew_for_ever(self) -> None:
        while True:
            await self.w.clock.sleep(self.w.durations.renew_every)
            held = [h for h in self._running.values() if not h.lost]
            if not held:
                continue
            before = self.w.clock.monotonic()
            try:
                kept = await self.w.store.renew([h.lease for h in held], self.w.durations.lease)
            except Exception:
                log.warning("leases could not be renewed", exc_info=True)
                continue
            for h in held:
                if h.lease.key in kept:
                    h.sure_until = max(h.sure_until, before + self.w.durations.lease)
                else:
                    h.lost = True

    async def _drain(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=self.w.durations.drain)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=5)
        left = [h.lease for h in self._running.values() if not h.lost]
        if left:
            await self.w.store.release(left)

    # ------------------------------------------------------------ one pass

    async def one(self, held: Held) -> Row | None:
        """One pass over a claimed row; the row as written, or None when the lease was lost."""
        lease = held.lease
        row = await self.w.store.get(lease.key.kind, lease.key.id)
        if row is None or not rules.holds(row, lease):
            return None
        kind = self.kinds.get(row.key.kind)
        aside, due = self._set_aside(row, kind)
        if aside or kind is None:
            change = await self.w.store.change(
                row.key, lambda r, now: rules.set_aside(r, now, lease=lease, due_at=due)
            )
            return change.result  # type: ignore[no-any-return]  # Change.result is whatever the rule says: here a Row or None
        lag = max(0.0, (self.w.clock.now() - lease.due_at).total_seconds())
        began = self.w.clock.monotonic()
        with self.w.watcher.began(row.key.kind, row, lag):
            ending, publish = await self._through(kind, row, held)
            if ending.lost:
                return None
            result = await self._finish(kind, row, held, ending, publish)
            self.w.watcher.ended(row.key.kind, row, ending, self.w.clock.monotonic() - began)
        return result

    def _set_aside(self, row: Row, kind: Kind[Any, Any, Any] | None) -> tuple[bool, datetime | None]:
        if row.gone_at is not None or row.generation == 0 or kind is None:
            return True, None
        if row.paused and row.paused_until is not None and row.paused_until <= self.w.clock.now():
            return False, None
        if row.paused:
            return True, row.paused_until
        return row.spec.get("pause") is True, None

    async def _through(
        self, kind: Kind[Any, Any, Any], row: Row, held: Held
    ) -> tuple[Ending, tuple[Publication, ...]]:
        """The gate, then the kind's own observe, decide and act."""
        try:
            opened = await self._gate(kind, row, held)
        except gate.LeaseLost:
            return Ending(Done(), lost=True), ()
        except Exception:
            log.exception("gate failed", key=str(row.key))
            return self._internal(row), ()
        if isinstance(opened, gate.Held):
            ending = self._held(row, opened)
            ending.release = opened.release if isinstance(opened, gate.Waiting) else ()
            return ending, opened.publish
        region = self._region(row)
        if region is None and row.key.kind != "region":
            text = f"the region {row.key.region} is not registered"
            rule = gate.GateRule.REGION_UNKNOWN
            return self._held(row, gate.Held(rule, Retry(Code.NOT_FOUND, text))), ()
        p = self._pass(kind, row, held, opened, region)
        try:
            ending = await drive(
                kind,
                p,
                self._memory(row),
                observe_limit=self.w.durations.call_deadline * 2,
            )
        except Exception:
            log.exception("pass raised", key=str(row.key), generation=row.generation)
            ending = self._internal(row)
        ending.writes = p.writes
        if ending.error is not None:
            e = ending.error
            log.warning("cloud", key=str(row.key), error=str(e), text=e.text[:500], request_id=e.request_id)
        return ending, ()

    def _internal(self, row: Row) -> Ending:
        return self._held(
            row, gate.Held(gate.GateRule.INTERNAL, Retry(Code.INTERNAL, "an internal error; the log has it"))
        )

    def _held(self, row: Row, held: gate.Held) -> Ending:
        outcome: Outcome = Done() if held.done or held.outcome is None else held.outcome
        message = getattr(outcome, "message", "")
        code = str(getattr(outcome, "code", ""))
        decided = Decided(
            f"{row.work.wake_seq:x}-{row.work.lease_epoch:x}",
            held.rule.value,
            None,
            message,
            row.generation,
            code,
        )
        return Ending(outcome, dict(held.status), decided=[decided], rule=held.rule.value)

    async def _gate(self, kind: Kind[Any, Any, Any], row: Row, held: Held) -> gate.Held | gate.Open:
        if row.deleting:
            return gate.before_delete(
                row,
                self.w.directory,
                lambda identity: self._fitting(row.key.region, identity),
            )
        lease = held.lease

        async def record(references: Mapping[str, int]) -> None:
            change = await self.w.store.change(
                row.key, lambda r, now: rules.granted(r, now, lease=lease, references=references)
            )
            if not change.result:
                held.lost = True
                raise gate.LeaseLost

        needs = kind.needs(held.read(kind, row))
        self._await_news(row, needs)
        now = self.w.clock.now()
        opened = await gate.take_references(row, needs, self.w.directory, self.w.requests, record, now)
        granted = opened.granted if isinstance(opened, gate.Open | gate.Waiting) else {}
        if granted:
            await record(granted)
        if (
            isinstance(opened, gate.Open)
            and opened.identity
            and not self._fitting(row.key.region, opened.identity)
        ):
            self.awaited.setdefault(("credential", opened.identity), set()).add((row.key.kind, row.key.id))
            text = f"the credentials of the identity {opened.identity} have not arrived yet"
            return gate.Held(gate.GateRule.NOT_READY, Yield(Code.WAITING, text, after=1.0))
        return opened

    def _fitting(self, region: str, identity: str) -> bool:
        """Whether we hold the credential of the identity's present life: STATUS and CREDENTIAL arrive in any order, and an old
        token may go on working in a project that is gone."""
        held = self.w.keyring.identity(region, identity)
        view = self.w.directory.get("identity", identity)
        if held is None:
            return False
        told = view.status.get("projectId") if view is not None and not view.gone else None
        return told is None or told == held.project_id

    def _await_news(self, row: Row, needs: Sequence[Need]) -> None:
        """Remember who needs what is not known here yet: its first STATUS makes the row due, not the backstop.

        Only a shortcut: it is lost with the process, and bounded.
        """
        wanted = [(n.kind, n.id) for n in needs]
        if row.metadata.get("identityId"):
            wanted.append(("identity", str(row.metadata["identityId"])))
        for target in wanted:
            view = self.w.directory.get(*target)
            if (view is None or view.gone) and len(self.awaited) < MAX_AWAITED:
                self.awaited.setdefault(target, set()).add((row.key.kind, row.key.id))

    def _region(self, row: Row) -> RegionSpec | None:
        view: StatusView | None = self.w.directory.get("region", row.key.region)
        if row.key.kind == "region":
            return RegionSpec.model_validate(row.spec)
        if view is None or view.gone:
            return None
        return RegionSpec.model_validate(view.spec)

    def _memory(self, row: Row) -> Memory:
        absent = row.status.get("absentSince")
        return Memory(
            asked=tuple(
                Asked(str(i["service"]), str(i["verb"]), parse_time(str(i["at"])))
                for i in row.intents
                if i.get("creates") and not i.get("answered")
            ),
            made=row.status.get("made", {}),
            ever=row.ever_provisioned,
            absent_since=parse_time(absent) if absent else None,
            settle=self.w.durations.settling,
            look_again=LOOK_AGAIN * self.w.pace,
        )

    def _pass(
        self, kind: Kind[Any, Any, Any], row: Row, held: Held, opened: gate.Open, region: RegionSpec | None
    ) -> Pass[Any, Any, Any]:
        record = self.w.sealer.open_json(row.record) if row.record else {}
        book = Book(self, kind, row, held)
        identity = row.key.id if row.key.kind == "identity" else opened.identity
        p: Pass[Any, Any, Any] = Pass(
            resource=replace(held.read(kind, row), record=record),
            region_id=row.key.region,
            region=region,
            identity_id=identity,
            now=self.w.clock.now(),
            cloud=self.w.cloud,
            directory=self.w.directory,
            requests=self.w.requests,
            book=book,
            targets=dict(opened.targets),
            extras={"keyring": self.w.keyring, **self.w.extras},
        )
        book.of = p
        return p

    async def _finish(
        self,
        kind: Kind[Any, Any, Any],
        row: Row,
        held: Held,
        ending: Ending,
        publish: tuple[Publication, ...],
    ) -> Row | None:
        dropped, outcome = await self._let_go(kind, row, held, ending)
        status = {"absentSince": None, **ending.status}
        if row.deleting and isinstance(outcome, Done):
            publish, outcome, leaving = self._leaving(kind, row)
            status.update(leaving)
        d = self.w.durations
        end = Finished(
            lease=held.lease,
            generation=row.generation,
            outcome=outcome,
            timing=Timing(
                d.yield_after, d.retry_after, d.retry_max, self.w.pace, d.settling, self._random.random()
            ),
            status=status,
            decided=ending.decided,
            writes=ending.writes,
            drop_references=dropped,
            publish=publish,
        )
        change = await self.w.store.change(row.key, lambda r, now: finish(r, now, kind=kind, end=end))
        result: Row | None = change.result
        if result is not None and result.gone_at is not None and kind.publishes_record:
            self.w.keyring.drop_identity(row.key.region, row.key.id)
        self.on_outbox()
        return result

    def _leaving(
        self, kind: Kind[Any, Any, Any], row: Row
    ) -> tuple[tuple[Publication, ...], Outcome, dict[str, Any]]:
        """What goes with this resource goes before its tombstone, so that its next life cannot meet the old one's remains.

        Told once; gone is what its owner says after that (a higher resource version than when it was told).
        """
        told: dict[str, int] = dict(row.status.get("leaving", {}))
        fresh: list[Publication] = []
        left: list[str] = []
        for item in kind.on_gone(rules.resource_of(kind, row)):
            view = self.w.directory.get(item.key.kind, item.key.id)
            version = view.resource_version if view is not None else 0
            if str(item.key) not in told:
                fresh.append(item)
                told[str(item.key)] = version
            elif view is not None and view.gone and version > told[str(item.key)]:
                continue
            left.append(f"{item.key.kind} {item.key.id}")
        if not left:
            return (), Done(), {"leaving": None}
        text = f"waiting for the {', '.join(left)} to go as well"
        return tuple(fresh), Yield(Code.WAITING, text, after=1.0), {"leaving": told}

    async def _let_go(
        self, kind: Kind[Any, Any, Any], row: Row, held: Held, ending: Ending
    ) -> tuple[list[str], Outcome]:
        """References that are no longer needed, released at their owners; after proof of absence all of them."""
        outcome = ending.outcome
        if not isinstance(outcome, Done):
            unneeded = list(ending.release)
        elif row.deleting:
            unneeded = list(row.references)
        else:
            needed = {gate.reference_key(n) for n in kind.needs(held.read(kind, row))}
            unneeded = [k for k in row.references if k not in needed and not k.startswith("identity/")]
        dropped: list[str] = []
        for reference in unneeded:
            target, _, ident = reference.partition("/")
            ask = {"kind": target, "id": ident, "region": row.key.region, "consumer": row.key.reference}
            try:
                reply = await self.w.requests.request(rpc_subject(OWNERS[target], "reference", "remove"), ask)
            except RequestFailed:
                return dropped, Yield(
                    Code.WAITING, f"letting go of the {target} {ident}: its owner does not answer"
                )
            if reply.get("error"):
                return dropped, Yield(Code.WAITING, f"letting go of the {target} {ident} was refused")
            dropped.append(reference)
        return dropped, outcome


@dataclass
class Book:
    """The loop's side of a pass's writes."""

    runner: Runner
    kind: Kind[Any, Any, Any]
    row: Row
    held: Held
    of: Pass[Any, Any, Any] | None = None
    reported: dict[str, Any] = field(default_factory=dict)

    async def intend(self, intent: Mapping[str, Any], *, hold: bool) -> None:
        """Stored with all earlier writes of the pass; raises LEASE_LOST when the row is no longer ours."""
        w = self.runner.w
        seconds = w.durations.call_deadline + w.durations.lease if hold else None
        before = w.clock.monotonic()
        assert self.of is not None
        writes = [dict(x) for x in self.of.writes] + [dict(intent)]
        changes = {k: v for k, v in self.of.pending_status.items() if self.reported.get(k) != v}
        lease = self.held.lease
        change = await w.store.change(
            self.row.key,
            lambda r, now: rules.intend(
                r, now, lease=lease, intents=writes, hold_seconds=seconds, status=changes
            ),
        )
        if change.result is None:
            self.held.lost = True
            raise CloudError.lease_lost()
        self.reported.update(changes)
        if changes:
            self.runner.on_outbox()
        if seconds is not None:
            self.held.sure_until = max(self.held.sure_until, before + seconds)

    def lease_holds(self) -> bool:
        return not self.held.lost and self.runner.w.clock.monotonic() < self.held.sure_until

    async def save_record(self, record: Mapping[str, Any]) -> None:
        w = self.runner.w
        sealed = w.sealer.seal_json(record)
        lease = self.held.lease
        key = self.row.key

        def message(row: Row) -> Outgoing:
            body = {"version": row.record_version, "incarnation": row.incarnation, "sealed": sealed}
            return Outgoing(credential_subject(key.region, key.id), dump(body))

        publish = message if self.kind.publishes_record else None
        change = await w.store.change(
            key, lambda r, now: rules.save_record(r, now, lease=lease, sealed=sealed, publish=publish)
        )
        if change.result is None:
            self.held.lost = True
            raise CloudError.lease_lost()
        if self.kind.publishes_record:
            w.keyring.put_identity(key.region, key.id, dict(record), int(change.result))
            self.runner.on_outbox()

    async def change_document(self, name: str, rule: Any) -> Any:
        return await self.runner.w.store.change_document(name, rule)


def spread(rows: Sequence[Row], now: datetime, over: timedelta, pick: random.Random) -> list[Row]:
    """Rows made due at random moments of the coming period: after a release whose tables changed."""
    return [
        replace(r, work=replace(r.work, due_at=now + over * pick.random(), wake_seq=r.work.wake_seq + 1))
        for r in rows
    ]
