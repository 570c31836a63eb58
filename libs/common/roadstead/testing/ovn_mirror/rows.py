"""What the network service's OVN driver writes of a network, a port, a router and a floating IP: names, columns, external_ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roadstead.testing.cloudsim.neutron_state import (
    FLOATING_IP,
    ROUTER_GATEWAY,
    ROUTER_INTERFACE,
    NetworkState,
)
from roadstead.testing.cloudsim.tables import Row

VIP_PREFIX = "ovn-lb-vip-"


@dataclass(frozen=True)
class NbRow:
    """One row.  parent: (table, name, column) of the row that holds it in a set; None for a row of its own.

    children: rows that it holds itself, by column, written with it and never changed (gateway chassis).
    """

    table: str
    name: str
    columns: Mapping[str, Any]
    parent: tuple[str, str, str] | None = None
    children: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """What differs between regions.  chassis: hosts the gateways.  distributed: floating IPs are translated on the port's host."""

    chassis: str = "chassis-1"
    distributed: bool = False


def switch_name(network_id: str) -> str:
    return f"neutron-{network_id}"


def rows_of(state: NetworkState, shape: Shape, object_id: str) -> list[NbRow]:
    """The rows of one object; none when it is gone, or OVN has nothing of it."""
    if (network := state.networks.get(object_id)) is not None:
        return [_switch(network)]
    if (port := state.ports.get(object_id)) is not None:
        return _port(state, shape, port)
    if (router := state.routers.get(object_id)) is not None:
        return _router(state, router)
    if (floating := state.floating_ips.get(object_id)) is not None:
        return _floating(state, shape, floating)
    return []


def _switch(network: Row) -> NbRow:
    # A provider network's port to the physical network (type localnet) is left out: nothing is behind it here, and a machine on the
    # switch plays the outside.
    ids = {
        "neutron:network_name": network["name"],
        "neutron:mtu": str(network.get("mtu") or 1442),
        "neutron:revision_number": str(network["revision_number"]),
    }
    physical = next(
        (s["provider:physical_network"] for s in network["_segments"] if s["provider:physical_network"]), None
    )
    if physical:
        ids["neutron:provnet-physical-network"] = physical
    return NbRow(
        "Logical_Switch",
        switch_name(network["id"]),
        {"name": switch_name(network["id"]), "external_ids": ids},
    )


def _cidrs(state: NetworkState, port: Row) -> list[str]:
    """The port's addresses with the prefix lengths of their subnets."""
    found = []
    for item in port["fixed_ips"]:
        subnet = state.subnets.get(item["subnet_id"])
        length = (
            subnet["cidr"].partition("/")[2] if subnet else ("128" if ":" in item["ip_address"] else "32")
        )
        found.append(f"{item['ip_address']}/{length}")
    return found


def _port(state: NetworkState, shape: Shape, port: Row) -> list[NbRow]:
    owner = port["device_owner"]
    if owner == FLOATING_IP:
        return []
    leads = owner in (ROUTER_INTERFACE, ROUTER_GATEWAY) and port["device_id"]
    ids = {
        "neutron:port_name": port["name"],
        "neutron:device_owner": owner,
        "neutron:device_id": port["device_id"],
        "neutron:project_id": port["project_id"],
        "neutron:cidrs": " ".join(_cidrs(state, port)),
        "neutron:network_name": switch_name(port["network_id"]),
        "neutron:security_group_ids": " ".join(port["security_groups"]),
        "neutron:revision_number": str(port["revision_number"]),
    }
    floating = [f["floating_ip_address"] for f in state.floating_ips.where("port_id", port["id"])]
    if floating:
        ids["neutron:port_fip"] = floating[0]
    columns = {
        "name": port["id"],
        "type": "router" if leads else "localport" if owner.endswith(":distributed") else "",
        "addresses": _addresses(port, bool(leads)),
        "enabled": bool(port["admin_state_up"]),
        "options": {"router-port": f"lrp-{port['id']}"} if leads else {},
        "external_ids": ids,
    }
    parent = ("Logical_Switch", switch_name(port["network_id"]), "ports")
    rows = [NbRow("Logical_Switch_Port", port["id"], columns, parent)]
    if leads:
        rows.append(_router_port(state, shape, port))
    return rows


def _addresses(port: Row, leads: bool) -> list[str]:
    if leads:
        return ["router"]
    if port["name"].startswith(VIP_PREFIX) and not port["device_owner"]:
        return []  # OVN answers for the address itself
    return [" ".join([port["mac_address"], *(item["ip_address"] for item in port["fixed_ips"])])]


def _router_port(state: NetworkState, shape: Shape, port: Row) -> NbRow:
    gateway = port["device_owner"] == ROUTER_GATEWAY
    name = f"lrp-{port['id']}"
    columns = {
        "name": name,
        "mac": port["mac_address"],
        "networks": _cidrs(state, port),
        "external_ids": {
            "neutron:network_name": switch_name(port["network_id"]),
            "neutron:router_name": port["device_id"],
            "neutron:subnet_ids": " ".join(item["subnet_id"] for item in port["fixed_ips"]),
            "neutron:revision_number": str(port["revision_number"]),
            "neutron:is_ext_gw": str(gateway),
        },
    }
    chassis = {"name": f"{name}_{shape.chassis}", "chassis_name": shape.chassis, "priority": 1}
    return NbRow(
        "Logical_Router_Port",
        name,
        columns,
        ("Logical_Router", switch_name(port["device_id"]), "ports"),
        {"gateway_chassis": ("Gateway_Chassis", chassis)} if gateway else {},
    )


def _router(state: NetworkState, router: Row) -> list[NbRow]:
    ids = {"neutron:router_name": router["name"], "neutron:revision_number": str(router["revision_number"])}
    gateway = next(
        (p for p in state.ports.where("device_id", router["id"]) if p["device_owner"] == ROUTER_GATEWAY), None
    )
    if gateway is not None:
        ids["neutron:gw_port_id"] = gateway["id"]
    name = switch_name(router["id"])
    rows = [
        NbRow(
            "Logical_Router",
            name,
            {"name": name, "enabled": bool(router["admin_state_up"]), "external_ids": ids},
        )
    ]
    if gateway is None:
        return rows
    for item in gateway["fixed_ips"]:
        subnet = state.subnets.get(item["subnet_id"])
        if subnet is not None and subnet["gateway_ip"]:
            prefix = "::/0" if ":" in subnet["gateway_ip"] else "0.0.0.0/0"
            columns = {
                "ip_prefix": prefix,
                "nexthop": subnet["gateway_ip"],
                "external_ids": {"neutron:is_ext_gw": "true", "neutron:subnet_id": subnet["id"]},
            }
            parent = ("Logical_Router", name, "static_routes")
            rows.append(
                NbRow("Logical_Router_Static_Route", f"route-{router['id']}-{prefix}", columns, parent)
            )
    if (router["external_gateway_info"] or {}).get("enable_snat"):
        rows += _hidden_subnets(state, router, gateway)
    return rows


def _hidden_subnets(state: NetworkState, router: Row, gateway: Row) -> list[NbRow]:
    """Source address translation of what is behind the router; floating IPs come before it in OVN."""
    outside = next((i["ip_address"] for i in gateway["fixed_ips"] if ":" not in i["ip_address"]), None)
    rows = []
    for port in state.interfaces(router["id"]) if outside else ():
        for item in port["fixed_ips"]:
            subnet = state.subnets.get(item["subnet_id"])
            if subnet is not None and subnet["ip_version"] == 4:
                columns = {"type": "snat", "external_ip": outside, "logical_ip": subnet["cidr"]}
                parent = ("Logical_Router", switch_name(router["id"]), "nat")
                rows.append(NbRow("NAT", f"snat-{router['id']}-{subnet['cidr']}", columns, parent))
    return rows


def _floating(state: NetworkState, shape: Shape, floating: Row) -> list[NbRow]:
    port = state.ports.get(floating["port_id"]) if floating["port_id"] else None
    if port is None or not floating["router_id"]:
        return []
    columns: dict[str, Any] = {
        "type": "dnat_and_snat",
        "external_ip": floating["floating_ip_address"],
        "logical_ip": floating["fixed_ip_address"],
        "external_ids": {
            "neutron:fip_id": floating["id"],
            "neutron:fip_port_id": port["id"],
            "neutron:fip_external_mac": port["mac_address"],
            "neutron:router_name": switch_name(floating["router_id"]),
            "neutron:revision_number": str(floating["revision_number"]),
        },
        "external_mac": [],
        "logical_port": [],
    }
    # The address of a port without a machine is never translated on a host.
    if shape.distributed and not port["name"].startswith(VIP_PREFIX):
        columns |= {"external_mac": [port["mac_address"]], "logical_port": [port["id"]]}
    parent = ("Logical_Router", switch_name(floating["router_id"]), "nat")
    return [NbRow("NAT", f"fip-{floating['id']}", columns, parent)]
