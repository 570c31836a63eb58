"""Departures of what stands below a load balancer: what the original accepts and we refuse (C1 to C3, C5, C9 to C12 of the faults that
are mended on purpose).

Each rule wants a request that was carried out, and our refusal of it in exactly the words of that departure, without a call to the
provider and without a change.
"""

import json
import re
from dataclasses import dataclass
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
PREFIX = r"/v2(?:\.0)?/(?:lbaas/|octavia/)?"
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
    _refuse(line)
    return True


def _refuse(line: Line) -> None:
    """What is expected is our refusal, and nothing done."""
    expected, actual = line["expected"], line["actual"]
    expected.update(status=actual["status"], body=actual["body"], provider_calls=[], changes=[])
    expected["headers"] = {**expected["headers"], "content-type": "application/json"}


def _refusal(noun: str, identifier: str) -> dict[str, Any]:
    text = f"{noun} {identifier} is immutable and cannot be updated."
    return {"faultcode": "Client", "faultstring": text, "debuginfo": None}


@dataclass(frozen=True)
class Refused:
    """A request that the original carries out and we refuse.

    path: behind the version.  names: attributes of which the request must have one.  text: of the refusal; `{value}` in it stands for
    the value of that attribute.
    """

    id: str
    methods: tuple[str, ...]
    path: str
    names: tuple[str, ...]
    status: int
    text: str

    def explains(self, line: Line) -> bool:
        request, expected, actual = line["request"], line["expected"], line["actual"]
        if request["method"] not in self.methods or expected["status"] not in (200, 201, 202):
            return False
        if not re.fullmatch(PREFIX + self.path, request["path"]) or actual["status"] != self.status:
            return False
        body = actual.get("body")
        said = body.get("faultstring", "") if isinstance(body, dict) else ""
        return any(
            re.fullmatch(self.text.replace("{value}", re.escape(str(value))), said)
            for value in _values(request.get("body"), self.names)
        )


def _values(text: str | None, names: tuple[str, ...]) -> list[Any]:
    """What the request says under any of the names, in its root object or in the members of a batch."""
    try:
        root: Any = next(iter(json.loads(text or "{}").values()), {})
    except (ValueError, AttributeError):
        return []
    objects = root if isinstance(root, list) else [root]
    return [
        one[name] for one in objects if isinstance(one, dict) for name in names if one.get(name) is not None
    ]


WRITES = ("POST", "PUT")
OBJECTS = r"(?:listeners|pools)(?:/[^/?]+)?/?"
POINTING = r"(?:listeners|l7policies)(?:/[^/?]+)?/?"
MEMBERS = r"pools/[^/?]+/members/?(?:\?.*)?"
POINTERS = ("default_pool_id", "redirect_pool_id")
REFUSED = (
    Refused(
        *("pool-own-listener", ("POST",), "pools/?", ("listener_id",), 400),
        r"Validation failure: Listener {value} is not on the load balancer\.",
    ),
    Refused(
        *("pool-own-listener", ("POST",), "pools/?", ("listener_id",), 404),
        r"Listener {value} not found\.",
    ),
    Refused(
        *("pool-fits-listener", ("POST",), "pools/?", ("protocol",), 400),
        r"Validation failure: The pool protocol '{value}' is invalid while the listener protocol is '\w+'\.",
    ),
    Refused(
        *("pool-fits-listener", ("POST",), "pools/?", ("listener_id",), 400),
        r"Protocol PROMETHEUS listeners cannot have child objects\.",
    ),
    Refused(*("pool-that-goes", WRITES, POINTING, POINTERS, 404), r"Pool {value} not found\."),
    Refused(
        *("pool-that-goes", WRITES, POINTING, POINTERS, 409),
        r"Pool {value} is immutable and cannot be updated\.",
    ),
    Refused(
        *("deleted-listener", ("POST",), "l7policies/?", ("listener_id",), 404),
        r"Listener {value} not found\.",
    ),
    Refused(
        *("member-subnet-fixed", ("PUT",), MEMBERS, ("subnet_id",), 400),
        r"Validation failure: The subnet of member \S+ cannot be changed\.",
    ),
    Refused(
        *("member-canonical-address", WRITES, MEMBERS, ("address",), 409),
        r"Another member on this pool is already using ip {value} on protocol_port \d+",
    ),
    Refused(
        *("member-canonical-address", WRITES, MEMBERS, ("address",), 400),
        r"Validation failure: Member must be updated only once in the same request\.|{value} is not a valid option for member address",
    ),
    Refused(
        *("tls-always-checked", WRITES, OBJECTS, ("tls_versions",), 400),
        r"Validation failure: (?:Invalid TLS versions: |Empty TLS version list\.|Requested TLS versions are less than ).*",
    ),
    Refused(
        *("tls-always-checked", WRITES, OBJECTS, ("alpn_protocols",), 400),
        r"Validation failure: Empty ALPN protocol list\..*",
    ),
)


def _register(rule: Refused) -> None:
    @departure(rule.id)
    def _apply(line: Line) -> bool:
        if not rule.explains(line):
            return False
        _refuse(line)
        return True


for _rule in REFUSED:
    _register(_rule)
