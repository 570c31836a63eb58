"""The inventory: what is read when, what is known meanwhile, and what requests are answered."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Call, CloudError, Verdict
from roadstead.reconcile.offers import Regions
from roadstead.reconcile.views import Directory
from roadstead.testing.cloudsim.cloud import Cloud as Simulator
from roadstead.testing.cloudsim.faults import Fault
from roadstead.testing.cloudsim.keystone_store import Grant
from roadstead.testing.passbench import StandingClock, engine, view
from roadstead_compute.inventory import ImagesOff, Inventory
from roadstead_compute.requests import list_flavors, list_images

REGION = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
ENDPOINT = "http://cloud.invalid/identity/v3"


@dataclass
class World:
    """A simulated cloud that one or two regions use, and the inventory over it."""

    cache_images: bool = True
    clock: StandingClock = field(default_factory=StandingClock)

    def __post_init__(self) -> None:
        self.cloud = Simulator(self.clock)
        self.keyring = Keyring()
        self.directory = Directory()
        store = self.cloud.keystone.store
        domain = store.new_domain("roadstead")["id"]
        self.project: str = store.new_project("provider", domain)["id"]
        user = store.new_user("provider", domain, "word")["id"]
        role = store.role_named("member")
        assert role is not None
        store.grants.add(Grant(user, "project", self.project, role["id"]))
        self.secret = {"domain-id": domain, "user-id": user, "password": "word", "project-id": self.project}
        self.port = engine(self.cloud, self.keyring, self.clock)
        self.inventory = Inventory(
            self.port, self.keyring, self.clock, Regions(self.directory), cache_images=self.cache_images
        )
        self.versions = iter(range(1, 100))
        self.register()

    def register(self, region: str = REGION, endpoint: str = ENDPOINT, **openstack: Any) -> None:
        """Region and credential become known, or change."""
        part = {"endpoint": endpoint, "serviceAccountSecret": {"name": "x"}, **openstack}
        spec = {"provider": "openstack", "openstack": part}
        self.directory.put(
            view("region", region, region, "_", spec=spec, resource_version=next(self.versions))
        )
        self.keyring.put_endpoint(region, endpoint, None)
        self.keyring.put_region_secret(region, self.secret, 1)

    def through(self, cloud: Any) -> None:
        """All reads go this way from now on."""
        for offered in self.inventory.lists:
            offered.cloud = cloud

    def image(self, name: str) -> str:
        return next(str(row["id"]) for row in self.cloud.glance.images if row["name"] == name)

    def flavor(self, name: str) -> str:
        return next(str(row["id"]) for row in self.cloud.nova.flavors.values() if row["name"] == name)

    def reads(self, noun: str) -> int:
        return len([c for c in self.cloud.log if f"/{noun}" in c.path])

    def fail(self, service: str, kind: str = "status", **more: Any) -> None:
        self.cloud.faults.add(Fault(kind, service=service, times=None, **more))


@pytest.fixture
def world() -> World:
    return World()


async def test_nothing_is_known_before_the_first_read(world: World) -> None:
    assert not world.inventory.loaded(REGION)
    assert world.inventory.flavor(REGION, world.flavor("small")) is None
    assert world.inventory.image(REGION, world.image("ubuntu-24.04")) is None
    assert not world.inventory.loaded("unheard-of")


async def test_inv_013_inv_217_after_one_round_everything_is_answered_from_memory(world: World) -> None:
    await world.inventory.keeper.look()
    before = len(world.cloud.log)
    assert world.inventory.loaded(REGION)
    flavor = world.inventory.flavor(REGION, world.flavor("small"))
    image = world.inventory.image(REGION, world.image("ubuntu-24.04"))
    assert flavor is not None
    assert (flavor.name, flavor.architecture) == ("small", "x86_64")
    assert image is not None
    assert (image.status, image.virtualization, image.os.distro) == ("ready", "virtualized", "ubuntu")
    assert world.inventory.image(REGION, world.image("unlabelled")) is None
    assert [i.name for i in await world.inventory.list_images(REGION) or ()] == ["ubuntu-24.04", "debian-12"]
    assert len(world.cloud.log) == before


async def test_inv_019_the_regions_own_project_is_asked(world: World) -> None:
    await world.inventory.keeper.look()
    asked = [c for c in world.cloud.log if c.service in ("compute", "image")]
    assert {c.project_id for c in asked} == {world.project}


async def test_images_are_read_every_minute_and_flavors_every_hour(world: World) -> None:
    for _ in range(3):
        await world.inventory.keeper.look()
        world.clock.advance(59)
        await world.inventory.keeper.look()
        world.clock.advance(1)
    assert (world.reads("images"), world.reads("flavors")) == (3, 1)
    world.clock.advance(3600)
    await world.inventory.keeper.look()
    assert world.reads("flavors") == 2


async def test_inv_217_a_slow_read_holds_no_reader_up(world: World) -> None:
    """The refresh is under way, and whoever asks meanwhile reads what was known."""
    await world.inventory.keeper.look()
    gate = asyncio.Event()

    class Slow:
        async def call(self, call: Call) -> Any:
            await gate.wait()
            return await world.port.call(call)

    world.through(Slow())
    world.clock.advance(4000)
    refresh = asyncio.create_task(world.inventory.keeper.look())
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        assert len(await world.inventory.list_images(REGION) or ()) == 2
        assert await world.inventory.list_flavors(REGION)
    assert world.inventory.loaded(REGION)
    gate.set()
    await refresh


async def test_a_failed_refresh_keeps_what_was_known(world: World) -> None:
    await world.inventory.keeper.look()
    world.fail("image", status=503)
    world.fail("compute", status=503)
    world.clock.advance(4000)
    await world.inventory.keeper.look()
    assert world.inventory.loaded(REGION)
    assert len(await world.inventory.list_images(REGION) or ()) == 2


async def test_ref_063_a_region_that_is_down_holds_up_no_other(world: World) -> None:
    world.register(OTHER, "http://nowhere.invalid/identity/v3")

    class Half:
        async def call(self, call: Call) -> Any:
            if call.scope.region == REGION:
                raise CloudError(Verdict.UNAVAILABLE, call)
            return await world.port.call(call)

    world.through(Half())
    await world.inventory.keeper.look()
    assert not world.inventory.loaded(REGION)
    assert world.inventory.loaded(OTHER)


async def test_inv_026_a_changed_section_drops_the_flavors_until_they_are_read_anew(world: World) -> None:
    await world.inventory.keeper.look()
    world.register(compute={"flavors": {"selector": {"ids": [world.flavor("small")]}}})
    assert not world.inventory.loaded(REGION)
    await world.inventory.keeper.look()
    assert [f.name for f in await world.inventory.list_flavors(REGION) or ()] == ["small"]
    assert world.reads("flavors") == 2


async def test_inv_027_a_changed_credential_drops_the_flavors_as_well(world: World) -> None:
    await world.inventory.keeper.look()
    world.keyring.put_region_secret(REGION, world.secret, 2)
    assert not world.inventory.loaded(REGION)
    await world.inventory.keeper.look()
    assert world.inventory.loaded(REGION)


async def test_inv_215_a_changed_default_shows_at_once_in_the_images(world: World) -> None:
    await world.inventory.keeper.look()
    world.register(defaultArchitecture="aarch64")
    found = world.inventory.image(REGION, world.image("ubuntu-24.04"))
    assert found is not None
    assert found.architecture == "aarch64"
    assert world.reads("images") == 1


async def test_a_region_that_went_offers_nothing(world: World) -> None:
    await world.inventory.keeper.look()
    held = world.directory.get("region", REGION)
    assert held is not None
    world.directory.put(replace(held, gone=True, resource_version=99))
    assert not world.inventory.loaded(REGION)
    assert world.inventory.image(REGION, world.image("ubuntu-24.04")) is None


async def test_the_first_list_of_a_region_reads_once_for_all_who_ask(world: World) -> None:
    answers = await asyncio.gather(*(world.inventory.list_images(REGION) for _ in range(4)))
    assert {len(a or ()) for a in answers} == {2}
    assert world.reads("images") == 1


async def until_loaded(world: World, region: str) -> None:
    for _ in range(1000):
        if world.inventory.loaded(region):
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{region} was not read")


async def test_a_stir_ends_the_pause(world: World) -> None:
    job = asyncio.create_task(world.inventory.keeper.keep_warm())
    await until_loaded(world, REGION)
    world.register(OTHER)
    world.inventory.keeper.stir()
    await until_loaded(world, OTHER)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job


async def test_inv_218_with_the_cache_off_nothing_goes_to_glance() -> None:
    world = World(cache_images=False)
    await world.inventory.keeper.look()
    assert world.inventory.loaded(REGION)
    assert world.inventory.image(REGION, world.image("ubuntu-24.04")) is None
    with pytest.raises(ImagesOff):
        await world.inventory.list_images(REGION)
    reply = await list_images(world.inventory, REGION, {})
    assert (reply["error"]["code"], reply["error"]["status"]) == ("IMAGE_CACHE_DISABLED", 404)
    assert "ROADSTEAD_IMAGE_CACHE" in reply["error"]["message"]
    assert world.reads("images") == 0


async def test_a_list_is_a_neutral_reply(world: World) -> None:
    flavors = await list_flavors(world.inventory, REGION)
    assert "small" in [f["name"] for f in flavors["items"]]
    images = await list_images(world.inventory, REGION, {"organizationId": "acme", "status": "ready"})
    assert [i["name"] for i in images["items"]] == ["debian-12", "ubuntu-24.04"]
    assert (await list_images(world.inventory, REGION, {"scope": "owned"}))["items"] == []


@pytest.mark.parametrize("payload", [{"scope": "all"}, {"status": "active"}, {"organizationId": 3}])
async def test_a_filter_that_cannot_be_is_told(world: World, payload: dict[str, Any]) -> None:
    reply = await list_images(world.inventory, REGION, payload)
    assert (reply["error"]["code"], reply["error"]["status"]) == ("BAD_FILTER", 400)


async def test_a_cloud_that_does_not_answer_is_told_in_our_words(world: World) -> None:
    world.fail("image", status=500)
    reply = await list_images(world.inventory, REGION, {})
    assert reply["error"]["code"] == "UNAVAILABLE"
    assert reply["error"]["message"] == "the image service is not available; it is tried again"
