"""Quiet: what is as it should be is only read."""

from tests.world.base import World


async def test_two_quiet_passes_of_every_kind_write_nothing(world: World) -> None:
    """GIVEN every kind settled WHEN each is passed over twice THEN no write reaches the cloud."""
    home = await world.build_home()
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    volume = await world.volume(home)
    listener = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"healthCheck": {}}}
    balancer = await world.apply(
        "loadbalancer", world.name("lb"), {"listeners": [listener], "publicIP": True}, **ids
    )
    server = await world.server(home, volumes=[{"id": volume.id}], publicIPAllocation={"enabled": True})
    everything = (home.identity, home.network, home.group, volume, balancer, server)
    for ref in everything:
        await world.until(ref, "provisioned", within=600)
    await world.mark(*everything)
    for _ in range(2):
        for ref in everything:
            await world.quiet_pass(ref)
    assert {ref.kind: await world.writes(ref) for ref in everything} == {ref.kind: [] for ref in everything}


async def test_inv_095_inv_102_a_settled_server_is_not_passed_over_by_sweeps(world: World) -> None:
    """GIVEN a settled server WHEN the monitor sweeps and sees nothing new THEN no pass runs and status stays as it is."""
    server = await world.settled_server()
    await world.sweep()
    before = (world.document(server)["resourceVersion"], len(await world.history(server)))
    await world.sweep()
    assert (world.document(server)["resourceVersion"], len(await world.history(server))) == before
