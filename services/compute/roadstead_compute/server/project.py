"""The monitor's facts become Healthy, Active, latches and `observed` (behaviour.md section 11).

Pure.  Facts are what one read said; nothing here decides anything, and Available is never touched.  Facts of a read:
present, generation, status, taskState, powerState, launchedAt, createdAt, image (an id; null where the reference could not be
read), macAddress.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from roadstead.reconcile.kind import Resource
from roadstead.reconcile.status import conditions_of
from roadstead_compute.server import texts
from roadstead_compute.server.decide_retry import create_failed
from roadstead_compute.server.model import Observed, ServerSpec, ServerStatus
from roadstead_compute.server.seen import uuid_or_none

RUNNING, SHUTDOWN = 1, 4
_WAKING = ("image", "errored", "absent")


def project(
    resource: Resource[ServerSpec, ServerStatus], facts: Mapping[str, Any], now: datetime
) -> Mapping[str, Any]:
    """Status changes that follow from the facts."""
    before = resource.status.observed or Observed()
    generation = min(int(facts.get("generation", resource.generation)), resource.generation)
    if not facts.get("present", True):
        gone = before.model_copy(update={"generation": generation, "errored": False, "absent": True})
        return {"observed": gone.model_dump(mode="json", exclude_none=True)}
    state = str(facts.get("status") or "").upper()
    image = uuid_or_none(facts.get("image"))
    changes: dict[str, Any] = {"Healthy": texts.health(state)}
    reason = active_reason(state, facts.get("powerState")) or _held(resource, "Active")
    if reason is not None:
        changes["Active"] = texts.active(reason)
    changes |= _latches(resource.status, state, facts)
    observed = Observed(
        generation=generation,
        image=image or before.image,
        errored=state == "ERROR",
        absent=False,
        readable=image is not None,
        novaStatus=state or None,
        taskState=facts.get("taskState") or None,
        powerState=facts.get("powerState"),
        active=reason,
        healthy=changes["Healthy"]["reason"],
    )
    return {**changes, "observed": observed.model_dump(mode="json", exclude_none=True)}


def active_reason(state: str, power: Any) -> str | None:
    """The reason of Active; None: keep what it was (no power state, paused, suspended, crashed).

    ERROR outside BUILD reads Error (Q8).  A bare-metal server in BUILD reads Building.
    """
    match state:
        case "BUILD":
            return "Building"
        case "REBUILD":
            return "Rebuilding"
        case "ERROR":
            return "Error"
        case _:
            return {RUNNING: "Running", SHUTDOWN: "Stopped"}.get(power)


def _held(resource: Resource[ServerSpec, ServerStatus], kind: str) -> str | None:
    reason = resource.conditions.get(kind, {}).get("reason")
    return str(reason) if reason else None


def _latches(status: ServerStatus, state: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """launchedAt and scheduledAt mirror, provisionedAt is set once, macAddress heals while ACTIVE and never empties."""
    made: dict[str, Any] = {}
    launched, created = facts.get("launchedAt"), facts.get("createdAt")
    if launched:
        made["launchedAt"] = launched
        if status.provisionedAt is None:
            made["provisionedAt"] = launched
    if created:
        made["scheduledAt"] = created
    if state == "ACTIVE" and facts.get("macAddress"):
        made["macAddress"] = facts["macAddress"]
    return made


def wakes(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether an observation makes the row due: another image, errored or absent, the first readable reference after an
    unreadable one (Q2, Q3), or a create that now counts as failed.  A change of generation alone does not (Q11)."""
    old, new = _observed(before), _observed(after)
    if any(getattr(old, name) != getattr(new, name) for name in _WAKING):
        return True
    if new.readable and not old.readable:
        return True
    return _failed(after) and not _failed(before)


def _observed(status: Mapping[str, Any]) -> Observed:
    return Observed.model_validate(status.get("observed") or {})


def _failed(status: Mapping[str, Any]) -> bool:
    bare = {k: v for k, v in status.items() if k != "conditions"}
    return create_failed(ServerStatus.model_validate(bare), conditions_of(status))
