"""The canonical form of listeners, pools and monitors: rendering, reading, comparing."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.loadbalancer.tests.world import BALANCER, DNS, NAME, WEB, spec_of

from roadstead_loadbalancer.loadbalancer.tree import (
    SeenListener,
    SeenMonitor,
    SeenPool,
    Tree,
    create_body,
    differences,
    render,
    seen_listener,
    seen_monitor,
    seen_pool,
)

WANTED = render(BALANCER, spec_of(), "SOURCE_IP_PORT")


def body(**changes: Any) -> dict[str, Any]:
    spec = spec_of(**changes)
    return create_body(NAME, "subnet", spec, render(BALANCER, spec, "SOURCE_IP_PORT"))


def listener(changes: dict[str, Any], pool: dict[str, Any] | None = None) -> dict[str, Any]:
    """The create body of one listener."""
    wish = {**WEB, **changes, "pool": {**WEB["pool"], **(pool or {})}}
    found: dict[str, Any] = body(listeners=[wish])["listeners"][0]
    return found


def echoed(**changes: Any) -> Tree:
    """What Octavia would answer to a create of that spec."""
    listeners, pools, monitors = [], [], []
    for number, wish in enumerate(body(**changes)["listeners"]):
        pool = wish["default_pool"]
        ident = f"pool-{number}"
        listeners.append(seen_listener({"id": f"l-{number}", "default_pool_id": ident, **wish}))
        pools.append(seen_pool({"id": ident, **pool}, pool["members"]))
        if "healthmonitor" in pool:
            monitors.append(
                seen_monitor({"id": f"m-{number}", "pools": [{"id": ident}], **pool["healthmonitor"]})
            )
    return Tree(tuple(listeners), tuple(pools), tuple(monitors))


def test_inv_265_the_whole_tree_goes_out_under_its_names() -> None:
    assert body() == {
        "name": NAME,
        "description": NAME,
        "vip_subnet_id": "subnet",
        "listeners": [
            {
                "name": f"{NAME}-web-listener",
                "protocol": "TCP",
                "protocol_port": 80,
                "timeout_client_data": 60000,
                "timeout_member_data": 60000,
                "default_pool": {
                    "name": f"{NAME}-web-pool",
                    "protocol": "TCP",
                    "lb_algorithm": "SOURCE_IP_PORT",
                    "members": [
                        {"address": "192.168.10.200", "protocol_port": 8080},
                        {"address": "192.168.10.201", "protocol_port": 8080},
                    ],
                    "healthmonitor": {
                        "name": f"{NAME}-web-monitor",
                        "type": "TCP",
                        "delay": 10,
                        "timeout": 5,
                        "max_retries": 2,
                        "max_retries_down": 3,
                    },
                },
            },
            {
                "name": f"{NAME}-dns-listener",
                "protocol": "UDP",
                "protocol_port": 53,
                "default_pool": {
                    "name": f"{NAME}-dns-pool",
                    "protocol": "UDP",
                    "lb_algorithm": "SOURCE_IP_PORT",
                    "members": [],
                    "healthmonitor": {
                        "name": f"{NAME}-dns-monitor",
                        "type": "UDP-CONNECT",
                        "delay": 10,
                        "timeout": 5,
                        "max_retries": 2,
                        "max_retries_down": 2,
                    },
                },
            },
        ],
    }


def test_a_requested_address_goes_along_in_either_spelling() -> None:
    assert body(requestedVIPAddress="192.168.10.9")["vip_address"] == "192.168.10.9"
    assert body(vipAddress="192.168.10.9")["vip_address"] == "192.168.10.9"


def test_inv_284_proxy_protocol_is_a_proxyv2_pool() -> None:
    assert listener({}, {"proxyProtocolV2": True})["default_pool"]["protocol"] == "PROXYV2"


def test_inv_285_without_it_the_pool_is_tcp() -> None:
    assert listener({}, {"proxyProtocolV2": False})["default_pool"]["protocol"] == "TCP"


def test_inv_283_a_udp_health_check_is_udp_connect() -> None:
    made = body(listeners=[DNS])["listeners"][0]
    assert made["default_pool"]["healthmonitor"]["type"] == "UDP-CONNECT"


def test_inv_282_udp_bears_neither_timeout_nor_proxy_protocol() -> None:
    made = body(listeners=[DNS])["listeners"][0]
    assert not {"timeout_client_data", "timeout_member_data"} & made.keys()
    assert made["default_pool"]["protocol"] == "UDP"


def test_inv_274_an_idle_timeout_goes_to_both_sides_in_milliseconds() -> None:
    made = listener({"idleTimeoutSeconds": 90})
    assert (made["timeout_client_data"], made["timeout_member_data"]) == (90000, 90000)


def test_ranges_go_out_sorted_and_not_at_all_when_open() -> None:
    assert listener({"allowedCIDRs": ["10.0.0.0/8", "1.2.3.4/8"]})["allowed_cidrs"] == [
        "1.0.0.0/8",
        "10.0.0.0/8",
    ]
    assert "allowed_cidrs" not in listener({"allowedCIDRs": []})


def test_no_health_check_means_no_monitor() -> None:
    assert "healthmonitor" not in listener({}, {"healthCheck": None})["default_pool"]


# ---------------------------------------------------------------- comparison

LISTENERS = st.builds(
    lambda protocol, cidrs, idle, proxy, members, check: {
        "protocol": protocol,
        "allowedCIDRs": cidrs,
        **({"idleTimeoutSeconds": idle} if protocol == "tcp" and idle else {}),
        "pool": {"proxyProtocolV2": proxy and protocol == "tcp", "members": members, "healthCheck": check},
    },
    st.sampled_from(["tcp", "udp"]),
    st.none()
    | st.lists(st.sampled_from(["10.0.0.0/8", "10.1.2.3/8", "0.0.0.0/0", "192.0.2.7/32"]), max_size=3),
    st.none() | st.integers(1, 86400),
    st.booleans(),
    st.lists(
        st.builds(
            lambda last, port: {"address": f"192.168.10.{last}", "port": port},
            st.integers(2, 9),
            st.integers(1, 9),
        ),
        max_size=4,
        unique_by=lambda m: (m["address"], m["port"]),
    ),
    st.none() | st.just({}) | st.just({"intervalSeconds": 30, "healthyThreshold": 9}),
)


@given(st.lists(LISTENERS, min_size=1, max_size=3))
def test_k15_what_is_written_and_read_back_has_no_difference(listeners: list[dict[str, Any]]) -> None:
    named = [{"name": f"l{n}", "port": n + 1, **each} for n, each in enumerate(listeners)]
    wanted = render(BALANCER, spec_of(listeners=named), "SOURCE_IP_PORT")
    assert differences(wanted, echoed(listeners=named)) == ()


def changed(tree: Tree, kind: str, **changes: Any) -> Tree:
    parts = getattr(tree, kind)
    return replace(tree, **{kind: (replace(parts[0], **changes), *parts[1:])})


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("listeners", {"cidrs": frozenset({"10.0.0.0/8"})}, f"allowedCIDRs of {NAME}-web-listener"),
        ("listeners", {"timeouts": (60000, 50000)}, f"idleTimeoutSeconds of {NAME}-web-listener"),
        ("listeners", {"pool": None}, f"default pool of {NAME}-web-listener"),
        ("listeners", {"port": 81}, f"protocol of {NAME}-web-listener"),
        ("pools", {"algorithm": "ROUND_ROBIN"}, f"balancing method of {NAME}-web-listener"),
        ("pools", {"protocol": "PROXYV2"}, f"proxyProtocolV2 of {NAME}-web-listener"),
        ("pools", {"members": frozenset()}, f"members of {NAME}-web-listener"),
        ("monitors", {"facts": ("TCP", 10, 5, 2, 9)}, f"healthCheck of {NAME}-web-listener"),
        ("monitors", {"pool": "another"}, f"{NAME}-web-monitor is missing"),
    ],
)
def test_a_difference_is_named_in_the_words_of_the_spec(
    kind: str, changes: dict[str, Any], expected: str
) -> None:
    assert differences(WANTED, changed(echoed(), kind, **changes)) == (expected,)


def test_a_part_of_another_name_is_left_over() -> None:
    tree = echoed()
    more = replace(tree, pools=(*tree.pools, replace(tree.pools[0], name=f"{NAME}-old-pool")))
    assert differences(WANTED, more) == (f"{NAME}-old-pool is left over",)


def test_a_check_that_is_no_longer_wanted_is_left_over() -> None:
    wanted = render(
        BALANCER, spec_of(listeners=[{**WEB, "pool": {**WEB["pool"], "healthCheck": None}}, DNS]), "X"
    )
    assert f"{NAME}-web-monitor is left over" in differences(wanted, echoed())


def test_members_and_ranges_are_sets() -> None:
    turned = {**WEB, "pool": {**WEB["pool"], "members": WEB["pool"]["members"][::-1]}}
    assert differences(render(BALANCER, spec_of(listeners=[turned, DNS]), "SOURCE_IP_PORT"), echoed()) == ()


def test_an_empty_cloud_lacks_everything() -> None:
    assert differences(WANTED, Tree()) == (
        f"{NAME}-web-listener is missing",
        f"{NAME}-dns-listener is missing",
    )


def test_reading_takes_nulls_for_nothing() -> None:
    assert seen_listener({"id": "l", "allowed_cidrs": None}) == SeenListener("l", "", "", "", 0)
    assert seen_pool({"id": "p"}, []) == SeenPool("p", "", "", "", "")
    assert seen_monitor({"id": "m", "pools": None}) == SeenMonitor("m", "", "", ("", 0, 0, 0, 0))
