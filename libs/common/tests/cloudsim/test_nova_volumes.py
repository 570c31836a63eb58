"""Volumes at servers: attach, detach, and boot from a volume, in Nova and in Cinder at once."""

from typing import Any

from roadstead.testing.cloudsim import Outcome, Stage

ABSENT = "11111111-1111-4111-8111-111111111111"


def attach(world: Stage, server_id: str, volume_id: str, want: int = 200) -> Any:
    body = {"volumeAttachment": {"volumeId": volume_id}}
    return world.principal.call(
        "compute", "POST", f"/v2.1/servers/{server_id}/os-volume_attachments", body, want=want
    )


def detach(world: Stage, server_id: str, volume_id: str, want: int = 202) -> Any:
    path = f"/v2.1/servers/{server_id}/os-volume_attachments/{volume_id}"
    return world.principal.call("compute", "DELETE", path, want=want)


def volume(world: Stage, volume_id: str) -> dict[str, Any]:
    path = f"/v3/{world.project_id}/volumes/{volume_id}"
    found: dict[str, Any] = world.principal.call("volume", "GET", path)["volume"]
    return found


def message(body: Any) -> str:
    return str(next(iter(body.values()))["message"])


def test_an_attachment_appears_in_nova_at_once_and_in_cinder_later(world: Stage) -> None:
    server_id, volume_id = world.settled(), world.volume()
    made = attach(world, server_id, volume_id)["volumeAttachment"]
    assert (made["device"], made["serverId"], made["volumeId"]) == ("/dev/vdb", server_id, volume_id)
    assert volume(world, volume_id)["status"] != "in-use"
    world.cloud.rest()
    held = volume(world, volume_id)
    assert held["status"] == "in-use"
    row = held["attachments"][0]
    assert (row["server_id"], row["device"], row["host_name"]) == (server_id, "/dev/vdb", None)
    assert world.server(server_id)["os-extended-volumes:volumes_attached"] == [
        {"id": volume_id, "delete_on_termination": False}
    ]


def test_attaching_what_is_attached_is_400_and_names_the_holder(world: Stage) -> None:
    holder, other, volume_id = world.settled("a"), world.settled("b"), world.volume()
    attach(world, holder, volume_id)
    text = f"Invalid volume: volume {volume_id} is already attached to instances: {holder}"
    for server_id in (holder, other):
        assert message(attach(world, server_id, volume_id, 400)) == text
    world.cloud.rest()
    for server_id in (holder, other):
        assert message(attach(world, server_id, volume_id, 400)) == text


def test_refusals_of_attach(world: Stage) -> None:
    server_id = world.settled()
    assert message(attach(world, server_id, ABSENT, 404)) == f"Volume {ABSENT} could not be found."
    world.cloud.faults.add_outcome(Outcome("volume_create", "bad"))
    broken = world.volume("bad")
    assert volume(world, broken)["status"] == "error"
    assert "error state" in message(attach(world, server_id, broken, 400))
    good = world.volume()
    world.cloud.foreign("compute", "error", server_id)
    assert message(attach(world, server_id, good, 409)) == (
        f"Cannot 'attach_volume' instance {server_id} while it is in vm_state error"
    )


def test_a_second_detach_while_the_first_runs_is_400(world: Stage) -> None:
    server_id, volume_id = world.settled(), world.volume()
    attach(world, server_id, volume_id)
    world.cloud.rest()
    detach(world, server_id, volume_id)
    assert "Volume status must be 'in-use'" in message(detach(world, server_id, volume_id, 400))
    world.cloud.rest()
    assert volume(world, volume_id)["status"] == "available"
    assert volume(world, volume_id)["attachments"] == []
    assert message(detach(world, server_id, volume_id, 404)) == (
        f"Instance {server_id} is not attached to volume {volume_id}"
    )


def test_an_attachment_that_the_host_refuses_leaves_the_volume_available(world: Stage) -> None:
    server_id, volume_id = world.settled(), world.volume()
    world.cloud.faults.add_outcome(Outcome("volume_attach", "data"))
    attach(world, server_id, volume_id)
    world.cloud.rest()
    assert (volume(world, volume_id)["status"], volume(world, volume_id)["attachments"]) == ("available", [])
    path = f"/v2.1/servers/{server_id}/os-volume_attachments"
    assert world.principal.call("compute", "GET", path)["volumeAttachments"] == []


def test_a_deleted_server_lets_its_volumes_go(world: Stage) -> None:
    server_id, volume_id = world.settled(), world.volume()
    attach(world, server_id, volume_id)
    world.cloud.rest()
    world.principal.call("volume", "DELETE", f"/v3/{world.project_id}/volumes/{volume_id}", want=400)
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}")
    world.cloud.rest()
    assert (volume(world, volume_id)["status"], volume(world, volume_id)["attachments"]) == ("available", [])


def test_a_server_booted_from_a_volume_makes_it_and_takes_it_along(world: Stage) -> None:
    device = {
        "boot_index": 0, "uuid": world.image_ids()[0], "source_type": "image", "destination_type": "volume",
        "volume_size": 3, "delete_on_termination": True,
    }  # fmt: skip
    server_id = world.settled("bfv", imageRef="", block_device_mapping_v2=[device])
    server = world.server(server_id)
    assert (server["status"], server["image"]) == ("ACTIVE", "")
    root = server["os-extended-volumes:volumes_attached"][0]["id"]
    assert (volume(world, root)["status"], volume(world, root)["size"]) == ("in-use", 3)
    assert message(detach(world, server_id, root, 400)) == "Cannot detach a root device volume"
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}")
    world.cloud.rest()
    world.principal.call("volume", "GET", f"/v3/{world.project_id}/volumes/{root}", want=404)


def test_somebody_else_detaches_a_volume(world: Stage) -> None:
    server_id, volume_id = world.settled(), world.volume()
    attach(world, server_id, volume_id)
    world.cloud.rest()
    world.cloud.foreign("compute", "detach_volume", server_id, volume_id=volume_id)
    assert volume(world, volume_id)["status"] == "available"
    assert world.server(server_id)["os-extended-volumes:volumes_attached"] == []
