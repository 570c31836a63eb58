"""A load balancer's decision table, row by row."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.loadbalancer.tests.test_tree import echoed
from services.loadbalancer.tests.world import NAME, NOW, PREFIX, resource_of

from roadstead.reconcile.decision import Code, Decision, Done, Park, Retry, Yield
from roadstead_loadbalancer.loadbalancer.decide import decide
from roadstead_loadbalancer.loadbalancer.rules import CREATING_PARTS, DELETING_PARTS, DESTRUCTIVE
from roadstead_loadbalancer.loadbalancer.rules import LoadBalancerRule as Rule
from roadstead_loadbalancer.loadbalancer.rules import LoadBalancerVerb as Verb
from roadstead_loadbalancer.loadbalancer.seen import AddressSeen, BalancerSeen, Seen, Strays
from roadstead_loadbalancer.loadbalancer.tree import Tree

VIP = "192.168.10.9"
ADDRESS = AddressSeen("f", "203.0.113.7")
MARK = {"wish": "1:SOURCE_IP_PORT", "at": "2026-01-01T00:00:00.000Z"}
OLD = {"wish": "0:SOURCE_IP_PORT", "at": "2026-01-01T00:00:00.000Z"}
YOUNG = Strays(young=True)


def alive(status: str) -> Tree:
    """The wanted parts, each in that status."""
    tree = echoed()
    return Tree(
        tuple(replace(x, status=status) for x in tree.listeners),
        tuple(replace(x, status=status) for x in tree.pools),
        tuple(replace(x, status=status) for x in tree.monitors),
    )


ABSENT = Seen(subnet="s", prefix=PREFIX, algorithm="SOURCE_IP_PORT")
SETTLED = replace(ABSENT, balancer=BalancerSeen("b", "ACTIVE", VIP, "p"), tree=alive("ACTIVE"))


def balancer(**changes: Any) -> Seen:
    assert SETTLED.balancer is not None
    return replace(SETTLED, balancer=replace(SETTLED.balancer, **changes))


def provision(seen: Seen, spec: dict[str, Any] | None = None, **status: Any) -> Decision:
    return decide(resource_of(spec, status), seen, NOW)


def delete(seen: Seen, **status: Any) -> Decision:
    return decide(resource_of(status=status, deleting=True), seen, NOW)


def told(decision: Decision) -> tuple[Any, Any]:
    return decision.rule, getattr(decision.outcome, "code", None)


# ---------------------------------------------------------------- 14.2


def test_step_1_an_absent_one_is_created() -> None:
    decision = provision(ABSENT)
    assert (decision.rule, decision.verb) == (Rule.ABSENT, Verb.CREATE)


def test_step_1_without_a_subnet_it_is_a_consistency_error() -> None:
    assert told(provision(replace(ABSENT, subnet=None))) == (Rule.NO_SUBNET, Code.CONSISTENCY)


def test_ref_057_a_requested_address_outside_the_network_parks_before_anything_is_made() -> None:
    decision = provision(ABSENT, {"requestedVIPAddress": "10.0.0.1"})
    assert told(decision) == (Rule.VIP_OUTSIDE, Code.REFUSED)
    assert isinstance(decision.outcome, Park)


def test_oc_10_a_refusal_is_told_at_once_and_looked_at_again_for_its_port() -> None:
    decision = provision(replace(ABSENT, refused=True))
    assert decision.rule is Rule.REFUSED
    assert isinstance(decision.outcome, Retry)
    assert (decision.outcome.code, decision.outcome.after) == (Code.NOT_OFFERED, 2.0)
    assert decision.status["refused"] == MARK
    young = provision(replace(ABSENT, strays=YOUNG), refused=MARK)
    assert isinstance(young.outcome, Retry)
    assert young.outcome.after == 20.0


def test_oc_10_what_was_refused_parks_for_that_wish_alone() -> None:
    decision = provision(ABSENT, refused=MARK)
    assert told(decision) == (Rule.REFUSED, Code.NOT_OFFERED)
    assert isinstance(decision.outcome, Park)
    for other in ("1:ROUND_ROBIN", "0:SOURCE_IP_PORT"):
        again = provision(ABSENT, refused={**MARK, "wish": other})
        assert again.verb is Verb.CREATE
        assert again.status == {"refused": None}


def test_a_new_wish_waits_for_the_port_of_the_refused_one() -> None:
    assert told(provision(replace(ABSENT, strays=YOUNG), refused=OLD)) == (Rule.STRAY_YOUNG, Code.BUSY)


def test_a_left_over_port_goes_before_anything_else() -> None:
    left = Strays(("p",), young=True)
    for decision in (provision(replace(ABSENT, strays=left), refused=MARK), delete(Seen(strays=left))):
        assert (decision.rule, decision.verb) == (Rule.STRAY, Verb.DELETE_STRAY)
    assert told(delete(Seen(strays=YOUNG))) == (Rule.STRAY_YOUNG, Code.BUSY)


def test_step_2_the_address_is_told_as_soon_as_there_is_one() -> None:
    decision = provision(balancer(status="PENDING_CREATE"))
    assert decision.status["vipAddress"] == VIP
    assert "vipAddress" not in provision(balancer(status="PENDING_CREATE"), vipAddress=VIP).status


@pytest.mark.parametrize(
    ("vip", "requested"), [("192.168.10.8", VIP), ("fd00::1", None), ("nonsense", None), ("fd00::1", VIP)]
)
def test_step_2_another_or_malformed_address_is_a_consistency_error(vip: str, requested: str | None) -> None:
    decision = provision(balancer(vip=vip), {"requestedVIPAddress": requested})
    assert told(decision) == (Rule.VIP_DIFFERS, Code.CONSISTENCY)


@pytest.mark.parametrize("status", ["PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"])
def test_inv_269_a_pending_one_yields(status: str) -> None:
    decision = provision(balancer(status=status))
    assert told(decision) == (Rule.MOVING, Code.BUSY)
    assert isinstance(decision.outcome, Yield)


@pytest.mark.parametrize("status", ["ERROR", "DELETED", "", "SOMETHING"])
def test_inv_270_any_other_status_is_a_consistency_error(status: str) -> None:
    decision = provision(balancer(status=status))
    assert told(decision) == (Rule.BROKEN, Code.CONSISTENCY)
    assert isinstance(decision.outcome, Retry)


@pytest.mark.parametrize("missing", [{"vip": None}, {"port": None}, {"vip": ""}])
def test_ref_058_active_without_address_or_port_is_a_consistency_error(missing: dict[str, Any]) -> None:
    assert told(provision(balancer(**missing))) == (Rule.NO_VIP, Code.CONSISTENCY)


def test_step_5_a_public_address_comes_and_goes_with_the_spec() -> None:
    wanted = provision(SETTLED, {"publicIP": True})
    assert (wanted.rule, wanted.verb) == (Rule.ADDRESS_ABSENT, Verb.CREATE_ADDRESS)
    unwanted = provision(replace(SETTLED, addresses=(ADDRESS,)))
    assert (unwanted.rule, unwanted.verb) == (Rule.ADDRESS_UNWANTED, Verb.DELETE_ADDRESS)


def test_step_5_it_is_told_and_cleared() -> None:
    there = replace(SETTLED, addresses=(ADDRESS,))
    assert provision(there, {"publicIP": True}).status["publicIP"] == ADDRESS.address
    assert provision(SETTLED, publicIP=ADDRESS.address).status["publicIP"] is None
    moving = balancer(status="PENDING_UPDATE")
    assert "publicIP" not in provision(moving, {"publicIP": True}, publicIP=ADDRESS.address).status


def test_step_5_several_addresses_are_a_consistency_error() -> None:
    several = replace(SETTLED, addresses=(ADDRESS, AddressSeen("g", "203.0.113.8")))
    assert told(provision(several, {"publicIP": True})) == (Rule.ADDRESSES_MANY, Code.CONSISTENCY)


def test_inv_268_all_parts_active_is_done() -> None:
    decision = provision(SETTLED, vipAddress=VIP)
    assert (decision.rule, decision.outcome) == (Rule.REALIZED, Done())
    assert decision.status == {}


@pytest.mark.parametrize("kind", ["listeners", "pools", "monitors"])
@pytest.mark.parametrize("status", ["PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"])
def test_inv_269_a_pending_part_yields(kind: str, status: str) -> None:
    first, *others = getattr(SETTLED.tree, kind)
    tree = replace(SETTLED.tree, **{kind: (replace(first, status=status), *others)})
    assert told(provision(replace(SETTLED, tree=tree))) == (Rule.PART_MOVING, Code.BUSY)


@pytest.mark.parametrize("kind", ["listeners", "pools", "monitors"])
@pytest.mark.parametrize("status", ["ERROR", "DELETED", "", "SOMETHING"])
def test_inv_270_a_part_in_another_status_is_a_consistency_error(kind: str, status: str) -> None:
    first, *others = getattr(SETTLED.tree, kind)
    tree = replace(SETTLED.tree, **{kind: (replace(first, status=status), *others)})
    assert told(provision(replace(SETTLED, tree=tree))) == (Rule.PART_BROKEN, Code.CONSISTENCY)


@pytest.mark.parametrize("kind", ["listeners", "pools", "monitors"])
def test_inv_267_two_parts_of_one_name_are_a_consistency_error(kind: str) -> None:
    parts = getattr(SETTLED.tree, kind)
    tree = replace(SETTLED.tree, **{kind: (*parts, replace(parts[0], id="second"))})
    assert told(provision(replace(SETTLED, tree=tree))) == (Rule.PARTS_MANY, Code.CONSISTENCY)


def test_inv_263_a_difference_is_mended_at_the_first_look() -> None:
    decision = provision(replace(SETTLED, algorithm="ROUND_ROBIN"))
    assert (decision.rule, decision.verb) == (Rule.DIFFERS, Verb.UPDATE_POOL)
    assert f"balancing method of {NAME}-web-listener" in decision.why


@pytest.mark.parametrize("kind", ["listeners", "pools", "monitors"])
def test_what_is_missing_is_made_at_the_second_look(kind: str) -> None:
    other = replace(SETTLED, tree=replace(SETTLED.tree, **{kind: getattr(SETTLED.tree, kind)[1:]}))
    first = provision(other)
    assert told(first) == (Rule.DIFFERS_ONCE, Code.SETTLING)
    assert told(provision(other, differs="something else")) == (Rule.DIFFERS_ONCE, Code.SETTLING)
    assert provision(other, **first.status).verb in CREATING_PARTS


def test_what_can_never_be_changed_is_an_error_that_says_what() -> None:
    pools = (replace(SETTLED.tree.pools[0], protocol="PROXYV2"), *SETTLED.tree.pools[1:])
    decision = provision(replace(SETTLED, tree=replace(SETTLED.tree, pools=pools)))
    assert told(decision) == (Rule.DIFFERS, Code.CONSISTENCY)
    assert isinstance(decision.outcome, Retry)
    assert f"proxyProtocolV2 of {NAME}-web-listener" in decision.outcome.message


def test_oc_10_a_refused_change_parks_for_that_wish_alone() -> None:
    other = replace(SETTLED, algorithm="ROUND_ROBIN")
    first = provision(replace(other, refused=True))
    assert told(first) == (Rule.CHANGE_REFUSED, Code.NOT_OFFERED)
    assert isinstance(first.outcome, Park)
    mark = first.status["refused"]
    assert mark == {"wish": "1:ROUND_ROBIN", "at": MARK["at"], "what": f"update pool {NAME}-web-pool"}
    again = provision(other, refused=mark)
    assert (again.outcome, again.status.get("refused", mark)) == (first.outcome, mark)
    for stale in ({**mark, "wish": "0:ROUND_ROBIN"}, {**mark, "what": ""}):
        decision = provision(other, refused=stale)
        assert (decision.verb, decision.status["refused"]) == (Verb.UPDATE_POOL, None)
    assert provision(other, refused={**mark, "what": "update pool other"}).verb is Verb.UPDATE_POOL


def test_a_refusal_is_forgotten_once_everything_is_as_wanted() -> None:
    mark = {**MARK, "what": f"update pool {NAME}-web-pool"}
    decision = provision(SETTLED, refused=mark, differs="x")
    assert decision.outcome == Done()
    assert decision.status["refused"] is decision.status["differs"] is None


def test_a_part_that_nobody_wants_is_left_while_the_cloud_works_on_it() -> None:
    left = replace(SETTLED.tree.listeners[0], name=f"{NAME}-old-listener")
    for status, rule in (("PENDING_UPDATE", Rule.PART_MOVING), ("ERROR", Rule.LISTENER_LEFT)):
        tree = replace(SETTLED.tree, listeners=(*SETTLED.tree.listeners, replace(left, status=status)))
        assert provision(replace(SETTLED, tree=tree)).rule is rule


def test_oc_22_a_create_that_failed_waits_for_its_port_and_tells_why() -> None:
    failed = {"wish": "", "at": MARK["at"], "code": "QUOTA_EXCEEDED", "text": "no more"}
    waits = provision(replace(ABSENT, strays=YOUNG), refused=failed)
    assert waits.outcome == Retry(Code.QUOTA_EXCEEDED, "no more", 20.0)
    again = provision(ABSENT, refused=failed)
    assert (again.verb, again.status) == (Verb.CREATE, {"refused": None})


@pytest.mark.parametrize(
    ("seen", "rule"), [(Seen(foreign=True), Rule.FOREIGN), (Seen(mismatch=True), Rule.MISMATCH)]
)
def test_a_wrong_place_is_an_error_that_tells_nothing_of_it(seen: Seen, rule: Rule) -> None:
    decision = provision(seen, vipAddress=VIP)
    assert told(decision) == (rule, Code.CONSISTENCY)
    assert decision.status == {}


# ---------------------------------------------------------------- 14.4


def test_inv_286_the_public_address_goes_first_and_is_cleared() -> None:
    decision = delete(replace(SETTLED, addresses=(ADDRESS,)), publicIP=ADDRESS.address)
    assert (decision.rule, decision.verb) == (Rule.DELETE_ADDRESS, Verb.DELETE_ADDRESS)
    after = delete(SETTLED, publicIP=ADDRESS.address)
    assert (after.rule, after.verb) == (Rule.LEFT, Verb.DELETE)
    assert after.status["publicIP"] is None


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR", "DELETED", "", "SOMETHING"])
def test_ref_060_whatever_is_at_rest_is_deleted_by_cascade(status: str) -> None:
    decision = delete(balancer(status=status))
    assert (decision.rule, decision.verb) == (Rule.LEFT, Verb.DELETE)


@pytest.mark.parametrize("status", ["PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"])
def test_a_pending_one_is_not_deleted_and_keeps_its_addresses(status: str) -> None:
    decision = delete(balancer(status=status), vipAddress=VIP, publicIP=ADDRESS.address)
    assert told(decision) == (Rule.DELETE_MOVING, Code.BUSY)
    assert decision.status == {}


def test_a_cascade_waits_for_parts_that_are_still_made() -> None:
    decision = delete(replace(SETTLED, restless=("PENDING_CREATE",)))
    assert told(decision) == (Rule.DELETE_RESTLESS, Code.BUSY)


def test_ref_061_the_address_is_told_until_it_is_gone() -> None:
    assert "vipAddress" not in delete(SETTLED, vipAddress=VIP).status
    gone = delete(Seen(), vipAddress=VIP, publicIP=ADDRESS.address)
    assert (gone.rule, gone.outcome) == (Rule.REMOVED, Done())
    assert gone.status == {"vipAddress": None, "publicIP": None}


def test_an_address_that_lost_its_port_goes_as_well() -> None:
    assert delete(Seen(addresses=(ADDRESS,))).verb is Verb.DELETE_ADDRESS


def test_in_another_tenants_place_nothing_is_ours() -> None:
    decision = delete(Seen(foreign=True))
    assert (decision.rule, decision.outcome) == (Rule.NOTHING_OURS, Done())


# ---------------------------------------------------------------- every observation

STATUS = st.sampled_from(
    ["ACTIVE", "PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE", "ERROR", "DELETED", "", "X"]
)
SEEN = st.builds(
    Seen,
    balancer=st.none()
    | st.builds(
        BalancerSeen,
        st.just("b"),
        STATUS,
        st.sampled_from([None, "", VIP, "fd00::1", "10.0.0.1"]),
        st.sampled_from([None, "p"]),
    ),
    subnet=st.sampled_from([None, "s"]),
    prefix=st.sampled_from([None, PREFIX, "10.0.0.0/24"]),
    algorithm=st.sampled_from(["ROUND_ROBIN", "SOURCE_IP_PORT"]),
    addresses=st.sampled_from([(), (ADDRESS,), (ADDRESS, AddressSeen("g", "203.0.113.8"))]),
    tree=STATUS.map(alive) | st.just(Tree()),
    restless=st.sampled_from([(), ("PENDING_CREATE",)]),
    refused=st.booleans(),
    strays=st.builds(Strays, st.sampled_from([(), ("s",)]), st.booleans()),
    foreign=st.booleans(),
    mismatch=st.booleans(),
)
SPEC = st.fixed_dictionaries(
    {}, optional={"publicIP": st.booleans(), "requestedVIPAddress": st.sampled_from([VIP, "10.0.0.1"])}
)


@given(SEEN, SPEC, st.booleans(), st.sampled_from([None, MARK, OLD]))
def test_the_table_is_total_and_destroys_only_where_a_row_says_so(
    seen: Seen, spec: dict[str, Any], deleting: bool, refused: dict[str, str] | None
) -> None:
    resource = resource_of(spec, {"refused": refused}, deleting=deleting)
    decision = decide(resource, seen, NOW)
    verb = decision.verb
    if verb in DESTRUCTIVE:
        assert not seen.foreign
    if verb is Verb.DELETE:
        assert deleting
        assert seen.balancer is not None
        assert not seen.balancer.moving
        assert not seen.addresses
        assert not seen.restless
    if verb is Verb.DELETE_ADDRESS:
        assert seen.addresses
        assert deleting or not spec.get("publicIP")
    if verb is Verb.CREATE:
        assert not deleting
        assert seen.balancer is None
        assert decision.status.get("refused") is None
    if verb in CREATING_PARTS | DELETING_PARTS:
        assert not deleting
        assert seen.balancer is not None
        assert seen.balancer.status == "ACTIVE"
        assert not seen.refused
    if verb is Verb.DELETE_STRAY:
        assert seen.balancer is None
        assert seen.strays.ports
    if verb is Verb.CREATE_ADDRESS:
        assert seen.balancer is not None
        assert seen.balancer.status == "ACTIVE"
        assert not seen.addresses
    if not deleting and isinstance(decision.outcome, Done):
        assert seen.balancer is not None
        assert seen.balancer.status == "ACTIVE"
