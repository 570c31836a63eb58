"""Create: what a wish becomes in the cloud, by name, tag and metadata."""

from tests.world.base import World

NETWORK = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}


async def test_inv_129_inv_130_inv_005_inv_306_identity_create_minimal(world: World) -> None:
    """GIVEN a region WHEN an identity is applied THEN project, user, group and key pair bear its names and tags."""
    identity = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    name = f"unikorn-identity-{identity.id}"
    project = await world.cloud_project(identity)
    users = await world.cloud.users(name=name)
    groups = await world.cloud.server_groups(project)
    assert [u["name"] for u in users] == [name]
    assert [g["name"] for g in groups] == [name]
    assert groups[0].get("policy", groups[0].get("policies")) in (
        "soft-anti-affinity",
        ["soft-anti-affinity"],
    )
    assert [k["name"] for k in await world.cloud.keypairs(users[0]["id"])] == ["unikorn-openstack-provider"]
    assert await world.cloud.tags(project) == [
        f"organization={world.organization}",
        f"project={world.project}",
    ]


async def test_inv_131_ref_017_network_create_minimal(world: World) -> None:
    """GIVEN an identity WHEN a network is applied THEN network, subnet and router bear one name and the documented ranges."""
    identity = await world.apply("identity", world.name("team"), {"provider": "openstack"})
    network = await world.settled("network", world.name("net"), NETWORK, identityId=identity.id)
    name, project = f"network-{network.id}", await world.cloud_project(identity)
    [made] = await world.cloud.network_objects("networks", name=name)
    [subnet] = await world.cloud.network_objects("subnets", name=name)
    [router] = await world.cloud.network_objects("routers", name=name)
    assert {made["project_id"], subnet["project_id"], router["project_id"]} == {project}
    assert (subnet["cidr"], subnet["gateway_ip"]) == ("192.168.10.0/24", "192.168.10.1")
    assert subnet["dns_nameservers"] == ["192.0.2.53"]
    assert subnet["allocation_pools"] == [{"start": "192.168.10.128", "end": "192.168.10.254"}]
    assert router["external_gateway_info"]["network_id"] == world.offer.external
    status = world.status(network)["openstack"]
    assert (status["networkID"], status["subnetID"]) == (made["id"], subnet["id"])
    assert status["storageRange"] == {"startIP": "192.168.10.16", "endIP": "192.168.10.127"}


async def test_ref_034_securitygroup_create_full(world: World) -> None:
    """GIVEN a network WHEN a group is applied THEN its rules stand beside the implicit egress ones."""
    home = await world.home()
    rules = [
        {"direction": "ingress", "protocol": "tcp", "port": {"number": 22}, "prefix": "10.0.0.0/8"},
        {"direction": "ingress", "protocol": "udp", "port": {"range": {"start": 1000, "end": 2000}}},
        {"direction": "ingress", "protocol": "icmp"},
        {"direction": "ingress", "protocol": "vrrp"},
    ]
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    group = await world.settled("securitygroup", world.name("web"), {"rules": rules}, **ids)
    [made] = await world.cloud.network_objects("security-groups", name=f"securitygroup-{group.id}")
    found = made["security_group_rules"]
    ingress = {
        (str(r["protocol"]), r["port_range_min"], r["port_range_max"], r["remote_ip_prefix"])
        for r in found
        if r["direction"] == "ingress"
    }
    assert ("tcp", 22, 22, "10.0.0.0/8") in ingress
    assert {(p, low, high) for p, low, high, _ in ingress} == {
        ("tcp", 22, 22),
        ("udp", 1000, 2000),
        ("icmp", None, None),
        ("112", None, None),
    } or ("vrrp", None, None) in {(p, low, high) for p, low, high, _ in ingress}
    assert len([r for r in found if r["direction"] == "egress"]) == 2


async def test_inv_133_inv_134_inv_047_server_create_full(world: World) -> None:
    """GIVEN a home WHEN a server with public address, address pairs and tags is applied
    THEN port, address and server carry its names, keys and metadata, and it reads Running and Healthy."""
    home = await world.home()
    pairs = [{"cidr": "10.9.0.0/24"}]
    server = await world.settled_server(
        home,
        networks=[{"id": home.network.id, "allowedAddressPairs": pairs}],
        publicIPAllocation={"enabled": True},
        tags={"lab.example.org/cost-centre": "42", "not a tag": "x"},
    )
    made = await world.cloud.server(server.id, server.name)
    assert made is not None
    assert made["tenant_id"] == await world.cloud_project(home.identity)
    assert made["key_name"] == "unikorn-openstack-provider"
    assert made["metadata"] == {
        "lab:cost_centre": "42",
        "region:server_id": server.id,
        "region:region_id": world.region,
        "identity:organization_id": world.organization,
        "identity:project_id": world.project,
        "serverID": server.id,
        "organizationID": world.organization,
        "projectID": world.project,
        "regionID": world.region,
    }
    [port] = await world.cloud.network_objects("ports", name=f"server-{server.id}")
    [address] = await world.cloud.network_objects("floatingips", port_id=port["id"])
    assert [p["ip_address"] for p in port["allowed_address_pairs"]] == ["10.9.0.0/24"]
    status = world.status(server)
    assert status["privateIP"] == port["fixed_ips"][0]["ip_address"]
    assert status["publicIP"] == address["floating_ip_address"]
    assert status["macAddress"] == port["mac_address"]
    assert world.condition(server, "Active")["reason"] == "Running"
    assert world.condition(server, "Healthy")["status"] == "True"


async def test_inv_049_a_server_without_injection_has_no_key(world: World) -> None:
    """GIVEN mode none WHEN the server is created THEN Nova knows no key name."""
    server = await world.settled_server(sshInjection="none", securityGroups=[])
    made = await world.cloud.server(server.id, server.name)
    assert made is not None
    assert made["key_name"] is None
    [port] = await world.cloud.network_objects("ports", name=f"server-{server.id}")
    assert port["security_groups"] == []  # an empty list is no group, not the project's default one


async def test_inv_132_inv_140_inv_152_inv_154_volume_create_full(world: World) -> None:
    """GIVEN a home WHEN a volume is applied THEN Cinder has its name, size and type, and namespaced keys alone."""
    home = await world.home()
    tags = [{"name": "lab.example.org/tier", "value": "gold"}]
    volume = await world.volume(home, size="2Gi", kind="fast", tags=tags)
    await world.until(volume, "provisioned")
    made = await world.cloud.volume(volume.id)
    assert made is not None
    assert (made["name"], made["size"], made["volume_type"]) == (f"volume-{volume.id}", 2, "fast")
    assert made["os-vol-tenant-attr:tenant_id"] == await world.cloud_project(home.identity)
    assert made["metadata"] == {
        "lab:tier": "gold",
        "identity:organization_id": world.organization,
        "identity:project_id": world.project,
        "region:identity_id": home.identity.id,
        "region:region_id": world.region,
        "region:network_id": home.network.id,
        "region:volume_id": volume.id,
    }
