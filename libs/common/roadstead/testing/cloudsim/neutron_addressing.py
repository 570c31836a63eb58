"""Address arithmetic of the simulated Neutron: CIDRs, allocation pools, free addresses, MACs.

Pure and total over its inputs; a refusal is an AddressError that carries Neutron's exception
type, status and text, so that the routes only translate it into a reply.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import pairwise
from typing import Any

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# A scan for a free address never looks at more candidates than this.
MAX_SCAN = 1 << 16


@dataclass(frozen=True)
class AddressError(Exception):
    """A refusal of the address layer: HTTP status, Neutron exception type and message."""

    status: int
    kind: str
    message: str


@dataclass(frozen=True)
class Pool:
    """An allocation pool, both ends inclusive."""

    start: Address
    end: Address

    def __contains__(self, address: object) -> bool:
        return (
            isinstance(address, (IPv4Address, IPv6Address))
            and address.version == self.start.version
            and int(self.start) <= int(address) <= int(self.end)
        )

    def size(self) -> int:
        """Return how many addresses the pool holds."""
        return int(self.end) - int(self.start) + 1

    def as_json(self) -> dict[str, str]:
        """Return the pool in the shape of a subnet's `allocation_pools`."""
        return {"start": str(self.start), "end": str(self.end)}


def parse_network(text: object, version: int) -> Network:
    """Return the network of a CIDR (host bits are dropped); 400 when it is none of `version`."""
    if not isinstance(text, str) or "/" not in text:
        raise AddressError(
            400,
            "HTTPBadRequest",
            f"Invalid input for cidr. Reason: '{text}' isn't a recognized IP subnet cidr, "
            f"'{text}/32' is recommended.",
        )
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise AddressError(
            400, "HTTPBadRequest", f"Invalid input for cidr. Reason: '{text}' is not a valid IP subnet."
        ) from None
    if network.version != version:
        raise AddressError(
            400,
            "InvalidInput",
            f"Invalid input for operation: cidr '{text}' does not match the ip_version '{version}'.",
        )
    return network


def parse_address(text: object, field: str) -> Address:
    """Return one IP address; 400 in the words of Neutron's attribute validation when it is none."""
    try:
        return ip_address(str(text))
    except ValueError:
        raise AddressError(
            400, "HTTPBadRequest", f"Invalid input for {field}. Reason: '{text}' is not a valid IP address."
        ) from None


def first_host(network: Network) -> Address:
    """Return the address that becomes the gateway when the request names none."""
    return network[1] if network.num_addresses > 2 else network[0]


def usable_range(network: Network) -> Pool:
    """Return the addresses ports may take: without network and broadcast address where these exist."""
    if network.version == 4 and network.prefixlen < 31:
        return Pool(network[1], network[-2])
    if network.version == 6 and network.prefixlen < 127:
        return Pool(network[1], network[-1])
    return Pool(network[0], network[-1])


def default_pools(network: Network, gateway: Address | None) -> list[Pool]:
    """Return the pools of a subnet made without any: all usable addresses, the gateway cut out."""
    whole = usable_range(network)
    if gateway is None or gateway not in whole:
        return [whole]
    pools = []
    if gateway != whole.start:
        pools.append(Pool(whole.start, gateway - 1))
    if gateway != whole.end:
        pools.append(Pool(gateway + 1, whole.end))
    return pools


def check_pools(requested: Sequence[Mapping[str, Any]], network: Network) -> list[Pool]:
    """Return requested pools in order of address; 400 or 409 as Neutron for ill-formed sets."""
    pools = []
    for item in requested:
        start = parse_address(item.get("start"), "allocation_pools")
        end = parse_address(item.get("end"), "allocation_pools")
        if start.version != network.version or end.version != network.version or int(end) < int(start):
            raise AddressError(
                400, "InvalidAllocationPool", f"The allocation pool {start}-{end} is not valid."
            )
        pool, whole = Pool(start, end), usable_range(network)
        if start not in whole or end not in whole:
            raise AddressError(
                400,
                "OutOfBoundsAllocationPool",
                f"The allocation pool {start}-{end} spans beyond the subnet cidr {network}.",
            )
        pools.append(pool)
    pools.sort(key=lambda pool: int(pool.start))
    for left, right in pairwise(pools):
        if int(right.start) <= int(left.end):
            raise AddressError(
                409,
                "OverlappingAllocationPools",
                f"Found overlapping allocation pools: {left.start}-{left.end}, {right.start}-{right.end} "
                f"for subnet {network}.",
            )
    return pools


def check_gateway(gateway: Address | None, pools: Iterable[Pool]) -> None:
    """Refuse (409) a gateway that lies inside an allocation pool."""
    for pool in pools:
        if gateway is not None and gateway in pool:
            raise AddressError(
                409,
                "GatewayConflictWithAllocationPools",
                f"Gateway ip {gateway} conflicts with allocation pool {pool.start}-{pool.end}.",
            )


def check_no_overlap(network: Network, others: Iterable[Network], network_id: str) -> None:
    """Refuse (400) a subnet that overlaps another one of the same network."""
    for other in others:
        if other.version == network.version and other.overlaps(network):
            raise AddressError(
                400,
                "InvalidInput",
                f"Invalid input for operation: Requested subnet with cidr: {network} for network: "
                f"{network_id} overlaps with another subnet.",
            )


def lowest_free(pools: Iterable[Pool], taken: Collection[str]) -> Address | None:
    """Return the lowest address of the pools that nobody holds, None when they are used up."""
    looked = 0
    for pool in pools:
        candidate = pool.start
        while candidate in pool and looked < MAX_SCAN:
            looked += 1
            if str(candidate) not in taken:
                return candidate
            candidate = candidate + 1
    return None


def mac_of(number: int) -> str:
    """Return the MAC address of the n-th port, inside Neutron's default prefix fa:16:3e."""
    low = number & 0xFFFFFF
    return f"fa:16:3e:{low >> 16:02x}:{low >> 8 & 0xFF:02x}:{low & 0xFF:02x}"
