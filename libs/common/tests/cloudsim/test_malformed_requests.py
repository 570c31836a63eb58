"""Whatever a client sends, the network, image, volume, load balancer and placement services answer it."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Stage, stage
from roadstead.testing.cloudsim.base import Service
from roadstead.testing.cloudsim.neutron_scene import routed_network

SERVICES = ("neutron", "glance", "cinder", "octavia", "placement")
ODD: tuple[Any, ...] = (
    None,
    [],
    {},
    "x",
    7,
    -1,
    True,
    [1],
    {"a": 1},
    ["x"],
    [{}],
    [None],
    "10.0.0.0/8",
    "\u0000",
    10**12,
)
FIELDS = (
    "name", "description", "network_id", "subnet_id", "cidr", "ip_version", "gateway_ip", "allocation_pools",
    "dns_nameservers", "host_routes", "fixed_ips", "security_groups", "allowed_address_pairs", "mac_address",
    "external_gateway_info", "floating_network_id", "port_id", "security_group_id", "direction", "protocol",
    "port_range_min", "remote_ip_prefix", "segments", "provider:network_type", "provider:segmentation_id", "mtu",
    "size", "volume_type", "metadata", "imageRef", "multiattach", "extra_specs", "visibility", "tags", "min_disk",
    "disk_format", "method", "vip_subnet_id", "vip_address", "vip_port_id", "vip_network_id", "listeners", "pools",
    "provider", "loadbalancer_id", "listener_id", "protocol_port", "lb_algorithm", "session_persistence", "members",
    "healthmonitor", "default_pool_id", "allowed_cidrs", "timeout_client_data", "address", "weight", "type", "delay",
    "timeout", "max_retries", "pool_id", "inventories", "traits", "volumes", "port", "admin_state_up", "project_id",
    "tenant_id", "device_id", "os-extend", "new_size", "fixed_ip_address", "floating_ip_address", "subnet",
)  # fmt: skip


def routes(service: Service) -> Iterator[tuple[str, str]]:
    for rows in service._methods.values():
        for row in rows:
            method = next(
                found
                for (found, _), each in itertools.chain(
                    ((key, [value]) for key, value in service._exact.items()), service._shaped.items()
                )
                if row in each
            )
            yield method, "/" + "/".join(row.segments)


def populated() -> tuple[Stage, dict[str, list[str]]]:
    """A cloud with one object of each kind, and the ids by service."""
    cloud = Cloud()
    cloud.clock.freeze()
    world = stage(cloud)
    net = routed_network(world)
    port = world.principal.call("network", "POST", "/v2.0/ports", {"port": {"network_id": net.network}})[
        "port"
    ]
    floating = {"floatingip": {"floating_network_id": net.external}}
    world.principal.call("network", "POST", "/v2.0/floatingips", floating)
    world.principal.call("volume", "POST", "/v3/volumes", {"volume": {"name": "v", "size": 1}})
    world.principal.call("image", "POST", "/v2/images", {"name": "i", "visibility": "private"})
    pool = {"name": "p", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}
    listener = {"name": "l", "protocol": "TCP", "protocol_port": 80, "default_pool": pool}
    body = {"loadbalancer": {"name": "lb", "vip_subnet_id": net.subnet, "listeners": [listener]}}
    world.principal.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", body)
    cloud.rest()
    state = cloud.neutron.state
    ids = {
        "network": [net.network, net.subnet, net.router, port["id"], *(r["id"] for r in state.floating_ips),
                    *(r["id"] for r in state.groups), *(r["id"] for r in state.rules)],
        "image": [r["id"] for r in cloud.glance.images if r["name"] == "i"],
        "volume": [r["id"] for r in cloud.cinder.volumes] + [r["id"] for r in cloud.cinder.types],
        "load-balancer": [r["id"] for t in (cloud.octavia.state.lbs, cloud.octavia.state.listeners,
                                            cloud.octavia.state.pools) for r in t],
        "placement": [r["id"] for r in cloud.placement.providers],
    }  # fmt: skip
    return world, ids


def roots(path: str) -> list[str]:
    """Root keys that a body for the path may have."""
    words = [word for word in path.strip("/").split("/") if not word.startswith("{")]
    last = words[-1] if words else ""
    single = {"security-groups": "security_group", "security-group-rules": "security_group_rule",
              "quotas": "quota", "os-quota-sets": "quota_set", "types": "volume_type"}  # fmt: skip
    return [single.get(last, last.rstrip("s")), last]


@pytest.mark.parametrize("attribute", SERVICES)
def test_odd_bodies_and_values_are_answered_and_never_break_the_cloud(attribute: str) -> None:
    world, ids = populated()
    service: Service = getattr(world.cloud, attribute)
    patch = {"content_type": "application/openstack-images-v2.1-json-patch"}
    tried = 0
    for method, path in sorted(set(routes(service))):
        if method not in ("POST", "PUT", "PATCH"):
            continue
        bodies: list[Any] = [b"", b"{", b"\xff", *ODD]
        for root in roots(path):
            bodies += [{root: odd} for odd in ODD]
            bodies += [{root: {field: odd}} for field in FIELDS for odd in ODD]
        if attribute in ("glance", "placement") or "router_interface" in path or "action" in path:
            bodies += [{field: odd} for field in FIELDS for odd in ODD]
        bodies += [[{"op": "add", "path": f"/{field}", "value": odd}] for field in FIELDS for odd in ODD]
        target = next(iter(ids[service.name]))
        for body in bodies:
            for caller in (world.privileged, world.admin):
                concrete = "/".join(
                    {"{project}": world.project_id}.get(part, target) if part.startswith("{") else part
                    for part in path.split("/")
                )
                response = caller.send(service.name, method, concrete, body, **patch)
                assert 200 <= response.status < 600
                tried += 1
    assert tried > 100


@pytest.mark.parametrize("attribute", SERVICES)
def test_odd_queries_are_answered(attribute: str) -> None:
    world, ids = populated()
    service: Service = getattr(world.cloud, attribute)
    queries = [
        f"?{key}={value}"
        for key in ("limit", "marker", "name", "sort_key", "sort_dir", "sort", "fields", "id", "status", "tags",
                    "fixed_ips", "size_min", "all_tenants", "visibility", "required", "resources", "cascade", "force")
        for value in ("", "x", "-1", "0", "%00", "a:b", "name:desc", "true", "1")
    ]  # fmt: skip
    for method, path in sorted(set(routes(service))):
        if method != "GET":
            continue
        for target in ids[service.name]:
            concrete = "/".join(
                {"{project}": world.project_id}.get(part, target) if part.startswith("{") else part
                for part in path.split("/")
            )
            for query in queries if "{" not in path else [""]:
                response = world.principal.send(service.name, "GET", concrete + query)
                assert 200 <= response.status < 600
