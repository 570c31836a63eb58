"""What the worker asks of the network service for the ports of VIPs, against what the original asked."""

import copy
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from roadstead_ovn.facts import MONITOR_PORT_PREFIX, Port, canonical
from roadstead_ovn.network import NetworkRefused
from roadstead_ovn.vip_ports import PortRefused, make_vip_ports, remove_vip_ports
from tests.conformance_ovn.recorded import Json, Moment, Region, failed


class RecordedNetwork:
    """The network service of a scenario at one moment.  broken: it answers 500 to the creation of ports."""

    def __init__(self, region: Region, broken: bool) -> None:
        self._region = copy.deepcopy(region)
        self._broken = broken
        self.calls: list[Json] = []

    async def subnets(self, identifiers: Sequence[str]) -> Sequence[Json]:
        return [asdict(self._region.subnets[x]) for x in identifiers if x in self._region.subnets]

    async def port(self, identifier: str) -> Json | None:
        port = self._region.ports.get(identifier)
        return None if port is None else _json(port)

    async def ports_named(self, name: str, network_id: str) -> Sequence[Json]:
        ports = self._region.ports.values()
        return [_json(port) for port in ports if (port.name, port.network_id) == (name, network_id)]

    async def ports_of(self, identifiers: Sequence[str]) -> Sequence[Json]:
        return [{"id": one} for one in identifiers if one in self._region.ports]

    async def ports_owned(self, owners: Sequence[str]) -> Sequence[Json]:
        raise AssertionError(f"VIPs do not need all ports of {', '.join(owners)}")

    async def make_port(self, body: Any) -> Json:
        self.calls.append({"call": "create_port", **body})
        if self._broken:
            raise NetworkRefused(500, "")
        for port in self._region.ports.values():
            taken = {
                canonical(ip): subnet
                for subnet, ip in port.fixed_ips
                if port.network_id == body["network_id"]
            }
            for fixed in body["fixed_ips"]:
                if (address := fixed.get("ip_address")) and canonical(address) in taken:
                    raise NetworkRefused(
                        409, f"IP address {address} already allocated in subnet {fixed['subnet_id']}"
                    )
        known = set(self._region.ports)
        self._region.add_port(body)
        (identifier,) = set(self._region.ports) - known
        return _json(self._region.ports[identifier])

    async def remove_port(self, identifier: str) -> None:
        self.calls.append({"call": "delete_port", "port_id": identifier})
        self._region.ports.pop(identifier, None)

    async def recompute_floating_ip(self, address: str) -> None:
        raise AssertionError(f"{address} has nothing to do with ports of VIPs")

    def close(self) -> None: ...


def _json(port: Port) -> Json:
    fixed = [{"subnet_id": subnet, "ip_address": ip} for subnet, ip in port.fixed_ips]
    return {**asdict(port), "fixed_ips": fixed}


def _asked(step: Json) -> list[Json]:
    return [{k: v for k, v in call.items() if k != "raised"} for call in step.get("network_calls", ())]


async def port_differences(moment: Moment, before: Region) -> set[str]:
    """What differs of ports, answer and refusal; of steps that are not about ports of VIPs, nothing."""
    step = moment.step
    if step["do"] != "call":
        return set()
    if step["method"] == "create_vip_port":
        return await _made(moment, before)
    is_over = step["method"] == "loadbalancer_delete" or (
        step["method"] == "loadbalancer_create" and failed(step)
    )
    return await _removed(moment, before) if is_over else set()


async def _made(moment: Moment, before: Region) -> set[str]:
    step = moment.step
    region = copy.deepcopy(before)
    identifier, project, vip, additional = copy.deepcopy(step["args"])
    for port in moment.facts.ports:
        if port.id == vip.get("vip_port_id"):
            region.ports[port.id] = port
    broken = any(call.get("raised") for call in step.get("network_calls", ()))
    network = RecordedNetwork(region, broken)
    found = set()
    try:
        answer: Any = list(await make_vip_ports(network, identifier, project, vip, additional))
    except PortRefused as refusal:
        error = step.get("error")
        if error is None or (refusal.kind, refusal.text) != (error["class"], error["user_fault_string"]):
            found.add("refusal")
    else:
        if "error" in step:
            found.add("refusal")
        elif answer != step["result"]:
            found.add("answer of create_vip_port")
    return found | ({"requests for ports"} if network.calls != _asked(step) else set())


async def _removed(moment: Moment, before: Region) -> set[str]:
    tree = moment.tree if moment.tree is not None else moment.before
    if tree is None:
        return set()
    region = copy.deepcopy(before)
    if (
        moment.step["method"] == "loadbalancer_delete"
    ):  # otherwise ports that OVN lost are still the network service's
        region.ports = {port.id: port for port in moment.facts_before.ports}
    network = RecordedNetwork(region, broken=False)
    await remove_vip_ports(network, tree)
    probes = {port.id for port in before.ports.values() if port.name.startswith(MONITOR_PORT_PREFIX)}
    asked = [
        call
        for call in _asked(moment.step)
        if call["call"] == "delete_port" and call["port_id"] not in probes
    ]
    removed = sorted({call["port_id"] for call in network.calls})
    # The original tries a port that is gone again and again; one look is as good.
    is_gone = {call["port_id"] for call in asked} - set(before.ports)
    return (
        {"requests for ports"} if removed != sorted({call["port_id"] for call in asked} - is_gone) else set()
    )
