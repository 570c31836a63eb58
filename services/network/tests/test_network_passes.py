"""Passes of a network against the simulated cloud: calls, adoption, lost answers, near misses, VLAN ids."""

from typing import Any

import pytest
from services.network.tests.world import (
    IDENTITY_ID,
    NETWORK_ID,
    OTHER_ID,
    REGION_ID,
    TENANT,
    Unfiltered,
    World,
)

from roadstead.reconcile.decision import Code, Done, Retry, Yield
from roadstead.testing.passbench import PassBench, view
from roadstead_network.network import KIND

NAME = f"network-{NETWORK_ID}"
CREATES = ["POST networks", "POST subnets", "POST routers", "PUT routers/*/add_router_interface"]
DELETES = [
    "PUT routers/*/remove_router_interface",
    "DELETE routers/*",
    "DELETE subnets/*",
    "DELETE networks/*",
]
EMPTY: dict[str, list[str]] = {
    "networks": [],
    "subnets": [],
    "ports": [],
    "routers": [],
    "floating_ips": [],
}


async def settled(world: World, ident: str = NETWORK_ID, **spec: Any) -> PassBench:
    bench = world.network(ident, **spec)
    assert (await bench.until_settled()).outcome == Done()
    return bench


def held(world: World) -> dict[str, list[str]]:
    """What the tenant's project holds, but for the group that Neutron makes by itself."""
    return {kind: names for kind, names in world.ours().items() if kind != "security_groups"}


async def finish(bench: PassBench, passes: int = 20) -> Any:
    """Passes, 10 s apart, until one is done."""
    for _ in range(passes):
        ending = await bench.run()
        if ending.outcome == Done():
            return ending
        bench.clock.advance(10)
    return ending


def at(write: str) -> dict[str, Any]:
    """Criteria of a fault for that write."""
    method, path = write.split()
    return {"method": method, "path": "/v2.0/" + path.replace("*", "[^/]+") + "$"}


# ---------------------------------------------------------------- making


async def test_inv_131_one_pass_makes_network_subnet_router_of_one_name(world: World) -> None:
    bench = world.network()
    assert (await bench.run()).outcome == Done()
    assert world.writes() == CREATES
    made = held(world)
    assert (made["networks"], made["subnets"], made["routers"]) == ([NAME], [NAME], [NAME])


async def test_inv_032_all_is_done_by_the_regions_user_in_the_identitys_project(world: World) -> None:
    bench = await settled(world)
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    writes = world.cloud.log.writes()
    assert {(c.user_id, c.project_id) for c in writes} == {(world.region_user, world.project)}


async def test_inv_019_external_networks_are_read_in_the_regions_own_project(world: World) -> None:
    await settled(world)
    (read,) = [c for c in world.calls() if ("router:external", "true") in c.query]
    assert read.user_id == world.region_user
    assert read.project_id not in (None, world.project)


async def test_ref_015_ref_017_the_subnet_as_asked_for(world: World) -> None:
    bench = await settled(
        world,
        reservations={"prefixLength": 25, "providerReservedPrefixLength": 29},
        routes=[{"prefix": "10.1.2.3/16", "nextHop": "192.168.10.9"}],
    )
    (sent,) = world.cloud.log.calls(method="POST", path="/subnets$")
    body = sent.body["subnet"]
    assert body["gateway_ip"] == "192.168.10.1"
    assert body["allocation_pools"] == [{"start": "192.168.10.128", "end": "192.168.10.254"}]
    assert body["dns_nameservers"] == ["9.9.9.9"]
    assert body["host_routes"] == [{"destination": "10.1.0.0/16", "nexthop": "192.168.10.9"}]
    assert bench.status["openstack"]["storageRange"] == {"startIP": "192.168.10.8", "endIP": "192.168.10.127"}
    plain = await settled(world, OTHER_ID, prefix="10.9.0.0/24")
    assert plain.status["reservations"] == {"prefixLength": 25, "providerReservedPrefixLength": 28}


async def test_ref_016_the_status_has_no_storage_where_it_is_opted_out(world: World) -> None:
    bench = await settled(world, reservations={"prefixLength": 26, "providerReservedPrefixLength": 26})
    assert bench.status["openstack"]["storageRange"] is None


async def test_inv_006_status_ids_are_derived_anew_by_every_pass(world: World) -> None:
    bench = await settled(world)
    right = dict(bench.status["openstack"])
    bench.status["openstack"] = {**right, "networkID": "stale", "subnetID": "stale"}
    assert (await bench.run()).outcome == Done()
    assert bench.status["openstack"] == right


async def test_two_quiet_passes_read_four_times_and_write_nothing(world: World) -> None:
    bench = await settled(world, routes=[{"prefix": "10.1.2.3/16", "nextHop": "192.168.10.9"}])
    for _ in range(2):
        world.cloud.log.clear()
        assert (await bench.run()).outcome == Done()
        assert world.writes() == []
        assert len(world.calls()) == 4


async def test_inv_007_everything_is_found_by_name_in_the_identitys_project(world: World) -> None:
    bench = await settled(world)
    world.cloud.log.clear()
    assert (await bench.run()).outcome == Done()
    by_name = [c for c in world.calls() if ("name", NAME) in c.query]
    assert [c.path.rsplit("/", 1)[1] for c in by_name] == ["networks", "subnets", "routers"]
    assert {c.project_id for c in world.calls()} == {world.project}
    assert [c.path for c in world.calls() if c not in by_name] == ["/network/v2.0/ports"]


async def test_inv_011_what_somebody_changed_in_the_cloud_is_put_back_by_the_spec(world: World) -> None:
    bench = await settled(world)
    state = world.cloud.neutron.state
    (subnet,) = [s for s in state.subnets if s["name"] == NAME]
    state.subnets.change(subnet, dns_nameservers=["203.0.113.1"])
    router = next(r for r in state.routers if r["name"] == NAME)
    for port in [
        p for p in state.ports if p["device_id"] == router["id"] and p["project_id"] == world.project
    ]:
        state.drop_port(port)
    world.cloud.log.clear()
    assert (await bench.run()).outcome == Done()
    assert world.writes() == ["PUT subnets/*", "PUT routers/*/add_router_interface"]
    assert subnet["dns_nameservers"] == ["9.9.9.9"]


async def test_ref_023_changed_servers_and_emptied_routes_update_the_subnet_once(world: World) -> None:
    bench = await settled(world, routes=[{"prefix": "10.1.0.0/16", "nextHop": "192.168.10.9"}])
    bench.edit(dnsNameservers=["1.1.1.1"], routes=[])
    world.cloud.log.clear()
    assert (await bench.run()).outcome == Done()
    assert (await bench.run()).outcome == Done()
    assert world.writes() == ["PUT subnets/*"]
    (sent,) = world.cloud.log.calls(method="PUT", path="/subnets/")
    assert sent.body["subnet"] == {"dns_nameservers": ["1.1.1.1"], "host_routes": []}


async def test_ref_022_no_selected_external_network_is_a_clear_error(world: World) -> None:
    bench = world.network()
    assert bench.region is not None
    assert bench.region.openstack is not None
    section = {"externalNetworks": {"selector": {"tags": ["gold"]}}}
    part = bench.region.openstack.model_dump(exclude_none=True) | {"network": section}
    bench.region = type(bench.region).model_validate({"provider": "openstack", "openstack": part})
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.NOT_FOUND
    assert "external network" in ending.outcome.message
    assert "POST routers" not in world.writes()


async def test_an_external_network_that_is_gone_is_read_anew(world: World) -> None:
    answer = {
        "NeutronError": {"type": "NetworkNotFound", "message": "Network x could not be found.", "detail": ""}
    }
    world.fail("status", status=404, answer=answer, **at("POST routers"))
    bench = world.network()
    assert isinstance((await bench.run()).outcome, Retry)
    assert (await bench.run()).outcome == Done()
    assert len([c for c in world.calls() if ("router:external", "true") in c.query]) == 2


# ---------------------------------------------------------------- look-ups


async def test_inv_257_only_the_exact_name_is_ours(world: World) -> None:
    world.cloud.settings.name_filter = "fuzzy"
    state = world.cloud.neutron.state
    for name in (f"{NAME}2", NAME.upper(), f"x{NAME}"):
        _foreign_network(world, name, world.project)
    before = {n["id"]: dict(n) for n in state.networks}
    bench = await settled(world)
    assert bench.status["openstack"]["networkID"] not in before
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    assert {n["id"]: dict(n) for n in state.networks} == before


def _foreign_network(world: World, name: str, project: str, **extra: Any) -> dict[str, Any]:
    from roadstead.testing.cloudsim.neutron_networks import Networks

    maker = Networks(world.cloud.neutron)
    segment = {
        "provider:network_type": "geneve",
        "provider:physical_network": None,
        "provider:segmentation_id": world.cloud.neutron.state.next_tunnel_id(),
    }
    return maker.make(project, name, [segment], **extra)


async def test_a_shared_network_of_another_project_is_not_ours(world: World) -> None:
    foreign = _foreign_network(world, NAME, "another-project", shared=True)
    bench = await settled(world)
    assert bench.status["openstack"]["networkID"] != foreign["id"]


async def test_a_cloud_that_ignores_filters_misleads_nobody(world: World) -> None:
    """Networks, subnets, routers and ports of others, some of our very name, are all listed and none is taken."""
    other = world.network(OTHER_ID, prefix="10.9.0.0/24")
    assert (await other.run()).outcome == Done()
    shared = _foreign_network(world, NAME, "another-project", shared=True)
    state = world.cloud.neutron.state
    for subnet in [s for s in state.subnets if s["name"] == f"network-{OTHER_ID}"]:
        state.subnets.change(subnet, name=NAME)
    before = {
        t: {r["id"]: dict(r) for r in getattr(state, t)} for t in ("networks", "subnets", "routers", "ports")
    }
    bench = world.network()
    bench.cloud = Unfiltered(world.port)
    assert (await bench.run()).outcome == Done()
    made = bench.status["openstack"]
    assert made["networkID"] != shared["id"]
    assert made["subnetID"] not in before["subnets"]
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    after = {t: {r["id"]: dict(r) for r in getattr(state, t)} for t in before}
    assert after == before


async def test_two_networks_of_our_name_stop_the_pass(world: World) -> None:
    await settled(world)
    _foreign_network(world, NAME, world.project)
    world.cloud.log.clear()
    for deleting in (False, True):
        bench = world.network()
        bench.deleting = deleting
        ending = await bench.run()
        assert isinstance(ending.outcome, Retry)
        assert ending.outcome.code is Code.CONSISTENCY
    assert world.writes() == []


async def test_another_tenants_identity_is_not_acted_in(world: World) -> None:
    world.directory.put(world.identity_view("somebody-else", 2))
    bench = world.network()
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert world.calls() == []


# ---------------------------------------------------------------- lost answers


@pytest.mark.parametrize("kind", ["no_answer_before", "no_answer_after", "status_after"])
@pytest.mark.parametrize("write", CREATES)
async def test_lost_answers_of_creates_end_with_one_of_each(vlan_world: World, write: str, kind: str) -> None:
    world = vlan_world
    world.fail(kind, status=503, **at(write))
    bench = world.network()
    assert (await finish(bench)).outcome == Done()
    made = held(world)
    assert (made["networks"], made["subnets"], made["routers"]) == ([NAME], [NAME], [NAME])
    assert world.taken() == [100]
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    assert held(world) == EMPTY
    assert world.taken() == []


@pytest.mark.parametrize("kind", ["no_answer_before", "no_answer_after", "status_after", "status"])
@pytest.mark.parametrize("write", DELETES)
async def test_ref_019_a_failed_delete_keeps_the_vlan_until_absence_is_proved(
    vlan_world: World, write: str, kind: str
) -> None:
    world = vlan_world
    bench = await settled(world)
    world.fail(kind, status=503, **at(write))
    bench.deleting = True
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert world.taken() == [100]
    assert (await finish(bench)).outcome == Done()
    assert held(world) == EMPTY
    assert world.taken() == []


async def test_the_vlan_of_a_network_whose_fate_is_open_is_not_given_back(vlan_world: World) -> None:
    world = vlan_world
    world.fail("no_answer_before", **at("POST networks"))
    bench = world.network()
    await bench.run()
    asked = bench.asked
    assert asked
    bench.deleting = True
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.SETTLING
    assert world.taken() == [100]
    bench.asked = asked
    world.clock.advance(70)
    assert (await finish(bench)).outcome == Done()
    assert world.taken() == []


@pytest.mark.parametrize("after", range(len(CREATES)))
async def test_a_deletion_at_every_point_of_the_create_leaves_nothing(vlan_world: World, after: int) -> None:
    world = vlan_world
    world.fail("status", status=403, times=None, **at(CREATES[after]))
    bench = world.network()
    assert isinstance((await bench.run()).outcome, Retry)
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    assert held(world) == EMPTY
    assert world.taken() == []


# ---------------------------------------------------------------- VLAN


async def test_inv_014_inv_260_the_segment_comes_from_the_table(vlan_world: World) -> None:
    bench = await settled(vlan_world)
    (sent,) = vlan_world.cloud.log.calls(method="POST", path="/networks$")
    assert sent.body["network"]["segments"] == [
        {
            "provider:network_type": "vlan",
            "provider:physical_network": "physnet1",
            "provider:segmentation_id": 100,
        }
    ]
    assert vlan_world.taken() == [100]
    assert bench.status["openstack"]["vlanID"] == 100


async def test_inv_261_tenant_networks_do_not_touch_the_table(world: World) -> None:
    bench = await settled(world)
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    assert world.documents == {}


async def test_ref_018_a_refused_create_keeps_its_vlan(vlan_world: World) -> None:
    world = vlan_world
    answer = {
        "NeutronError": {"type": "VlanIdInUse", "message": "The VLAN 100 on ... is in use.", "detail": ""}
    }
    world.fail("status", status=409, answer=answer, **at("POST networks"))
    bench = world.network()
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert "VLAN" in ending.outcome.message
    assert world.taken() == [100]
    other = await settled(world, OTHER_ID)
    assert other.status["openstack"]["vlanID"] == 101
    assert (await finish(bench)).outcome == Done()
    assert bench.status["openstack"]["vlanID"] == 100


async def test_ref_020_a_network_that_is_gone_frees_its_vlan_by_network_id(vlan_world: World) -> None:
    world = vlan_world
    bench = await settled(world)
    state = world.cloud.neutron.state
    for port in list(state.ports):
        if port["project_id"] == world.project:
            state.drop_port(port)
    for table in (state.subnets, state.networks, state.routers):
        for row in list(table):
            if row["project_id"] == world.project:
                table.remove(row["id"])
    bench.status["openstack"]["vlanID"] = 101  # wrong on purpose: the status is not what is gone by
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    assert world.taken() == []


async def test_ref_029_when_all_ids_are_used_the_pass_says_so(vlan_world: World) -> None:
    world = vlan_world
    await settled(world)
    await settled(world, OTHER_ID)
    third = world.network("77777777-7777-4777-8777-777777777777")
    ending = await third.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.ALLOCATION
    assert world.taken() == [100, 101]
    assert world.ours()["networks"] == [NAME, f"network-{OTHER_ID}"]


async def test_a_lost_table_is_filled_from_what_the_cloud_shows(vlan_world: World) -> None:
    world = vlan_world
    bench = await settled(world)
    world.documents.clear()
    assert (await bench.run()).outcome == Done()
    assert world.taken() == [100]


async def test_a_cloud_that_hides_the_vlan_id_does_not_stop_the_pass(vlan_world: World) -> None:
    world = vlan_world
    world.cloud.settings.policy_overrides -= {
        "get_network:provider:network_type",
        "get_network:provider:segmentation_id",
    }
    bench = await settled(world)
    assert (await bench.run()).outcome == Done()
    assert bench.status["openstack"]["vlanID"] == 100


# ---------------------------------------------------------------- removing


async def test_the_order_of_removal(world: World) -> None:
    bench = await settled(world)
    world.cloud.log.clear()
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert world.writes() == DELETES
    assert world.calls()[-1].method == "GET"  # absence is read after the last delete
    assert held(world) == EMPTY


async def test_ref_002_a_deletion_asks_neither_readiness_nor_status(world: World) -> None:
    bench = await settled(world)
    bench.status = {"provisioningStatus": "error"}
    world.directory.put(
        view(
            "identity",
            IDENTITY_ID,
            REGION_ID,
            TENANT,
            status={"provisioningStatus": "error", "projectReady": True, "projectId": world.project},
            resource_version=2,
        )
    )
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert held(world) == EMPTY


async def test_ref_021_a_router_without_subnet_is_deleted(world: World) -> None:
    bench = await settled(world)
    state = world.cloud.neutron.state
    for port in [p for p in state.ports if p["project_id"] == world.project]:
        state.drop_port(port)
    for subnet in [s for s in state.subnets if s["project_id"] == world.project]:
        state.subnets.remove(subnet["id"])
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert held(world) == EMPTY


async def test_what_somebody_removed_by_hand_is_done(world: World) -> None:
    bench = world.network()
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert world.writes() == []


@pytest.mark.parametrize(
    ("owner", "word"),
    [("ovn-lb:vip", "a load balancer"), ("compute:nova", "a server"), ("", "something else")],
)
async def test_ports_left_on_the_network_are_named_and_waited_for(
    world: World, owner: str, word: str
) -> None:
    """Among them the VIP port of a load balancer that the cloud refused (measured: it stays)."""
    bench = await settled(world)
    state = world.cloud.neutron.state
    port = state.add_port(
        world.cloud.now,
        bench.status["openstack"]["networkID"],
        world.project,
        None,
        device_owner=owner,
        device_id="x",
    )
    world.cloud.log.clear()
    bench.deleting = True
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert (ending.outcome.code, ending.outcome.message) == (
        Code.IN_USE,
        f"the network still has ports in use: 1 of {word}",
    )
    assert world.writes() == []
    state.drop_port(port)
    assert (await bench.run()).outcome == Done()


async def test_in_use_said_by_the_cloud_is_a_wait_with_the_vlan_kept(vlan_world: World) -> None:
    bench = await settled(vlan_world)
    answer = {"NeutronError": {"type": "NetworkInUse", "message": "ports: 1", "detail": ""}}
    vlan_world.fail("status", status=409, answer=answer, **at("DELETE networks/*"))
    bench.deleting = True
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.IN_USE
    assert vlan_world.taken() == [100]


async def test_the_whole_life_with_pages_of_two(vlan_world: World) -> None:
    vlan_world.cloud.settings.pages.network = 2
    bench = await settled(vlan_world)
    bench.deleting = True
    assert (await finish(bench)).outcome == Done()
    assert held(vlan_world) == EMPTY


def test_the_kind_waits_for_its_identity(world: World) -> None:
    (need,) = KIND.needs(world.network().resource())
    assert (need.kind, need.id, need.provisioned) == ("identity", IDENTITY_ID, True)
