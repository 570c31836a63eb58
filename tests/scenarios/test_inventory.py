"""What a region offers, told in neutral words."""

from tests.world.base import World


async def test_inv_163_inv_166_flavors(world: World) -> None:
    """GIVEN public flavors WHEN they are listed THEN each is there with CPUs, memory and the default architecture."""
    flavors = {f["name"]: f for f in await world.inventory("flavor")}
    assert set(world.offer.flavors) == set(flavors)
    assert flavors["small"]["id"] == world.offer.flavors["small"]
    assert {f["architecture"] for f in flavors.values()} == {"x86_64"}
    assert [f["cpus"] for f in await world.inventory("flavor")] == sorted(f["cpus"] for f in flavors.values())


async def test_inv_209_inv_213_images(world: World) -> None:
    """GIVEN images with and without the properties WHEN they are listed THEN those with all of them are there, translated."""
    images = {i["id"]: i for i in await world.inventory("image")}
    assert {world.offer.images["A"], world.offer.images["B"]} <= set(images)
    listed = (await world.cloud.hand.ask("image", "GET", "/images", query={"limit": "200"}))["images"]
    bare = {i["id"] for i in listed if not any(k.startswith("unikorn:") for k in i)}
    assert bare
    assert not bare & set(images)
    debian = images[world.offer.images["A"]]
    assert (debian["os"]["distro"], debian["os"]["kernel"]) == ("debian", "linux")


async def test_ref_022_external_networks(world: World) -> None:
    """GIVEN one selected external network WHEN they are listed THEN it is the one that routers use."""
    found = await world.inventory("externalnetwork")
    assert [n["id"] for n in found] == [world.offer.external]


async def test_ref_043_inv_219_what_the_region_does_not_offer_is_refused(world: World) -> None:
    """GIVEN an image without the properties, and an unknown flavor WHEN servers are asked for
    THEN a request is refused at once, and a message parks before any write."""
    home = await world.home()
    listed = (await world.cloud.hand.ask("image", "GET", "/images", query={"limit": "200"}))["images"]
    bare = next(i["id"] for i in listed if not any(k.startswith("unikorn:") for k in i))
    server = await world.server(home, image="A", flavorID="00000000-0000-4000-8000-000000000000")
    await world.until(server, "error")
    assert await world.writes(server) == []
    spec = {**server.spec, "flavorID": world.offer.flavors["small"], "image": {"id": bare}}
    metadata = {"name": world.name("web"), "organizationId": world.organization, **server.metadata}
    reply = await world.request("server", "apply", {"metadata": metadata, "spec": spec})
    assert reply["error"]["status"] in (404, 422), reply
