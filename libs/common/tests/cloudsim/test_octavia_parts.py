"""Listeners, pools, members and health monitors of a standing load balancer."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Stage, stage
from roadstead.testing.cloudsim.neutron_scene import RoutedNetwork, routed_network

ROOT = "/v2/lbaas"


class Scene:
    """A settled load balancer and calls of the principal on it."""

    def __init__(self, world: Stage, net: RoutedNetwork, provider: str) -> None:
        self.world = world
        self.net = net
        body = {"name": "lb", "vip_subnet_id": net.subnet, "provider": provider}
        self.lb = self.made("loadbalancer", "/loadbalancers", **body)

    def made(self, kind: str, path: str, **body: Any) -> str:
        answer = self.world.principal.call("load-balancer", "POST", f"{ROOT}{path}", {kind: body}, want=201)
        self.world.cloud.rest()
        return str(answer[kind]["id"])

    def call(self, method: str, path: str, body: Any = None, want: int | None = None) -> Any:
        return self.world.principal.call("load-balancer", method, f"{ROOT}{path}", body, want=want)

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        response = self.world.principal.send("load-balancer", method, f"{ROOT}{path}", body)
        assert response.status >= 400, response.body
        return response.status, response.body["faultstring"]

    def listener(self, **more: Any) -> str:
        body = {"name": "l", "loadbalancer_id": self.lb, "protocol": "TCP", "protocol_port": 80} | more
        return self.made("listener", "/listeners", **body)

    def pool(self, **more: Any) -> str:
        body = {"name": "p", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"} | more
        if "listener_id" not in body:
            body["loadbalancer_id"] = self.lb
        return self.made("pool", "/pools", **body)

    def members(self, pool: str) -> list[tuple[str, int]]:
        rows = self.call("GET", f"/pools/{pool}/members")["members"]
        return sorted((row["address"], row["protocol_port"]) for row in rows)


@pytest.fixture
def scene() -> Scene:
    cloud = Cloud()
    cloud.clock.freeze()
    world = stage(cloud)
    return Scene(world, routed_network(world), "ovn")


def test_a_taken_listener_port_is_409_but_another_transport_may_have_it(scene: Scene) -> None:
    scene.listener()
    body = {"listener": {"loadbalancer_id": scene.lb, "protocol": "TCP", "protocol_port": 80}}
    assert scene.refused("POST", "/listeners", body) == (
        409,
        "Another Listener on this Load Balancer is already using protocol TCP and protocol_port 80",
    )
    scene.listener(name="u", protocol="UDP")


def test_a_new_part_is_pending_and_locks_the_load_balancer(scene: Scene) -> None:
    body = {"listener": {"name": "l", "loadbalancer_id": scene.lb, "protocol": "TCP", "protocol_port": 80}}
    made = scene.call("POST", "/listeners", body)["listener"]
    assert made["provisioning_status"] == "PENDING_CREATE"
    lb = scene.call("GET", f"/loadbalancers/{scene.lb}")["loadbalancer"]
    assert lb["provisioning_status"] == "PENDING_UPDATE"
    assert scene.refused("DELETE", f"/listeners/{made['id']}")[0] == 409
    scene.world.cloud.rest()
    assert scene.call("GET", f"/listeners/{made['id']}")["listener"]["provisioning_status"] == "ACTIVE"


def test_listener_timeouts_change_and_cleared_cidrs_are_taken_by_ovn(scene: Scene) -> None:
    listener = scene.listener()
    change = {"timeout_client_data": 60000, "timeout_member_data": 60000, "allowed_cidrs": []}
    made = scene.call("PUT", f"/listeners/{listener}", {"listener": change}, want=200)["listener"]
    assert (made["timeout_client_data"], made["timeout_member_data"], made["allowed_cidrs"]) == (
        60000,
        60000,
        None,
    )
    scene.world.cloud.rest()
    body = {"listener": {"allowed_cidrs": ["10.0.0.0/8"]}}
    assert scene.refused("PUT", f"/listeners/{listener}", body)[0] == 501
    assert scene.refused("PUT", f"/listeners/{listener}", {"listener": {"protocol_port": 81}})[0] == 400


def test_a_pool_becomes_the_default_of_its_listener_once(scene: Scene) -> None:
    listener = scene.listener()
    pool = scene.pool(listener_id=listener)
    assert scene.call("GET", f"/listeners/{listener}")["listener"]["default_pool_id"] == pool
    assert scene.call("GET", f"/pools/{pool}")["pool"]["listeners"] == [{"id": listener}]
    body = {"pool": {"listener_id": listener, "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}
    assert scene.refused("POST", "/pools", body) == (409, "This listener already has a default pool")
    scene.call("DELETE", f"/pools/{pool}", want=204)
    scene.world.cloud.rest()
    assert scene.call("GET", f"/listeners/{listener}")["listener"]["default_pool_id"] is None


def test_pool_and_listener_protocols_must_fit(scene: Scene) -> None:
    listener = scene.listener(protocol="UDP")
    body = {"pool": {"listener_id": listener, "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}
    status, text = scene.refused("POST", "/pools", body)
    assert status == 400
    assert "'TCP' is invalid while the listener protocol is 'UDP'" in text
    body = {"listener": {"default_pool_id": "nope"}}
    assert scene.refused("PUT", f"/listeners/{listener}", body) == (404, "Pool nope not found.")


def test_the_algorithm_of_a_pool_changes_within_what_the_provider_takes(scene: Scene) -> None:
    pool = scene.pool()
    assert scene.refused("PUT", f"/pools/{pool}", {"pool": {"lb_algorithm": "ROUND_ROBIN"}})[0] == 501
    assert scene.refused("PUT", f"/pools/{pool}", {"pool": {"lb_algorithm": "NOPE"}})[0] == 400
    assert scene.refused("PUT", f"/pools/{pool}", {"pool": {"protocol": "UDP"}})[0] == 400
    scene.call("PUT", f"/pools/{pool}", {"pool": {"lb_algorithm": "SOURCE_IP"}}, want=200)
    scene.world.cloud.rest()
    assert scene.call("GET", f"/pools/{pool}")["pool"]["lb_algorithm"] == "SOURCE_IP"


def test_members_are_replaced_as_a_set(scene: Scene) -> None:
    pool, subnet = scene.pool(), scene.net.subnet

    def member(last: int, port: int = 80) -> dict[str, Any]:
        return {"address": f"192.168.10.{last}", "protocol_port": port, "subnet_id": subnet}

    path = f"/pools/{pool}/members"
    scene.call("PUT", path, {"members": [member(5), member(6)]}, want=202)
    scene.world.cloud.rest()
    kept = {row["address"]: row["id"] for row in scene.call("GET", path)["members"]}
    scene.call("PUT", path, {"members": [member(6), member(7, 81)]}, want=202)
    assert scene.refused("PUT", path, {"members": []})[0] == 409
    scene.world.cloud.rest()
    assert scene.members(pool) == [("192.168.10.6", 80), ("192.168.10.7", 81)]
    now = {row["address"]: row["id"] for row in scene.call("GET", path)["members"]}
    assert now["192.168.10.6"] == kept["192.168.10.6"], "an unchanged member was made anew"
    scene.call("PUT", f"{path}?additive_only=true", {"members": [member(8)]}, want=202)
    scene.world.cloud.rest()
    assert len(scene.members(pool)) == 3
    scene.call("PUT", path, {"members": []}, want=202)
    scene.world.cloud.rest()
    assert scene.members(pool) == []


def test_single_members_and_their_refusals(scene: Scene) -> None:
    pool = scene.pool()
    path = f"/pools/{pool}/members"
    body = {"address": "192.168.10.9", "protocol_port": 80, "subnet_id": scene.net.subnet}
    member = scene.made("member", path, **body)
    assert scene.call("GET", f"{path}/{member}")["member"]["operating_status"] == "NO_MONITOR"
    assert scene.refused("POST", path, {"member": body}) == (
        409,
        "Another member on this pool is already using ip 192.168.10.9 on protocol_port 80",
    )
    assert scene.refused("POST", path, {"member": {**body, "address": "x"}})[0] == 400
    assert scene.refused("POST", path, {"member": {**body, "protocol_port": 0}})[0] == 400
    elsewhere = {"address": "10.7.0.9", "protocol_port": 80}
    assert scene.refused("POST", path, {"member": elsewhere})[0] == 501
    scene.call("PUT", f"{path}/{member}", {"member": {"weight": 5}}, want=200)
    scene.world.cloud.rest()
    assert scene.call("GET", f"{path}/{member}")["member"]["weight"] == 5
    scene.call("DELETE", f"{path}/{member}", want=204)
    scene.world.cloud.rest()
    assert scene.refused("DELETE", f"{path}/{member}") == (404, f"Member {member} not found.")


def test_one_monitor_per_pool_of_a_fitting_type(scene: Scene) -> None:
    pool, datagrams = scene.pool(), scene.pool(name="u", protocol="UDP")
    values = {"delay": 5, "timeout": 3, "max_retries": 3}
    monitor = scene.made("healthmonitor", "/healthmonitors", name="m", pool_id=pool, type="TCP", **values)
    seen = scene.call("GET", f"/healthmonitors/{monitor}")["healthmonitor"]
    assert (seen["pools"], seen["max_retries_down"]) == ([{"id": pool}], 3)
    assert scene.call("GET", f"/pools/{pool}")["pool"]["healthmonitor_id"] == monitor

    def ask(**body: Any) -> tuple[int, str]:
        return scene.refused("POST", "/healthmonitors", {"healthmonitor": values | body})

    assert ask(pool_id=pool, type="TCP") == (409, "This pool already has a health monitor")
    assert ask(pool_id=pool, type="UDP-CONNECT")[0] == 400
    assert ask(pool_id=datagrams, type="HTTPS")[0] == 400
    assert ask(pool_id=datagrams, type="HTTP")[0] == 501
    assert ask(pool_id=datagrams, type="UDP-CONNECT", delay=1)[0] == 400
    assert ask(pool_id="nope", type="TCP")[0] == 404
    scene.made("healthmonitor", "/healthmonitors", pool_id=datagrams, type="UDP-CONNECT", **values)
    scene.call("PUT", f"/healthmonitors/{monitor}", {"healthmonitor": {"delay": 9}}, want=200)
    scene.world.cloud.rest()
    assert scene.call("GET", f"/healthmonitors/{monitor}")["healthmonitor"]["delay"] == 9
    scene.call("DELETE", f"/healthmonitors/{monitor}", want=204)
    scene.world.cloud.rest()
    assert scene.call("GET", f"/pools/{pool}")["pool"]["healthmonitor_id"] is None


def test_a_members_operating_status_follows_its_pools_monitor(scene: Scene) -> None:
    pool = scene.pool()
    body = {"address": "192.168.10.9", "protocol_port": 80, "subnet_id": scene.net.subnet}
    member = scene.made("member", f"/pools/{pool}/members", **body)

    def working() -> str:
        return str(scene.call("GET", f"/pools/{pool}/members/{member}")["member"]["operating_status"])

    assert working() == "NO_MONITOR"
    values = {"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 3}
    monitor = scene.made("healthmonitor", "/healthmonitors", pool_id=pool, **values)
    assert working() == "ONLINE"
    scene.call("DELETE", f"/healthmonitors/{monitor}", want=204)
    scene.world.cloud.rest()
    assert working() == "NO_MONITOR"


def test_deleting_a_pool_takes_members_and_monitor_along(scene: Scene) -> None:
    pool = scene.pool()
    body = {"address": "192.168.10.9", "protocol_port": 80, "subnet_id": scene.net.subnet}
    scene.made("member", f"/pools/{pool}/members", **body)
    scene.made(
        "healthmonitor", "/healthmonitors", pool_id=pool, type="TCP", delay=5, timeout=3, max_retries=3
    )
    scene.call("DELETE", f"/pools/{pool}", want=204)
    scene.world.cloud.rest()
    left = scene.world.cloud.octavia.dump()
    assert (left["pools"], left["members"], left["health_monitors"]) == ([], [], [])


def test_foreign_deletes_are_seen_at_once(scene: Scene) -> None:
    listener = scene.listener()
    octavia = scene.world.cloud.octavia
    octavia.foreign("set", scene.lb, {"provisioning_status": "ERROR"})
    assert scene.refused("DELETE", f"/listeners/{listener}")[0] == 409
    octavia.foreign("delete", scene.lb, {})
    assert scene.refused("GET", f"/listeners/{listener}")[0] == 404
    with pytest.raises(KeyError):
        octavia.foreign("delete", scene.lb, {})
