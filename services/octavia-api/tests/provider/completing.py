"""The one way in which a whole object may differ from the recorded one: it has relations that the original had not loaded."""

from typing import Any

RELATIONS = frozenset(
    {
        "default_pool",
        "l7policies",
        "rules",
        "allowed_cidrs",
        "sni_container_refs",
        "healthmonitor",
        "members",
        "session_persistence",
        "listener_id",
        "vip_sg_ids",
        "vip_qos_policy_id",
        "client_crl_container_data",
    }
)


def differences(recorded: Any, ours: Any, path: str = "") -> list[str]:
    """Where ours is not the recorded value; relations that the recording lacks (or has empty) are no difference."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        found = []
        for key in sorted(set(recorded) | set(ours)):
            where = f"{path}.{key}"
            if key not in ours:
                found.append(f"{where}: missing, recorded {recorded[key]!r:.80}")
            elif key not in recorded:
                if key not in RELATIONS and key != "$type":
                    found.append(f"{where}: not recorded, ours {ours[key]!r:.80}")
            elif key in RELATIONS and not recorded[key]:
                continue
            else:
                found += differences(recorded[key], ours[key], where)
        return found
    if isinstance(recorded, list) and isinstance(ours, list):
        if len(recorded) != len(ours):
            return [f"{path}: {len(recorded)} recorded, {len(ours)} ours"]
        return [
            d
            for i, (a, b) in enumerate(zip(_sorted(recorded), _sorted(ours), strict=True))
            for d in differences(a, b, f"{path}[{i}]")
        ]
    return (
        []
        if recorded == ours and type(recorded) is type(ours)
        else [f"{path}: recorded {recorded!r:.80}, ours {ours!r:.80}"]
    )


_IDS = {
    "Listener": "listener_id",
    "Pool": "pool_id",
    "Member": "member_id",
    "L7Policy": "l7policy_id",
    "L7Rule": "l7rule_id",
}


def _sorted(values: list[Any]) -> list[Any]:
    """By id, since neither side orders what a database gives it."""

    def key(value: Any) -> str:
        if isinstance(value, dict):
            name = _IDS.get(value.get("$type", ""))
            return str(value.get(name or "l7rule_id") or value)
        return str(value)

    return sorted(values, key=key)
