"""Rows of the Northbound database as the network service writes them: transactions of networks, ports, routers and floating IPs.

Pure: each function gives the operations of one transaction, for a real server or for the database in memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Op = dict[str, Any]


def as_map(values: Mapping[str, str]) -> list[Any]:
    return ["map", [[key, value] for key, value in values.items()]]


def as_set(values: Sequence[Any]) -> list[Any]:
    return ["set", list(values)]


def _added(table: str, row: Op, parent: str, parent_name: str, column: str) -> list[Op]:
    mutation = [column, "insert", as_set([["named-uuid", "row"]])]
    return [
        {"op": "insert", "table": table, "row": row, "uuid-name": "row"},
        {"op": "mutate", "table": parent, "where": [["name", "==", parent_name]], "mutations": [mutation]},
    ]


def network(identifier: str, physical: str | None = None) -> list[Op]:
    """physical: the name of the physical network of a provider network."""
    ids = {"neutron:network_name": identifier, "neutron:revision_number": "1"}
    if physical:
        ids["neutron:provnet-physical-network"] = physical
    row = {"name": f"neutron-{identifier}", "external_ids": as_map(ids)}
    return [{"op": "insert", "table": "Logical_Switch", "row": row}]


def router(identifier: str) -> list[Op]:
    row = {"name": f"neutron-{identifier}", "external_ids": as_map({"neutron:router_name": identifier})}
    return [{"op": "insert", "table": "Logical_Router", "row": row}]


@dataclass(frozen=True)
class PortLaid:
    """ips: addresses with their prefix length.  kind: of the switch port: `router`, `localport` or empty.  bare: the addresses column is
    left empty."""

    id: str
    network_id: str
    ips: tuple[str, ...]
    name: str = ""
    owner: str = "compute:nova"
    device: str = ""
    project: str = "project"
    kind: str = ""
    bare: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


def mac(number: int) -> str:
    return f"fa:16:3e:00:{number >> 8 & 255:02x}:{number & 255:02x}"


def switch_port(port: PortLaid, number: int = 1) -> list[Op]:
    text = " ".join([mac(number), *(ip.split("/")[0] for ip in port.ips)])
    addresses: Any = "router" if port.kind == "router" else as_set([]) if port.bare else text
    ids = {
        "neutron:port_name": port.name,
        "neutron:device_owner": port.owner,
        "neutron:device_id": port.device,
        "neutron:project_id": port.project,
        "neutron:cidrs": " ".join(port.ips),
        "neutron:network_name": f"neutron-{port.network_id}",
        "neutron:revision_number": "1",
    }
    row = {
        "name": port.id,
        "type": port.kind,
        "addresses": addresses,
        "enabled": True,
        "options": as_map(port.options),
        "external_ids": as_map(ids),
    }
    return _added("Logical_Switch_Port", row, "Logical_Switch", f"neutron-{port.network_id}", "ports")


def router_port(port: PortLaid, router_id: str, is_gateway: bool, number: int = 1) -> list[Op]:
    ids = {
        "neutron:network_name": f"neutron-{port.network_id}",
        "neutron:router_name": router_id,
        "neutron:revision_number": "1",
        "neutron:is_ext_gw": str(is_gateway),
    }
    row: Op = {
        "name": f"lrp-{port.id}",
        "mac": mac(number),
        "networks": as_set(port.ips),
        "external_ids": as_map(ids),
    }
    ops: list[Op] = []
    if is_gateway:
        gateway = {"name": f"lrp-{port.id}_ch0", "chassis_name": "ch0", "priority": 1}
        ops.append({"op": "insert", "table": "Gateway_Chassis", "uuid-name": "gateway", "row": gateway})
        row["gateway_chassis"] = as_set([["named-uuid", "gateway"]])
    return ops + _added("Logical_Router_Port", row, "Logical_Router", f"neutron-{router_id}", "ports")


def interface(
    port_id: str, network_id: str, router_id: str, ip: str, *, is_gateway: bool = False, number: int = 1
) -> list[list[Op]]:
    """A router's port: two transactions, the switch's side first."""
    owner = "network:router_gateway" if is_gateway else "network:router_interface"
    options = {"router-port": f"lrp-{port_id}"}
    port = PortLaid(port_id, network_id, (ip,), "", owner, router_id, kind="router", options=options)
    return [switch_port(port, number), router_port(port, router_id, is_gateway, number)]


def removed(handles: Sequence[str], parent: str, column: str, where: Sequence[Any] = ()) -> list[Op]:
    """Rows that are taken out of what holds them, and so go.  where: all holders, if not given."""
    mutation = [column, "delete", as_set([["uuid", handle] for handle in handles])]
    return [{"op": "mutate", "table": parent, "where": list(where), "mutations": [mutation]}]


def floating_nat(
    address: str, port_id: str, fixed: str, router_id: str, distributed_mac: str | None = None
) -> list[Op]:
    ids = {"neutron:fip_id": f"id of {address}", "neutron:fip_port_id": port_id}
    row: Op = {
        "type": "dnat_and_snat",
        "external_ip": address,
        "logical_ip": fixed,
        "external_ids": as_map(ids),
    }
    if distributed_mac:
        row |= {"external_mac": distributed_mac, "logical_port": port_id}
    return _added("NAT", row, "Logical_Router", f"neutron-{router_id}", "nat")


def floating_mark(port_id: str, address: str | None) -> list[Op]:
    """The mark on the port's switch port; None takes it away."""
    steps: list[Any] = [["external_ids", "delete", as_set(["neutron:port_fip"])]]
    if address:
        steps.append(["external_ids", "insert", as_map({"neutron:port_fip": address})])
    where = [["name", "==", port_id]]
    return [{"op": "mutate", "table": "Logical_Switch_Port", "where": where, "mutations": steps}]
