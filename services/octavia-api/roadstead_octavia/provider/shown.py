"""What providers may read: single objects as the driver agent gives them, and trees to render from.  Pure.

Key material is never in either; references are.
"""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.provider import models
from roadstead_octavia.provider.judge import KIND_OF, KINDS

# Every field of every model; what an object does not have is null.
FIELDS: dict[str, tuple[str, ...]] = {
    "HealthMonitor": tuple(f for f, _ in models.HEALTH_MONITOR_FIELDS),
    "L7Policy": (*(f for f, _ in models.L7POLICY_FIELDS), "rules"),
    "L7Rule": tuple(f for f, _ in models.L7RULE_FIELDS),
    "Listener": (
        *(f for f, _ in models.LISTENER_FIELDS),
        "default_pool",
        "l7policies",
        "allowed_cidrs",
        "sni_container_refs",
        "default_tls_container_data",
        "sni_container_data",
        "client_ca_tls_container_data",
        "client_crl_container_data",
    ),
    "LoadBalancer": (
        *(f for f, _ in models.LOAD_BALANCER_FIELDS),
        *(f for f, _ in models.VIP_FIELDS),
        "vip_sg_ids",
        "additional_vips",
        "flavor",
        "listeners",
        "pools",
    ),
    "Member": tuple(f for f, _ in models.MEMBER_FIELDS),
    "Pool": (
        *(f for f, _ in models.POOL_FIELDS),
        "listener_id",
        "healthmonitor",
        "members",
        "session_persistence",
        "tls_container_data",
        "ca_tls_container_data",
        "crl_container_data",
    ),
}


def whole(value: Any) -> Any:
    """A model with every field, unset ones as null, and without type names."""
    if isinstance(value, Mapping):
        name = value.get("$type")
        filled: dict[str, Any] = dict.fromkeys(FIELDS[name]) if name else {}
        return {**filled, **{key: whole(item) for key, item in value.items() if key != "$type"}}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value


def one(kind: str, identifier: str, tree: Tree | None) -> dict[str, Any]:
    """The reply to a get request; empty for what is not there, is deleted, or of no known kind."""
    if tree is None or kind not in KINDS:
        return {}
    table = KINDS[kind][0]
    row = tree.get(table, identifier)
    if row is None or row["provisioning_status"] == "DELETED":
        return {}
    if table == "load_balancer":
        model = {"additional_vips": [], **models.load_balancer(tree)}
    else:
        model = _MAKERS[table](tree, identifier)
    found: dict[str, Any] = whole(model)
    return found


_MAKERS: dict[str, Any] = {
    "listener": models.listener,
    "pool": models.pool,
    "member": models.member,
    "health_monitor": models.health_monitor,
    "l7policy": models.l7policy,
    "l7rule": models.l7rule,
}


def tree(value: Tree) -> dict[str, Any]:
    """What a worker renders from: the whole load balancer once over, its revision, and how each object stands.

    A listener names its default pool by id alone; the pool is in `pools`.  statuses: kind -> id -> [provisioning, operating].
    """
    balancer = models.load_balancer(value)
    for listener in balancer.get("listeners", ()):
        del listener["default_pool"]
    row = value.load_balancer
    vip: Row = next(iter(value.of("vip")), {})
    return {
        "loadbalancer_id": row["id"],
        "provider": row["provider"],
        "revision": value.revision,
        "vip_port_owned": bool(vip.get("octavia_owned")),
        "loadbalancer": balancer,
        "statuses": {
            kind: {r["id"]: [r["provisioning_status"], r["operating_status"]] for r in value.of(table)}
            for table, kind in KIND_OF.items()
        },
    }
