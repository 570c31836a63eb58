"""What may happen to a row beside ingest and the end of a pass: wakes, references, observations, intents, pauses.

Every function here is pure: (row or None, now, arguments) -> Change.  The store runs it under the row's lock and writes what it
returns, so these rules are the same on PostgreSQL and in memory, and may be run again after a lost commit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from roadstead.clock import iso
from roadstead.events import ObservedMessage, canonical
from roadstead.reconcile.kind import Kind, Metadata, Resource
from roadstead.reconcile.status import (
    conditions_of,
    merged,
    status_bytes,
    status_document,
)
from roadstead.store.api import Change, HistoryEntry, Lease, Outgoing, Row
from roadstead.subjects import status_subject


def wake(row: Row, now: datetime, cause: Mapping[str, Any]) -> Row:
    """wake_seq + 1 and due no later than now."""
    work = row.work
    due = now if work.due_at is None or work.due_at > now else work.due_at
    return replace(row, work=replace(work, wake_seq=work.wake_seq + 1, due_at=due, cause=cause))


def published(row: Row, **headers: str) -> tuple[Row, Outgoing]:
    """The row with the next resource version, and its STATUS message, which always tells all consumers."""
    row = replace(row, resource_version=row.resource_version + 1, untold_since=None)
    return row, Outgoing(status_subject(row.key), status_bytes(row), headers)


def resource_of(
    kind: Kind[Any, Any, Any], row: Row, record: Mapping[str, Any] | None = None
) -> Resource[Any, Any]:
    """The stored row as a pass sees it.  Stored specs were validated; a model that no longer takes one raises."""
    status = {k: v for k, v in row.status.items() if k != "conditions"}
    return Resource(
        key=row.key,
        metadata=Metadata.model_validate(row.metadata),
        spec=kind.spec.model_validate(row.spec),
        status=kind.status.model_validate(status),
        generation=row.generation,
        incarnation=row.incarnation,
        deleting=row.deleting,
        conditions=conditions_of(row.status),
        record=record or {},
        consumers=row.consumers,
        ever_provisioned=row.ever_provisioned,
        observed_generation=row.status.get("observedGeneration"),
    )


def trace_of(cause: Mapping[str, Any]) -> dict[str, str]:
    return {"traceparent": str(cause["traceparent"])} if cause.get("traceparent") else {}


# ---------------------------------------------------------------- references


def reference_add(row: Row | None, now: datetime, *, consumer: str) -> Change:
    """A consumer holds on to this resource: one update, unless it is going.

    STATUS tells of it a little later, with all that came or went meanwhile (`tell`): a message to each of a thousand consumers about
    each other would be a million lines.  Nobody waits for it; whoever holds on got the target's status with the answer.
    """
    if row is None or row.generation == 0 or row.gone_at is not None:
        return Change(result={"error": {"code": "UNKNOWN", "message": "no such resource"}})
    if row.deleting:
        return Change(result={"error": {"code": "DELETING", "message": "the resource is being deleted"}})
    target = status_document(replace(row, consumers=()))
    if consumer in row.consumers:
        return Change(result={"ok": True, "target": target})
    held = replace(row, consumers=tuple(sorted({*row.consumers, consumer})))
    return Change(_untold(held, now), result={"ok": True, "target": target})


def reference_remove(row: Row | None, now: datetime, *, consumer: str) -> Change:
    """Let go; a resource whose deletion waited for it falls due."""
    if row is None or consumer not in row.consumers:
        return Change(result={"ok": True})
    left = replace(row, consumers=tuple(c for c in row.consumers if c != consumer))
    if left.deleting and left.gone_at is None:
        left = wake(left, now, {"reason": "reference removed"})
    return Change(_untold(left, now), result={"ok": True})


def _untold(row: Row, now: datetime) -> Row:
    return row if row.untold_since is not None else replace(row, untold_since=now)


def tell(row: Row | None, now: datetime) -> Change:
    """STATUS with the consumers as they are; nothing when it was told meanwhile with something else."""
    if row is None or row.untold_since is None:
        return Change()
    told, out = published(row)
    return Change(told, [out])


def granted(row: Row | None, now: datetime, *, lease: Lease, references: Mapping[str, int]) -> Change:
    """The consumer's side: what is about to be asked for stands in its own row first."""
    if not holds(row, lease):
        return Change(result=False)
    assert row is not None
    return Change(replace(row, references={**row.references, **references}), result=True)


# ---------------------------------------------------------------- observations


def observe(
    row: Row | None,
    now: datetime,
    *,
    kind: Kind[Any, Any, Any],
    message: ObservedMessage,
    cause: Mapping[str, Any],
) -> Change:
    """The monitor's facts meet the row: older ones, and those read before our own last write, change nothing.

    Facts that the kind is woken by make it due, and so do those that contradict what the row claims, also when they are the same
    as last time: a pass may have put right what they told then, and somebody undone it before the next look.
    """
    if kind.project is None or row is None or row.gone_at is not None or row.deleting or row.generation == 0:
        return Change(result="ignored")
    if row.observed_at is not None and message.read_started_at <= row.observed_at:
        return Change(result="older")
    if row.written_at is not None and message.read_started_at <= row.written_at:
        return Change(result="before_write")
    facts = {"present": message.present, "readStartedAt": iso(message.read_started_at), **message.facts}
    changes = kind.project(resource_of(kind, row), facts, now)
    status = merged(row.status, changes, now)
    seen = replace(row, observed=facts, observed_at=message.read_started_at, status=status)
    changed = canonical(status) != canonical(row.status)
    woken = (changed and kind.wakes(row.status, status)) or (
        _claims(row) and kind.contradicted(row.status, row.spec, facts)
    )
    if woken:
        seen = wake(seen, now, cause)
    if not changed:
        return Change(seen, result="woken" if woken else "unchanged")
    seen, out = published(seen, **trace_of(cause))
    return Change(seen, [out], result="woken" if woken else "stored")


def _claims(row: Row) -> bool:
    """Whether its STATUS tells of the newest spec how it stands; a paused row claims nothing."""
    return (
        row.status.get("observedGeneration") == row.generation
        and not row.paused
        and row.spec.get("pause") is not True
    )


# ---------------------------------------------------------------- passes


def holds(row: Row | None, lease: Lease) -> bool:
    return row is not None and row.work.lease_epoch == lease.epoch and row.work.lease_owner == lease.owner


def intend(
    row: Row | None,
    now: datetime,
    *,
    lease: Lease,
    intents: Sequence[Mapping[str, Any]],
    hold_seconds: float | None,
    status: Mapping[str, Any],
    granted: Mapping[str, int] | None = None,
) -> Change:
    """What a pass is about to ask of the cloud, stored before it asks; result: the lease's new end, or None when it is lost."""
    if not holds(row, lease):
        return Change(result=None)
    assert row is not None
    until = lease.until
    if hold_seconds is not None:
        until = max(row.work.lease_until or now, now + timedelta(seconds=hold_seconds))
    else:
        until = row.work.lease_until or lease.until
    noted = replace(
        row,
        intents=_with_intents(row.intents, intents),
        references={**row.references, **granted} if granted else row.references,
        work=replace(row.work, lease_until=until),
    )
    if status:
        after = merged(row.status, status, now)
        if canonical(after) != canonical(row.status):
            noted, out = published(replace(noted, status=after))
            return Change(noted, [out], result=until)
    return Change(noted, result=until)


def _with_intents(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    ids = {i["intentId"] for i in new}
    return (*(i for i in old if i["intentId"] not in ids), *(dict(i) for i in new))


def save_record(
    row: Row | None, now: datetime, *, lease: Lease, sealed: str, publish: Callable[[Row], Outgoing] | None
) -> Change:
    """The private record, at once; with its CREDENTIAL message where the kind publishes it."""
    if not holds(row, lease):
        return Change(result=None)
    assert row is not None
    kept = replace(row, record=sealed, record_version=row.record_version + 1)
    return Change(kept, [publish(kept)] if publish else [], result=kept.record_version)


def pause(row: Row | None, now: datetime, *, on: bool, until: datetime | None) -> Change:
    """Freeze or thaw one resource."""
    if row is None or row.gone_at is not None:
        return Change(result={"error": {"code": "NOT_FOUND", "message": "no such resource"}})
    changed = replace(row, paused=on, paused_until=until if on else None)
    if not on:
        changed = wake(changed, now, {"reason": "resumed"})
    changed, out = published(changed)
    return Change(changed, [out], result={"ok": True})


def history_of(entries: Sequence[Mapping[str, Any]], kind: str, now: datetime) -> list[HistoryEntry]:
    return [HistoryEntry(kind, now, dict(e)) for e in entries]


def set_aside(row: Row | None, now: datetime, *, lease: Lease, due_at: datetime | None) -> Change:
    """Give the row back without a word: paused, or nothing to do for a tombstone."""
    if not holds(row, lease):
        return Change(result=None)
    assert row is not None
    due = now if row.work.wake_seq != lease.wake_seq else due_at
    if row.gone_at is not None:
        due = None
    back = replace(row, work=replace(row.work, due_at=due, lease_owner=None, lease_until=None))
    return Change(back, result=back)
