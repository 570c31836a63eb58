"""What an Octavia provider refuses and how it names its VIP port.

`amphora` takes every option of the API. `ovn` balances at layer 4 by source address only and
refuses the rest with 501; the refusal comes after the VIP port was made, which is why a refused
create leaves that port behind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

JsonMap = Mapping[str, Any]

OVN_PROTOCOLS = ("TCP", "UDP", "SCTP")
OVN_ALGORITHMS = ("SOURCE_IP_PORT", "SOURCE_IP")
OVN_MONITORS = ("UDP-CONNECT", "TCP")
SUBNET_NEEDED = (
    "Subnet is required, or Loadbalancer associated with Pool must have a subnet, for Member "
    "{what} with OVN Provider Driver if it is not the same as LB VIP subnet"
)


@dataclass(frozen=True)
class VipPort:
    """Name and owner a provider gives to the VIP port of a load balancer."""

    name: str
    owner: str


def description(provider: str) -> str:
    """Return the text of the provider list."""
    return {"ovn": "Octavia OVN driver.", "amphora": "The Octavia Amphora driver."}.get(
        provider, f"The {provider} driver."
    )


def vip_port(provider: str, load_balancer_id: str) -> VipPort:
    """Return how the provider marks the VIP port it makes."""
    if provider == "ovn":
        return VipPort(f"ovn-lb-vip-{load_balancer_id}", "ovn-lb:vip")
    return VipPort(f"octavia-lb-{load_balancer_id}", "Octavia")


def refuse_listener(provider: str, listener: JsonMap) -> str | None:
    """Return the provider's reason to refuse a listener, None when it takes it."""
    if provider != "ovn":
        return None
    if listener.get("protocol", "TCP") not in OVN_PROTOCOLS:
        return f"OVN provider does not support {listener['protocol']} protocol"
    if listener.get("allowed_cidrs"):
        return "OVN provider does not support allowed_cidrs option"
    return None


def refuse_pool(provider: str, pool: JsonMap) -> str | None:
    """Return the provider's reason to refuse a pool (or a change of one), None when it takes it."""
    if provider != "ovn":
        return None
    if pool.get("protocol", "TCP") not in OVN_PROTOCOLS:
        return f"OVN provider does not support {pool['protocol']} protocol"
    if pool.get("lb_algorithm", "SOURCE_IP_PORT") not in OVN_ALGORITHMS:
        return f"OVN provider does not support {pool['lb_algorithm']} algorithm"
    persistence = pool.get("session_persistence")
    if persistence and persistence.get("type") != "SOURCE_IP":
        return (
            f"OVN provider does not support {persistence.get('type')} session persistence. "
            "Only SOURCE_IP type is supported."
        )
    return None


def refuse_monitor(provider: str, monitor: JsonMap) -> str | None:
    """Return the provider's reason to refuse a health monitor, None when it takes it."""
    if provider == "ovn" and monitor.get("type") not in OVN_MONITORS:
        return (
            f"OVN provider does not support {monitor.get('type')} health monitor type. "
            f"Supported types: {', '.join(OVN_MONITORS)}"
        )
    return None


def refuse_member(provider: str, member: JsonMap, vip_cidr: str | None, batch: bool = False) -> str | None:
    """Return the provider's reason to refuse a member of a load balancer whose VIP subnet is
    `vip_cidr`, None when it takes it."""
    if provider != "ovn":
        return None
    if member.get("monitor_address") or member.get("monitor_port"):
        if batch:
            return "OVN provider does not support monitor options"
        return "OVN Load Balancer does not support different member monitor address or port."
    if not member.get("subnet_id"):
        inside = vip_cidr is not None and ip_address(str(member["address"])) in ip_network(vip_cidr)
        if not inside:
            return SUBNET_NEEDED.format(what="batch update" if batch else "creation")
    return None


def refuse_tree(provider: str, listeners: Iterable[JsonMap], pools: Iterable[JsonMap]) -> str | None:
    """Return the first refusal in the order a driver walks a nested create: listeners, then every
    pool with its monitor and members (members without a subnet get the VIP's)."""
    for listener in listeners:
        if reason := refuse_listener(provider, listener):
            return reason
    for pool in pools:
        if reason := refuse_pool(provider, pool):
            return reason
        monitor = pool.get("healthmonitor")
        if monitor and (reason := refuse_monitor(provider, monitor)):
            return reason
        for member in pool.get("members") or ():
            subnet = {"subnet_id": member.get("subnet_id") or "vip"}
            if reason := refuse_member(provider, {**member, **subnet}, None):
                return reason
    return None
