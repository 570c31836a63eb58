"""What the noop provider says: pure but for the ids of ports that it makes up.

Its answers are those of the original's noop driver.  A `Manner` makes it slow, silent, unwilling or unable, method by method.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ADDRESS = "198.0.2.5"
MORE_ADDRESSES = "198.0.3."
FLAVOR_METADATA = {"amp_image_tag": "The glance image tag to use for this load balancer."}
ZONE_METADATA = {
    "compute_zone": "The compute availability zone to use for this loadbalancer.",
    "volume_zone": "The volume availability zone to use for this loadbalancer.",
}
EVERY = "*"  # stands for all methods
REFUSALS = ("Conflict", "DriverError", "NotImplemented", "UnsupportedOption")


@dataclass(frozen=True)
class Manner:
    """delay: seconds before a call is reported.  fails: methods whose calls are reported as failed.  silent: whose calls are taken and
    never reported.  refuses: method -> class of the refusal when it is checked or asked."""

    delay: float = 0.0
    fails: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    refuses: Mapping[str, str] = field(default_factory=dict)

    def is_silent(self, method: str) -> bool:
        return bool({method, EVERY} & self.silent)

    def does_fail(self, method: str) -> bool:
        return bool({method, EVERY} & self.fails)


def check(request: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
    """The reply to a check."""
    return _refusal(str(request.get("method")), manner) or {"ok": True}


def ask(method: str, request: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
    """The reply to a question."""
    if (refusal := _refusal(method, manner)) is not None:
        return refusal
    arguments = request.get("arguments")
    given: Sequence[Any] = arguments if isinstance(arguments, list) else []
    if method == "create_vip_port":
        if len(given) < 3 or not isinstance(given[2], dict):
            return _error("DriverError", "create_vip_port needs the wanted VIP")
        more = given[3] if len(given) > 3 and isinstance(given[3], list) else []
        return {"ok": True, "returns": [_port(given[2]), _additional(more)]}
    if method == "get_supported_flavor_metadata":
        return {"ok": True, "returns": FLAVOR_METADATA}
    if method == "get_supported_availability_zone_metadata":
        return {"ok": True, "returns": ZONE_METADATA}
    if method in ("validate_flavor", "validate_availability_zone"):
        return {"ok": True, "returns": None}
    return _error("NotImplemented", None)


def _port(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "vip_address": wanted.get("vip_address") or ADDRESS,
        "vip_network_id": wanted.get("vip_network_id"),
        "vip_port_id": wanted.get("vip_port_id") or str(uuid.uuid4()),
        "vip_subnet_id": wanted.get("vip_subnet_id"),
    }


def _additional(wanted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every one has an address; the original's says back what it was told."""
    return [
        {**one, "ip_address": one.get("ip_address") or f"{MORE_ADDRESSES}{number}"}
        for number, one in enumerate(wanted, 1)
    ]


def _refusal(method: str, manner: Manner) -> dict[str, Any] | None:
    kind = manner.refuses.get(method) or manner.refuses.get(EVERY)
    return None if kind is None else _error(kind, f"{method} is refused")


def _error(kind: str, user: str | None) -> dict[str, Any]:
    return {"error": {"class": kind, "user": user, "operator": user}}


def result(call: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
    """What is reported of a call that was carried out."""
    said: dict[str, Any] = {
        "operation": call["operation"],
        "loadbalancer_id": call["loadbalancer_id"],
        "revision": call["revision"],
    }
    if manner.does_fail(str(call["method"])):
        return {
            **said,
            "outcome": "failure",
            "user": f"{call['method']} failed",
            "operator": "as it was told to",
        }
    return {**said, "outcome": "success", "statuses": statuses(call)}


def statuses(call: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Everything that stays and was touched is at work."""
    if call["verb"] == "delete" and call["object"] == "loadbalancer":
        return {}
    objects: Mapping[str, Sequence[str]] = call.get("objects") or {}
    standing: Mapping[str, Mapping[str, Sequence[str]]] = (call.get("tree") or {}).get("statuses") or {}
    unwatched = _unwatched(call.get("tree") or {})
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, ids in objects.items():
        for identifier in ids:
            if standing.get(kind, {}).get(identifier, ("",))[0] == "PENDING_DELETE":
                continue
            status = "NO_MONITOR" if identifier in unwatched else "ONLINE"
            found.setdefault(kind, []).append({"id": identifier, "operating_status": status})
    return found


def _unwatched(tree: Mapping[str, Any]) -> set[str]:
    """Members of pools without a monitor."""
    pools = (tree.get("loadbalancer") or {}).get("pools") or ()
    return {
        member["member_id"] for pool in pools if not pool.get("healthmonitor") for member in pool["members"]
    }
