"""The answers that show statistics, and the statuses of a whole tree."""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.resources.shown import Index

STATISTICS = ("bytes_in", "bytes_out", "active_connections", "total_connections", "request_errors")


def stats(sums: Mapping[str, int]) -> dict[str, Any]:
    """The answer of the statistics of a listener or a load balancer; what nobody reported is zero."""
    return {"stats": {name: sums.get(name) or 0 for name in STATISTICS}}


def statuses(tree: Tree) -> dict[str, Any]:
    """The answer of the status tree: the load balancer, its listeners, the pools that each uses, their members and monitor."""
    index = Index(tree)
    pools = {row["id"]: _pool(index, row) for row in tree.of("pool")}
    listeners = [
        {
            **_named(listener),
            "operating_status": listener["operating_status"],
            "provisioning_status": listener["provisioning_status"],
            "pools": [pools[pool] for pool in index.pools_of_listeners[listener["id"]] if pool in pools],
        }
        for listener in tree.of("listener")
    ]
    row = tree.load_balancer
    loadbalancer = {
        **_named(row),
        "operating_status": row["operating_status"],
        "provisioning_status": row["provisioning_status"],
        "listeners": listeners,
    }
    return {"statuses": {"loadbalancer": loadbalancer}}


def _named(row: Row) -> dict[str, Any]:
    return {"id": row["id"], "name": row["name"] or ""}


def _pool(index: Index, row: Row) -> dict[str, Any]:
    monitor = index.monitors.get(row["id"])
    return {
        **_named(row),
        "provisioning_status": row["provisioning_status"],
        "operating_status": row["operating_status"],
        "health_monitor": None
        if monitor is None
        else {
            **_named(monitor),
            "type": monitor["type"],
            "provisioning_status": monitor["provisioning_status"],
            "operating_status": monitor["operating_status"],
        },
        "members": [
            {
                "id": member["id"],
                "name": member["name"] or "",
                "operating_status": member["operating_status"],
                "provisioning_status": member["provisioning_status"],
                "address": member["ip_address"],
                "protocol_port": member["protocol_port"],
            }
            for member in index.members.get(row["id"], ())
        ],
    }
