"""What the network service writes into its rows, read back: switches, ports, router ports and floating IPs as plain values.

Rows come as plain columns: maps as dicts, sets as frozensets, what is there once or not as the value or None, UUIDs as text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roadstead_ovn.facts import RouterPort, ServiceMonitor, canonical

Columns = Mapping[str, Any]
PREFIX = "neutron-"
NO_COLUMNS: Columns = {}


def stripped(name: str) -> str:
    """The id of the network service in a name of a switch or router; empty when it is none of its rows."""
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""


@dataclass(frozen=True)
class Carrier:
    """A switch or router: whatever carries load balancers.  load_balancers: their UUIDs."""

    name: str
    is_provider: bool
    load_balancers: frozenset[str]

    @property
    def id(self) -> str:
        return stripped(self.name)


def carrier(columns: Columns) -> Carrier:
    ids: Mapping[str, str] = columns.get("external_ids") or {}
    is_provider = bool(ids.get("neutron:provnet-physical-network"))
    return Carrier(columns["name"], is_provider, columns["load_balancer"])


@dataclass(frozen=True)
class SwitchPortFacts:
    """What load balancers depend on of a port."""

    id: str
    network_id: str
    name: str
    device_owner: str
    device_id: str
    project_id: str
    ips: tuple[str, ...]


@dataclass(frozen=True)
class SwitchPortRow:
    """addresses: the column.  floating_ip: the one that the network service has marked it with, or empty."""

    facts: SwitchPortFacts
    addresses: tuple[str, ...]
    floating_ip: str


def switch_port(columns: Columns) -> SwitchPortRow:
    ids: Mapping[str, str] = columns["external_ids"]
    addresses = tuple(sorted(columns["addresses"]))
    cidrs = ids.get("neutron:cidrs", "").split()
    ips = [text.split("/")[0] for text in cidrs] or [ip for text in addresses for ip in text.split()[1:]]
    facts = SwitchPortFacts(
        columns["name"],
        stripped(ids.get("neutron:network_name", "")),
        ids.get("neutron:port_name", ""),
        ids.get("neutron:device_owner", ""),
        ids.get("neutron:device_id", ""),
        ids.get("neutron:project_id", ""),
        tuple(canonical(ip) for ip in ips),
    )
    return SwitchPortRow(facts, addresses, ids.get("neutron:port_fip", ""))


def router_port(columns: Columns) -> RouterPort:
    ids: Mapping[str, str] = columns["external_ids"]
    router = ids.get("neutron:router_name", "")
    return RouterPort(
        columns["name"].removeprefix("lrp-"),
        stripped(router) or router,
        stripped(ids.get("neutron:network_name", "")),
        tuple(sorted(columns["networks"])),
        bool(columns["gateway_chassis"] or columns["ha_chassis_group"])
        or ids.get("neutron:is_ext_gw", "").lower() == "true",
    )


@dataclass(frozen=True)
class Translation:
    """A NAT row of a floating IP.  is_pinned: it is done where its machine runs, past every load balancer."""

    address: str
    fixed_address: str
    port_id: str
    is_pinned: bool


def translation(columns: Columns) -> Translation | None:
    """None for rows that are no floating IPs."""
    if columns["type"] != "dnat_and_snat":
        return None
    port = columns["external_ids"].get("neutron:fip_port_id") or columns["logical_port"] or ""
    is_pinned = bool(columns["external_mac"] or columns["logical_port"])
    return Translation(columns["external_ip"], columns["logical_ip"], port, is_pinned)


def service_monitor(columns: Columns) -> ServiceMonitor:
    return ServiceMonitor(
        columns["logical_port"],
        columns["ip"],
        columns["port"],
        columns["protocol"] or "tcp",
        columns["status"] or "",
    )
