"""The unmodified `openstack` command shows what was made, with the names, tags and metadata that operators rely on.

The names stand here as texts of their own: a name that changes loses every object of an installed cloud (INV-137).
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.world.adapter_stack import StackScenario

OPENSTACK = Path(sys.executable).parent / "openstack"


async def openstack(world: StackScenario, *words: str) -> Any:
    """What one command prints as JSON, asked as the cloud's administrator."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
    environment |= {"OS_CLIENT_CONFIG_FILE": str(world.session.clouds), "OS_CLOUD": world.session.cloud_name}
    child = await asyncio.create_subprocess_exec(
        str(OPENSTACK),
        *words,
        "-f",
        "json",
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(120):
        out, err = await child.communicate()
    assert child.returncode == 0, f"openstack {' '.join(words)}: {err.decode(errors='replace')[-600:]}"
    return json.loads(out)


def names(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(row["Name"]) for row in rows)


async def test_inv_137_inv_012_inv_129_the_openstack_command_shows_every_kind(world: StackScenario) -> None:
    """GIVEN every kind settled WHEN an operator looks with the openstack command THEN all objects are found by their names."""
    home = await world.build_home()
    i, n, g = home.identity.id, home.network.id, home.group.id
    ids = {"identityId": i, "networkId": n}
    volume = await world.volume(home)
    listener = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"healthCheck": {}}}
    balancer = await world.apply("loadbalancer", world.name("lb"), {"listeners": [listener]}, **ids)
    tags = {"lab.example.org/cost-centre": "42"}
    public = {"enabled": True}
    server = await world.server(home, volumes=[{"id": volume.id}], publicIPAllocation=public, tags=tags)
    await world.attached(server, volume)
    await world.until(balancer, "provisioned", within=600)

    project = await openstack(world, "project", "show", await world.cloud_project(home.identity))
    assert project["name"] == f"unikorn-identity-{i}"
    assert sorted(project["tags"]) == [f"organization={world.organization}", f"project={world.project}"]
    user = await openstack(world, "user", "show", f"unikorn-identity-{i}", "--domain", project["domain_id"])
    mine = ("--project", project["id"])
    groups, keypairs, servers, networks, subnets, routers = await asyncio.gather(
        openstack(world, "server", "group", "list", "--all-projects"),
        openstack(world, "keypair", "list", "--user", user["id"]),
        openstack(world, "server", "list", *mine),
        openstack(world, "network", "list", *mine),
        openstack(world, "subnet", "list", *mine),
        openstack(world, "router", "list", *mine),
    )
    assert f"unikorn-identity-{i}" in names(groups)
    assert names(keypairs) == ["unikorn-openstack-provider"]
    assert names(servers) == [server.name]
    assert names(networks) == names(subnets) == names(routers) == [f"network-{n}"]

    rules, ports, addresses, volumes, balancers, shown = await asyncio.gather(
        openstack(world, "security", "group", "list", *mine),
        openstack(world, "port", "list", *mine),
        openstack(world, "floating", "ip", "list", *mine),
        openstack(world, "volume", "list", *mine),
        openstack(world, "loadbalancer", "list", *mine),
        openstack(world, "server", "show", servers[0]["ID"]),
    )
    assert f"securitygroup-{g}" in names(rules)
    assert f"server-{server.id}" in names(ports)
    assert [a["Floating IP Address"] for a in addresses] == [world.status(server)["publicIP"]]
    assert names(volumes) == [f"volume-{volume.id}"]
    assert [b["name"] for b in balancers] == [f"lb-{balancer.id}"]
    assert shown["properties"] == {
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
    volume_shown, listeners, pools, monitors = await asyncio.gather(
        openstack(world, "volume", "show", volumes[0]["ID"]),
        openstack(world, "loadbalancer", "listener", "list", *mine),
        openstack(world, "loadbalancer", "pool", "list", "--loadbalancer", balancers[0]["id"]),
        openstack(world, "loadbalancer", "healthmonitor", "list"),
    )
    assert volume_shown["properties"] == {
        "identity:organization_id": world.organization,
        "identity:project_id": world.project,
        "region:identity_id": i,
        "region:region_id": world.region,
        "region:network_id": n,
        "region:volume_id": volume.id,
    }
    assert [r["name"] for r in listeners] == [f"lb-{balancer.id}-web-listener"]
    assert [r["name"] for r in pools] == [f"lb-{balancer.id}-web-pool"]
    assert f"lb-{balancer.id}-web-monitor" in [r["name"] for r in monitors]
