"""The end of a pass as one pure change of the row: outcome, status, history, outgoing messages, and when it is due again.

Written only where the lease is still the pass's own; a wake that came meanwhile makes the row due at once, so that no wake and no
outcome is ever lost (architecture.md sections 3.3 and 3.7).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from roadstead.clock import parse_time
from roadstead.events import dump
from roadstead.reconcile.decision import STEADY_CODES, Code, Done, Outcome, Park, Retry, Yield
from roadstead.reconcile.drive import Decided
from roadstead.reconcile.kind import Kind, Publication
from roadstead.reconcile.rules import holds, published, trace_of
from roadstead.reconcile.status import available, conditions_of, merged
from roadstead.reconcile.tombstone import tombstone
from roadstead.store.api import Change, HistoryEntry, Lease, Outgoing, Row
from roadstead.subjects import acted_subject, decided_subject, spec_subject

SOONEST = 0.1
"""Seconds, unscaled: no pass makes its own row due again at once, whatever pause it was told."""


@dataclass(frozen=True)
class Timing:
    """Pauses in seconds, already scaled; `jitter` in [0, 1) spreads those that grow."""

    yield_after: float
    retry_after: float
    retry_max: float
    pace: float = 1.0
    settling: float = 65.0
    jitter: float = 0.0


@dataclass(frozen=True)
class Finished:
    """What the loop hands in at the end of a pass."""

    lease: Lease
    generation: int
    outcome: Outcome
    timing: Timing
    status: Mapping[str, Any] = field(default_factory=dict)
    decided: Sequence[Decided] = ()
    writes: Sequence[Mapping[str, Any]] = ()
    granted: Mapping[str, int] = field(default_factory=dict)  # references that the row does not have yet
    drop_references: Sequence[str] = ()
    publish: Sequence[Publication] = ()  # with the tombstone, or the deletes of a cascade


def finish(row: Row | None, now: datetime, *, kind: Kind[Any, Any, Any], end: Finished) -> Change:
    """Result: the new row, or None when the lease was lost and nothing was written."""
    if not holds(row, end.lease):
        return Change(result=None)
    assert row is not None
    history: list[HistoryEntry] = []
    outgoing: list[Outgoing] = [
        Outgoing(spec_subject(p.key), dump(p.body), trace_of(row.work.cause)) for p in end.publish
    ]
    row = _with_history(row, now, end, history, outgoing)
    gone = row.deleting and isinstance(end.outcome, Done) and row.generation == end.generation
    if gone:
        return tombstone(row, now, kind, outgoing, history)
    status = _status(row, now, end)
    moved = row.work.wake_seq != end.lease.wake_seq
    before = _failures(row, end.outcome)
    failures = before + 1 if isinstance(end.outcome, Retry) else 0
    due = now if moved else _due(now, end, row.deleting, before)
    references = {**row.references, **end.granted}
    finished = replace(
        row,
        status=status,
        failures=failures,
        ever_provisioned=row.ever_provisioned or (isinstance(end.outcome, Done) and not row.deleting),
        references={k: v for k, v in references.items() if k not in set(end.drop_references)},
        work=replace(row.work, due_at=due, lease_owner=None, lease_until=None),
    )
    if dump(status) != dump(row.status) or finished.ever_provisioned != row.ever_provisioned:
        finished, out = published(finished, **trace_of(row.work.cause))
        outgoing.append(out)
    return Change(finished, outgoing, history, result=finished)


def _status(row: Row, now: datetime, end: Finished) -> dict[str, Any]:
    """The kind's changes, then the provisioning axis."""
    status = merged(row.status, end.status, now)
    waiting = "Deprovisioning" if row.deleting else "Provisioning"
    match end.outcome:
        case Done() if row.deleting:
            status = available(status, waiting, "", Code.NONE, now)
        case Done():
            status = available(status, "Provisioned", "", Code.NONE, now)
        case Yield(code, message):
            status = available(status, waiting, message, code, now)
        case Park(code, message) | Retry(code, message):
            status = available(status, "Errored", message, code, now)
    if row.deleting:
        status["provisioningStatus"] = "deprovisioning"
    status["observedGeneration"] = end.generation
    return status


def _failures(row: Row, outcome: Outcome) -> int:
    """How often in a row it failed before; on the provision path another reason begins anew, because something changed."""
    if row.deleting or not isinstance(outcome, Retry):
        return row.failures
    held = conditions_of(row.status).get("Available", {})
    said = (held.get("reason"), row.status.get("code"), held.get("message"))
    return row.failures if said == ("Errored", outcome.code.value, outcome.message) else 0


def _due(now: datetime, end: Finished, deleting: bool, failures: int) -> datetime | None:
    t = end.timing
    match end.outcome:
        case Done() if deleting:
            return now
        case Done() | Park():
            return None
        case Yield(after=after):
            return now + timedelta(seconds=t.yield_after if after is None else max(after, SOONEST) * t.pace)
        case Retry(code=code, after=after, steady=steady):
            if after is not None:
                return now + timedelta(seconds=max(after, SOONEST) * t.pace)
            if not deleting and (steady or code in STEADY_CODES or failures == 0):
                return now + timedelta(seconds=t.retry_after)
            pause = min(t.retry_max, t.retry_after * 2.0 ** min(failures, 16))
            return now + timedelta(seconds=pause * (0.75 + 0.25 * t.jitter))
    raise AssertionError(end.outcome)


def _with_history(
    row: Row, now: datetime, end: Finished, history: list[HistoryEntry], outgoing: list[Outgoing]
) -> Row:
    """decided where something changed, acted for every write, unknown for a write whose answer was never seen."""
    cause = {k: row.work.cause[k] for k in ("subject", "sequence") if k in row.work.cause}
    last = dict(row.decided or {})
    for decided in end.decided:
        body: dict[str, Any] = {
            "generation": decided.generation,
            "rule": decided.rule,
            "verb": decided.verb,
            "why": decided.why,
            "code": decided.code,
            "cause": cause,
            "decisionId": decided.decision_id,
            "count": 1,
        }
        same = decided.verb is None and all(
            last.get(k) == body[k] for k in ("rule", "verb", "generation", "why", "code")
        )
        if same:
            last["count"] = int(last.get("count", 1)) + 1
        else:
            last = body
            history.append(HistoryEntry("decided", now, body))
            outgoing.append(Outgoing(decided_subject(row.key), dump(body), trace_of(row.work.cause)))
        for code in decided.events:
            history.append(HistoryEntry("event", now, {"event": code, "decisionId": decided.decision_id}))
    seen = {w["intentId"] for w in end.writes}
    lost = [dict(i) for i in row.intents if i["intentId"] not in seen and not i.get("reported")]
    for entry in (*lost, *end.writes):
        body = {k: v for k, v in entry.items() if k not in ("answered", "creates", "reported")}
        history.append(HistoryEntry("acted", now, body))
        outgoing.append(Outgoing(acted_subject(row.key), dump(body), trace_of(row.work.cause)))
    wrote = any(w["answered"] and w["outcome"] != "not_sent" for w in end.writes) or any(
        not w["answered"] for w in end.writes
    )
    still_open = [
        {**i, "reported": True}
        for i in (*(i for i in row.intents if i["intentId"] not in seen), *end.writes)
        if not i["answered"]
        and i["creates"]
        and now - parse_time(i["at"]) < timedelta(seconds=2 * end.timing.settling)
    ]
    made = dict(row.status.get("made", {}))
    for entry in (*lost, *end.writes):
        if entry.get("creates") and (not entry["answered"] or entry["outcome"] == "ok"):
            act = str(entry.get("act") or entry["verb"])
            made[act] = int(made.get(act, 0)) + 1
    return replace(
        row,
        status={**row.status, "made": made} if made else row.status,
        decided=last or None,
        intents=tuple(still_open[-8:]),
        written_at=now if wrote else row.written_at,
    )
