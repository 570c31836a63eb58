"""The end of a pass: due times, conditions, history, tombstones, next lives (behaviour.md section 1, architecture.md 3.3 to 3.10)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roadstead.reconcile import rules
from roadstead.reconcile.decision import STEADY_CODES, Code, Done, Outcome, Park, Retry, Yield
from roadstead.reconcile.drive import Decided
from roadstead.reconcile.finish import Finished, Timing, finish
from roadstead.reconcile.outcomes import on_delete_path
from roadstead.reconcile.status import conditions_of
from roadstead.store.api import Change, Lease, Row

from .test_ingest_rules import DELETE, ingest, spec
from .toy import KEY, KIND

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMING = Timing(10, 10, 300)


def claimed(row: Row | None) -> tuple[Row, Lease]:
    assert row is not None
    until = NOW + timedelta(seconds=20)
    work = replace(row.work, lease_owner="me", lease_until=until, lease_epoch=row.work.lease_epoch + 1)
    return replace(row, work=work), Lease(KEY, "me", work.lease_epoch, until, work.wake_seq, NOW)


def ended(row: Row, lease: Lease, outcome: Outcome, **parts: Any) -> Change:
    end = Finished(lease, row.generation, outcome, TIMING, **parts)
    return finish(row, NOW, kind=KIND, end=end)


def fresh(*, deleting: bool = False) -> tuple[Row, Lease]:
    row, _ = ingest(None, spec(), 5)
    if deleting:
        row, _ = ingest(row, DELETE, 6)
    return claimed(row)


@pytest.mark.parametrize(
    ("outcome", "reason", "due"),
    [
        (Done(), "Provisioned", None),
        (Yield(Code.BUSY, "x"), "Provisioning", 10),
        (Yield(Code.BUSY, "x", after=1.5), "Provisioning", 1.5),
        (Retry(Code.UNAVAILABLE, "x"), "Errored", 10),
        (Retry(Code.THROTTLED, "x", after=7), "Errored", 7),
        (Park(Code.IMAGE_MISSING, "x"), "Errored", None),
        (Park(Code.CREATE_EXHAUSTED, "x", terminal=True), "Errored", None),
    ],
)
def test_ref_005_outcomes_on_the_provision_path(outcome: Outcome, reason: str, due: float | None) -> None:
    row, lease = fresh()
    after: Row = ended(row, lease, outcome).result
    available = conditions_of(after.status)["Available"]
    assert available["reason"] == reason
    assert after.work.due_at == (None if due is None else NOW + timedelta(seconds=due))
    assert after.work.lease_owner is None


def test_ref_005_errors_of_a_provision_pass_have_no_back_off() -> None:
    row, lease = fresh()
    for _ in range(5):
        row, lease = claimed(ended(row, lease, Retry(Code.UNAVAILABLE, "x")).result)
    assert row.work.due_at == NOW + timedelta(seconds=10)


def pauses(row: Row, lease: Lease, *outcomes: Outcome) -> list[float]:
    """Seconds until due after each of these ends in turn."""
    found = []
    for outcome in outcomes:
        row, lease = claimed(ended(row, lease, outcome).result)
        assert row.work.due_at is not None
        found.append((row.work.due_at - NOW).total_seconds())
    return found


FULL = Retry(Code.ALLOCATION, "none left")


@pytest.mark.parametrize("code", sorted(set(Code) - STEADY_CODES - {Code.NONE}))
def test_oc_30_a_refusal_that_repeats_comes_later_each_time(code: Code) -> None:
    """10 s, then doubling to five minutes, spread: a full pool is not asked by everybody every 10 s for ever."""
    found = pauses(*fresh(), *[Retry(code, "refused")] * 9)
    assert found[0] == 10
    assert found == sorted(found)
    assert all(later <= 300 for later in found)
    assert found[-1] >= 200


def test_oc_30_the_pause_begins_anew_when_something_changed() -> None:
    row, lease = fresh()
    assert pauses(row, lease, FULL, FULL, FULL)[-1] > 20
    assert pauses(row, lease, FULL, FULL, Retry(Code.ALLOCATION, "another"))[-1] == 10
    assert pauses(row, lease, FULL, FULL, Retry(Code.QUOTA_EXCEEDED, "none left"))[-1] == 10
    assert pauses(row, lease, FULL, FULL, Yield(Code.BUSY, "x"), FULL)[-1] == 10
    for _ in range(4):
        row, lease = claimed(ended(row, lease, FULL).result)
    edited, _ = ingest(row, spec("blue"), 9)
    assert edited is not None
    assert edited.generation > row.generation
    assert edited.failures == 0


def test_oc_30_what_the_cloud_asks_for_wins_over_the_growing_pause() -> None:
    assert pauses(*fresh(), FULL, FULL, replace(FULL, after=7))[-1] == 7


@pytest.mark.parametrize("outcome", [Retry(Code.UNAVAILABLE, "", 0.0), Yield(Code.BUSY, "", 0.0)])
def test_no_pass_makes_its_row_due_again_at_once(outcome: Outcome) -> None:
    row, lease = fresh()
    assert pauses(row, lease, outcome) == [0.1]


def test_inv_118_a_rejected_rebuild_keeps_its_pause() -> None:
    assert set(pauses(*fresh(), *[Retry(Code.QUOTA_EXCEEDED, "x", steady=True)] * 5)) == {10}


def test_errors_of_a_delete_pass_back_off_to_five_minutes() -> None:
    row, lease = fresh(deleting=True)
    pauses = []
    for _ in range(9):
        row, lease = claimed(ended(row, lease, Retry(Code.UNAVAILABLE, "x")).result)
        assert row.work.due_at is not None
        pauses.append((row.work.due_at - NOW).total_seconds())
    assert pauses == sorted(pauses)
    assert pauses[0] <= 10
    assert 200 <= pauses[-1] <= 300


def test_ref_006_a_terminal_result_of_a_delete_is_an_error() -> None:
    outcome = on_delete_path(Park(Code.CREATE_EXHAUSTED, "x", terminal=True))
    assert isinstance(outcome, Retry)
    assert on_delete_path(Yield()) == Yield()


def test_no_wake_is_lost_while_a_pass_runs() -> None:
    row, lease = fresh()
    row = rules.wake(row, NOW, {})
    after: Row = ended(row, lease, Done()).result
    assert after.work.due_at == NOW


def test_no_outcome_is_written_without_the_lease() -> None:
    row, lease = fresh()
    stolen = replace(row, work=replace(row.work, lease_epoch=row.work.lease_epoch + 1, lease_owner="other"))
    change = ended(stolen, lease, Done())
    assert change.result is None
    assert change.row is None
    assert not change.outgoing
    assert not change.history


def test_decided_is_published_on_change_and_counted_on_repeats() -> None:
    row, lease = fresh()
    decided = [Decided("d1", "T3", None, "the paint dries", row.generation, "BUSY")]
    first = ended(row, lease, Yield(Code.BUSY, "the paint dries"), decided=decided)
    assert [h.kind for h in first.history] == ["decided"]
    row, lease = claimed(first.result)
    again = ended(
        row, lease, Yield(Code.BUSY, "the paint dries"), decided=[replace(decided[0], decision_id="d2")]
    )
    assert not again.history
    assert again.result.decided["count"] == 2
    assert again.result.decided["decisionId"] == "d1"


def write(ident: str = "w1", **parts: Any) -> dict[str, Any]:
    base = {
        "intentId": ident,
        "decisionId": "d1",
        "verb": "server.create",
        "service": "compute",
        "method": "POST",
        "path": "/servers",
        "destructive": False,
        "creates": True,
        "at": NOW.isoformat(),
        "answered": True,
        "outcome": "ok",
        "openstackRequestId": "req-1",
    }
    return {**base, **parts}


def test_acted_is_published_for_every_write() -> None:
    row, lease = fresh()
    change = ended(row, lease, Yield(), writes=[write("w1"), write("w2", openstackRequestId="req-2")])
    acted = [h.body for h in change.history if h.kind == "acted"]
    assert [a["openstackRequestId"] for a in acted] == ["req-1", "req-2"]
    assert change.result.written_at == NOW
    assert change.result.intents == ()


def test_an_intent_without_an_answer_is_reported_once_as_unknown_and_kept_while_it_settles() -> None:
    row, lease = fresh()
    noted = rules.intend(
        row, NOW, lease=lease, intents=[write(answered=False, outcome="unknown")], hold_seconds=80, status={}
    )
    row, lease = claimed(noted.row)  # another process goes on: the first one died
    first = ended(row, lease, Yield(Code.SETTLING, "x"))
    assert [h.body["outcome"] for h in first.history if h.kind == "acted"] == ["unknown"]
    assert len(first.result.intents) == 1
    row, lease = claimed(first.result)
    second = ended(row, lease, Yield(Code.SETTLING, "x"))
    assert not [h for h in second.history if h.kind == "acted"]


def test_an_intent_holds_the_lease_past_the_call() -> None:
    row, lease = fresh()
    noted = rules.intend(row, NOW, lease=lease, intents=[write()], hold_seconds=80, status={})
    assert noted.row is not None
    assert noted.row.work.lease_until == NOW + timedelta(seconds=80)


def test_references_that_were_granted_are_noted_with_the_intent_or_at_the_end() -> None:
    row, lease = fresh()
    row = replace(row, references={"network/1": -1, "identity/1": -1})
    change = rules.intend(
        row, NOW, lease=lease, intents=[write()], hold_seconds=80, status={}, granted={"network/1": 3}
    )
    assert change.row is not None
    assert change.row.references == {"network/1": 3, "identity/1": -1}
    finished: Row = ended(
        change.row, lease, Done(), granted={"identity/1": 3, "server/1": 3}, drop_references=["server/1"]
    ).result
    assert finished.references == {"network/1": 3, "identity/1": 3}


def test_an_intent_without_the_lease_is_refused() -> None:
    row, lease = fresh()
    stolen = replace(row, work=replace(row.work, lease_epoch=99))
    assert (
        rules.intend(stolen, NOW, lease=lease, intents=[write()], hold_seconds=80, status={}).result is None
    )


def test_a_proved_absence_ends_in_a_tombstone_with_purged_subjects() -> None:
    row, lease = fresh(deleting=True)
    change = ended(row, lease, Done())
    tomb: Row = change.result
    assert tomb.gone_at == NOW
    assert tomb.work.due_at is None
    assert {o.headers.get("stream") for o in change.outgoing if o.purge_to is not None} == {"SPEC", "STATUS"}


def test_a_spec_kept_while_deleting_starts_its_next_life_with_the_tombstone() -> None:
    row, _ = ingest(None, spec("red"), 5)
    row, _ = ingest(row, DELETE, 6)
    row, _ = ingest(row, spec("blue"), 7)
    row, lease = claimed(row)
    born: Row = ended(row, lease, Done()).result
    assert (born.incarnation, born.spec["colour"], born.gone_at, born.deleting) == (2, "blue", None, False)
    assert born.sequence == 7
    assert born.work.due_at == NOW
    assert born.generation > row.generation


def test_a_delete_that_came_during_a_provision_pass_is_not_taken_for_done() -> None:
    row, _ = ingest(None, spec(), 5)
    row, lease = claimed(row)
    row2, _ = ingest(row, DELETE, 6)
    assert row2 is not None
    change = finish(row2, NOW, kind=KIND, end=Finished(lease, 1, Done(), TIMING))
    assert change.result.gone_at is None
    assert change.result.work.due_at == NOW


def test_quiet_passes_publish_nothing() -> None:
    row, lease = fresh()
    first = ended(row, lease, Done())
    row, lease = claimed(first.result)
    second = ended(row, lease, Done())
    assert not second.outgoing
    assert second.result.resource_version == first.result.resource_version
