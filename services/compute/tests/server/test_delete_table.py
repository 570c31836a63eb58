"""Every row of a server's deletion (behaviour.md section 6.4)."""

from dataclasses import replace
from typing import Any

from roadstead.reconcile.decision import Code, Done, Retry, Yield
from roadstead_compute.server import texts
from roadstead_compute.server.rules import Rule, Verb


def going(build: Any, status: dict[str, Any] | None = None) -> Any:
    return build.resource({"volumes": [{"id": build.volume_id}]}, status, deleting=True)


def test_6_4_ref_051_server_then_floating_ip_then_port_then_claims(build: Any) -> None:
    resource, address = going(build), build.address()
    seen = build.seen(addresses=(address,), volumes=(build.volume(),))
    order = []
    decision = build.decide(resource, seen)
    order.append(decision.verb)
    seen = replace(seen, server=None)
    order.append(build.decide(resource, seen).verb)
    seen = replace(seen, addresses=())
    order.append(build.decide(resource, seen).verb)
    seen = replace(seen, port=None)
    order.append(build.decide(resource, seen).verb)
    seen = replace(seen, volumes=())
    order.append(build.decide(resource, seen).outcome)
    assert order == [Verb.DELETE_SERVER, Verb.DELETE_ADDRESS, Verb.DELETE_PORT, Verb.RELEASE, Done()]


def test_6_4_going_waits_without_asking_again(build: Any) -> None:
    decision = build.decide(going(build), build.seen(server=build.server(task="deleting")))
    assert decision.rule is Rule.DELETE_GOING
    assert isinstance(decision.outcome, Yield)


def test_6_4_detach_before_the_server_goes_each_volume_once(build: Any) -> None:
    resource = going(build)
    seen = build.seen(volumes=(build.attached(),))
    first = build.decide(resource, seen)
    assert (first.rule, first.verb) == (Rule.DELETE_DETACH, Verb.DETACH)
    asked = build.seen(volumes=(build.attached(asked=True),))
    second = build.decide(resource, asked)
    assert second.rule is Rule.DELETE_DETACHING
    assert second.status["volumes"][0]["provisioningStatus"] == "Deprovisioning"
    third = build.decide(going(build, {"volumes": second.status["volumes"]}), seen)
    assert third.verb is Verb.DELETE_SERVER, "a guest that does not let go cannot hold the deletion up"


def test_6_4_a_second_volume_is_still_asked_for_in_the_same_pass(build: Any) -> None:
    other = "77777777-7777-4777-8777-777777777777"
    asked, fresh = build.attached(asked=True), build.attached(id=other)
    decision = build.decide(going(build), build.seen(volumes=(asked, fresh)))
    assert decision.verb is Verb.DETACH
    assert [r["id"] for r in decision.status["volumes"]] == [build.volume_id]


def test_6_4_a_server_in_error_goes_with_its_volumes(build: Any) -> None:
    seen = build.seen(server=build.server(status="ERROR"), volumes=(build.attached(),))
    assert build.decide(going(build), seen).verb is Verb.DELETE_SERVER


def test_6_4_a_port_that_a_stranger_uses_is_waited_for_with_a_reason(build: Any) -> None:
    decision = build.decide(going(build), build.seen(server=None, taken=True))
    assert decision.rule is Rule.DELETE_PORT_TAKEN
    assert decision.outcome == Yield(Code.IN_USE, texts.PORT_TAKEN)


def test_6_4_release_and_gone_by_their_rules(build: Any) -> None:
    held = build.decide(going(build), build.absent(volumes=(build.volume(),)))
    assert (held.rule, held.verb) == (Rule.DELETE_RELEASE, Verb.RELEASE)
    assert build.decide(going(build), build.absent()).rule is Rule.DELETED


def test_6_4_a_claim_that_cannot_be_released_is_tried_again(build: Any) -> None:
    volume = build.volume(failure=(Code.UNAVAILABLE, texts.CLAIM_UNANSWERED))
    decision = build.decide(going(build), build.absent(volumes=(volume,)))
    assert decision.rule is Rule.DELETE_UNRELEASED
    assert decision.outcome == Retry(Code.UNAVAILABLE, texts.CLAIM_UNANSWERED)


def test_6_4_gone_is_done_whatever_the_status_says(build: Any) -> None:
    """REF-002 for servers: a deletion is gated on nothing that was recorded."""
    for status in (
        None,
        {"providerCreateRetrying": True, "Healthy": texts.errored()},
        {"provisionedAt": "x"},
    ):
        assert build.decide(going(build, status), build.absent()).outcome == Done()


def test_6_4_the_public_address_leaves_the_status_with_the_floating_ip(build: Any) -> None:
    decision = build.decide(going(build, {"publicIP": "198.51.100.1"}), build.seen(server=None))
    assert decision.status["publicIP"] is None
