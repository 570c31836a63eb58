"""What a Network's spec must fulfil (resources.md section 3)."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from roadstead.reconcile.kind import Metadata, Problem, Resource
from roadstead.subjects import Key
from roadstead_network.network.addresses import effective
from roadstead_network.network.model import NetworkSpec, NetworkStatus

SMALLEST = 24


def validate(
    spec: NetworkSpec, _metadata: Metadata, stored: Resource[NetworkSpec, NetworkStatus] | None, _key: Key
) -> list[Problem]:
    """Every reason to refuse the spec."""
    prefix = _network(spec.prefix)
    problems = list(_prefix_problems(spec.prefix, prefix))
    problems += _reservation_problems(spec, prefix)
    problems += _dns_problems(spec)
    problems += _route_problems(spec)
    if stored is not None:
        problems += _immutable_problems(spec, stored.spec)
    return problems


def _network(text: str) -> IPv4Network | None:
    try:
        return IPv4Network(text) if "/" in text else None
    except ValueError:
        return None


def _prefix_problems(text: str, prefix: IPv4Network | None) -> Iterator[Problem]:
    if prefix is None:
        remedy = "write one without host bits, such as 192.168.10.0/24"
        yield Problem("PREFIX_INVALID", "spec.prefix", f"spec.prefix {text!r} is no IPv4 CIDR; {remedy}", 400)
    elif prefix.prefixlen > SMALLEST:
        yield Problem("PREFIX_TOO_SMALL", "spec.prefix", f"at least a /{SMALLEST} is required", 400)


def _reservation_problems(spec: NetworkSpec, prefix: IPv4Network | None) -> Iterator[Problem]:
    lengths = effective(spec.reservations)
    reserved, kept = lengths.prefixLength, lengths.providerReservedPrefixLength
    assert reserved is not None
    if prefix is not None and reserved <= prefix.prefixlen <= SMALLEST:
        field = "spec.reservations.prefixLength"
        text = f"the reservation /{reserved} must be smaller than the network's prefix /{prefix.prefixlen}"
        yield Problem("RESERVATION_TOO_LARGE", field, text)
    if kept is not None and kept < reserved:
        field = "spec.reservations.providerReservedPrefixLength"
        text = f"the provider's part /{kept} must fit into the reservation /{reserved}"
        yield Problem("PROVIDER_RESERVATION_TOO_LARGE", field, text)


def _dns_problems(spec: NetworkSpec) -> Iterator[Problem]:
    for number, server in enumerate(spec.dnsNameservers):
        if not _is_address(server):
            field = f"spec.dnsNameservers.{number}"
            yield Problem("DNS_INVALID", field, f"{field} {server!r} is no IPv4 address", 400)


def _route_problems(spec: NetworkSpec) -> Iterator[Problem]:
    for number, route in enumerate(spec.routes or ()):
        field = f"spec.routes.{number}"
        try:
            IPv4Network(route.prefix, strict=False)
            good = "/" in route.prefix
        except ValueError:
            good = False
        if not good:
            yield Problem(
                "ROUTE_INVALID", f"{field}.prefix", f"{field}.prefix {route.prefix!r} is no IPv4 CIDR", 400
            )
        if not _is_address(route.nextHop):
            text = f"{field}.nextHop {route.nextHop!r} is no IPv4 address"
            yield Problem("ROUTE_INVALID", f"{field}.nextHop", text, 400)


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _immutable_problems(spec: NetworkSpec, before: NetworkSpec) -> Iterator[Problem]:
    if spec.prefix != before.prefix:
        yield Problem("PREFIX_IMMUTABLE", "spec.prefix", "spec.prefix cannot be changed")
    if effective(spec.reservations) != effective(before.reservations):
        yield Problem("RESERVATIONS_IMMUTABLE", "spec.reservations", "spec.reservations cannot be changed")
