"""Images: visibility by scope, patches, import, deactivation, deletes, pages, snapshots."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Outcome, Stage, policy, stage
from roadstead.testing.cloudsim.caller import Caller

PATCH = {"content_type": "application/openstack-images-v2.1-json-patch"}


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    return stage(cloud)


def create(caller: Caller, **more: Any) -> dict[str, Any]:
    body = {"name": "img", "disk_format": "raw", "container_format": "bare", "visibility": "private"} | more
    made: dict[str, Any] = caller.call("image", "POST", "/v2/images", body, want=201)
    return made


def uploaded(caller: Caller, **more: Any) -> str:
    image_id = str(create(caller, **more)["id"])
    caller.call("image", "PUT", f"/v2/images/{image_id}/file", b"data", want=204)
    return image_id


def read(caller: Caller, image_id: str) -> dict[str, Any]:
    found: dict[str, Any] = caller.call("image", "GET", f"/v2/images/{image_id}")
    return found


def refusal(caller: Caller, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    response = caller.send("image", method, f"/v2{path}", body, **headers)
    assert response.status >= 400, response.body
    return response.status, response.body["message"].split("<br />")[0]


def patch(caller: Caller, image_id: str, op: str, path: str, value: Any = None) -> Any:
    document = [{"op": op, "path": path, "value": value}]
    return caller.send("image", "PATCH", f"/v2/images/{image_id}", document, **PATCH)


def test_the_seeded_images_are_public_and_two_of_them_are_labelled(world: Stage) -> None:
    rows = world.region.call("image", "GET", "/v2/images?visibility=public")["images"]
    by_name = {row["name"]: row for row in rows}
    assert set(by_name) == {"ubuntu-24.04", "debian-12", "unlabelled"}
    for name in ("ubuntu-24.04", "debian-12"):
        image = by_name[name]
        assert image["status"] == "active"
        assert image["unikorn:os:kernel"] == "linux"
        assert image["unikorn:virtualization"] == "virtualized"
        assert {"unikorn:os:family", "unikorn:os:distro", "unikorn:os:version"} <= set(image)
    assert not [key for key in by_name["unlabelled"] if key.startswith("unikorn")]


def test_public_images_need_the_override_and_the_role_manager(world: Stage) -> None:
    made = create(world.region, visibility="public")
    assert read(world.principal, made["id"])["visibility"] == "public"
    body = {"name": "x", "visibility": "public"}
    expected = (403, "You are not authorized to complete publicize_image action.")
    assert refusal(world.principal, "POST", "/images", body) == expected
    world.cloud.settings.policy_overrides.discard(policy.GLANCE_PUBLICIZE)
    assert refusal(world.region, "POST", "/images", body) == expected


def test_a_private_image_is_404_for_others_until_it_is_published(world: Stage) -> None:
    image_id = uploaded(world.principal)
    assert refusal(world.region, "GET", f"/images/{image_id}")[0] == 404
    assert patch(world.principal, image_id, "replace", "/visibility", "public").status == 403
    assert patch(world.privileged, image_id, "replace", "/visibility", "public").status == 200
    assert read(world.region, image_id)["visibility"] == "public"


def test_an_image_of_another_project_is_deleted_by_its_owner_only(world: Stage) -> None:
    made = create(world.region, visibility="public")
    assert refusal(world.principal, "DELETE", f"/images/{made['id']}")[0] == 403
    world.region.call("image", "DELETE", f"/v2/images/{made['id']}", want=204)
    expected = (404, f"Failed to find image {made['id']} to delete")
    assert refusal(world.region, "DELETE", f"/images/{made['id']}") == expected


def test_an_image_in_use_is_409_and_a_protected_one_403(world: Stage) -> None:
    image_id = uploaded(world.principal)
    world.cloud.glance.foreign("hold", image_id, {})
    assert refusal(world.principal, "DELETE", f"/images/{image_id}")[0] == 409
    world.cloud.glance.foreign("release", image_id, {})
    assert patch(world.principal, image_id, "replace", "/protected", True).status == 200
    assert refusal(world.principal, "DELETE", f"/images/{image_id}")[0] == 403


def test_data_makes_a_queued_image_active_once(world: Stage) -> None:
    image_id = str(create(world.principal)["id"])
    assert read(world.principal, image_id)["status"] == "queued"
    world.principal.call("image", "PUT", f"/v2/images/{image_id}/file", b"data", want=204)
    seen = read(world.principal, image_id)
    assert (seen["status"], seen["size"], seen["checksum"]) == (
        "active",
        4,
        "8d777f385d3dfec8815d20f7496026dc",
    )
    assert refusal(world.principal, "PUT", f"/images/{image_id}/file", b"again")[0] == 409
    assert world.principal.send("image", "GET", f"/v2/images/{image_id}/file").body == b"data"


def test_a_deactivated_image_comes_back(world: Stage) -> None:
    image_id = uploaded(world.principal)
    path = f"/v2/images/{image_id}/actions"
    world.principal.call("image", "POST", f"{path}/deactivate", want=204)
    assert read(world.principal, image_id)["status"] == "deactivated"
    assert refusal(world.principal, "GET", f"/images/{image_id}/file")[0] == 403
    world.principal.call("image", "POST", f"{path}/reactivate", want=204)
    assert read(world.principal, image_id)["status"] == "active"
    queued = create(world.principal)["id"]
    assert refusal(world.principal, "POST", f"/images/{queued}/actions/deactivate")[0] == 403


def importing(world: Stage, image_id: str, uri: str = "https://images.example/a.raw") -> Any:
    body = {"method": {"name": "web-download", "uri": uri}}
    return world.region.send("image", "POST", f"/v2/images/{image_id}/import", body)


def test_an_import_takes_time_and_an_active_image_takes_none(world: Stage) -> None:
    image_id = str(create(world.region)["id"])
    assert importing(world, image_id).status == 202
    assert read(world.region, image_id)["status"] == "importing"
    world.cloud.rest()
    seen = read(world.region, image_id)
    assert (seen["status"], seen["os_glance_importing_to_stores"]) == ("active", "")
    assert importing(world, image_id).status == 409


def test_a_failed_import_is_seen_in_a_property_only_and_poisons_the_image(world: Stage) -> None:
    image_id = str(create(world.region)["id"])
    world.cloud.faults.add_outcome(Outcome("image_import", "img"))
    for _ in range(2):
        assert importing(world, image_id).status == 202
        world.cloud.rest()
        seen = read(world.region, image_id)
        assert (seen["status"], seen["os_glance_failed_import"]) == ("queued", "local")


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("http://127.0.0.1/a", 400),
        ("http://169.254.1.1/a", 400),
        ("http://localhost/a", 400),
        ("https://images.example:22/a", 400),
        ("ftp://images.example/a", 400),
        ("https://images.example:443/a", 202),
        ("http://203.0.113.9/a", 202),
    ],
)
def test_import_sources_are_filtered(world: Stage, uri: str, status: int) -> None:
    response = importing(world, str(create(world.region)["id"]), uri)
    assert response.status == status
    if status == 400:
        assert response.body["message"].startswith(f"URI for web-download does not pass filtering: {uri}")


def test_the_import_filter_can_be_switched_off(world: Stage) -> None:
    world.cloud.settings.change({"image_import_filter": False})
    assert importing(world, str(create(world.region)["id"]), "http://127.0.0.1:8080/a").status == 202


def test_patches_change_properties_and_refuse_what_is_read_only(world: Stage) -> None:
    image_id = str(create(world.principal, **{"unikorn:os:kernel": "linux"})["id"])
    assert patch(world.principal, image_id, "add", "/a~1b", "1").body["a/b"] == "1"
    assert patch(world.principal, image_id, "replace", "/unikorn:os:kernel", "other").status == 200
    assert "unikorn:os:kernel" not in patch(world.principal, image_id, "remove", "/unikorn:os:kernel").body
    assert patch(world.principal, image_id, "remove", "/unikorn:os:kernel").status == 409
    assert patch(world.principal, image_id, "replace", "/status", "active").status == 403
    assert patch(world.principal, image_id, "replace", "/name", "renamed").body["name"] == "renamed"
    response = world.principal.send("image", "PATCH", f"/v2/images/{image_id}", [])
    assert response.status == 415


def test_properties_are_texts(world: Stage) -> None:
    body = {"name": "x", "answer": 42}
    status, text = refusal(world.principal, "POST", "/images", body)
    assert status == 400
    assert "42 is not of type 'string'" in text
    assert refusal(world.principal, "POST", "/images", {"disk_format": "floppy"})[0] == 400
    assert refusal(world.principal, "POST", "/images", {"status": "active"})[0] == 403


@pytest.mark.parametrize(
    ("query", "found"), [("name=img", 1), ("name=im", 0), ("color=red", 1), ("tag=a&tag=b", 1)]
)
def test_lists_filter_by_exact_name_property_and_tags(world: Stage, query: str, found: int) -> None:
    create(world.principal, color="red", tags=["a", "b"])
    create(world.principal, name="img2", color="blue", tags=["a"])
    assert len(world.principal.call("image", "GET", f"/v2/images?{query}")["images"]) == found


def test_pages_follow_next_and_hold_every_image_once(world: Stage) -> None:
    world.cloud.settings.pages.image = 2
    for number in range(4):
        create(world.principal, name=f"i{number}")
        world.cloud.advance(1)
    seen: list[str] = []
    path = "/v2/images"
    while path:
        body = world.principal.call("image", "GET", path)
        assert len(body["images"]) <= 2
        seen += [row["name"] for row in body["images"]]
        path = body.get("next", "")
    assert seen[:4] == ["i3", "i2", "i1", "i0"]
    assert sorted(seen) == sorted({*seen})
    assert len(seen) == 7


def test_a_server_snapshot_is_queued_with_the_base_images_properties_and_then_active(world: Stage) -> None:
    base = uploaded(world.principal, **{"unikorn:os:kernel": "linux"})
    glance = world.cloud.glance
    properties = {"unikorn:identity_id": "i", "image_type": "snapshot"}
    image_id = glance.snapshot_create("snap", world.project_id, world.user_id, properties, 10, base)
    seen = read(world.principal, image_id)
    assert (seen["status"], seen["visibility"], seen["min_disk"]) == ("queued", "private", 10)
    assert (seen["unikorn:os:kernel"], seen["unikorn:identity_id"]) == ("linux", "i")
    assert patch(world.privileged, image_id, "replace", "/visibility", "public").status == 200
    glance.snapshot_finish(image_id, 4096)
    assert (read(world.region, image_id)["status"], read(world.region, image_id)["size"]) == ("active", 4096)
    failed = glance.snapshot_create("bad", world.project_id, world.user_id, {}, 1)
    glance.snapshot_finish(failed, 0, error=True)
    assert refusal(world.principal, "GET", f"/images/{failed}")[0] == 404


def test_images_for_boot_follow_visibility(world: Stage) -> None:
    private = uploaded(world.principal)
    glance = world.cloud.glance
    assert glance.image_for_boot(private, world.project_id) is not None
    assert glance.image_for_boot(private, world.region_project_id) is None
    assert glance.image_for_boot("nope", world.project_id) is None
