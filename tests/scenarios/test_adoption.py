"""Adoption and its errors: what bears exactly our name in our project is ours, unless there are two of it."""

from tests.world.base import World

NETWORK = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}


async def test_inv_007_inv_143_network_import(world: World) -> None:
    """GIVEN a network of our name in our project WHEN ours is applied THEN it is taken over and not made again."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    key, project = world.key("network"), await world.cloud_project(identity)
    found = await world.foreigner.make("networks", name=f"network-{key.id}", project_id=project)
    network = await world.apply("network", world.name("net"), NETWORK, ident=key.id, identityId=identity.id)
    await world.until(network, "provisioned")
    assert world.status(network)["openstack"]["networkID"] == found["id"]
    assert await world.writes(network) == ["subnet.create", "router.create", "router.add_interface"]


async def test_inv_007_network_import_error(world: World) -> None:
    """GIVEN two networks of our name in our project WHEN ours is applied THEN it is an error until one is gone."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    key, project = world.key("network"), await world.cloud_project(identity)
    twins = [
        await world.foreigner.make("networks", name=f"network-{key.id}", project_id=project) for _ in range(2)
    ]
    network = await world.apply("network", world.name("net"), NETWORK, ident=key.id, identityId=identity.id)
    await world.until(network, "error", when=lambda d: d["status"].get("code") == "CONSISTENCY")
    assert await world.writes(network) == []
    await world.foreigner.delete("networks", twins[0]["id"])
    await world.until(network, "provisioned")
    assert world.status(network)["openstack"]["networkID"] == twins[1]["id"]


async def test_ref_034_securitygroup_import(world: World) -> None:
    """GIVEN a group of our name with a rule of somebody's WHEN ours is applied THEN it is taken over and its list made right."""
    home = await world.home()
    key, project = world.key("securitygroup"), await world.cloud_project(home.identity)
    found = await world.foreigner.make("security-groups", name=f"securitygroup-{key.id}", project_id=project)
    ssh = {"direction": "ingress", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
    ours = {"project_id": project, "security_group_id": found["id"]}
    await world.foreigner.make("security-group-rules", **ssh, **ours)
    rules = [{"direction": "ingress", "protocol": "tcp", "port": {"number": 443}}]
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    group = await world.apply("securitygroup", world.name("web"), {"rules": rules}, ident=key.id, **ids)
    await world.until(group, "provisioned")
    assert sorted(await world.writes(group)) == ["rule.create", "rule.delete"]
    [after] = await world.cloud.network_objects("security-groups", name=f"securitygroup-{key.id}")
    assert after["id"] == found["id"]
    ports = [r["port_range_min"] for r in after["security_group_rules"] if r["direction"] == "ingress"]
    assert ports == [443]


async def test_a_foreign_port_keeps_a_network_and_is_named(world: World) -> None:
    """GIVEN somebody's port on our network WHEN the network is deleted THEN it waits and says so, and goes after the port."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    network = await world.settled("network", world.name("net"), NETWORK, identityId=identity.id)
    project = await world.cloud_project(identity)
    [made] = await world.cloud.network_objects("networks", name=f"network-{network.id}")
    port = await world.foreigner.make("ports", name="of-somebody", network_id=made["id"], project_id=project)
    await world.mark(network)
    await world.delete(network)
    await world.until(network, "deprovisioning", when=lambda d: d["status"].get("code") == "IN_USE")
    assert "ports in use" in world.condition(network, "Available")["message"]
    assert await world.writes(network) == []
    await world.foreigner.delete("ports", port["id"])
    await world.until(network, "gone", within=900)
