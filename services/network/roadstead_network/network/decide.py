"""What a network's pass does next: network, subnet, router, interface, in that order, and back again."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Network
from typing import Any

from roadstead.reconcile.decision import Code, Decision, do, done, retry, wait
from roadstead.reconcile.kind import Resource
from roadstead_network.network.addresses import canonical_dns, canonical_routes, effective, layout
from roadstead_network.network.model import UNREAD, CloudSubnet, NetworkSeen, NetworkSpec, NetworkStatus

NetworkResource = Resource[NetworkSpec, NetworkStatus]

NO_EXTERNAL_NETWORK = (
    "no external network passes the region's selector; an operator must make one or widen the selector"
)


class NetworkRule(StrEnum):
    """Rules of a network's pass (behaviour.md sections 5.1 and 5.2, in order)."""

    FOREIGN_IDENTITY = "5.1-1-foreign"
    VLAN_ABSENT = "5.1-2a"
    VLAN_DOUBLE = "5.1-2a-double"
    NETWORK_ABSENT = "5.1-2b"
    VLAN_UNNOTED = "5.1-2c"
    VLAN_DIFFERS = "5.1-2c-differs"
    SUBNET_ABSENT = "5.1-3"
    SUBNET_OTHER = "5.1-3-prefix"
    SUBNET_OUTDATED = "5.1-3-update"
    NO_EXTERNAL = "5.1-4-none"
    NOT_READ = "5.1-4-unread"
    ROUTER_ABSENT = "5.1-4"
    INTERFACE_ABSENT = "5.1-5"
    REALIZED = "5.1-6"
    NOTHING_OURS = "5.2-foreign"
    STRAY_LEFT = "5.2-stray-port"
    STILL_USED = "5.2-in-use"
    INTERFACE_LEFT = "5.2-interface"
    ROUTER_LEFT = "5.2-router"
    SUBNET_LEFT = "5.2-subnet"
    NETWORK_LEFT = "5.2-network"
    VLAN_LEFT = "5.2-vlan"
    REMOVED = "5.2-done"


class NetworkVerb(StrEnum):
    """Each is one write to the cloud, or (VLAN) one to the table."""

    ALLOCATE_VLAN = "allocate_vlan"
    CLAIM_VLAN = "claim_vlan"
    CREATE_NETWORK = "create_network"
    CREATE_SUBNET = "create_subnet"
    UPDATE_SUBNET = "update_subnet"
    CREATE_ROUTER = "create_router"
    ADD_INTERFACE = "add_interface"
    DELETE_STRAY = "delete_stray_port"
    REMOVE_INTERFACE = "remove_interface"
    DELETE_ROUTER = "delete_router"
    DELETE_SUBNET = "delete_subnet"
    DELETE_NETWORK = "delete_network"
    FREE_VLAN = "free_vlan"


# FREE_VLAN creates nothing, but must wait like a create: while a network was asked for and the answer never seen, its
# absence proves nothing, and the VLAN id may yet come into use.
CREATING = frozenset(
    {NetworkVerb.CREATE_NETWORK, NetworkVerb.CREATE_SUBNET, NetworkVerb.CREATE_ROUTER, NetworkVerb.FREE_VLAN}
)
DESTRUCTIVE = frozenset(
    {
        NetworkVerb.DELETE_STRAY,
        NetworkVerb.REMOVE_INTERFACE,
        NetworkVerb.DELETE_ROUTER,
        NetworkVerb.DELETE_SUBNET,
        NetworkVerb.DELETE_NETWORK,
    }
)


def decide(resource: NetworkResource, seen: NetworkSeen, _now: datetime) -> Decision:
    """Total over every observation."""
    return _removing(seen) if resource.deleting else _making(resource, seen)


def _making(resource: NetworkResource, seen: NetworkSeen) -> Decision:
    if seen.foreign:
        text = "the identity belongs to another project; name one of this project"
        return retry(NetworkRule.FOREIGN_IDENTITY, Code.CONSISTENCY, text)
    if len(seen.held) > 1:
        text = "the network holds more than one VLAN id; an operator must look at it"
        return retry(NetworkRule.VLAN_DOUBLE, Code.ALLOCATION, text)
    if seen.network is None:
        if seen.physical is not None and not seen.held:
            return do(NetworkRule.VLAN_ABSENT, NetworkVerb.ALLOCATE_VLAN)
        # The VLAN id leaves in the status before the request does: a lost database gets it back from there.
        return do(NetworkRule.NETWORK_ABSENT, NetworkVerb.CREATE_NETWORK, **vlan_status(resource, seen))
    if seen.physical is not None and seen.network.vlan is not None and seen.held != (seen.network.vlan,):
        if not seen.held:
            return do(NetworkRule.VLAN_UNNOTED, NetworkVerb.CLAIM_VLAN)
        text = "the cloud shows another VLAN id than the one reserved for this network; an operator must look at it"
        return retry(NetworkRule.VLAN_DIFFERS, Code.CONSISTENCY, text)
    return _subnet(resource, seen)


def _subnet(resource: NetworkResource, seen: NetworkSeen) -> Decision:
    if seen.subnet is None:
        return do(NetworkRule.SUBNET_ABSENT, NetworkVerb.CREATE_SUBNET)
    if seen.subnet.cidr != str(IPv4Network(resource.spec.prefix)):
        text = "the subnet in the cloud has another prefix than the network; an operator must look at it"
        return retry(NetworkRule.SUBNET_OTHER, Code.CONSISTENCY, text)
    if outdated(resource.spec, seen.subnet):
        return do(NetworkRule.SUBNET_OUTDATED, NetworkVerb.UPDATE_SUBNET)
    if seen.router is None:
        if seen.external is UNREAD:
            text = "the cloud lists no external network, which is not believed at once; looking again"
            return wait(NetworkRule.NOT_READ, Code.WAITING, text)
        if seen.external is None:
            return retry(NetworkRule.NO_EXTERNAL, Code.NOT_FOUND, NO_EXTERNAL_NETWORK)
        return do(NetworkRule.ROUTER_ABSENT, NetworkVerb.CREATE_ROUTER)
    if not seen.interface:
        return do(NetworkRule.INTERFACE_ABSENT, NetworkVerb.ADD_INTERFACE)
    return done(NetworkRule.REALIZED, **realized_status(resource, seen))


def _removing(seen: NetworkSeen) -> Decision:
    if seen.foreign:
        return done(NetworkRule.NOTHING_OURS)
    if seen.strays:
        why = "a refused load balancer left its port behind"
        return do(NetworkRule.STRAY_LEFT, NetworkVerb.DELETE_STRAY, why)
    if seen.blocking:
        return wait(NetworkRule.STILL_USED, Code.IN_USE, blocked_by(seen.blocking))
    if seen.interface:
        return do(NetworkRule.INTERFACE_LEFT, NetworkVerb.REMOVE_INTERFACE)
    if seen.router is not None:
        return do(NetworkRule.ROUTER_LEFT, NetworkVerb.DELETE_ROUTER)
    if seen.subnet is not None:
        return do(NetworkRule.SUBNET_LEFT, NetworkVerb.DELETE_SUBNET)
    if seen.network is not None:
        return do(NetworkRule.NETWORK_LEFT, NetworkVerb.DELETE_NETWORK)
    if seen.held:
        return do(NetworkRule.VLAN_LEFT, NetworkVerb.FREE_VLAN)
    return done(NetworkRule.REMOVED)


def outdated(spec: NetworkSpec, subnet: CloudSubnet) -> bool:
    """DNS servers or routes differ in canonical form, an emptied list included (REF-023)."""
    wanted = (canonical_dns(spec.dnsNameservers), canonical_routes(spec.routes))
    return wanted != (subnet.dns, subnet.routes)


def vlan_of(seen: NetworkSeen) -> int | None:
    """The network's VLAN id: as the cloud shows it, else as the table holds it where the cloud shows nothing."""
    if seen.network is not None and (seen.network.vlan is not None or seen.network.shows_type):
        return seen.network.vlan
    return seen.held[0] if len(seen.held) == 1 else None


def vlan_status(resource: NetworkResource, seen: NetworkSeen) -> Mapping[str, Any]:
    """The status with the VLAN id in it; empty where there is none."""
    vlan = vlan_of(seen)
    if vlan is None:
        return {}
    before = resource.status.openstack.model_dump(exclude_none=True) if resource.status.openstack else {}
    return {"openstack": {**before, "vlanID": vlan}}


def realized_status(resource: NetworkResource, seen: NetworkSeen) -> Mapping[str, Any]:
    """What readers need of a finished network."""
    assert seen.network is not None
    assert seen.subnet is not None
    storage = layout(resource.spec).storage
    part: dict[str, Any] = {
        "networkID": seen.network.id,
        "subnetID": seen.subnet.id,
        "storageRange": {"startIP": storage[0], "endIP": storage[1]} if storage else None,
    }
    vlan = vlan_of(seen)
    if vlan is not None:
        part["vlanID"] = vlan
    return {
        "openstack": part,
        "reservations": effective(resource.spec.reservations).model_dump(exclude_none=True),
    }


def blocked_by(blocking: tuple[tuple[str, int], ...]) -> str:
    """What still lies on the network, without the cloud's ids."""
    parts = ", ".join(f"{count} of {word}" for word, count in blocking)
    return f"the network still has ports in use: {parts}"
