"""What the API does in the real Neutron and learns from the real Keystone; the provider `plain` leaves VIP ports to the API."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.octavia.building import member, removed
from tests.octavia.client import Client
from tests.octavia.people import Home

from .reference import ReferenceService

NOWHERE = "11111111-2222-4333-8444-555555555555"


async def test_a_vip_port_is_made_and_removed_in_neutron(
    user: Client, ground: ReferenceService, red: Home
) -> None:
    lb = await user.load_balancer(
        vip_subnet_id=red.subnet, additional_vips=[{"subnet_id": red.subnet6}], provider="plain", name="vip"
    )
    (port,) = ground.ports(device_id=f"lb-{lb['id']}")
    assert port["name"] == f"octavia-lb-{lb['id']}"
    assert (port["id"], port["project_id"], port["device_owner"]) == (
        lb["vip_port_id"],
        red.project,
        "Octavia",
    )
    assert sorted(ip["ip_address"] for ip in port["fixed_ips"]) == sorted(
        [lb["vip_address"], lb["additional_vips"][0]["ip_address"]]
    )
    # Its owner cannot take it from the load balancer's subnet by removing the network.
    with pytest.raises(RuntimeError, match="409"):
        ground.people.admin("DELETE", f"/network/v2.0/networks/{red.network}")
    await removed(user, lb["id"])
    assert ground.ports(device_id=f"lb-{lb['id']}") == []


async def test_a_port_that_the_user_brought_stays(user: Client, ground: ReferenceService, red: Home) -> None:
    wanted = {
        "network_id": red.network,
        "project_id": red.project,
        "name": "brought",
        "fixed_ips": [{"subnet_id": red.subnet}],
    }
    port = ground.people.admin("POST", "/network/v2.0/ports", {"port": wanted})["port"]
    lb = await user.load_balancer(vip_port_id=port["id"], provider="plain")
    assert lb["vip_port_id"] == port["id"]
    assert lb["vip_address"] in [ip["ip_address"] for ip in port["fixed_ips"]]
    await removed(user, lb["id"])
    assert [one["name"] for one in ground.ports(id=port["id"])] == ["brought"]
    ground.people.admin("DELETE", f"/network/v2.0/ports/{port['id']}")


@pytest.mark.parametrize("field", ["vip_subnet_id", "vip_network_id", "vip_port_id"])
async def test_oc_07_what_belongs_to_others_is_what_does_not_exist(
    user: Client, ground: ReferenceService, red: Home, blue: Home, field: str
) -> None:
    wanted = {"network_id": blue.network, "project_id": blue.project, "name": "theirs"}
    port = ground.people.admin("POST", "/network/v2.0/ports", {"port": wanted})["port"]["id"]
    theirs = {"vip_subnet_id": blue.subnet, "vip_network_id": blue.network, "vip_port_id": port}[field]
    before = ground.rows()
    answers = []
    for value in (theirs, NOWHERE):
        body = {"loadbalancer": {field: value, "provider": "plain"}}
        reply = await user.call("POST", "loadbalancers", body)
        answers.append((reply.status, reply.fault.replace(value, "ID")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 400
    assert ground.rows() == before
    ground.people.admin("DELETE", f"/network/v2.0/ports/{port}")


@pytest.mark.parametrize("address", ["192.0.2.77", "taken"])
async def test_an_address_that_neutron_refuses_leaves_nothing(
    user: Client, ground: ReferenceService, red: Home, address: str
) -> None:
    """Outside of the subnet, or somebody's already."""
    made = None
    if address == "taken":
        wanted = {"network_id": red.network, "project_id": red.project, "name": "first"}
        made = ground.people.admin("POST", "/network/v2.0/ports", {"port": wanted})["port"]
        address = next(ip["ip_address"] for ip in made["fixed_ips"] if ip["subnet_id"] == red.subnet)
    before, ports = ground.rows(), len(ground.ports(network_id=red.network))
    body = {"loadbalancer": {"vip_subnet_id": red.subnet, "vip_address": address, "provider": "plain"}}
    reply = await user.call("POST", "loadbalancers", body)
    assert 400 <= reply.status < 500, reply
    assert ground.rows() == before
    assert len(ground.ports(network_id=red.network)) == ports
    if made is not None:
        ground.people.admin("DELETE", f"/network/v2.0/ports/{made['id']}")


@pytest.fixture
def no_more_ports(ground: ReferenceService, red: Home) -> Iterator[None]:
    where = f"/network/v2.0/quotas/{red.project}"
    used = len(ground.ports(project_id=red.project))
    ground.people.admin("PUT", where, {"quota": {"port": used}})
    yield
    ground.people.admin("DELETE", where)


async def test_neutrons_quota_is_told_to_the_user(
    no_more_ports: None, user: Client, ground: ReferenceService, red: Home
) -> None:
    before = ground.rows()
    body = {"loadbalancer": {"vip_subnet_id": red.subnet, "provider": "plain"}}
    reply = await user.call("POST", "loadbalancers", body)
    assert 400 <= reply.status < 500, reply
    assert "uota" in reply.fault, reply
    assert ground.rows() == before


async def test_a_floating_ip_leads_to_the_vip(user: Client, ground: ReferenceService, red: Home) -> None:
    make = ground.people.admin
    (external,) = make("GET", "/network/v2.0/networks?name=external")["networks"]
    wanted = {
        "name": "red",
        "project_id": red.project,
        "external_gateway_info": {"network_id": external["id"]},
    }
    router = make("POST", "/network/v2.0/routers", {"router": wanted})["router"]["id"]
    make("PUT", f"/network/v2.0/routers/{router}/add_router_interface", {"subnet_id": red.subnet})
    lb = await user.load_balancer(vip_subnet_id=red.subnet, provider="plain")
    ask = {"floating_network_id": external["id"], "port_id": lb["vip_port_id"], "project_id": red.project}
    ip = make("POST", "/network/v2.0/floatingips", {"floatingip": ask})["floatingip"]
    assert ip["fixed_ip_address"] == lb["vip_address"]
    await removed(user, lb["id"])
    shown = make("GET", f"/network/v2.0/floatingips/{ip['id']}")["floatingip"]
    assert shown["port_id"] is None
    make("DELETE", f"/network/v2.0/floatingips/{ip['id']}")
    make("PUT", f"/network/v2.0/routers/{router}/remove_router_interface", {"subnet_id": red.subnet})
    make("DELETE", f"/network/v2.0/routers/{router}")


async def test_security_groups_and_member_subnets_are_looked_up_as_the_user(
    user: Client, ground: ReferenceService, red: Home, blue: Home
) -> None:
    lb = (await user.load_balancer(vip_subnet_id=red.subnet))["id"]
    pool = await user.made(
        "pool", "pools", lb, loadbalancer_id=lb, protocol="TCP", lb_algorithm="ROUND_ROBIN"
    )
    path = f"pools/{pool['id']}/members"
    theirs = await user.call("POST", path, {"member": member("192.0.2.1", subnet_id=blue.subnet)})
    nobodys = await user.call("POST", path, {"member": member("192.0.2.1", subnet_id=NOWHERE)})
    assert (theirs.status, theirs.fault.replace(blue.subnet, NOWHERE)) == (nobodys.status, nobodys.fault)
    assert theirs.status == 400
    mine = await user.made("member", path, lb, **member("10.0.0.77", subnet_id=red.subnet))
    assert mine["subnet_id"] == red.subnet
    await removed(user, lb)


async def test_a_token_that_was_taken_back_is_refused(ground: ReferenceService, red: Home) -> None:
    token = ground.people.token_of(red)
    client = Client(ground.url, token)
    assert (await client.call("GET", "loadbalancers")).status == 200
    ground.people.ask(
        "DELETE", "/identity/v3/auth/tokens", None, {"X-Auth-Token": token, "X-Subject-Token": token}
    )
    async with asyncio.timeout(10):
        while (reply := await client.call("GET", "loadbalancers")).status != 401:
            assert reply.status == 200
            await asyncio.sleep(0.2)
    client.close()


def test_a_token_of_the_whole_system_is_answered_as_by_the_original(ground: ReferenceService) -> None:
    """It is served, though it belongs to no project."""
    token = system_token(ground.auth_url, ground.admin_password)
    ours, originals = (
        answer_to(url, token) for url in (ground.url, ground.cloud.address_of("load-balancer"))
    )
    assert ours == originals == (200, {"loadbalancers": [], "loadbalancers_links": []})


def system_token(auth_url: str, password: str) -> str:
    user = {"name": "admin", "domain": {"id": "default"}, "password": password}
    login = {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"system": {"all": True}},
    }
    request = urllib.request.Request(
        f"{auth_url}/auth/tokens",
        json.dumps({"auth": login}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.headers["X-Subject-Token"])


def answer_to(url: str, token: str) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{url}/v2/lbaas/loadbalancers?name=nobodys", headers={"X-Auth-Token": token}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.status, json.load(answer)


async def test_a_cloud_without_barbican_refuses_certificates(
    user: Client, ground: ReferenceService, red: Home
) -> None:
    """The reference cloud has no Barbican: what is never there is told apart from a fault."""
    lb = (await user.load_balancer(vip_subnet_id=red.subnet))["id"]
    body = {
        "loadbalancer_id": lb,
        "protocol": "TERMINATED_HTTPS",
        "protocol_port": 443,
        "default_tls_container_ref": f"http://127.0.0.1:9311/v1/containers/{NOWHERE}",
    }
    reply = await user.call("POST", "listeners", {"listener": body})
    assert (reply.status, reply.fault[:31]) == (400, "Could not retrieve certificate:")
    assert await user.listed(f"listeners?loadbalancer_id={lb}") == []
    await removed(user, lb)
