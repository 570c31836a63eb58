"""One id in two projects or regions: the message that stands first in the stream has it, in whatever order the two are handled.

Usually the first one is there when the other comes, which is refused.  Handled side by side the later one may have been accepted
already: then its life ends, at once where nothing of it can be in the cloud and by a deletion where something may, and the first
message's begins.  Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from roadstead.bus.dead import DeadLetter, Origin, dead_message
from roadstead.events import dump
from roadstead.reconcile.accepting import Ingested, IngestResult
from roadstead.reconcile.kind import Kind, Problem
from roadstead.reconcile.rules import published, trace_of, wake
from roadstead.reconcile.tombstone import tombstone
from roadstead.store.api import Change, Outgoing, Row
from roadstead.subjects import OWNERS, Key, spec_subject


def owner_of(row: Row) -> tuple[str, str]:
    """(region, project) that the id belongs to: while a later one's life ends, of the one that follows."""
    if row.next_spec is not None and "key" in row.next_spec:
        region, project, _, _ = str(row.next_spec["key"]).split(".")
        return region, project
    return row.key.region, row.key.project


def taken(row: Row) -> Problem:
    """The refusal of whoever came second.  Whose the id is stays unsaid."""
    return Problem("ID_TAKEN", "id", "this id exists under another project or region", 403)


def taken_over(
    row: Row,
    now: datetime,
    kind: Kind[Any, Any, Any],
    key: Key,
    kept: Mapping[str, Any],
    problems: Sequence[Problem],
) -> Change:
    """A spec of another project or region than the row's meets it.

    kept: its metadata, spec, position and cause, as rows keep them; problems: what is wrong with it.
    """
    if not _comes_first(row, tuple(kept["position"])):
        return Change(result=IngestResult(Ingested.REFUSED, problems=(taken(row),)))
    if problems:
        return Change(result=IngestResult(Ingested.REFUSED, problems=tuple(problems)))
    kept = {**kept, "key": str(key)}
    letters = [_letter(row)] if row.generation > 0 and row.gone_at is None else []
    if not _footprint(row) or row.gone_at is not None:
        # Whoever works on the row finds its lease gone before the first request leaves.
        work = replace(row.work, lease_epoch=row.work.lease_epoch + 1)
        change = tombstone(replace(row, next_spec=kept, work=work), now, kind, letters, [])
        born: Row = change.result
        return replace(change, result=IngestResult(Ingested.ACCEPTED, born.generation, row=born))
    if row.deleting:
        return Change(
            replace(row, next_spec=kept),
            letters,
            result=IngestResult(Ingested.NEXT_LIFE, row.generation, row=row),
        )
    going = replace(
        row,
        deleting=True,
        deletion_timestamp=now,
        generation=row.generation + 1,
        failures=0,
        next_spec=kept,
        status={**row.status, "provisioningStatus": "deprovisioning"},
    )
    going, out = published(wake(going, now, kept["cause"]), **trace_of(kept["cause"]))
    return Change(
        going, [*letters, out], result=IngestResult(Ingested.NEXT_LIFE, going.generation, row=going)
    )


def _comes_first(row: Row, position: tuple[int, ...]) -> bool:
    """Whether a message at that position was there before the one by which the row has its owner."""
    if row.next_spec is not None and "key" in row.next_spec:
        return position < tuple(row.next_spec["position"])
    if row.generation == 0 and row.gone_at is None:
        return True  # never accepted: a refused spec holds no id
    return position < (row.born_epoch, row.born_sequence)


def _footprint(row: Row) -> bool:
    """Whether this life may have left anything, in the cloud or with others; each is noted in the row before it is done."""
    return (
        row.ever_provisioned
        or row.written_at is not None
        or row.record is not None
        or bool(row.intents or row.references or row.consumers or row.status.get("made"))
    )


def _letter(row: Row) -> Outgoing:
    """The dead letter of the spec that had been accepted too early, as of one that was refused."""
    problem = taken(row)
    detail = {"code": problem.code, "field": problem.field, "message": problem.message}
    letter = DeadLetter(problem.code, problem.message, (detail,), str(row.key))
    spec = {"metadata": dict(row.metadata), "spec": dict(row.spec)}
    origin = Origin("SPEC", spec_subject(row.key), row.epoch, row.sequence, dump(spec))
    subject, body, headers = dead_message(OWNERS[row.key.kind], letter, origin)
    return Outgoing(subject, body, headers, message_id=headers.pop("Nats-Msg-Id"))
