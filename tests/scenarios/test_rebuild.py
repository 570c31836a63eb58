"""A server's image: the decision table against a cloud that really rebuilds."""

from tests.world.base import World, observed_error, observed_image

REBUILD = "server.rebuild"


async def test_inv_084_inv_056_inv_127_an_image_edit_is_one_rebuild(world: World) -> None:
    """GIVEN a settled server WHEN its image is edited THEN one rebuild follows, and all but the disk stays."""
    server = await world.settled_server(publicIPAllocation={"enabled": True})
    before = await world.cloud.server(server.id, server.name)
    addresses = {k: world.status(server)[k] for k in ("privateIP", "publicIP", "macAddress")}
    await world.mark(server)
    await world.with_image(server, "B")
    await world.until(server, "provisioned")
    after = await world.cloud.server(server.id, server.name)
    assert before is not None
    assert after is not None
    assert after["image"]["id"] == world.offer.images["B"]
    assert {k: after[k] for k in ("id", "metadata", "key_name", "hostId")} == {
        k: before[k] for k in ("id", "metadata", "key_name", "hostId")
    }
    assert {k: world.status(server)[k] for k in addresses} == addresses
    assert await world.writes(server) == [REBUILD]


async def test_inv_075_inv_123_inv_111_a_rebuild_in_flight_reads_rebuilding(world: World) -> None:
    """GIVEN a rebuild that takes long WHEN passes run meanwhile THEN they wait, stamp Rebuilding, and ask nothing again."""
    slow = f"slow:{world.seconds(40):.0f}"
    server = await world.settled_server(tags={"lab.example.org/rebuild": slow})
    await world.mark(server)
    await world.with_image(server, "B")
    await world.until(
        server, "provisioning", when=lambda _: world.condition(server, "Active")["reason"] == "Rebuilding"
    )
    assert world.condition(server, "Healthy")["status"] == "Unknown"
    await world.until(server, "provisioned")
    assert await world.writes(server) == [REBUILD]
    assert "R3" in await world.rules(server)


async def test_inv_077_inv_090_inv_094_inv_085_a_failed_rebuild_parks_and_an_edit_recovers(
    world: World,
) -> None:
    """GIVEN a rebuild that fails WHEN the next pass reads it THEN the server parks with a remedy; another image heals it."""
    server = await world.settled_server()
    await world.mark(server)
    await world.with_image(server, "no-rebuild")
    await world.until(server, "error", when=lambda d: d["status"]["code"] == "REBUILD_CONVERGED_ERROR")
    assert "choose another image" in world.condition(server, "Available")["message"]
    assert await world.writes(server) == [REBUILD]
    await world.with_image(server, "B")
    await world.until(server, "provisioned")
    assert await world.writes(server) == [REBUILD, REBUILD]
    found = await world.cloud.server(server.id, server.name)
    assert found is not None
    assert (found["status"], found["image"]["id"]) == ("ACTIVE", world.offer.images["B"])


async def test_inv_097_inv_292_a_parked_server_that_recovers_is_provisioned(world: World) -> None:
    """GIVEN a server parked after a failed rebuild WHEN somebody reboots it back to life
    THEN the monitor's next look ends the park without an edit and without a write."""
    server = await world.settled_server()
    await world.with_image(server, "no-rebuild")
    await world.until(server, "error", when=observed_error)
    await world.mark(server)
    await world.foreigner.hard_reboot(server)
    await world.until(server, "provisioned")
    assert await world.writes(server) == []


async def test_inv_106_inv_110_a_foreign_rebuild_onto_another_image_is_reverted(world: World) -> None:
    """GIVEN a settled server WHEN somebody rebuilds it to another image in Nova
    THEN one corrective rebuild follows the monitor's next sweep, and nothing else."""
    server = await world.settled_server(image="A")
    await world.mark(server)
    await world.foreigner.rebuild(server, world.offer.images["B"])
    await world.written(server, REBUILD)
    await world.until(server, "provisioned", when=observed_image(world.offer.images["A"]))
    assert await world.writes(server) == [REBUILD]


async def test_inv_107_a_foreign_rebuild_that_failed_on_another_image_is_rebuilt(world: World) -> None:
    """GIVEN a settled server WHEN somebody's rebuild to another image fails THEN it is rebuilt to the spec's, not parked."""
    server = await world.settled_server(image="A")
    await world.mark(server)
    await world.foreigner.rebuild(server, world.offer.images["no-rebuild"])
    await world.written(server, REBUILD)
    await world.until(server, "provisioned", when=observed_image(world.offer.images["A"]))
    assert await world.writes(server) == [REBUILD]


async def test_inv_108_inv_255_a_foreign_rebuild_of_the_same_image_is_left_alone(world: World) -> None:
    """GIVEN a settled server WHEN somebody rebuilds it to the very image of its spec THEN nothing is written."""
    server = await world.settled_server(image="A")
    await world.mark(server)
    await world.foreigner.rebuild(server, world.offer.images["A"])
    await world.sweep()
    await world.sweep()
    assert world.state(server) == "provisioned"
    assert await world.writes(server) == []


async def test_inv_104_inv_091_a_foreign_rebuild_of_the_wanted_image_that_fails_parks(world: World) -> None:
    """GIVEN a server on an image that cannot be rebuilt WHEN somebody rebuilds it onto that image
    THEN it parks with the same text as after our own failure."""
    server = await world.settled_server(image="no-rebuild")
    await world.mark(server)
    await world.foreigner.rebuild(server, world.offer.images["no-rebuild"])
    await world.until(server, "error", when=lambda d: d["status"]["code"] == "REBUILD_CONVERGED_ERROR")
    assert "choose another image" in world.condition(server, "Available")["message"]
    assert await world.writes(server) == []


async def test_inv_116_inv_119_inv_120_a_deactivated_image_is_retried_until_it_serves(world: World) -> None:
    """GIVEN a rebuild that Nova refuses because the image is deactivated THEN it is tried again, tells nothing of the
    cloud's words, leaves the server running, and goes through once the image is back."""
    image = await world.foreigner.make_image(world.name("image"), await world.image_properties())
    server = await world.settled_server(image="A")
    await world.foreigner.deactivate_image(image)
    await world.mark(server)
    await world.with_image(server, image)
    await world.until(server, "error")
    assert "is not active" not in str(world.document(server)["status"])
    found = await world.cloud.server(server.id, server.name)
    assert found is not None
    assert (found["status"], found["image"]["id"]) == ("ACTIVE", world.offer.images["A"])
    await world.foreigner.deactivate_image(image, again=True)
    await world.until(server, "provisioned")
    writes = await world.writes(server)
    assert writes[-1] == REBUILD
    assert set(writes[:-1]) == {"server.rebuild refused"}


async def test_inv_115_inv_121_inv_295_an_image_that_vanished_parks_and_another_is_submitted(
    world: World,
) -> None:
    """GIVEN an image deleted before the rebuild WHEN Nova says that it cannot find it
    THEN the server parks at once and a good image is submitted next."""
    image = await world.foreigner.make_image(world.name("image"), await world.image_properties())
    server = await world.settled_server(image="A")
    await world.foreigner.delete_image(image)
    await world.mark(server)
    await world.with_image(server, image)
    await world.until(server, "error", when=lambda d: d["status"]["code"] == "REBUILD_IMAGE_NOT_FOUND")
    assert len(await world.writes(server)) == 1
    await world.with_image(server, "B")
    await world.until(server, "provisioned")
    assert (await world.writes(server))[1:] == [REBUILD]


async def test_inv_059_inv_060_inv_081_an_edit_before_the_first_boot_waits_for_it(world: World) -> None:
    """GIVEN a server that takes long to boot WHEN its image is edited meanwhile
    THEN nothing is rebuilt before it has launched, and then once."""
    slow = f"slow:{world.seconds(60):.0f}"
    server = await world.server(await world.home(), tags={"lab.example.org/boot": slow})
    await world.eventually(lambda: world.cloud.server(server.id, server.name), "server in Nova")
    await world.with_image(server, "B")
    await world.until(server, "provisioned", when=observed_image(world.offer.images["B"]))
    writes = await world.writes(server)
    assert writes.count("server.create") == 1
    assert writes.count(REBUILD) == 1
    assert "R4" in await world.rules(server)


async def test_inv_053_inv_055_user_data_alone_changes_nothing_in_the_cloud(world: World) -> None:
    """GIVEN a settled server WHEN only its user data is edited THEN no write follows."""
    server = await world.settled_server()
    await world.mark(server)
    await world.edit(server, userData="I2Nsb3VkLWNvbmZpZwo=")
    await world.until(server, "provisioned")
    assert await world.writes(server) == []


async def test_inv_080_a_server_stopped_by_somebody_stays_provisioned(world: World) -> None:
    """GIVEN a settled server WHEN somebody stops and starts it THEN Active follows, and nothing is written."""
    server = await world.settled_server()
    await world.mark(server)
    await world.foreigner.stop(server)
    await world.until(
        server, "provisioned", when=lambda _: world.condition(server, "Active")["reason"] == "Stopped"
    )
    await world.foreigner.start(server)
    await world.until(
        server, "provisioned", when=lambda _: world.condition(server, "Active")["reason"] == "Running"
    )
    assert await world.writes(server) == []
