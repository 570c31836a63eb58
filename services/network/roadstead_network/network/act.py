"""The verbs of a network.  Each is one write to the cloud, or one to the VLAN table."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from ipaddress import IPv4Network
from typing import Any

from roadstead.cloud.names import network_name
from roadstead.cloud.port import CloudError, Scope, Verdict
from roadstead.reconcile.decision import Code, Go, Retry, Step, Stop, Yield
from roadstead.reconcile.kind import Action
from roadstead_network import vlan
from roadstead_network.external import ExternalNetworks
from roadstead_network.network.addresses import canonical_dns, canonical_routes, layout
from roadstead_network.network.decide import NetworkVerb, vlan_status
from roadstead_network.network.model import DESCRIPTION, NetworkSeen
from roadstead_network.network.observe import (
    NetworkPass,
    cloud_network,
    cloud_subnet,
    find_network,
    provider_networks,
)

VLAN_REFUSED = (
    "the cloud refuses the VLAN id reserved for this network; an operator must free it there "
    "or take it out of the region's segments"
)


def _seen(p: NetworkPass) -> NetworkSeen:
    assert p.seen is not None
    return p.seen


def _name(p: NetworkPass) -> str:
    return network_name(p.resource.key.id)


# ---------------------------------------------------------------- VLAN table


async def _in_table(p: NetworkPass, change: Any) -> Any:
    return await p.book.change_document(vlan.document_name(p.region_id), vlan.rule(change))


async def allocate_vlan(p: NetworkPass) -> Step:
    """Take the network's VLAN id; it shows in the status before the network is asked for (INV-260)."""
    provider = provider_networks(p)
    segments = provider.vlan.segments if provider is not None and provider.vlan is not None else None
    got = await _in_table(p, lambda document: vlan.allocate(document, p.resource.key.id, segments))
    if isinstance(got, vlan.VlanError):
        return Stop(Retry(Code.ALLOCATION, str(got)))
    seen = replace(_seen(p), held=(got,))
    return Go(seen, vlan_status(p.resource, seen))


async def claim_vlan(p: NetworkPass) -> Step:
    """Note in the table what the cloud shows: the table was lost, or never knew."""
    network = _seen(p).network
    assert network is not None
    assert network.vlan is not None
    ident = network.vlan
    got = await _in_table(p, lambda document: vlan.claim(document, p.resource.key.id, ident))
    if isinstance(got, vlan.VlanError):
        return Stop(Retry(Code.CONSISTENCY, str(got)))
    return Go(replace(_seen(p), held=(got,)))


async def free_vlan(p: NetworkPass) -> Step:
    """Give the id back by network id; only reached once the network is proved gone (REF-020)."""
    await _in_table(p, lambda document: vlan.free_network(document, p.resource.key.id))
    return Go(replace(_seen(p), held=()))


# ---------------------------------------------------------------- making


async def create_network(p: NetworkPass) -> Step:
    """A failure keeps the VLAN id: given back, it could meet a network that exists after all (REF-018)."""
    seen = _seen(p)
    body: dict[str, Any] = {"name": _name(p), "description": DESCRIPTION}
    if seen.physical is not None:
        body["segments"] = [
            {
                "provider:network_type": "vlan",
                "provider:physical_network": seen.physical,
                "provider:segmentation_id": seen.held[0],
            }
        ]
    try:
        made = await p.write(p.privileged, "network", "network.create", json={"network": body})
    except CloudError as error:
        if seen.physical is None or error.verdict is not Verdict.CONFLICT:
            raise
        return Stop(Retry(Code.CONFLICT, VLAN_REFUSED))
    network = cloud_network(made.value)
    if seen.physical is not None and network.vlan is None:
        network = replace(network, vlan=seen.held[0])
    return Go(replace(seen, network=network, subnet=None))


async def create_subnet(p: NetworkPass) -> Step:
    """Gateway, one DHCP pool, DNS servers and routes."""
    network, spec = _seen(p).network, p.resource.spec
    assert network is not None
    places = layout(spec)
    body = {
        "name": _name(p),
        "description": DESCRIPTION,
        "network_id": network.id,
        "ip_version": 4,
        "cidr": str(IPv4Network(spec.prefix)),
        "gateway_ip": places.gateway,
        "allocation_pools": [{"start": places.dhcp[0], "end": places.dhcp[1]}],
        **_changeable(p),
    }
    made = await p.write(p.privileged, "network", "subnet.create", json={"subnet": body})
    return Go(replace(_seen(p), subnet=cloud_subnet(made.value), interface=False))


async def update_subnet(p: NetworkPass) -> Step:
    """DNS servers and routes as wanted, empty lists included."""
    subnet = _seen(p).subnet
    assert subnet is not None
    await p.write(p.privileged, "network", "subnet.update", id=subnet.id, json={"subnet": _changeable(p)})
    spec = p.resource.spec
    changed = replace(subnet, dns=canonical_dns(spec.dnsNameservers), routes=canonical_routes(spec.routes))
    return Go(replace(_seen(p), subnet=changed))


def _changeable(p: NetworkPass) -> Mapping[str, Any]:
    spec = p.resource.spec
    return {
        "dns_nameservers": list(canonical_dns(spec.dnsNameservers)),
        "host_routes": [
            {"destination": prefix, "nexthop": hop} for prefix, hop in sorted(canonical_routes(spec.routes))
        ],
    }


async def create_router(p: NetworkPass) -> Step:
    """With its gateway on the first selected external network."""
    external = _seen(p).external
    assert isinstance(external, str)
    body = {
        "name": _name(p),
        "description": DESCRIPTION,
        "external_gateway_info": {"network_id": external},
    }
    try:
        made = await p.write(p.privileged, "network", "router.create", json={"router": body})
    except CloudError as error:
        if error.verdict is Verdict.GONE:
            inventory: ExternalNetworks = p.extras["inventory"]
            inventory.forget(p.region_id)
        raise
    return Go(replace(_seen(p), router=str(made.value["id"]), interface=False))


async def add_interface(p: NetworkPass) -> Step:
    """The router's port in the subnet; one that is there already is as good."""
    seen = _seen(p)
    assert seen.subnet is not None
    try:
        await p.write(
            p.privileged,
            "network",
            "router.add_interface",
            id=seen.router,
            json={"subnet_id": seen.subnet.id},
        )
    except CloudError as error:
        if error.verdict is not Verdict.EXISTS:
            raise
    return Go(replace(seen, interface=True))


# ---------------------------------------------------------------- removing


async def _delete(p: NetworkPass, verb: str, scope: Scope | None = None, **args: Any) -> None:
    """What is gone already is as good; what is still used ends the pass as a wait."""
    try:
        await p.write(scope or p.privileged, "network", verb, **args)
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise


async def delete_stray(p: NetworkPass) -> Step:
    """The first left-over VIP port, as the identity's own user: it was made in the name of that one."""
    first, *others = _seen(p).strays
    await _delete(p, "port.delete", p.principal, id=first)
    return Go(replace(_seen(p), strays=tuple(others)))


async def remove_interface(p: NetworkPass) -> Step:
    seen = _seen(p)
    assert seen.subnet is not None
    await _delete(p, "router.remove_interface", id=seen.router, json={"subnet_id": seen.subnet.id})
    return Go(replace(seen, interface=False))


async def delete_router(p: NetworkPass) -> Step:
    await _delete(p, "router.delete", id=_seen(p).router)
    return Go(replace(_seen(p), router=None))


async def delete_subnet(p: NetworkPass) -> Step:
    subnet = _seen(p).subnet
    assert subnet is not None
    await _delete(p, "subnet.delete", id=subnet.id)
    return Go(replace(_seen(p), subnet=None))


async def delete_network(p: NetworkPass) -> Step:
    """Delete, then look: only a complete list that lacks the network frees its VLAN id."""
    network = _seen(p).network
    assert network is not None
    await _delete(p, "network.delete", id=network.id)
    if await find_network(p) is not None:
        return Stop(Yield(Code.BUSY, "the network was deleted and is still listed; looking again"))
    return Go(replace(_seen(p), network=None))


ACTIONS: dict[StrEnum, Action] = {
    NetworkVerb.ALLOCATE_VLAN: allocate_vlan,
    NetworkVerb.CLAIM_VLAN: claim_vlan,
    NetworkVerb.CREATE_NETWORK: create_network,
    NetworkVerb.CREATE_SUBNET: create_subnet,
    NetworkVerb.UPDATE_SUBNET: update_subnet,
    NetworkVerb.CREATE_ROUTER: create_router,
    NetworkVerb.ADD_INTERFACE: add_interface,
    NetworkVerb.DELETE_STRAY: delete_stray,
    NetworkVerb.REMOVE_INTERFACE: remove_interface,
    NetworkVerb.DELETE_ROUTER: delete_router,
    NetworkVerb.DELETE_SUBNET: delete_subnet,
    NetworkVerb.DELETE_NETWORK: delete_network,
    NetworkVerb.FREE_VLAN: free_vlan,
}
