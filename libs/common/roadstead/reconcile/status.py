"""The status document of a resource: conditions, what readers derive from them, and the STATUS message.

Available, Accepted and the derived fields are written here only; a kind's decisions may stamp Healthy and Active (resources.md
section 0.2), a Region's CloudReachable.  lastTransitionTime moves only when status or reason moves, so that quiet passes change no byte.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from roadstead.clock import iso
from roadstead.events import dump
from roadstead.reconcile.decision import Code
from roadstead.store.api import Row
from roadstead.subjects import NO_PROJECT

STAMPED = ("Healthy", "Active", "CloudReachable")
DERIVED = {
    "Provisioned": "provisioned",
    "Provisioning": "provisioning",
    "Errored": "error",
    "Cancelled": "error",
    "Deprovisioning": "deprovisioning",
    "Deprovisioned": "deprovisioned",
}


def conditions_of(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {c["type"]: c for c in status.get("conditions", ())}


def with_condition(
    status: Mapping[str, Any], kind: str, state: str, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    """The status with that condition set; everything else, order included, as it was."""
    conditions = [dict(c) for c in status.get("conditions", ())]
    held = next((c for c in conditions if c["type"] == kind), None)
    fresh = {
        "type": kind,
        "status": state,
        "reason": reason,
        "message": message,
        "lastTransitionTime": iso(now),
    }
    if held is None:
        conditions.append(fresh)
    else:
        if held["status"] == state and held["reason"] == reason:
            fresh["lastTransitionTime"] = held["lastTransitionTime"]
        held.update(fresh)
    return {**status, "conditions": sorted(conditions, key=lambda c: str(c["type"]))}


def merged(status: Mapping[str, Any], changes: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """A kind's changes applied: stamps become conditions, None clears a field, the rest replaces."""
    result = dict(status)
    for name, value in changes.items():
        if name in STAMPED:
            result = with_condition(
                result, name, value["status"], value["reason"], value.get("message", ""), now
            )
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def available(
    status: Mapping[str, Any], reason: str, message: str, code: Code, now: datetime
) -> dict[str, Any]:
    """The provisioning axis: condition, derived word and code together."""
    state = "True" if reason in ("Provisioned", "Deprovisioned") else "False"
    result = with_condition(status, "Available", state, reason, message, now)
    result["provisioningStatus"] = DERIVED[reason]
    if code:
        result["code"] = code.value
    else:
        result.pop("code", None)
    return result


def status_document(row: Row) -> dict[str, Any]:
    """The STATUS envelope of a row (events.md section 2): also what `get` answers."""
    metadata = {
        **row.metadata,
        "id": row.key.id,
        "generation": row.generation,
        "incarnation": row.incarnation,
    }
    metadata["regionId"] = row.key.region
    if row.key.project != NO_PROJECT:
        metadata["projectId"] = row.key.project  # also of what was never accepted
    if row.created_at is not None:
        metadata["creationTime"] = iso(row.created_at)
    if row.deletion_timestamp is not None:
        metadata["deletionTimestamp"] = iso(row.deletion_timestamp)
    document: dict[str, Any] = {
        "kind": row.key.kind,
        "metadata": metadata,
        "spec": dict(row.spec),
        "specPosition": {"epoch": row.epoch, "sequence": row.sequence},
        "resourceVersion": row.resource_version,
        "status": dict(row.status),
        "consumers": list(row.consumers),
        "references": dict(row.references),
    }
    if row.gone_at is not None:
        document["gone"] = iso(row.gone_at)
    if row.paused or row.paused_until is not None:
        document["paused"] = iso(row.paused_until) if row.paused_until else True
    if row.ever_provisioned:
        document["everProvisioned"] = True
    if row.cascade:
        document["cascade"] = True
    if (row.born_epoch, row.born_sequence) != (row.epoch, row.sequence):
        # Where this life began: what a lost database needs to tell a late delete from an old one.
        document["bornPosition"] = {"epoch": row.born_epoch, "sequence": row.born_sequence}
    return document


def status_bytes(row: Row) -> bytes:
    return dump(status_document(row))
