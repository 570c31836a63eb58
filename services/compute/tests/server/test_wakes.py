"""What makes a server due: the spec, and facts that its status does not allow for, by the loop's own rules."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from roadstead.events import ObservedMessage, SpecMessage
from roadstead.reconcile import rules
from roadstead.reconcile.ingest import ingest
from roadstead.store.api import Row
from roadstead_compute.server import KIND


def spec_of(build: Any, image: str, **more: Any) -> dict[str, Any]:
    return {"flavorID": "f-1", "image": {"id": image}, "networks": [{"id": build.network}], **more}


def ingested(build: Any, row: Row | None, spec: dict[str, Any], sequence: int) -> Any:
    metadata = {"name": build.name, "organizationId": "org", "projectId": build.project}
    message = SpecMessage(metadata, spec)
    return ingest(
        row, build.now, kind=KIND, key=build.key(), message=message, position=(1, sequence), cause={}
    )


def parked(build: Any) -> Row:
    row: Row = ingested(build, None, spec_of(build, build.image, userData="QQ=="), 1).row
    return replace(row, work=replace(row.work, due_at=None))


def test_inv_096_an_edit_makes_a_parked_server_due_at_once(build: Any) -> None:
    change = ingested(build, parked(build), spec_of(build, build.other_image), 2)
    assert change.row.work.due_at == build.now
    assert change.row.generation == 2


def test_inv_095_the_same_spec_again_makes_nothing_due(build: Any) -> None:
    change = ingested(build, parked(build), spec_of(build, build.image, userData="QQ=="), 2)
    assert change.row.work.due_at is None


def test_ref_047_user_data_that_an_update_leaves_out_is_cleared(build: Any) -> None:
    row = parked(build)
    assert rules.resource_of(KIND, row).spec.userData == "QQ=="
    change = ingested(build, row, spec_of(build, build.image), 2)
    assert rules.resource_of(KIND, change.row).spec.userData is None
    assert "userData" not in change.row.spec


def test_ref_037_another_id_is_refused_and_the_right_one_named(build: Any) -> None:
    metadata = {"name": "web-2", "organizationId": "org", "projectId": build.project}
    message = SpecMessage(metadata, spec_of(build, build.image))
    change = ingest(None, build.now, kind=KIND, key=build.key(), message=message, position=(1, 1), cause={})
    (problem,) = change.result.problems
    assert problem.code == "WRONG_ID"
    assert KIND.id_of(build.metadata(name="web-2"), build.spec()) in problem.message


# ---------------------------------------------------------------- what others did


def provisioned(build: Any) -> Row:
    """A realized server that was last seen as it should be."""
    row: Row = ingested(build, None, spec_of(build, build.image), 1).row
    row = watched(build, row, 1).row
    status = {**row.status, "provisioningStatus": "provisioned", "observedGeneration": 1}
    return replace(row, status=status, work=replace(row.work, due_at=None))


PARKED = {"provisioningStatus": "error", "code": "REBUILD_CONVERGED_ERROR"}


def watched(build: Any, row: Row, minute: int, **facts: Any) -> Any:
    """The monitor's read of that minute."""
    read = {
        "status": "ACTIVE",
        "powerState": 1,
        "image": build.image,
        "launchedAt": "2026-01-01T00:01:00.000Z",
        "generation": row.generation,
        **facts,
    }
    started = build.now + timedelta(minutes=minute)
    message = ObservedMessage(read.pop("present", True), started, "sweep", 1, facts=read)
    return rules.observe(row, started, kind=KIND, message=message, cause={})


@pytest.mark.parametrize(
    "drift", [{"image": "other"}, {"status": "ERROR"}, {"present": False}], ids=["image", "error", "absent"]
)
def test_inv_106_inv_098_drift_wakes_again_after_it_was_put_right_between_two_looks(
    build: Any, drift: dict[str, Any]
) -> None:
    facts = {**drift, **({"image": build.other_image} if "image" in drift else {})}
    first = watched(build, provisioned(build), 2, **facts)
    assert first.result == "woken"
    # a pass puts it right and somebody undoes it before the next look: the facts read as they did
    mended = replace(first.row, work=replace(first.row.work, due_at=None))
    again = watched(build, mended, 3, **facts)
    assert again.result == "woken"
    assert again.row.work.due_at == build.now + timedelta(minutes=3)


def test_inv_106_an_image_that_an_edit_left_behind_wakes_when_somebody_brings_it_back(build: Any) -> None:
    row = provisioned(build)
    edited = ingested(build, row, spec_of(build, build.other_image), 2).row
    status = {**edited.status, "observedGeneration": 2}  # a pass rebuilt it, and nobody looked
    edited = replace(edited, status=status, work=replace(edited.work, due_at=None))
    change = watched(build, edited, 2, image=build.image)
    assert change.row.status["observed"]["image"] == row.status["observed"]["image"]
    assert change.result == "woken"


def test_inv_095_what_is_parked_or_paused_is_not_woken_by_facts_that_stay_the_same(build: Any) -> None:
    row = watched(build, provisioned(build), 2, status="ERROR").row
    quiet = replace(row, work=replace(row.work, due_at=None))
    errored = replace(quiet, status={**quiet.status, **PARKED})
    for still in (errored, replace(quiet, paused=True)):
        assert watched(build, still, 3, status="ERROR").result == "unchanged"


@pytest.mark.parametrize("now", [{"status": "ACTIVE"}, {"present": False}], ids=["recovered", "absent"])
@pytest.mark.parametrize("before", [{"status": "ACTIVE"}, {"present": False}], ids=["healthy", "gone"])
def test_inv_097_inv_100_a_park_ends_though_nobody_but_its_pass_saw_the_error(
    build: Any, before: dict[str, Any], now: dict[str, Any]
) -> None:
    """The error came and went between two looks, so that the facts read as they did before it."""
    row = watched(build, provisioned(build), 2, **before).row
    errored = replace(row, status={**row.status, **PARKED}, work=replace(row.work, due_at=None))
    assert watched(build, errored, 3, **now).result == "woken"


def test_inv_074_a_park_for_an_unreadable_image_ends_with_the_first_readable_one(build: Any) -> None:
    unread = {"provisioningStatus": "error", "code": "IMAGE_UNVERIFIABLE"}
    row = provisioned(build)
    parked_row = replace(row, status={**row.status, **unread})
    assert watched(build, parked_row, 2, image=None).row.work.due_at is None
    assert watched(build, parked_row, 2).result == "woken"


def test_inv_102_a_realized_server_that_others_work_on_is_not_woken(build: Any) -> None:
    row = provisioned(build)
    quiet: tuple[dict[str, Any], ...] = ({"status": "REBUILD"}, {"status": "SHUTOFF", "powerState": 4}, {})
    for number, facts in enumerate(quiet):
        change = watched(build, row, 2 + number, **facts)
        assert change.result in ("stored", "unchanged")
        row = change.row
    unborn = watched(build, row, 9, status="ERROR", launchedAt=None)
    assert unborn.row.work.due_at is not None, "errored is news by itself"
    still = replace(unborn.row, work=replace(unborn.row.work, due_at=None))
    assert watched(build, still, 10, status="ERROR", launchedAt=None).row.work.due_at is None
