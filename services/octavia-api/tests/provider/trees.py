"""A small tree with one of everything, for tests."""

import itertools
from datetime import UTC, datetime
from typing import Any

from roadstead_octavia.db.port import Tree
from roadstead_octavia.db.rows import made

AT = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)

PROJECT = "0c7a1b52e64d4f6e9f31c8d27a5be014"
LB = "10000000-0000-4000-8000-000000000001"
LISTENER = "20000000-0000-4000-8000-000000000001"
POOL = "30000000-0000-4000-8000-000000000001"
MEMBER = "40000000-0000-4000-8000-000000000001"
MONITOR = "50000000-0000-4000-8000-000000000001"
POLICY = "60000000-0000-4000-8000-000000000001"
RULE = "70000000-0000-4000-8000-000000000001"
IDS = {
    "load_balancer": LB,
    "listener": LISTENER,
    "pool": POOL,
    "member": MEMBER,
    "health_monitor": MONITOR,
    "l7policy": POLICY,
    "l7rule": RULE,
}


def _common(identifier: str, status: str, **more: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "project_id": PROJECT,
        "enabled": True,
        "provisioning_status": status,
        "operating_status": "OFFLINE",
        **more,
    }


def a_tree(status: str = "ACTIVE", *, revision: int = 7, version: int = 3, provider: str = "noop") -> Tree:
    """One of everything, all with that provisioning status."""
    rows: dict[str, list[dict[str, Any]]] = {
        "load_balancer": [
            _common(LB, status, description=None, provider=provider, flavor_id=None, availability_zone=None)
        ],
        "vip": [
            {
                "load_balancer_id": LB,
                "ip_address": "192.0.2.1",
                "port_id": "port-1",
                "subnet_id": "subnet-1",
                "network_id": "network-1",
                "qos_policy_id": "qos-1",
                "octavia_owned": False,
            }
        ],
        "additional_vip": [],
        "vip_security_group": [{"load_balancer_id": LB, "sg_id": "group-1"}],
        "listener": [
            _common(
                LISTENER,
                status,
                load_balancer_id=LB,
                protocol="TERMINATED_HTTPS",
                protocol_port=443,
                default_pool_id=POOL,
                tls_certificate_id="cert-1",
                insert_headers=None,
                tls_versions="TLSv1.2,TLSv1.3",
                alpn_protocols=None,
            )
        ],
        "listener_cidr": [{"listener_id": LISTENER, "cidr": "192.0.2.0/24"}],
        "sni": [{"listener_id": LISTENER, "tls_container_id": "sni-1", "position": 0}],
        "pool": [
            _common(
                POOL,
                status,
                load_balancer_id=LB,
                protocol="HTTP",
                lb_algorithm="ROUND_ROBIN",
                tls_enabled=False,
            )
        ],
        "session_persistence": [{"pool_id": POOL, "type": "SOURCE_IP", "cookie_name": None}],
        "member": [
            _common(
                MEMBER,
                status,
                pool_id=POOL,
                ip_address="192.0.2.9",
                protocol_port=80,
                weight=1,
                backup=False,
                vnic_type="normal",
            )
        ],
        "health_monitor": [
            _common(
                MONITOR,
                status,
                pool_id=POOL,
                type="HTTP",
                delay=5,
                timeout=3,
                rise_threshold=2,
                fall_threshold=3,
            )
        ],
        "l7policy": [
            _common(
                POLICY,
                status,
                listener_id=LISTENER,
                action="REDIRECT_TO_POOL",
                position=1,
                redirect_pool_id=POOL,
            )
        ],
        "l7rule": [
            _common(
                RULE,
                status,
                l7policy_id=POLICY,
                type="PATH",
                compare_type="EQUAL_TO",
                value="/x",
                invert=False,
            )
        ],
        "tags": [],
    }
    numbers = itertools.count()
    whole = {table: [made(table, row, AT, next(numbers)) for row in of] for table, of in rows.items()}
    return Tree(version, revision, whole)
