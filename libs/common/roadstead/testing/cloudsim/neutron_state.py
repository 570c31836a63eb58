"""What the simulated Neutron remembers, and the effects its parts share.

Address allocations are kept per subnet so that a free address is found without looking at
ports. Effects raise AddressError; the routes turn it into a reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Any

from . import neutron_addressing as addressing
from .ids import Ids, seconds_z
from .neutron_addressing import AddressError, Network, Pool
from .neutron_rules import implicit_rules
from .tables import Row, Table

ROUTER_INTERFACE = "network:router_interface"
ROUTER_GATEWAY = "network:router_gateway"
FLOATING_IP = "network:floatingip"
ROUTER_OWNERS = (ROUTER_INTERFACE, ROUTER_GATEWAY, FLOATING_IP)
TUNNEL_IDS_FROM = 10_000
VLAN_IDS = range(1, 4095)


class NetworkState:
    """Networks, subnets, ports, routers, floating IPs, groups and rules of the cloud."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.networks = Table("project_id", "name")
        self.subnets = Table("project_id", "name", "network_id")
        self.ports = Table("project_id", "name", "network_id", "device_id")
        self.routers = Table("project_id", "name")
        self.floating_ips = Table("project_id", "port_id", "floating_ip_address", "router_id")
        self.groups = Table("project_id", "name")
        self.rules = Table("project_id", "security_group_id")
        self.qos_policies = Table("project_id", "name")
        self.quotas: dict[str, dict[str, int]] = {}
        self.group_ports: dict[str, set[str]] = {}
        self._taken: dict[str, dict[str, str]] = {}
        self._tunnel = TUNNEL_IDS_FROM

    # ------------------------------------------------------------ networks

    def next_tunnel_id(self) -> int:
        """Return the segmentation id of the next tenant network."""
        self._tunnel += 1
        return self._tunnel

    def vlans_of(self, physical_network: str) -> set[int]:
        """Return the VLAN ids in use on a physical network."""
        return {
            segment["provider:segmentation_id"]
            for network in self.networks
            for segment in network["_segments"]
            if segment["provider:network_type"] == "vlan"
            and segment["provider:physical_network"] == physical_network
        }

    def flat_in_use(self, physical_network: str) -> bool:
        """True when a flat network lies on the physical network."""
        return any(
            segment["provider:network_type"] == "flat"
            and segment["provider:physical_network"] == physical_network
            for network in self.networks
            for segment in network["_segments"]
        )

    # ----------------------------------------------------------- addresses

    def taken(self, subnet_id: str) -> dict[str, str]:
        """Return the allocations of a subnet: address to port id."""
        return self._taken.setdefault(subnet_id, {})

    def take_in(self, subnet: Row, wanted: str | None, port_id: str) -> str:
        """Allocate an address of the subnet: the wanted one, or the lowest free one of its pools."""
        taken = self.taken(subnet["id"])
        if wanted is None:
            pools = [Pool(ip_address(p["start"]), ip_address(p["end"])) for p in subnet["allocation_pools"]]
            free = addressing.lowest_free(pools, taken)
            if free is None:
                raise AddressError(
                    409,
                    "IpAddressGenerationFailure",
                    f"No more IP addresses available on network {subnet['network_id']}.",
                )
            wanted = str(free)
        else:
            address = addressing.parse_address(wanted, "fixed_ips")
            wanted = str(address)
            if address not in addressing.usable_range(ip_network(subnet["cidr"])):
                raise AddressError(
                    400,
                    "InvalidIpForSubnet",
                    f"IP address {wanted} is not a valid IP for the specified subnet.",
                )
            if wanted in taken:
                raise AddressError(
                    409,
                    "IpAddressAlreadyAllocated",
                    f"IP address {wanted} already allocated in subnet {subnet['id']}",
                )
        taken[wanted] = port_id
        return wanted

    def allocate(self, network_id: str, requested: Any, port_id: str) -> list[Row]:
        """Allocate the fixed IPs of a port; `requested` None means one address of the first IPv4
        subnet, a list means exactly its entries. Nothing stays allocated when it raises."""
        subnets = self.subnets.where("network_id", network_id)
        if requested is None:
            by_family = [s for s in subnets if s["ip_version"] == 4] or subnets
            return self._first_with_room(by_family, network_id, port_id)
        made: list[Row] = []
        try:
            for item in requested:
                made.append(self._allocate_one(network_id, subnets, item, port_id))
        except AddressError:
            self.release(made)
            raise
        return made

    def release(self, fixed_ips: Iterable[Mapping[str, Any]]) -> None:
        """Give addresses back to their subnets."""
        for item in fixed_ips:
            self.taken(item["subnet_id"]).pop(item["ip_address"], None)

    def _first_with_room(self, subnets: list[Row], network_id: str, port_id: str) -> list[Row]:
        failure: AddressError | None = None
        for subnet in subnets:
            try:
                return [{"subnet_id": subnet["id"], "ip_address": self.take_in(subnet, None, port_id)}]
            except AddressError as error:
                failure = error
        if failure is not None:
            raise failure
        return []

    def _allocate_one(self, network_id: str, subnets: list[Row], item: Any, port_id: str) -> Row:
        if not isinstance(item, dict) or not (item.get("subnet_id") or item.get("ip_address")):
            raise AddressError(400, "HTTPBadRequest", f"Invalid input for fixed_ips. Reason: '{item}'.")
        wanted = item.get("ip_address")
        if item.get("subnet_id"):
            subnet = self.subnets.get(item["subnet_id"])
            if subnet is None:
                raise AddressError(404, "SubnetNotFound", f"Subnet {item['subnet_id']} could not be found.")
            if subnet["network_id"] != network_id:
                raise AddressError(
                    400,
                    "InvalidInput",
                    f"Invalid input for operation: Failed to create port on network {network_id}, because "
                    f"fixed_ips included invalid subnet {subnet['id']}.",
                )
        else:
            address = addressing.parse_address(wanted, "fixed_ips")
            subnet = next((s for s in subnets if address in ip_network(s["cidr"])), None)
            if subnet is None:
                raise AddressError(
                    400,
                    "InvalidIpForNetwork",
                    f"IP address {wanted} is not a valid IP for any of the subnets on the specified network.",
                )
        return {"subnet_id": subnet["id"], "ip_address": self.take_in(subnet, wanted, port_id)}

    def cidrs_of(self, network_id: str) -> list[Network]:
        """Return the CIDRs of a network's subnets."""
        return [ip_network(s["cidr"]) for s in self.subnets.where("network_id", network_id)]

    # --------------------------------------------------------------- ports

    def add_port(
        self, now: datetime, network_id: str, project_id: str, fixed_ips: Any = None, **values: Any
    ) -> Row:
        """Make a port with an address and store it; raises AddressError."""
        port_id = values.pop("id", None) or self.ids.uuid()
        mac = values.pop("mac_address", None) or self.ids.mac()
        row: Row = {
            "id": port_id, "name": "", "description": "", "network_id": network_id,
            "tenant_id": project_id, "project_id": project_id, "admin_state_up": True,
            "mac_address": mac, "fixed_ips": self.allocate(network_id, fixed_ips, port_id),
            "device_id": "", "device_owner": "", "status": "DOWN", "security_groups": [],
            "allowed_address_pairs": [], "extra_dhcp_opts": [], "port_security_enabled": True,
            "dns_name": "", "dns_assignment": [], "qos_policy_id": None, "qos_network_policy_id": None,
            "propagate_uplink_status": True, "tags": [], "revision_number": 1,
            "created_at": seconds_z(now), "updated_at": seconds_z(now),
            "binding:vnic_type": "normal", "binding:host_id": "", "binding:profile": {},
            "binding:vif_type": "unbound", "binding:vif_details": {},
        }  # fmt: skip
        row.update(values)
        self.ports.add(row)
        for group in row["security_groups"]:
            self.group_ports.setdefault(group, set()).add(port_id)
        return row

    def set_groups(self, port: Row, groups: list[str]) -> None:
        """Replace the security groups of a port."""
        for group in port["security_groups"]:
            self.group_ports.get(group, set()).discard(port["id"])
        port["security_groups"] = groups
        for group in groups:
            self.group_ports.setdefault(group, set()).add(port["id"])

    def drop_port(self, port: Row) -> None:
        """Remove a port: its addresses are free again, its floating IP is left unassociated."""
        self.set_groups(port, [])
        self.release(port["fixed_ips"])
        self.ports.remove(port["id"])
        for floating in self.floating_ips.where("port_id", port["id"]):
            self.disassociate(floating)

    def disassociate(self, floating: Row) -> None:
        """Take a floating IP off its port."""
        self.floating_ips.change(
            floating, port_id=None, router_id=None, fixed_ip_address=None, status="DOWN", port_details=None
        )

    # -------------------------------------------------------------- groups

    def add_group(self, now: datetime, project_id: str, name: str, description: str) -> Row:
        """Make a security group with the implicit rules."""
        group_id = self.ids.uuid()
        row: Row = {
            "id": group_id, "name": name, "description": description, "stateful": True, "shared": False,
            "project_id": project_id, "tenant_id": project_id, "tags": [], "revision_number": 1,
            "created_at": seconds_z(now), "updated_at": seconds_z(now),
        }  # fmt: skip
        self.groups.add(row)
        for rule in implicit_rules(group_id, name == "default"):
            self.add_rule(now, group_id, project_id, rule)
        return row

    def add_rule(self, now: datetime, group_id: str, project_id: str, matching: Mapping[str, Any]) -> Row:
        """Store one rule of a group."""
        row: Row = {
            "id": self.ids.uuid(), "security_group_id": group_id, "project_id": project_id,
            "tenant_id": project_id, "description": "", "normalized_cidr": matching.get("remote_ip_prefix"),
            "belongs_to_default_sg": False, "revision_number": 0, "tags": [],
            "created_at": seconds_z(now), "updated_at": seconds_z(now), **matching,
        }  # fmt: skip
        return self.rules.add(row)

    def default_group(self, now: datetime, project_id: str) -> Row | None:
        """Return the project's `default` group, made when it is not there; None without a project."""
        if not project_id:
            return None
        for row in self.groups.where("project_id", project_id):
            if row["name"] == "default":
                return row
        return self.add_group(now, project_id, "default", "Default security group")

    # ------------------------------------------------------------- routers

    def interfaces(self, router_id: str) -> list[Row]:
        """Return the internal interface ports of a router."""
        return [p for p in self.ports.where("device_id", router_id) if p["device_owner"] == ROUTER_INTERFACE]

    def router_towards(self, subnet_id: str, external_network_id: str) -> Row | None:
        """Return the router that joins the subnet to the external network."""
        for router in self.routers:
            gateway = router["external_gateway_info"]
            if gateway and gateway["network_id"] == external_network_id:
                for port in self.interfaces(router["id"]):
                    if any(ip["subnet_id"] == subnet_id for ip in port["fixed_ips"]):
                        return router
        return None
