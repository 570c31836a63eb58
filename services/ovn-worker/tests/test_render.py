"""Rendering: what the recorded scenarios do not show, and properties over any tree and any region."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead_ovn.balancer import BadTree, balancer_of
from roadstead_ovn.facts import Facts, FloatingIP, Network, Subnet
from roadstead_ovn.health import health_of
from roadstead_ovn.render import render
from roadstead_ovn.rows import (
    FOUR_TUPLE,
    LoadBalancerRow,
    SwitchPort,
    Wanted,
    canonical_row,
    differing,
    settled,
)

from .shapes import SIXTH, facts, listener, machine, member, monitor, monitor_port, pool, regions, tree, trees


def rendered(wish: dict[str, Any], region: Facts | None = None) -> Wanted:
    return render(balancer_of(wish), region or facts())


def only_row(wish: dict[str, Any], region: Facts | None = None) -> LoadBalancerRow:
    (row,) = rendered(wish, region).rows
    return row


def test_our_revision_is_in_the_row_and_no_reason_to_write_it() -> None:
    row = only_row(tree())
    assert row.external_ids["roadstead:revision"] == "7"
    later = replace(row, external_ids={**row.external_ids, "roadstead:revision": "8"})
    assert differing(row, later) == ()


def test_nothing_is_wanted_of_a_load_balancer_that_is_to_go() -> None:
    wish = tree([listener()], [pool()], {"loadbalancers": {"lb": ["PENDING_DELETE", "ONLINE"]}})
    assert rendered(wish) == Wanted()


def test_what_is_to_go_leaves_no_trace() -> None:
    going = {"objects": {i: ["PENDING_DELETE", "ONLINE"] for i in ("pool", "m2")}}
    ids = only_row(tree([listener()], [pool(members=[member("m2", "192.0.2.10")])], going)).external_ids
    assert ids["listener_listener"] == "80:"
    assert not [key for key in ids if key.startswith("pool_") or key == "neutron:member_status"]


def test_oc_13_a_mapping_stays_while_any_pool_uses_it() -> None:
    pools = [
        pool(p, [member(f"{p}-m", "192.0.2.10", port)], healthmonitor=monitor(f"{p}-hm"))
        for p, port in (("p1", 80), ("p2", 443))
    ]
    wish = tree([listener("l1", 80, "p1"), listener("l2", 443, "p2")], pools)
    mapping = {"192.0.2.10": "vm-192.0.2.10:192.0.2.200"}
    assert only_row(wish).ip_port_mappings == mapping
    going = {"pools": {"p1": ["PENDING_DELETE", "ONLINE"]}}
    row = only_row({**wish, "statuses": going})
    assert row.ip_port_mappings == mapping
    assert [check.vip for check in row.health_checks] == ["192.0.2.5:443"]
    assert not only_row(
        {**wish, "statuses": {"pools": {**going["pools"], "p2": ["PENDING_DELETE", ""]}}}
    ).ip_port_mappings


def test_oc_14_a_floating_ip_has_the_entries_and_checks_of_its_vip() -> None:
    wish = tree([listener()], [pool(members=[member("m", "192.0.2.10")], healthmonitor=monitor())])
    before = only_row(wish)
    floating = facts(floating_ips=(FloatingIP("203.0.113.20", "vip", "192.0.2.5"),))
    row = only_row(wish, floating)
    assert row.vips["203.0.113.20:80"] == row.vips["192.0.2.5:80"]
    assert [check.vip for check in row.health_checks] == ["192.0.2.5:80", "203.0.113.20:80"]
    changed = only_row(wish, facts(floating_ips=(FloatingIP("203.0.113.21", "vip", "192.0.2.5"),)))
    assert "203.0.113.20" not in repr(changed)
    assert only_row(wish) == before


def test_oc_15_families_keep_apart_and_ipv6_has_brackets() -> None:
    members = [member("m4", "192.0.2.10"), member("m6", "2001:0db8:0:0::10", subnet="sub-6")]
    wish = tree([listener()], [pool(members=members, healthmonitor=monitor())], additional_vips=[SIXTH])
    row = only_row(wish)
    assert row.vips == {"192.0.2.5:80": "192.0.2.10:80", "[2001:db8::5]:80": "[2001:db8::10]:80"}
    assert row.ip_port_mappings == {
        "192.0.2.10": "vm-192.0.2.10:192.0.2.200",
        "[2001:db8::10]": "vm-2001:db8::10:[2001:db8::c8]",
    }


def test_oc_08_a_member_without_subnet_has_that_of_the_vip() -> None:
    row = only_row(tree([listener()], [pool(members=[member("m", "192.0.2.10", subnet=None)])]))
    assert row.external_ids["pool_pool"] == "member_m_192.0.2.10:80_sub-a"
    assert json.loads(row.external_ids["ls_refs"]) == {"neutron-net-a": 2}


def test_oc_16_a_port_that_serves_something_else_keeps_its_addresses() -> None:
    ours = machine("vip", "sub-a", "192.0.2.5", "front", "")
    assert rendered(tree(), facts(ports=(ours,))).switch_ports == {"vip": SwitchPort(())}
    assert rendered(tree(), facts(ports=(replace(ours, device_owner="compute:nova"),))).switch_ports == {}


def test_a_router_is_left_with_the_last_member_behind_it() -> None:
    alone = facts(router_ports=facts().router_ports[1:])  # the router joins the other network only
    wish = tree([listener()], [pool(members=[member("m", "198.51.100.10", subnet="sub-b")])])
    row = only_row(wish, alone)
    assert set(row.routers) == {"neutron-r1"}
    assert set(row.switches) == {"neutron-net-a", "neutron-net-b"}
    row = only_row({**wish, "statuses": {"members": {"m": ["PENDING_DELETE", ""]}}}, alone)
    assert set(row.routers) == set()
    assert set(row.switches) == {"neutron-net-a"}


def test_a_member_on_two_networks_with_one_address_has_one_stable_mapping() -> None:
    twin = Subnet("sub-z", "net-z", "192.0.2.0/24")
    base = facts()
    region = facts(
        networks=(*base.networks, Network("net-z")),
        subnets=(*base.subnets, twin),
        ports=(
            *base.ports,
            replace(machine("other", "sub-a", "192.0.2.10"), network_id="net-z"),
            replace(
                monitor_port("sub-a", "192.0.2.201"),
                id="probe-z",
                name="ovn-lb-hm-sub-z",
                fixed_ips=(("sub-z", "192.0.2.201"),),
            ),
        ),
    )
    alone = only_row(
        tree(
            [listener()],
            [pool(members=[member("m1", "192.0.2.10", 80, "sub-z")], healthmonitor=monitor())],
        ),
        region,
    )
    assert alone.ip_port_mappings == {"192.0.2.10": "other:192.0.2.201"}
    members = [member("m1", "192.0.2.10", 80, "sub-z"), member("m2", "192.0.2.10", 81, "sub-a")]
    row = only_row(tree([listener()], [pool(members=members, healthmonitor=monitor())]), region)
    assert row.ip_port_mappings == {"192.0.2.10": "vm-192.0.2.10:192.0.2.200"}


def test_a_vip_whose_network_has_no_switch_is_told() -> None:
    region = facts(networks=())
    assert rendered(tree(), region).lacking == {"net-a"}
    balancer = balancer_of(tree())
    assert balancer is not None
    assert health_of(balancer, region).load_balancer == "ERROR"


def test_what_the_pools_disagree_about_stays_as_it_is_found() -> None:
    pools = [pool("p1", lb_algorithm="SOURCE_IP"), pool("p2")]
    row = only_row(tree([], pools))
    assert row.selection_fields == FOUR_TUPLE
    two = replace(row, selection_fields=("ip_src", "ip_dst"))
    assert differing(row, two) == ()
    assert differing(row, replace(row, selection_fields=("tp_src",))) == ("selection_fields",)
    agreed = only_row(tree([], pools[1:]))
    assert differing(agreed, replace(agreed, selection_fields=("ip_dst", "ip_src"))) == ("selection_fields",)


def test_order_in_texts_is_no_difference_and_content_is() -> None:
    members = [member("m1", "192.0.2.10"), member("m2", "192.0.2.11")]
    row = only_row(tree([listener()], [pool(members=members)]))
    turned = {**row.external_ids, "pool_pool": ",".join(reversed(row.external_ids["pool_pool"].split(",")))}
    other = replace(
        row, external_ids=turned, vips={k: ",".join(reversed(v.split(","))) for k, v in row.vips.items()}
    )
    assert differing(row, other) == ()
    assert differing(row, replace(row, vips={"192.0.2.5:80": "192.0.2.10:80"})) == ("vips",)
    status = json.dumps({"m1": "ERROR", "m2": "NO_MONITOR"})
    damaged = replace(row, external_ids={**row.external_ids, "neutron:member_status": status})
    assert differing(row, damaged) == ("external_ids",)
    assert differing(row, replace(row, external_ids={**row.external_ids, "ls_refs": "{"})) == (
        "external_ids",
    )
    assert differing(row, replace(row, switches=frozenset())) == ("switches",)


def two_protocols(subnet: str, address: str) -> dict[str, Any]:
    pools = [pool("t", [member("m1", address, subnet=subnet)]), pool("u", protocol="UDP")]
    return tree([listener("l1", default="t"), listener("l2", 53, "u", protocol="UDP")], pools)


def test_a_row_that_was_copied_from_another_hangs_where_that_one_did() -> None:
    region = facts(router_ports=facts().router_ports[1:])
    wish = two_protocols("sub-b", "198.51.100.10")
    first, second = rendered(wish, region).rows
    assert (first.protocol, second.protocol) == ("tcp", "udp")
    assert set(second.switches) == {"neutron-net-a"}
    copied = replace(
        second,
        external_ids={
            **second.external_ids,
            "ls_refs": json.dumps({"neutron-net-a": 1, "neutron-net-b": 1}),
            "lr_ref": "neutron-r1",
        },
        switches=first.switches,
        routers=first.routers,
    )
    assert differing(second, copied) == ()
    assert json.loads(settled(second, copied).external_ids["ls_refs"]) == {
        "neutron-net-a": 1,
        "neutron-net-b": 1,
    }
    left = rendered({**wish, "statuses": {"members": {"m1": ["PENDING_DELETE", ""]}}}, region).rows[1]
    assert differing(left, copied) == ("external_ids", "routers", "switches")


def test_further_rows_count_the_vip_once_and_either_may_be_the_first() -> None:
    wish = two_protocols("sub-b", "198.51.100.10")
    wish["loadbalancer"]["additional_vips"] = [SIXTH]
    first, second = rendered(wish).rows
    counts = [json.loads(row.external_ids["ls_refs"])["neutron-net-a"] for row in (first, second)]
    assert counts == [2, 1]
    other = json.dumps({"neutron-net-a": 2})
    found = replace(second, external_ids={**second.external_ids, "ls_refs": other})
    assert settled(second, found).external_ids["ls_refs"] == other


def test_the_longest_affinity_of_a_protocol_counts() -> None:
    kept = [{"type": "SOURCE_IP", "persistence_timeout": seconds} for seconds in (60, 500, 70)]
    row = only_row(tree([], [pool(f"p{n}", session_persistence=k) for n, k in enumerate(kept)]))
    assert row.options == {"affinity_timeout": "500"}
    assert differing(row, replace(row, options={"affinity_timeout": "60"})) == ()
    assert differing(row, replace(row, options={"affinity_timeout": "61"})) == ("options",)
    assert differing(row, replace(row, options={})) == ("options",)


def test_a_floating_ip_of_another_address_of_the_port_is_not_ours() -> None:
    wish = tree([listener()], [pool(members=[member("m", "192.0.2.10")])])
    region = facts(floating_ips=(FloatingIP("203.0.113.20", "vip", "192.0.2.6"),))
    assert only_row(wish, region) == only_row(wish)


def test_counts_of_networks_are_right_whenever_a_row_is_written() -> None:
    row = only_row(tree([listener()], [pool(members=[member("m1", "198.51.100.10", subnet="sub-b")])]))
    for count in (2, 5):
        wrong = {**row.external_ids, "ls_refs": json.dumps({"neutron-net-a": 1, "neutron-net-b": count})}
        found = replace(row, external_ids=wrong)
        assert differing(row, found) == ()
        assert json.loads(settled(row, found).external_ids["ls_refs"])["neutron-net-b"] == 1


# ------------------------------------------------------------ properties


def shuffled(wish: dict[str, Any], random: Random) -> dict[str, Any]:
    def turned(items: list[Any]) -> list[Any]:
        return random.sample(items, len(items))

    model = wish["loadbalancer"]
    pools = [{**p, "members": turned(p["members"])} for p in model["pools"]]
    return {
        **wish,
        "loadbalancer": {**model, "listeners": turned(model["listeners"]), "pools": turned(pools)},
    }


@settings(max_examples=300, deadline=None)
@given(trees(), regions(), st.randoms(use_true_random=False))
def test_rendering_is_total_repeatable_and_blind_to_order(
    wish: dict[str, Any], region: Facts, random: Random
) -> None:
    first = rendered(wish, region)
    assert rendered(wish, region) == first
    turned = Facts(
        tuple(random.sample(region.networks, len(region.networks))),
        tuple(random.sample(region.subnets, len(region.subnets))),
        tuple(random.sample(region.ports, len(region.ports))),
        tuple(random.sample(region.router_ports, len(region.router_ports))),
        tuple(random.sample(region.floating_ips, len(region.floating_ips))),
        tuple(random.sample(region.monitors, len(region.monitors))),
    )
    assert rendered(shuffled(wish, random), turned) == first
    balancer = balancer_of(wish)
    assert balancer is not None
    assert health_of(balancer_of(shuffled(wish, random)) or balancer, turned) == health_of(balancer, region)


@settings(max_examples=300, deadline=None)
@given(trees(), regions())
def test_what_was_rendered_is_found_without_a_difference(wish: dict[str, Any], region: Facts) -> None:
    rows = rendered(wish, region).rows
    assert len({row.protocol for row in rows}) == len(rows) >= 1
    for row in rows:
        assert differing(row, row) == ()
        assert canonical_row(settled(row, row)) == canonical_row(row)


@settings(max_examples=300, deadline=None)
@given(trees(), trees(), regions())
def test_writing_what_differs_leaves_nothing_to_write(
    wish: dict[str, Any], earlier: dict[str, Any], region: Facts
) -> None:
    found = {row.protocol: row for row in rendered(earlier, region).rows}
    for row in rendered(wish, region).rows:
        if row.protocol in found:
            written = settled(row, found[row.protocol])
            assert differing(row, written) == ()
            assert settled(row, written) == written


@settings(max_examples=300, deadline=None)
@given(trees(), regions())
def test_addresses_lead_to_enabled_members_of_their_own_family_alone(
    wish: dict[str, Any], region: Facts
) -> None:
    balancer = balancer_of(wish)
    assert balancer is not None
    enabled = {m.address for p in balancer.pools if p.enabled for m in p.members if m.enabled}
    for row in render(balancer, region).rows:
        assert balancer.enabled or not row.vips
        for endpoint, servers in row.vips.items():
            for server in servers.split(","):
                assert server.startswith("[") == endpoint.startswith("[")
                assert server.rpartition(":")[0].strip("[]") in enabled


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["loadbalancer", "loadbalancer_id", "listeners", "pools", "statuses", "pool_id", "members"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["loadbalancer", "loadbalancer_id", "revision", "statuses"]), _json))
def test_what_is_no_tree_is_told_in_one_line(value: dict[str, Any]) -> None:
    try:
        balancer_of(value)
    except BadTree as error:
        assert "\n" not in str(error)  # noqa: PT017 - a tree that happens to be one is as good


def test_a_damaged_tree_names_the_place() -> None:
    with pytest.raises(BadTree, match="protocol_port is no whole number"):
        balancer_of(tree([listener(port="80")]))  # type: ignore[arg-type]  # that is what is wrong with it
    with pytest.raises(BadTree, match="pools is no list"):
        balancer_of(tree(pools={"a": 1}))  # type: ignore[arg-type]  # likewise
