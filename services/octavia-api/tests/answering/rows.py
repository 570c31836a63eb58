"""Whole rows, as the database gives them for lists and shows."""

from datetime import datetime
from typing import Any

from roadstead_octavia.db.port import RELATIONS
from roadstead_octavia.db.rows import blank

from .client import LB, MEMBER, POOL, PROJECT

EARLY = datetime.fromisoformat("2026-01-01T00:00:00.123456")
LISTS = ("tags", "vip_sg_ids", "additional_vips", "listeners", "pools", "members", "rules", "l7policies")


def a_row(table: str, identifier: str, **values: Any) -> dict[str, Any]:
    """A shown row with nothing in its relations but what is given."""
    relations: dict[str, Any] = dict.fromkeys(RELATIONS.get(table, ()))
    relations.update({name: [] for name in relations if name in LISTS})
    row: dict[str, Any] = {**blank(table), **relations, "id": identifier}
    for name in ("provisioning_status", "operating_status"):
        if name in row:
            row[name] = "ACTIVE" if name == "provisioning_status" else "ONLINE"
    if "created_at" in row:
        row["created_at"] = EARLY
    if "enabled" in row:
        row["enabled"] = True
    if "project_id" in row:
        row["project_id"] = PROJECT
    return {**row, **values}


def a_load_balancer(identifier: str = LB, **values: Any) -> dict[str, Any]:
    vip = {"ip_address": "192.0.2.10", "port_id": None, "subnet_id": None, "network_id": None}
    vip |= {"qos_policy_id": None, "vnic_type": "normal"}
    return a_row("load_balancer", identifier, **{"name": "lb1", "vip": vip, "provider": "ovn", **values})


def a_pool(identifier: str = POOL, **values: Any) -> dict[str, Any]:
    given = {"name": "p1", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "load_balancer_id": LB}
    return a_row("pool", identifier, **given | values)


def a_member(identifier: str = MEMBER, **values: Any) -> dict[str, Any]:
    given = {"name": "", "pool_id": POOL, "ip_address": "192.0.2.21", "protocol_port": 80, "backup": False}
    return a_row("member", identifier, **given | {"vnic_type": "normal"} | values)
