"""Load balancers of a region through our own Octavia API: specs on the bus, requests over HTTP, calls to a provider (OC-10)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.balancing.path import Path, eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

POOL: dict[str, Any] = {
    "members": [{"address": "192.168.40.200", "port": 8080}, {"address": "192.168.40.201", "port": 8080}],
    "healthCheck": {"intervalSeconds": 10, "timeoutSeconds": 5},
}
WEB: dict[str, Any] = {"name": "web", "protocol": "tcp", "port": 80, "pool": POOL}
DNS: dict[str, Any] = {"name": "dns", "protocol": "udp", "port": 53, "pool": {"healthCheck": {}}}
RANGES = {**WEB, "allowedCIDRs": ["10.0.0.0/8"]}
PROXY = {**WEB, "pool": {**POOL, "proxyProtocolV2": True}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def path() -> AsyncIterator[Path]:
    made = Path()
    try:
        yield await made.open()
    finally:
        await made.close()


def not_offered(document: Any) -> bool:
    return bool(document["status"].get("code") == "NOT_OFFERED")


async def parked(path: Path, key: Any, generation: int = 0) -> str:
    """Wait until nothing is due any more; what it is told."""
    await path.until(key, "error", not_offered, generation=generation)
    await eventually(lambda: path.is_parked(key))
    document = await path.document(key)
    assert document is not None
    return next(str(c["message"]) for c in document["status"]["conditions"] if c["type"] == "Available")


async def test_oc_10_a_plain_wish_reaches_provisioned_and_goes_without_a_trace(path: Path) -> None:
    """GIVEN our API before OVN WHEN a TCP and a UDP listener with health checks and a public address are applied
    THEN one create makes all of it, a quiet pass writes nothing, and a deletion leaves nothing."""
    ports = path.vip_ports()
    balancer = await path.balancer([WEB, DNS], publicIP=True)
    document = await path.until(balancer, "provisioned")
    assert await path.writes(balancer) == ["loadbalancer.create", "floatingip.create"]
    assert set(path.named("listener", balancer)) == {"web-listener", "dns-listener"}
    assert (
        path.sql(f"SELECT lb_algorithm FROM pool WHERE name LIKE 'lb-{balancer.id}%'")
        == [["SOURCE_IP_PORT"]] * 2
    )
    [row] = path.named("load_balancer", balancer).values()
    assert row["provisioning_status"] == "ACTIVE"
    [port] = [p for p in path.vip_ports() if p not in ports]
    assert document["status"]["vipAddress"] == port["fixed_ips"][0]["ip_address"]
    assert document["status"]["publicIP"]
    await path.passed(balancer)
    assert len(await path.writes(balancer)) == 2
    await path.delete(balancer)
    await path.until(balancer, "gone")
    assert path.named("load_balancer", balancer) == path.named("listener", balancer) == {}
    assert path.named("pool", balancer) == path.named("health_monitor", balancer) == {}
    assert path.vip_ports() == ports


@pytest.mark.parametrize("listener", [pytest.param(RANGES, id="ranges"), pytest.param(PROXY, id="proxy")])
async def test_oc_10_what_ovn_cannot_do_is_asked_for_once_and_leaves_nothing(
    path: Path, listener: dict[str, Any]
) -> None:
    ports = path.vip_ports()
    balancer = await path.balancer([listener])
    text = await parked(path, balancer)
    assert "provider cannot do" in text
    for _ in range(2):
        await path.passed(balancer)
    assert await path.writes(balancer) == ["loadbalancer.create not_supported"]
    assert path.named("load_balancer", balancer) == {}
    assert path.vip_ports() == ports
    await path.balancer([{**WEB, "name": "plain"}], key=balancer)
    await path.until(balancer, "provisioned", generation=2)
    await path.delete(balancer)
    await path.until(balancer, "gone")


async def test_oc_10_a_refused_edit_is_asked_for_once_and_the_old_listener_serves_on(path: Path) -> None:
    balancer = await path.balancer([WEB])
    await path.until(balancer, "provisioned")
    await path.balancer([RANGES], key=balancer)
    text = await parked(path, balancer, 2)
    assert "allowedCIDRs" in text
    for _ in range(3):
        await path.passed(balancer)
    assert await path.writes(balancer) == ["loadbalancer.create", "listener.update not_supported"]
    assert path.named("listener", balancer)["web-listener"]["provisioning_status"] == "ACTIVE"
    await path.balancer([WEB], key=balancer)
    await path.until(balancer, "provisioned", generation=3)
    assert len(await path.writes(balancer)) == 2


async def test_oc_10_two_refused_creates_at_once_leave_no_port(path: Path) -> None:
    ports = path.vip_ports()
    both = [await path.balancer([RANGES]), await path.balancer([PROXY])]
    for balancer in both:
        await parked(path, balancer)
    assert path.vip_ports() == ports


async def test_inv_263_inv_275_inv_277_ref_059_edits_are_carried_out_in_place(path: Path) -> None:
    """GIVEN a load balancer WHEN members change, a listener is renamed and another one goes THEN the same load balancer has it so."""
    balancer = await path.balancer([WEB, DNS])
    await path.until(balancer, "provisioned")
    [first] = path.named("load_balancer", balancer).values()
    fewer = {**WEB, "pool": {**POOL, "members": POOL["members"][:1]}}
    await path.balancer([fewer, DNS], key=balancer)
    await path.until(balancer, "provisioned", generation=2)
    assert (
        path.number(
            f"SELECT count(*) FROM member m JOIN pool p ON m.pool_id = p.id WHERE p.name LIKE 'lb-{balancer.id}%'"
        )
        == 1
    )
    await path.balancer([{**fewer, "name": "www"}], key=balancer)
    await path.until(balancer, "provisioned", generation=3)
    assert set(path.named("listener", balancer)) == {"www-listener"}
    assert set(path.named("pool", balancer)) == {"www-pool"}
    assert set(path.named("health_monitor", balancer)) == {"www-monitor"}
    [last] = path.named("load_balancer", balancer).values()
    assert last["id"] == first["id"]
    writes = await path.writes(balancer)
    assert writes[:2] == ["loadbalancer.create", "member.batch"]
    assert sorted(writes[2:]) == sorted(
        [
            *(["listener.delete"] * 2),
            *("pool.create", "listener.create", "member.batch", "healthmonitor.create"),
            *(["pool.delete"] * 2),
        ]
    )


@pytest.mark.parametrize("moment", ["before", "amid"])
@pytest.mark.parametrize("victim", ["api", "provider", "loadbalancer"])
async def test_the_end_of_any_process_on_the_way_only_delays(path: Path, victim: str, moment: str) -> None:
    """GIVEN a load balancer that is asked for WHEN a process is dead by then, or is killed while it is made, and comes back
    THEN there is one load balancer, as wanted, and none of its ports stays when it goes."""
    ports = path.vip_ports()
    if moment == "before":
        await path.kill(victim)
    balancer = await path.balancer([WEB], publicIP=True)
    if moment == "amid":

        async def begun() -> bool:
            return len(path.vip_ports()) > len(ports)

        await eventually(begun)
        await path.kill(victim)
        path.sql("UPDATE vip_port_claim SET deadline = now()")  # the request has ended with its process
    await asyncio.sleep(1)
    await path.revive(victim)
    await path.until(balancer, "provisioned")
    assert len(path.named("load_balancer", balancer)) == 1
    await path.delete(balancer)
    await path.until(balancer, "gone")
    assert path.pending() == []

    async def nothing_left() -> bool:
        """The port of a request that ended with the API's process goes when its deadline is over."""
        return path.vip_ports() == ports

    await eventually(nothing_left)
