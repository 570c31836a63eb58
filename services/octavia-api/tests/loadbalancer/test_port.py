"""A VIP port has one owner: the claim while its load balancer is being made, then the load balancer, else nobody and it goes.

D7 of the faults that are mended on purpose, and OC-09.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from roadstead_octavia.db.claims import Claims
from roadstead_octavia.db.port import Change, Stale
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.refusals import now
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.outside.network import NetworkRefused
from roadstead_octavia.resources.loadbalancer import operations
from roadstead_octavia.resources.loadbalancer.port import CLAIM

from .world import OTHER_SUBNET, SUBNET, World, an_id

pytestmark = pytest.mark.integration


@pytest.fixture
def world(database: PostgresDatabase) -> World:
    return World(database)


async def vip_of(world: World, made: dict[str, Any]) -> Any:
    return await world.database.row("vip", {"load_balancer_id": made["id"]})


async def test_a_port_that_the_api_made_is_the_load_balancers(world: World) -> None:
    made = await world.create()
    vip = await vip_of(world, made)
    assert (vip["octavia_owned"], vip["port_id"]) == (True, world.net.ports[made["id"]])
    assert await world.claims() == []


async def test_a_port_that_the_provider_made_is_the_providers(world: World) -> None:
    port = an_id()
    said = {"vip_address": "192.0.0.7", "vip_port_id": port, "vip_subnet_id": SUBNET}
    world.driver.answers["create_vip_port"] = [said, []]
    made = await world.create()
    vip = await vip_of(world, made)
    assert (vip["octavia_owned"], vip["port_id"], vip["ip_address"]) == (False, port, "192.0.0.7")
    assert vip["network_id"] is not None, "what the provider does not repeat stays"
    assert await world.claims() == []


@pytest.mark.parametrize("told", [None, [{}, []], [{}, [{"subnet_id": OTHER_SUBNET, "ip_address": None}]]])
async def test_c22_an_additional_vip_that_gets_no_address_is_the_providers_fault(
    world: World, told: Any
) -> None:
    world.driver.answers["create_vip_port"] = told
    error = await world.refused(additional_vips=[{"subnet_id": OTHER_SUBNET}])
    assert (error.status, OTHER_SUBNET in error.text) == (500, True)
    assert (await world.balancers(), world.sent) == ([], [])
    with_address = [{"subnet_id": OTHER_SUBNET, "ip_address": "192.0.1.4"}]
    made = await world.create(additional_vips=with_address)
    assert [one["ip_address"] for one in made["additional_vips"]] == ["192.0.1.4"]


async def test_c22_the_providers_address_of_an_additional_vip_is_shown(world: World) -> None:
    port = an_id()
    more = {"subnet_id": OTHER_SUBNET, "ip_address": "192.0.1.8", "port_id": port}
    world.driver.answers["create_vip_port"] = [{"vip_address": "192.0.0.7", "vip_port_id": port}, [more]]
    made = await world.create(additional_vips=[{"subnet_id": OTHER_SUBNET}])
    (shown,) = made["additional_vips"]
    assert {name: shown[name] for name in more} == more


async def test_d7_a_check_that_refuses_leaves_no_port_no_claim_and_no_row(world: World) -> None:
    world.driver.refuses["loadbalancer_create"] = refuse(
        "ProviderUnsupportedOption", prov="noop", user_msg="x"
    )
    error = await world.refused()
    assert error.status == 501
    assert (world.net.ports, await world.claims(), await world.balancers()) == ({}, [], [])
    assert world.sent == []
    del world.driver.refuses["loadbalancer_create"]
    await world.create(vip_address="192.0.0.9")


async def test_d7_a_port_that_cannot_be_removed_now_is_left_to_the_sweep(world: World) -> None:
    world.driver.refuses["loadbalancer_create"] = refuse("ProviderDriverError", prov="noop", user_msg="x")
    world.net.stuck = True
    assert (await world.refused()).status == 500
    assert len(world.net.ports) == 1
    (claim,) = await world.claims()
    assert claim["removing_since"] is not None, "the creation can no longer be committed"


async def test_oc_09_a_port_that_comes_late_is_found_after_the_claims_deadline(world: World) -> None:
    world.net.refusal, world.net.late = NetworkRefused(None, "no answer within 15 s"), True
    error = await world.refused()
    assert (error.status, dict(error.headers)["Retry-After"]) == (503, "5")
    assert await world.balancers() == []
    (claim,) = await world.claims()
    # The port appears only now: after our attempt to remove it.
    world.net.ports[claim["load_balancer_id"]] = an_id()
    claims = Claims(world.database)
    assert await claims.take_overdue(now()) == []
    (overdue,) = await claims.take_overdue(now() + CLAIM + timedelta(seconds=1))
    assert overdue["load_balancer_id"] == claim["load_balancer_id"]


async def test_a_refusal_of_the_network_leaves_no_claim(world: World) -> None:
    world.net.refusal = NetworkRefused(403, "Quota exceeded for resources: ['port'].")
    error = await world.refused()
    assert (error.status, error.text) == (403, "Quota exceeded for resources: ['port'].")
    assert await world.claims() == []


async def test_a20_an_address_in_use_is_409(world: World) -> None:
    world.net.refusal = NetworkRefused(409, "IP address 192.0.0.9 already allocated.")
    error = await world.refused(vip_address="192.0.0.9")
    assert error.status == 409
    assert error.text == "The VIP IP address is already in use: IP address 192.0.0.9 already allocated."


async def test_a_users_port_is_never_removed_and_has_no_claim(world: World) -> None:
    port = an_id()
    world.net.add(
        "ports", port, network_id=None, fixed_ips=[{"subnet_id": SUBNET, "ip_address": "192.0.0.4"}]
    )
    world.net.things["ports", port]["network_id"] = world.net.things["subnets", SUBNET]["network_id"]
    removed: list[str] = []

    async def remove(load_balancer_id: str, port_id: str | None) -> None:
        removed.append(load_balancer_id)

    world.net.remove_vip_port = remove  # type: ignore[method-assign]  # a stand-in for this test
    world.driver.refuses["loadbalancer_create"] = refuse("ProviderDriverError", prov="noop", user_msg="x")
    await world.refused(vip_port_id=port)
    assert (removed, await world.claims()) == ([], [])
    del world.driver.refuses["loadbalancer_create"]
    vip = await vip_of(world, await world.create(vip_port_id=port))
    assert (vip["octavia_owned"], vip["port_id"], vip["ip_address"]) == (False, port, "192.0.0.4")


async def test_a_commit_whose_answer_was_lost_keeps_its_port(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = world.database.commit

    async def lost(change: Change, options: Options) -> int:
        await commit(change, options)
        raise ApiError(503, "The service is not available at the moment.", "Unavailable")

    monkeypatch.setattr(world.database, "commit", lost)
    assert (await world.refused()).status == 503
    (row,) = await world.balancers()
    assert list(world.net.ports) == [row["id"]]


async def test_a_creation_that_is_cancelled_leaves_its_claim(world: World) -> None:
    world.net.refusal = asyncio.CancelledError()  # type: ignore[assignment]  # a stand-in for this test
    with pytest.raises(asyncio.CancelledError):
        await world.create()
    assert len(await world.claims()) == 1
    assert await world.balancers() == []


async def test_a_creation_that_was_overtaken_is_made_anew_with_one_port(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, tries = world.database.commit, []

    async def overtaken(change: Change, options: Options) -> int:
        tries.append(change)
        if len(tries) == 1:
            raise Stale("once")
        return int(await commit(change, options))

    monkeypatch.setattr(world.database, "commit", overtaken)
    made = await world.create()
    assert list(world.net.ports) == [made["id"]]
    assert await world.claims() == []


async def test_an_answer_that_is_no_vip_is_the_providers_fault(world: World) -> None:
    world.driver.answers["create_vip_port"] = ["x", ["y"]]
    error = await world.refused()
    assert (error.status, error.name) == (500, "ProviderDriverError")
    assert (world.net.ports, await world.balancers()) == ({}, [])


async def test_making_one_takes_three_round_trips(world: World) -> None:
    await world.create()
    before = world.database.session.round_trips
    await world.create()
    assert world.database.session.round_trips - before == 3  # the quota's row, the claim, the commit


async def test_oc_05_a_busy_load_balancer_refuses_by_state_and_nothing_is_written(world: World) -> None:
    made = await world.create()
    before = await world.balancers()
    for operation, body in (
        (operations.update, {"name": "x"}),
        (operations.delete, None),
        (operations.failover, None),
    ):
        with pytest.raises(ApiError) as refused:
            await world.do(operation, made["id"], body, **({"cascade": "true"} if body is None else {}))
        assert refused.value.status == 409
        assert refused.value.text == f"Invalid state PENDING_CREATE of loadbalancer resource {made['id']}"
    assert await world.balancers() == before


async def test_an_update_that_was_overtaken_decides_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    identifier = await world.active(name="a")
    tree = world.database.tree
    stale: list[Any] = []

    async def old_once(load_balancer_id: str) -> Any:
        found = await tree(load_balancer_id)
        if not stale:
            stale.append(found)
            return replace(found, version=found.version - 1)
        return found

    monkeypatch.setattr(world.database, "tree", old_once)
    answer = await world.do(operations.update, identifier, {"name": "b", "tags": ["x"]})
    assert answer.body is not None
    shown = answer.body["loadbalancer"]
    assert (shown["name"], shown["tags"], shown["provisioning_status"]) == ("b", ["x"], "PENDING_UPDATE")


async def test_d1_changed_security_groups_reach_the_provider(world: World) -> None:
    groups = [world.net.add("security_groups", an_id()) for _ in range(2)]
    identifier = await world.active(vip_sg_ids=[groups[0]])
    await world.do(operations.update, identifier, {"vip_sg_ids": [groups[1]]})
    method, (old, new) = world.driver.checked[-1]
    assert (method, old["vip_sg_ids"], new["vip_sg_ids"]) == ("loadbalancer_update", groups[:1], groups[1:])
    rows = await world.database.rows("vip_security_group", {"load_balancer_id": identifier})
    assert [row["sg_id"] for row in rows] == groups[1:]


async def test_security_groups_ask_their_own_policy_even_for_null(world: World) -> None:
    identifier = await world.active()
    world.policy.forbidden = {"loadbalancer:put:vip_sg_ids", "loadbalancer:post:vip_sg_ids"}
    with pytest.raises(ApiError, match="Policy does not allow"):
        await world.do(operations.update, identifier, {"vip_sg_ids": None})
    assert (await world.refused(vip_sg_ids=[an_id()])).status == 403
    await world.create(name="without")


async def test_a_balancer_in_error_can_be_deleted_and_failed_over(world: World) -> None:
    for operation, status, query in (
        (operations.delete, 204, {"cascade": "true"}),
        (operations.failover, 202, {}),
    ):
        identifier = await world.active()
        text = f"UPDATE {world.database.schema}.load_balancer SET provisioning_status = 'ERROR'"
        await world.database.run(lambda link, _, text=text: link.execute(text))
        assert (await world.do(operation, identifier, **query)).status == status
        with pytest.raises(ApiError):
            await world.do(operations.update, identifier, {"name": "x"})
