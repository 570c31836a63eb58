"""Departures in what providers are told: D1 to D4 of the faults that are mended on purpose, and a revocation list that is not forgotten.

The original leaves out of an object what its database session had not loaded at that moment.  Ours are whole.  The rule fills those
relations, and nothing else, into the recorded call, so every other field is still compared.
"""

from collections.abc import Mapping
from typing import Any

from .departures import Line, departure

RELATIONS = frozenset(
    {
        *("default_pool", "l7policies", "rules", "allowed_cidrs", "sni_container_refs"),
        *("healthmonitor", "members", "session_persistence", "listener_id"),
        *("vip_sg_ids", "vip_qos_policy_id", "client_crl_container_data"),
    }
)
_IDS = {"Listener": "listener_id", "Pool": "pool_id", "Member": "member_id", "L7Policy": "l7policy_id"} | {
    "L7Rule": "l7rule_id"
}


@departure("provider-whole-objects")
def _objects_are_whole(line: Line) -> bool:
    recorded, ours = (line[side].get("provider_calls") or [] for side in ("expected", "actual"))
    if len(recorded) != len(ours):
        return False
    touched = [
        _complete(told, said)
        for told, said in zip(recorded, ours, strict=True)
        if told.get("method") == said.get("method")
    ]
    return any(touched)


def _complete(recorded: Any, ours: Any) -> bool:
    """Fill relations that the recorded value lacks (or has empty) in from ours; whether there were any."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        touched = False
        for key, value in ours.items():
            empty = key in RELATIONS and not recorded.get(key) and (key not in recorded or value)
            if empty or (key == "$type" and key not in recorded):
                recorded[key] = value
                touched = True
            elif key in recorded:
                touched = _complete(recorded[key], value) or touched
        return touched
    if isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        found = [_complete(one, _fellow(one, place, ours)) for place, one in enumerate(recorded)]
        return any(found)
    return False


def _fellow(one: Any, place: int, ours: list[Any]) -> Any:
    """Of our values the one about the same object; the one in the same place where several are (both sides of an update)."""
    name = _IDS.get(str(one.get("$type"))) if isinstance(one, Mapping) else None
    for other in (ours[place], *ours) if name else ():
        if isinstance(other, Mapping) and other.get(name) == one.get(name):
            return other
    return ours[place]
