"""Near-miss names and foreign objects: never adopted, never changed, never deleted."""

from tests.world.base import World


async def test_inv_256_a_foreign_server_of_the_same_name_is_left_alone(world: World) -> None:
    """GIVEN a server of ours renamed by somebody, and near names in the project WHEN passes run
    THEN only a server with our id in its metadata counts."""
    home = await world.home()
    first = await world.settled_server(home)
    second = await world.settled_server(home, name=f"{first.name}-1")
    await world.mark(first, second)
    await world.quiet_pass(first)
    assert await world.writes(first) == []
    await world.delete(first)
    await world.until(first, "gone")
    other = await world.cloud.server(second.id, second.name)
    assert other is not None
    assert other["status"] == "ACTIVE"
    assert await world.writes(second) == []


async def test_inv_257_inv_258_a_network_with_a_longer_name_is_not_ours(world: World) -> None:
    """GIVEN a foreign network whose name begins with ours in our project WHEN ours is made and deleted THEN it stays."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    project = await world.cloud_project(identity)
    key = world.key("network")
    near = await world.foreigner.make("networks", name=f"network-{key.id}2", project_id=project)
    spec = {"prefix": "192.168.10.0/24", "dnsNameservers": []}
    network = await world.apply("network", world.name("net"), spec, ident=key.id, identityId=identity.id)
    await world.until(network, "provisioned")
    assert world.status(network)["openstack"]["networkID"] != near["id"]
    await world.delete(network)
    await world.until(network, "gone")
    [left] = await world.cloud.network_objects("networks", name=near["name"])
    assert left["id"] == near["id"]
    await world.foreigner.tidy()


async def test_inv_002_a_volume_of_our_name_in_another_project_is_not_ours(world: World) -> None:
    """GIVEN a volume of exactly our name in somebody else's project WHEN ours is made and deleted THEN that one stays."""
    home = await world.home()
    key = world.key("volume")
    foreign = await world.foreigner.make_volume(f"volume-{key.id}")
    spec = {"networkID": home.network.id, "volumeClassID": world.offer.classes["standard"], "size": "1Gi"}
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    volume = await world.apply("volume", world.name("disk"), spec, ident=key.id, **ids)
    await world.until(volume, "provisioned")
    assert len(await world.cloud.volumes(name=f"volume-{key.id}")) == 2
    await world.delete(volume)
    await world.until(volume, "gone")
    assert [v["id"] for v in await world.cloud.volumes(name=f"volume-{key.id}")] == [foreign["id"]]
    await world.foreigner.tidy()
    await world.eventually(lambda: _none(world, key.id), "absence of the foreign volume")


async def test_inv_259_a_load_balancer_with_a_longer_name_is_not_ours(world: World) -> None:
    """GIVEN a foreign load balancer whose name begins with ours WHEN ours is made and deleted THEN it stays as it is."""
    home = await world.home()
    [subnet] = await world.cloud.network_objects("subnets", name=f"network-{home.network.id}")
    key, project = world.key("loadbalancer"), await world.cloud_project(home.identity)
    near = await world.foreigner.make_loadbalancer(f"lb-{key.id}-extra", subnet["id"], project)
    spec = {"listeners": [{"name": "web", "protocol": "tcp", "port": 80}]}
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    balancer = await world.apply("loadbalancer", world.name("lb"), spec, ident=key.id, **ids)
    await world.until(balancer, "provisioned")
    await world.delete(balancer)
    await world.until(balancer, "gone")
    [left] = await world.cloud.octavia("loadbalancers", name=near["name"])
    assert (left["id"], left["provisioning_status"]) == (near["id"], "ACTIVE")
    await world.foreigner.delete_loadbalancer(near["id"])

    async def gone() -> bool:
        return await world.cloud.octavia("loadbalancers", name=near["name"]) == []

    await world.eventually(gone, "absence of the foreign load balancer")


async def _none(world: World, ident: str) -> bool:
    return await world.cloud.volumes(name=f"volume-{ident}") == []
