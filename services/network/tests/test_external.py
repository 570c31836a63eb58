"""The inventory of external networks: selection, and how long it is kept."""

import asyncio
from typing import Any

import pytest
from services.network.tests.world import REGION_ID, World

from roadstead.cloud.external import ExternalNetwork, external_of, select
from roadstead.cloud.port import CloudError, Verdict
from roadstead.region import ExternalNetworkSelector, RegionSpec
from roadstead_network.external import reply

A = ExternalNetwork("a", "alpha", frozenset({"gold", "fast"}))
B = ExternalNetwork("b", "beta", frozenset({"gold"}))


def test_selection_by_ids_and_by_all_tags() -> None:
    assert select((A, B), None) == (A, B)
    assert select((A, B), ExternalNetworkSelector()) == (A, B)
    assert select((A, B), ExternalNetworkSelector(ids=["b", "a"])) == (A, B)
    assert select((A, B), ExternalNetworkSelector(ids=["b"])) == (B,)
    assert select((A, B), ExternalNetworkSelector(tags=["gold", "fast"])) == (A,)
    assert select((A, B), ExternalNetworkSelector(ids=["b"], tags=["fast"])) == ()


def test_only_external_networks_count_whatever_was_listed() -> None:
    listed: list[dict[str, Any]] = [
        {"id": "a", "name": "alpha", "router:external": True, "tags": ["gold"]},
        {"id": "b", "name": "beta", "router:external": False},
        {"id": "c", "name": None},
        {"id": "d", "router:external": True, "tags": None},
    ]
    assert external_of(listed) == (
        ExternalNetwork("a", "alpha", frozenset({"gold"})),
        ExternalNetwork("d", "", frozenset()),
    )


def test_replies_are_neutral() -> None:
    assert reply((A,)) == [{"id": "a", "name": "alpha"}]


def reads(world: World) -> int:
    return len([c for c in world.calls() if c.path.endswith("/networks")])


async def test_inv_025_one_read_serves_an_hour_and_many_callers(world: World) -> None:
    asks = [world.inventory.selected(REGION_ID, world.region()) for _ in range(5)]
    answers = await asyncio.gather(*asks)
    assert [n.name for n in answers[0] or ()] == ["external"]
    assert set(answers) == {answers[0]}
    assert reads(world) == 1
    world.clock.advance(3599)
    await world.inventory.selected(REGION_ID, world.region())
    assert reads(world) == 1
    world.clock.advance(2)
    await world.inventory.selected(REGION_ID, world.region())
    assert reads(world) == 2


async def test_inv_026_a_changed_configuration_is_read_anew(world: World) -> None:
    await world.inventory.selected(REGION_ID, world.region())
    changed = world.region().model_dump(exclude_none=True)
    changed["openstack"]["network"] = {"externalNetworks": {"selector": {"ids": ["none"]}}}
    assert await world.inventory.selected(REGION_ID, RegionSpec.model_validate(changed)) == ()
    assert reads(world) == 2


async def test_inv_027_a_changed_secret_is_read_anew(world: World) -> None:
    await world.inventory.selected(REGION_ID, world.region())
    held = world.keyring.region(REGION_ID)
    assert held is not None
    secret = {
        "domain-id": held.domain_id,
        "user-id": held.user_id,
        "password": held.password,
        "project-id": held.project_id,
    }
    world.keyring.put_region_secret(REGION_ID, secret, 2)
    await world.inventory.selected(REGION_ID, world.region())
    assert reads(world) == 2


async def test_inv_028_a_refresh_that_fails_is_an_error_and_heals(world: World) -> None:
    await world.inventory.selected(REGION_ID, world.region())
    held = world.keyring.region(REGION_ID)
    assert held is not None
    secret = {"domain-id": held.domain_id, "user-id": held.user_id, "project-id": held.project_id}
    world.keyring.put_region_secret(REGION_ID, {**secret, "password": "wrong"}, 2)
    with pytest.raises(CloudError) as failed:
        await world.inventory.selected(REGION_ID, world.region())
    assert failed.value.verdict is Verdict.UNAUTHORIZED
    world.keyring.put_region_secret(REGION_ID, {**secret, "password": held.password}, 3)
    assert len(await world.inventory.selected(REGION_ID, world.region()) or ()) == 1


async def test_a_failed_read_is_an_error_and_never_an_empty_inventory(world: World) -> None:
    world.fail("status", service="network", status=503, times=1)
    with pytest.raises(CloudError) as failed:
        await world.inventory.selected(REGION_ID, world.region())
    assert failed.value.verdict is Verdict.UNAVAILABLE
    assert len(await world.inventory.selected(REGION_ID, world.region()) or ()) == 1


async def test_without_a_credential_nothing_is_asked(world: World) -> None:
    with pytest.raises(CloudError) as failed:
        await world.inventory.selected("unknown", world.region())
    assert failed.value.verdict is Verdict.KEY
    assert world.calls() == []
