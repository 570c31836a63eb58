"""One pass over a claimed row, from the gate to what is written at its end."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog

from roadstead.clock import parse_time
from roadstead.reconcile import gate, offers, rules
from roadstead.reconcile.book import Book
from roadstead.reconcile.decision import Code, Done, Outcome, Retry, Yield
from roadstead.reconcile.drive import Asked, Decided, Ending, Memory, drive
from roadstead.reconcile.finish import Finished, Timing, finish
from roadstead.reconcile.kind import Kind, Need, Publication
from roadstead.reconcile.notes import Notes
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.past import superseding
from roadstead.reconcile.views import RequestFailed, StatusView
from roadstead.reconcile.wiring import Held, Wiring
from roadstead.region import RegionSpec
from roadstead.store.api import Row
from roadstead.subjects import OWNERS, rpc_subject

log = structlog.get_logger("roadstead.passes")
MAX_AWAITED = 10_000


class Passes:
    """Runs single passes.  on_outbox is called after commits, on_parked after a park for what the region says; awaited says who
    waits for the first word of a resource."""

    def __init__(self, wiring: Wiring) -> None:
        self.w = wiring
        self.kinds = {k.name: k for k in wiring.kinds}
        self.on_outbox: Callable[[], None] = lambda: None
        self.on_parked: Callable[[Kind[Any, Any, Any], Row], None] = lambda _kind, _row: None
        self.awaited: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self.notes = Notes()
        self._random = random.Random(wiring.seed)

    async def one(self, held: Held) -> Row | None:
        """One pass over a claimed row; the row as written, or None when the lease was lost."""
        lease = held.lease
        known = held.known
        row = known.row if known is not None else await self.w.store.get(lease.key.kind, lease.key.id)
        if row is None or not rules.holds(row, lease):
            return None
        kind = self.kinds.get(row.key.kind)
        aside, due = self._set_aside(row, kind)
        if aside or kind is None:
            change = await held.change(
                self.w.store, lambda r, now: rules.set_aside(r, now, lease=lease, due_at=due)
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
        judged = offers.judged_by(kind, p.resource, region, p.extras)
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
        # What the pass itself learned counts where nothing was known before; nothing can move between its decision and here.
        self.notes.add(row.key, p.noted)
        ending.judged = judged or offers.judged_by(kind, p.resource, region, p.extras)
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
                lambda identity: self._has_user(row.key.region, identity),
            )
        lease = held.lease

        async def record(references: Mapping[str, int]) -> None:
            change = await held.change(
                self.w.store, lambda r, now: rules.granted(r, now, lease=lease, references=references)
            )
            if not change.result:
                held.lost = True
                raise gate.LeaseLost

        needs = kind.needs(held.read(kind, row))
        self._await_news(row, needs, kind.watches(held.read(kind, row)))
        now = self.w.clock.now()
        opened = await gate.take_references(row, needs, self.w.directory, self.w.requests, record, now)
        if isinstance(opened, gate.Open | gate.Waiting):
            held.granted.update(opened.granted)
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

    def _has_user(self, region: str, identity: str) -> bool:
        held = self.w.keyring.identity(region, identity)
        return held is not None and bool(held.user_id and held.password)

    def _await_news(self, row: Row, needs: Sequence[Need], watches: Sequence[Need]) -> None:
        """Remember who needs what is not known here yet: its first STATUS makes the row due, not the backstop.

        Only a shortcut: it is lost with the process, and bounded.
        """
        wanted = [(n.kind, n.id) for n in needs]
        if row.metadata.get("identityId"):
            wanted.append(("identity", str(row.metadata["identityId"])))
        watched = {(n.kind, n.id) for n in watches}
        for target in (*wanted, *watched):
            view = self.w.directory.get(*target)
            open_ = view is None or view.gone or (target in watched and not view.provisioned)
            if open_ and len(self.awaited) < MAX_AWAITED:
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
            look_again=self.w.durations.second_look,
        )

    def _pass(
        self, kind: Kind[Any, Any, Any], row: Row, held: Held, opened: gate.Open, region: RegionSpec | None
    ) -> Pass[Any, Any, Any]:
        record = self.w.sealer.open_json(row.record) if row.record else {}
        book = Book(self.w, self.on_outbox, kind, row, held)
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
            remembered=self.notes.of(row.key),
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
        judged = offers.ends_judged(kind, outcome)
        status = {"absentSince": None, "judgedBy": ending.judged if judged else None, **ending.status}
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
            granted=dict(held.granted),
            drop_references=dropped,
            publish=publish,
        )
        change = await held.change(
            self.w.store, lambda r, now: superseding(r, finish(r, now, kind=kind, end=end), now)
        )
        result: Row | None = change.result
        if result is not None and result.gone_at is not None:
            self.notes.forget(row.key)
        if result is not None and result.gone_at is not None and kind.publishes_record:
            self.w.keyring.drop_identity(row.key.region, row.key.id)
        if result is not None and judged:
            self.on_parked(kind, result)
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
