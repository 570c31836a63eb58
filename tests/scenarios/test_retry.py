"""A server that never boots: removed and made again, a bounded number of times."""

from tests.world.base import World


async def test_inv_300_inv_301_inv_299_three_creates_and_no_more(world: World) -> None:
    """GIVEN an image that never boots WHEN a server is applied THEN it is created three times and parks for good."""
    server = await world.server(await world.home(), image="no-boot", publicIPAllocation={"enabled": True})
    await world.until(server, "error", when=lambda d: d["status"]["code"] == "CREATE_EXHAUSTED", within=900)
    writes = await world.writes(server)
    assert writes.count("server.create") == 3
    assert writes.count("server.delete") == 2
    assert "after 3 attempts" in world.condition(server, "Available")["message"]
    await world.sweep()
    await world.quiet_pass(server)
    assert (await world.writes(server)).count("server.create") == 3
    assert world.status(server)["providerCreateFailures"] == 3


async def test_inv_304_inv_062_an_edit_before_exhaustion_is_what_is_created(world: World) -> None:
    """GIVEN a server whose first boot failed WHEN its image is edited before the bound THEN the next create has the new one."""
    server = await world.server(await world.home(), image="no-boot")
    await world.until(server, when=lambda d: d["status"].get("providerCreateFailures", 0) >= 1)
    await world.with_image(server, "A")
    await world.until(server, "provisioned", within=600)
    writes = await world.writes(server)
    assert 2 <= writes.count("server.create") <= 3
    assert "server.rebuild" not in writes
    found = await world.cloud.server(server.id, server.name)
    assert found is not None
    assert found["image"]["id"] == world.offer.images["A"]


async def test_inv_302_inv_234_a_server_that_booted_is_never_made_anew_by_the_retry(world: World) -> None:
    """GIVEN a server that booted once WHEN it turns to ERROR THEN it is not deleted."""
    server = await world.settled_server()
    await world.with_image(server, "no-rebuild")
    await world.until(server, "error")
    await world.mark(server)
    await world.sweep()
    await world.quiet_pass(server)
    assert await world.writes(server) == []


async def test_inv_301_a_terminal_server_can_be_deleted(world: World) -> None:
    """GIVEN an exhausted server WHEN it is deleted THEN nothing of it stays."""
    server = await world.server(await world.home(), image="no-boot")
    await world.until(server, "error", when=lambda d: d["status"]["code"] == "CREATE_EXHAUSTED", within=900)
    await world.delete(server)
    await world.until(server, "gone")
    assert await world.cloud.named_after("server", server.id, server.name) == []
