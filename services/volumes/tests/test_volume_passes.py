"""Passes of a volume against the simulated cloud: calls, adoption, lost answers, near misses."""

import pytest
from services.volumes.tests.world import (
    IDENTITY,
    NETWORK,
    OTHER,
    REGION,
    SERVER,
    TENANT,
    VOLUME,
    World,
    region_of,
)

from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead.testing.passbench import view

NAME = f"volume-{VOLUME}"


async def test_inv_132_inv_140_inv_144_a_volume_is_made_and_the_pass_yields(world: World) -> None:
    bench = world.bench(size="0.5Ti")
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    (made,) = world.volumes()
    assert (made["name"], made["size"], made["volume_type_id"]) == (NAME, 512, world.types["standard"])
    assert made["project_id"] == world.project
    world.clock.advance(10)
    assert (await bench.run()).outcome == Done()
    assert world.writes() == ["POST"]


async def test_inv_031_inv_162_calls_are_the_principals_and_none_goes_to_nova(world: World) -> None:
    bench = world.bench()
    await bench.until_settled()
    workload = [c for c in world.calls("volume") if not c.path.endswith("/types")]
    assert {(c.project_id, c.user_id) for c in workload} == {(world.project, world.user)}
    assert world.calls("compute") == []


async def test_inv_152_inv_153_inv_154_metadata_bears_tags_and_our_keys(world: World) -> None:
    bench = world.bench(
        tags=[
            {"name": "billing.example.org/cost-centre", "value": "42"},
            {"name": "region.example.org/volume-id", "value": "mine"},
            {"name": "Bad", "value": "x"},
        ]
    )
    await bench.run()
    (made,) = world.volumes()
    assert made["metadata"] == {
        "billing:cost_centre": "42",
        "identity:organization_id": "acme",
        "identity:project_id": TENANT,
        "region:identity_id": IDENTITY,
        "region:region_id": REGION,
        "region:network_id": NETWORK,
        "region:volume_id": VOLUME,
    }


async def test_inv_141_inv_143_a_volume_of_the_exact_name_is_adopted(world: World) -> None:
    world.make(NAME)
    assert (await world.bench().run()).outcome == Done()
    assert world.writes() == []


@pytest.mark.parametrize("filtering", ["real", "fuzzy"])
async def test_inv_142_inv_258_a_longer_name_is_no_match(world: World, filtering: str) -> None:
    world.cloud.settings.name_filter = filtering
    world.make(f"{NAME}-extra")
    world.make(f"x{NAME}")
    await world.bench().until_settled()
    assert [v["name"] for v in world.volumes()].count(NAME) == 1


async def test_inv_188_two_of_the_name_are_a_consistency_error_and_nothing_is_sent(world: World) -> None:
    world.make(NAME)
    world.make(NAME)
    bench = world.bench()
    for deleting in (False, True):
        bench.deleting = deleting
        outcome = (await bench.run()).outcome
        assert isinstance(outcome, Retry)
        assert outcome.code is Code.CONSISTENCY
    assert world.writes() == []


async def test_inv_143_a_create_whose_answer_was_lost_is_not_repeated(world: World) -> None:
    world.fail("no_answer_after", service="volume", method="POST", path="/volumes")
    bench = world.bench()
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.UNKNOWN
    world.clock.advance(10)
    assert (await bench.run()).outcome == Done()
    assert world.writes() == ["POST"]


async def test_inv_143_a_create_that_never_arrived_is_sent_again_only_after_the_settling_time(
    world: World,
) -> None:
    world.fail("no_answer_before", service="volume", method="POST", path="/volumes")
    bench = world.bench()
    await bench.run()
    sent = len(world.writes())
    asked = bench.asked
    for _ in range(5):
        world.clock.advance(10)
        bench.asked = asked
        outcome = (await bench.run()).outcome
        assert isinstance(outcome, Yield)
        assert outcome.code is Code.SETTLING
    assert len(world.writes()) == sent
    world.clock.advance(20)
    bench.asked = asked
    await bench.run()
    assert len(world.volumes()) == 1


async def test_inv_148_a_broken_volume_parks_for_good_and_can_be_deleted(world: World) -> None:
    world.breaks("volume_create")
    bench = world.bench()
    ending = await bench.until_settled()
    assert ending.outcome == Park(
        Code.VOLUME_ERRORED, "provider volume entered an error state", terminal=True
    )
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.volumes() == []


async def test_inv_156_an_accepted_delete_yields_until_a_list_proves_it(world: World) -> None:
    bench = world.bench()
    await bench.until_settled()
    bench.deleting = True
    assert isinstance((await bench.run()).outcome, Yield)
    assert isinstance((await bench.run()).outcome, Yield)
    world.clock.advance(10)
    assert (await bench.until_settled()).outcome == Done()
    assert world.writes() == ["POST", "DELETE"]


async def test_inv_155_deleting_what_is_not_there_makes_no_write(world: World) -> None:
    bench = world.bench()
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.writes() == []


async def test_a_volume_that_went_while_it_was_deleted_is_looked_for_again(world: World) -> None:
    world.make(NAME)
    bench = world.bench()
    bench.deleting = True
    answer = {"itemNotFound": {"code": 404, "message": f"Volume {NAME} could not be found."}}
    world.fail("status", service="volume", method="DELETE", status=404, answer=answer)
    assert isinstance((await bench.run()).outcome, Yield)
    assert len(world.volumes()) == 1
    assert (await bench.until_settled()).outcome == Done()
    assert world.volumes() == []


async def test_an_attached_volume_waits_for_its_detachment(world: World) -> None:
    row = world.make(NAME)
    row["attachments"].append({"server_id": SERVER, "attachment_id": "a"})
    bench = world.bench()
    bench.deleting = True
    outcome = (await bench.run()).outcome
    assert isinstance(outcome, Yield)
    assert outcome.code is Code.IN_USE
    row["attachments"].clear()
    assert (await bench.until_settled()).outcome == Done()


async def test_ref_003_a_claimed_volume_is_not_even_looked_at(world: World) -> None:
    world.make(NAME)
    bench = world.bench()
    bench.status = {"claimRef": {"kind": "Server", "id": SERVER}}
    bench.deleting = True
    outcome = (await bench.run()).outcome
    assert isinstance(outcome, Yield)
    assert outcome.code is Code.IN_USE
    assert bench.status["claimRef"]["id"] == SERVER
    assert world.calls("volume") == []


async def test_a_quota_is_named_and_tried_again(world: World) -> None:
    world.cloud.settings.quota_volume["volumes"] = 0
    outcome = (await world.bench().run()).outcome
    assert isinstance(outcome, Retry)
    assert outcome.code is Code.QUOTA_EXCEEDED
    assert "VolumeLimitExceeded" not in outcome.message


async def test_inv_172_a_class_that_is_not_offered_parks_and_makes_nothing(world: World) -> None:
    world.region = region_of()
    outcome = (await world.bench().run()).outcome
    assert isinstance(outcome, Park)
    assert outcome.code is Code.NOT_OFFERED
    assert world.types["standard"] in outcome.message
    assert world.writes() == []


async def test_a_list_of_classes_that_fails_creates_nothing(world: World) -> None:
    world.fail("status", service="volume", path="/types", status=503)
    outcome = (await world.bench().run()).outcome
    assert isinstance(outcome, Retry)
    assert outcome.code is Code.UNAVAILABLE
    assert world.writes() == []


async def test_inv_003_in_another_tenants_network_nothing_is_read_or_made(world: World) -> None:
    world.put_network(tenant="stranger", version=2)
    bench = world.bench()
    outcome = (await bench.run()).outcome
    assert isinstance(outcome, Retry)
    assert outcome.code is Code.CONSISTENCY
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert world.calls("volume") == []


async def test_an_identity_other_than_the_networks_is_told(world: World) -> None:
    world.put_network(identity=OTHER, version=2)
    outcome = (await world.bench().run()).outcome
    assert isinstance(outcome, Retry)
    assert "another identity" in outcome.message
    assert world.calls("volume") == []


async def test_ref_002_a_deletion_asks_nothing_of_network_or_identity(world: World) -> None:
    world.make(NAME)
    world.directory.put(
        view("identity", IDENTITY, REGION, TENANT, status={"provisioningStatus": "error"}, resource_version=2)
    )
    bench = world.bench()
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.volumes() == []


async def test_k15_two_quiet_passes_write_nothing_and_read_once(world: World) -> None:
    bench = world.bench()
    await bench.until_settled()
    world.cloud.log.clear()
    for _ in range(2):
        assert (await bench.run()).outcome == Done()
    assert [(c.method, c.path.rsplit("/", 1)[-1]) for c in world.calls("volume")] == [("GET", "detail")] * 2


@pytest.mark.parametrize("deleting", [False, True])
async def test_k6_a_list_without_the_volume_that_was_there_is_compared_with_a_read_by_id(
    world: World, deleting: bool
) -> None:
    """Twice in a row, past the second look: no second volume, and no deletion that ends while it lives on."""
    bench = world.bench()
    assert (await bench.until_settled()).outcome == Done()
    bench.deleting = deleting
    world.cloud.log.clear()
    world.fail("empty_list", service="volume", method="GET", path="/volumes/detail$", times=2)
    for _ in range(2):
        ending = await bench.run()
        assert isinstance(ending.outcome, Retry)
        assert ending.outcome.code is Code.UNAVAILABLE
        assert len(world.calls("volume")) <= 4
        world.clock.advance(10)
    assert world.writes() == []
    assert len(world.volumes()) == 1
    assert (await bench.until_settled()).outcome == Done()
    assert world.writes() == (["DELETE"] if deleting else [])


@pytest.mark.parametrize("how", ["gone", "renamed"])
async def test_k6_a_volume_that_is_gone_or_bears_our_name_no_more_is_made_again(
    world: World, how: str
) -> None:
    bench = world.bench()
    await bench.until_settled()
    (old,) = world.volumes()
    if how == "gone":
        world.cloud.foreign("volume", "delete", old["id"])
    else:
        old["name"] = "somebody's"
    assert (await bench.until_settled()).outcome == Done()
    assert [v["name"] for v in world.volumes() if v["id"] != old["id"]] == [NAME]


async def test_a_settled_volume_asks_nothing_by_id_and_its_note_is_for_nobody_s_eyes(world: World) -> None:
    bench = world.bench()
    await bench.until_settled()
    world.cloud.log.clear()
    await bench.run()
    assert len(world.calls("volume")) == 1
    (made,) = world.volumes()
    assert bench.notes.of(bench.key) == {"volume": made["id"]}
    assert made["id"] not in str(bench.status)
