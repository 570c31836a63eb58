"""Every row of the bounded create retry (behaviour.md section 6.3), and the predicate that starts it."""

from typing import Any

import pytest

from roadstead.reconcile.decision import Code, Park, Retry, Yield
from roadstead_compute.server import texts
from roadstead_compute.server.decide_retry import create_failed
from roadstead_compute.server.model import ServerStatus
from roadstead_compute.server.rules import Rule, Verb

FAILED: dict[str, Any] = {"Healthy": texts.errored(), "Active": texts.active("Error")}
RETRYING: dict[str, Any] = {
    "providerCreateFailures": 1,
    "providerCreateRetrying": True,
    "Healthy": texts.unknown(texts.HEALTH_RETRYING),
    "Active": texts.active("Pending"),
}


def failing(build: Any, **changes: Any) -> Any:
    return build.server(**{"status": "ERROR", "launched": False, **changes})


@pytest.mark.parametrize(
    ("fields", "active", "health", "expected"),
    [
        ({}, "Error", texts.errored(), True),
        ({}, "Building", texts.errored(), True),
        ({}, "Pending", texts.errored(), True),
        ({"provisionedAt": "2026-01-01T00:00:00Z"}, "Error", texts.errored(), False),
        ({"launchedAt": "2026-01-01T00:00:00Z"}, "Error", texts.errored(), False),
        ({}, "Running", texts.errored(), False),
        ({}, "Stopping", texts.errored(), False),
        ({}, "Stopped", texts.errored(), False),
        ({}, "Error", texts.degraded("BUILD"), False),
        ({}, "Error", texts.unknown(), False),
        ({}, "Error", {"status": "Unknown", "reason": "Errored"}, False),
        ({}, "Error", None, False),
        ({}, None, texts.errored(), True),
    ],
)
def test_inv_234_failure_predicate_fails_closed(
    fields: dict[str, Any], active: str | None, health: dict[str, str] | None, expected: bool
) -> None:
    conditions: dict[str, Any] = {}
    if active:
        conditions["Active"] = texts.active(active)
    if health:
        conditions["Healthy"] = health
    assert create_failed(ServerStatus.model_validate(fields), conditions) is expected


def test_6_3_count_inv_299_first_failure_is_counted_and_removed(build: Any) -> None:
    decision = build.decide(build.resource(status=FAILED), build.seen(server=failing(build)))
    assert decision.rule is Rule.RETRY_COUNT
    assert decision.verb is Verb.DELETE_SERVER
    assert decision.status["providerCreateFailures"] == 1
    assert decision.status["providerCreateRetrying"] is True
    assert decision.status["Active"] == texts.active("Pending")
    assert decision.events == ("CREATE_RETRYING",)


def test_6_3_count_with_the_server_gone_already_still_counts(build: Any) -> None:
    """The number of creates stays bounded also when somebody else removes the failed server."""
    decision = build.decide(build.resource(status=FAILED), build.absent())
    assert decision.rule is Rule.RETRY_COUNT
    assert decision.status["providerCreateFailures"] == 1
    assert decision.status["providerCreateRetrying"] is None
    assert decision.events == ("CREATE_RETRYING", "CREATE_RETRY_READY")
    assert isinstance(decision.outcome, Yield)


def test_6_3_cap_inv_300_inv_301_bound_reached_parks_terminal(build: Any) -> None:
    status = {**FAILED, "providerCreateFailures": 2}
    decision = build.decide(build.resource(status=status), build.seen(server=failing(build)))
    assert decision.rule is Rule.RETRY_CAP
    assert decision.outcome == Park(Code.CREATE_EXHAUSTED, texts.create_exhausted(3), terminal=True)
    assert "3 attempts" in decision.outcome.message
    assert decision.status["providerCreateFailures"] == 3
    assert decision.status["providerCreateRetrying"] is None
    assert decision.events == ("CREATE_FAILED",)


@pytest.mark.parametrize("gone", [True, False])
def test_6_3_cap_inv_301_re_running_after_the_cap_changes_nothing(build: Any, gone: bool) -> None:
    status = {**FAILED, "providerCreateFailures": 3}
    seen = build.absent() if gone else build.seen(server=failing(build))
    decision = build.decide(build.resource(status=status), seen)
    assert decision.rule is Rule.RETRY_CAP
    assert decision.events == (), "an event is an edge"
    assert decision.status["providerCreateFailures"] == 3


@pytest.mark.parametrize(("attempts", "parks"), [(0, True), (-1, True), (1, True), (2, False)])
def test_6_3_bounds_below_one_act_as_one(build: Any, attempts: int, parks: bool) -> None:
    seen = build.seen(server=failing(build), attempts=attempts)
    decision = build.decide(build.resource(status=FAILED), seen)
    assert isinstance(decision.outcome, Park) is parks


def test_6_3_retrying_delete_asks_for_the_failed_server(build: Any) -> None:
    decision = build.decide(build.resource(status=RETRYING), build.seen(server=failing(build)))
    assert (decision.rule, decision.verb) == (Rule.RETRY_DELETE, Verb.DELETE_SERVER)
    assert "providerCreateFailures" not in decision.status


def test_6_3_retrying_deleting_inv_303_no_second_server_while_the_first_goes(build: Any) -> None:
    seen = build.seen(server=failing(build, task="deleting"))
    decision = build.decide(build.resource(status=RETRYING), seen)
    assert decision.rule is Rule.RETRY_DELETING
    assert isinstance(decision.outcome, Yield)
    assert "providerCreateRetrying" not in decision.status, "the flag stays"
    assert decision.events == ()


def test_6_3_retrying_floating_ip_and_port_go_only_after_the_server(build: Any) -> None:
    resource = build.resource(status=RETRYING)
    seen = build.seen(server=None, addresses=(build.address(),))
    first = build.decide(resource, seen)
    assert (first.rule, first.verb) == (Rule.RETRY_ADDRESS, Verb.DELETE_ADDRESS)
    second = build.decide(resource, build.seen(server=None))
    assert (second.rule, second.verb) == (Rule.RETRY_PORT, Verb.DELETE_PORT)


def test_6_3_retrying_port_taken_by_a_stranger_is_left_alone(build: Any) -> None:
    decision = build.decide(build.resource(status=RETRYING), build.seen(server=None, taken=True))
    assert decision.rule is Rule.RETRY_TAKEN
    assert decision.outcome == Retry(Code.CONSISTENCY, texts.PORT_TAKEN)


def test_6_3_retrying_gone_inv_101_absence_clears_the_flag_and_resets(build: Any) -> None:
    decision = build.decide(build.resource(status=RETRYING), build.absent())
    assert decision.rule is Rule.RETRY_READY
    assert isinstance(decision.outcome, Yield)
    assert decision.status["providerCreateRetrying"] is None
    assert decision.events == ("CREATE_RETRY_READY",)
    assert {k: decision.status[k] for k in texts.RESET} == dict(texts.RESET)


def test_6_3_reset_leaves_mac_latch_and_observation_alone() -> None:
    assert set(texts.RESET) == {"Active", "Healthy", "privateIP", "publicIP", "launchedAt", "scheduledAt"}
    assert texts.RESET["Active"]["reason"] == "Pending"
    assert texts.RESET["Healthy"]["status"] == "Unknown"


def test_6_3_next_pass_after_ready_creates_inv_304_with_the_spec_of_then(build: Any) -> None:
    status = {**RETRYING, "providerCreateRetrying": False}
    resource = build.resource({"image": {"id": build.other_image}}, status)
    assert build.decide(resource, build.absent()).verb is Verb.CREATE_PORT
    assert build.decide(resource, build.seen(server=None)).verb is Verb.CREATE_SERVER


@pytest.mark.parametrize(
    "server",
    [
        {"launched": True},
        {"launched": None},
        {"status": "ACTIVE"},
        {"status": "BUILD"},
        {"status": "SHUTOFF", "launched": True},
    ],
)
@pytest.mark.parametrize("failures", [0, 2])
def test_inv_234_inv_302_a_fresh_read_that_disagrees_keeps_the_server(
    build: Any, server: dict[str, Any], failures: int
) -> None:
    status = {**FAILED, "providerCreateFailures": failures}
    decision = build.decide(build.resource(status=status), build.seen(server=failing(build, **server)))
    assert decision.verb is not Verb.DELETE_SERVER
    assert "providerCreateFailures" not in decision.status


@pytest.mark.parametrize("launched", [True, None])
def test_inv_302_a_flagged_server_that_booted_after_all_is_kept_and_the_flag_goes(
    build: Any, launched: bool | None
) -> None:
    seen = build.seen(server=build.server(launched=launched))
    decision = build.decide(build.resource(status=RETRYING), seen)
    assert decision.rule is Rule.R3_DONE
    assert decision.status["providerCreateRetrying"] is None


def test_inv_235_a_latch_that_is_empty_is_not_consulted_by_the_image_pass(build: Any) -> None:
    resource = build.resource({"image": {"id": build.other_image}})
    assert resource.status.provisionedAt is None
    assert build.decide(resource, build.seen()).rule is Rule.R4_SUBMIT


def test_inv_057_inv_058_stored_latches_never_authorise_a_rebuild(build: Any) -> None:
    spec = {"image": {"id": build.other_image}}
    latched = build.resource(
        spec, {"launchedAt": "2026-01-01T00:00:00Z", "provisionedAt": "2026-01-01T00:00:00Z"}
    )
    unborn = build.seen(server=build.server(launched=False))
    assert build.decide(latched, unborn).rule is Rule.R4_UNBORN
    assert build.decide(build.resource(spec), build.seen()).rule is Rule.R4_SUBMIT


def test_inv_062_never_booted_error_with_an_image_change_is_recreated_once_it_shows_as_errored(
    build: Any,
) -> None:
    spec = {"image": {"id": build.other_image}}
    seen = build.seen(server=failing(build))
    assert build.decide(build.resource(spec), seen).rule is Rule.R4_UNBORN
    assert build.decide(build.resource(spec, FAILED), seen).rule is Rule.RETRY_COUNT
