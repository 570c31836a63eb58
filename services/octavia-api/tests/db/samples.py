"""Rows and changes as tests make them."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from roadstead_octavia.db.port import Change, Insert, Operation, Touched, Tree, Write
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.options import Options

OPTIONS = Options()
PROJECT = "f0000000000000000000000000000001"


def new_id() -> str:
    return str(uuid.uuid4())


STATES: dict[str, Any] = {
    "provisioning_status": "PENDING_CREATE",
    "operating_status": "OFFLINE",
    "enabled": True,
    "project_id": PROJECT,
}


def load_balancer(**given: Any) -> dict[str, Any]:
    return {"id": new_id(), **STATES, "topology": "SINGLE", "provider": "noop", **given}


def listener(of: str, port: int = 80, **given: Any) -> dict[str, Any]:
    return {
        "id": new_id(),
        **STATES,
        "load_balancer_id": of,
        "protocol": "TCP",
        "protocol_port": port,
        **given,
    }


def pool(of: str, **given: Any) -> dict[str, Any]:
    made = {
        "id": new_id(),
        **STATES,
        "load_balancer_id": of,
        "protocol": "TCP",
        "lb_algorithm": "ROUND_ROBIN",
    }
    return {**made, **given}


def member(of: str, number: int = 1, **given: Any) -> dict[str, Any]:
    address = f"10.{number // 62500}.{number // 250 % 250}.{number % 250}"
    made = {"id": new_id(), **STATES, "pool_id": of, "ip_address": address, "protocol_port": 80}
    return {**made, "weight": 1, "backup": False, **given}


def monitor(of: str, **given: Any) -> dict[str, Any]:
    times = {"delay": 5, "timeout": 4, "fall_threshold": 3, "rise_threshold": 2}
    return {"id": new_id(), **STATES, "pool_id": of, "type": "HTTP", **times, "http_version": 1.1, **given}


def policy(of: str, position: int = 1, **given: Any) -> dict[str, Any]:
    return {"id": new_id(), **STATES, "listener_id": of, "action": "REJECT", "position": position, **given}


def rule(of: str, **given: Any) -> dict[str, Any]:
    made = {"id": new_id(), **STATES, "l7policy_id": of, "type": "PATH", "compare_type": "EQUAL_TO"}
    return {**made, "value": "/", **given}


def vip(of: str, **given: Any) -> dict[str, Any]:
    return {"load_balancer_id": of, "ip_address": "192.0.2.5", "octavia_owned": False, **given}


def operation(of: str, method: str = "loadbalancer_create", **given: Any) -> Operation:
    made: dict[str, Any] = {
        "id": new_id(),
        "provider": "noop",
        "method": method,
        "object": method.rpartition("_")[0],
        "verb": method.rpartition("_")[2],
        "touched": (Touched("load_balancer", of),),
    }
    return Operation(**{**made, **given})


def creation(
    row: Mapping[str, Any],
    *more: Write,
    quota: Mapping[str, int] | None = None,
    tags: Sequence[str] = (),
    at: datetime | None = None,
    **given: Any,
) -> Change:
    """The change that makes a load balancer."""
    writes: list[Write] = [Insert("load_balancer", row), Insert("vip", vip(row["id"])), *more]
    writes += [Insert("tags", {"resource_id": row["id"], "tag": tag}) for tag in tags]
    made = {"operation": operation(row["id"]), "project_id": row["project_id"], "quota": quota or {}}
    times = {"at": at} if at else {}
    return Change(row["id"], None, tuple(writes), **{**made, **times, **given})


async def made(database: PostgresDatabase, *more: Write, **given: Any) -> Tree:
    """A load balancer in the database."""
    row = load_balancer(**given)
    await database.commit(creation(row, *more), OPTIONS)
    tree = await database.tree(row["id"])
    assert tree is not None
    return tree


def plain(tree: Tree | None) -> dict[str, list[dict[str, Any]]]:
    """Rows of a tree without those it only uses, for comparing."""
    assert tree is not None
    used = ("flavor", "flavor_profile", "availability_zone", "availability_zone_profile")
    return {table: [dict(row) for row in rows] for table, rows in tree.rows.items() if table not in used}
