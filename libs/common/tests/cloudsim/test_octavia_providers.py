"""What the simulated Octavia providers refuse."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import octavia_providers as providers

LISTENER = {"protocol": "TCP", "protocol_port": 80, "timeout_client_data": 60000}
MEMBER = {"address": "10.0.0.5", "protocol_port": 8080, "subnet_id": "s"}
POOL: dict[str, Any] = {"protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT", "members": [MEMBER]}


def test_ovn_takes_a_plain_tcp_tree_with_timeouts() -> None:
    monitor = {"healthmonitor": {"type": "TCP"}}
    assert providers.refuse_tree("ovn", [LISTENER], [{**POOL, **monitor}]) is None


@pytest.mark.parametrize(
    ("listener", "pool", "words"),
    [
        ({"allowed_cidrs": ["10.0.0.0/8"]}, {}, "does not support allowed_cidrs option"),
        ({"protocol": "HTTP"}, {}, "does not support HTTP protocol"),
        ({}, {"lb_algorithm": "ROUND_ROBIN"}, "does not support ROUND_ROBIN algorithm"),
        ({}, {"protocol": "PROXYV2"}, "does not support PROXYV2 protocol"),
        ({}, {"session_persistence": {"type": "HTTP_COOKIE"}}, "HTTP_COOKIE session persistence"),
        ({}, {"healthmonitor": {"type": "HTTP"}}, "HTTP health monitor type"),
        ({}, {"members": [{**MEMBER, "monitor_port": 1}]}, "different member monitor address or port"),
    ],
)
def test_ovn_refuses_what_amphora_takes(listener: dict[str, Any], pool: dict[str, Any], words: str) -> None:
    tree = [{**LISTENER, **listener}], [{**POOL, **pool}]
    assert words in (providers.refuse_tree("ovn", *tree) or "")
    assert providers.refuse_tree("amphora", *tree) is None


def test_ovn_takes_cleared_allowed_cidrs() -> None:
    assert providers.refuse_listener("ovn", {**LISTENER, "allowed_cidrs": []}) is None


def test_ovn_member_without_subnet_must_be_inside_the_vip_subnet() -> None:
    bare = {"address": "10.0.0.5", "protocol_port": 1}
    assert providers.refuse_member("ovn", bare, "10.0.0.0/24") is None
    assert "Subnet is required" in (providers.refuse_member("ovn", bare, "10.9.0.0/24") or "")
    assert providers.refuse_member("amphora", bare, None) is None


def test_vip_ports_carry_the_mark_of_their_provider() -> None:
    assert providers.vip_port("ovn", "x") == providers.VipPort("ovn-lb-vip-x", "ovn-lb:vip")
    assert providers.vip_port("amphora", "x").owner == "Octavia"
