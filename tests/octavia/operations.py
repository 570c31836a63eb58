"""Every operation that a provider carries out, as one request each on a tree of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .building import Built, member
from .client import Client

Request = tuple[str, str, Any]


def whole(name: str, subnet: str) -> dict[str, Any]:
    """The body of a tree with one of everything and a spare pool."""
    monitor = {"type": "HTTP", "delay": 5, "timeout": 3, "max_retries": 2}
    rule = {"type": "PATH", "compare_type": "STARTS_WITH", "value": "/private"}
    pool = {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    return {
        "name": name,
        "vip_subnet_id": subnet,
        "listeners": [
            {
                "name": "web",
                "protocol": "HTTP",
                "protocol_port": 80,
                "default_pool": {
                    **pool,
                    "name": "web",
                    "healthmonitor": monitor,
                    "members": [member("192.0.2.10"), member("192.0.2.11")],
                },
                "l7policies": [{"action": "REJECT", "rules": [rule]}],
            }
        ],
        "pools": [{**pool, "name": "spare"}],
    }


@dataclass(frozen=True)
class Tree:
    """built, and the pool that nobody uses."""

    built: Built
    spare: str


async def plant(client: Client, name: str, subnet: str) -> Tree:
    """The tree of `whole`, ACTIVE."""
    lb = (await client.load_balancer(**whole(name, subnet)))["id"]
    (listener,) = await client.listed(f"listeners?loadbalancer_id={lb}")
    pools = {pool["name"]: pool["id"] for pool in await client.listed(f"pools?loadbalancer_id={lb}")}
    first, second = await client.listed(f"pools/{pools['web']}/members")
    (monitor,) = await client.listed(f"healthmonitors?pool_id={pools['web']}")
    (policy,) = await client.listed(f"l7policies?listener_id={listener['id']}")
    (rule,) = await client.listed(f"l7policies/{policy['id']}/rules")
    built = Built(
        lb,
        listener["id"],
        pools["web"],
        (first["id"], second["id"]),
        monitor["id"],
        policy["id"],
        rule["id"],
    )
    return Tree(built, pools["spare"])


def _put(path: Callable[[Tree], str], kind: str, **values: Any) -> Callable[[Tree], Request]:
    return lambda tree: ("PUT", path(tree), {kind: values})


def _delete(path: Callable[[Tree], str]) -> Callable[[Tree], Request]:
    return lambda tree: ("DELETE", path(tree), None)


def _at(number: int) -> Callable[[Tree], str]:
    return lambda tree: tree.built.paths[number]


LB, LISTENER, POOL, MEMBER, MONITOR, POLICY, RULE = (_at(n) for n in (0, 1, 2, 3, 5, 6, 7))

# By the method that the provider is called with.  Those of the load balancer's creation have no tree: see `CREATIONS`.
OPERATIONS: dict[str, Callable[[Tree], Request]] = {
    "loadbalancer_update": _put(LB, "loadbalancer", name="new"),
    "loadbalancer_delete": _delete(lambda t: f"{LB(t)}?cascade=true"),
    "loadbalancer_failover": lambda t: ("PUT", f"{LB(t)}/failover", None),
    "listener_create": lambda t: (
        "POST",
        "listeners",
        {"listener": {"loadbalancer_id": t.built.lb, "protocol": "HTTP", "protocol_port": 81}},
    ),
    "listener_update": _put(LISTENER, "listener", name="new"),
    "listener_delete": _delete(LISTENER),
    "pool_create": lambda t: (
        "POST",
        "pools",
        {"pool": {"loadbalancer_id": t.built.lb, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}},
    ),
    "pool_update": _put(POOL, "pool", name="new"),
    "pool_delete": _delete(POOL),
    "member_create": lambda t: ("POST", t.built.members_path, {"member": member("192.0.2.12")}),
    "member_update": _put(MEMBER, "member", weight=7),
    "member_delete": _delete(MEMBER),
    "member_batch_update": lambda t: (
        "PUT",
        t.built.members_path,
        {"members": [member("192.0.2.10", weight=9), member("192.0.2.13")]},
    ),
    "health_monitor_create": lambda t: (
        "POST",
        "healthmonitors",
        {"healthmonitor": {"pool_id": t.spare, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2}},
    ),
    "health_monitor_update": _put(MONITOR, "healthmonitor", delay=9),
    "health_monitor_delete": _delete(MONITOR),
    "l7policy_create": lambda t: (
        "POST",
        "l7policies",
        {"l7policy": {"listener_id": t.built.listener, "action": "REJECT"}},
    ),
    "l7policy_update": _put(POLICY, "l7policy", name="new"),
    "l7policy_delete": _delete(POLICY),
    "l7rule_create": lambda t: (
        "POST",
        f"{POLICY(t)}/rules",
        {"rule": {"type": "PATH", "compare_type": "ENDS_WITH", "value": "x"}},
    ),
    "l7rule_update": _put(RULE, "rule", value="/other"),
    "l7rule_delete": _delete(RULE),
}
CREATIONS: dict[str, Callable[[str], Request]] = {
    "create": lambda subnet: ("POST", "loadbalancers", {"loadbalancer": {"vip_subnet_id": subnet}}),
    "create_whole": lambda subnet: ("POST", "loadbalancers", {"loadbalancer": whole("graph", subnet)}),
}
