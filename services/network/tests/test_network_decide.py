"""Every row of the network's decision table, and what holds for all observations."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.network.tests.world import NETWORK_ID, REGION_ID, SPEC

from roadstead.reconcile.decision import Code, Done, Retry, Yield
from roadstead.reconcile.kind import Metadata, Resource
from roadstead.subjects import Key
from roadstead_network.network import KIND
from roadstead_network.network.decide import DESTRUCTIVE, NetworkRule, NetworkVerb, decide
from roadstead_network.network.model import (
    UNREAD,
    CloudNetwork,
    CloudSubnet,
    NetworkSeen,
    NetworkSpec,
    NetworkStatus,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key(REGION_ID, "web", "network", NETWORK_ID)
NET, SUB = CloudNetwork("n"), CloudSubnet("s", "192.168.10.0/24", ("9.9.9.9",))
VLAN_NET = CloudNetwork("n", 100)
SETTLED = NetworkSeen(network=NET, subnet=SUB, router="r", interface=True)
VLAN = replace(SETTLED, physical="phys", held=(100,), network=VLAN_NET)


def resource(*, deleting: bool = False, **spec: Any) -> Resource[NetworkSpec, NetworkStatus]:
    wanted = NetworkSpec.model_validate({**SPEC, **spec})
    return Resource(KEY, Metadata(name="n"), wanted, NetworkStatus(), 1, 1, deleting, conditions={})


MAKING = [
    (NetworkRule.FOREIGN_IDENTITY, NetworkSeen(foreign=True), None, Code.CONSISTENCY),
    (NetworkRule.VLAN_DOUBLE, NetworkSeen(physical="p", held=(1, 2)), None, Code.ALLOCATION),
    (NetworkRule.VLAN_ABSENT, NetworkSeen(physical="p"), NetworkVerb.ALLOCATE_VLAN, None),
    (NetworkRule.NETWORK_ABSENT, NetworkSeen(physical="p", held=(1,)), NetworkVerb.CREATE_NETWORK, None),
    (NetworkRule.NETWORK_ABSENT, NetworkSeen(), NetworkVerb.CREATE_NETWORK, None),
    (NetworkRule.VLAN_UNNOTED, replace(VLAN, held=()), NetworkVerb.CLAIM_VLAN, None),
    (NetworkRule.VLAN_DIFFERS, replace(VLAN, held=(101,)), None, Code.CONSISTENCY),
    (NetworkRule.SUBNET_ABSENT, replace(SETTLED, subnet=None), NetworkVerb.CREATE_SUBNET, None),
    (
        NetworkRule.SUBNET_OTHER,
        replace(SETTLED, subnet=replace(SUB, cidr="10.0.0.0/24")),
        None,
        Code.CONSISTENCY,
    ),
    (
        NetworkRule.SUBNET_OUTDATED,
        replace(SETTLED, subnet=replace(SUB, dns=())),
        NetworkVerb.UPDATE_SUBNET,
        None,
    ),
    (NetworkRule.NOT_READ, replace(SETTLED, router=None), None, Code.WAITING),
    (NetworkRule.NO_EXTERNAL, replace(SETTLED, router=None, external=None), None, Code.NOT_FOUND),
    (NetworkRule.ROUTER_ABSENT, replace(SETTLED, router=None, external="x"), NetworkVerb.CREATE_ROUTER, None),
    (NetworkRule.INTERFACE_ABSENT, replace(SETTLED, interface=False), NetworkVerb.ADD_INTERFACE, None),
    (NetworkRule.REALIZED, SETTLED, None, Code.NONE),
    (NetworkRule.REALIZED, VLAN, None, Code.NONE),
]
REMOVING = [
    (NetworkRule.NOTHING_OURS, NetworkSeen(foreign=True), None, Code.NONE),
    (NetworkRule.STILL_USED, replace(VLAN, blocking=(("a server", 2),)), None, Code.IN_USE),
    (
        NetworkRule.STRAY_LEFT,
        replace(VLAN, blocking=(("a server", 1),), strays=("s",)),
        NetworkVerb.DELETE_STRAY,
        None,
    ),
    (NetworkRule.INTERFACE_LEFT, VLAN, NetworkVerb.REMOVE_INTERFACE, None),
    (NetworkRule.ROUTER_LEFT, replace(VLAN, interface=False), NetworkVerb.DELETE_ROUTER, None),
    (NetworkRule.SUBNET_LEFT, replace(VLAN, interface=False, router=None), NetworkVerb.DELETE_SUBNET, None),
    (
        NetworkRule.NETWORK_LEFT,
        NetworkSeen(physical="p", held=(1,), network=NET),
        NetworkVerb.DELETE_NETWORK,
        None,
    ),
    (NetworkRule.VLAN_LEFT, NetworkSeen(physical="p", held=(1, 2)), NetworkVerb.FREE_VLAN, None),
    (NetworkRule.REMOVED, NetworkSeen(), None, Code.NONE),
]


def check(
    rule: NetworkRule, seen: NetworkSeen, verb: NetworkVerb | None, code: Code | None, deleting: bool
) -> None:
    decision = decide(resource(deleting=deleting), seen, NOW)
    assert (decision.rule, decision.verb) == (rule, verb)
    if verb is None:
        assert getattr(decision.outcome, "code", Code.NONE) is code
        expected = {Code.NONE: Done, Code.IN_USE: Yield, Code.WAITING: Yield}.get(code or Code.NONE, Retry)
        assert isinstance(decision.outcome, expected)


@pytest.mark.parametrize(
    ("rule", "seen", "verb", "code"), MAKING, ids=[f"{i:02}-{r[0]}" for i, r in enumerate(MAKING)]
)
def test_making_table(
    rule: NetworkRule, seen: NetworkSeen, verb: NetworkVerb | None, code: Code | None
) -> None:
    check(rule, seen, verb, code, deleting=False)


@pytest.mark.parametrize(("rule", "seen", "verb", "code"), REMOVING, ids=[str(r[0]) for r in REMOVING])
def test_removing_table(
    rule: NetworkRule, seen: NetworkSeen, verb: NetworkVerb | None, code: Code | None
) -> None:
    check(rule, seen, verb, code, deleting=True)


def test_the_tables_name_every_rule_and_every_verb_has_an_action() -> None:
    assert {row[0] for row in MAKING} | {row[0] for row in REMOVING} == set(NetworkRule)
    assert set(KIND.act) == set(NetworkVerb)


def test_inv_260_the_vlan_id_is_told_before_the_network_is_asked_for() -> None:
    decision = decide(resource(), NetworkSeen(physical="p", held=(100,)), NOW)
    assert decision.status == {"openstack": {"vlanID": 100}}


def test_the_status_of_a_finished_network() -> None:
    plain = decide(resource(), SETTLED, NOW).status
    assert plain == {
        "openstack": {
            "networkID": "n",
            "subnetID": "s",
            "storageRange": {"startIP": "192.168.10.16", "endIP": "192.168.10.127"},
        },
        "reservations": {"prefixLength": 25, "providerReservedPrefixLength": 28},
    }
    assert decide(resource(), VLAN, NOW).status["openstack"]["vlanID"] == 100


def test_a_cloud_that_hides_the_vlan_id_is_believed_nothing() -> None:
    hidden = replace(VLAN, network=CloudNetwork("n", None, shows_type=False))
    assert decide(resource(), hidden, NOW).status["openstack"]["vlanID"] == 100
    tenant = replace(VLAN, network=CloudNetwork("n", None))
    assert "vlanID" not in decide(resource(), tenant, NOW).status["openstack"]


def test_in_use_names_what_blocks_without_ids() -> None:
    seen = replace(VLAN, blocking=(("a load balancer", 1), ("a server", 2)))
    assert decide(resource(deleting=True), seen, NOW).why == (
        "the network still has ports in use: 1 of a load balancer, 2 of a server"
    )


def test_ref_023_routes_and_dns_are_compared_in_canonical_form() -> None:
    routes = [
        {"prefix": "10.1.2.3/16", "nextHop": "192.168.10.9"},
        {"prefix": "10.2.0.0/16", "nextHop": "192.168.10.9"},
    ]
    same = replace(SUB, routes=frozenset({("10.2.0.0/16", "192.168.10.9"), ("10.1.0.0/16", "192.168.10.9")}))
    assert decide(resource(routes=routes), replace(SETTLED, subnet=same), NOW).rule is NetworkRule.REALIZED
    assert decide(resource(routes=[]), replace(SETTLED, subnet=same), NOW).rule is NetworkRule.SUBNET_OUTDATED
    assert decide(resource(routes=None), SETTLED, NOW).rule is NetworkRule.REALIZED
    turned = decide(
        resource(dnsNameservers=["1.1.1.1", "9.9.9.9"]),
        replace(SETTLED, subnet=replace(SUB, dns=("9.9.9.9", "1.1.1.1"))),
        NOW,
    )
    assert turned.rule is NetworkRule.SUBNET_OUTDATED


observations = st.builds(
    NetworkSeen,
    foreign=st.booleans(),
    physical=st.sampled_from([None, "phys"]),
    held=st.sampled_from([(), (100,), (101,), (100, 101)]),
    network=st.sampled_from([None, NET, VLAN_NET, CloudNetwork("n", None, shows_type=False)]),
    subnet=st.sampled_from([None, SUB, replace(SUB, dns=()), replace(SUB, cidr="10.0.0.0/24")]),
    router=st.sampled_from([None, "r"]),
    external=st.sampled_from([UNREAD, None, "x"]),
    interface=st.booleans(),
    blocking=st.sampled_from([(), (("a server", 1),)]),
    strays=st.sampled_from([(), ("s", "t")]),
)


@given(observations, st.booleans())
def test_decide_is_total_and_destroys_only_on_deletion_of_what_is_seen(
    seen: NetworkSeen, deleting: bool
) -> None:
    decision = decide(resource(deleting=deleting), seen, NOW)
    if decision.verb in DESTRUCTIVE or decision.verb is NetworkVerb.FREE_VLAN:
        assert deleting
        assert not seen.foreign
        assert not seen.blocking or decision.verb is NetworkVerb.DELETE_STRAY
    if decision.verb is NetworkVerb.FREE_VLAN:
        assert seen.network is None
    if decision.verb is NetworkVerb.DELETE_NETWORK:
        assert (seen.subnet, seen.router, seen.interface) == (None, None, False)


@given(observations)
def test_nothing_that_is_there_is_created_again(seen: NetworkSeen) -> None:
    verb = decide(resource(), seen, NOW).verb
    assert verb is not NetworkVerb.CREATE_NETWORK or seen.network is None
    assert verb is not NetworkVerb.CREATE_SUBNET or seen.subnet is None
    assert verb is not NetworkVerb.CREATE_ROUTER or seen.router is None
    assert verb is not NetworkVerb.ALLOCATE_VLAN or not seen.held
    if verb is NetworkVerb.CREATE_NETWORK and seen.physical:
        assert seen.held
