"""Volumes and their attachments: claim, attach, detach, release."""

from tests.world.base import Document, World


def row_of(document: Document, volume: str) -> Document | None:
    return next((r for r in document["status"].get("volumes", ()) if r["id"] == volume), None)


async def test_inv_195_inv_199_inv_207_attach_and_detach(world: World) -> None:
    """GIVEN a server and a volume WHEN the volume is put into the server's spec and taken out again
    THEN one attach and one detach follow, and the claim comes and goes with them."""
    home = await world.home()
    volume = await world.volume(home)
    server = await world.settled_server(home)
    await world.until(volume, "provisioned")
    await world.mark(server, volume)
    edited = await world.edit(server, volumes=[{"id": volume.id}])
    await world.attached(edited, volume)
    assert await world.writes(server) == ["attachment.create"]
    await world.until(
        volume, "provisioned", when=lambda d: (d["status"].get("claimRef") or {}).get("id") == server.id
    )
    await world.edit(edited, volumes=[])
    await world.until(server, "provisioned", when=lambda d: row_of(d, volume.id) is None)
    assert await world.writes(server) == ["attachment.create", "attachment.delete"]
    await world.until(volume, "provisioned", when=lambda d: "claimRef" not in d["status"])
    cloud = await world.cloud.volume(volume.id)
    assert cloud is not None
    assert cloud["status"] == "available"
    assert await world.writes(volume) == []


async def test_ref_051_a_server_made_with_a_volume_gives_it_back_when_it_goes(world: World) -> None:
    """GIVEN a server applied together with its volume WHEN it is deleted THEN the volume is detached first and stays."""
    home = await world.home()
    volume = await world.volume(home)
    server = await world.server(home, volumes=[{"id": volume.id}])
    await world.attached(server, volume)
    await world.mark(server)
    await world.delete(server)
    await world.until(server, "gone")
    assert await world.writes(server) == ["attachment.delete", "server.delete", "port.delete"]
    await world.until(volume, "provisioned", when=lambda d: "claimRef" not in d["status"])
    cloud = await world.cloud.volume(volume.id)
    assert cloud is not None
    assert cloud["status"] == "available"


async def test_inv_160_a_claimed_volume_waits_with_its_deletion(world: World) -> None:
    """GIVEN an attached volume WHEN it is deleted THEN it waits as in use; taken off the server it goes."""
    home = await world.home()
    volume = await world.volume(home)
    server = await world.server(home, volumes=[{"id": volume.id}])
    await world.attached(server, volume)
    await world.delete(volume)
    await world.until(volume, "deprovisioning", when=lambda d: d["status"].get("code") == "IN_USE")
    assert await world.cloud.volume(volume.id) is not None
    await world.edit(server, volumes=[])
    await world.until(volume, "gone", within=900)
    await world.until(server, "provisioned")


async def test_inv_193_a_volume_of_another_server_is_a_conflict(world: World) -> None:
    """GIVEN a volume on one server WHEN another one wants it too THEN that one's row is Errored and nothing is attached."""
    home = await world.home()
    volume = await world.volume(home)
    first = await world.server(home, volumes=[{"id": volume.id}])
    await world.attached(first, volume)
    second = await world.server(home, volumes=[{"id": volume.id}])
    await world.until(
        second, when=lambda d: (row_of(d, volume.id) or {}).get("provisioningStatus") == "Errored", within=600
    )
    assert "attachment.create" not in await world.writes(second)
    found = await world.cloud.server(first.id, first.name)
    assert found is not None
    assert len(await world.cloud.attachments(found["id"])) == 1


async def test_inv_148_inv_150_inv_151_a_volume_in_error_is_terminal_and_can_be_deleted(world: World) -> None:
    """GIVEN storage that fails WHEN a volume is applied THEN it parks with the one fixed text, and a delete still works."""
    tags = [{"name": "lab.example.org/create", "value": "fail"}]
    volume = await world.volume(await world.home(), tags=tags)
    await world.until(volume, "error", within=600)
    assert world.condition(volume, "Available")["message"] == "provider volume entered an error state"
    assert world.status(volume)["code"] == "VOLUME_ERRORED"
    await world.mark(volume)
    await world.quiet_pass(volume)
    assert await world.writes(volume) == []
    await world.delete(volume)
    await world.until(volume, "gone")


async def test_inv_157_inv_156_inv_155_volume_delete(world: World) -> None:
    """GIVEN a volume WHEN it is deleted THEN one delete is sent, and it is gone when Cinder shows it no more."""
    volume = await world.volume(await world.home())
    await world.until(volume, "provisioned")
    await world.mark(volume)
    await world.delete(volume)
    await world.until(volume, "gone")
    assert await world.writes(volume) == ["volume.delete"]
    assert await world.cloud.volume(volume.id) is None


async def test_inv_172_a_class_that_is_not_offered_parks_without_a_call(world: World) -> None:
    """GIVEN a class that no selector lists WHEN a volume of it is applied THEN it parks and Cinder is not asked to make it."""
    home = await world.home()
    spec = {
        "networkID": home.network.id,
        "volumeClassID": "00000000-0000-4000-8000-000000000000",
        "size": "1Gi",
    }
    volume = await world.apply(
        "volume", world.name("disk"), spec, networkId=home.network.id, identityId=home.identity.id
    )
    await world.until(volume, "error")
    assert world.status(volume)["code"] == "NOT_OFFERED"
    assert await world.writes(volume) == []


async def test_inv_173_inv_174_classes_are_listed_for_tenants(world: World) -> None:
    """GIVEN a region that selects two volume types WHEN classes are listed THEN those two are there, by name."""
    assert [c["name"] for c in await world.inventory("volumeclass")] == ["fast", "standard"]
