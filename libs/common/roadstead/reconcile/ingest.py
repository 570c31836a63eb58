"""A spec or delete message meets its row: accepted, unchanged, older, refused, kept for the next life.

Pure, like all rules of a row.  The order of messages is their position (stream epoch, sequence); a delete is a message of its own and
is remembered, so that no order of arrival brings back what was deleted or loses what was wished last (architecture.md section 3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from roadstead.events import SpecMessage, canonical
from roadstead.reconcile.accepting import Ingested, IngestResult, accept
from roadstead.reconcile.kind import Kind, Metadata, Problem
from roadstead.reconcile.ownership import owner_of, taken, taken_over
from roadstead.reconcile.rules import published, resource_of, trace_of, wake
from roadstead.reconcile.status import with_condition
from roadstead.store.api import Change, Row
from roadstead.subjects import Key

__all__ = ["IngestResult", "Ingested", "check", "ingest", "refuse_unread", "unknown_fields"]

METADATA_KNOWN = set(Metadata.model_fields) | {"id", "creationTime", "fixedFields"}


def check(
    kind: Kind[Any, Any, Any], key: Key, message: SpecMessage, row: Row | None
) -> tuple[list[Problem], dict[str, Any], list[str]]:
    """Every problem of a spec, its metadata as it would be stored, and warnings about unknown fields."""
    problems: list[Problem] = []
    metadata = dict(message.metadata)
    for field_name, token in (("projectId", key.project), ("regionId", key.region), ("id", key.id)):
        value = metadata.get(field_name)
        if value is None:
            continue
        if field_name == "projectId" and not kind.project_scoped:
            continue
        if value != token:
            what = {"projectId": "PROJECT_MISMATCH", "regionId": "REGION_MISMATCH", "id": "ID_MISMATCH"}[
                field_name
            ]
            problems.append(
                Problem(
                    what,
                    f"metadata.{field_name}",
                    f"metadata.{field_name} differs from the subject's {token}",
                    403,
                )
            )
    if kind.project_scoped:
        metadata["projectId"] = key.project
    else:
        metadata.pop("projectId", None)
    metadata.pop("id", None)
    try:
        parsed = Metadata.model_validate(metadata)
    except ValidationError as error:
        return [*problems, *problems_of(error, "metadata")], metadata, []
    problems += _metadata_problems(kind, key, parsed)
    try:
        spec = kind.spec.model_validate(message.spec)
    except ValidationError as error:
        return [*problems, *problems_of(error, "spec")], metadata, []
    expected = kind.id_of(parsed, spec)
    if expected is not None and expected != key.id:
        problems.append(
            Problem(
                "WRONG_ID",
                "id",
                f"the id of this {kind.name} must be {expected} (it is made from the name)",
                422,
            )
        )
    stored = None
    if row is not None and row.generation > 0 and row.gone_at is None and not row.deleting:
        stored = resource_of(kind, row)
    problems += kind.validate(spec, parsed, stored, key)
    if stored is not None:
        for name in ("organizationId", "identityId", "networkId"):
            before, after = getattr(stored.metadata, name), getattr(parsed, name)
            if after is None and before is not None:
                metadata[name] = before
            elif before is not None and after != before:
                problems.append(
                    Problem("IMMUTABLE", f"metadata.{name}", f"metadata.{name} cannot be changed", 422)
                )
    warnings = [
        f"unknown field {path}"
        for path in (*message.unknown, *unknown_fields(parsed, "metadata"), *unknown_fields(spec, "spec"))
    ]
    return (
        problems,
        metadata,
        [w for w in warnings if w.removeprefix("unknown field metadata.") not in METADATA_KNOWN],
    )


def _metadata_problems(kind: Kind[Any, Any, Any], key: Key, metadata: Metadata) -> list[Problem]:
    problems = []
    if not metadata.name:
        problems.append(Problem("NAME_MISSING", "metadata.name", "metadata.name is required", 400))
    elif len(metadata.name) > 63:
        problems.append(
            Problem("NAME_TOO_LONG", "metadata.name", "metadata.name has more than 63 characters", 400)
        )
    if kind.project_scoped:
        if not metadata.organizationId:
            problems.append(
                Problem(
                    "ORGANIZATION_MISSING",
                    "metadata.organizationId",
                    "metadata.organizationId is required",
                    400,
                )
            )
        if key.project == "_":
            problems.append(
                Problem(
                    "PROJECT_MISSING",
                    "metadata.projectId",
                    f"a {kind.name} belongs to a project; the subject has none",
                    400,
                )
            )
    return problems


def problems_of(error: ValidationError, prefix: str) -> list[Problem]:
    """Pydantic's findings as problems; input values are not repeated (they may be secret, and are the sender's own)."""
    found = []
    for item in error.errors(include_input=False, include_url=False, include_context=False):
        where = ".".join([prefix, *(str(part) for part in item["loc"])])
        found.append(
            Problem("INVALID_FIELD", where, f"{where}: {item['msg'].removeprefix('Value error, ')}", 400)
        )
    return found


def unknown_fields(model: Any, prefix: str) -> list[str]:
    """Paths of fields that no model names, depth first."""
    found: list[str] = []
    for name in getattr(model, "model_extra", None) or {}:
        found.append(f"{prefix}.{name}")
    for name in type(model).model_fields:
        value = getattr(model, name)
        items = value if isinstance(value, list) else [value]
        for index, item in enumerate(items):
            if hasattr(type(item), "model_fields"):
                path = f"{prefix}.{name}[{index}]" if isinstance(value, list) else f"{prefix}.{name}"
                found += unknown_fields(item, path)
    return found


def ingest(
    row: Row | None,
    now: datetime,
    *,
    kind: Kind[Any, Any, Any],
    key: Key,
    message: SpecMessage,
    position: tuple[int, int],
    cause: Mapping[str, Any],
) -> Change:
    """A spec or delete message at `position` (epoch, sequence) meets the row."""
    if row is not None and owner_of(row) != (key.region, key.project):
        problems, metadata, _ = ([taken(row)], {}, []) if message.delete else check(kind, key, message, None)
        kept = {
            "metadata": metadata,
            "spec": dict(message.spec),
            "position": list(position),
            "cause": dict(cause),
        }
        return taken_over(row, now, kind, key, kept, problems)
    if _overtaken(row, message, position):
        assert row is not None
        return _late_delete(row, now, message, cause)
    if row is not None and row.generation + row.sequence > 0 and position <= (row.epoch, row.sequence):
        return Change(result=IngestResult(Ingested.OLDER, row.generation, row=row))
    if row is not None and row.next_spec is not None and position <= tuple(row.next_spec["position"]):
        return Change(result=IngestResult(Ingested.OLDER, row.generation, row=row))
    if message.delete:
        return _ingest_delete(row, now, key, message, position, cause)
    problems, metadata, warnings = check(kind, key, message, row)
    if problems:
        return _refuse(row, now, key, problems, position)
    if row is not None and row.deleting and row.gone_at is None:
        kept = {
            "metadata": metadata,
            "spec": dict(message.spec),
            "position": list(position),
            "cause": dict(cause),
            **({"key": str(key)} if key != row.key else {}),
        }
        return Change(
            replace(row, next_spec=kept), result=IngestResult(Ingested.NEXT_LIFE, row.generation, row=row)
        )
    return accept(row, now, kind, key, metadata, message.spec, position, cause, warnings)


def _overtaken(row: Row | None, message: SpecMessage, position: tuple[int, int]) -> bool:
    """A delete that arrives after the spec that followed it: this life began before it and has to end."""
    return (
        row is not None
        and message.delete
        and row.generation > 0
        and row.gone_at is None
        and not row.deleting
        and (row.born_epoch, row.born_sequence) < position < (row.epoch, row.sequence)
    )


def _late_delete(row: Row, now: datetime, message: SpecMessage, cause: Mapping[str, Any]) -> Change:
    """As if it had come in order: this life ends, and the newer spec is the next one."""
    kept = {
        "metadata": dict(row.metadata),
        "spec": dict(row.spec),
        "position": [row.epoch, row.sequence],
        "cause": dict(row.work.cause),
    }
    going = replace(
        row,
        deleting=True,
        cascade=message.cascade,
        deletion_timestamp=now,
        generation=row.generation + 1,
        failures=0,
        next_spec=kept,
        status={**row.status, "provisioningStatus": "deprovisioning"},
    )
    going, out = published(wake(going, now, cause), **trace_of(cause))
    return Change(going, [out], result=IngestResult(Ingested.DELETING, going.generation, row=going))


def _ingest_delete(
    row: Row | None,
    now: datetime,
    key: Key,
    message: SpecMessage,
    position: tuple[int, int],
    cause: Mapping[str, Any],
) -> Change:
    epoch, sequence = position
    if row is None or row.gone_at is not None or row.generation == 0:
        base = row or Row(key, key.id, dict(message.metadata), {}, 0, 0, epoch, sequence, created_at=now)
        tomb = replace(
            base,
            epoch=epoch,
            sequence=sequence,
            gone_at=base.gone_at or now,
            refusal=(),
            work=replace(base.work, due_at=None),
        )
        tomb, out = published(tomb)
        return Change(tomb, [out], result=IngestResult(Ingested.ABSENT, tomb.generation, row=tomb))
    if row.deleting:
        cascade = row.cascade or (message.cascade and key == row.key)
        again = replace(row, epoch=epoch, sequence=sequence, cascade=cascade, next_spec=None)
        if again.cascade != row.cascade:
            again = wake(again, now, cause)
        return Change(again, result=IngestResult(Ingested.DELETING, row.generation, row=again))
    gone = replace(
        row,
        deleting=True,
        cascade=message.cascade,
        deletion_timestamp=now,
        epoch=epoch,
        sequence=sequence,
        generation=row.generation + 1,
        failures=0,
        status={**row.status, "provisioningStatus": "deprovisioning"},
    )
    gone, out = published(wake(gone, now, cause), **trace_of(cause))
    return Change(gone, [out], result=IngestResult(Ingested.DELETING, gone.generation, row=gone))


def _refuse(
    row: Row | None, now: datetime, key: Key, problems: Sequence[Problem], position: tuple[int, int]
) -> Change:
    """The newest spec is not in force; what was accepted before stays (architecture.md section 3.11)."""
    details = tuple({"code": p.code, "field": p.field, "message": p.message} for p in problems)
    base = row or Row(key, key.id, {}, {}, 0, 0, 0, 0, created_at=now)
    if base.gone_at is not None:
        return Change(result=IngestResult(Ingested.REFUSED, base.generation, tuple(problems), base))
    text = "; ".join(p.message for p in problems)[:2000]
    status = with_condition(base.status, "Accepted", "False", "Refused", text, now)
    refused = replace(base, refusal=details, status={**status, "refusal": [dict(d) for d in details]})
    if canonical(refused.status) == canonical(base.status):
        return Change(result=IngestResult(Ingested.REFUSED, base.generation, tuple(problems), base))
    refused, out = published(refused)
    return Change(
        refused, [out], result=IngestResult(Ingested.REFUSED, base.generation, tuple(problems), refused)
    )


def refuse_unread(row: Row | None, now: datetime, key: Key, problem: Problem) -> Change:
    """A message that could not even be read, for a resource that its subject names."""
    if row is not None and (row.key.region, row.key.project) != (key.region, key.project):
        return Change()
    return _refuse(row, now, key, [problem], (0, 0))
