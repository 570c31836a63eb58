"""Volumes: states, refusals, quotas, microversions, lists and what Nova asks for."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Outcome, Stage, policy, stage
from roadstead.testing.cloudsim.base import Refused


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    return stage(cloud)


def create(world: Stage, **more: Any) -> dict[str, Any]:
    body = {"volume": {"name": "volume-1", "size": 1} | more}
    made: dict[str, Any] = world.principal.call("volume", "POST", "/v3/volumes", body, want=202)["volume"]
    return made


def settled(world: Stage, **more: Any) -> str:
    made = create(world, **more)
    world.cloud.rest()
    return str(made["id"])


def read(world: Stage, volume_id: str) -> dict[str, Any]:
    found: dict[str, Any] = world.principal.call("volume", "GET", f"/v3/volumes/{volume_id}")["volume"]
    return found


def refusal(world: Stage, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, str, str]:
    response = world.principal.send("volume", method, f"/v3{path}", body, **more)
    assert response.status >= 400, response.body
    ((kind, error),) = response.body.items()
    return response.status, kind, error["message"]


def attached(world: Stage, volume_id: str, server: str = "server-1") -> None:
    attachment = world.cloud.cinder.attach_reserve(volume_id, server, world.project_id)
    world.cloud.cinder.attach_complete(attachment, "/dev/vdb", "compute-1")


def test_a_volume_is_creating_and_then_available(world: Stage) -> None:
    made = create(world, metadata={"region:volume_id": "x"}, volume_type="fast")
    assert (made["status"], made["volume_type"], made["metadata"]) == (
        "creating",
        "fast",
        {"region:volume_id": "x"},
    )
    world.cloud.advance(world.cloud.settings.durations.volume_create)
    assert read(world, made["id"])["status"] == "available"


def test_outcomes_end_a_create_in_error_and_a_delete_in_error_deleting(world: Stage) -> None:
    world.cloud.faults.add_outcome(Outcome("volume_create", "volume-1"))
    volume_id = settled(world)
    assert read(world, volume_id)["status"] == "error"
    world.cloud.faults.add_outcome(Outcome("volume_delete", "volume-1"))
    world.principal.call("volume", "DELETE", f"/v3/volumes/{volume_id}", want=202)
    assert read(world, volume_id)["status"] == "deleting"
    world.cloud.rest()
    assert read(world, volume_id)["status"] == "error_deleting"


def test_a_delete_takes_time_and_the_next_one_is_404(world: Stage) -> None:
    volume_id = settled(world)
    world.principal.call("volume", "DELETE", f"/v3/volumes/{volume_id}", want=202)
    assert refusal(world, "DELETE", f"/volumes/{volume_id}")[0] == 400
    world.cloud.rest()
    expected = (404, "itemNotFound", f"Volume {volume_id} could not be found.")
    assert refusal(world, "DELETE", f"/volumes/{volume_id}") == expected


def test_an_attached_volume_cannot_be_deleted(world: Stage) -> None:
    volume_id = settled(world)
    attached(world, volume_id)
    status, kind, text = refusal(world, "DELETE", f"/volumes/{volume_id}")
    assert (status, kind) == (400, "badRequest")
    assert text.startswith("Invalid volume: Volume status must be available or error or ")


def test_attachment_rows_name_server_and_device_and_hide_the_host(world: Stage) -> None:
    volume_id = settled(world)
    reserved = world.cloud.cinder.attach_reserve(volume_id, "server-1", world.project_id)
    assert (read(world, volume_id)["status"], read(world, volume_id)["attachments"]) == ("reserved", [])
    world.cloud.cinder.attach_complete(reserved, "/dev/vdb", "compute-1")
    seen = read(world, volume_id)
    (row,) = seen["attachments"]
    assert (seen["status"], row["server_id"], row["device"], row["host_name"]) == (
        "in-use",
        "server-1",
        "/dev/vdb",
        None,
    )
    listed = world.principal.call("volume", "GET", "/v3/volumes/detail?name=volume-1")["volumes"]
    assert listed[0]["attachments"] == [row]
    whole = world.admin.call("volume", "GET", f"/v3/volumes/{volume_id}")["volume"]
    assert whole["attachments"][0]["host_name"] == "compute-1"


def test_a_second_attach_is_invalid_and_names_the_holder(world: Stage) -> None:
    volume_id, cinder = settled(world), world.cloud.cinder
    reserved = cinder.attach_reserve(volume_id, "server-1", world.project_id)
    for server in ("server-1", "server-2"):
        with pytest.raises(Refused) as caught:
            cinder.attach_reserve(volume_id, server, world.project_id)
        assert caught.value.reason == "invalid"
        expected = f"Invalid volume: volume {volume_id} is already attached to instances: server-1"
        assert caught.value.message == expected
    cinder.attach_cancel(reserved)
    assert read(world, volume_id)["status"] == "available"
    cinder.attach_reserve(volume_id, "server-2", world.project_id)


def test_attach_is_refused_for_missing_foreign_and_broken_volumes(world: Stage) -> None:
    cinder = world.cloud.cinder
    volume_id = settled(world)
    for found, project in (("nope", world.project_id), (volume_id, "other")):
        with pytest.raises(Refused) as caught:
            cinder.attach_reserve(found, "server-1", project)
        assert caught.value.reason == "not_found"
    cinder.foreign("set", volume_id, {"status": "error"})
    with pytest.raises(Refused, match="can not be created if the volume is in an error state"):
        cinder.attach_reserve(volume_id, "server-1", world.project_id)


def test_a_second_detach_while_the_first_runs_is_refused(world: Stage) -> None:
    volume_id, cinder = settled(world), world.cloud.cinder
    attached(world, volume_id)
    cinder.detach_begin(volume_id, "server-1")
    assert read(world, volume_id)["status"] == "detaching"
    with pytest.raises(Refused, match="Volume status must be 'in-use' and attach_status must be"):
        cinder.detach_begin(volume_id, "server-1")
    cinder.detach_complete(volume_id, "server-1")
    seen = read(world, volume_id)
    assert (seen["status"], seen["attachments"]) == ("available", [])


def test_a_multiattach_volume_takes_two_servers(world: Stage) -> None:
    volume_id = settled(world, multiattach=True)
    attached(world, volume_id, "server-1")
    attached(world, volume_id, "server-2")
    assert {row["server_id"] for row in read(world, volume_id)["attachments"]} == {"server-1", "server-2"}
    world.cloud.cinder.foreign("detach", volume_id, {})
    assert read(world, volume_id)["status"] == "available"


def test_an_unknown_type_is_404(world: Stage) -> None:
    body = {"volume": {"size": 1, "volume_type": "nope"}}
    expected = (404, "itemNotFound", "Volume type with name nope could not be found.")
    assert refusal(world, "POST", "/volumes", body) == expected


def test_quotas_are_413_with_the_measured_words(world: Stage) -> None:
    settled(world)
    path = f"/v3/os-quota-sets/{world.project_id}"
    world.privileged.call("volume", "PUT", path, {"quota_set": {"volumes": 1}}, want=200)
    response = world.principal.send("volume", "POST", "/v3/volumes", {"volume": {"size": 1}})
    assert (response.status, response.headers["Retry-After"]) == (413, "0")
    assert response.body["overLimit"]["retryAfter"] == "0"
    assert response.body["overLimit"]["message"] == (
        "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'."
    )
    world.privileged.call("volume", "PUT", path, {"quota_set": {"volumes": -1, "gigabytes": 1}})
    status, kind, text = refusal(world, "POST", "/volumes", {"volume": {"size": 5}})
    assert (status, kind) == (413, "overLimit")
    assert "Requested 5G, quota is 1G and 1G has been consumed." in text


def test_quota_writes_need_the_override_and_known_keys(world: Stage) -> None:
    path, body = f"/v3/os-quota-sets/{world.project_id}", {"quota_set": {"volumes": -1}}
    bad = world.privileged.send("volume", "PUT", path, {"quota_set": {"no_such": -1}})
    assert (bad.status, bad.body["badRequest"]["message"]) == (400, "Bad key(s) in quota set: no_such")
    assert world.principal.send("volume", "PUT", path, body).status == 403
    world.cloud.settings.policy_overrides.discard(policy.CINDER_QUOTA_UPDATE)
    refused = world.privileged.send("volume", "PUT", path, body)
    assert refused.body["forbidden"]["message"] == (
        "Policy doesn't allow volume_extension:quotas:update to be performed."
    )


@pytest.mark.parametrize(
    ("name", "found"), [("volume-1", 1), ("VOLUME-1", 1), ("volume", 0), ("olume-1", 0), ("volume-1%25", 0)]
)
def test_the_name_filter_is_exact_without_regard_to_case(world: Stage, name: str, found: int) -> None:
    settled(world)
    rows = world.principal.call("volume", "GET", f"/v3/volumes/detail?name={name}")["volumes"]
    assert len(rows) == found


def test_inv_313_the_fuzzy_name_filter_finds_prefixes(world: Stage) -> None:
    settled(world)
    world.cloud.settings.change({"name_filter": "fuzzy"})
    assert len(world.principal.call("volume", "GET", "/v3/volumes/detail?name=vol")["volumes"]) == 1


def test_unknown_filters_are_400_from_the_version_that_checks_them(world: Stage) -> None:
    settled(world)
    assert refusal(world, "GET", "/volumes/detail?name~=v", version="3.34")[0] == 400
    assert world.principal.send("volume", "GET", "/v3/volumes/detail?nope=1", version="3.0").status == 200


def test_pages_go_from_newest_to_oldest_with_a_next_link(world: Stage) -> None:
    for number in range(3):
        settled(world, name=f"v{number}")
        world.cloud.advance(1)
    body = world.principal.call("volume", "GET", "/v3/volumes/detail?limit=2")
    assert [row["name"] for row in body["volumes"]] == ["v2", "v1"]
    (link,) = body["volumes_links"]
    assert link["rel"] == "next"
    body = world.principal.call("volume", "GET", link["href"].split("/volume", 1)[1])
    assert [row["name"] for row in body["volumes"]] == ["v0"]


@pytest.mark.parametrize(("version", "status"), [("3.999", 406), ("2.0", 406), ("x", 400), ("3.59", 200)])
def test_microversions_are_checked(world: Stage, version: str, status: int) -> None:
    response = world.principal.send("volume", "GET", "/v3/volumes", version=version)
    assert response.status == status
    if status == 200:
        assert response.headers["OpenStack-API-Version"] == "volume 3.59"
    if status == 406:
        text = response.body["computeFault"]["message"]
        assert text.endswith("Minimum is 3.0 and maximum is 3.71.")


def test_fields_appear_with_their_microversion(world: Stage) -> None:
    volume_id = settled(world)

    def keys(version: str) -> set[str]:
        response = world.principal.send("volume", "GET", f"/v3/volumes/{volume_id}", version=version)
        return set(response.body["volume"])

    assert "group_id" not in keys("3.12")
    assert "group_id" in keys("3.13")
    assert "volume_type_id" not in keys("3.62")
    assert "volume_type_id" in keys("3.63")


def test_paths_with_and_without_the_project_answer_alike(world: Stage) -> None:
    volume_id = settled(world)
    with_project = world.principal.call("volume", "GET", f"/v3/{world.project_id}/volumes/{volume_id}")
    assert with_project == world.principal.call("volume", "GET", f"/v3/volumes/{volume_id}")


def test_other_projects_do_not_see_the_volume(world: Stage) -> None:
    volume_id = settled(world)
    assert world.region.send("volume", "GET", f"/v3/volumes/{volume_id}").status == 404
    assert world.region.call("volume", "GET", "/v3/volumes")["volumes"] == []
    everywhere = world.admin.call("volume", "GET", "/v3/volumes?all_tenants=1")["volumes"]
    assert [row["id"] for row in everywhere] == [volume_id]


def test_extend_waits_for_the_storage_and_never_shrinks(world: Stage) -> None:
    volume_id = settled(world)
    path = f"/volumes/{volume_id}/action"
    assert refusal(world, "POST", path, {"os-extend": {"new_size": 1}})[0] == 400
    world.principal.call("volume", "POST", f"/v3{path}", {"os-extend": {"new_size": 3}}, want=202)
    assert read(world, volume_id)["status"] == "extending"
    world.cloud.rest()
    seen = read(world, volume_id)
    assert (seen["status"], seen["size"]) == ("available", 3)
    assert refusal(world, "POST", path, {"os-nope": None})[0] == 400


def test_types_show_their_extra_specs_to_a_member(world: Stage) -> None:
    rows = world.principal.call("volume", "GET", "/v3/types")["volume_types"]
    assert {row["name"] for row in rows} == {"standard", "fast"}
    assert all(row["extra_specs"] for row in rows)
    assert refusal(world, "POST", "/types", {"volume_type": {"name": "x"}})[0] == 403
    made = world.admin.call("volume", "POST", "/v3/types", {"volume_type": {"name": "x"}})["volume_type"]
    world.admin.call("volume", "DELETE", f"/v3/types/{made['id']}", want=202)


def test_metadata_is_added_replaced_and_removed_by_key(world: Stage) -> None:
    volume_id = settled(world, metadata={"a": "1"})
    path = f"/v3/volumes/{volume_id}/metadata"
    added = world.principal.call("volume", "POST", path, {"metadata": {"b": "2"}})
    assert added["metadata"] == {"a": "1", "b": "2"}
    world.principal.call("volume", "DELETE", f"{path}/a", want=200)
    assert world.principal.call("volume", "GET", path)["metadata"] == {"b": "2"}
    assert refusal(world, "DELETE", f"/volumes/{volume_id}/metadata/a")[0] == 404
