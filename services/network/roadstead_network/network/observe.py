"""Reading a network: by its one name, in its identity's project, as the region's user there.

A settled network costs four requests: networks, subnets, routers, and the router's ports.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from roadstead.cloud.names import network_name
from roadstead.cloud.port import CloudError, Verdict
from roadstead.cloud.vip import STRAY_AGE, balancer_of, made_at
from roadstead.reconcile.passing import Pass
from roadstead.region import ProviderNetworks
from roadstead_network import vlan
from roadstead_network.external import ExternalNetworks
from roadstead_network.network.addresses import canonical_dns, canonical_routes
from roadstead_network.network.model import (
    UNREAD,
    CloudNetwork,
    CloudSubnet,
    NetworkSeen,
    NetworkSpec,
    NetworkStatus,
    Route,
    Unread,
)
from roadstead_network.tenancy import is_foreign, project_of

log = structlog.get_logger("roadstead.network")

NetworkPass = Pass[NetworkSpec, NetworkStatus, NetworkSeen]

ROUTER_PORT = "network:router_interface"
BALANCING = "load-balancer"
MOST_STRAYS = 8
# Neutron makes and removes these by itself; they never stand in a deletion's way.
OWN_PORTS = ("network:dhcp", "network:distributed", "network:metadata")
WORDS = (
    ("compute:", "a server"),
    ("ovn-lb", "a load balancer"),
    ("Octavia", "a load balancer"),
    ("neutron:LOADBALANCER", "a load balancer"),
    ("network:router", "a router"),
    ("network:ha_router", "a router"),
    ("network:floatingip", "a floating IP"),
)


async def observe(p: NetworkPass) -> NetworkSeen:
    """Everything the decision needs, from reads of this pass."""
    if p.identity_id and is_foreign(p, "identity", p.identity_id):
        return NetworkSeen(foreign=True)
    return await _left(p) if p.resource.deleting else await _made(p)


def provider_networks(p: NetworkPass) -> ProviderNetworks | None:
    """The region's part about VLAN provider networks."""
    if p.region is None or p.region.openstack is None:
        return None
    return p.region.openstack.network.providerNetworks


async def _made(p: NetworkPass) -> NetworkSeen:
    provider = provider_networks(p)
    network = await find_network(p)
    subnet = await _find_subnet(p, network.id) if network is not None else None
    router = await _find_router(p)
    external: str | Unread | None = UNREAD
    if router is None:
        external = await first_external(p)
    return NetworkSeen(
        physical=provider.physicalNetwork if provider else None,
        held=await _held(p) if provider else (),
        network=network,
        subnet=subnet,
        router=router,
        external=external,
        interface=await _has_interface(p, router, subnet) if router and subnet else False,
    )


async def _left(p: NetworkPass) -> NetworkSeen:
    """For a deletion also every port on the network.  The VLAN table is read where there can be an entry."""
    provider = provider_networks(p)
    network = await find_network(p)
    subnet = await _find_subnet(p, network.id) if network is not None else None
    router = await _find_router(p)
    ports = await _ports(p, network_id=network.id) if network is not None else []
    interfaces = [port for port in ports if _joins(port, router, subnet)]
    others = [port for port in ports if port not in interfaces]
    strays = await _strays(p, others)
    status = p.resource.status.openstack
    noted = provider is not None or (status is not None and status.vlanID is not None)
    return NetworkSeen(
        physical=provider.physicalNetwork if provider else None,
        held=await _held(p) if noted else (),
        network=network,
        subnet=subnet,
        router=router,
        interface=bool(interfaces),
        blocking=_blocking(port for port in others if port["id"] not in strays),
        strays=strays,
    )


async def find_network(p: NetworkPass) -> CloudNetwork | None:
    """One list request.  Shared and external networks of others are listed too, so the project is compared."""
    project = project_of(p)
    found = await p.find(
        p.privileged,
        "network",
        "network.list",
        network_name(p.resource.key.id),
        lambda n: n.get("project_id") == project,
        project_id=project,
    )
    if found is None:
        await p.not_contradicted(p.privileged, "network", "network.get", noted(p, "networkID"))
    return cloud_network(found) if found else None


def noted(p: NetworkPass, name: str) -> str | None:
    """An id that an earlier pass put into the status: never authority, but a list that lacks it is looked at twice."""
    status = p.resource.status.openstack
    return getattr(status, name) if status is not None else None


async def _find_subnet(p: NetworkPass, network_id: str) -> CloudSubnet | None:
    """Our name alone is no proof: a tenant may name its own subnets so, but not put them on our network unseen."""
    found = await p.find(
        p.privileged,
        "network",
        "subnet.list",
        network_name(p.resource.key.id),
        lambda s: s.get("network_id") == network_id,
        network_id=network_id,
    )
    if found is None:
        await p.not_contradicted(p.privileged, "network", "subnet.get", noted(p, "subnetID"))
    return cloud_subnet(found) if found else None


async def _find_router(p: NetworkPass) -> str | None:
    project = project_of(p)
    found = await p.find(
        p.privileged,
        "network",
        "router.list",
        network_name(p.resource.key.id),
        lambda r: r.get("project_id") == project,
        project_id=project,
    )
    return str(found["id"]) if found else None


async def _ports(p: NetworkPass, **query: str) -> list[dict[str, Any]]:
    """Compared again: a port of somebody else's network, listed in spite of the filter, must not count."""
    found: list[dict[str, Any]] = await p.get(p.privileged, "network", "port.list", query=query)
    return [port for port in found if all(port.get(name) == value for name, value in query.items())]


async def _strays(p: NetworkPass, ports: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """VIP ports in our project, on our network, whose load balancer Octavia does not know: not in its list, and not by its id.

    A load balancer whose create was never answered and then refused leaves one, and nobody else looks for it.  One list request
    where there is an old VIP port, and a read a candidate, at most MOST_STRAYS of them a pass; the others count as in use.
    """
    old: dict[str, str] = {}
    for port in ports:
        balancer, born = balancer_of(port), made_at(port)
        if balancer is None or born is None or port.get("project_id") != project_of(p):
            continue
        if p.now - born >= STRAY_AGE:
            old[str(port["id"])] = balancer
    if not old:
        return ()
    listed = await p.get(p.principal, BALANCING, "loadbalancer.list")
    known = {str(balancer["id"]) for balancer in listed}
    missing = [(port, balancer) for port, balancer in old.items() if balancer not in known][:MOST_STRAYS]
    return tuple([port for port, balancer in missing if await _is_unknown(p, balancer)])


async def _is_unknown(p: NetworkPass, balancer: str) -> bool:
    """Whether Octavia says that there is no load balancer of that id; one of another project (403) is known."""
    try:
        await p.get(p.principal, BALANCING, "loadbalancer.get", id=balancer)
    except CloudError as error:
        if error.verdict not in (Verdict.GONE, Verdict.FORBIDDEN):
            raise
        return error.verdict is Verdict.GONE
    return False


async def _has_interface(p: NetworkPass, router: str, subnet: CloudSubnet) -> bool:
    return any(_joins(port, router, subnet) for port in await _ports(p, device_id=router))


async def _held(p: NetworkPass) -> tuple[int, ...]:
    name = vlan.document_name(p.region_id)
    held: tuple[int, ...] = await p.book.change_document(
        name, lambda document, _now: (document, vlan.held_by(document, p.resource.key.id))
    )
    return held


async def first_external(p: NetworkPass) -> str | Unread | None:
    """The external network for the gateway; from the cache, or by one request.  UNREAD: the cloud lists none, not believed yet."""
    inventory: ExternalNetworks = p.extras["inventory"]
    if p.region is None:
        return None
    networks = await inventory.selected(p.region_id, p.region)
    if networks is None:
        return UNREAD
    return networks[0].id if networks else None


# ---------------------------------------------------------------- shapes


def cloud_network(raw: Mapping[str, Any]) -> CloudNetwork:
    """A VLAN id that cannot be read is logged and left out, it stops nothing."""
    kind = raw.get("provider:network_type")
    ident: int | None = None
    if kind == "vlan":
        try:
            ident = int(raw["provider:segmentation_id"])
        except (KeyError, TypeError, ValueError):
            log.warning("a VLAN network without a readable VLAN id", network=raw.get("id"))
    return CloudNetwork(
        str(raw["id"]), ident, shows_type=kind is not None and (kind != "vlan" or ident is not None)
    )


def cloud_subnet(raw: Mapping[str, Any]) -> CloudSubnet:
    """In canonical form."""
    routes = [
        Route(prefix=str(r["destination"]), nextHop=str(r["nexthop"])) for r in raw.get("host_routes") or ()
    ]
    return CloudSubnet(
        str(raw["id"]),
        str(raw["cidr"]),
        canonical_dns(raw.get("dns_nameservers") or ()),
        canonical_routes(routes),
    )


def _joins(port: Mapping[str, Any], router: str | None, subnet: CloudSubnet | None) -> bool:
    """Whether the port is the router's interface in the subnet."""
    if router is None or subnet is None or port.get("device_id") != router:
        return False
    owner = str(port.get("device_owner") or "")
    return owner.startswith(ROUTER_PORT) and any(
        item.get("subnet_id") == subnet.id for item in port.get("fixed_ips") or ()
    )


def _blocking(ports: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, int], ...]:
    counted: Counter[str] = Counter()
    for port in ports:
        owner = str(port.get("device_owner") or "")
        if not owner.startswith(OWN_PORTS):
            counted[next((word for start, word in WORDS if owner.startswith(start)), "something else")] += 1
    return tuple(sorted(counted.items()))
