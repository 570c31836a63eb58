"""Rules of load balancers, without asking anybody: what a port, a subnet, a flavor or a status allows."""

import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.errors import invalid, not_found, refuse
from roadstead_octavia.options import Options

# Addresses that a load balancer of a topology takes of its VIP's subnet.
ADDRESSES = {"SINGLE": 2, "ACTIVE_STANDBY": 3}
NETWORK_DENIED = "Supplied VIP network_id is not allowed by the configuration of this deployment."
NO_GROUPS = "VIP Security Groups are not allowed with VNIC direct type"
DELETABLE = ("ACTIVE", "ERROR")


# ------------------------------------------------------------ the VIP


def require_unused(port: Mapping[str, Any]) -> None:
    """A port that a device has cannot be a VIP."""
    device = port.get("device_id")
    if device:
        raise invalid(f"Port {port['id']} is already used by device {device} ")


def place_on_port(
    port: Mapping[str, Any], subnet_id: str | None, address: str | None
) -> tuple[str, str | None]:
    """Subnet and address of a VIP on that port; what the request said of them must agree with it."""
    fixed: Sequence[Mapping[str, Any]] = port.get("fixed_ips") or ()
    if subnet_id:
        found = next((ip["ip_address"] for ip in fixed if ip["subnet_id"] == subnet_id), address)
        if not found:
            raise invalid("No VIP address found on the specified VIP port within the specified subnet.")
        return subnet_id, found
    if address:
        wanted = _canonical(address)
        for ip in fixed:
            if _canonical(ip["ip_address"]) == wanted:
                return ip["subnet_id"], address
        raise invalid("Specified VIP address not found on the specified VIP port.")
    if len(fixed) == 1:
        return fixed[0]["subnet_id"], fixed[0]["ip_address"]
    raise invalid("VIP port's subnet could not be determined. Please specify either a VIP subnet or address.")


def contains(subnet: Mapping[str, Any], address: str) -> bool:
    """Whether the address is one of the subnet; a subnet without a readable CIDR has none."""
    try:
        network = ipaddress.ip_network(subnet.get("cidr") or "", strict=False)
    except ValueError:
        return False
    return ipaddress.ip_address(address) in network


def with_room(subnets: Sequence[str], free: Mapping[str, int], topology: str) -> list[str]:
    """The subnets with enough free addresses, in order; ApiError when there is none."""
    needed = ADDRESSES.get(topology, ADDRESSES["SINGLE"])
    found = [identifier for identifier in subnets if free.get(identifier, 0) >= needed]
    if not found:
        raise invalid("Subnet(s) in the supplied network do not contain enough available IPs.")
    return found


def require_distinct(subnets: Sequence[str]) -> None:
    if len(set(subnets)) < len(subnets):
        raise invalid("Duplicate VIP subnet(s) specified. Only one IP can be bound per subnet.")


def require_network_allowed(network_id: str | None, zone: Mapping[str, Any], options: Options) -> None:
    """The deployment's lists of networks; a zone's own list counts instead of the general one."""
    allowed = zone.get("valid_vip_networks") or options.valid_vip_networks
    name = (network_id or "").lower()
    if (allowed and name not in _lower(allowed)) or name in _lower(options.denylist_vip_networks):
        raise invalid(NETWORK_DENIED)


def _canonical(address: str) -> str:
    return ipaddress.ip_address(address).compressed


def _lower(names: Iterable[str]) -> Collection[str]:
    return {name.lower() for name in names}


# ------------------------------------------------------------ flavor, zone, provider


def vnic_type(flavor: Mapping[str, Any], groups: Sequence[str]) -> str:
    """How the VIP is plugged; ApiError when that rules security groups out."""
    if not flavor.get("sriov_vip"):
        return "normal"
    if groups:
        raise invalid(NO_GROUPS)
    return "direct"


def require_groups_fit(vip: Mapping[str, Any]) -> None:
    """Security groups work on a VIP that is plugged in the normal way only."""
    if vip.get("vnic_type") == "direct":
        raise invalid(NO_GROUPS)


def provider_of(
    asked: str | None, flavor_id: str | None, flavor_provider: str | None, options: Options
) -> str:
    """The provider that makes the load balancer; ApiError when request and flavor disagree or it is not enabled."""
    if asked and flavor_provider and asked != flavor_provider:
        raise refuse("ProviderFlavorMismatch", flav=flavor_id, prov=asked)
    chosen = flavor_provider or asked or options.default_provider_driver
    return require_enabled(chosen, options)


def require_enabled(provider: str, options: Options) -> str:
    """ApiError ProviderNotEnabled."""
    if provider not in options.enabled_provider_drivers:
        raise refuse("ProviderNotEnabled", prov=provider)
    return provider


# ------------------------------------------------------------ statuses


def existing(tree: Tree | None, identifier: str) -> Tree:
    """ApiError NotFound for what is not there or DELETED."""
    if tree is None or tree.load_balancer["provisioning_status"] == "DELETED":
        raise not_found("Load Balancer", identifier)
    return tree


def require_status(row: Row, allowed: Collection[str]) -> None:
    """ApiError 409 that names the state."""
    state = row["provisioning_status"]
    if state not in allowed:
        raise refuse("LBPendingStateError", state=state, id=row["id"])


def require_childless(tree: Tree) -> None:
    if tree.of("listener") or tree.of("pool"):
        raise invalid(f"Cannot delete Load Balancer {tree.load_balancer['id']} - it has children")
