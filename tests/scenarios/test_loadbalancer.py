"""Load balancers, as far as the OVN provider offers them."""

from typing import Any

import pytest
from tests.world.base import Home, Ref, World

LISTENERS: list[dict[str, Any]] = [
    {
        "name": "web",
        "protocol": "tcp",
        "port": 80,
        "idleTimeoutSeconds": 30,
        "pool": {
            "members": [
                {"address": "192.168.10.200", "port": 8080},
                {"address": "192.168.10.201", "port": 8080},
            ],
            "healthCheck": {"intervalSeconds": 10, "timeoutSeconds": 5},
        },
    },
    {"name": "dns", "protocol": "udp", "port": 53, "pool": {"healthCheck": {}}},
]


async def balancer(world: World, home: Home, **changes: Any) -> Ref:
    ids = {"identityId": home.identity.id, "networkId": home.network.id}
    return await world.apply("loadbalancer", world.name("lb"), {"listeners": LISTENERS, **changes}, **ids)


async def test_inv_262_inv_264_inv_265_inv_283_inv_285_create_full(world: World) -> None:
    """GIVEN a home WHEN a load balancer with two listeners and a public address is applied
    THEN every object bears its name in the identity's project, and the address hangs on Octavia's VIP port."""
    home = await world.home()
    lb = await balancer(world, home, publicIP=True)
    await world.until(lb, "provisioned")
    project, name = await world.cloud_project(home.identity), f"lb-{lb.id}"
    [made] = await world.cloud.octavia("loadbalancers", name=name)
    assert (made["project_id"], made["provider"]) == (project, "ovn")
    found = {
        noun: {row["name"]: row for row in await world.cloud.octavia(noun, project_id=project)}
        for noun in ("listeners", "pools", "healthmonitors")
    }
    web, dns = f"{name}-web", f"{name}-dns"
    assert found["listeners"][f"{web}-listener"]["protocol_port"] == 80
    assert found["listeners"][f"{dns}-listener"]["protocol"] == "UDP"
    assert found["pools"][f"{web}-pool"]["protocol"] == "TCP"
    assert found["pools"][f"{web}-pool"]["lb_algorithm"] == "SOURCE_IP_PORT"
    assert found["healthmonitors"][f"{web}-monitor"]["type"] == "TCP"
    assert found["healthmonitors"][f"{dns}-monitor"]["type"] == "UDP-CONNECT"
    members = await world.cloud.members(found["pools"][f"{web}-pool"]["id"])
    assert {(m["address"], m["protocol_port"]) for m in members} == {
        ("192.168.10.200", 8080),
        ("192.168.10.201", 8080),
    }
    [address] = await world.cloud.network_objects("floatingips", port_id=made["vip_port_id"])
    status = world.status(lb)
    assert (status["vipAddress"], status["publicIP"]) == (made["vip_address"], address["floating_ip_address"])


async def test_inv_286_ref_061_delete_frees_the_address_first(world: World) -> None:
    """GIVEN a load balancer with a public address WHEN it is deleted THEN the address goes before the cascade."""
    home = await world.home()
    lb = await balancer(world, home, publicIP=True)
    await world.until(lb, "provisioned")
    await world.mark(lb)
    await world.delete(lb)
    await world.until(lb, "gone")
    assert await world.writes(lb) == ["floatingip.delete", "loadbalancer.delete"]
    assert await world.cloud.named_after("loadbalancer", lb.id, lb.name) == []


async def test_inv_285_what_the_provider_cannot_do_parks_and_leaves_no_port(world: World) -> None:
    """GIVEN an OVN region WHEN proxy protocol is asked for THEN one refused create parks with a remedy; an edit heals."""
    home = await world.home()
    refused = [{**LISTENERS[0], "pool": {**LISTENERS[0]["pool"], "proxyProtocolV2": True}}]
    lb = await balancer(world, home, listeners=refused)
    await world.until(lb, "error", when=lambda d: d["status"].get("code") == "NOT_OFFERED", within=600)
    assert "provider cannot do" in world.condition(lb, "Available")["message"]
    assert await world.cloud.octavia("loadbalancers", name=f"lb-{lb.id}") == []
    await world.edit(lb, listeners=[{**LISTENERS[0], "name": "plain"}])
    await world.until(lb, "provisioned")


async def test_inv_280_protocol_and_port_of_a_listener_are_refused(world: World) -> None:
    """GIVEN a load balancer WHEN the port of a named listener is edited THEN the edit is refused and the old spec stands."""
    home = await world.home()
    lb = await balancer(world, home, listeners=LISTENERS[:1])
    await world.until(lb, "provisioned")
    await world.edit(lb, listeners=[{**LISTENERS[0], "port": 81}])
    await world.until(lb, when=lambda d: any(c["reason"] == "Refused" for c in d["status"]["conditions"]))
    assert world.document(lb)["spec"]["listeners"][0]["port"] == 80
    assert world.status(lb)["provisioningStatus"] == "provisioned"


@pytest.mark.worlds(
    "simulation", "integration"
)  # fails against the original Octavia of the reference cloud; not understood yet
async def test_inv_263_inv_274_inv_275_inv_276_inv_278_edits_change_the_parts_in_place(world: World) -> None:
    """GIVEN a load balancer WHEN members, timeout and thresholds change and a check goes THEN the same objects say so."""
    home = await world.home()
    lb = await balancer(world, home)
    await world.until(lb, "provisioned")
    project, name = await world.cloud_project(home.identity), f"lb-{lb.id}"

    async def parts(noun: str) -> dict[str, Any]:
        rows = await world.cloud.octavia(noun, project_id=project)
        return {row["name"]: row for row in rows if row["name"].startswith(name)}

    before = {noun: await parts(noun) for noun in ("listeners", "pools", "healthmonitors")}
    await world.mark(lb)
    check = {"intervalSeconds": 20, "timeoutSeconds": 9, "unhealthyThreshold": 4}
    pool = {"members": [{"address": "192.168.10.201", "port": 8081}], "healthCheck": check}
    web, dns = {**LISTENERS[0], "idleTimeoutSeconds": 90, "pool": pool}, {**LISTENERS[1], "pool": {}}
    await world.edit(lb, listeners=[web, dns])
    await world.until(lb, "provisioned")
    assert await world.writes(lb) == [
        "listener.update",
        "member.batch",
        "healthmonitor.update",
        "healthmonitor.delete",
    ]
    listener = (await parts("listeners"))[f"{name}-web-listener"]
    assert listener["id"] == before["listeners"][f"{name}-web-listener"]["id"]
    assert (listener["timeout_client_data"], listener["timeout_member_data"]) == (90000, 90000)
    [monitor] = (await parts("healthmonitors")).values()
    assert monitor["id"] == before["healthmonitors"][f"{name}-web-monitor"]["id"]
    assert (monitor["delay"], monitor["timeout"], monitor["max_retries_down"]) == (20, 9, 4)
    pools = await parts("pools")
    assert {n: p["id"] for n, p in pools.items()} == {n: p["id"] for n, p in before["pools"].items()}
    members = await world.cloud.members(pools[f"{name}-web-pool"]["id"])
    assert [(m["address"], m["protocol_port"]) for m in members] == [("192.168.10.201", 8081)]
    await world.mark(lb)
    await world.quiet_pass(lb)
    assert await world.writes(lb) == []


@pytest.mark.worlds(
    "simulation", "integration"
)  # fails against the original Octavia of the reference cloud; not understood yet
async def test_inv_277_ref_059_listeners_come_go_and_change_their_names(world: World) -> None:
    """GIVEN two listeners WHEN one goes and the other gets another name THEN the old ones go first, and nothing of them stays."""
    home = await world.home()
    lb = await balancer(world, home)
    await world.until(lb, "provisioned")
    await world.mark(lb)
    await world.edit(lb, listeners=[{**LISTENERS[0], "name": "www"}])
    await world.until(lb, "provisioned", within=900)
    assert await world.writes(lb) == [
        *["listener.delete"] * 2,
        *("pool.create", "listener.create", "member.batch", "healthmonitor.create"),
        *["pool.delete"] * 2,
    ]
    project, name = await world.cloud_project(home.identity), f"lb-{lb.id}"
    for noun, part in (("listeners", "listener"), ("pools", "pool"), ("healthmonitors", "monitor")):
        rows = await world.cloud.octavia(noun, project_id=project)
        assert [r["name"] for r in rows if r["name"].startswith(name)] == [f"{name}-www-{part}"]


async def test_oc_10_an_edit_that_the_provider_refuses_is_asked_for_once(world: World) -> None:
    """GIVEN an OVN region WHEN allowed ranges are edited in THEN one refused update parks, and taking them back heals."""
    home = await world.home()
    lb = await balancer(world, home, listeners=LISTENERS[:1])
    await world.until(lb, "provisioned")
    await world.mark(lb)
    edited = await world.edit(lb, listeners=[{**LISTENERS[0], "allowedCIDRs": ["10.0.0.0/8"]}])
    await world.until(edited, "error", when=lambda d: d["status"].get("code") == "NOT_OFFERED", within=600)
    for _ in range(2):
        await world.quiet_pass(lb)
    assert await world.writes(lb) == ["listener.update not_supported"]
    await world.edit(edited, listeners=LISTENERS[:1])
    await world.until(lb, "provisioned")
