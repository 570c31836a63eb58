"""Every row of behaviour.md section 9.1, each by its id, and what the rows may write."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.reconcile.decision import Code, Done, Park, Yield
from roadstead_compute.server import texts
from roadstead_compute.server.decide_image import decide_image
from roadstead_compute.server.rules import DESTRUCTIVE, Rule, Verb
from roadstead_compute.server.seen import ServerSeen, uuid_or_none

A = "33333333-3333-4333-8333-333333333333"
B = "44444444-4444-4444-8444-444444444444"


def server(
    status: str = "ACTIVE", task: str | None = None, launched: bool | None = True, image: str | None = A
) -> ServerSeen:
    return ServerSeen("nova-1", status, task, launched, image)


def test_r1_inv_070_missing_spec_image_parks_and_calls_nothing() -> None:
    decision = decide_image(None, server())
    assert decision.rule is Rule.R1
    assert decision.outcome == Park(Code.IMAGE_MISSING, texts.IMAGE_MISSING)
    assert decision.verb is None


def test_r2_inv_071_inv_072_inv_073_unreadable_reference_parks() -> None:
    unreadable: tuple[object, ...] = (None, "", "not-a-uuid", {"links": []})
    for raw in unreadable:
        decision = decide_image(A, server(image=uuid_or_none(raw)))
        assert decision.rule is Rule.R2
        assert decision.outcome == Park(Code.IMAGE_UNVERIFIABLE, texts.IMAGE_UNVERIFIABLE)


def test_inv_074_inv_126_no_park_is_latched_a_good_read_ends_it() -> None:
    assert decide_image(A, server(image=None)).rule is Rule.R2
    assert decide_image(A, server()).outcome == Done()
    assert decide_image(A, server("ERROR")).rule is Rule.R3_ERROR
    assert decide_image(A, server("ACTIVE")).outcome == Done()


@pytest.mark.parametrize(
    ("status", "task"),
    [
        ("REBUILD", "rebuilding"),
        ("ACTIVE", "rebuilding"),
        ("ACTIVE", "rebuild_block_device_mapping"),
        ("ACTIVE", "rebuild_spawning"),
        ("ACTIVE", "rebuild_guest_reimage"),
        ("REBUILD", None),
        ("REBUILD", "powering-off"),
        ("ERROR", "rebuild_spawning"),
    ],
)
def test_r3_inv_075_inv_076_inv_086_inv_087_inv_088_rebuild_in_flight_waits_with_the_stamp(
    status: str, task: str | None
) -> None:
    decision = decide_image(A, server(status, task))
    assert decision.rule is Rule.R3
    assert isinstance(decision.outcome, Yield)
    assert decision.status == texts.ACCEPTED


def test_r3_error_inv_077_converged_error_that_booted_parks() -> None:
    decision = decide_image(A, server("ERROR"))
    assert decision.rule is Rule.R3_ERROR
    assert decision.outcome == Park(Code.REBUILD_CONVERGED_ERROR, texts.REBUILD_CONVERGED_ERROR)


def test_r3_error_q12_only_a_rebuild_is_excluded_another_task_still_parks() -> None:
    assert decide_image(A, server("ERROR", "rebooting")).rule is Rule.R3_ERROR


def test_inv_090_inv_091_inv_109_the_park_names_a_remedy_and_no_cause() -> None:
    text = texts.REBUILD_CONVERGED_ERROR
    assert "choose another image" in text
    assert "replace" in text
    for cause in ("rebuild", "evacuat", "host"):
        assert cause not in text


def test_r3_done_inv_078_converged_error_that_never_booted_is_left_to_the_create_retry() -> None:
    decision = decide_image(A, server("ERROR", launched=False))
    assert decision.rule is Rule.R3_DONE
    assert decision.outcome == Done()


@pytest.mark.parametrize(
    ("status", "task", "launched"),
    [
        ("ACTIVE", None, True),
        ("ACTIVE", "rebooting", True),
        ("SHUTOFF", None, True),
        ("BUILD", "spawning", False),
        ("BUILD", None, False),
        ("PAUSED", None, True),
        ("ERROR", None, None),
    ],
)
def test_r3_done_inv_068_inv_079_inv_080_converged_is_done_without_a_stamp(
    status: str, task: str | None, launched: bool | None
) -> None:
    decision = decide_image(A, server(status, task, launched))
    assert decision.rule is Rule.R3_DONE
    assert decision.outcome == Done()
    assert decision.status == {}


@pytest.mark.parametrize("launched", [False, None])
@pytest.mark.parametrize("status", ["BUILD", "ERROR", "ACTIVE", "REBUILD"])
def test_r4_inv_059_inv_061_inv_081_never_booted_yields_whatever_the_status(
    status: str, launched: bool | None
) -> None:
    decision = decide_image(B, server(status, launched=launched))
    assert decision.rule is Rule.R4_UNBORN
    assert isinstance(decision.outcome, Yield)
    assert decision.outcome.after is None, "the fixed pause of the loop"
    assert decision.status == {}


@pytest.mark.parametrize(
    ("status", "task"),
    [
        ("ACTIVE", "rebooting"),
        ("REBUILD", None),
        ("ACTIVE", "rebuilding"),
        ("ERROR", "deleting"),
        ("ACTIVE", "x"),
    ],
)
def test_r4_busy_inv_082_inv_083_inv_089_any_task_yields(status: str, task: str | None) -> None:
    decision = decide_image(B, server(status, task))
    assert decision.rule is Rule.R4_BUSY
    assert isinstance(decision.outcome, Yield)
    assert decision.status == {}


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF", "ERROR", "PAUSED"])
def test_r4_submit_inv_056_inv_084_inv_085_inv_107_quiet_and_diverged_is_rebuilt(status: str) -> None:
    decision = decide_image(B, server(status))
    assert decision.rule is Rule.R4_SUBMIT
    assert decision.verb is Verb.REBUILD
    assert decision.status == {}


STATES = st.builds(
    server,
    st.sampled_from(
        ["ACTIVE", "BUILD", "ERROR", "REBUILD", "SHUTOFF", "UNKNOWN", "", "DELETED", "MIGRATING"]
    ),
    st.sampled_from([None, "rebuilding", "rebuild_x", "deleting", "rebooting"]),
    st.sampled_from([True, False, None]),
    st.sampled_from([A, B, None]),
)


@given(st.sampled_from([A, B, None]), STATES)
def test_inv_108_inv_122_inv_123_inv_124_inv_125_only_one_row_destroys_and_only_r3_stamps(
    wanted: str | None, seen: ServerSeen
) -> None:
    decision = decide_image(wanted, seen)
    if decision.verb is not None:
        assert decision.verb is Verb.REBUILD
        assert decision.rule is Rule.R4_SUBMIT
        assert seen.image not in (None, wanted)
        assert wanted is not None
        assert seen.launched is True
        assert not seen.busy
    assert bool(decision.status) == (decision.rule is Rule.R3)


def test_inv_064_the_image_table_knows_no_verb_but_rebuild() -> None:
    verbs = {
        decide_image(wanted, server(status, task, launched, image)).verb
        for wanted, status, task, launched, image in itertools.product(
            (A, None),
            ("ACTIVE", "BUILD", "ERROR", "REBUILD"),
            (None, "rebooting"),
            (True, False, None),
            (A, B, None),
        )
    }
    assert verbs - {None} == {Verb.REBUILD}
    assert Verb.REBUILD in DESTRUCTIVE
