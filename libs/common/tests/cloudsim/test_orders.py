"""Orders left in metadata, image properties, flavors and volume types, as the reference cloud obeys them."""

import pytest

from roadstead.testing.cloudsim import Stage
from roadstead.testing.cloudsim.orders import Orders, parse


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("fail", (0.0, True, None)),
        ("fail:2", (0.0, True, 2)),
        ("slow:1.5", (1.5, False, None)),
        ("slow:3,fail", (3.0, True, None)),
        ("slow:5000", (600.0, False, None)),
    ],
)
def test_an_order_is_read(text: str, meaning: tuple[float, bool, int | None]) -> None:
    assert parse(text) == meaning


@pytest.mark.parametrize("text", ["", "fails", "fail:x", "slow", "slow:nan"])
def test_a_misspelt_order_fails_the_thing(text: str) -> None:
    assert Orders().obey("one", ["boot"], [{"lab:boot": text}]).reason is not None


def test_the_first_place_counts_and_times_are_counted_for_each_thing() -> None:
    orders = Orders()
    places = [{"lab:boot": "fail:1"}, {"lab:spawn": "fail"}]
    assert [orders.obey("one", ["boot", "spawn"], places).reason is None for _ in range(2)] == [False, True]
    assert orders.obey("two", ["boot", "spawn"], places).reason is not None


def test_a_server_told_to_fail_its_boot_never_launches(world: Stage) -> None:
    server = world.boot("web", metadata={"lab:boot": "fail"})
    world.cloud.rest()
    shown = world.server(server)
    assert (shown["status"], shown["OS-SRV-USG:launched_at"]) == ("ERROR", None)
    assert "Exceeded maximum number of retries" in shown["fault"]["message"]


def test_a_rebuild_to_an_image_with_an_order_fails_and_another_image_heals(world: Stage) -> None:
    server, (good, bad) = world.settled(), world.image_ids()
    world.cloud.foreign("image", "set", bad, **{"lab:rebuild": "fail"})
    world.act(server, {"rebuild": {"imageRef": bad}}, 202)
    world.cloud.rest()
    assert world.server(server)["status"] == "ERROR"
    world.act(server, {"rebuild": {"imageRef": good}}, 202)
    world.cloud.rest()
    assert world.server(server)["status"] == "ACTIVE"


def test_a_slow_rebuild_is_still_running_before_its_time(world: Stage) -> None:
    server = world.settled()
    flavor = world.server(server)["flavor"]["original_name"]
    listed = world.admin.call("compute", "GET", "/v2.1/flavors")["flavors"]
    ident = next(f["id"] for f in listed if f["name"] == flavor)
    body = {"extra_specs": {"lab:rebuild": "slow:30"}}
    world.admin.call("compute", "POST", f"/v2.1/flavors/{ident}/os-extra_specs", body)
    slow = world.settled("slow")
    world.act(slow, {"rebuild": {"imageRef": world.image_ids()[1]}}, 202)
    world.cloud.advance(20)
    assert world.server(slow)["status"] == "REBUILD"
    world.cloud.advance(20)
    assert world.server(slow)["status"] == "ACTIVE"


@pytest.mark.parametrize(
    ("order", "status"), [("fail", "error"), ("fail:2", "available"), ("slow:5", "available")]
)
def test_a_volume_is_tried_three_times(world: Stage, order: str, status: str) -> None:
    body = {"volume": {"name": "v", "size": 1, "metadata": {"lab:create": order}}}
    volume = world.principal.call("volume", "POST", "/v3/volumes", body)["volume"]["id"]
    world.cloud.rest()
    assert world.principal.call("volume", "GET", f"/v3/volumes/{volume}")["volume"]["status"] == status


def test_a_volume_told_to_stay_ends_in_error_deleting(world: Stage) -> None:
    body = {"volume": {"name": "v", "size": 1, "metadata": {"lab:delete": "fail"}}}
    volume = world.principal.call("volume", "POST", "/v3/volumes", body)["volume"]["id"]
    world.cloud.rest()
    world.principal.call("volume", "DELETE", f"/v3/volumes/{volume}")
    world.cloud.rest()
    assert (
        world.principal.call("volume", "GET", f"/v3/volumes/{volume}")["volume"]["status"] == "error_deleting"
    )
