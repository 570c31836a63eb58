"""What a provider is told, against everything that the original told one, and the forms that no recording shows."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from roadstead_octavia.provider import models

from .completing import differences
from .recorded import calls, needs_recordings, tree_of, whose
from .trees import LB, LISTENER, POLICY, POOL, a_tree

TABLES = {
    "listener": "listener",
    "pool": "pool",
    "member": "member",
    "health_monitor": "health_monitor",
    "l7policy": "l7policy",
    "l7rule": "l7rule",
    "loadbalancer": "load_balancer",
}
IDS = {"loadbalancer": "loadbalancer_id", "health_monitor": "healthmonitor_id"}


def secrets_of(world: Mapping[str, Any]) -> models.Secrets:
    texts = {
        c["args"][0]: c["returns"]
        for c in world.get("certificates", ())
        if c["method"] == "get_secret" and isinstance(c.get("returns"), str)
    }
    certificates = {}
    for bundle in world.get("bundles", ()):
        if bundle.get("tls_cert"):
            certificates[bundle["tls_ref"]] = bundle["tls_cert"]
        certificates.update(zip(bundle.get("sni_refs", ()), bundle.get("sni_certs") or (), strict=False))
    return models.Secrets(certificates, texts)


def whole(table: str, tree: Any, identifier: str, verb: str, recorded: Any, body: Any, secrets: Any) -> Any:
    if table == "load_balancer":
        if verb == "create":
            flavor, zone = recorded["flavor"], recorded["availability_zone"]
            return models.new_load_balancer(
                tree, flavor=flavor, zone=zone, given=body["loadbalancer"], secrets=secrets
            )
        return models.load_balancer(tree, secrets=secrets)
    if table == "listener":
        return models.listener(tree, identifier, secrets=secrets, new=verb == "create")
    if table == "pool":
        return models.pool(tree, identifier, secrets=secrets)
    return getattr(models, table)(tree, identifier)


@needs_recordings
def test_every_recorded_object_is_told_as_the_original_did_or_more_completely() -> None:
    seen: Counter[str] = Counter()
    wrong = []
    for recorded in calls():
        kind, _, verb = recorded.call["method"].rpartition("_")
        if kind not in TABLES or verb not in ("create", "update", "delete"):
            continue
        table, told = TABLES[kind], recorded.call["args"][0]
        identifier = told[IDS.get(kind, f"{kind}_id")]
        state = recorded.after if verb == "create" else recorded.before
        owner = whose(state, table, identifier) if state is not None else None
        if state is None or owner is None:
            seen["refused"] += 1  # the provider refused a new object, so no row of it was recorded
            continue
        secrets = secrets_of(recorded.world)
        ours = whole(table, tree_of(state, owner), identifier, verb, told, recorded.body, secrets)
        seen["identical" if ours == told else "completed"] += 1
        wrong += [f"{recorded.where} {d}" for d in differences(told, ours)]
    assert not wrong, "\n".join(wrong[:20])
    assert seen["identical"] > 2500
    assert seen["completed"] < 300
    assert seen["refused"] < 20


@needs_recordings
def test_every_recorded_change_is_told_by_its_new_values() -> None:
    seen = 0
    for recorded in calls():
        kind, _, verb = recorded.call["method"].rpartition("_")
        if verb != "update" or kind not in TABLES:
            continue
        new = recorded.call["args"][1]
        table = TABLES[kind]
        identifier = new[IDS.get(kind, f"{kind}_id")]
        set_ = {k: v for k, v in new.items() if k not in models.DATA_FIELDS and k != "$type"}
        if "tls_versions" in set_:
            set_["tls_versions"] = ",".join(set_["tls_versions"])  # as the column holds it
        noise = {"updated_at": None, "provisioning_status": "PENDING_UPDATE", "tags": ["a"]}
        ours = models.changed(table, identifier, set_ | noise, secrets=secrets_of(recorded.world))
        assert not differences(new, ours), recorded.where
        seen += 1
    assert seen > 150


@needs_recordings
def test_every_recorded_batch_names_its_members_as_the_original_did() -> None:
    seen = 0
    for recorded in calls():
        if recorded.call["method"] != "member_batch_update" or recorded.after is None:
            continue
        before = {row["id"] for row in recorded.before.get("member", ())}
        rows = {row["id"]: row for row in recorded.after["member"]}
        given = {(m["address"], m["protocol_port"]): m for m in recorded.body["members"]}
        for told in recorded.call["args"][1]:
            row = rows[told["member_id"]]
            mine = given.get((row["ip_address"], row["protocol_port"]))
            names = mine if mine is not None and row["id"] in before else None
            assert models.batch_member(row, names) == told, recorded.where
            seen += 1
    assert seen > 20


@needs_recordings
def test_every_recorded_vip_is_asked_for_as_the_original_did() -> None:
    seen = 0
    for recorded in calls():
        if recorded.call["method"] != "create_vip_port":
            continue
        load_balancer_id, project, vip, more = recorded.call["args"]
        row = {name.removeprefix("vip_"): value for name, value in vip.items()}
        row["ip_address"] = row.pop("address", None)
        ours = models.vip_port_arguments(load_balancer_id, project, row, more, vip.get("vip_sg_ids", ()))
        assert ours == recorded.call["args"], recorded.where
        seen += 1
    assert seen > 800


def test_d4_the_old_side_of_an_update_has_its_relations() -> None:
    told = models.listener(a_tree(), LISTENER)
    assert told["allowed_cidrs"] == ["192.0.2.0/24"]
    assert told["default_pool"]["pool_id"] == POOL
    assert [r["value"] for p in told["l7policies"] for r in p["rules"]] == ["/x"]
    assert told["sni_container_refs"] == ["sni-1"]
    assert models.l7policy(a_tree(), POLICY)["rules"][0]["$type"] == "L7Rule"
    pool = models.pool(a_tree(), POOL)
    assert pool["session_persistence"]["type"] == "SOURCE_IP"
    assert [m["address"] for m in pool["members"]] == ["192.0.2.9"]
    assert pool["healthmonitor"]["max_retries"] == 2


def test_d1_d2_security_groups_and_qos_reach_the_provider() -> None:
    new = models.new_load_balancer(a_tree())
    assert new["vip_sg_ids"] == ["group-1"]
    assert new["vip_qos_policy_id"] == "qos-1"
    changed = models.changed("load_balancer", LB, {"vip_sg_ids": ["group-2"], "vip_qos_policy_id": None})
    assert changed == {
        "$type": "LoadBalancer",
        "loadbalancer_id": LB,
        "vip_sg_ids": ["group-2"],
        "vip_qos_policy_id": None,
    }


def test_d3_a_graph_is_told_with_its_policies_and_rules() -> None:
    listener = models.new_load_balancer(a_tree())["listeners"][0]
    assert listener["l7policies"][0]["rules"][0]["value"] == "/x"
    assert listener["default_pool"]["listener_id"] == LISTENER


@pytest.mark.parametrize(("enabled", "ruled", "uses"), [(True, True, 1), (False, True, 0), (True, False, 0)])
def test_a_policy_uses_its_pool_only_when_enabled_and_with_a_rule(
    enabled: bool, ruled: bool, uses: int
) -> None:
    tree = a_tree()
    tree.rows["listener"][0]["default_pool_id"] = None  # type: ignore[index]  # the rows of a test are its own
    tree.rows["l7policy"][0]["enabled"] = enabled  # type: ignore[index]  # rows made by this test may be written
    if not ruled:
        tree.rows["l7rule"].clear()  # type: ignore[attr-defined]  # rows made by this test may be written
    assert len(models.listeners_of(tree, POOL)) == uses


def test_key_material_is_told_only_when_given_and_can_be_taken_out_again() -> None:
    secrets = models.Secrets(
        {"cert-1": {"private_key": "KEY"}, "sni-1": {"private_key": "SNI"}}, {"ca": "CA"}
    )
    assert "KEY" not in str(models.load_balancer(a_tree()))
    told = models.load_balancer(a_tree(), secrets=secrets)
    assert told["listeners"][0]["default_tls_container_data"] == {"private_key": "KEY"}
    assert told["listeners"][0]["sni_container_data"] == [{"private_key": "SNI"}]
    bare = models.without_secrets([told])
    assert bare == [models.load_balancer(a_tree())]
