"""What a volume's pass does next (behaviour.md sections 13.1 and 13.2)."""

from datetime import datetime
from enum import StrEnum

from roadstead.reconcile.decision import Code, Decision, do, done, park, retry, wait
from roadstead.reconcile.kind import Resource
from roadstead_volumes.volume.model import VolumeSeen, VolumeSpec, VolumeStatus

ERRORED = "provider volume entered an error state"
"""The one text for every broken volume (INV-148)."""


class VolumeRule(StrEnum):
    """Rules of a volume's pass, in order."""

    NO_SURFACE = "13.1-region"
    FOREIGN = "13.1-foreign"
    MISMATCH = "13.1-identity"
    CLASSES_UNKNOWN = "13.1-class-unknown"
    NOT_OFFERED = "13.1-class"
    ABSENT = "13.1-create"
    BROKEN = "13.1-error"
    AVAILABLE = "13.1-available"
    ATTACHED = "13.1-in-use"  # Q6: a volume in use is realized
    MOVING = "13.1-moving"
    CLAIMED = "13.2-claimed"
    NOTHING_OURS = "13.2-foreign"
    GOING = "13.2-deleting"
    LEFT = "13.2-delete"
    REMOVED = "13.2-gone"


class VolumeVerb(StrEnum):
    """Each is one write to the cloud."""

    CREATE = "create"
    DELETE = "delete"


CREATING = frozenset({VolumeVerb.CREATE})
DESTRUCTIVE = frozenset({VolumeVerb.DELETE})


def decide(resource: Resource[VolumeSpec, VolumeStatus], seen: VolumeSeen, _now: datetime) -> Decision:
    """Total over every observation."""
    return _delete(resource, seen) if resource.deleting else _provision(seen)


def _provision(seen: VolumeSeen) -> Decision:
    if seen.no_surface:
        text = "the region offers no block storage; choose another region"
        return retry(VolumeRule.NO_SURFACE, Code.NOT_OFFERED, text)
    if seen.foreign:
        text = "network or identity belong to another project; name those of this project"
        return retry(VolumeRule.FOREIGN, Code.CONSISTENCY, text)
    if seen.mismatch:
        text = "the network belongs to another identity than the volume; name the network's identity or none"
        return retry(VolumeRule.MISMATCH, Code.CONSISTENCY, text)
    if seen.found is None:
        if seen.refusals is None:
            text = "the cloud lists no volume types, which is not believed at once; looking again"
            return wait(VolumeRule.CLASSES_UNKNOWN, Code.WAITING, text)
        if seen.refusals:
            text = "; ".join(problem.message for problem in seen.refusals)
            return park(VolumeRule.NOT_OFFERED, Code.NOT_OFFERED, text)
        return do(VolumeRule.ABSENT, VolumeVerb.CREATE, "a complete list shows no such volume")
    status = seen.found.status
    if status.startswith("error"):
        return park(VolumeRule.BROKEN, Code.VOLUME_ERRORED, ERRORED, terminal=True)
    if status == "available":
        return done(VolumeRule.AVAILABLE)
    if status == "in-use":
        return done(VolumeRule.ATTACHED)
    return wait(VolumeRule.MOVING, Code.BUSY, "the cloud is working on the volume")


def _delete(resource: Resource[VolumeSpec, VolumeStatus], seen: VolumeSeen) -> Decision:
    """A broken volume is deleted like any other (Q7)."""
    claim = resource.status.claimRef
    if claim is not None:
        text = f"in use, cannot be deleted yet: the server {claim.id} claims the volume"
        return wait(VolumeRule.CLAIMED, Code.IN_USE, text)
    if seen.no_surface:
        text = (
            "the region offers no block storage any more, so nothing can be proved gone; restore its section"
        )
        return retry(VolumeRule.NO_SURFACE, Code.NOT_OFFERED, text)
    if seen.foreign:
        return done(VolumeRule.NOTHING_OURS)
    if seen.found is None:
        return done(VolumeRule.REMOVED)
    if seen.found.status == "deleting":
        return wait(VolumeRule.GOING, Code.BUSY, "the cloud is deleting the volume")
    return do(VolumeRule.LEFT, VolumeVerb.DELETE, "the volume is to go")
