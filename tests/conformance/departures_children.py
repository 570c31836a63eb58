"""Departures of what stands below a load balancer: C9 of the faults that are mended on purpose."""

import re
from typing import Any

from .departures import Line, departure

NOUNS = {
    "listeners": "Listener",
    "pools": "Pool",
    "members": "Member",
    "healthmonitors": "Health Monitor",
    "l7policies": "L7 Policy",
    "rules": "L7 Rule",
}
OBJECT = re.compile(r"/v2(?:\.0)?/(?:lbaas/|octavia/)?(?:[a-z0-9]+/[^/]+/)?([a-z0-9]+)/([^/?]+)/?")


@departure("object-under-change")
def _an_object_under_change_is_immutable(line: Line) -> bool:
    """C9: recorded is the update or deletion of an object that is itself PENDING; ours names the object and touches nothing."""
    expected, actual, request = line["expected"], line["actual"], line["request"]
    found = OBJECT.fullmatch(request["path"])
    if found is None or request["method"] not in ("PUT", "DELETE") or expected["status"] not in (200, 204):
        return False
    collection, identifier = found.groups()
    refusal = _refusal(NOUNS.get(collection, ""), identifier)
    if (actual["status"], actual.get("body")) != (409, refusal):
        return False
    expected.update(status=409, body=refusal, provider_calls=[], changes=[])
    expected["headers"] = {**expected["headers"], "content-type": "application/json"}
    return True


def _refusal(noun: str, identifier: str) -> dict[str, Any]:
    text = f"{noun} {identifier} is immutable and cannot be updated."
    return {"faultcode": "Client", "faultstring": text, "debuginfo": None}
