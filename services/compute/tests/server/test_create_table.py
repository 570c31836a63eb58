"""Every row of the create path (behaviour.md section 6.1) and of the inventory rules before it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead.reconcile.kind import Problem
from roadstead_compute.server import texts
from roadstead_compute.server.rules import CREATING, DESTRUCTIVE, Rule, Verb

REFUSAL = Problem("IMAGE_ARCH", "spec.image.id", "the image is for aarch64")


def test_inventory_loading_waits_before_the_first_create(build: Any) -> None:
    decision = build.decide(build.resource(), build.absent(refusals=None))
    assert decision.rule is Rule.INVENTORY_LOADING
    assert decision.outcome == Yield(Code.WAITING, texts.INVENTORY_LOADING)


def test_ref_043_a_spec_that_the_inventory_refuses_parks_before_any_write(build: Any) -> None:
    decision = build.decide(build.resource(), build.absent(refusals=(REFUSAL,)))
    assert decision.rule is Rule.NOT_OFFERED
    assert isinstance(decision.outcome, Park)
    assert decision.outcome.message == REFUSAL.message


def test_a_withdrawn_flavor_does_not_keep_an_accepted_server_from_coming_back(build: Any) -> None:
    decision = build.decide(build.resource(ever=True), build.absent(refusals=None))
    assert decision.rule is Rule.PORT_ABSENT


def test_r1_no_image_parks_before_the_port(build: Any) -> None:
    decision = build.decide(build.resource({"image": None}), build.absent())
    assert (decision.rule, decision.verb) == (Rule.R1, None)


def test_6_1_5_network_absent_yields(build: Any) -> None:
    decision = build.decide(build.resource(), build.absent(network_id=None))
    assert decision.rule is Rule.NETWORK_ABSENT
    assert isinstance(decision.outcome, Yield)


def test_6_1_5_group_absent_yields(build: Any) -> None:
    decision = build.decide(build.resource(), build.absent(groups=("neutron-group", None)))
    assert decision.rule is Rule.GROUP_ABSENT
    assert isinstance(decision.outcome, Yield)


def test_ref_039_a_group_of_another_network_parks(build: Any) -> None:
    problem = Problem("GROUP_NETWORK", "spec.securityGroups", "belongs to another network")
    decision = build.decide(build.resource(), build.seen(misplaced=(problem,)))
    assert decision.rule is Rule.GROUP_ELSEWHERE
    assert isinstance(decision.outcome, Park)


def test_6_1_5_create(build: Any) -> None:
    decision = build.decide(build.resource(), build.absent())
    assert (decision.rule, decision.verb) == (Rule.PORT_ABSENT, Verb.CREATE_PORT)


def test_6_1_5_misplaced_port_fails_closed(build: Any) -> None:
    decision = build.decide(build.resource(), build.seen(port=build.port(network_id="elsewhere")))
    assert decision.rule is Rule.PORT_MISPLACED
    assert decision.outcome == Retry(Code.CONSISTENCY, texts.PORT_MISPLACED)


@pytest.mark.parametrize(
    "port",
    [
        {"groups": frozenset()},
        {"groups": frozenset({"neutron-group", "another"})},
        {"pairs": frozenset({("192.0.2.0/28", None)})},
    ],
)
def test_6_1_5_update_ref_049_groups_or_pairs_that_differ_are_written(
    build: Any, port: dict[str, Any]
) -> None:
    decision = build.decide(build.resource(), build.seen(port=build.port(**port)))
    assert (decision.rule, decision.verb) == (Rule.PORT_DRIFTED, Verb.UPDATE_PORT)


@pytest.mark.parametrize("mac", [None, "fa:16:3e:00:00:01", "FA-16-3E-00-00-01"])
def test_6_1_5_pairs_compare_in_canonical_form(build: Any, mac: str | None) -> None:
    """OC-35: no MAC, and the port's own in any spelling, are one and the same."""
    pair = {"cidr": "192.0.2.64/28"} | ({"macAddress": mac} if mac else {})
    spec = {"networks": [{"id": build.network, "allowedAddressPairs": [pair]}]}
    seen = build.seen(port=build.port(pairs=frozenset({("192.0.2.64/28", None)})))
    assert build.decide(build.resource(spec), seen).outcome == Done()


def test_6_1_6_create_delete_and_many(build: Any) -> None:
    wanted = build.resource({"publicIPAllocation": {"enabled": True}})
    made = build.decide(wanted, build.seen())
    assert (made.rule, made.verb) == (Rule.ADDRESS_ABSENT, Verb.CREATE_ADDRESS)
    unwanted = build.decide(build.resource(), build.seen(addresses=(build.address(),)))
    assert (unwanted.rule, unwanted.verb) == (Rule.ADDRESS_UNWANTED, Verb.DELETE_ADDRESS)
    many = build.decide(wanted, build.seen(addresses=(build.address(1), build.address(2))))
    assert many.rule is Rule.ADDRESSES_MANY
    assert many.outcome == Retry(Code.CONSISTENCY, texts.ADDRESSES_MANY)


def test_6_1_7_a_port_that_a_stranger_uses_fails_closed(build: Any) -> None:
    decision = build.decide(build.resource(), build.seen(server=None, taken=True))
    assert decision.rule is Rule.PORT_TAKEN
    assert isinstance(decision.outcome, Retry)


def test_6_1_9_create_after_port_and_address(build: Any) -> None:
    spec = {"publicIPAllocation": {"enabled": True}}
    assert build.decide(build.resource(spec), build.seen(server=None)).verb is Verb.CREATE_ADDRESS
    seen = build.seen(server=None, addresses=(build.address(),))
    decision = build.decide(build.resource(spec), seen)
    assert (decision.rule, decision.verb) == (Rule.SERVER_ABSENT, Verb.CREATE_SERVER)


@pytest.mark.parametrize(
    "server",
    [
        {},
        {"task": "rebuilding"},
        {"status": "ERROR"},
        {"image": None},
        {"image": "44444444-4444-4444-8444-444444444444"},
    ],
)
def test_addresses_are_kept_whatever_the_image_pass_says(build: Any, server: dict[str, Any]) -> None:
    spec = {"publicIPAllocation": {"enabled": True}}
    seen = build.seen(server=build.server(**server), addresses=(build.address(),))
    decision = build.decide(build.resource(spec), seen)
    assert decision.status["privateIP"] == "192.0.2.10"
    assert decision.status["publicIP"] == "198.51.100.1"


def test_ref_050_a_removed_public_address_leaves_the_status(build: Any) -> None:
    decision = build.decide(build.resource(status={"publicIP": "198.51.100.1"}), build.seen())
    assert decision.status["publicIP"] is None


def test_port_and_address_come_before_the_image_on_every_pass(build: Any) -> None:
    seen = build.seen(port=build.port(groups=frozenset()), server=build.server(image=None))
    assert build.decide(build.resource(), seen).rule is Rule.PORT_DRIFTED


def test_settled_is_done(build: Any) -> None:
    decision = build.decide(build.resource(), build.seen())
    assert decision.outcome == Done()
    assert decision.rule is Rule.R3_DONE


# ---------------------------------------------------------------- every observation at once


@st.composite
def observations(draw: st.DrawFn, build: Any) -> Any:
    server = draw(
        st.none()
        | st.builds(
            lambda s, t, launched, i: build.server(status=s, task=t, launched=launched, image=i),
            st.sampled_from(["ACTIVE", "BUILD", "ERROR", "REBUILD", "SHUTOFF", ""]),
            st.sampled_from([None, "rebuilding", "deleting", "rebooting"]),
            st.sampled_from([True, False, None]),
            st.sampled_from([build.image, build.other_image, None]),
        )
    )
    volume = draw(
        st.sampled_from(
            [
                (),
                (build.volume(),),
                (build.attached(),),
                (build.volume(claimed=False),),
                (build.volume(exists=False),),
                (build.volume(status="detaching"),),
                (build.volume(failure=(Code.CONFLICT, "x")),),
                (build.attached(asked=True),),
                (build.volume(servers=frozenset({"other"})),),
            ]
        )
    )
    return build.seen(
        server=server,
        port=draw(st.sampled_from([None, build.port(), build.port(groups=frozenset())])),
        addresses=draw(st.sampled_from([(), (build.address(1),), (build.address(1), build.address(2))])),
        network_id=draw(st.sampled_from([None, "neutron-net"])),
        taken=draw(st.booleans()) and server is None,
        refusals=draw(st.sampled_from([(), None, (REFUSAL,)])),
        volumes=volume,
    )


STATUSES: list[dict[str, Any]] = [
    {},
    {"Healthy": texts.errored(), "Active": texts.active("Error")},
    {"Healthy": texts.errored(), "providerCreateFailures": 2},
    {"providerCreateRetrying": True, "providerCreateFailures": 1},
    {"provisionedAt": "2026-01-01T00:00:00Z", "Healthy": texts.errored()},
]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_inv_066_decide_is_total_and_destroys_only_from_the_rows_that_may(
    build: Any, data: st.DataObject
) -> None:
    seen = data.draw(observations(build))
    deleting = data.draw(st.booleans())
    volumes = [{"id": build.volume_id}] if data.draw(st.booleans()) else []
    spec = {"volumes": volumes, "publicIPAllocation": {"enabled": data.draw(st.booleans())}}
    status = data.draw(st.sampled_from(STATUSES))
    resource = build.resource(spec, status, deleting=deleting, ever=data.draw(st.booleans()))
    decision = build.decide(resource, seen)
    allowed = {
        Verb.DELETE_SERVER: {Rule.DELETE_SERVER, Rule.RETRY_DELETE, Rule.RETRY_COUNT},
        Verb.DELETE_PORT: {Rule.DELETE_PORT, Rule.RETRY_PORT, Rule.RETRY_COUNT},
        Verb.DELETE_ADDRESS: {
            Rule.DELETE_ADDRESS,
            Rule.RETRY_ADDRESS,
            Rule.RETRY_COUNT,
            Rule.ADDRESS_UNWANTED,
        },
        Verb.REBUILD: {Rule.R4_SUBMIT},
        Verb.DETACH: {Rule.DETACH, Rule.DELETE_DETACH},
    }
    assert set(allowed) == set(DESTRUCTIVE)
    if decision.verb in DESTRUCTIVE:
        assert decision.rule in allowed[decision.verb]
    if decision.verb is Verb.DELETE_SERVER:
        assert deleting or (seen.server.status == "ERROR" or resource.status.providerCreateRetrying)
        assert deleting or seen.server.launched is False
    if decision.verb is Verb.DELETE_PORT:
        assert seen.server is None
        assert not seen.taken
    if decision.verb is Verb.CREATE_SERVER:
        assert seen.server is None
        assert not deleting
    if deleting:
        assert decision.verb not in CREATING
        assert not isinstance(decision.outcome, Park)
        if isinstance(decision.outcome, Done):
            assert (seen.server, seen.port, seen.addresses, seen.volumes) == (None, None, (), ())
