"""Types of the fields that network, volume and load balancer requests share, checked in one place.

The names mean the same in every service, so one table serves all. A null where a text, flag or
number is meant counts as absent; the fields in NULLABLE are cleared by it.
"""

from __future__ import annotations

from collections.abc import Iterable

from .base import Ctx, JsonObject

TEXTS = frozenset(
    {
        "name", "description", "network_id", "subnet_id", "cidr", "gateway_ip", "mac_address", "address",
        "floating_network_id", "port_id", "security_group_id", "remote_group_id", "remote_address_group_id",
        "fixed_ip_address", "floating_ip_address", "project_id", "tenant_id", "device_id", "device_owner",
        "binding:vnic_type", "binding:host_id", "dns_name", "dns_domain", "availability_zone", "volume_type",
        "imageRef", "vip_address", "vip_port_id", "vip_subnet_id", "vip_network_id", "vip_qos_policy_id",
        "provider", "loadbalancer_id", "listener_id", "pool_id", "default_pool_id", "lb_algorithm", "type",
        "monitor_address", "http_method", "url_path", "expected_codes", "domain_name", "qos_policy_id",
        "subnetpool_id", "segment_id", "flavor_id", "provider:network_type", "provider:physical_network",
    }
)  # fmt: skip
FLAGS = frozenset(
    {
        "admin_state_up", "shared", "router:external", "is_default", "port_security_enabled", "enable_dhcp",
        "stateful", "backup", "multiattach", "distributed", "ha", "dns_publish_fixed_ip",
    }
)  # fmt: skip
NUMBERS = frozenset(
    {
        "mtu", "ip_version", "protocol_port", "weight", "monitor_port", "delay", "timeout", "max_retries",
        "max_retries_down", "connection_limit", "timeout_client_data", "timeout_member_connect",
        "timeout_member_data", "timeout_tcp_inspect", "size", "provider:segmentation_id",
    }
)  # fmt: skip
TEXT_LISTS = frozenset(
    {
        "dns_nameservers", "security_groups", "tags", "allowed_cidrs", "service_types", "vip_sg_ids",
        "availability_zone_hints",
    }
)  # fmt: skip
OBJECT_LISTS = frozenset(
    {
        "allocation_pools", "host_routes", "allowed_address_pairs", "listeners", "pools", "members", "segments",
        "routes", "fixed_ips", "external_fixed_ips", "extra_dhcp_opts", "additional_vips", "l7policies",
    }
)  # fmt: skip
OBJECTS = frozenset(
    {
        "external_gateway_info", "session_persistence", "healthmonitor", "default_pool", "metadata",
        "insert_headers", "binding:profile",
    }
)  # fmt: skip
NULLABLE = frozenset({"gateway_ip", "port_id", "default_pool_id", "qos_policy_id", "vip_qos_policy_id"})


def checked(ctx: Ctx, body: JsonObject, allowed: Iterable[str]) -> None:
    """Refuse (400) unknown fields and values of a wrong type; puts numbers and flags in their own type."""
    ctx.only(body, allowed)
    for key in list(body):
        if body[key] is None:
            if key in (TEXTS | FLAGS | NUMBERS) - NULLABLE:
                del body[key]
        elif key in TEXTS:
            ctx.text(body, key, max_length=4096)
        elif key in FLAGS:
            body[key] = ctx.flag(body, key)
        elif key in NUMBERS:
            body[key] = ctx.integer(body, key)
        elif key in TEXT_LISTS:
            ctx.texts(body, key)
        elif key in OBJECT_LISTS:
            for item in ctx.objects(body, key):
                inner = {k: v for k, v in item.items() if k in TEXTS | NUMBERS}
                checked(ctx, inner, inner.copy())
        elif key in OBJECTS:
            ctx.mapping(body, key)
