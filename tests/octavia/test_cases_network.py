"""Cases from fault reports about Neutron: what belongs to others, whole trees, a slow or failing network service."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from .building import member, removed
from .client import Client
from .ground import Ground
from .people import Home

NOWHERE = "11111111-2222-4333-8444-555555555555"
KINDS = ("listeners", "pools")
LIMIT = 4.0  # seconds that Neutron has, in the service of the last tests


@pytest.fixture
def theirs(ground: Ground, blue: Home) -> dict[str, str]:
    """Ids in the project blue that nobody else may use."""
    port = ground.people.admin(
        "POST",
        "/network/v2.0/ports",
        {"port": {"network_id": blue.network, "project_id": blue.project, "name": "front"}},
    )["port"]["id"]
    return {"vip_subnet_id": blue.subnet, "vip_network_id": blue.network, "vip_port_id": port}


@pytest.mark.parametrize("field", ["vip_subnet_id", "vip_network_id", "vip_port_id"])
async def test_oc_07_what_belongs_to_others_is_what_does_not_exist(
    user: Client, ground: Ground, theirs: dict[str, str], blue: Home, field: str
) -> None:
    before, ports = ground.rows(), len(ground.ports(network_id=blue.network))
    mark = ground.cloud.sequence
    answers = []
    for value in (theirs[field], NOWHERE):
        for provider in ("noop", "plain"):
            wanted = {field: value, "provider": provider}
            reply = await user.call("POST", "loadbalancers", {"loadbalancer": wanted})
            answers.append((reply.status, reply.fault.replace(value, "ID")))
    assert len(set(answers)) == 1, answers
    assert answers[0][0] == 400
    assert "not found" in answers[0][1]
    assert ground.rows() == before
    assert len(ground.ports(network_id=blue.network)) == ports
    calls = [c for c in ground.cloud.log.calls(since=mark + 1, service="network") if theirs[field] in c.path]
    assert calls
    assert {c.user_name for c in calls} == {"red"}


async def test_oc_07_other_places_for_ids_of_others(
    user: Client, ground: Ground, red: Home, blue: Home
) -> None:
    lb = (await user.load_balancer(vip_subnet_id=red.subnet))["id"]
    pool = await user.made(
        "pool", "pools", lb, loadbalancer_id=lb, protocol="TCP", lb_algorithm="ROUND_ROBIN"
    )
    path = f"pools/{pool['id']}/members"
    before = ground.rows()
    for theirs, none in ((blue.subnet, NOWHERE),):
        for method, where, body in (
            (
                "POST",
                "loadbalancers",
                {
                    "loadbalancer": {
                        "vip_subnet_id": red.subnet,
                        "additional_vips": [{"subnet_id": "ID"}],
                    }
                },
            ),
            ("POST", path, {"member": member("192.0.2.1", subnet_id="ID")}),
            ("PUT", path, {"members": [member("192.0.2.1", subnet_id="ID")]}),
            (
                "POST",
                "loadbalancers",
                {"loadbalancer": {"vip_subnet_id": red.subnet, "vip_qos_policy_id": "ID"}},
            ),
            (
                "POST",
                "loadbalancers",
                {"loadbalancer": {"vip_subnet_id": red.subnet, "vip_sg_ids": ["ID"], "provider": "plain"}},
            ),
        ):
            said = []
            for value in (theirs, none):
                reply = await user.call(method, where, _with(body, value))
                said.append((reply.status, reply.fault.replace(value, "ID")))
            assert said[0] == said[1]
            assert said[0][0] == 400, said
    assert ground.rows() == before
    await removed(user, lb)


def _with(body: Any, value: str) -> Any:
    if isinstance(body, dict):
        return {k: _with(v, value) for k, v in body.items()}
    if isinstance(body, list):
        return [_with(v, value) for v in body]
    return value if body == "ID" else body


async def test_oc_07_a_qos_policy_is_ones_own_or_shared_in_creations_and_updates(
    user: Client, ground: Ground, red: Home, blue: Home
) -> None:
    def policy(project: str, *, shared: bool = False) -> str:
        wanted = {"policy": {"name": "q", "project_id": project, "shared": shared}}
        return str(ground.people.admin("POST", "/network/v2.0/qos/policies", wanted)["policy"]["id"])

    own, theirs, for_all = policy(red.project), policy(blue.project), policy(blue.project, shared=True)
    lb = (await user.load_balancer(vip_subnet_id=red.subnet, vip_qos_policy_id=own))["id"]
    path = f"loadbalancers/{lb}"
    before = ground.rows()
    for value in (theirs, NOWHERE):
        wanted = {"vip_subnet_id": red.subnet, "vip_qos_policy_id": value}
        for method, where, body in (
            ("POST", "loadbalancers", wanted),
            ("PUT", path, {"vip_qos_policy_id": value}),
        ):
            reply = await user.call(method, where, {"loadbalancer": body})
            assert (reply.status, reply.fault) == (400, f"qos_policy {value} not found."), method
    nonsense: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("POST", "loadbalancers", {"vip_subnet_id": red.subnet, "vip_qos_policy_id": "not-an-id"}),
        ("PUT", path, {"vip_qos_policy_id": 7}),
    )
    for method, where, given in nonsense:
        assert (await user.call(method, where, {"loadbalancer": given})).status == 400
    assert ground.rows() == before
    for allowed in (for_all, None):
        await user.ok("PUT", path, {"loadbalancer": {"vip_qos_policy_id": allowed}})
        assert (await user.active(path))["vip_qos_policy_id"] == allowed
    await removed(user, lb)


async def test_oc_07_what_is_shared_can_be_used_by_all(user: Client, ground: Ground, red: Home) -> None:
    make = ground.people.admin
    shared = make("POST", "/network/v2.0/networks", {"network": {"name": "all", "shared": True}})["network"]
    wanted = {"network_id": shared["id"], "ip_version": 4, "cidr": "10.99.0.0/24"}
    subnet = make("POST", "/network/v2.0/subnets", {"subnet": wanted})["subnet"]["id"]
    lb = await user.load_balancer(vip_subnet_id=subnet, provider="plain")
    (port,) = ground.ports(device_id=f"lb-{lb['id']}")
    assert (port["id"], port["project_id"]) == (lb["vip_port_id"], red.project)
    await removed(user, lb["id"])
    assert ground.ports(device_id=f"lb-{lb['id']}") == []


async def test_oc_08_a_whole_tree_in_one_call_is_shown_whole_and_becomes_active(
    user: Client, ground: Ground, red: Home
) -> None:
    wanted = {
        "name": "whole",
        "vip_subnet_id": red.subnet,
        "listeners": [
            {
                "name": "l",
                "protocol": "TCP",
                "protocol_port": 8080,
                "default_pool": {
                    "name": "used",
                    "protocol": "TCP",
                    "lb_algorithm": "SOURCE_IP_PORT",
                    "healthmonitor": {
                        "name": "h",
                        "type": "TCP",
                        "delay": 5,
                        "timeout": 3,
                        "max_retries": 2,
                    },
                    "members": [member("10.0.0.10"), member("10.0.0.11")],
                },
            }
        ],
        "pools": [{"name": "spare", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}],
    }
    reply = await user.call("POST", "loadbalancers", {"loadbalancer": wanted})
    assert reply.status == 201, reply.body
    told = reply.body["loadbalancer"]
    (listener,) = told["listeners"]
    pools = {pool["name"]: pool for pool in told["pools"]}
    assert set(pools) == {"used", "spare"}
    assert listener["default_pool_id"] == pools["used"]["id"]
    assert pools["used"]["healthmonitor"]["name"] == "h"
    assert [m["address"] for m in pools["used"]["members"]] == ["10.0.0.10", "10.0.0.11"]
    lb = f"loadbalancers/{told['id']}"
    await user.active(lb)
    used = pools["used"]["id"]
    below = [f"loadbalancers?id={told['id']}", *(f"{kind}?loadbalancer_id={told['id']}" for kind in KINDS)]
    below += [f"healthmonitors?pool_id={used}", f"pools/{used}/members"]
    found = [row for path in below for row in (await user.listed(path))]
    assert sorted(row["name"] for row in found) == ["", "", "h", "l", "spare", "used", "whole"]
    assert {row["provisioning_status"] for row in found} == {"ACTIVE"}
    assert ground.pending() == []
    members = await user.listed(f"pools/{used}/members")
    assert red.network not in {m["subnet_id"] for m in members}
    await removed(user, told["id"])
    for table in ("listener", "pool", "member", "health_monitor"):
        assert ground.number(f"SELECT count(*) FROM {table} WHERE project_id = '{red.project}'") == 0


@pytest.fixture(scope="module")
def impatient(make_ground: Callable[..., Ground]) -> Ground:
    """A service that waits for Neutron for a short time only."""
    return make_ground(cloud_timeout=LIMIT)


async def test_oc_09_a_port_that_is_made_too_late_is_removed_and_the_address_is_free(
    impatient: Ground,
) -> None:
    ground = impatient
    client, home = Client(ground.url, ground.people.token_of(ground.people.red)), ground.people.red
    address = "10.0.0.200"
    wanted = {"vip_subnet_id": home.subnet, "vip_address": address, "provider": "plain"}
    ground.fault("slow", "/v2.0/ports$", method="POST", delay=LIMIT + 3)
    started = time.monotonic()
    reply = await client.call("POST", "loadbalancers", {"loadbalancer": wanted})
    took = time.monotonic() - started
    assert reply.status in (500, 503), reply.body
    assert took < LIMIT * 3 + 5, took
    assert ground.number("SELECT count(*) FROM load_balancer WHERE provisioning_status <> 'DELETED'") == 0
    await _no_port_left(ground, home)
    again = await client.load_balancer(**wanted)
    assert again["vip_address"] == address
    await removed(client, again["id"])
    client.close()


async def _no_port_left(ground: Ground, home: Home) -> None:
    """As if the claims' time were over: then the sweep must have removed every port and claim soon."""
    ground.sql("UPDATE vip_port_claim SET deadline = created_at, removing_since = NULL")
    ends = time.monotonic() + 40
    while ground.number("SELECT count(*) FROM vip_port_claim"):
        assert time.monotonic() < ends, ground.sql("SELECT * FROM vip_port_claim")
        await asyncio.sleep(0.5)
    left = [p for p in ground.ports(network_id=home.network) if p["device_id"].startswith("lb-")]
    assert left == []


@pytest.mark.parametrize(
    ("kind", "method", "path", "status"),
    [
        ("status", "GET", "/v2.0/subnets", 503),
        ("status", "GET", "/v2.0/ports", 500),
        ("status", "POST", "/v2.0/ports", 503),
        ("status", "POST", "/v2.0/ports", 409),
        ("no_answer_before", "POST", "/v2.0/ports", 0),
        ("no_answer_after", "POST", "/v2.0/ports", 0),
        ("status_after", "POST", "/v2.0/ports", 502),
    ],
)
async def test_oc_09_a_failing_network_service_leaves_nothing_pending(
    impatient: Ground, kind: str, method: str, path: str, status: int
) -> None:
    ground = impatient
    client, home = Client(ground.url, ground.people.token_of(ground.people.red)), ground.people.red
    wanted = {"vip_subnet_id": home.subnet, "vip_address": "10.0.0.201", "provider": "plain"}
    ground.fault(kind, path, method=method, times=3, status=status or 503)
    try:
        reply = await client.call("POST", "loadbalancers", {"loadbalancer": wanted})
    finally:
        ground.no_faults()
    if reply.status == 201:
        await removed(
            client, (await client.active(f"loadbalancers/{reply.body['loadbalancer']['id']}"))["id"]
        )
    else:
        assert reply.status in (400, 409, 500, 502, 503), reply.body
        assert set(reply.body) == {"faultcode", "faultstring", "debuginfo"}
        live = "SELECT count(*) FROM load_balancer WHERE provisioning_status <> 'DELETED'"
        assert ground.number(live) == 0
    await _no_port_left(ground, home)
    again = await client.load_balancer(**wanted)
    assert again["vip_address"] == "10.0.0.201"
    await removed(client, again["id"])
    client.close()
