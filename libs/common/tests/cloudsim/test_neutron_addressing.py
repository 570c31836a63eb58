"""Address arithmetic of the simulated Neutron."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.testing.cloudsim import neutron_addressing as addressing
from roadstead.testing.cloudsim.neutron_addressing import AddressError, Pool


def pool(start: str, end: str) -> Pool:
    return Pool(ip_address(start), ip_address(end))


def test_default_pools_leave_out_network_broadcast_and_gateway() -> None:
    network = ip_network("192.168.10.0/24")
    pools = addressing.default_pools(network, ip_address("192.168.10.1"))
    assert [p.as_json() for p in pools] == [{"start": "192.168.10.2", "end": "192.168.10.254"}]


def test_a_gateway_in_the_middle_splits_the_default_pool() -> None:
    pools = addressing.default_pools(ip_network("10.0.0.0/29"), ip_address("10.0.0.4"))
    assert [p.as_json() for p in pools] == [
        {"start": "10.0.0.1", "end": "10.0.0.3"},
        {"start": "10.0.0.5", "end": "10.0.0.6"},
    ]


def test_host_bits_of_a_cidr_are_dropped() -> None:
    assert str(addressing.parse_network("10.1.2.3/16", 4)) == "10.1.0.0/16"


@pytest.mark.parametrize("text", ["10.0.0.0", "nope/8", "10.0.0.0/33", None, 7])
def test_a_malformed_cidr_is_refused_with_400(text: object) -> None:
    with pytest.raises(AddressError) as caught:
        addressing.parse_network(text, 4)
    assert caught.value.status == 400


def test_a_cidr_of_the_other_family_is_refused() -> None:
    with pytest.raises(AddressError) as caught:
        addressing.parse_network("2001:db8::/64", 4)
    assert caught.value.kind == "InvalidInput"


@pytest.mark.parametrize(
    ("pools", "kind"),
    [
        ([{"start": "10.0.0.9", "end": "10.0.0.2"}], "InvalidAllocationPool"),
        ([{"start": "10.0.0.9", "end": "10.0.1.2"}], "OutOfBoundsAllocationPool"),
        ([{"start": "10.0.0.0", "end": "10.0.0.2"}], "OutOfBoundsAllocationPool"),
        (
            [{"start": "10.0.0.2", "end": "10.0.0.9"}, {"start": "10.0.0.9", "end": "10.0.0.11"}],
            "OverlappingAllocationPools",
        ),
    ],
)
def test_ill_formed_pools_are_refused(pools: list[dict[str, str]], kind: str) -> None:
    with pytest.raises(AddressError) as caught:
        addressing.check_pools(pools, ip_network("10.0.0.0/24"))
    assert caught.value.kind == kind


def test_a_gateway_inside_a_pool_is_409() -> None:
    with pytest.raises(AddressError) as caught:
        addressing.check_gateway(ip_address("10.0.0.5"), [pool("10.0.0.2", "10.0.0.9")])
    assert (caught.value.status, caught.value.kind) == (409, "GatewayConflictWithAllocationPools")


def test_overlap_of_two_subnets_is_400() -> None:
    with pytest.raises(AddressError) as caught:
        addressing.check_no_overlap(ip_network("10.0.0.0/25"), [ip_network("10.0.0.0/24")], "net")
    assert caught.value.status == 400
    assert "overlaps with another subnet" in caught.value.message
    addressing.check_no_overlap(ip_network("10.0.1.0/24"), [ip_network("10.0.0.0/24")], "net")


def test_the_lowest_free_address_is_taken_across_pools() -> None:
    pools = [pool("10.0.0.2", "10.0.0.3"), pool("10.0.0.8", "10.0.0.9")]
    assert str(addressing.lowest_free(pools, {"10.0.0.2"})) == "10.0.0.3"
    assert str(addressing.lowest_free(pools, {"10.0.0.2", "10.0.0.3"})) == "10.0.0.8"
    assert addressing.lowest_free(pools, {"10.0.0.2", "10.0.0.3", "10.0.0.8", "10.0.0.9"}) is None


@given(prefix=st.integers(8, 30), gateway_offset=st.integers(0, 4000))
def test_default_pools_partition_the_usable_addresses(prefix: int, gateway_offset: int) -> None:
    network = ip_network(f"10.0.0.0/{prefix}")
    gateway = network[gateway_offset % network.num_addresses]
    pools = addressing.default_pools(network, gateway)
    whole = addressing.usable_range(network)
    assert gateway not in [a for p in pools for a in (p.start, p.end)]
    assert sum(p.size() for p in pools) == whole.size() - (gateway in whole)
    addressing.check_gateway(gateway, pools)


@given(st.integers(0, 1 << 24), st.integers(0, 1 << 24))
def test_macs_differ_for_different_ports(left: int, right: int) -> None:
    same = (left - right) % (1 << 24) == 0
    assert (addressing.mac_of(left) == addressing.mac_of(right)) is same
    assert addressing.mac_of(left).startswith("fa:16:3e:")
