"""Every sentence that people read about a server, and the conditions made of them.

Passes and projections stamp through these functions alone, so that both write the same bytes for the same state (INV-113).
No text names a cause, an id of the cloud or a word of its services (errors.md section 6).
"""

from collections.abc import Mapping
from typing import Any

Stamp = dict[str, str]

_ACTIVE: Mapping[str, str] = {
    "Pending": "the server is waiting to be started",
    "Queued": "the server is waiting for a host",
    "Building": "the server is being built",
    "Rebuilding": "the server is being rebuilt",
    "Running": "the server is running",
    "Stopping": "the server is stopping",
    "Stopped": "the server is stopped",
    "Error": "the server is in an error state",
}

HEALTH_OK = "the server is healthy"
HEALTH_ERROR = "the server is in an error state"
HEALTH_UNKNOWN = "the health of the server cannot be determined"
HEALTH_RETRYING = "the server could not be created; it is removed and created again"

IMAGE_MISSING = "the specification names no image; set spec.image"
IMAGE_UNVERIFIABLE = (
    "the cloud does not report the server's image, so it cannot be verified; replace the server"
)
REBUILD_CONVERGED_ERROR = (
    "the server is in an error state in the cloud; choose another image or replace the server"
)
REBUILD_IMAGE_NOT_FOUND = "the requested image does not exist any more; choose another image"
REBUILDING = "the server is being rebuilt with the image of the specification"
BEFORE_FIRST_BOOT = "the image changes once the server has booted for the first time"
TASK_RUNNING = "the image changes once the operation that runs on the server has ended"
REBUILD_REFUSED_NOW = "the server is busy; the image is changed as soon as it is free"
CREATE_REMOVING = "the server that could not be created is being removed before it is created again"
CREATE_READY = "the server that could not be created is removed; it is created again"
INVENTORY_LOADING = "the flavors and images of the region are not known yet"
NETWORK_ABSENT = "the network does not exist in the cloud yet"
GROUP_ABSENT = "a security group does not exist in the cloud yet"
PORT_MISPLACED = "the server's port is on another network; an operator must look at it"
PORT_TAKEN = "the server's port is used by a server that is not this one; an operator must look at it"
ADDRESSES_MANY = "the server has more than one public address; an operator must look at it"
NO_EXTERNAL_NETWORK = "the region offers no external network; an operator must select one that exists"
LOOKING_AGAIN = "a part of the server was gone already; looking again"
SERVER_GOING = "the server is being removed"

ATTACH_WAIT_SERVER = "waiting for the server"
ATTACH_WAIT_VOLUME = "waiting for the volume"
ATTACH_WAIT = "waiting for the attachment"
ATTACH_FAILED = "the volume cannot be attached"
ATTACH_REFUSED_NOW = "the volume cannot be attached in its or the server's present state"
ATTACH_CONFLICT = "the volume is attached to another server"
ATTACH_CLAIMED = "the volume is claimed by another server"
ATTACH_NO_VOLUME = "the volume does not exist"
ATTACH_SERVER_ERROR = "the server is in an error state"
DETACHING = "the volume is being detached"
DETACH_FAILED = "the volume cannot be detached in its present state"
CLAIM_UNANSWERED = "the owner of the volume does not answer"


def create_exhausted(attempts: int) -> str:
    return f"the cloud failed to create the server after {attempts} attempts; delete it or ask an operator"


def active(reason: str) -> Stamp:
    """The Active condition: True for Running alone; the message follows from the reason."""
    return {
        "status": "True" if reason == "Running" else "False",
        "reason": reason,
        "message": _ACTIVE[reason],
    }


def healthy() -> Stamp:
    return {"status": "True", "reason": "Healthy", "message": HEALTH_OK}


def errored() -> Stamp:
    return {"status": "False", "reason": "Errored", "message": HEALTH_ERROR}


def degraded(state: str) -> Stamp:
    return {"status": "False", "reason": "Degraded", "message": f"the server is in state {state.lower()}"}


def unknown(message: str = HEALTH_UNKNOWN) -> Stamp:
    return {"status": "Unknown", "reason": "Unknown", "message": message}


def health(state: str) -> Stamp:
    """The Healthy condition of a server whose status reads `state`; "" where the cloud told none."""
    match state:
        case "ACTIVE":
            return healthy()
        case "ERROR":
            return errored()
        case "" | "UNKNOWN" | "REBUILD":
            return unknown()
        case _:
            return degraded(state)


ACCEPTED: Mapping[str, Any] = {"Active": active("Rebuilding"), "Healthy": unknown()}
"""The one stamp of a rebuild, accepted or seen in flight; never made from an answer's body (INV-112)."""

CREATED: Mapping[str, Any] = {"Active": active("Building"), "Healthy": unknown()}
"""The stamp of an accepted create, whose answer carries no status."""

RESET: Mapping[str, Any] = {
    "Active": active("Pending"),
    "Healthy": unknown(HEALTH_RETRYING),
    "privateIP": None,
    "publicIP": None,
    "launchedAt": None,
    "scheduledAt": None,
}
"""The runtime status of a server that is removed to be created again (behaviour.md section 6.3)."""
