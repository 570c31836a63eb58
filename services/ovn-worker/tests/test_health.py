"""How things stand: the cases that no recorded scenario has, and what must hold for all."""

from typing import Any

import pytest
from hypothesis import given, settings

from roadstead_ovn.balancer import Balancer, balancer_of
from roadstead_ovn.facts import Facts, ServiceMonitor
from roadstead_ovn.health import Health, health_of, records

from .shapes import facts, listener, member, monitor, pool, regions, tree, trees


def read(wish: dict[str, Any]) -> Balancer:
    balancer = balancer_of(wish)
    assert balancer is not None
    return balancer


def health(wish: dict[str, Any], *probes: ServiceMonitor) -> Health:
    return health_of(read(wish), facts(monitors=probes))


def probe(address: str, status: str, port: int = 80) -> ServiceMonitor:
    return ServiceMonitor(f"vm-{address}", address, port, "tcp", status)


WATCHED = tree(
    [listener()],
    [pool(members=[member("m1", "192.0.2.10"), member("m2", "192.0.2.11")], healthmonitor=monitor())],
)


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("online", "online", "ONLINE"),
        ("", "online", "ONLINE"),
        ("offline", "online", "DEGRADED"),
        ("error", "online", "DEGRADED"),
        ("offline", "error", "ERROR"),
    ],
)
def test_probes_reach_up_to_the_load_balancer(first: str, second: str, whole: str) -> None:
    found = health(WATCHED, probe("192.0.2.10", first), probe("192.0.2.11", second))
    assert (found.pools["pool"], found.listeners["listener"], found.load_balancer) == (whole,) * 3


def test_a_probe_counts_for_its_own_port_alone() -> None:
    found = health(WATCHED, probe("192.0.2.10", "offline", 8080))
    assert found.members == {"m1": "ONLINE", "m2": "ONLINE"}


def test_a_probe_counts_for_every_pool_with_that_backend() -> None:
    pools = [
        pool(p, [member(f"{p}-m", "192.0.2.10")], healthmonitor=monitor(f"{p}-hm")) for p in ("p1", "p2")
    ]
    found = health(tree([listener(default="p1")], pools), probe("192.0.2.10", "offline"))
    assert found.members == {"p1-m": "ERROR", "p2-m": "ERROR"}
    assert found.load_balancer == "ERROR"


def test_a_failure_of_one_protocol_shows_in_the_whole() -> None:
    pools = [pool("t"), pool("u", [member("m", "203.0.113.9")], protocol="UDP", healthmonitor=monitor())]
    found = health(tree([listener("l1", default="t"), listener("l2", 53, "u", protocol="UDP")], pools))
    assert (found.listeners["l2"], found.load_balancer) == ("ERROR", "ERROR")


def test_nobody_looks_after_members_of_sctp_pools() -> None:
    wish = tree([], [pool(members=[member("m", "203.0.113.9")], protocol="SCTP", healthmonitor=monitor())])
    assert health(wish).members == {"m": "NO_MONITOR"}


def test_a_pool_that_no_listener_uses_harms_nobody() -> None:
    wish = tree(
        [listener(default=None)], [pool(members=[member("m", "203.0.113.9")], healthmonitor=monitor())]
    )
    found = health(wish)
    assert (found.pools["pool"], found.load_balancer) == ("ERROR", "ONLINE")


@pytest.mark.parametrize(
    ("stored", "listeners", "standing"),
    [
        (["PENDING_CREATE", "OFFLINE"], [listener()], "ONLINE"),
        (["PENDING_CREATE", "OFFLINE"], [], "OFFLINE"),
        (["ACTIVE", "ONLINE"], [listener()], "ONLINE"),
        (["ACTIVE", "OFFLINE"], [listener()], "OFFLINE"),
        (["ACTIVE", "ERROR"], [listener()], "OFFLINE"),
    ],
)
def test_an_empty_pool_is_online_until_it_was_emptied(
    stored: list[str], listeners: list[dict[str, Any]], standing: str
) -> None:
    wish = tree(listeners, [pool()], {"pools": {"pool": stored}})
    assert health(wish).pools == {"pool": standing}


def test_a_pool_that_loses_its_last_member_is_offline() -> None:
    statuses = {"pools": {"pool": ["ACTIVE", "ONLINE"]}, "members": {"m": ["PENDING_DELETE", "ONLINE"]}}
    wish = tree([listener()], [pool(members=[member("m", "192.0.2.10")])], statuses)
    assert health(wish).pools == {"pool": "OFFLINE"}


def test_a_monitor_without_its_port_is_in_error() -> None:
    region = facts(ports=tuple(p for p in facts().ports if not p.name.startswith("ovn-lb-hm-")))
    found = health_of(read(WATCHED), region)
    assert found.monitors == {"hm": "ERROR"}
    assert found.members == {"m1": "ONLINE", "m2": "ONLINE"}


def test_the_message_names_every_object_once() -> None:
    message = records(health(WATCHED), read(WATCHED))
    assert message["members"] == [
        {"id": "m1", "operating_status": "ONLINE"},
        {"id": "m2", "operating_status": "ONLINE"},
    ]
    assert list(message) == ["members", "healthmonitors", "pools", "listeners", "loadbalancers"]


@settings(max_examples=300, deadline=None)
@given(trees(), regions())
def test_every_object_that_shall_be_there_has_a_status(wish: dict[str, Any], region: Facts) -> None:
    balancer = read(wish)
    found = health_of(balancer, region)
    assert set(found.listeners) == {x.id for x in balancer.listeners}
    assert set(found.pools) == {x.id for x in balancer.pools}
    assert set(found.members) == {m.id for p in balancer.pools for m in p.members}
    assert set(found.monitors) == {p.monitor.id for p in balancer.pools if p.monitor}
    for one in balancer.listeners:
        assert one.enabled == (found.listeners[one.id] != "OFFLINE")
    for one_pool in balancer.pools:
        for one_member in one_pool.members:
            assert one_member.enabled == (found.members[one_member.id] != "OFFLINE")
