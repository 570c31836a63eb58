"""Address arithmetic of a network's prefix (resources.md section 3): pure, on a valid spec.

From the beginning: gateway, what the provider keeps, storage, then DHCP to the end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from roadstead_network.network.model import (
    DEFAULT_PROVIDER_RESERVED,
    DEFAULT_RESERVED,
    NetworkSpec,
    Reservations,
    Route,
)


@dataclass(frozen=True)
class Layout:
    """All addresses as text; ranges are (first, last), both included.  storage None: opted out."""

    gateway: str
    dhcp: tuple[str, str]
    storage: tuple[str, str] | None


def effective(reservations: Reservations | None) -> Reservations:
    """Without reservations 25 and 28; given ones are taken as they are, with 25 where the first length is left out."""
    if reservations is None:
        return Reservations(
            prefixLength=DEFAULT_RESERVED, providerReservedPrefixLength=DEFAULT_PROVIDER_RESERVED
        )
    if reservations.prefixLength is None:
        return reservations.model_copy(update={"prefixLength": DEFAULT_RESERVED})
    return reservations


def layout(spec: NetworkSpec) -> Layout:
    """Who gets which addresses (REF-016, REF-017)."""
    network = IPv4Network(spec.prefix)
    base, lengths = network.network_address, effective(spec.reservations)
    assert lengths.prefixLength is not None
    dhcp = base + 2 ** (32 - lengths.prefixLength)
    kept = lengths.providerReservedPrefixLength
    first = base + (2 if kept is None else 2 ** (32 - kept))
    storage = None if kept == lengths.prefixLength else (str(first), str(dhcp - 1))
    return Layout(str(base + 1), (str(dhcp), str(network.broadcast_address - 1)), storage)


def canonical_dns(servers: Iterable[Any]) -> tuple[str, ...]:
    """In the order given, which resolvers keep to, each once; a spelling that is no address stays as it is."""
    return tuple(dict.fromkeys(_address(server) for server in servers))


def canonical_routes(routes: Iterable[Route] | None) -> frozenset[tuple[str, str]]:
    """(prefix without host bits, next hop)."""
    return frozenset((_prefix(route.prefix), _address(route.nextHop)) for route in routes or ())


def _address(text: Any) -> str:
    try:
        return str(IPv4Address(str(text)))
    except ValueError:
        return str(text)


def _prefix(text: Any) -> str:
    try:
        return str(IPv4Network(str(text), strict=False))
    except ValueError:
        return str(text)
