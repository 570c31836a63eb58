"""The types into which gophercloud decodes answers: a field of another type fails the whole call in Go, null is a zero value."""

import re
from collections.abc import Mapping
from typing import Any

STRICT_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")

_COMMON: dict[str, Any] = {
    "id": str,
    "name": str,
    "project_id": str,
    "tenant_id": str,
    "admin_state_up": bool,
    "provisioning_status": str,
    "operating_status": str,
    "tags": [str],
    "created_at": "time",
    "updated_at": "time",
}
_IDS = [{"id": str}]
TYPES: dict[str, dict[str, Any]] = {
    "loadbalancer": {
        **_COMMON,
        "description": str,
        "vip_address": str,
        "vip_port_id": str,
        "vip_subnet_id": str,
        "vip_network_id": str,
        "vip_qos_policy_id": str,
        "additional_vips": [{"subnet_id": str, "ip_address": str}],
        "listeners": _IDS,
        "pools": _IDS,
        "provider": str,
        "flavor_id": str,
        "availability_zone": str,
    },
    "listener": {
        **_COMMON,
        "description": str,
        "protocol": str,
        "protocol_port": int,
        "default_pool_id": str,
        "connection_limit": int,
        "loadbalancers": _IDS,
        "sni_container_refs": [str],
        "default_tls_container_ref": str,
        "l7policies": _IDS,
        "insert_headers": {str: str},
        "allowed_cidrs": [str],
        "timeout_client_data": int,
        "timeout_member_data": int,
        "timeout_member_connect": int,
        "timeout_tcp_inspect": int,
        "tls_versions": [str],
        "alpn_protocols": [str],
        "hsts_max_age": int,
        "hsts_include_subdomains": bool,
        "hsts_preload": bool,
        "client_authentication": str,
    },
    "pool": {
        **_COMMON,
        "description": str,
        "protocol": str,
        "lb_algorithm": str,
        "members": _IDS,
        "healthmonitor_id": str,
        "listeners": _IDS,
        "loadbalancers": _IDS,
        "session_persistence": {"type": str, "cookie_name": str},
        "tls_enabled": bool,
        "alpn_protocols": [str],
        "tls_versions": [str],
    },
    "member": {
        **_COMMON,
        "weight": int,
        "address": str,
        "protocol_port": int,
        "subnet_id": str,
        "backup": bool,
        "monitor_address": str,
        "monitor_port": int,
    },
    "healthmonitor": {
        **_COMMON,
        "type": str,
        "delay": int,
        "timeout": int,
        "max_retries": int,
        "max_retries_down": int,
        "http_method": str,
        "http_version": float,
        "url_path": str,
        "expected_codes": str,
        "domain_name": str,
        "pools": _IDS,
    },
    "l7policy": {
        **_COMMON,
        "description": str,
        "listener_id": str,
        "action": str,
        "position": int,
        "redirect_pool_id": str,
        "redirect_prefix": str,
        "redirect_url": str,
        "redirect_http_code": int,
        "rules": _IDS,
    },
    "rule": {**_COMMON, "type": str, "compare_type": str, "value": str, "key": str, "invert": bool},
    "quota": dict.fromkeys(
        ("loadbalancer", "listener", "member", "pool", "healthmonitor", "l7policy", "l7rule"), int
    ),
}


def misfits(kind: str, value: Mapping[str, Any]) -> list[str]:
    """Fields that Go could not decode."""
    return [
        f"{kind}.{name}: {value[name]!r}"
        for name, wanted in TYPES[kind].items()
        if name in value and not _fits(value[name], wanted)
    ]


def _fits(value: Any, wanted: Any) -> bool:
    if value is None:
        return True
    if wanted == "time":
        return isinstance(value, str) and STRICT_TIME.fullmatch(value) is not None
    if isinstance(wanted, list):
        return isinstance(value, list) and all(_fits(one, wanted[0]) for one in value)
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return False
        if str in wanted:
            return all(isinstance(k, str) and isinstance(v, str) for k, v in value.items())
        return all(_fits(value[name], kind) for name, kind in wanted.items() if name in value)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, wanted)
