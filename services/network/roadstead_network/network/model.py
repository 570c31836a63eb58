"""A Network: one IPv4 subnet behind one router, in an identity's project (resources.md section 3)."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

DESCRIPTION = "Network of the region service; it is managed, changes by hand are lost."
DEFAULT_RESERVED, DEFAULT_PROVIDER_RESERVED = 25, 28


class Part(BaseModel):
    """A piece of a spec or status; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class Reservations(Part):
    """How much of the prefix is kept out of DHCP: lengths of prefixes at its beginning."""

    prefixLength: Annotated[int, Field(ge=0, le=30)] | None = None
    providerReservedPrefixLength: Annotated[int, Field(ge=0, le=30)] | None = None


class Route(Part):
    """A host route: prefix is an IPv4 CIDR, nextHop an IPv4 address."""

    prefix: str
    nextHop: str


class NetworkSpec(Part):
    """prefix: IPv4 CIDR, /24 or larger.  dnsNameservers empty: the platform's DNS."""

    prefix: str
    reservations: Reservations | None = None
    dnsNameservers: list[str] = Field(default_factory=list)
    routes: list[Route] | None = None
    tags: list[dict[str, str]] | None = None
    pause: bool = False


class StorageRange(Part):
    startIP: str
    endIP: str


class OpenstackNetwork(Part):
    """What the network is in the cloud, derived anew by every pass; informational but for readers of subnetID."""

    networkID: str | None = None
    subnetID: str | None = None
    vlanID: int | None = None
    storageRange: StorageRange | None = None


class NetworkStatus(Part):
    """reservations: the ones in effect (REF-015)."""

    openstack: OpenstackNetwork | None = None
    reservations: Reservations | None = None


class Unread(Enum):
    """Nobody looked: neither there nor absent."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD


@dataclass(frozen=True)
class CloudNetwork:
    """vlan: its id when it is a VLAN network.  shows_type: the cloud lets us read what kind of network it is."""

    id: str
    vlan: int | None = None
    shows_type: bool = True


@dataclass(frozen=True)
class CloudSubnet:
    """In canonical form: cidr as text, DNS servers in order, routes as a set of (prefix, next hop)."""

    id: str
    cidr: str
    dns: tuple[str, ...] = ()
    routes: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class NetworkSeen:
    """One read of everything that bears the network's name in its project.

    foreign: the identity is another tenant's.  physical: the region's physical network; None: tenant networks.
    held: VLAN ids that the table holds for this network; () too where nobody looked because there are none to hold.
    external: the external network for the gateway; None: none is selected; UNREAD: not looked because a router
        is there, or not known yet.
    interface: the router has a port in the subnet.  blocking: what else lies on the network, (word, count) sorted.
    strays: ids of VIP ports in this project whose load balancer Octavia does not know (deletion only).
    """

    foreign: bool = False
    physical: str | None = None
    held: tuple[int, ...] = ()
    network: CloudNetwork | None = None
    subnet: CloudSubnet | None = None
    router: str | None = None
    external: str | Unread | None = UNREAD
    interface: bool = False
    blocking: tuple[tuple[str, int], ...] = ()
    strays: tuple[str, ...] = ()
