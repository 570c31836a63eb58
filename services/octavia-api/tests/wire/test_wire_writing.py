"""Answers: their attributes, times, relations and statuses, and that long lists are written fast."""

from datetime import datetime
from typing import Any

import orjson
import pytest

from roadstead_octavia.db.port import RELATIONS, Tree
from roadstead_octavia.resources.shown import full, shown
from roadstead_octavia.wire import write, xml
from roadstead_octavia.wire.trees import stats, statuses

from .recorded import NAMES, RESOURCES

AT = datetime(2026, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - the tables hold UTC without a zone
STATUS = {
    "provisioning_status": "ACTIVE",
    "operating_status": "ONLINE",
    "enabled": True,
    "created_at": AT,
    "updated_at": None,
}
COMMON = {**STATUS, "name": None, "description": None, "project_id": "project"}


def a_row(resource: str, **values: Any) -> dict[str, Any]:
    """A row with every column that the resource's lists know."""
    columns = (column for column in RESOURCES[resource].filters.values() if "." not in column)
    return {**dict.fromkeys(columns), **COMMON, **values}


def a_tree() -> Tree:
    """A load balancer with two listeners, three pools, a policy that redirects, members, a monitor, tags."""
    vip = {
        "ip_address": "192.0.2.1",
        "port_id": "port",
        "subnet_id": "subnet",
        "network_id": "network",
        "qos_policy_id": None,
        "vnic_type": "normal",
    }
    return Tree(
        1,
        1,
        {
            "load_balancer": [a_row("loadbalancer", id="lb", provider=None)],
            "vip": [{"load_balancer_id": "lb", **vip}],
            "vip_security_group": [{"load_balancer_id": "lb", "sg_id": "g2"}, {"load_balancer_id": "lb", "sg_id": "g1"}],
            "additional_vip": [{"load_balancer_id": "lb", "subnet_id": "s2", "ip_address": "192.0.2.9", "port_id": "p2", "network_id": "n"}],
            "listener": [
                a_row("listener", id="l1", load_balancer_id="lb", default_pool_id="a", tls_versions="TLSv1.2,TLSv1.3", alpn_protocols=""),
                a_row("listener", id="l2", load_balancer_id="lb", insert_headers={"X-Forwarded-For": "true"}),
            ],
            "listener_cidr": [{"listener_id": "l1", "cidr": "198.51.100.0/24"}, {"listener_id": "l1", "cidr": "192.0.2.0/24"}],
            "sni": [{"listener_id": "l1", "tls_container_id": "second", "position": 1}, {"listener_id": "l1", "tls_container_id": "first", "position": 0}],
            "pool": [a_row("pool", id=name, load_balancer_id="lb") for name in ("a", "b", "c")],
            "session_persistence": [{"pool_id": "a", "type": "SOURCE_IP", "cookie_name": None, "persistence_timeout": 5, "persistence_granularity": None}],
            "member": [a_row("member", id="m1", pool_id="a", ip_address="192.0.2.21", protocol_port=80)],
            "health_monitor": [a_row("healthmonitor", id="h", pool_id="a", type="HTTP")],
            "l7policy": [
                a_row("l7policy", id="p2", listener_id="l1", position=2, redirect_pool_id="c"),
                a_row("l7policy", id="p1", listener_id="l1", position=1, redirect_pool_id="b"),
                a_row("l7policy", id="p3", listener_id="l2", position=1, redirect_pool_id="a", enabled=False),
            ],
            "l7rule": [a_row("l7rule", id="r", l7policy_id="p1"), a_row("l7rule", id="s", l7policy_id="p3")],
            "tags": [{"resource_id": "lb", "tag": "b"}, {"resource_id": "lb", "tag": "a"}],
        },
    )  # fmt: skip


def answer(name: str, identifier: str) -> dict[str, Any]:
    resource = RESOURCES[name]
    found: dict[str, Any] = write.one(resource, shown(a_tree(), resource.table, identifier))[resource.one]
    return found


def test_oc_01_times_have_no_zone_and_no_fraction_in_every_answer() -> None:
    for name, identifier in (
        ("loadbalancer", "lb"),
        ("listener", "l1"),
        ("pool", "a"),
        ("member", "m1"),
        ("healthmonitor", "h"),
    ):
        resource = RESOURCES[name]
        row = shown(a_tree(), resource.table, identifier)
        alone = orjson.loads(write.dumps(write.one(resource, row)))[resource.one]
        listed = orjson.loads(write.dumps(write.many(resource, [row], [])))[resource.many][0]
        assert alone == listed
        assert (alone["created_at"], alone["updated_at"]) == ("2026-01-02T03:04:05", None)


def test_a_load_balancer_shows_its_vip_and_what_is_below_it() -> None:
    found = answer("loadbalancer", "lb")
    assert found["vip_address"] == "192.0.2.1"
    assert found["vip_sg_ids"] == ["g1", "g2"]
    assert found["additional_vips"] == [{"subnet_id": "s2", "ip_address": "192.0.2.9", "port_id": "p2"}]
    assert (found["listeners"], found["pools"]) == (
        [{"id": "l1"}, {"id": "l2"}],
        [{"id": "a"}, {"id": "b"}, {"id": "c"}],
    )
    assert (found["name"], found["description"], found["tags"]) == ("", "", ["a", "b"])
    assert found["provider"] == "octavia"
    assert found["tenant_id"] == found["project_id"] == "project"


def test_a_listener_shows_lists_that_are_stored_as_text_or_rows() -> None:
    found = answer("listener", "l1")
    assert (found["tls_versions"], found["alpn_protocols"]) == (["TLSv1.2", "TLSv1.3"], [])
    assert found["allowed_cidrs"] == ["192.0.2.0/24", "198.51.100.0/24"]
    assert found["sni_container_refs"] == ["first", "second"]
    assert found["l7policies"] == [{"id": "p1"}, {"id": "p2"}]
    assert (found["insert_headers"], found["loadbalancers"]) == ({}, [{"id": "lb"}])
    empty = answer("listener", "l2")
    assert (empty["allowed_cidrs"], empty["tls_versions"], empty["sni_container_refs"]) == (None, None, [])


def test_a_pool_is_used_by_listeners_as_default_and_through_enabled_policies_with_rules() -> None:
    assert answer("pool", "a")["listeners"] == [{"id": "l1"}]
    assert answer("pool", "b")["listeners"] == [{"id": "l1"}]
    assert answer("pool", "c")["listeners"] == []


def test_a_pool_without_a_monitor_has_no_monitor_attribute() -> None:
    assert answer("pool", "a")["healthmonitor_id"] == "h"
    assert "healthmonitor_id" not in answer("pool", "b")
    pool = RESOURCES["pool"]
    rows = [shown(a_tree(), "pool", name) for name in ("a", "b")]
    listed = write.many(pool, rows, [], ["healthmonitor_id"])["pools"]
    assert listed == [{"healthmonitor_id": "h"}, {}]


def test_fields_keep_what_is_named_and_ignore_what_is_not_known() -> None:
    resource = RESOURCES["pool"]
    row = shown(a_tree(), "pool", "a")
    assert write.one(resource, row, ["id", "nonsense"]) == {"pool": {"id": "a"}}
    assert write.many(resource, [row], None, ["nonsense"]) == {"pools": [{}]}
    assert write.one(resource, row, []) == write.one(resource, row)


def test_links_are_there_only_where_a_list_has_them() -> None:
    assert write.many(RESOURCES["pool"], [], []) == {"pools": [], "pools_links": []}
    assert write.many(RESOURCES["provider"], [], []) == {"providers": []}


def test_a_graph_is_shown_whole() -> None:
    found = write.full(RESOURCES["loadbalancer"], full(a_tree()))["loadbalancer"]
    first, second = found["listeners"]
    assert [policy["id"] for policy in first["l7policies"]] == ["p1", "p2"]
    assert [rule["id"] for rule in first["l7policies"][0]["rules"]] == ["r"]
    assert "loadbalancers" not in first
    pools = {pool["id"]: pool for pool in found["pools"]}
    assert pools["a"]["healthmonitor"]["id"] == "h"
    assert "pools" not in pools["a"]["healthmonitor"]
    assert pools["b"]["healthmonitor"] is None
    assert [member["id"] for member in pools["a"]["members"]] == ["m1"]
    assert not {"healthmonitor_id", "loadbalancers"} & set(pools["a"])
    assert second["insert_headers"] == {"X-Forwarded-For": "true"}


def test_the_status_tree_shows_each_pool_below_each_listener_that_uses_it() -> None:
    tree = statuses(a_tree())["statuses"]["loadbalancer"]
    first, second = tree["listeners"]
    assert [pool["id"] for pool in first["pools"]] == ["a", "b"]
    assert second["pools"] == []
    pool = first["pools"][0]
    assert pool["health_monitor"] == {
        "id": "h",
        "name": "",
        "type": "HTTP",
        "provisioning_status": "ACTIVE",
        "operating_status": "ONLINE",
    }
    assert pool["members"] == [
        {"id": "m1", "name": "", "operating_status": "ONLINE", "provisioning_status": "ACTIVE", "address": "192.0.2.21", "protocol_port": 80}
    ]  # fmt: skip
    assert (first["pools"][1]["health_monitor"], first["pools"][1]["members"]) == (None, [])


def test_statistics_that_nobody_reported_are_zero() -> None:
    assert stats({"bytes_in": 5})["stats"] == {
        "bytes_in": 5,
        "bytes_out": 0,
        "active_connections": 0,
        "total_connections": 0,
        "request_errors": 0,
    }


def test_shown_rows_have_the_relations_that_the_database_gives() -> None:
    ids = {
        "load_balancer": "lb",
        "listener": "l1",
        "pool": "a",
        "member": "m1",
        "health_monitor": "h",
        "l7policy": "p1",
        "l7rule": "r",
    }
    tree = a_tree()
    for table, relations in RELATIONS.items():
        row, plain = shown(tree, table, ids[table]), tree.get(table, ids[table])
        assert plain is not None
        assert set(row) - set(plain) == set(relations)


def test_an_object_of_another_tree_is_no_object_of_this_one() -> None:
    with pytest.raises(KeyError, match="pool nobody"):
        shown(a_tree(), "pool", "nobody")


def test_xml_has_an_element_for_each_attribute() -> None:
    row = shown(a_tree(), "listener", "l2")
    fields = [
        "id",
        "name",
        "enabled",
        "insert_headers",
        "tags",
        "created_at",
        "updated_at",
        "admin_state_up",
        "loadbalancers",
    ]
    assert xml.dumps(write.one(RESOURCES["listener"], row, fields)).decode() == (
        "<result><listener><id>l2</id><name /><admin_state_up>true</admin_state_up>"
        "<insert_headers><item><key>X-Forwarded-For</key><value>true</value></item></insert_headers>"
        '<created_at>2026-01-02T03:04:05</created_at><updated_at nil="true" />'
        "<loadbalancers><item><id>lb</id></item></loadbalancers><tags /></listener></result>"
    )


def test_xml_of_a_fault() -> None:
    assert xml.fault("Client", "a < é").decode() == (
        "<error><faultcode>Client</faultcode><faultstring>a &lt; &#233;</faultstring><debuginfo /></error>"
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_attribute_of_an_answer_is_taken_from_a_row(name: str) -> None:
    """No attribute needs a column that the tables do not have: the names are those of the tree or of the list's columns."""
    resource = RESOURCES[name]
    if resource.table in RELATIONS:
        identifiers = {
            "loadbalancer": "lb",
            "listener": "l1",
            "pool": "a",
            "member": "m1",
            "healthmonitor": "h",
            "l7policy": "p1",
            "l7rule": "r",
        }
        row = shown(a_tree(), resource.table, identifiers[name])
    else:
        row = {**dict.fromkeys(resource.filters.values()), "name": "n", "description": None}
    assert list(write.one(resource, row)[resource.one]) == list(resource.shown)
