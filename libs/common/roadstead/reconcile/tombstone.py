"""The end of a life: the row stays as a tombstone, its subjects are purged, and what was kept for afterwards begins.

Pure.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from roadstead.reconcile.accepting import accept
from roadstead.reconcile.decision import Code
from roadstead.reconcile.kind import Kind
from roadstead.reconcile.rules import published, trace_of
from roadstead.reconcile.status import available
from roadstead.store.api import Change, HistoryEntry, Outgoing, Row
from roadstead.subjects import Key, credential_subject, spec_subject, status_subject


def tombstone(
    row: Row, now: datetime, kind: Kind[Any, Any, Any], outgoing: list[Outgoing], history: list[HistoryEntry]
) -> Change:
    """Absence is proved: the row stays as a tombstone, the subjects are purged, and a newer spec starts its next life."""
    status = available(row.status, "Deprovisioned", "", Code.NONE, now)
    tomb = replace(
        row,
        gone_at=now,
        next_spec=None,
        status={**status, "observedGeneration": row.generation},
        references={},
        record=None,
        intents=(),
        work=replace(row.work, due_at=None, lease_owner=None, lease_until=None),
    )
    tomb, out = published(tomb, **trace_of(row.work.cause))
    outgoing.append(out)
    outgoing.append(Outgoing(spec_subject(row.key), b"", {"stream": "SPEC"}, purge_to=row.sequence))
    outgoing.append(Outgoing(status_subject(row.key), b"", {"stream": "STATUS", "keep": "1"}, purge_to=0))
    if kind.publishes_record:
        subject = credential_subject(row.key.region, row.key.id)
        outgoing.append(Outgoing(subject, b"", {"stream": "CREDENTIAL"}, purge_to=0))
    if row.next_spec is not None:
        kept = row.next_spec
        epoch, sequence = kept["position"]
        key = Key(*kept["key"].split(".")) if "key" in kept else row.key
        born = accept(
            tomb, now, kind, key, dict(kept["metadata"]), kept["spec"], (epoch, sequence), kept["cause"]
        )
        return replace(born, outgoing=[*outgoing, *born.outgoing], history=history, result=born.row)
    return Change(tomb, outgoing, history, result=tomb)
