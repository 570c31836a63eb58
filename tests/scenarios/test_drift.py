"""Drift: what somebody else changed comes back, where the kind repairs it."""

from tests.world.base import World, booted


async def test_inv_100_a_server_deleted_behind_our_back_is_created_again(world: World) -> None:
    """GIVEN a settled server WHEN somebody deletes it in Nova THEN the monitor's next look brings it back."""
    server = await world.settled_server()
    old = await world.cloud.server(server.id, server.name)
    assert old is not None
    await world.mark(server)
    await world.foreigner.delete_server(server)
    new = await world.eventually(lambda: world.cloud.server(server.id, server.name), "new server", within=600)
    while new["id"] == old["id"]:
        await world.moved(0.5)
        new = await world.eventually(
            lambda: world.cloud.server(server.id, server.name), "new server", within=600
        )
    await world.until(server, "provisioned", when=booted)
    assert await world.writes(server) == ["server.create"]


async def test_ref_033_a_foreign_rule_goes_and_a_lost_one_comes_back(world: World) -> None:
    """GIVEN a group WHEN somebody removes one rule and adds another THEN the next pass restores the list."""
    home = await world.home()
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    rules = [{"direction": "ingress", "protocol": "tcp", "port": {"number": p}} for p in (80, 443)]
    group = await world.settled("securitygroup", world.name("web"), {"rules": rules}, **ids)
    [made] = await world.cloud.network_objects("security-groups", name=f"securitygroup-{group.id}")
    lost = next(r for r in made["security_group_rules"] if r["port_range_min"] == 80)
    await world.foreigner.delete("security-group-rules", lost["id"])
    ours = {"project_id": made["project_id"], "security_group_id": made["id"], "direction": "ingress"}
    ssh = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
    extra = await world.foreigner.make("security-group-rules", **ours, **ssh)
    await world.mark(group)
    await world.quiet_pass(group)
    assert sorted(await world.writes(group)) == ["rule.create", "rule.delete"]
    [after] = await world.cloud.network_objects("security-groups", name=f"securitygroup-{group.id}")
    ports = {r["port_range_min"] for r in after["security_group_rules"] if r["direction"] == "ingress"}
    assert ports == {80, 443}
    assert extra["id"] not in {r["id"] for r in after["security_group_rules"]}


async def test_ref_023_foreign_dns_servers_are_put_back(world: World) -> None:
    """GIVEN a network WHEN somebody changes its DNS servers THEN the next pass writes those of the spec, once."""
    home = await world.build_home()
    [subnet] = await world.cloud.network_objects("subnets", name=f"network-{home.network.id}")
    await world.foreigner.change("subnets", subnet["id"], dns_nameservers=["203.0.113.1"])
    await world.mark(home.network)
    await world.quiet_pass(home.network)
    await world.quiet_pass(home.network)
    assert await world.writes(home.network) == ["subnet.update"]
    [after] = await world.cloud.network_objects("subnets", name=f"network-{home.network.id}")
    assert after["dns_nameservers"] == ["192.0.2.53"]


async def test_ref_049_foreign_groups_on_a_port_are_put_back(world: World) -> None:
    """GIVEN a server WHEN somebody takes its groups off the port THEN the next pass puts them back."""
    server = await world.settled_server()
    [port] = await world.cloud.network_objects("ports", name=f"server-{server.id}")
    await world.foreigner.change("ports", port["id"], security_groups=[])
    await world.mark(server)
    await world.quiet_pass(server)
    assert await world.writes(server) == ["port.update"]
    [after] = await world.cloud.network_objects("ports", name=f"server-{server.id}")
    assert after["security_groups"] == port["security_groups"]


async def test_ref_050_a_public_address_taken_away_by_somebody_is_made_again(world: World) -> None:
    """GIVEN a server with a public address WHEN somebody releases it THEN the next pass gives it another one."""
    server = await world.settled_server(publicIPAllocation={"enabled": True})
    [port] = await world.cloud.network_objects("ports", name=f"server-{server.id}")
    [address] = await world.cloud.network_objects("floatingips", port_id=port["id"])
    await world.foreigner.delete("floatingips", address["id"])
    await world.quiet_pass(server)
    await world.until(server, "provisioned", when=lambda d: d["status"].get("publicIP"))
    [again] = await world.cloud.network_objects("floatingips", port_id=port["id"])
    assert again["id"] != address["id"]
    assert world.status(server)["publicIP"] == again["floating_ip_address"]


async def test_a_volume_deleted_behind_our_back_is_created_again(world: World) -> None:
    """GIVEN a volume WHEN somebody deletes it in Cinder THEN a pass creates it again, as the spec says it should be there."""
    volume = await world.volume(await world.home())
    await world.until(volume, "provisioned")
    made = await world.cloud.volume(volume.id)
    assert made is not None
    await world.mark(volume)
    await world.foreigner.delete_volume(made["id"])
    await world.eventually(lambda: _gone(world, volume.id), "absence of the volume")
    await world.quiet_pass(volume)
    await world.until(volume, "provisioned")
    assert await world.writes(volume) == ["volume.create"]


async def _gone(world: World, ident: str) -> bool:
    return await world.cloud.volume(ident) is None
