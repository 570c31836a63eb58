"""Where the VIP of a new load balancer will be: network, subnet and address from what the request names.

`resolved` asks the network; what it learns is judged by the pure functions of `rules.py`.  Nothing is made here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from roadstead_octavia.call import Call
from roadstead_octavia.errors import invalid, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.resources.loadbalancer import rules
from roadstead_octavia.resources.loadbalancer.lookups import Found, Lookups, absent

KINDS = ("vip_port_id", "vip_network_id", "vip_subnet_id")


@dataclass(frozen=True)
class Additional:
    """One more VIP; network_id is filled in once its subnet is known."""

    subnet_id: str
    ip_address: str | None = None
    network_id: str | None = None


@dataclass(frozen=True)
class Vip:
    port_id: str | None = None
    network_id: str | None = None
    subnet_id: str | None = None
    ip_address: str | None = None
    qos_policy_id: str | None = None
    additional: tuple[Additional, ...] = ()
    groups: tuple[str, ...] = ()


def asked_for(body: Mapping[str, Any], options: Options) -> Vip:
    """The VIP as the request has it; ApiError 400 when it says nothing usable of where."""
    allowed = [name for name in KINDS if getattr(options, f"allow_{name}")]
    for name in KINDS:
        if body.get(name) and name not in allowed:
            raise invalid(f"use of {name} is disallowed by this deployment's configuration.")
    if not any(body.get(name) for name in KINDS):
        raise refuse("VIPValidation", objects=", ".join(allowed))
    return Vip(
        port_id=body.get("vip_port_id"),
        network_id=body.get("vip_network_id"),
        subnet_id=body.get("vip_subnet_id"),
        ip_address=body.get("vip_address"),
        qos_policy_id=body.get("vip_qos_policy_id"),
        additional=tuple(
            Additional(one["subnet_id"], one.get("ip_address")) for one in body.get("additional_vips") or ()
        ),
        groups=tuple(body.get("vip_sg_ids") or ()),
    )


async def resolved(call: Call, body: Mapping[str, Any], lookups: Lookups) -> Vip:
    """The VIP with everything filled in that can be known before its port exists; ApiError 400."""
    vip = asked_for(body, call.options)
    if vip.port_id:
        vip = await _from_port(vip, lookups, keep_qos="vip_qos_policy_id" in body)
    elif vip.network_id:
        vip = await _from_network(vip, lookups, call.options)
    else:
        assert vip.subnet_id is not None
        subnet = await lookups.named("subnets", vip.subnet_id)
        vip = replace(vip, network_id=subnet["network_id"])
    if vip.qos_policy_id:
        await lookups.require_qos()
        await lookups.named("qos_policies", vip.qos_policy_id)
    vip = await _with_additional(vip, lookups)
    await lookups.require_groups(vip.groups)
    return vip


async def _from_port(vip: Vip, lookups: Lookups, *, keep_qos: bool) -> Vip:
    """keep_qos: the request said something of the policy, so that of the port does not count."""
    assert vip.port_id is not None
    port = await lookups.named("ports", vip.port_id)
    rules.require_unused(port)
    subnet: Found | None = None
    if vip.subnet_id:
        subnet = await lookups.named("subnets", vip.subnet_id)
    subnet_id, address = rules.place_on_port(port, vip.subnet_id, vip.ip_address)
    qos = vip.qos_policy_id if keep_qos else port.get("qos_policy_id")
    network_id = port.get("network_id")
    if network_id is None:
        known = subnet or await lookups.subnet(subnet_id, as_service=True)
        network_id = known["network_id"]
    return replace(vip, network_id=network_id, subnet_id=subnet_id, ip_address=address, qos_policy_id=qos)


async def _from_network(vip: Vip, lookups: Lookups, options: Options) -> Vip:
    assert vip.network_id is not None
    network = await lookups.named("networks", vip.network_id)
    subnets = network.get("subnets") or ()
    if vip.subnet_id:
        if vip.subnet_id not in subnets:
            raise absent("subnets", vip.subnet_id)
        return vip
    if vip.ip_address:
        for identifier in subnets:
            subnet = await lookups.subnet(identifier, as_service=True)
            if rules.contains(subnet, vip.ip_address):
                return replace(vip, subnet_id=identifier)
        raise invalid("Supplied network does not contain a subnet for VIP address specified.")
    if not subnets:
        raise invalid("Supplied network does not contain a subnet.")
    free = await lookups.free_addresses(vip.network_id)
    roomy = rules.with_room(subnets, free, options.loadbalancer_topology)
    for identifier in roomy:
        subnet = await lookups.subnet(identifier, as_service=True)
        if subnet.get("ip_version") == 4:
            return replace(vip, subnet_id=identifier)
    return replace(vip, subnet_id=roomy[0])


async def _with_additional(vip: Vip, lookups: Lookups) -> Vip:
    """All VIPs in different subnets of one network."""
    if not vip.additional:
        return vip
    assert vip.subnet_id is not None
    rules.require_distinct((vip.subnet_id, *(one.subnet_id for one in vip.additional)))
    first = await lookups.subnet(vip.subnet_id, as_service=True)
    networks = [first["network_id"]]
    for one in vip.additional:
        subnet = await lookups.subnet(one.subnet_id, as_service=False)
        networks.append(subnet["network_id"])
    if len(set(networks)) > 1:
        raise invalid("All VIP subnets must belong to the same network.")
    return replace(vip, additional=tuple(replace(one, network_id=networks[0]) for one in vip.additional))
