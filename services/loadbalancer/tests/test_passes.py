"""Passes of a load balancer against the simulated cloud: calls, adoption, refusals, lost answers, near misses."""

from typing import Any

import pytest
from services.loadbalancer.tests.world import BALANCER, IDENTITY, NAME, OTHER, WEB, World

from roadstead.clock import iso
from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead.reconcile.drive import Ending
from roadstead.testing.cloudsim.faults import Fault
from roadstead.testing.passbench import PassBench

NEAR = [f"{NAME}-extra", f"x{NAME}", NAME.upper(), f"lb-{OTHER}"]


async def settled(world: World, **spec: Any) -> PassBench:
    bench = world.bench(**spec)
    ending = await bench.until_settled()
    assert ending.outcome == Done(), ending
    world.rest()
    world.cloud.log.clear()
    return bench


async def gone(bench: PassBench) -> Ending:
    bench.deleting = True
    return await bench.until_settled()


def code(ending: Ending) -> Code:
    found: Code = getattr(ending.outcome, "code", Code.NONE)
    return found


async def test_inv_264_inv_265_a_full_spec_ends_with_every_object(world: World) -> None:
    bench = world.bench(publicIP=True)
    assert isinstance((await bench.run()).outcome, Yield)
    assert (await bench.until_settled()).outcome == Done()
    assert world.writes() == ["POST loadbalancers", "POST floatingips"]
    names = {
        kind: sorted(part["name"] for part in world.parts(kind))
        for kind in ("listeners", "pools", "monitors")
    }
    assert names == {
        "listeners": [f"{NAME}-dns-listener", f"{NAME}-web-listener"],
        "pools": [f"{NAME}-dns-pool", f"{NAME}-web-pool"],
        "monitors": [f"{NAME}-dns-monitor", f"{NAME}-web-monitor"],
    }
    (address,) = world.addresses()
    assert address["port_id"] == world.balancer["vip_port_id"]
    assert bench.status["vipAddress"] == world.balancer["vip_address"]
    assert bench.status["publicIP"] == address["floating_ip_address"]


async def test_inv_262_inv_031_everything_is_the_principals(world: World) -> None:
    await world.bench(publicIP=True).until_settled()
    listing = [c for c in world.calls("network") if c.path.endswith("/networks")]
    workload = [c for c in world.calls() if c.service in ("load-balancer", "network") and c not in listing]
    assert {(c.project_id, c.user_id) for c in workload} == {(world.project, world.user)}
    assert {row["project_id"] for row in [*world.balancers(), *world.addresses()]} == {world.project}


async def test_inv_269_a_balancer_that_is_active_before_its_parts_is_not_done(world: World) -> None:
    bench = world.bench()
    await bench.run()
    world.clock.advance(1.1)
    assert world.balancer["provisioning_status"] == "ACTIVE"
    ending = await bench.run()
    assert (ending.rule, code(ending)) == ("14.2-7-pending", Code.BUSY)


async def test_inv_269_while_it_is_pending_nothing_else_is_read_or_written(world: World) -> None:
    bench = await settled(world)
    world.balancer["provisioning_status"] = "PENDING_UPDATE"
    assert isinstance((await bench.run()).outcome, Yield)
    assert [c.method for c in world.calls()] == ["GET"]


async def test_inv_284_amphora_takes_proxy_protocol_ranges_and_its_own_method(amphora: World) -> None:
    wish = {**WEB, "allowedCIDRs": ["10.0.0.0/8"], "pool": {**WEB["pool"], "proxyProtocolV2": True}}
    await settled(amphora, listeners=[wish])
    (pool,) = amphora.parts("pools")
    assert (pool["protocol"], pool["lb_algorithm"]) == ("PROXYV2", "ROUND_ROBIN")
    assert amphora.parts("listeners")[0]["allowed_cidrs"] == ["10.0.0.0/8"]


async def test_inv_266_objects_of_our_names_are_adopted(world: World) -> None:
    await settled(world)
    fresh = world.bench()
    assert (await fresh.run()).outcome == Done()
    assert fresh.status["vipAddress"] == world.balancer["vip_address"]
    assert world.writes() == []


@pytest.mark.parametrize("filtering", ["real", "fuzzy"])
async def test_inv_259_inv_279_near_misses_are_left_alone(world: World, filtering: str) -> None:
    world.cloud.settings.name_filter = filtering
    for name in NEAR:
        wish = {"name": name, "vip_subnet_id": world.subnet}
        world.tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", {"loadbalancer": wish})
    world.rest()
    before = [dict(row) for row in world.balancers()]
    bench = await settled(world)
    assert (await gone(bench)).outcome == Done()
    assert [dict(row) for row in world.balancers()] == before


async def test_inv_267_two_of_our_name_are_a_consistency_error_and_nothing_is_sent(world: World) -> None:
    for _ in range(2):
        wish = {"name": NAME, "vip_subnet_id": world.subnet}
        world.tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", {"loadbalancer": wish})
    world.rest()
    world.cloud.log.clear()
    bench = world.bench()
    assert code(await bench.run()) is Code.CONSISTENCY
    bench.deleting = True
    assert code(await bench.run()) is Code.CONSISTENCY
    assert world.writes() == []


async def test_inv_143_a_create_whose_answer_was_lost_is_adopted(world: World) -> None:
    world.fail("no_answer_after", service="load-balancer", method="POST")
    bench = world.bench()
    assert code(await bench.run()) is Code.UNKNOWN
    world.clock.advance(10)
    assert (await bench.until_settled()).outcome == Done()
    assert len(world.balancers()) == 1


async def test_inv_270_a_balancer_in_error_is_a_consistency_error_and_gets_no_address(world: World) -> None:
    """OC-22: no address is allocated before the load balancer is ACTIVE, however often a pass runs."""
    world.breaks("lb_build")
    bench = world.bench(publicIP=True)
    for _ in range(5):
        ending = await bench.run()
        world.clock.advance(10)
    assert isinstance(ending.outcome, Retry)
    assert code(ending) is Code.CONSISTENCY
    assert world.addresses() == []
    assert world.writes() == ["POST loadbalancers"]


async def test_ref_060_a_balancer_in_error_is_deleted_by_cascade(world: World) -> None:
    world.breaks("lb_build")
    bench = world.bench()
    await bench.run()
    world.clock.advance(10)
    assert (await gone(bench)).outcome == Done()
    assert world.balancers() == []
    assert world.parts("pools") == []


# ---------------------------------------------------------------- public address


async def test_a_public_address_follows_the_spec(world: World) -> None:
    bench = await settled(world)
    assert "publicIP" not in bench.status
    bench.edit(publicIP=True)
    assert (await bench.run()).outcome == Done()
    (address,) = world.addresses()
    assert bench.status["publicIP"] == address["floating_ip_address"]
    bench.edit(publicIP=False)
    assert (await bench.run()).outcome == Done()
    assert "publicIP" not in bench.status
    assert world.writes() == ["POST floatingips", "DELETE floatingips"]


async def test_oc_22_an_address_that_lost_its_port_is_put_back(world: World) -> None:
    bench = await settled(world, publicIP=True)
    (address,) = world.addresses()
    world.cloud.neutron.foreign("disassociate", address["id"], {})
    assert (await bench.run()).outcome == Done()
    assert world.addresses()[0]["port_id"] == world.balancer["vip_port_id"]
    assert world.writes() == ["PUT floatingips"]


async def test_oc_22_an_address_whose_answer_was_lost_is_not_made_twice(world: World) -> None:
    bench = world.bench(publicIP=True)
    await bench.run()
    world.rest()
    world.fail("no_answer_after", service="network", method="POST", path="/floatingips")
    assert code(await bench.run()) is Code.UNKNOWN
    world.clock.advance(10)
    assert (await bench.run()).outcome == Done()
    assert len(world.addresses()) == 1


async def test_no_external_network_is_a_clear_error(world: World) -> None:
    bench = await settled(world)
    assert bench.region is not None
    assert bench.region.openstack is not None
    section = bench.region.model_dump(mode="json")
    section["openstack"]["network"] = {"externalNetworks": {"selector": {"tags": ["gold"]}}}
    bench.region = type(bench.region).model_validate(section)
    bench.edit(publicIP=True)
    ending = await bench.run()
    assert code(ending) is Code.NOT_OFFERED
    assert isinstance(ending.outcome, Retry)
    assert "external network" in ending.outcome.message


# ---------------------------------------------------------------- what a provider refuses


def refused_wishes() -> list[Any]:
    pool = WEB["pool"]
    return [
        pytest.param("ROUND_ROBIN", WEB, id="method"),
        pytest.param("SOURCE_IP_PORT", {**WEB, "allowedCIDRs": ["10.0.0.0/8"]}, id="ranges"),
        pytest.param("SOURCE_IP_PORT", {**WEB, "pool": {**pool, "proxyProtocolV2": True}}, id="proxy"),
    ]


async def parked(bench: PassBench) -> Ending:
    """Passes as the loop would run them until one parks."""
    for _ in range(20):
        ending = await bench.run()
        if isinstance(ending.outcome, Park):
            return ending
        assert isinstance(ending.outcome, Retry | Yield)
        assert code(ending) in (Code.NOT_OFFERED, Code.BUSY)
        bench.clock.advance(ending.outcome.after or 10)
    raise AssertionError("it never parked")


@pytest.mark.parametrize(("algorithm", "listener"), refused_wishes())
@pytest.mark.parametrize("requested", [None, "192.168.10.77"])
async def test_oc_10_a_refused_create_is_sent_once_and_leaves_nothing(
    algorithm: str, listener: dict[str, Any], requested: str | None
) -> None:
    world = World(algorithm=algorithm)
    bench = world.bench(listeners=[listener], requestedVIPAddress=requested)
    first = await bench.run()
    assert isinstance(first.outcome, Retry)
    assert first.outcome.code is Code.NOT_OFFERED
    assert "OVN" not in first.outcome.message
    assert len(world.vip_ports()) == 1
    ending = await parked(bench)
    assert ending.outcome == Park(Code.NOT_OFFERED, first.outcome.message)
    assert world.vip_ports() == []
    assert world.writes() == ["POST loadbalancers", "DELETE ports"]
    world.clock.advance(100)
    assert isinstance((await bench.run()).outcome, Park)
    assert len(world.writes()) == 2


async def test_oc_10_a_provider_that_cleans_up_parks_at_the_next_look() -> None:
    world = World(algorithm="ROUND_ROBIN")
    world.cloud.settings.refused_lb_leaves_vip_port = False
    bench = world.bench()
    await bench.run()
    assert isinstance((await bench.run()).outcome, Park)
    assert world.writes() == ["POST loadbalancers"]


async def test_oc_10_the_operators_remedy_is_tried_without_an_edit() -> None:
    world = World(algorithm="ROUND_ROBIN")
    bench = world.bench()
    await parked(bench)
    assert bench.region is not None
    assert bench.region.openstack is not None
    bench.region.openstack.loadBalancer.algorithm = "SOURCE_IP_PORT"
    assert (await bench.until_settled()).outcome == Done()
    assert "refused" not in bench.status


async def test_k3_an_edit_right_after_the_refusal_leaks_no_port() -> None:
    world = World(algorithm="SOURCE_IP_PORT")
    bench = world.bench(listeners=[{**WEB, "allowedCIDRs": ["10.0.0.0/8"]}])
    await bench.run()
    bench.edit(listeners=[WEB])
    assert (await bench.until_settled()).outcome == Done()
    assert world.writes() == ["POST loadbalancers", "DELETE ports", "POST loadbalancers"]
    assert [p["id"] for p in world.vip_ports()] == [world.balancer["vip_port_id"]]


async def test_k3_a_removal_that_fails_is_tried_again_and_the_create_is_not() -> None:
    world = World(algorithm="ROUND_ROBIN")
    bench = world.bench()
    await bench.run()
    world.clock.advance(100)
    world.fail("status", service="network", method="DELETE", status=500, times=2)
    assert code(await bench.run()) is Code.UNKNOWN
    world.clock.advance(10)
    assert code(await bench.run()) is Code.UNKNOWN
    await parked(bench)
    assert world.vip_ports() == []
    assert world.writes().count("POST loadbalancers") == 1


async def test_k3_a_deletion_takes_the_left_over_port_along() -> None:
    world = World(algorithm="ROUND_ROBIN")
    bench = world.bench()
    await bench.run()
    bench.deleting = True
    ending = await bench.run()
    assert (ending.rule, code(ending)) == ("14.2-1-stray-port-young", Code.BUSY)
    assert (await bench.until_settled()).outcome == Done()
    assert world.vip_ports() == []


async def test_a_port_left_by_an_earlier_try_is_found_by_the_requested_address() -> None:
    """The process ended before the refusal was noted: the next create meets 409, and the pass after it looks."""
    world = World(algorithm="ROUND_ROBIN")
    await world.bench(requestedVIPAddress="192.168.10.77").run()
    (left,) = world.vip_ports()
    world.cloud.log.clear()
    world.algorithm = "SOURCE_IP_PORT"
    bench = world.bench(requestedVIPAddress="192.168.10.77")
    assert code(await bench.run()) is Code.CONFLICT
    assert world.vip_ports() == [left]
    world.clock.advance(100)
    assert (await bench.until_settled()).outcome == Done()
    assert world.writes() == ["POST loadbalancers", "DELETE ports", "POST loadbalancers"]
    (port,) = world.vip_ports()
    assert port["id"] != left["id"]


async def test_k3_a_vip_port_whose_balancer_is_still_being_made_is_never_taken_for_a_stray(
    world: World,
) -> None:
    """The load balancer's row shows later than its port: an old refusal and a create without an answer together."""
    bench = world.bench(requestedVIPAddress="192.168.10.77")
    bench.status = {"refused": {"wish": "0:X", "at": iso(world.clock.now())}}
    world.fail("no_answer_after", service="load-balancer", method="POST")
    assert code(await bench.run()) is Code.UNKNOWN
    assert "refused" not in bench.status
    world.fail("empty_list", service="load-balancer", method="GET", path="/loadbalancers$")
    world.fail(
        "status", service="load-balancer", method="GET", path="/loadbalancers/", status=404, times=None
    )
    world.clock.advance(70)
    await bench.run()
    assert len(world.vip_ports()) == 1


async def test_k2_a_requested_address_that_somebody_uses_is_a_conflict_and_nothing_is_removed(
    world: World,
) -> None:
    wish = {"name": "theirs", "vip_subnet_id": world.subnet, "vip_address": "192.168.10.77"}
    world.tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", {"loadbalancer": wish})
    world.rest()
    world.cloud.log.clear()
    ending = await world.bench(requestedVIPAddress="192.168.10.77").run()
    assert code(ending) is Code.CONFLICT
    assert world.writes() == ["POST loadbalancers"]
    assert len(world.vip_ports()) == 1


@pytest.mark.parametrize("cleans_up", [False, True])
async def test_k2_ports_of_others_that_look_alike_are_left_when_a_create_is_refused(cleans_up: bool) -> None:
    """One with an odd mark, one that was there before we asked, one of a living load balancer."""
    world = World(algorithm="ROUND_ROBIN")
    world.cloud.settings.refused_lb_leaves_vip_port = not cleans_up
    state = world.cloud.neutron
    wish = {"name": "theirs", "vip_subnet_id": world.subnet}
    odd = state.vip_port_create(world.subnet, None, world.project, "x", "ovn-lb:vip", "lb-not-an-id")
    alien = state.vip_port_create(world.subnet, None, world.project, "x", "ovn-lb:vip", f"lb-{OTHER}")
    world.clock.advance(100)
    world.tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", {"loadbalancer": wish})
    world.rest()
    kept = {odd["id"], alien["id"], world.balancer["vip_port_id"]}
    await parked(world.bench())
    assert {p["id"] for p in world.vip_ports()} == kept


async def test_k3_two_creates_that_were_refused_at_once_leave_no_port() -> None:
    """Nobody can tell the two ports apart; neither will ever be used, and whichever pass comes first removes both."""
    world = World(algorithm="ROUND_ROBIN")
    benches = [world.bench(), world.bench(ident=OTHER)]
    for bench in benches:
        await bench.run()
    assert len(world.vip_ports()) == 2
    for bench in benches:
        await parked(bench)
    assert world.vip_ports() == []
    assert sorted(world.writes()) == ["DELETE ports"] * 2 + ["POST loadbalancers"] * 2


async def test_k3_a_port_of_a_neighbour_in_the_making_outlives_the_refusal_of_ours() -> None:
    """Both ports are of the same moment; the neighbour's load balancer shows soon, and its port is never touched."""
    world = World(algorithm="ROUND_ROBIN")
    bench = world.bench()
    await bench.run()
    wish = {"name": "theirs", "vip_subnet_id": world.subnet}
    world.tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", {"loadbalancer": wish})
    await parked(bench)
    assert [p["id"] for p in world.vip_ports()] == [world.balancer["vip_port_id"]]


async def test_k2_a_neighbour_that_is_being_made_does_not_let_our_stray_be_forgotten() -> None:
    """Two candidates at first; the neighbour's load balancer shows a moment later, and then ours alone is left and goes."""
    world = World(algorithm="ROUND_ROBIN")
    bench = world.bench()
    await bench.run()
    (left,) = world.vip_ports()
    neighbour = world.cloud.neutron.vip_port_create(
        world.subnet, None, world.project, "x", "ovn-lb:vip", f"lb-{OTHER}"
    )
    world.algorithm = "SOURCE_IP_PORT"
    again = world.bench()
    again.status = bench.status
    assert isinstance((await again.run()).outcome, Yield)
    assert len(world.vip_ports()) == 2
    world.cloud.foreign("network", "delete", neighbour["id"])
    world.clock.advance(100)
    assert (await again.until_settled()).outcome == Done()
    assert left["id"] not in {p["id"] for p in world.vip_ports()}


# ---------------------------------------------------------------- differences


async def test_oc_24_a_load_balancer_that_was_renamed_in_the_cloud_is_still_ours(world: World) -> None:
    """GIVEN one that somebody renamed WHEN passes run THEN none is made beside it; and it goes when it is to go."""
    bench = await settled(world, publicIP=True)
    world.balancer["name"] = "somebody's"
    restarted = world.bench(publicIP=True)
    restarted.status = bench.status
    for passes in (bench, restarted):
        for _ in range(3):
            assert (await passes.run()).outcome == Done()
            world.clock.advance(10)
    assert world.writes() == []
    assert len(world.balancers()) == 1
    assert (await gone(restarted)).outcome == Done()
    assert (world.balancers(), world.addresses(), world.vip_ports()) == ([], [], [])


async def test_oc_24_a_name_that_somebody_gave_to_theirs_is_no_claim(world: World) -> None:
    """GIVEN ours gone and its id's place taken by nothing of ours WHEN a pass runs THEN another one's mark is not taken for ours."""
    bench = await settled(world)
    old = world.balancer
    old["name"], old["description"] = "web", f"lb-{OTHER}"
    assert (await bench.until_settled()).outcome == Done()
    assert [row["name"] for row in world.balancers() if row["id"] != old["id"]] == [NAME]
    assert old in world.balancers()


@pytest.mark.parametrize("part", ["listeners", "pools", "members", "healthmonitors"])
async def test_a_list_of_parts_that_lies_once_parks_nothing(world: World, part: str) -> None:
    """Nothing would be due again, and nobody changed anything."""
    bench = await settled(world)
    path = f"/{part}$"
    world.cloud.faults.add(Fault("empty_list", service="load-balancer", method="GET", path=path, times=1))
    assert isinstance((await bench.run()).outcome, Yield)
    assert (await bench.run()).outcome == Done()
    assert world.writes() == []


async def test_k15_two_quiet_passes_write_nothing(world: World) -> None:
    bench = await settled(world, publicIP=True)
    before = dict(bench.status)
    for _ in range(2):
        assert (await bench.run()).outcome == Done()
    assert world.writes() == []
    assert bench.status == before
    assert len(world.calls()) == 2 * 7


# ---------------------------------------------------------------- deletion


async def test_inv_286_ref_061_the_address_goes_first_then_the_rest_in_one(world: World) -> None:
    bench = await settled(world, publicIP=True)
    bench.deleting = True
    assert isinstance((await bench.run()).outcome, Yield)
    assert world.writes() == ["DELETE floatingips", "DELETE loadbalancers"]
    assert "vipAddress" in bench.status
    assert "publicIP" not in bench.status
    world.clock.advance(10)
    assert (await bench.until_settled()).outcome == Done()
    assert "vipAddress" not in bench.status
    assert (world.balancers(), world.addresses(), world.vip_ports()) == ([], [], [])


async def test_a_cascade_is_not_sent_while_a_part_is_made(world: World) -> None:
    """The load balancer reads ACTIVE before its parts do; a cascade at that moment would strand them for ever."""
    bench = world.bench()
    await bench.run()
    world.clock.advance(1.1)
    bench.deleting = True
    ending = await bench.run()
    assert (ending.rule, code(ending)) == ("14.4-parts", Code.BUSY)
    assert (await bench.until_settled()).outcome == Done()
    assert [world.parts(k) for k in ("listeners", "pools", "members", "monitors")] == [[], [], [], []]


async def test_a_balancer_that_went_by_itself_is_looked_for_again(world: World) -> None:
    bench = await settled(world)
    answer = {"faultcode": "Client", "faultstring": f"Load Balancer {BALANCER} not found.", "debuginfo": None}
    world.fail("status", service="load-balancer", method="DELETE", status=404, answer=answer)
    bench.deleting = True
    assert isinstance((await bench.run()).outcome, Yield)
    assert len(world.balancers()) == 1
    assert (await bench.until_settled()).outcome == Done()


async def test_deleting_what_was_never_made_makes_no_write(world: World) -> None:
    assert (await gone(world.bench())).outcome == Done()
    assert world.writes() == []


async def test_an_address_of_ours_that_hangs_on_nothing_goes_with_the_rest(world: World) -> None:
    bench = await settled(world, publicIP=True)
    (address,) = world.addresses()
    world.cloud.neutron.foreign("disassociate", address["id"], {})
    world.cloud.octavia.foreign("delete", world.balancer["id"], {})
    assert (await gone(bench)).outcome == Done()
    assert world.addresses() == []


async def test_inv_003_in_another_tenants_network_nothing_is_read_or_made(world: World) -> None:
    world.put_network(tenant="stranger", version=2)
    bench = world.bench()
    assert code(await bench.run()) is Code.CONSISTENCY
    assert (await gone(bench)).outcome == Done()
    assert world.calls() == []


async def test_an_identity_other_than_the_networks_is_told(world: World) -> None:
    world.put_network(identity=OTHER, version=2)
    bench = world.bench()
    ending = await bench.run()
    assert code(ending) is Code.CONSISTENCY
    assert world.calls() == []
    assert IDENTITY != OTHER


@pytest.mark.parametrize(
    "noun", ["loadbalancers", "floatingips", "listeners", "pools", "members", "healthmonitors"]
)
async def test_k6_a_list_that_fails_is_no_absence(world: World, noun: str) -> None:
    bench = await settled(world, publicIP=True)
    world.fail("status", method="GET", path=f"/{noun}", status=503)
    assert code(await bench.run()) is Code.UNAVAILABLE
    assert world.writes() == []
    assert (await bench.run()).outcome == Done()


# ---------------------------------------------------------------- a list that lies


@pytest.mark.parametrize("deleting", [False, True])
async def test_k6_a_list_without_the_balancer_that_was_there_is_compared_with_a_read_by_id(
    world: World, deleting: bool
) -> None:
    bench = await settled(world)
    bench.deleting = deleting
    world.fail("empty_list", service="load-balancer", method="GET", path="/loadbalancers$", times=2)
    for _ in range(2):
        assert code(await bench.run()) is Code.UNAVAILABLE
        world.clock.advance(10)
    assert world.writes() == []
    assert len(world.balancers()) == 1
    assert (await bench.until_settled()).outcome == Done()
    assert "POST loadbalancers" not in world.writes()
    assert len(world.balancers()) == (0 if deleting else 1)


async def test_k6_a_balancer_that_is_gone_is_made_again_and_its_note_follows(world: World) -> None:
    bench = await settled(world)
    old = world.balancer["id"]
    assert bench.notes.of(bench.key) == {"loadbalancer": old}
    world.tenant.call("load-balancer", "DELETE", f"/v2/lbaas/loadbalancers/{old}?cascade=true")
    world.rest()
    assert (await bench.until_settled()).outcome == Done()
    new = world.balancer["id"]
    assert new != old
    assert bench.notes.of(bench.key) == {"loadbalancer": new}
    assert new not in str(bench.status)
