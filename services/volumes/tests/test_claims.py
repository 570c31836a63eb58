"""Claims: compare-and-set on the volume's row."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.volumes.tests.world import NOW, OTHER, REGION, SERVER, TENANT, VOLUME

from roadstead.store.api import Row
from roadstead.subjects import Key
from roadstead_volumes.volume.claims import Claim, Claiming, holder, release, take

ONE, TWO = Claim(SERVER), Claim(OTHER)
ROW = Row(
    Key(REGION, TENANT, "volume", VOLUME),
    "i",
    {},
    {},
    1,
    1,
    1,
    1,
    status={"provisioningStatus": "provisioned"},
)


def row(change: Any) -> Row:
    assert change.row is not None
    found: Row = change.row
    return found


def test_a_free_volume_is_taken_and_told() -> None:
    change = take(ROW, NOW, ONE)
    assert change.result is Claiming.HELD
    assert row(change).status == {**ROW.status, "claimRef": {"kind": "Server", "id": SERVER}}
    assert row(change).resource_version == ROW.resource_version + 1
    assert [out.subject for out in change.outgoing] == [f"status.{ROW.key}"]
    assert row(change).generation == ROW.generation


def test_taking_it_twice_changes_nothing() -> None:
    held = row(take(ROW, NOW, ONE))
    again = take(held, NOW, ONE)
    assert (again.row, list(again.outgoing), again.result) == (None, [], Claiming.HELD)
    assert take(replace(held, deleting=True), NOW, ONE).result is Claiming.HELD


def test_of_two_claimants_the_second_is_refused() -> None:
    held = row(take(ROW, NOW, ONE))
    refused = take(held, NOW, TWO)
    assert (refused.row, refused.result) == (None, Claiming.HELD_BY_OTHER)
    assert release(held, NOW, TWO).result is Claiming.HELD_BY_OTHER
    assert release(held, NOW, TWO).row is None


def test_what_is_going_is_not_taken_any_more() -> None:
    assert take(replace(ROW, deleting=True), NOW, ONE).result is Claiming.DELETING


@pytest.mark.parametrize("missing", [None, replace(ROW, gone_at=NOW), replace(ROW, generation=0)])
def test_what_is_not_there_is_not_taken_and_counts_as_released(missing: Row | None) -> None:
    assert take(missing, NOW, ONE).result is Claiming.UNKNOWN
    assert release(missing, NOW, ONE).result is Claiming.RELEASED
    assert release(missing, NOW, ONE).row is None


def test_releasing_frees_it_and_makes_a_waiting_deletion_due() -> None:
    held = row(take(ROW, NOW, ONE))
    freed = row(release(held, NOW, ONE))
    assert holder(freed) is None
    assert freed.work.due_at is None
    going = row(release(replace(held, deleting=True), NOW, ONE))
    assert going.work.due_at == NOW
    assert row(take(freed, NOW, TWO)).status["claimRef"]["id"] == OTHER


@pytest.mark.parametrize(
    "value",
    [None, {}, "x", {"kind": "Server"}, {"kind": "Volume", "id": SERVER}, {"kind": "Server", "id": "x"}],
)
def test_a_claimant_is_a_server_with_an_id(value: Any) -> None:
    assert Claim.read(value) is None


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([ONE, TWO])), max_size=20))
def test_there_is_never_more_than_one_holder_and_it_is_who_was_told_so(
    steps: list[tuple[bool, Claim]],
) -> None:
    """Against the plainest model: one slot."""
    current, slot = ROW, None
    for taking, who in steps:
        change = (take if taking else release)(current, NOW, who)
        current = change.row or current
        if taking and slot in (None, who):
            slot = who
            assert change.result is Claiming.HELD
        elif not taking and slot in (None, who):
            slot = None
            assert change.result is Claiming.RELEASED
        else:
            assert change.result is Claiming.HELD_BY_OTHER
        assert holder(current) == slot
