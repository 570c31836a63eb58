"""Volume classes: what is exported, what a volume of them must fulfil, and how long the list is kept."""

import asyncio
from typing import Any

import pytest
from services.volumes.tests.world import ENDPOINT, REGION, World, region_of

from roadstead.cloud.port import CloudError, Verdict
from roadstead.region import RegionSpec
from roadstead_volumes.classes import VolumeClass, export, problems, reply

FAST = {"id": "f", "name": "fast", "description": "quick", "is_public": True}
SLOW = {"id": "s", "name": "slow", "is_public": True, "extra_specs": {"capacity": "100"}}
HIDDEN = {"id": "h", "name": "hidden", "is_public": False, "os-volume-type-access:is_public": False}
TYPES: list[dict[str, Any]] = [SLOW, FAST, HIDDEN]


def bare(**section: Any) -> RegionSpec:
    part = {"endpoint": ENDPOINT, "serviceAccountSecret": {"name": "x"}, **section}
    return RegionSpec.model_validate({"provider": "openstack", "openstack": part})


@pytest.mark.parametrize(
    "section",
    [
        pytest.param({}, id="inv_169 no section"),
        pytest.param({"blockStorage": {}}, id="inv_169 no classes"),
        pytest.param({"blockStorage": {"volumeClasses": {}}}, id="inv_170 no selector"),
        pytest.param({"blockStorage": {"volumeClasses": {"selector": {}}}}, id="inv_171 nil ids"),
        pytest.param({"blockStorage": {"volumeClasses": {"selector": {"ids": []}}}}, id="inv_171 empty ids"),
    ],
)
def test_inv_169_inv_170_inv_171_nothing_is_offered_without_a_list(section: dict[str, Any]) -> None:
    assert export(TYPES, bare(**section)) == ()


def test_a_region_of_another_kind_offers_nothing() -> None:
    assert export(TYPES, RegionSpec(provider="simulated")) == ()


def test_inv_172_a_type_outside_the_list_is_absent_in_spite_of_its_metadata() -> None:
    region = region_of("f", metadata=[{"id": "s", "media": "hdd"}])
    assert [c.id for c in export(TYPES, region)] == ["f"]


def test_only_public_types_are_offered_by_either_flag() -> None:
    either = {"id": "e", "name": "either", "os-volume-type-access:is_public": True}
    assert [c.id for c in export([*TYPES, either], region_of("h", "e", "f"))] == ["e", "f"]


def test_inv_173_inv_176_metadata_is_carried_as_it_is() -> None:
    about = {
        "id": "f",
        "media": "nvme",
        "performance": {"maxIOPS": 5000, "maxThroughputMiBps": 200},
        "encrypted": True,
        "minSize": "10Gi",
        "maxSize": "1Ti",
        "supportedFlavors": {"selector": {"ids": ["b", "a"]}},
    }
    (found,) = export(TYPES, region_of("f", metadata=[about]))
    assert found == VolumeClass("f", "fast", "quick", "nvme", 5000, 200, True, 10, 1024, ("b", "a"))
    assert reply([found]) == [
        {
            "id": "f",
            "name": "fast",
            "description": "quick",
            "media": "nvme",
            "performance": {"maxIOPS": 5000, "maxThroughputMiBps": 200},
            "encrypted": True,
            "minSize": "10Gi",
            "maxSize": "1024Gi",
            "supportedFlavors": ["b", "a"],
        }
    ]


def test_inv_174_inv_179_without_metadata_a_class_is_name_and_description() -> None:
    (found,) = export(TYPES, region_of("s"))
    assert found == VolumeClass("s", "slow")
    assert reply([found]) == [{"id": "s", "name": "slow", "encrypted": False}]


@pytest.mark.parametrize("supported", [None, {}, {"selector": {}}, {"selector": {"ids": []}}])
def test_inv_175_no_flavor_list_means_unrestricted(supported: dict[str, Any] | None) -> None:
    (found,) = export(TYPES, region_of("f", metadata=[{"id": "f", "supportedFlavors": supported}]))
    assert found.supported_flavors is None
    assert "supportedFlavors" not in reply([found])[0]


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ({"minSize": "5Gi"}, 5, None),
        ({"maxSize": "5Gi"}, None, 5),
        ({"minSize": "5Gi", "maxSize": "5Gi"}, 5, 5),
    ],
)
def test_inv_177_one_bound_or_two(bounds: dict[str, str], low: int | None, high: int | None) -> None:
    (found,) = export(TYPES, region_of("f", metadata=[{"id": "f", **bounds}]))
    assert (found.min_size, found.max_size) == (low, high)


def test_inv_178_a_class_whose_bound_cannot_be_read_is_not_offered() -> None:
    assert export(TYPES, region_of("f", metadata=[{"id": "f", "maxSize": "1.5Gi"}])) == ()


CLASS = VolumeClass("f", "fast", min_size=10, max_size=20)


@pytest.mark.parametrize(
    ("ident", "gib", "code"),
    [
        ("f", 10, None),
        ("f", 20, None),
        ("f", 9, "SIZE_OUT_OF_BOUNDS"),
        ("f", 21, "SIZE_OUT_OF_BOUNDS"),
        ("fa", 10, "NOT_OFFERED"),
    ],
)
def test_a_volume_is_of_an_offered_class_and_within_its_bounds(
    ident: str, gib: int, code: str | None
) -> None:
    assert [p.code for p in problems([CLASS], ident, gib)] == ([code] if code else [])


# ---------------------------------------------------------------- the cache


def reads(world: World) -> int:
    return len([c for c in world.calls("volume") if c.path.endswith("/types")])


async def test_inv_182_inv_025_one_read_serves_an_hour_and_many_callers(world: World) -> None:
    asks = [world.inventory.offered(REGION, world.region) for _ in range(5)]
    answers = await asyncio.gather(*asks)
    assert [c.name for c in answers[0] or ()] == ["standard"]
    assert set(answers) == {answers[0]}
    world.clock.advance(3599)
    await world.inventory.offered(REGION, world.region)
    assert reads(world) == 1
    world.clock.advance(2)
    await world.inventory.offered(REGION, world.region)
    assert reads(world) == 2


async def test_inv_183_a_changed_section_or_secret_reads_anew(world: World) -> None:
    await world.inventory.offered(REGION, world.region)
    both = region_of(world.types["standard"], world.types["fast"])
    assert [c.name for c in await world.inventory.offered(REGION, both) or ()] == ["fast", "standard"]
    assert reads(world) == 2
    world.keyring.put_region_secret(REGION, world.secret, 2)
    await world.inventory.offered(REGION, both)
    assert reads(world) == 3


async def test_inv_019_the_regions_own_project_is_asked(world: World) -> None:
    await world.inventory.offered(REGION, world.region)
    (call,) = [c for c in world.calls("volume") if c.path.endswith("/types")]
    assert call.project_id == world.secret["project-id"]


async def test_a_failed_read_is_no_empty_list_and_keeps_what_was_known(world: World) -> None:
    world.put_region(world.region)
    assert world.inventory.known(REGION) is None
    world.fail("status", service="volume", path="/types", status=503, times=None)
    with pytest.raises(CloudError) as caught:
        await world.inventory.offered(REGION, world.region)
    assert caught.value.verdict is Verdict.UNAVAILABLE
    await world.inventory.keeper.look()
    assert world.inventory.known(REGION) is None
    world.cloud.faults.clear()
    world.clock.advance(60)
    await world.inventory.keeper.look()
    known = world.inventory.known(REGION)
    assert known is not None
    assert [c.name for c in known] == ["standard"]
    world.fail("status", service="volume", path="/types", status=503, times=None)
    world.clock.advance(3700)
    await world.inventory.keeper.look()
    assert world.inventory.known(REGION) == known


async def test_inv_183_what_was_known_dies_with_the_regions_section(world: World) -> None:
    world.put_region(world.region)
    await world.inventory.keeper.look()
    world.put_region(region_of(), version=2)
    assert world.inventory.known(REGION) is None
    await world.inventory.keeper.look()
    assert world.inventory.known(REGION) == ()


async def test_inv_029_without_credentials_it_is_a_key_error(world: World) -> None:
    with pytest.raises(CloudError) as caught:
        await world.inventory.offered("other", world.region)
    assert caught.value.verdict is Verdict.KEY
