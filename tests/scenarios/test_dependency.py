"""Dependencies: everything may be applied at once, in any order; each starts when what it needs is ready."""

from tests.world.base import Home, World


async def test_ref_007_inv_314_everything_at_once_in_the_wrong_order(world: World) -> None:
    """GIVEN nothing WHEN load balancer, server, volume, group, network and identity are applied in this order
    THEN all of them are provisioned, and each waited for what it needs."""
    keys = {kind: world.key(kind) for kind in ("identity", "network", "securitygroup", "volume")}
    ids = {"identityId": keys["identity"].id, "networkId": keys["network"].id}
    listener = {"name": "web", "protocol": "tcp", "port": 80}
    balancer = await world.apply("loadbalancer", world.name("lb"), {"listeners": [listener]}, **ids)
    spec = {"networkID": keys["network"].id, "volumeClassID": world.offer.classes["standard"], "size": "1Gi"}
    volume = await world.apply("volume", world.name("disk"), spec, ident=keys["volume"].id, **ids)
    rules = {"rules": [{"direction": "ingress", "protocol": "any"}]}
    group = await world.apply(
        "securitygroup", world.name("any"), rules, ident=keys["securitygroup"].id, **ids
    )
    network = await world.apply(
        "network",
        world.name("net"),
        {"prefix": "10.4.0.0/22", "dnsNameservers": []},
        ident=keys["network"].id,
        identityId=keys["identity"].id,
    )
    team = world.name("team")
    identity = await world.apply("identity", team, {"provider": "openstack"}, ident=keys["identity"].id)
    server = await world.server(Home(identity, network, group), volumes=[{"id": volume.id}])
    for ref in (identity, network, group, volume, server, balancer):
        await world.until(ref, "provisioned", within=900)
    wanted = {ref.key.reference for ref in (group, volume, server, balancer)}
    await world.until(network, when=lambda document: wanted <= set(document["consumers"]))


async def test_ref_002_delete_does_not_wait_for_readiness(world: World) -> None:
    """GIVEN a server whose network never comes WHEN it is deleted THEN it goes without a call to the cloud."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    missing = world.key("network").id
    spec = {"networkID": missing, "volumeClassID": world.offer.classes["standard"], "size": "1Gi"}
    volume = await world.apply("volume", world.name("disk"), spec, networkId=missing, identityId=identity.id)
    await world.until(volume, "provisioning")
    await world.delete(volume)
    await world.until(volume, "gone")
    assert await world.writes(volume) == []


async def test_ref_004_a_paused_resource_does_nothing_not_even_delete(world: World) -> None:
    """GIVEN a paused volume WHEN it is deleted THEN nothing happens until it is resumed."""
    volume = await world.volume(await world.home())
    await world.until(volume, "provisioned")
    await world.mark(volume)
    assert "error" not in await world.request("volume", "pause", {"id": volume.id})
    await world.delete(volume)
    await world.until(volume, "deprovisioning")
    await world.sweep()
    assert await world.writes(volume) == []
    assert await world.cloud.volume(volume.id) is not None
    await world.request("volume", "resume", {"id": volume.id})
    await world.until(volume, "gone")
