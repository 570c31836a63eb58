"""A network's spec: arithmetic, canonical forms, validation, and the identity that it brings along."""

from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.network.tests.world import IDENTITY_ID, NETWORK_ID, REGION_ID

from roadstead.reconcile.kind import Metadata, Resource
from roadstead.subjects import Key
from roadstead_network.network.addresses import Layout, canonical_dns, canonical_routes, effective, layout
from roadstead_network.network.hidden import NAME, admit, hidden_identity, on_gone
from roadstead_network.network.model import NetworkSpec, NetworkStatus, Route
from roadstead_network.network.validate import validate

KEY = Key(REGION_ID, "web", "network", NETWORK_ID)


def spec(prefix: str = "192.168.10.0/24", **parts: Any) -> NetworkSpec:
    return NetworkSpec.model_validate({"prefix": prefix, **parts})


def resource(before: NetworkSpec, **metadata: Any) -> Resource[NetworkSpec, NetworkStatus]:
    return Resource(KEY, Metadata(name="n", **metadata), before, NetworkStatus(), 1, 1, False, conditions={})


def refused(wanted: NetworkSpec, before: NetworkSpec | None = None) -> list[tuple[str, int]]:
    stored = resource(before) if before else None
    return [(p.code, p.status) for p in validate(wanted, Metadata(name="n"), stored, KEY)]


def reserved(**lengths: int) -> NetworkSpec:
    return spec(reservations=lengths)


# ---------------------------------------------------------------- arithmetic


def test_ref_017_the_worked_example() -> None:
    places = layout(reserved(prefixLength=25, providerReservedPrefixLength=29))
    assert places == Layout(
        gateway="192.168.10.1",
        dhcp=("192.168.10.128", "192.168.10.254"),
        storage=("192.168.10.8", "192.168.10.127"),
    )


def test_ref_016_equal_lengths_leave_no_storage() -> None:
    assert layout(reserved(prefixLength=26, providerReservedPrefixLength=26)).storage is None


def test_ref_015_without_reservations_25_and_28_are_in_effect() -> None:
    lengths = effective(None)
    assert (lengths.prefixLength, lengths.providerReservedPrefixLength) == (25, 28)
    assert layout(spec()).storage == ("192.168.10.16", "192.168.10.127")


def test_storage_begins_after_the_gateway_where_nothing_is_kept_for_the_provider() -> None:
    assert layout(reserved(prefixLength=27)).storage == ("192.168.10.2", "192.168.10.31")


def test_large_networks() -> None:
    places = layout(spec("10.0.0.0/8"))
    assert places.gateway == "10.0.0.1"
    assert places.dhcp == ("10.0.0.128", "10.255.255.254")


@given(
    prefix=st.integers(1, 24),
    lengths=st.tuples(st.integers(0, 30), st.integers(0, 30) | st.none()),
    base=st.integers(0, 2**32 - 1),
)
def test_the_ranges_of_every_accepted_network_lie_apart_and_inside(
    prefix: int, lengths: tuple[int, int | None], base: int
) -> None:
    from ipaddress import IPv4Address, IPv4Network

    network = IPv4Network((base, prefix), strict=False)
    wanted = spec(
        str(network), reservations={"prefixLength": lengths[0], "providerReservedPrefixLength": lengths[1]}
    )
    if refused(wanted):
        return
    places = layout(wanted)
    low, high = (IPv4Address(a) for a in places.dhcp)
    assert network.network_address < IPv4Address(places.gateway) < low <= high < network.broadcast_address
    if places.storage:
        first, last = (IPv4Address(a) for a in places.storage)
        assert IPv4Address(places.gateway) < first <= last < low


def test_canonical_forms() -> None:
    assert canonical_dns(["9.9.9.9", "1.1.1.1", "9.9.9.9"]) == ("9.9.9.9", "1.1.1.1")
    assert canonical_routes([Route(prefix="10.1.2.3/16", nextHop="10.0.0.1")]) == {
        ("10.1.0.0/16", "10.0.0.1")
    }
    assert canonical_routes(None) == canonical_routes([]) == frozenset()


# ---------------------------------------------------------------- validation


def test_accepted_specs() -> None:
    assert refused(spec()) == []
    assert refused(spec("10.0.0.0/8", routes=[{"prefix": "0.0.0.0/0", "nextHop": "10.0.0.9"}])) == []
    assert refused(reserved(prefixLength=26, providerReservedPrefixLength=26)) == []


def test_ref_012_a_25_is_too_small() -> None:
    (problem,) = validate(spec("192.168.10.0/25"), Metadata(name="n"), None, KEY)
    assert problem.status == 400
    assert problem.message == "at least a /24 is required"


@pytest.mark.parametrize(
    "prefix", ["", "10.0.0.0", "10.0.0.1/24", "10.0.0.0/33", "fd00::/64", "10.0.0.0/255.255.0.0/1"]
)
def test_a_prefix_that_is_none_is_refused(prefix: str) -> None:
    assert refused(spec(prefix)) == [("PREFIX_INVALID", 400)]


def test_ref_013_the_reservation_must_be_longer_than_the_prefix() -> None:
    assert refused(reserved(prefixLength=24)) == [("RESERVATION_TOO_LARGE", 422)]
    assert refused(reserved(prefixLength=20)) == [("RESERVATION_TOO_LARGE", 422)]


def test_ref_014_the_providers_part_must_fit_into_the_reservation() -> None:
    assert refused(reserved(prefixLength=26, providerReservedPrefixLength=25)) == [
        ("PROVIDER_RESERVATION_TOO_LARGE", 422)
    ]
    assert refused(reserved(providerReservedPrefixLength=24)) == [("PROVIDER_RESERVATION_TOO_LARGE", 422)]


def test_dns_servers_and_routes_must_parse() -> None:
    wanted = spec(
        dnsNameservers=["9.9.9.9", "dns.example"],
        routes=[{"prefix": "10.0.0.0", "nextHop": "x"}, {"prefix": "10.0.0.0/8", "nextHop": "10.0.0.1"}],
    )
    assert refused(wanted) == [("DNS_INVALID", 400), ("ROUTE_INVALID", 400), ("ROUTE_INVALID", 400)]


def test_prefix_and_reservations_cannot_be_changed_the_rest_can() -> None:
    assert refused(spec("10.0.0.0/24"), spec()) == [("PREFIX_IMMUTABLE", 422)]
    assert refused(reserved(prefixLength=26), spec()) == [("RESERVATIONS_IMMUTABLE", 422)]
    assert refused(reserved(prefixLength=25, providerReservedPrefixLength=28), spec()) == []
    assert refused(spec(dnsNameservers=["1.1.1.1"], tags=[{"name": "a", "value": "b"}]), spec()) == []


# ---------------------------------------------------------------- the hidden identity


def test_ref_024_a_network_without_identity_brings_one_and_takes_it_along() -> None:
    ident = str(uuid5(UUID(NETWORK_ID), "identity"))
    admission = admit(KEY, Metadata(name="n", organizationId="acme", projectId="web"), spec())
    assert admission.metadata == {"identityId": ident}
    (publication,) = admission.publish
    assert publication.key == Key(REGION_ID, "web", "identity", ident)
    assert publication.body == {
        "metadata": {"name": NAME, "organizationId": "acme", "projectId": "web"},
        "spec": {"provider": "openstack"},
    }
    assert NAME == "networkv2-service-principal"
    (gone,) = on_gone(resource(spec(), identityId=ident))
    assert gone.key == publication.key
    assert gone.body == {"delete": True}


def test_a_named_identity_is_neither_made_nor_removed() -> None:
    admission = admit(KEY, Metadata(name="n", identityId=IDENTITY_ID), spec())
    assert (dict(admission.metadata), tuple(admission.publish)) == ({}, ())
    assert on_gone(resource(spec(), identityId=IDENTITY_ID)) == ()


def test_admitting_the_hidden_identity_again_changes_nothing() -> None:
    first = admit(KEY, Metadata(name="n", organizationId="acme"), spec())
    again = admit(
        KEY, Metadata(name="n", organizationId="acme", identityId=hidden_identity(NETWORK_ID)), spec()
    )
    assert first == again
