"""Every row of attachments (behaviour.md section 13.4): claim, attach, detach, release, and the rows of the status."""

from typing import Any

import pytest

from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead_compute.server import texts
from roadstead_compute.server.rules import Rule, Verb


def wanting(build: Any, status: dict[str, Any] | None = None) -> Any:
    return build.resource({"volumes": [{"id": build.volume_id}]}, status)


def row(build: Any, state: str, message: str, **device: str) -> dict[str, Any]:
    return {"id": build.volume_id, "provisioningStatus": state, "message": message, **device}


def test_13_4_claim_comes_before_the_attachment(build: Any) -> None:
    decision = build.decide(wanting(build), build.seen(volumes=(build.volume(claimed=False),)))
    assert (decision.rule, decision.verb) == (Rule.CLAIM, Verb.CLAIM)


def test_13_4_attach_inv_195_no_row_means_one_attach(build: Any) -> None:
    decision = build.decide(wanting(build), build.seen(volumes=(build.volume(),)))
    assert (decision.rule, decision.verb) == (Rule.ATTACH, Verb.ATTACH)


def test_13_4_inv_189_inv_192_inv_207_a_row_on_our_server_is_success_with_its_device(build: Any) -> None:
    decision = build.decide(wanting(build), build.seen(volumes=(build.attached(),)))
    assert decision.outcome == Done()
    assert decision.status["volumes"] == [row(build, "Provisioned", "", device="/dev/vdb")]


def test_13_4_an_empty_device_is_left_out(build: Any) -> None:
    decision = build.decide(wanting(build), build.seen(volumes=(build.attached(device=None),)))
    assert decision.status["volumes"] == [row(build, "Provisioned", "")]


@pytest.mark.parametrize("servers", [{"other"}, {"other", "nova-1"}])
@pytest.mark.parametrize("status", ["in-use", "available"])
def test_13_4_inv_193_inv_194_q5_a_row_on_another_server_is_a_conflict_without_a_call(
    build: Any, servers: set[str], status: str
) -> None:
    volume = build.volume(servers=frozenset(servers), status=status)
    decision = build.decide(wanting(build), build.seen(volumes=(volume,)))
    assert decision.rule is Rule.ATTACHMENT_FAILED
    assert decision.outcome == Retry(Code.CONFLICT, texts.ATTACH_CONFLICT)
    assert decision.status["volumes"] == [row(build, "Errored", texts.ATTACH_CONFLICT)]


def test_13_4_inv_191_a_volume_that_is_not_there(build: Any) -> None:
    for volume in (build.volume(status=None, cloud_id=None), build.volume(exists=False, ready=False)):
        decision = build.decide(wanting(build), build.seen(volumes=(volume,)))
        assert decision.outcome == Retry(Code.NOT_FOUND, texts.ATTACH_NO_VOLUME)


@pytest.mark.parametrize(
    ("volume", "server", "message"),
    [
        ({"ready": False, "claimed": False, "status": None}, {}, texts.ATTACH_WAIT_VOLUME),
        ({}, {"status": "BUILD", "launched": False}, texts.ATTACH_WAIT_SERVER),
        ({}, {"task": "rebooting"}, texts.ATTACH_WAIT_SERVER),
        ({"status": "attaching"}, {}, texts.ATTACH_WAIT),
        ({"status": "reserved"}, {}, texts.ATTACH_WAIT),
    ],
)
def test_13_4_wait(build: Any, volume: dict[str, Any], server: dict[str, Any], message: str) -> None:
    seen = build.seen(server=build.server(**server), volumes=(build.volume(**volume),))
    decision = build.decide(wanting(build), seen)
    assert decision.rule is Rule.ATTACHMENT_WAITS
    assert decision.outcome == Yield(Code.WAITING, message)
    assert decision.status["volumes"] == [row(build, "Provisioning", message)]


def test_13_4_failed_volume_does_not_hold_up_the_others(build: Any) -> None:
    other = "77777777-7777-4777-8777-777777777777"
    resource = build.resource({"volumes": [{"id": build.volume_id}, {"id": other}]})
    broken, fine = build.volume(failure=(Code.CONFLICT, texts.ATTACH_CLAIMED)), build.volume(id=other)
    first = build.decide(resource, build.seen(volumes=(broken, fine)))
    assert first.verb is Verb.ATTACH
    last = build.decide(resource, build.seen(volumes=(broken, build.attached(id=other))))
    assert last.outcome == Retry(Code.CONFLICT, texts.ATTACH_CLAIMED)
    assert [r["provisioningStatus"] for r in last.status["volumes"]] == ["Errored", "Provisioned"]


def test_13_4_rows_of_an_errored_server(build: Any) -> None:
    seen = build.seen(server=build.server(status="ERROR"), volumes=(build.volume(),))
    decision = build.decide(wanting(build), seen)
    assert decision.rule is Rule.R3_ERROR
    assert decision.status["volumes"] == [row(build, "Errored", texts.ATTACH_SERVER_ERROR)]


STORED = {"volumes": [{"id": "66666666-6666-4666-8666-666666666666", "provisioningStatus": "Provisioned"}]}


def test_13_4_detach_inv_199_a_volume_that_left_the_spec(build: Any) -> None:
    decision = build.decide(build.resource(status=STORED), build.seen(volumes=(build.attached(),)))
    assert (decision.rule, decision.verb) == (Rule.DETACH, Verb.DETACH)
    assert decision.status["volumes"] == [row(build, "Deprovisioning", texts.DETACHING)]


@pytest.mark.parametrize("volume", [{"asked": True}, {"status": "detaching"}])
def test_13_4_a_detach_under_way_is_waited_for_and_the_claim_kept(build: Any, volume: dict[str, Any]) -> None:
    decision = build.decide(build.resource(status=STORED), build.seen(volumes=(build.attached(**volume),)))
    assert decision.rule is Rule.ATTACHMENT_WAITS
    assert isinstance(decision.outcome, Yield)


@pytest.mark.parametrize(
    "volume",
    [{}, {"servers": frozenset({"other"}), "status": "in-use"}, {"status": None, "cloud_id": None}],
)
def test_13_4_release_inv_201_inv_202_only_when_no_row_is_on_our_server(
    build: Any, volume: dict[str, Any]
) -> None:
    decision = build.decide(build.resource(status=STORED), build.seen(volumes=(build.volume(**volume),)))
    assert (decision.rule, decision.verb) == (Rule.RELEASE, Verb.RELEASE)


@pytest.mark.parametrize("status", ["attaching", "reserved", "detaching"])
def test_13_4_a_claim_is_kept_while_the_volume_is_on_its_way(build: Any, status: str) -> None:
    """An edit may take back an attachment that the cloud has not ended yet; Cinder shows no row of it so far."""
    resource = build.resource(status=STORED)
    decision = build.decide(resource, build.seen(volumes=(build.volume(status=status),)))
    assert decision.rule is Rule.ATTACHMENT_WAITS
    assert decision.status["volumes"] == [row(build, "Deprovisioning", texts.DETACHING)]
    without = build.decide(resource, build.absent(volumes=(build.volume(status=status),)))
    assert without.verb is Verb.RELEASE, "nothing moves it onto a server that is not there"


PARKS = [
    ({"status": "ERROR"}, {}, Code.REBUILD_CONVERGED_ERROR),
    ({"image": None}, {}, Code.IMAGE_UNVERIFIABLE),
    ({}, {"image": None}, Code.IMAGE_MISSING),
]


@pytest.mark.parametrize(("server", "spec", "code"), PARKS)
def test_13_4_inv_077_a_parked_server_lets_go_of_what_is_off(
    build: Any, server: dict[str, Any], spec: dict[str, Any], code: Code
) -> None:
    resource, there = build.resource(spec, STORED), build.server(**server)
    first = build.decide(resource, build.seen(server=there, volumes=(build.volume(),)))
    assert (first.rule, first.verb) == (Rule.RELEASE, Verb.RELEASE)
    last = build.decide(resource, build.seen(server=there))
    assert isinstance(last.outcome, Park)
    assert (last.outcome.code, last.status["volumes"]) == (code, None)


@pytest.mark.parametrize(("server", "spec", "code"), PARKS)
@pytest.mark.parametrize("volume", [{"status": "detaching"}, {"failure": (Code.UNAVAILABLE, "no answer")}])
def test_13_4_no_park_while_a_claim_is_still_to_be_let_go(
    build: Any, volume: dict[str, Any], server: dict[str, Any], spec: dict[str, Any], code: Code
) -> None:
    seen = build.seen(server=build.server(**server), volumes=(build.volume(**volume),))
    decision = build.decide(build.resource(spec, STORED), seen)
    assert isinstance(decision.outcome, Retry)
    assert decision.outcome.code is code


def test_13_4_a_parked_server_that_holds_a_volume_in_the_cloud_stays_parked(build: Any) -> None:
    """Nova takes nothing off a server in error; the volume waits for what a person does about the server."""
    seen = build.seen(server=build.server(status="ERROR"), volumes=(build.attached(),))
    decision = build.decide(build.resource(status=STORED), seen)
    assert isinstance(decision.outcome, Park)


def test_13_4_the_row_goes_with_the_release(build: Any) -> None:
    decision = build.decide(build.resource(status=STORED), build.seen())
    assert decision.outcome == Done()
    assert decision.status["volumes"] is None


def test_13_4_inv_204_a_refused_detach_keeps_its_row_and_is_tried_again(build: Any) -> None:
    volume = build.attached(failure=(Code.CONFLICT, texts.DETACH_FAILED))
    decision = build.decide(build.resource(status=STORED), build.seen(volumes=(volume,)))
    assert decision.outcome == Retry(Code.CONFLICT, texts.DETACH_FAILED)
    assert decision.status["volumes"] == [row(build, "Errored", texts.DETACH_FAILED)]


def test_13_4_unwanted_volumes_come_off_before_new_ones_go_on(build: Any) -> None:
    other = "77777777-7777-4777-8777-777777777777"
    seen = build.seen(volumes=(build.volume(), build.attached(id=other)))
    decision = build.decide(wanting(build), seen)
    assert decision.why == f"volume {other}"
    assert decision.verb is Verb.DETACH


def test_13_4_nothing_is_detached_while_the_server_is_busy(build: Any) -> None:
    seen = build.seen(server=build.server(task="rebooting"), volumes=(build.attached(),))
    decision = build.decide(build.resource(status=STORED), seen)
    assert decision.rule is Rule.ATTACHMENT_WAITS


def test_no_row_bears_an_id_of_the_cloud(build: Any) -> None:
    decision = build.decide(wanting(build), build.seen(volumes=(build.attached(),)))
    assert "cinder-1" not in str(decision.status)
    assert "nova-1" not in str(decision.status)
