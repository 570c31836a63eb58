"""The requests: what both services are asked, as (method, path, body)."""

import json
from dataclasses import dataclass
from typing import Any

NETWORK = "5f8f2c2e-8f43-4d3c-9a33-5b9f3c0d1c01"
SUBNET = "5f8f2c2e-8f43-4d3c-9a33-5b9f3c0d1c02"
PROJECT = "7c2c3e1f5ab64b7b9f0f1d2e3c4b5a69"
ROOT = "/v2/lbaas"
LIST = f"{ROOT}/loadbalancers"
SIZE = 10  # listeners, pools, and members of each pool, of the whole tree


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: Any = None

    @property
    def data(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body).encode()


def create(number: int) -> Request:
    return Request("POST", LIST, {"loadbalancer": _balancer(f"balancer {number}", [f"group{number % 7}"])})


def create_tree(number: int) -> Request:
    """A load balancer with 10 listeners, 10 pools with a monitor and 10 members each, 20 policies and 40 rules."""
    balancer = _balancer(f"tree {number}", []) | {"listeners": [_listener(at) for at in range(SIZE)]}
    return Request("POST", LIST, {"loadbalancer": balancer})


def create_with_pool(number: int) -> Request:
    pool = {"name": "empty", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    balancer = _balancer(f"batch {number}", []) | {"pools": [pool]}
    return Request("POST", LIST, {"loadbalancer": balancer})


def list_all() -> Request:
    return Request("GET", LIST)


def show(identifier: str) -> Request:
    return Request("GET", f"{LIST}/{identifier}")


def status(identifier: str) -> Request:
    return Request("GET", f"{LIST}/{identifier}/status")


def batch(pool: str, count: int) -> Request:
    members = [
        {"address": f"10.0.{n // 250}.{n % 250 + 1}", "protocol_port": 80, "weight": n % 10}
        for n in range(count)
    ]
    return Request("PUT", f"{ROOT}/pools/{pool}/members", {"members": members})


def _balancer(name: str, tags: list[str]) -> dict[str, Any]:
    vip = {"vip_network_id": NETWORK, "vip_subnet_id": SUBNET, "vip_address": "192.0.2.7"}
    return {"name": name, "project_id": PROJECT, "tags": tags, **vip}


def _listener(at: int) -> dict[str, Any]:
    monitor = {"type": "HTTP", "delay": 10, "timeout": 5, "max_retries": 3, "url_path": "/health"}
    members = [{"address": f"192.0.2.{100 + n}", "protocol_port": 8000 + at} for n in range(SIZE)]
    pool = {"name": f"pool {at}", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    return {
        "name": f"listener {at}",
        "protocol": "HTTP",
        "protocol_port": 8000 + at,
        "default_pool": {**pool, "healthmonitor": monitor, "members": members},
        "l7policies": [_policy(at, number) for number in (1, 2)],
    }


def _policy(at: int, number: int) -> dict[str, Any]:
    rules = [
        {"type": "PATH", "compare_type": "STARTS_WITH", "value": f"/{at}/{number}/{rule}"} for rule in (1, 2)
    ]
    return {"name": f"policy {number}", "action": "REJECT", "position": number, "rules": rules}
