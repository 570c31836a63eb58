"""Security groups: implicit rules, equality of rules, the default group, in-use refusals."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Stage, stage
from roadstead.testing.cloudsim.neutron_scene import routed_network

SSH = {
    "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22,
    "remote_ip_prefix": "0.0.0.0/0",
}  # fmt: skip


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    return stage(cloud)


def group(world: Stage, name: str = "web") -> dict[str, Any]:
    made = world.privileged.call(
        "network", "POST", "/v2.0/security-groups", {"security_group": {"name": name}}
    )
    found: dict[str, Any] = made["security_group"]
    return found


def rule(world: Stage, group_id: str, **changes: Any) -> Any:
    body = {"security_group_rule": {**SSH, "security_group_id": group_id, **changes}}
    return world.privileged.send("network", "POST", "/v2.0/security-group-rules", body)


def test_a_new_group_has_the_implicit_egress_rules(world: Stage) -> None:
    rules = group(world)["security_group_rules"]
    assert [(r["direction"], r["ethertype"], r["protocol"], r["remote_ip_prefix"]) for r in rules] == [
        ("egress", "IPv4", None, None),
        ("egress", "IPv6", None, None),
    ]


def test_the_same_rule_again_is_409_also_without_the_prefix(world: Stage) -> None:
    group_id = group(world)["id"]
    made = rule(world, group_id)
    assert made.status == 201
    rule_id = made.body["security_group_rule"]["id"]
    for changes in ({}, {"remote_ip_prefix": None}, {"protocol": "6"}):
        again = rule(world, group_id, **changes)
        assert again.status == 409
        error = again.body["NeutronError"]
        assert error["type"] == "SecurityGroupRuleExists"
        assert error["message"].endswith(f"Rule id is {rule_id}.")
    assert rule(world, group_id, remote_ip_prefix="10.0.0.0/8").status == 201


def test_a_deleted_rule_can_be_made_again_and_a_second_delete_is_404(world: Stage) -> None:
    group_id = group(world)["id"]
    rule_id = rule(world, group_id).body["security_group_rule"]["id"]
    path = f"/v2.0/security-group-rules/{rule_id}"
    world.privileged.call("network", "DELETE", path, want=204)
    assert world.privileged.send("network", "DELETE", path).status == 404
    assert rule(world, group_id).status == 201
    rows = world.principal.call("network", "GET", f"/v2.0/security-group-rules?security_group_id={group_id}")
    assert len(rows["security_group_rules"]) == 3


def test_an_ill_formed_rule_is_400(world: Stage) -> None:
    made = rule(world, group(world)["id"], port_range_max=21)
    assert made.status == 400
    assert made.body["NeutronError"]["type"] == "SecurityGroupInvalidPortRange"
    assert rule(world, "nope").status == 404


def test_the_default_group_appears_at_the_first_look_and_outlives_the_project(world: Stage) -> None:
    assert world.cloud.neutron.dump()["security_groups"] == []
    rows = world.privileged.call("network", "GET", "/v2.0/security-groups?name=default")["security_groups"]
    assert [row["project_id"] for row in rows] == [world.project_id]
    world.privileged.call("network", "GET", "/v2.0/security-groups")
    assert len(world.cloud.neutron.dump()["security_groups"]) == 1, "a second look made another one"
    world.domain.call("identity", "DELETE", f"/v3/projects/{world.project_id}", want=204)
    left = world.admin.call("network", "GET", f"/v2.0/security-groups?project_id={world.project_id}")
    assert [row["name"] for row in left["security_groups"]] == ["default"]


def test_only_the_administrator_removes_the_default_group(world: Stage) -> None:
    rows = world.privileged.call("network", "GET", "/v2.0/security-groups?name=default")["security_groups"]
    path = f"/v2.0/security-groups/{rows[0]['id']}"
    refused = world.privileged.send("network", "DELETE", path)
    assert (refused.status, refused.body["NeutronError"]["type"]) == (409, "SecurityGroupCannotRemoveDefault")
    world.admin.call("network", "DELETE", path, want=204)


def test_a_group_on_a_port_is_in_use_until_the_port_goes(world: Stage) -> None:
    net, group_id = routed_network(world), group(world)["id"]
    body = {"port": {"network_id": net.network, "security_groups": [group_id]}}
    port = world.principal.call("network", "POST", "/v2.0/ports", body)["port"]["id"]
    refused = world.privileged.send("network", "DELETE", f"/v2.0/security-groups/{group_id}")
    assert (refused.status, refused.body["NeutronError"]["type"]) == (409, "SecurityGroupInUse")
    world.principal.call("network", "DELETE", f"/v2.0/ports/{port}")
    world.privileged.call("network", "DELETE", f"/v2.0/security-groups/{group_id}", want=204)
    rules = world.admin.call("network", "GET", f"/v2.0/security-group-rules?security_group_id={group_id}")
    assert rules["security_group_rules"] == []


def test_a_group_with_the_name_default_cannot_be_made(world: Stage) -> None:
    body = {"security_group": {"name": "default"}}
    assert world.privileged.send("network", "POST", "/v2.0/security-groups", body).status == 409


def test_group_quota_counts_the_default_group(world: Stage) -> None:
    group(world)
    quota = {"quota": {"security_group": 2}}
    world.privileged.call("network", "PUT", f"/v2.0/quotas/{world.project_id}", quota)
    refused = world.privileged.send(
        "network", "POST", "/v2.0/security-groups", {"security_group": {"name": "x"}}
    )
    assert (refused.status, refused.body["NeutronError"]["type"]) == (409, "OverQuota")


def test_an_administrators_rule_in_our_group_can_be_read_and_not_deleted(world: Stage) -> None:
    made = group(world)
    body = {"security_group_rule": {**SSH, "security_group_id": made["id"]}}
    foreign = world.admin.call("network", "POST", "/v2.0/security-group-rules", body)["security_group_rule"]
    assert foreign["project_id"] != made["project_id"]
    path = f"/v2.0/security-group-rules/{foreign['id']}"
    assert world.privileged.call("network", "GET", path)["security_group_rule"]["id"] == foreign["id"]
    listed = world.privileged.call("network", "GET", "/v2.0/security-group-rules")["security_group_rules"]
    assert foreign["id"] in {r["id"] for r in listed}
    refused = world.privileged.send("network", "DELETE", path)
    assert refused.status == 404
    assert refused.body["NeutronError"]["type"] == "SecurityGroupRuleNotFound"
    ours = {
        "security_group_rule": {
            **SSH,
            "port_range_min": 23,
            "port_range_max": 23,
            "security_group_id": made["id"],
        }
    }
    ours["security_group_rule"]["project_id"] = made["project_id"]
    named = world.admin.call("network", "POST", "/v2.0/security-group-rules", ours)["security_group_rule"]
    world.privileged.call("network", "DELETE", f"/v2.0/security-group-rules/{named['id']}")
