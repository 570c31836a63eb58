"""Connections that really arrive: everything is asked of the API, and seen by clients behind OVN's switches."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .lbaas import Json
from .machines import Machine, within
from .stack import Stack

MONITOR = {"type": "TCP", "delay": 1, "timeout": 1, "max_retries": 1, "max_retries_down": 2}
LOST_IN = 20.0  # seconds within which a dead server is out of all tables


@dataclass
class Street:
    """Two servers on the front network and one on the back, each with TCP 8080 and UDP 5353, and clients here, there and outside."""

    stack: Stack
    client: Machine
    far_client: Machine
    outsider: Machine
    servers: dict[str, Machine]

    def member_values(self, name: str, port: int, v6: bool = False) -> Json:
        machine = self.servers[name]
        place = self.stack.scene.back if name == "s3" else self.stack.scene.front
        return {
            "address": machine.address6 if v6 else machine.address,
            "protocol_port": port,
            "subnet_id": place.subnet6 if v6 else place.subnet,
        }

    def balancer(self, *, v6: bool = False, **values: Any) -> Json:
        front = self.stack.scene.front
        return self.stack.user.balancer(vip_subnet_id=front.subnet6 if v6 else front.subnet, **values)

    def serve(
        self, lb: Json, port: int, protocol: str, names: tuple[str, ...], v6: bool = False
    ) -> tuple[str, dict[str, str]]:
        """A listener with a pool of these servers; the pool's id and the members' ids by server."""
        user = self.stack.user
        listener = user.make("listeners", lb["id"], protocol=protocol, protocol_port=port)
        pool = user.make(
            "pools", lb["id"], listener_id=listener["id"], protocol=protocol, lb_algorithm="SOURCE_IP_PORT"
        )["id"]
        backend = 8080 if protocol == "TCP" else 5353
        members = {
            name: user.member(lb["id"], pool, **self.member_values(name, backend, v6))["id"] for name in names
        }
        self.stack.ovn.settled()
        return pool, members


@pytest.fixture(scope="module")
def street(stack: Stack) -> Street:
    region = stack.scene
    servers = {
        name: region.machine(name, region.front if name != "s3" else region.back)
        for name in ("s1", "s2", "s3")
    }
    for machine in servers.values():
        machine.serve(8080)
        machine.serve(5353, "udp")
    made = Street(
        stack,
        region.machine("client", region.front),
        region.machine("far", region.back),
        region.machine("outsider", region.outside, v6=False),
        servers,
    )
    stack.ovn.settled()
    return made


@pytest.fixture
def all_agree(stack: Stack) -> Iterator[None]:
    """After the test no load balancer differs from what a fresh rendering says."""
    yield
    assert stack.differences() == {}


@pytest.mark.usefixtures("all_agree")
def test_tcp_and_udp_share_an_address_and_reach_servers_on_two_networks(street: Street) -> None:
    lb = street.balancer(name="both")
    street.serve(lb, 80, "TCP", ("s1", "s2", "s3"))
    street.serve(lb, 80, "UDP", ("s1", "s3"))
    for client in (street.client, street.far_client):
        assert set(client.ask(lb["vip_address"], 80, 40)) == {"s1", "s2", "s3"}
        assert set(client.ask(lb["vip_address"], 80, 30, "udp")) == {"s1", "s3"}
    street.stack.user.destroy(lb["id"])
    street.stack.ovn.settled()
    assert not {"s1", "s2", "s3"} & set(street.client.ask(lb["vip_address"], 80, 2))
    assert street.stack.rows_of(lb["id"]) == []


@pytest.mark.usefixtures("all_agree")
def test_tcp_and_udp_over_ipv6(street: Street) -> None:
    lb = street.balancer(v6=True, name="six")
    street.serve(lb, 80, "TCP", ("s1", "s3"), v6=True)
    street.serve(lb, 53, "UDP", ("s2", "s3"), v6=True)
    for client in (street.client, street.far_client):
        assert set(client.ask(lb["vip_address"], 80, 30)) == {"s1", "s3"}
        assert set(client.ask(lb["vip_address"], 53, 30, "udp")) == {"s2", "s3"}
    street.stack.user.destroy(lb["id"])


@pytest.mark.usefixtures("all_agree")
def test_what_is_switched_off_gets_no_connection_and_comes_back(street: Street) -> None:
    user, ovn, client = street.stack.user, street.stack.ovn, street.client
    lb = street.balancer(name="switches")
    pool, members = street.serve(lb, 80, "TCP", ("s1", "s2"))
    user.change(lb["id"], f"pools/{pool}/members/{members['s1']}", "member", admin_state_up=False)
    ovn.settled()
    assert set(client.ask(lb["vip_address"], 80, 20)) == {"s2"}
    user.change(lb["id"], f"pools/{pool}/members/{members['s1']}", "member", admin_state_up=True)
    user.change(lb["id"], f"loadbalancers/{lb['id']}", "loadbalancer", admin_state_up=False)
    ovn.settled()
    assert not {"s1", "s2"} & set(client.ask(lb["vip_address"], 80, 2))
    assert user.operating(lb["id"])[lb["id"]] == "OFFLINE"
    user.change(lb["id"], f"loadbalancers/{lb['id']}", "loadbalancer", admin_state_up=True)
    ovn.settled()
    assert set(client.ask(lb["vip_address"], 80, 30)) == {"s1", "s2"}
    user.destroy(lb["id"])


@pytest.mark.usefixtures("all_agree")
def test_a_connection_outlives_changes_of_its_load_balancer_and_of_others(street: Street) -> None:
    user = street.stack.user
    lb = street.balancer(name="kept")
    pool, _ = street.serve(lb, 80, "TCP", ("s1",))
    with street.client.connect(lb["vip_address"], 80) as connection:
        assert connection.server == "s1"
        user.member(lb["id"], pool, **street.member_values("s2", 8080))
        user.make("listeners", lb["id"], protocol="TCP", protocol_port=81, default_pool_id=pool)
        other = street.balancer(name="another")
        street.serve(other, 80, "TCP", ("s2",))
        street.stack.ovn.settled()
        assert connection.echoes()
        assert set(street.client.ask(lb["vip_address"], 81, 30)) == {"s1", "s2"}
    user.destroy(other["id"])
    user.destroy(lb["id"])


@pytest.mark.usefixtures("all_agree")
def test_a_killed_server_is_left_out_and_shown_and_comes_back(street: Street) -> None:
    user, client = street.stack.user, street.client
    lb = street.balancer(name="watched")
    pool, members = street.serve(lb, 80, "TCP", ("s1", "s2"))
    monitor = user.make("healthmonitors", lb["id"], pool_id=pool, **MONITOR)

    def standing(name: str) -> str | None:
        return user.operating(lb["id"]).get(members[name])

    assert within(LOST_IN, lambda: (standing("s1"), standing("s2")) == ("ONLINE", "ONLINE"))
    street.servers["s2"].stop_serving(8080)
    try:
        assert within(LOST_IN, lambda: standing("s2") == "ERROR") is not None
        seen = user.operating(lb["id"])
        assert (seen[pool], seen[lb["id"]], seen[members["s1"]]) == ("DEGRADED", "DEGRADED", "ONLINE")
        street.stack.ovn.settled()
        assert set(client.ask(lb["vip_address"], 80, 20)) == {"s1"}
    finally:
        street.servers["s2"].serve(8080)
    assert within(LOST_IN, lambda: standing("s2") == "ONLINE") is not None
    assert within(LOST_IN, lambda: user.operating(lb["id"])[lb["id"]] == "ONLINE") is not None
    street.stack.ovn.settled()
    assert set(client.ask(lb["vip_address"], 80, 30)) == {"s1", "s2"}
    user.drop(lb["id"], f"healthmonitors/{monitor['id']}")
    assert standing("s1") == "NO_MONITOR"
    user.destroy(lb["id"])
    assert street.stack.scene.ports(device_owner="ovn-lb-hm:distributed") == []


@pytest.mark.usefixtures("all_agree")
def test_a_floating_ip_leads_in_from_outside_until_it_is_taken_off(street: Street) -> None:
    region = street.stack.scene
    lb = street.balancer(name="public")
    street.serve(lb, 80, "TCP", ("s1", "s3"))
    floating = region.floating_ip(lb["vip_port_id"])
    outside = floating["floating_ip_address"]
    assert within(10, lambda: f"{outside}:80" in street.stack.vips_of(lb["id"])) is not None
    street.stack.ovn.settled()
    assert set(street.outsider.ask(outside, 80, 30)) == {"s1", "s3"}
    assert set(street.client.ask(lb["vip_address"], 80, 30)) == {"s1", "s3"}
    region.change("floatingip", floating["id"], port_id=None)
    assert within(10, lambda: f"{outside}:80" not in street.stack.vips_of(lb["id"])) is not None
    street.stack.ovn.settled()
    assert not {"s1", "s3"} & set(street.outsider.ask(outside, 80, 2))
    street.stack.user.destroy(lb["id"])
