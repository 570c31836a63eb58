"""Facts of a server against what its STATUS claims of the newest spec: that it is realized, or why it rests unrealized.

An edge is not enough to notice what others did: what somebody changed, we put right and somebody changed again reads, to those who
look now and then, as if nothing had moved; and what a pass saw itself, ERROR say, was never among their facts.  So facts are also held
against what the STATUS claims, by the monitor that sends them and by the owner that is woken by them.  Stimulus only: what to do
follows from a fresh read.
"""

from collections.abc import Mapping
from typing import Any


def contradicts(status: Mapping[str, Any], spec: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether a server whose STATUS speaks of the newest spec cannot be as the facts say.

    Provisioned: it is absent, on another image than the spec's (a reference that cannot be read says nothing), or in ERROR after it once
    ran.  Parked on what a pass saw of it: it is absent, or what kept it parked is over.  Other states look again by themselves, or rest on
    what no facts of a server tell.
    """
    absent = not facts.get("present", True)
    broken = str(facts.get("status") or "").upper() == "ERROR" and bool(facts.get("launchedAt"))
    wanted, found = (spec.get("image") or {}).get("id"), facts.get("image")
    other = bool(wanted and found and str(wanted).lower() != str(found).lower())
    match status.get("provisioningStatus"), status.get("code"):
        case "provisioned", _:
            return absent or broken or other
        case "error", "REBUILD_CONVERGED_ERROR":
            return absent or not broken or other
        case "error", "IMAGE_UNVERIFIABLE":
            return absent or bool(found)
        case "error", "REBUILD_IMAGE_NOT_FOUND":
            return absent or bool(found and not other)
        case _:
            return False
