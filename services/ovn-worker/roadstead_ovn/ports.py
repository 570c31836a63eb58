"""Ports that this provider makes in the network: how they are asked for, and how they are told from others."""

from typing import Any

from roadstead_ovn.balancer import Vip
from roadstead_ovn.facts import MONITOR_PORT_PREFIX

VIP_PREFIX = "ovn-lb-vip-"
VIP_OWNER = "ovn-lb:vip"
MONITOR_OWNER = "ovn-lb-hm:distributed"  # the network service makes a port of such an owner a localport


def vip_port_name(load_balancer_id: str, number: int = 0) -> str:
    """number: 0 for the VIP, from 1 for additional ones."""
    return f"{VIP_PREFIX}additional-{number}-{load_balancer_id}" if number else VIP_PREFIX + load_balancer_id


def vip_port_request(load_balancer_id: str, project_id: str, vip: Vip, number: int = 0) -> dict[str, Any]:
    """The body of the creation of a VIP's port; an empty address leaves the choice to the network."""
    fixed = {"subnet_id": vip.subnet_id}
    if vip.address:
        fixed["ip_address"] = vip.address
    return {
        "name": vip_port_name(load_balancer_id, number),
        "network_id": vip.network_id,
        "fixed_ips": [fixed],
        "admin_state_up": True,
        "project_id": project_id,
        "device_owner": VIP_OWNER,
        "device_id": f"lb-{load_balancer_id}",
    }


def monitor_port_request(network_id: str, subnet_id: str, project_id: str) -> dict[str, Any]:
    """The body of the creation of a subnet's port for probes.  project_id: that of a member's port there."""
    name = MONITOR_PORT_PREFIX + subnet_id
    return {
        "name": name,
        "network_id": network_id,
        "fixed_ips": [{"subnet_id": subnet_id}],
        "admin_state_up": True,
        "port_security_enabled": False,
        "device_owner": MONITOR_OWNER,
        "device_id": name,
        "project_id": project_id,
    }
