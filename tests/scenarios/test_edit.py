"""Edits in place: what may change changes once, what may not is refused and the accepted spec stays in force."""

from tests.world.base import TCP_22, Ref, World


async def refused(world: World, ref: Ref) -> str:
    """The text of the refusal of the newest spec."""
    await world.until(ref, when=lambda d: any(c["reason"] == "Refused" for c in d["status"]["conditions"]))
    return str(world.condition(ref, "Accepted")["message"])


async def test_ref_023_network_edit(world: World) -> None:
    """GIVEN a network WHEN DNS servers and routes are edited and taken back THEN the subnet follows each time, once."""
    home = await world.build_home()
    network = home.network
    await world.mark(network)
    route = {"prefix": "10.7.0.0/16", "nextHop": "192.168.10.9"}
    await world.edit(network, dnsNameservers=["192.0.2.1", "192.0.2.2"], routes=[route])
    await world.until(network, "provisioned")
    [subnet] = await world.cloud.network_objects("subnets", name=f"network-{network.id}")
    assert subnet["dns_nameservers"] == ["192.0.2.1", "192.0.2.2"]
    assert subnet["host_routes"] == [{"destination": "10.7.0.0/16", "nexthop": "192.168.10.9"}]
    await world.edit(network, routes=[])
    await world.until(network, "provisioned")
    [subnet] = await world.cloud.network_objects("subnets", name=f"network-{network.id}")
    assert subnet["host_routes"] == []
    assert await world.writes(network) == ["subnet.update", "subnet.update"]


async def test_ref_032_ref_033_securitygroup_edit(world: World) -> None:
    """GIVEN a group WHEN its rules are put in another order, then one is replaced THEN only that one is written."""
    home = await world.home()
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    http = {"direction": "ingress", "protocol": "tcp", "port": {"number": 80}}
    group = await world.settled("securitygroup", world.name("web"), {"rules": [TCP_22, http]}, **ids)
    await world.mark(group)
    await world.edit(group, rules=[http, TCP_22])
    await world.until(group, "provisioned")
    assert await world.writes(group) == []
    https = {"direction": "ingress", "protocol": "tcp", "port": {"number": 443}}
    await world.edit(group, rules=[https, TCP_22])
    await world.until(group, "provisioned")
    assert sorted(await world.writes(group)) == ["rule.create", "rule.delete"]


async def test_ref_049_ref_050_server_edit(world: World) -> None:
    """GIVEN a server WHEN groups, pairs and the public address are edited THEN its port follows and Nova is not touched."""
    home = await world.home()
    server = await world.settled_server(home)
    await world.mark(server)
    edited = await world.edit(
        server,
        securityGroups=[],
        networks=[{"id": home.network.id, "allowedAddressPairs": [{"cidr": "10.8.0.0/24"}]}],
        publicIPAllocation={"enabled": True},
    )
    await world.until(edited, "provisioned")
    assert await world.writes(server) == ["port.update", "floatingip.create"]
    [port] = await world.cloud.network_objects("ports", name=f"server-{server.id}")
    assert (port["security_groups"], len(port["allowed_address_pairs"])) == ([], 1)
    assert world.status(server)["publicIP"]
    await world.edit(edited, publicIPAllocation={"enabled": False})
    await world.until(server, "provisioned")
    assert (await world.writes(server))[2:] == ["floatingip.delete"]
    assert "publicIP" not in world.status(server)


async def test_ref_038_inv_050_fixed_parts_of_a_server_cannot_be_edited(world: World) -> None:
    """GIVEN a server WHEN flavor or injection are edited THEN the edit is refused, nothing is written, the old spec stands."""
    server = await world.settled_server()
    await world.mark(server)
    await world.edit(server, flavorID=world.offer.flavors["medium"], sshInjection="none")
    text = await refused(world, server)
    assert "flavorID" in text
    assert "sshInjection" in text
    assert world.document(server)["spec"]["flavorID"] == world.offer.flavors["small"]
    assert world.status(server)["provisioningStatus"] == "provisioned"
    assert await world.writes(server) == []


async def test_a_network_keeps_its_prefix(world: World) -> None:
    """GIVEN a network WHEN its prefix is edited THEN the edit is refused; the next good one is accepted."""
    home = await world.build_home()
    edited = await world.edit(home.network, prefix="10.0.0.0/16")
    assert "prefix" in await refused(world, edited)
    await world.edit(home.network, dnsNameservers=[])
    await world.until(home.network, "provisioned")
    assert world.condition(home.network, "Accepted")["status"] == "True"


async def test_the_same_spec_again_is_no_edit(world: World) -> None:
    """GIVEN a settled server WHEN the same spec is published again THEN generation and cloud stay as they are."""
    server = await world.settled_server()
    before = world.document(server)["metadata"]["generation"]
    await world.mark(server)
    await world.edit(server)
    await world.quiet_pass(server)
    assert world.document(server)["metadata"]["generation"] == before
    assert await world.writes(server) == []
