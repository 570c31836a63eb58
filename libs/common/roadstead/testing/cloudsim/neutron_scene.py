"""A routed network as a region makes it, for tests that need ports, floating IPs or load balancers."""

from __future__ import annotations

from dataclasses import dataclass

from .base import JsonObject
from .caller import Stage


@dataclass
class RoutedNetwork:
    """Ids of a network with one subnet 192.168.10.0/24 (pool .128 to .254) behind a router."""

    network: str
    subnet: str
    router: str
    external: str


def routed_network(stage: Stage, name: str = "routed") -> RoutedNetwork:
    """Make the network with the privileged principal; raises when a call is refused."""
    make = stage.privileged.call
    external = str(make("network", "GET", "/v2.0/networks?router:external=true")["networks"][0]["id"])
    network = make("network", "POST", "/v2.0/networks", {"network": {"name": name}})["network"]["id"]
    wanted: JsonObject = {
        "name": name, "network_id": network, "ip_version": 4, "cidr": "192.168.10.0/24",
        "gateway_ip": "192.168.10.1",
        "allocation_pools": [{"start": "192.168.10.128", "end": "192.168.10.254"}],
    }  # fmt: skip
    subnet = make("network", "POST", "/v2.0/subnets", {"subnet": wanted})["subnet"]["id"]
    gateway = {"name": name, "external_gateway_info": {"network_id": external}}
    router = make("network", "POST", "/v2.0/routers", {"router": gateway})["router"]["id"]
    make("network", "PUT", f"/v2.0/routers/{router}/add_router_interface", {"subnet_id": subnet})
    return RoutedNetwork(network, subnet, router, external)
