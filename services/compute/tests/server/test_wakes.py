"""What makes a parked server due: the spec, by the loop's own rule, whether or not anything observes it."""

from dataclasses import replace
from typing import Any

from roadstead.events import SpecMessage
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
