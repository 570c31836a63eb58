"""Ports of VIPs in the network service: made when the API asks for one, removed with their load balancer."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from roadstead_ovn.balancer import Vip
from roadstead_ovn.network import Json, Network, NetworkRefused
from roadstead_ovn.ports import VIP_PREFIX, vip_port_name, vip_port_request

log = structlog.get_logger("roadstead.ovn.ports")


class PortRefused(Exception):
    """kind: `Conflict` or `DriverError`.  text: the network service's own, None when it gave no details."""

    def __init__(self, kind: str, text: str | None) -> None:
        super().__init__(text or kind)
        self.kind = kind
        self.text = text


async def make_vip_ports(
    network: Network, load_balancer_id: str, project_id: str, wanted: Json, additional: Sequence[Json]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The VIP as wanted with its port and address, and the additional VIPs as made.  PortRefused: then nothing is left behind.

    A port that the user brought is read and left as it is.  Asking twice gives the same ports.
    """
    made: list[str] = []
    try:
        vip = Vip(*(str(wanted.get(f"vip_{n}") or "") for n in _VIP))
        port = await _given_or_made(network, load_balancer_id, project_id, vip, 0, made)
        answer = {**wanted, "vip_port_id": port["id"], "vip_address": _address(port, vip)}
        # What was not said of the VIP is filled in from its port, and stays as it was said otherwise.
        if not wanted.get("vip_network_id"):
            answer["vip_network_id"] = port.get("network_id")
        if not wanted.get("vip_subnet_id"):
            answer["vip_subnet_id"] = _subnet(port)
        further = []
        for number, item in enumerate(additional, 1):
            more = Vip(*(str(item.get(n) or "") for n in ("ip_address", *_VIP[1:])))
            more = Vip(more.address, more.port_id, more.network_id or vip.network_id, more.subnet_id)
            port = await _given_or_made(network, load_balancer_id, project_id, more, number, made)
            further.append(
                {
                    "port_id": port["id"],
                    "network_id": more.network_id,
                    "subnet_id": more.subnet_id or _subnet(port),
                    "ip_address": _address(port, more),
                }
            )
    except NetworkRefused as error:
        await _take_back(network, made)
        kind = "Conflict" if error.status == 409 else "DriverError"
        raise PortRefused(kind, error.text or None) from error
    return answer, further


_VIP = ("address", "port_id", "network_id", "subnet_id")


async def _given_or_made(
    network: Network, load_balancer_id: str, project_id: str, vip: Vip, number: int, made: list[str]
) -> Json:
    if vip.port_id:
        given = await network.port(vip.port_id)
        if given is None:
            raise NetworkRefused(404, f"Port {vip.port_id} could not be found.")
        # The API names the VIP's own port for additional VIPs too; one whose subnet it does not reach needs another.
        if number == 0 or not vip.subnet_id or vip.subnet_id in _subnets(given):
            return given
    body = vip_port_request(load_balancer_id, project_id, vip, number)
    try:
        port = await network.make_port(body)
    except NetworkRefused as error:
        if error.status != 409:
            raise
        found = await network.ports_named(body["name"], vip.network_id)
        if not found:
            raise
        return found[0]
    made.append(str(port["id"]))
    return port


async def _take_back(network: Network, made: Sequence[str]) -> None:
    for identifier in made:
        try:
            await network.remove_port(identifier)
        except NetworkRefused as error:
            # The API claims the load balancer's ports before it asks, and its sweep removes what is left.
            log.warning("a VIP port is left behind", port=identifier, error=error.text)


def _fixed(port: Json) -> Mapping[str, Any]:
    fixed = port.get("fixed_ips") or [{}]
    first: Mapping[str, Any] = fixed[0]
    return first


def _address(port: Json, vip: Vip) -> Any:
    for ip in port.get("fixed_ips") or ():
        if ip.get("ip_address") == vip.address:
            return vip.address
    there = [ip for ip in port.get("fixed_ips") or () if ip.get("subnet_id") == vip.subnet_id]
    return (there[0] if there else _fixed(port)).get("ip_address", vip.address or None)


def _subnets(port: Json) -> set[Any]:
    return {ip.get("subnet_id") for ip in port.get("fixed_ips") or ()}


def _subnet(port: Json) -> Any:
    return _fixed(port).get("subnet_id")


async def remove_vip_ports(network: Network, tree: Json) -> int:
    """Remove what was made for the load balancer's VIPs; how many.  NetworkRefused.

    The VIP's port is ours when it has our name and the API does not count it as its own; ports of additional VIPs always are,
    unless somebody else's name is on them.
    """
    model = tree["loadbalancer"]
    identifier = str(tree["loadbalancer_id"])
    ports = [(model.get("vip_port_id"), 0)]
    ports += [(item.get("port_id"), n) for n, item in enumerate(model.get("additional_vips") or (), 1)]
    removed = 0
    for port_id, number in ports:
        if not port_id or (number == 0 and tree.get("vip_port_owned")):
            continue
        port = await network.port(str(port_id))
        if port is None or not _is_ours(str(port.get("name") or ""), identifier, number):
            continue
        await network.remove_port(str(port_id))
        removed += 1
    return removed


def _is_ours(name: str, load_balancer_id: str, number: int) -> bool:
    # Only a whole name tells: a user may call a port of his own `ovn-lb-vip-...` too.
    if name == vip_port_name(load_balancer_id, number):
        return True
    return number > 0 and name.startswith(f"{VIP_PREFIX}additional-") and name.endswith(load_balancer_id)
