"""Lists of what a region offers: what is believed, for how long, and at what cost."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from libs.common.tests.cloud.conftest import ManualClock

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.inventory import Keeper, Offered, Reading, Rhythm
from roadstead.cloud.port import Call, CloudError, Verdict
from roadstead.region import RegionSpec

REGION = "r1"
SECRET = {"domain-id": "d", "user-id": "u", "password": "p", "project-id": "own"}
THINGS: list[dict[str, Any]] = [{"id": "a"}, {"id": "b"}]


def spec(**openstack: Any) -> RegionSpec:
    part = {"endpoint": "http://cloud/v3", "serviceAccountSecret": {"name": "x"}, **openstack}
    return RegionSpec.model_validate({"provider": "openstack", "openstack": part})


def ids(raw: Any, region: RegionSpec) -> tuple[str, ...]:
    assert region.openstack is not None
    return tuple(f"{x['id']}/{region.openstack.defaultArchitecture}" for x in raw if x.get("mine", True))


@dataclass
class Place:
    """One list over a cloud that answers what the test says; an error is raised.  changes: regions that were told to have moved."""

    outlives_config: bool = False
    answers: list[Any] = field(default_factory=lambda: [THINGS])
    asked: int = 0
    changes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock, self.keyring, self.spec = ManualClock(), Keyring(), spec()
        self.keyring.put_endpoint(REGION, "http://cloud/v3", None)
        self.keyring.put_region_secret(REGION, SECRET, 1)
        reading = Reading(
            "things",
            "compute",
            "thing.list",
            ids,
            counts=lambda found: found.get("mine", True),
            outlives_config=self.outlives_config,
        )
        self.offered: Offered[tuple[str, ...]] = Offered(self, self.keyring, self.clock, reading, Rhythm())
        self.offered.on_change.append(self.changes.append)
        self.keeper = Keeper((self.offered,), lambda: {REGION: self.spec})

    async def call(self, call: Call) -> Any:
        """The next answer; the last one for ever."""
        self.asked += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return type("Answer", (), {"value": answer})()

    async def get(self, **more: Any) -> tuple[str, ...] | None:
        return await self.offered.get(REGION, self.spec, **more)

    def known(self) -> tuple[str, ...] | None:
        return self.offered.known(REGION, self.spec)


BOTH = ("a/x86_64", "b/x86_64")


async def test_one_read_serves_its_life_and_all_who_ask() -> None:
    place = Place()
    assert set(await asyncio.gather(*(place.get() for _ in range(5)))) == {BOTH}
    place.clock.passed = 3599
    assert await place.get() == BOTH
    assert place.asked == 1
    place.clock.passed = 3600
    assert await place.get() == BOTH
    assert (place.asked, place.changes) == (2, [REGION])


async def test_an_empty_first_answer_is_unknown_until_a_second_look_of_a_later_moment() -> None:
    place = Place(answers=[[]])
    assert [await place.get() for _ in range(10)] == [None] * 10
    assert (place.known(), place.asked, place.changes) == (None, 1, [])
    place.clock.passed = 2
    assert await place.get() == ()
    assert (place.known(), place.asked, place.changes) == ((), 2, [REGION])


async def test_what_is_listed_at_the_second_look_is_the_truth() -> None:
    place = Place(answers=[[], THINGS, []])
    await place.get()
    place.clock.passed = 2
    assert await place.get() == BOTH
    # an empty answer after that is doubted anew
    place.clock.passed = 4000
    assert await place.get() == BOTH
    assert place.asked == 3


async def test_an_empty_refresh_keeps_what_was_known_and_is_looked_at_again_soon() -> None:
    place = Place(answers=[THINGS, [], THINGS])
    await place.keeper.look()
    place.clock.passed = 3600
    await place.keeper.look()
    assert (place.known(), place.offered.doubts(REGION), place.asked) == (BOTH, True, 2)
    place.clock.passed += 1.9
    await place.keeper.look()
    assert place.asked == 2
    place.clock.passed += 0.1
    await place.keeper.look()
    assert (place.known(), place.offered.doubts(REGION), place.asked) == (BOTH, False, 3)
    assert place.changes == [REGION]


async def test_a_cloud_that_has_nothing_is_asked_once_a_minute_and_believed() -> None:
    place = Place(answers=[[]])
    for second in range(3601):
        place.clock.passed = second
        await place.keeper.look()
        assert place.known() == (() if second >= 2 else None)
    assert place.asked == 2 + 59
    place.answers = [THINGS]
    place.clock.passed = 3660
    await place.keeper.look()
    assert (place.known(), place.changes) == (BOTH, [REGION, REGION])


async def test_what_the_filter_let_through_does_not_count() -> None:
    place = Place(answers=[[{"id": "z", "mine": False}]])
    assert await place.get() is None
    place.clock.passed = 2
    assert await place.get() == ()


async def test_a_list_that_lacks_what_is_looked_for_is_read_again_once_a_minute_at_most() -> None:
    place = Place()

    def lacks(known: tuple[str, ...]) -> bool:
        return "c/x86_64" not in known

    for second in range(121):
        place.clock.passed = second
        await place.get(lacks=lacks)
    assert place.asked == 3
    place.answers = [[*THINGS, {"id": "c"}]]
    place.clock.passed = 180
    assert await place.get(lacks=lacks) == (*BOTH, "c/x86_64")
    place.clock.passed = 400
    await place.get(lacks=lacks)
    assert (place.asked, place.changes) == (4, [REGION, REGION])


async def test_the_keeper_reads_early_what_somebody_misses() -> None:
    place = Place()
    await place.keeper.look()
    place.offered.lacking(REGION)
    place.clock.passed = 59
    await place.keeper.look()
    assert place.asked == 1
    place.clock.passed = 60
    await place.keeper.look()
    await place.keeper.look()
    assert place.asked == 2


async def test_a_failed_read_is_an_error_and_keeps_what_was_known() -> None:
    place = Place(answers=[CloudError(Verdict.UNAVAILABLE)])
    with pytest.raises(CloudError):
        await place.get()
    assert place.known() is None
    place.answers = [THINGS, CloudError(Verdict.UNAVAILABLE)]
    await place.get()
    place.clock.passed = 3600
    await place.keeper.look()
    assert place.known() == BOTH


async def test_without_a_credential_or_a_cloud_nothing_is_asked() -> None:
    place = Place()
    with pytest.raises(CloudError) as failed:
        await place.offered.get("elsewhere", place.spec)
    assert failed.value.verdict is Verdict.KEY
    with pytest.raises(CloudError):
        await place.offered.get(REGION, None)
    await place.offered.refresh("elsewhere", place.spec)
    assert (place.offered.known(REGION, None), place.asked) == (None, 0)


@pytest.mark.parametrize("outlives", [False, True])
async def test_inv_026_inv_027_a_list_dies_with_credential_and_configuration(outlives: bool) -> None:
    place = Place(outlives_config=outlives)
    await place.get()
    place.spec = spec(defaultArchitecture="aarch64")
    assert place.known() == (("a/aarch64", "b/aarch64") if outlives else None)
    await place.get()
    assert (place.asked, len(place.changes)) == ((1, 1) if outlives else (2, 2))
    place.keyring.put_region_secret(REGION, SECRET, 2)
    assert place.known() is None


async def test_what_was_doubted_of_one_configuration_says_nothing_of_another() -> None:
    place = Place(answers=[[]])
    await place.get()
    place.clock.passed = 2
    place.spec = spec(defaultArchitecture="aarch64")
    assert await place.get() is None
    assert place.asked == 2
