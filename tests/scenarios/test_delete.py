"""Delete: each kind goes in its order, waits for those who use it, and leaves nothing."""

from tests.world.base import Place, Ref, World


async def test_inv_308_identity_delete(world: World) -> None:
    """GIVEN an identity WHEN it is deleted THEN key pair and group go before user and project."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    await world.mark(identity)
    await world.delete(identity)
    await world.until(identity, "gone")
    writes = await world.writes(identity)
    assert writes.index("keypair.delete") < writes.index("user.delete") < writes.index("project.delete")
    assert writes.index("servergroup.delete") < writes.index("user.delete")
    assert await world.cloud.named_after("identity", identity.id, identity.name) == []


async def test_ref_003_ref_025_a_network_in_use_waits_and_says_who_uses_it(world: World) -> None:
    """GIVEN a network with a group WHEN it is deleted THEN it waits as IN_USE; when the group goes, it goes."""
    home = await world.build_home()
    await world.mark(home.network)
    reply = await world.request("network", "delete", {"id": home.network.id})
    assert reply["error"]["status"] == 403
    assert home.group.id in reply["error"]["message"]
    await world.delete(home.network)
    await world.until(home.network, "deprovisioning", when=lambda d: d["status"].get("code") == "IN_USE")
    assert await world.writes(home.network) == []
    await world.delete(home.group)
    await world.until(home.network, "gone")
    assert await world.writes(home.network) == [
        "router.remove_interface",
        "router.delete",
        "subnet.delete",
        "network.delete",
    ]


async def test_ref_024_cascade_takes_children_and_the_hidden_identity(world: World) -> None:
    """GIVEN a network without an identity of its own, with a server WHEN it is deleted with cascade THEN all of it goes."""
    spec = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
    network = await world.settled("network", world.name("net"), spec)
    identity = world.document(network)["metadata"]["identityId"]
    rules = {"rules": [{"direction": "ingress", "protocol": "icmp"}]}
    group = await world.settled("securitygroup", world.name("ping"), rules, networkId=network.id)
    server = await world.server(Place(None, network, group))
    await world.until(server, "provisioned")
    await world.delete(network, cascade=True)
    for each in (server, group, network):
        await world.until(each, "gone", within=900)
    await world.until(Ref(world.key("identity", identity), "", {}), "gone")
    assert await world.cloud.projects(name=f"unikorn-identity-{identity}") == []


async def test_ref_051_server_delete(world: World) -> None:
    """GIVEN a server with a public address WHEN it is deleted THEN server, address, port go in this order."""
    server = await world.settled_server(publicIPAllocation={"enabled": True})
    await world.mark(server)
    await world.delete(server)
    await world.until(server, "gone")
    assert await world.writes(server) == ["server.delete", "floatingip.delete", "port.delete"]


async def test_ref_009_what_somebody_deleted_already_is_a_success(world: World) -> None:
    """GIVEN a server whose parts somebody deleted WHEN it is deleted THEN it is gone without a complaint."""
    server = await world.settled_server(publicIPAllocation={"enabled": True})
    [port] = await world.cloud.network_objects("ports", name=f"server-{server.id}")
    [address] = await world.cloud.network_objects("floatingips", port_id=port["id"])
    await world.foreigner.delete_server(server)
    await world.foreigner.delete("floatingips", address["id"])
    await world.delete(server)
    await world.until(server, "gone")
    assert await world.cloud.named_after("server", server.id, server.name) == []


async def test_the_same_id_again_after_a_delete_is_the_next_life(world: World) -> None:
    """GIVEN a server that is gone WHEN the same name is applied again THEN a new server stands in its next incarnation."""
    server = await world.settled_server()
    first = world.document(server)["metadata"]["incarnation"]
    await world.delete(server)
    await world.until(server, "gone")
    await world.edit(server)
    await world.until(server, "provisioned")
    assert world.document(server)["metadata"]["incarnation"] == first + 1


async def test_an_edit_while_deleting_is_the_next_life(world: World) -> None:
    """GIVEN a server under deletion WHEN a newer spec arrives THEN the old one goes first and the new one is made."""
    server = await world.settled_server()
    old = await world.cloud.server(server.id, server.name)
    await world.delete(server)
    await world.with_image(server, "B")
    await world.until(server, "provisioned", when=lambda d: d["metadata"]["incarnation"] == 2, within=600)
    new = await world.cloud.server(server.id, server.name)
    assert old is not None
    assert new is not None
    assert new["id"] != old["id"]
    assert new["image"]["id"] == world.offer.images["B"]
