"""The tables and columns of OVN's databases that are read or written here, as OVSDB schemas.

Asking the servers for nothing else keeps the copy small. A server whose schema lacks one of them (OVN before 20.12) refuses the request
for the copy, and its text says which.
"""

from collections.abc import Mapping
from typing import Any

_TEXT: Any = {"type": "string"}
_NUMBER: Any = {"type": "integer"}
_OPTIONAL: Any = {"type": {"key": "string", "min": 0, "max": 1}}
_TEXTS: Any = {"type": {"key": "string", "min": 0, "max": "unlimited"}}
_MAP: Any = {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}
_HANDLES: Any = {"type": {"key": "uuid", "min": 0, "max": "unlimited"}}
_HANDLE: Any = {"type": {"key": "uuid", "min": 0, "max": 1}}

_NORTHBOUND: Mapping[str, Mapping[str, Any]] = {
    "Load_Balancer": {
        "name": _TEXT,
        "protocol": _OPTIONAL,
        "vips": _MAP,
        "external_ids": _MAP,
        "options": _MAP,
        "selection_fields": _TEXTS,
        "ip_port_mappings": _MAP,
        "health_check": _HANDLES,
    },
    "Load_Balancer_Health_Check": {"vip": _TEXT, "options": _MAP, "external_ids": _MAP},
    "Logical_Switch": {"name": _TEXT, "external_ids": _MAP, "load_balancer": _HANDLES},
    "Logical_Router": {"name": _TEXT, "load_balancer": _HANDLES},
    "Logical_Switch_Port": {"name": _TEXT, "addresses": _TEXTS, "external_ids": _MAP},
    "Logical_Router_Port": {
        "name": _TEXT,
        "networks": _TEXTS,
        "gateway_chassis": _HANDLES,
        "ha_chassis_group": _HANDLE,
        "external_ids": _MAP,
    },
    "NAT": {
        "type": _TEXT,
        "external_ip": _TEXT,
        "logical_ip": _TEXT,
        "external_mac": _OPTIONAL,
        "logical_port": _OPTIONAL,
        "external_ids": _MAP,
    },
}
_SOUTHBOUND: Mapping[str, Mapping[str, Any]] = {
    "Service_Monitor": {
        "ip": _TEXT,
        "port": _NUMBER,
        "protocol": _OPTIONAL,
        "logical_port": _TEXT,
        "status": _OPTIONAL,
    }
}


def _schema(name: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    listed = {table: {"columns": dict(columns), "isRoot": True} for table, columns in tables.items()}
    return {"name": name, "version": "0.0.0", "tables": listed}


NORTHBOUND = _schema("OVN_Northbound", _NORTHBOUND)
SOUTHBOUND = _schema("OVN_Southbound", _SOUTHBOUND)
