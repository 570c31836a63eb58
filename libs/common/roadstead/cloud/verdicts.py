"""What an answer means: the one table from (service, verb, status, error type or text) to a Verdict.

No other code looks at status codes.  Rows are read from the top and the first that fits decides; what no row names is
decided by its status alone, so the table is total.  Words of the cloud are matched here and nowhere shown: what people
read is `safe_text`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roadstead.cloud.operations import Operation
from roadstead.cloud.port import Verdict

NO_ANSWER = 0
"""The status of a request whose bytes may have left and that nobody answered."""


@dataclass(frozen=True)
class Row:
    """One row.  None matches everything; `verb` is a whole verb or, ending in a dot, a noun's every verb.

    says: a regular expression found anywhere in the error's text; kind: one that the error's whole type matches.
    throttles: fits only when the cloud named a time to come back.
    """

    verdict: Verdict
    status: tuple[int, ...]
    service: str | None = None
    verb: str | None = None
    says: str | None = None
    kind: str | None = None
    throttles: bool = False
    creates: bool | None = None

    def fits(self, op: Operation, status: int, kind: str, text: str, retry_after: float | None) -> bool:
        return (
            status in self.status
            and (self.service is None or self.service == op.service)
            and (self.verb is None or self.verb == op.verb or _noun_of(self.verb, op.verb))
            and (self.creates is None or self.creates == op.creates)
            and (not self.throttles or bool(retry_after))
            and (self.kind is None or re.fullmatch(self.kind, kind) is not None)
            and (self.says is None or re.search(self.says, text, re.IGNORECASE) is not None)
        )


def _noun_of(noun: str, verb: str) -> bool:
    return noun.endswith(".") and verb.startswith(noun)


_QUOTA = (
    r"quota exceeded|quota has been met|exceeded for quota|exceeds available quota|LimitExceeded|"
    r"ExceedsAvailableQuota|ExceedsLimit|maximum number of .* exceed"
)
# What the cloud has none left of.  Such a refusal is an answer, whatever its status: nothing was made that a list does not show.
_EXHAUSTED = (
    r"no more ip addresses available|unable to find any ip address on external network|"
    r"no valid host (was )?found|not enough hosts available|"
    r"no valid (backend|host|storage backend) was found|no weighed backends? available|no storage could be allocated|"
    r"no (tenant|provider) network is available|insufficient (free )?(space|capacity)"
)
_EXHAUSTED_TYPES = (
    r"IpAddressGenerationFailure\w*|ExternalIpAddressExhausted|NoNetworkAvailable|"
    r"NoNetworkFoundInMaximumAllowedAttempts|NoSubnets\w*|SubnetAllocationError"
)
# A path that leads nowhere: a proxy or a missing route, which proves nothing about an object.
_NO_ROUTE = (
    r"^\s*$|^The resource could not be found\.|URL was not found|page not found|no route|^\s*<(?!.*image)"
)
_IN_USE_TYPES = (
    r"(Network|Subnet|SubnetPool|Router|Port|SecurityGroup|AddressScope|AddressGroup)InUse\w*|"
    r"RouterInterfaceInUseBy\w+|RouterExternalGatewayInUseBy\w+|L3PortInUse|ServicePortInUse"
)

ROWS: tuple[Row, ...] = (
    # Quotas come first: Cinder's carries "Retry-After: 0", Neutron's has the status of a conflict.
    Row(Verdict.QUOTA, (409,), service="network", kind="OverQuota"),
    Row(Verdict.QUOTA, (403, 409, 413), says=_QUOTA),
    Row(Verdict.EXHAUSTED, (400, 404, 409, 503), service="network", kind=_EXHAUSTED_TYPES),
    Row(Verdict.EXHAUSTED, (400, 403, 409, 413, 500, 503), creates=True, says=_EXHAUSTED),
    Row(Verdict.EXHAUSTED, (400, 409), service="network", says=_EXHAUSTED),
    Row(Verdict.THROTTLED, (429,)),
    Row(Verdict.THROTTLED, (413,), throttles=True),
    # Nova
    Row(Verdict.IMAGE_NOT_FOUND, (400,), "compute", "server.rebuild", says="Cannot find image for rebuild"),
    Row(Verdict.BUSY, (409,), "compute", "server.rebuild"),
    Row(Verdict.EXISTS, (400, 409), "compute", "attachment.create", says="already attached to instances"),
    Row(Verdict.CONFLICT, (400,), "compute", "attachment.create", says="status must be available"),
    Row(Verdict.BUSY, (400,), "compute", "attachment.delete", says=r"must be 'in-use' .* to detach"),
    Row(Verdict.EXISTS, (409,), "compute", "keypair.create"),
    # Cinder
    Row(Verdict.IN_USE, (400,), "block-storage", "volume.delete", says="status must be available or error"),
    # Keystone
    Row(Verdict.EXISTS, (409,), "identity", creates=True),
    Row(Verdict.EXISTS, (409,), "identity", "grant.put"),
    # Neutron
    Row(Verdict.IN_USE, (409,), "network", kind=_IN_USE_TYPES),
    Row(Verdict.EXISTS, (409,), "network", kind=r"\w*(Exists|AlreadyAssociated)"),
    # The same subnet named twice; an overlap with another subnet is a mistake in the request.
    Row(Verdict.EXISTS, (400,), "network", "router.add_interface", says="already has a port on subnet"),
    Row(
        Verdict.EXISTS, (400,), "network", "router.add_interface",
        says=r"of subnet (\S+) overlaps with cidr \S+ of subnet \1(?![\w-])",
    ),
    # Glance
    Row(Verdict.IN_USE, (409,), "image", "image.delete"),
    # Octavia
    Row(Verdict.BUSY, (409,), "load-balancer", says=r"Invalid state PENDING|is immutable and cannot be updated"),
    Row(Verdict.IN_USE, (400,), "load-balancer", says="it has children"),
    Row(Verdict.EXISTS, (409,), "load-balancer", says=r"already has a|already using (ip|protocol \S+ and ip)"),
    Row(Verdict.IN_USE, (409,), "load-balancer", says="in use (by|and)"),
    # Placement: a trait or class that nobody has registered yet
    Row(Verdict.GONE, (400,), "placement", says="No such (trait|resource class)"),
)  # fmt: skip

_BY_STATUS: Mapping[int, Verdict] = {
    400: Verdict.REFUSED,
    401: Verdict.UNAUTHORIZED,
    403: Verdict.FORBIDDEN,
    405: Verdict.REFUSED,
    406: Verdict.NOT_SUPPORTED,
    409: Verdict.CONFLICT,
    412: Verdict.CONFLICT,  # a revision moved on: read again
    423: Verdict.CONFLICT,
    501: Verdict.NOT_SUPPORTED,
}


def verdict(
    op: Operation, status: int, error_type: str | None, text: str, retry_after: float | None = None
) -> Verdict:
    """What a request that did not succeed means; total over every status, NO_ANSWER (0) included.

    A 403 of Keystone for a user or project may mean that it is gone: it stays FORBIDDEN, and a caller that needs to
    know asks by list.  A status that is no error at all is CONSISTENCY: nobody should have asked, or the answer is odd.
    """
    for row in ROWS:
        if row.fits(op, status, error_type or "", text, retry_after):
            return row.verdict
    if status in (404, 410):
        return _missing(op, error_type, text)
    if status == NO_ANSWER:
        return Verdict.UNKNOWN if op.writes else Verdict.UNAVAILABLE
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status == 408 or status >= 500:
        # A 503 of a proxy says nothing either: the request behind it may have been carried out.
        return Verdict.UNKNOWN if op.creates or op.destructive else Verdict.UNAVAILABLE
    return Verdict.REFUSED if status >= 400 else Verdict.CONSISTENCY


def _missing(op: Operation, error_type: str | None, text: str) -> Verdict:
    """404: GONE only where the service itself says so about a thing that the request named."""
    if re.search(_NO_ROUTE, text, re.IGNORECASE | re.DOTALL) or error_type == "HTTPNotFound":
        return Verdict.UNAVAILABLE
    names_object = "{" in op.path.replace("{project_id}", "")
    # A body may name an object as well (the network of a port); a bare list names nothing that could be gone.
    return Verdict.GONE if names_object or op.writes else Verdict.UNAVAILABLE


# ---------------------------------------------------------------- reading an error's body

_MESSAGE_KEYS = ("message", "faultstring", "detail", "title", "error_message")


def error_of(body: bytes) -> tuple[str | None, str]:
    """(type, text) of an error body of any service; type None where the service has none.

    Nova, Cinder: the word around the object.  Neutron: NeutronError.type.  Keystone: title.  Octavia: faultcode.
    """
    plain = body.decode("utf-8", "replace")
    try:
        value = json.loads(plain)
    except ValueError:
        return None, plain
    if not isinstance(value, dict):
        return None, plain
    errors = value.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return _text_or_none(errors[0].get("code")), _message(errors[0]) or plain
    if "faultstring" in value:
        return _text_or_none(value.get("faultcode")), _message(value)
    if isinstance(value.get("error_message"), str):  # Ironic puts JSON into a text
        return None, error_of(value["error_message"].encode())[1]
    inner = [(key, part) for key, part in value.items() if isinstance(part, dict)]
    if len(inner) == 1:
        key, part = inner[0]
        kind = part.get("type") or (part.get("title") if key == "error" else key)
        return _text_or_none(kind), _message(part) or plain
    if isinstance(value.get("NeutronError"), str):
        return None, value["NeutronError"]
    return None, _message(value) or plain


def _message(part: Mapping[str, Any]) -> str:
    return next((part[key] for key in _MESSAGE_KEYS if isinstance(part.get(key), str)), "")


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# ---------------------------------------------------------------- what people read

_SERVICE_WORDS: Mapping[str, str] = {
    "identity": "identity",
    "compute": "compute",
    "network": "network",
    "block-storage": "block storage",
    "image": "image",
    "load-balancer": "load balancer",
    "placement": "placement",
    "baremetal": "bare metal",
}

_SAFE: Mapping[Verdict, str] = {
    Verdict.GONE: "the {service} service does not know the object any more",
    Verdict.CONFLICT: "the {service} service refuses the change in the object's present state; it is tried again",
    Verdict.BUSY: "the {service} service is still working on the object",
    Verdict.IN_USE: "the {service} service still uses the object for something else",
    Verdict.EXISTS: "the {service} service holds such an object already; it is looked up again",
    Verdict.QUOTA: "a quota of the {service} service is used up; free something or ask for a larger quota",
    Verdict.EXHAUSTED: "the {service} service has no {what} left; an operator must free or add some; it is tried again, "
    "later each time",
    Verdict.REFUSED: "the {service} service refuses the request as it is; check the specification",
    Verdict.IMAGE_NOT_FOUND: "the requested image does not exist any more; choose another image",
    Verdict.FORBIDDEN: "the {service} service does not permit the request; an operator must check the region's rights",
    Verdict.UNAUTHORIZED: "the {service} service does not accept the credentials; an operator must check them",
    Verdict.THROTTLED: "the {service} service asks to slow down; it is tried again",
    Verdict.UNAVAILABLE: "the {service} service is not available; it is tried again",
    Verdict.UNKNOWN: "the {service} service gave no answer; what became of the request is looked up",
    Verdict.CONSISTENCY: "the {service} service shows a state that should not exist; an operator must look at it",
    Verdict.NOT_SUPPORTED: "the {service} service does not support what is asked for",
    Verdict.WRONG_CLOUD: "the region's credentials lead to another cloud; an operator must check the region",
    Verdict.KEY: "the region's credentials are incomplete; an operator must register them again",
    Verdict.LEASE_LOST: "another worker has taken over; nothing was sent",
}


_RAN_OUT: Mapping[str, str] = {
    "router.create": "free addresses on the external network",
    "router.update": "free addresses on the external network",
    "floatingip.create": "free addresses on the external network",
    "port.create": "free addresses on the network",
    "network.create": "networks to give out",
    "subnet.create": "address ranges to give out",
}
_RUNS_OUT: Mapping[str, str] = {
    "network": "free addresses",
    "compute": "host with room for the server",
    "block-storage": "storage with room for the volume",
    "load-balancer": "free addresses or hosts",
}


def safe_text(verdict: Verdict, service: str, verb: str = "") -> str:
    """One fixed sentence for people, without a word of the cloud's own; `verb` names what ran out where that is known."""
    what = _RAN_OUT.get(verb) or _RUNS_OUT.get(service, "room")
    return _SAFE[verdict].format(service=_SERVICE_WORDS.get(service, "cloud"), what=what)
