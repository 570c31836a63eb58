"""Rebuild: the compare-and-set, its answers, its phases and its failures."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Outcome, Stage, request, stage


def rebuild(world: Stage, server_id: str, image_id: str, want: int) -> Any:
    return world.act(server_id, {"rebuild": {"imageRef": image_id}}, want)


def state(server: dict[str, Any]) -> tuple[str, str | None]:
    return server["status"], server["OS-EXT-STS:task_state"]


def test_inv_309_image_and_task_change_together_before_the_answer(world: Stage) -> None:
    server_id = world.settled()
    target = world.image_ids()[1]
    before = world.server(server_id)
    assert (before["image"]["id"], before["OS-EXT-STS:task_state"]) == (world.image_ids()[0], None)
    shown = rebuild(world, server_id, target, 202)["server"]
    # The answer and every read after it, without any time passing, show both changes.
    for seen in (shown, world.server(server_id)):
        assert seen["image"]["id"] == target
        assert state(seen) == ("REBUILD", "rebuilding")
    listed = world.principal.call("compute", "GET", "/v2.1/servers/detail")["servers"][0]
    assert (listed["image"]["id"], state(listed)) == (target, ("REBUILD", "rebuilding"))


def test_inv_309_no_reader_ever_sees_the_new_image_without_a_rebuild_task(world: Stage) -> None:
    server_id = world.settled()
    target = world.image_ids()[1]
    launched = world.server(server_id)["OS-SRV-USG:launched_at"]
    rebuild(world, server_id, target, 202)
    seen: list[tuple[str, str | None]] = []
    while not seen or seen[-1] != ("ACTIVE", None):
        server = world.server(server_id)
        assert server["image"]["id"] == target
        assert server["OS-SRV-USG:launched_at"] is not None
        if not seen or seen[-1] != state(server):
            seen.append(state(server))
        world.cloud.advance(0.05)
        assert len(seen) < 10
    assert seen == [
        ("REBUILD", "rebuilding"),
        ("REBUILD", "rebuild_block_device_mapping"),
        ("REBUILD", "rebuild_spawning"),
        ("ACTIVE", None),
    ]
    assert world.server(server_id)["OS-SRV-USG:launched_at"] > launched


def test_inv_310_of_two_rebuilds_at_the_same_time_one_is_409(world: Stage) -> None:
    server_id = world.settled()
    first, second = world.image_ids()
    rebuild(world, server_id, second, 202)
    refused = rebuild(world, server_id, first, 409)
    assert refused["conflictingRequest"]["message"] == (
        f"Cannot 'rebuild' instance {server_id} while it is in task_state rebuilding"
    )
    assert world.server(server_id)["image"]["id"] == second


@pytest.mark.parametrize("how", ["absent", "deleted", "no uuid", "deactivated", "queued", "too large"])
def test_inv_311_causes_of_a_400_read_differently(world: Stage, how: str) -> None:
    server_id = world.settled()
    image = world.principal.call(
        "image", "POST", "/v2/images", {"name": "own", "disk_format": "raw", "container_format": "bare"}
        | ({"min_disk": 500} if how == "too large" else {}),
    )["id"]  # fmt: skip
    if how != "queued":
        world.principal.call(
            "image", "PUT", f"/v2/images/{image}/file", b"o" * 4096, content_type="application/octet-stream"
        )
    if how == "deleted":
        world.principal.call("image", "DELETE", f"/v2/images/{image}")
    if how == "deactivated":
        world.principal.call("image", "POST", f"/v2/images/{image}/actions/deactivate")
    ref = {"absent": "11111111-1111-4111-8111-111111111111", "no uuid": "nope"}.get(how, image)
    message = rebuild(world, server_id, ref, 400)["badRequest"]["message"]
    expected = {
        "absent": "Cannot find image for rebuild",
        "deleted": "Cannot find image for rebuild",
        "no uuid": "Invalid input for field/attribute imageRef. Value: nope. 'nope' is not a 'uuid'",
        "deactivated": f"Image {image} is not active.",
        "queued": f"Image {image} is not active.",
        "too large": "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is "
        f"{20 * 2**30} bytes, minimum size is {500 * 2**30} bytes.",
    }
    assert message == expected[how]
    assert state(world.server(server_id)) == ("ACTIVE", None)


def test_inv_312_a_list_may_leave_out_the_fault_that_a_read_shows(world: Stage) -> None:
    server_id = world.settled()
    world.cloud.faults.add_outcome(Outcome("server_rebuild", "web", message="disk gone"))
    rebuild(world, server_id, world.image_ids()[1], 202)
    world.cloud.rest()
    listed = world.principal.call("compute", "GET", "/v2.1/servers/detail")["servers"][0]
    assert listed["fault"]["message"] == "disk gone"
    assert "details" not in listed["fault"]
    world.cloud.settings.list_shows_fault = False
    listed = world.principal.call("compute", "GET", "/v2.1/servers/detail")["servers"][0]
    assert "fault" not in listed
    assert world.server(server_id)["fault"]["code"] == 500
    assert "details" in world.admin.call("compute", "GET", f"/v2.1/servers/{server_id}")["server"]["fault"]


@pytest.mark.parametrize("stale", [True, False])
def test_inv_312_a_recovered_server_keeps_a_stale_fault_where_the_cloud_does(
    world: Stage, stale: bool
) -> None:
    world.cloud.settings.stale_fault = stale
    server_id = world.settled()
    world.cloud.faults.add_outcome(Outcome("server_rebuild", "web"))
    rebuild(world, server_id, world.image_ids()[1], 202)
    world.cloud.rest()
    rebuild(world, server_id, world.image_ids()[1], 202)
    world.cloud.rest()
    server = world.server(server_id)
    assert server["status"] == "ACTIVE"
    assert ("fault" in server) is stale


def test_a_failed_rebuild_is_error_on_the_target_image_and_keeps_launched_at(world: Stage) -> None:
    server_id = world.settled()
    launched = world.server(server_id)["OS-SRV-USG:launched_at"]
    world.cloud.faults.add_outcome(Outcome("server_rebuild", "^web$"))
    rebuild(world, server_id, world.image_ids()[1], 202)
    world.cloud.rest()
    server = world.server(server_id)
    assert state(server) == ("ERROR", None)
    assert server["image"]["id"] == world.image_ids()[1]
    assert server["OS-SRV-USG:launched_at"] == launched
    rebuild(world, server_id, world.image_ids()[0], 202)
    world.cloud.rest()
    assert state(world.server(server_id)) == ("ACTIVE", None)
    assert "fault" not in world.server(server_id)


def test_a_server_before_its_first_boot_cannot_be_rebuilt(world: Stage) -> None:
    server_id = world.boot()
    message = rebuild(world, server_id, world.image_ids()[1], 409)["conflictingRequest"]["message"]
    assert message == f"Cannot 'rebuild' instance {server_id} while it is in vm_state building"


def test_a_server_that_never_booted_cannot_be_rebuilt_out_of_error(world: Stage) -> None:
    world.cloud.faults.add_outcome(Outcome("server_build", "web"))
    server_id = world.settled()
    server = world.server(server_id)
    assert (state(server), server["OS-SRV-USG:launched_at"]) == (("ERROR", None), None)
    assert server["fault"]["message"].startswith("Exceeded maximum number of retries.")
    message = rebuild(world, server_id, world.image_ids()[1], 409)["conflictingRequest"]["message"]
    assert message == f"Instance {server_id} is in an invalid state for 'rebuild'"


def test_a_stopped_server_is_stopped_after_its_rebuild(world: Stage) -> None:
    server_id = world.settled()
    world.act(server_id, {"os-stop": None})
    world.cloud.rest()
    rebuild(world, server_id, world.image_ids()[1], 202)
    assert world.server(server_id)["status"] == "REBUILD"
    world.cloud.rest()
    assert (world.server(server_id)["status"], world.server(server_id)["OS-EXT-STS:power_state"]) == (
        "SHUTOFF",
        4,
    )


def test_a_server_deleted_while_it_is_rebuilt_stays_deleted(world: Stage) -> None:
    server_id = world.settled()
    rebuild(world, server_id, world.image_ids()[1], 202)
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}", want=204)
    assert world.server(server_id)["OS-EXT-STS:task_state"] == "deleting"
    world.cloud.rest()
    world.principal.call("compute", "GET", f"/v2.1/servers/{server_id}", want=404)


@pytest.mark.parametrize("fails", [True, False])
def test_a_foreign_rebuild_is_seen_like_any_other(world: Stage, fails: bool) -> None:
    server_id = world.settled()
    target = world.image_ids()[1]
    world.cloud.foreign("compute", "rebuild", server_id, image=target, fail=fails)
    assert state(world.server(server_id)) == ("REBUILD", "rebuilding")
    assert world.server(server_id)["image"]["id"] == target
    world.cloud.rest()
    assert world.server(server_id)["status"] == ("ERROR" if fails else "ACTIVE")
    assert not world.cloud.log.calls(path="action")


def test_switches_hide_task_state_and_launched_at_from_all_but_the_administrator(world: Stage) -> None:
    server_id = world.settled()
    world.cloud.settings.hide_task_state = world.cloud.settings.hide_launched_at = True
    hidden = {"OS-EXT-STS:task_state", "OS-SRV-USG:launched_at"}
    assert not hidden & set(world.server(server_id))
    assert hidden <= set(world.admin.call("compute", "GET", f"/v2.1/servers/{server_id}")["server"])


def test_the_same_seed_and_calls_give_the_same_answers() -> None:
    def history() -> list[Any]:
        cloud = Cloud(seed=7)
        cloud.clock.freeze()
        world = stage(cloud)
        server_id = world.boot()
        return [server_id, world.project_id, cloud.handle(request("GET", "/identity")).body]

    assert history() == history()
