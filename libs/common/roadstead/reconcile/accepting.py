"""A spec that was found good takes effect: the first of a life, or an edit of the one that is.

Pure.  Who may do so, and what is wrong with a spec, is for `ingest` and `ownership`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from roadstead.events import canonical, dump
from roadstead.reconcile.decision import Code
from roadstead.reconcile.kind import Kind, Metadata, Problem
from roadstead.reconcile.rules import published, trace_of, wake
from roadstead.reconcile.status import available, with_condition
from roadstead.store.api import Change, Outgoing, Row, Work
from roadstead.subjects import Key, spec_subject


class Ingested(StrEnum):
    """What became of a spec message."""

    ACCEPTED = "accepted"
    UNCHANGED = "unchanged"
    OLDER = "older"
    REFUSED = "refused"
    DELETING = "deleting"
    ABSENT = "absent"  # a delete for what is not (any more); remembered, so that older events cannot make it
    NEXT_LIFE = "next_life"  # kept until the deletion in progress is proved


@dataclass(frozen=True)
class IngestResult:
    what: Ingested
    generation: int = 0
    problems: tuple[Problem, ...] = ()
    row: Row | None = None


def accept(
    row: Row | None,
    now: datetime,
    kind: Kind[Any, Any, Any],
    key: Key,
    metadata: dict[str, Any],
    spec: Mapping[str, Any],
    position: tuple[int, int],
    cause: Mapping[str, Any],
    warnings: Sequence[str] = (),
) -> Change:
    epoch, sequence = position
    parsed = Metadata.model_validate(metadata)
    admission = kind.admit(key, parsed, kind.spec.model_validate(spec))
    metadata = {**metadata, **admission.metadata}
    new_life = row is None or row.gone_at is not None or row.generation == 0
    generation = 1 if row is None else row.generation + 1
    text = "; ".join(warnings)
    if new_life:
        base = Row(
            key=key,
            identity=group_of(key, metadata, spec),
            metadata=metadata,
            spec=dict(spec),
            generation=generation,
            incarnation=row.incarnation + 1 if row is not None and row.gone_at is not None else 1,
            epoch=epoch,
            sequence=sequence,
            born_epoch=epoch,
            born_sequence=sequence,
            warnings=tuple(warnings),
            resource_version=row.resource_version if row is not None else 0,
            record_version=row.record_version if row is not None else 0,
            consumers=row.consumers if row is not None and row.gone_at is None else (),
            created_at=now,
            work=row.work if row is not None else Work(),
        )
        status = available({}, "Provisioning", "", Code.NONE, now)
        if row is not None and row.gone_at is None and row.status:
            status = {**row.status, **status}
            status.pop("refusal", None)
    else:
        assert row is not None
        same = canonical(spec) == canonical(row.spec)
        base = replace(
            row,
            metadata=metadata,
            spec=dict(spec),
            generation=row.generation if same else generation,
            failures=row.failures if same else 0,
            epoch=epoch,
            sequence=sequence,
            warnings=tuple(warnings),
            refusal=(),
        )
        status = {k: v for k, v in row.status.items() if k != "refusal"}
    base = replace(base, status=with_condition(status, "Accepted", "True", "Accepted", text, now))
    outgoing = [Outgoing(spec_subject(p.key), dump(p.body), trace_of(cause)) for p in admission.publish]
    if not new_life and row is not None and base.generation == row.generation:
        if canonical(base.status) == canonical(row.status) and canonical(base.metadata) == canonical(
            row.metadata
        ):
            return Change(base, result=IngestResult(Ingested.UNCHANGED, base.generation, row=base))
        base, out = published(base, **trace_of(cause))
        return Change(
            base, [*outgoing, out], result=IngestResult(Ingested.UNCHANGED, base.generation, row=base)
        )
    base, out = published(wake(base, now, cause), **trace_of(cause))
    return Change(base, [*outgoing, out], result=IngestResult(Ingested.ACCEPTED, base.generation, row=base))


def group_of(key: Key, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """The fair-share group: identity, else network, else the resource itself."""
    if metadata.get("identityId"):
        return str(metadata["identityId"])
    network = network_of(metadata, spec)
    return network or key.id


def network_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    """The network a resource hangs on, wherever its kind says so."""
    if metadata.get("networkId"):
        return str(metadata["networkId"])
    if isinstance(spec.get("networkID"), str):
        return str(spec["networkID"])
    networks = spec.get("networks")
    if isinstance(networks, list) and networks and isinstance(networks[0], Mapping):
        value = networks[0].get("id")
        return str(value) if value else None
    return None
