"""What a load balancer's spec must fulfil."""

from typing import Any

import pytest
from pydantic import ValidationError
from services.loadbalancer.tests.world import (
    BALANCER,
    DNS,
    NETWORK,
    PREFIX,
    REGION,
    TENANT,
    WEB,
    resource_of,
    spec_of,
)

from roadstead.reconcile.kind import Metadata
from roadstead.reconcile.views import Directory
from roadstead.subjects import Key
from roadstead.testing.passbench import view
from roadstead_loadbalancer.loadbalancer.validate import at_apply, validate

KEY = Key(REGION, TENANT, "loadbalancer", BALANCER)


def codes(new: dict[str, Any], old: dict[str, Any] | None = None, **metadata: Any) -> list[str]:
    about = Metadata(**{"name": "front", "organizationId": "acme", "networkId": NETWORK, **metadata})
    stored = resource_of(old) if old is not None else None
    return [p.code for p in validate(spec_of(**new), about, stored, KEY)]


def web(pool: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {"listeners": [{**WEB, **changes, "pool": {**WEB["pool"], **(pool or {})}}]}


def dns(pool: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {"listeners": [{**DNS, **changes, "pool": {**DNS["pool"], **(pool or {})}}]}


def test_a_good_spec_has_no_problem() -> None:
    assert codes({}) == []


def test_the_network_must_be_named() -> None:
    assert codes({}, networkId=None) == ["NETWORK_MISSING"]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Web"},
        {"name": "-web"},
        {"name": "web-"},
        {"name": "w" * 64},
        {"name": "web\n"},
        {"port": 0},
        {"port": 65536},
        {"protocol": "http"},
        {"allowedCIDRs": ["fd00::/8"]},
        {"allowedCIDRs": ["here"]},
        {"idleTimeoutSeconds": 0},
        {"idleTimeoutSeconds": 86401},
        {"pool": {"members": [{"address": "fd00::1", "port": 1}]}},
        {"pool": {"members": [{"address": "192.168.10.5", "port": 0}]}},
        {"pool": {"healthCheck": {"intervalSeconds": 301}}},
        {"pool": {"healthCheck": {"healthyThreshold": 11}}},
    ],
)
def test_a_field_out_of_its_bounds_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        spec_of(listeners=[{**WEB, **changes}])


def test_at_least_one_listener_and_an_ipv4_address() -> None:
    wrong: list[dict[str, Any]] = [
        {"listeners": []},
        {"requestedVIPAddress": "fd00::1"},
        {"requestedVIPAddress": "x"},
    ]
    for changes in wrong:
        with pytest.raises(ValidationError):
            spec_of(**changes)


def test_names_and_ports_are_used_once() -> None:
    twice = {"listeners": [WEB, {**WEB, "port": 81}]}
    assert codes(twice) == ["LISTENER_REPEATED"]
    same_port = {"listeners": [WEB, {**WEB, "name": "web2"}]}
    assert codes(same_port) == ["LISTENER_PORT_REPEATED"]
    other_protocol = {"listeners": [WEB, {**DNS, "port": 80}]}
    assert codes(other_protocol) == []


def test_inv_282_udp_takes_neither_idle_timeout_nor_proxy_protocol() -> None:
    assert codes(dns(idleTimeoutSeconds=5)) == ["UDP_IDLE"]
    assert codes(dns({"proxyProtocolV2": True})) == ["UDP_PROXY"]


def test_members_are_named_once_whatever_their_spelling() -> None:
    members = [{"address": "192.168.10.5", "port": 80}] * 2
    assert codes(web({"members": members})) == ["MEMBER_REPEATED"]


def test_a_health_check_answers_before_the_next_one() -> None:
    assert codes(web({"healthCheck": {"intervalSeconds": 5, "timeoutSeconds": 5}})) == ["HEALTH_TIMEOUT"]
    assert codes(web({"healthCheck": {"intervalSeconds": 6, "timeoutSeconds": 5}})) == []


def test_inv_280_protocol_and_port_of_a_name_cannot_change() -> None:
    assert codes(web(port=81), web()) == ["LISTENER_PORT_IMMUTABLE"]
    udp = {"listeners": [{**DNS, "name": "web", "port": 80}]}
    assert codes(udp, web()) == ["LISTENER_PROTOCOL_IMMUTABLE"]


def test_inv_281_proxy_protocol_of_a_name_cannot_change() -> None:
    assert codes(web({"proxyProtocolV2": True}), web()) == ["LISTENER_PROXY_IMMUTABLE"]


def test_everything_else_of_a_listener_may_change_and_names_may_come_and_go() -> None:
    changes = web({"members": [], "healthCheck": None}, idleTimeoutSeconds=5, allowedCIDRs=["10.0.0.0/8"])
    assert codes(changes, web()) == []
    assert codes({"listeners": [{**WEB, "name": "new"}]}, web()) == []
    assert codes({"listeners": [DNS, WEB]}, {"listeners": [WEB, DNS]}) == []


def test_the_requested_address_cannot_change() -> None:
    assert codes({"requestedVIPAddress": "192.168.10.9"}, {}) == ["VIP_IMMUTABLE"]
    assert codes({}, {"requestedVIPAddress": "192.168.10.9"}) == ["VIP_IMMUTABLE"]
    assert codes({"vipAddress": "192.168.10.9"}, {"requestedVIPAddress": "192.168.10.9"}) == []


@pytest.mark.parametrize(
    ("address", "prefix", "expected"),
    [
        ("192.168.10.9", PREFIX, []),
        ("192.168.11.9", PREFIX, ["VIP_OUTSIDE"]),
        (None, PREFIX, []),
        ("192.168.11.9", None, []),
        ("192.168.11.9", "nonsense", []),
    ],
)
def test_ref_057_a_requested_address_lies_inside_the_network(
    address: str | None, prefix: str | None, expected: list[str]
) -> None:
    """While the prefix is not known here the first pass tells."""
    directory = Directory()
    if prefix is not None:
        directory.put(view("network", NETWORK, REGION, TENANT, spec={"prefix": prefix}))
    about = Metadata(name="front", networkId=NETWORK)
    found = at_apply(KEY, about, spec_of(requestedVIPAddress=address), None, directory, {})
    assert [p.code for p in found] == expected
