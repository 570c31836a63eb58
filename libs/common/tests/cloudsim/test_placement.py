"""Placement: who may list providers, what the query means, and its 400 for unknown names."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Stage, policy, stage

GOLD = "CUSTOM_GOLD"


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    made = stage(cloud)
    made.admin.call("placement", "PUT", f"/resource_classes/{GOLD}", want=201)
    made.admin.call("placement", "PUT", "/traits/CUSTOM_BAD", want=201)
    body = {"name": "node-1", "uuid": "11111111-1111-4111-8111-111111111111"}
    node = made.admin.call("placement", "POST", "/resource_providers", body)["uuid"]
    inventory = {"resource_provider_generation": 0, "inventories": {GOLD: {"total": 1}}}
    made.admin.call("placement", "PUT", f"/resource_providers/{node}/inventories", inventory)
    return made


def names(world: Stage, query: str = "", **more: Any) -> list[str]:
    rows = world.privileged.call("placement", "GET", f"/resource_providers{query}", **more)[
        "resource_providers"
    ]
    return [row["name"] for row in rows]


def refusal(world: Stage, query: str, who: str = "privileged", **more: Any) -> tuple[int, str]:
    response = getattr(world, who).send("placement", "GET", f"/resource_providers{query}", **more)
    assert response.status >= 400, response.body
    return response.status, response.body["errors"][0]["detail"]


def test_a_manager_lists_providers_where_the_override_is_and_a_member_never(world: Stage) -> None:
    assert names(world, "?resources=VCPU:1") == ["compute-1", "compute-2"]
    assert refusal(world, "?resources=VCPU:1", "principal")[0] == 403
    world.cloud.settings.policy_overrides.discard(policy.PLACEMENT_LIST_PROVIDERS)
    status, text = refusal(world, "")
    assert status == 403
    assert "placement:resource_providers:list" in text


def test_only_providers_with_room_of_the_class_are_listed(world: Stage) -> None:
    assert names(world, f"?resources={GOLD}:1") == ["node-1"]
    assert names(world, f"?resources={GOLD}:2") == []
    node = world.cloud.placement.providers.where("name", "node-1")[0]["id"]
    world.cloud.placement.foreign("take", node, {GOLD: 1})
    assert names(world, f"?resources={GOLD}:1") == []
    world.cloud.placement.foreign("free", node, {GOLD: 1})
    assert names(world, f"?resources={GOLD}:1") == ["node-1"]


def test_required_and_forbidden_traits(world: Stage) -> None:
    assert names(world, "?required=COMPUTE_NODE") == ["compute-1", "compute-2"]
    assert names(world, "?required=!COMPUTE_NODE") == ["node-1"]
    assert names(world, "?required=COMPUTE_NODE,!CUSTOM_BAD") == ["compute-1", "compute-2"]
    node = world.cloud.placement.providers.where("name", "node-1")[0]["id"]
    body = {"resource_provider_generation": 1, "traits": ["CUSTOM_BAD"]}
    world.admin.call("placement", "PUT", f"/resource_providers/{node}/traits", body)
    assert names(world, f"?resources={GOLD}:1&required=!CUSTOM_BAD") == []


def test_unregistered_names_are_400(world: Stage) -> None:
    status, text = refusal(world, "?required=CUSTOM_NOPE")
    assert status == 400
    assert 'Invalid trait(s) in "required" parameter: No such trait(s): CUSTOM_NOPE' in text
    status, text = refusal(world, "?resources=CUSTOM_NOPE:1")
    assert status == 400
    assert "Invalid resource class in resources parameter: No such resource class CUSTOM_NOPE" in text
    assert refusal(world, "?resources=VCPU:x")[0] == 400
    assert refusal(world, "?nope=1")[0] == 400


def test_forbidden_traits_need_their_microversion(world: Stage) -> None:
    status, text = refusal(world, "?required=!COMPUTE_NODE", version="1.18")
    assert status == 400
    assert "Invalid query string parameters" in text
    assert names(world, "?required=COMPUTE_NODE", version="1.18") == ["compute-1", "compute-2"]


@pytest.mark.parametrize(("version", "status"), [("1.999", 406), ("x", 400), ("1.39", 200)])
def test_microversions_are_checked(world: Stage, version: str, status: int) -> None:
    response = world.privileged.send("placement", "GET", "/", version=version)
    assert response.status == status


def test_provider_keys_by_microversion(world: Stage) -> None:
    rows = world.privileged.call("placement", "GET", "/resource_providers?name=node-1")["resource_providers"]
    assert set(rows[0]) == {
        "uuid",
        "name",
        "generation",
        "links",
        "parent_provider_uuid",
        "root_provider_uuid",
    }
    old = world.privileged.send("placement", "GET", "/resource_providers?name=node-1", version="1.10")
    assert "root_provider_uuid" not in old.body["resource_providers"][0]
