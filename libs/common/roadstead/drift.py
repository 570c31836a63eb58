"""Facts of a server against a STATUS that calls its spec realized.

An edge is not enough to notice what others did: what somebody changed, we put right and somebody changed again reads, to those who
look now and then, as if nothing had moved.  So facts are also held against what the STATUS claims, by the monitor that sends them
and by the owner that is woken by them.  Stimulus only: what to do follows from a fresh read.
"""

from collections.abc import Mapping
from typing import Any


def contradicts(spec: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether a server whose STATUS says provisioned cannot be as the facts say: absent, on another image than the spec's (a
    reference that cannot be read says nothing), or in ERROR after it once ran."""
    if not facts.get("present", True):
        return True
    if str(facts.get("status") or "").upper() == "ERROR" and facts.get("launchedAt"):
        return True
    wanted, found = (spec.get("image") or {}).get("id"), facts.get("image")
    return bool(wanted and found and str(wanted).lower() != str(found).lower())
