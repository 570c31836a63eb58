"""Cases from fault reports: a port that the user brought (OC-16), and hundreds of members (OC-20)."""

import time
from typing import Any

from .building import member
from .client import Client
from .ground import Ground
from .people import Home

ANSWERED_WITHIN = 2.0


def a_port(ground: Ground, red: Home, address: str) -> dict[str, Any]:
    """A port of the user's, as any tool makes it."""
    wanted = {
        "name": "front",
        "network_id": red.network,
        "project_id": red.project,
        "fixed_ips": [{"subnet_id": red.subnet, "ip_address": address}],
    }
    made = ground.people.admin("POST", "/network/v2.0/ports", {"port": wanted})["port"]
    assert isinstance(made, dict)
    return made


def kept(ground: Ground, port: dict[str, Any]) -> dict[str, Any]:
    """What must not change of the port, as it is now."""
    (now,) = ground.ports(id=port["id"])
    return {
        name: now[name]
        for name in ("id", "name", "device_owner", "device_id", "fixed_ips", "admin_state_up", "project_id")
    }


async def test_oc_16_a_port_the_user_brought_outlives_the_load_balancer_as_it_was(
    user: Client, ground: Ground, red: Home
) -> None:
    for provider, address in (("noop", "10.0.200.1"), ("plain", "10.0.200.2")):
        port = a_port(ground, red, address)
        before = kept(ground, port)
        lb = await user.load_balancer(vip_port_id=port["id"], provider=provider)
        assert (lb["vip_address"], lb["vip_port_id"]) == (address, port["id"])
        owned = ground.sql(f"SELECT octavia_owned FROM vip WHERE load_balancer_id = '{lb['id']}'")
        assert owned == [["f"]]
        assert kept(ground, port) == before
        assert (await user.call("DELETE", f"loadbalancers/{lb['id']}?cascade=true")).status == 204
        assert await user.settled(f"loadbalancers/{lb['id']}") is None
        assert kept(ground, port) == before


async def test_oc_16_a_creation_that_fails_leaves_the_users_port_alone(
    user: Client, ground: Ground, red: Home
) -> None:
    ground.add_provider("picky", refuse="loadbalancer_create:UnsupportedOption")
    port = a_port(ground, red, "10.0.200.3")
    before = kept(ground, port)
    wanted = {"vip_port_id": port["id"], "provider": "picky"}
    reply = await user.call("POST", "loadbalancers", {"loadbalancer": wanted})
    assert reply.status == 501, reply.body
    assert kept(ground, port) == before
    assert ground.number("SELECT count(*) FROM vip_port_claim") == 0


async def test_oc_16_a_port_of_ours_bears_marks_that_keep_it_from_being_attached(
    user: Client, ground: Ground, red: Home
) -> None:
    lb = await user.load_balancer(vip_subnet_id=red.subnet, provider="plain")
    (port,) = ground.ports(id=lb["vip_port_id"])
    assert (port["device_owner"], port["device_id"]) == ("Octavia", f"lb-{lb['id']}")
    # A second load balancer cannot take it either.
    again = await user.call(
        "POST", "loadbalancers", {"loadbalancer": {"vip_port_id": lb["vip_port_id"], "provider": "plain"}}
    )
    assert again.status == 400, again.body
    assert f"is already used by device lb-{lb['id']}" in again.fault
    assert (await user.call("DELETE", f"loadbalancers/{lb['id']}")).status == 204
    assert await user.settled(f"loadbalancers/{lb['id']}") is None
    assert ground.ports(id=lb["vip_port_id"]) == []


async def timed(user: Client, method: str, path: str, body: Any = None) -> float:
    began = time.monotonic()
    reply = await user.call(method, path, body)
    assert reply.status < 300, reply.body
    return time.monotonic() - began


async def test_oc_20_hundreds_of_members_are_answered_at_once_and_a_slow_provider_locks_nothing(
    user: Client, ground: Ground, red: Home
) -> None:
    ground.add_provider("slow", delay="4")
    lb = (await user.load_balancer(vip_subnet_id=red.subnet))["id"]
    pool = {"loadbalancer_id": lb, "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}
    first = await user.made("pool", "pools", lb, **pool)
    members = {"members": [member(f"10.0.{n // 200}.{n % 200 + 1}") for n in range(200)]}
    assert await timed(user, "PUT", f"pools/{first['id']}/members", members) < ANSWERED_WITHIN
    await user.active(f"loadbalancers/{lb}")
    assert len(await user.listed(f"pools/{first['id']}/members")) == 200

    pools = [
        {
            "name": f"p{n}",
            "protocol": "TCP",
            "lb_algorithm": "SOURCE_IP_PORT",
            "members": [member(f"10.0.{n}.{m + 1}") for m in range(50)],
        }
        for n in range(20)
    ]
    wanted = {"vip_subnet_id": red.subnet, "provider": "slow", "pools": pools}
    large = await user.load_balancer(**wanted)
    path = f"loadbalancers/{large['id']}"
    assert await timed(user, "DELETE", f"{path}?cascade=true") < ANSWERED_WITHIN
    # The provider is at work on it for four seconds; nobody waits for a lock meanwhile.
    assert (await user.call("GET", path)).body["loadbalancer"]["provisioning_status"] == "PENDING_DELETE"
    assert await timed(user, "PUT", f"loadbalancers/{lb}", {"loadbalancer": {"name": "n"}}) < ANSWERED_WITHIN
    began = time.monotonic()
    reply = await user.call("PUT", path, {"loadbalancer": {"name": "n"}})
    assert (reply.status, time.monotonic() - began < ANSWERED_WITHIN) == (409, True)
    assert await user.settled(path) is None
    await user.active(f"loadbalancers/{lb}")
    assert (await user.call("DELETE", f"loadbalancers/{lb}?cascade=true")).status == 204
    await user.settled(f"loadbalancers/{lb}")
