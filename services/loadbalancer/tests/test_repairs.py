"""Edits and drift of a load balancer's parts against the simulated cloud: requests, refusals, lost answers, crashes."""

from typing import Any

import pytest
from services.loadbalancer.tests.test_passes import NEAR, code, settled
from services.loadbalancer.tests.world import DNS, NAME, OTHER, WEB, World

from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead.reconcile.drive import Ending
from roadstead.testing.cloudsim.tables import Row
from roadstead.testing.passbench import PassBench

POOL = WEB["pool"]
LB = "load-balancer"


def web(changes: dict[str, Any] | None = None, **pool: Any) -> list[dict[str, Any]]:
    """Both listeners; what is told of the first one and its pool changed."""
    return [{**WEB, **(changes or {}), "pool": {**POOL, **pool}}, DNS]


def part(world: World, kind: str, name: str) -> Row:
    (found,) = [row for row in world.parts(kind) if row["name"] == f"{NAME}-{name}"]
    return found


def members(world: World, name: str = "web-pool") -> set[tuple[str, int]]:
    pool = part(world, "pools", name)
    return {(m["address"], m["protocol_port"]) for m in world.parts("members") if m["_pool"] == pool["id"]}


async def at_rest(bench: PassBench, world: World) -> Ending:
    """Passes as the loop would run them, until one does not yield."""
    ending = await bench.until_settled(passes=40, pause=3.0)
    world.cloud.settle()
    return ending


# ---------------------------------------------------------------- edits


@pytest.mark.parametrize(
    ("listeners", "writes"),
    [
        pytest.param(web(members=POOL["members"][:1]), ["PUT members"], id="members"),
        pytest.param(web(members=[]), ["PUT members"], id="no-members"),
        pytest.param(web({"idleTimeoutSeconds": 90}), ["PUT listeners"], id="timeout"),
        pytest.param(
            web(healthCheck={"intervalSeconds": 30, "timeoutSeconds": 9}), ["PUT healthmonitors"], id="check"
        ),
        pytest.param(web(healthCheck=None), ["DELETE healthmonitors"], id="no-check"),
        pytest.param([DNS], ["DELETE listeners", "DELETE pools"], id="listener-gone"),
        pytest.param(
            [WEB, DNS, {**WEB, "name": "tls", "port": 443}],
            ["POST pools", "POST listeners", "PUT members", "POST healthmonitors"],
            id="listener-more",
        ),
    ],
)
async def test_inv_263_inv_274_inv_275_inv_276_inv_277_inv_278_an_edit_costs_its_own_writes(
    world: World, listeners: list[Any], writes: list[str]
) -> None:
    bench = await settled(world)
    ident = world.balancer["id"]
    bench.edit(listeners=listeners)
    assert (await at_rest(bench, world)).outcome == Done()
    assert world.writes() == writes
    world.cloud.log.clear()
    assert (await bench.run()).outcome == Done()
    assert world.writes() == []
    assert world.balancer["id"] == ident
    assert {row["name"] for row in world.parts("listeners")} == {
        f"{NAME}-{x['name']}-listener" for x in listeners
    }
    assert len(world.parts("pools")) == len(listeners)
    assert len(world.parts("monitors")) == sum(
        1 for x in listeners if x["pool"].get("healthCheck") is not None
    )


async def test_inv_271_inv_272_ranges_come_and_go_in_place(amphora: World) -> None:
    bench = await settled(amphora)
    ident = part(amphora, "listeners", "web-listener")["id"]
    for wish, found in ((["10.0.0.0/8"], ["10.0.0.0/8"]), ([], None)):
        bench.edit(listeners=web({"allowedCIDRs": wish}))
        assert (await at_rest(bench, amphora)).outcome == Done()
        row = part(amphora, "listeners", "web-listener")
        assert (row["id"], row["allowed_cidrs"]) == (ident, found)
    assert amphora.writes() == ["PUT listeners"] * 2


async def test_inv_275_the_same_members_in_another_order_cause_no_write(world: World) -> None:
    bench = await settled(world)
    bench.edit(listeners=web(members=POOL["members"][::-1]))
    assert (await bench.run()).outcome == Done()
    assert world.writes() == []


async def test_ref_059_a_renamed_listener_frees_its_port_first(world: World) -> None:
    bench = await settled(world)
    bench.edit(listeners=[{**WEB, "name": "www"}, DNS])
    assert (await at_rest(bench, world)).outcome == Done()
    assert world.writes() == [
        "DELETE listeners",
        "POST pools",
        "POST listeners",
        "PUT members",
        "POST healthmonitors",
        "DELETE pools",
    ]
    assert {row["name"] for row in world.parts("pools")} == {f"{NAME}-www-pool", f"{NAME}-dns-pool"}
    assert {row["name"] for row in world.parts("monitors")} == {f"{NAME}-www-monitor", f"{NAME}-dns-monitor"}


async def test_inv_269_between_two_writes_the_load_balancer_has_come_to_rest(world: World) -> None:
    bench = await settled(world)
    bench.edit(listeners=[{**WEB, "name": "www"}, DNS])
    for _ in range(40):
        before = len(world.writes())
        busy = world.balancer["provisioning_status"] != "ACTIVE"
        ending = await bench.run()
        wrote = len(world.writes()) - before
        assert wrote <= (0 if busy else 1)
        if ending.outcome == Done():
            break
        world.clock.advance(0.3)
    assert ending.outcome == Done()


async def test_a_region_that_takes_another_method_changes_its_pools(world: World) -> None:
    bench = await settled(world)
    assert bench.region is not None
    assert bench.region.openstack is not None
    bench.region.openstack.loadBalancer.algorithm = "SOURCE_IP"
    assert (await at_rest(bench, world)).outcome == Done()
    assert world.writes() == ["PUT pools"] * 2
    assert {row["lb_algorithm"] for row in world.parts("pools")} == {"SOURCE_IP"}


# ---------------------------------------------------------------- drift


async def test_inv_263_inv_273_inv_011_what_somebody_changed_is_put_back(world: World) -> None:
    bench = await settled(world)
    state = world.cloud.octavia.state
    part(world, "pools", "web-pool")["lb_algorithm"] = "SOURCE_IP"
    state.listeners.change(part(world, "listeners", "web-listener"), default_pool_id=None)
    part(world, "monitors", "dns-monitor")["delay"] = 77
    assert (await at_rest(bench, world)).outcome == Done()
    assert world.writes() == ["PUT pools", "PUT listeners", "PUT healthmonitors"]
    assert (
        part(world, "listeners", "web-listener")["default_pool_id"] == part(world, "pools", "web-pool")["id"]
    )


async def test_inv_263_a_pool_that_somebody_deleted_comes_back_with_its_members(world: World) -> None:
    bench = await settled(world)
    pool = part(world, "pools", "web-pool")
    world.tenant.call(LB, "DELETE", f"/v2/lbaas/pools/{pool['id']}")
    world.rest()
    world.cloud.log.clear()
    assert (await at_rest(bench, world)).outcome == Done()
    assert world.writes() == ["POST pools", "PUT listeners", "PUT members", "POST healthmonitors"]
    assert len(members(world)) == 2


async def test_inv_279_parts_of_other_names_are_left_alone(world: World) -> None:
    bench = await settled(world)
    for name in [*NEAR[1:], f"{NAME}extra-pool", "theirs"]:
        wish = {
            "name": name,
            "loadbalancer_id": world.balancer["id"],
            "protocol": "TCP",
            "lb_algorithm": "SOURCE_IP",
        }
        world.tenant.call(LB, "POST", "/v2/lbaas/pools", {"pool": wish})
        world.rest()
    before = {row["id"] for row in world.parts("pools")}
    world.cloud.log.clear()
    assert (await at_rest(bench, world)).outcome == Done()
    assert {row["id"] for row in world.parts("pools")} == before
    assert OTHER not in str(world.writes())


# ---------------------------------------------------------------- what a provider refuses


@pytest.mark.parametrize(
    ("algorithm", "listeners", "asked"),
    [
        pytest.param(None, web({"allowedCIDRs": ["10.0.0.0/8"]}), ["PUT listeners"], id="ranges"),
        pytest.param("ROUND_ROBIN", web(), ["PUT pools"], id="method"),
        pytest.param(
            None,
            [WEB, DNS, {**WEB, "name": "tls", "port": 443, "pool": {**POOL, "proxyProtocolV2": True}}],
            ["POST pools"],
            id="proxy",
        ),
        pytest.param(
            None, web(members=[{"address": "10.9.9.9", "port": 1}]), ["PUT members"], id="member-elsewhere"
        ),
        pytest.param(
            None,
            [WEB, DNS, {**WEB, "name": "tls", "port": 443, "allowedCIDRs": ["10.0.0.0/8"]}],
            ["POST pools", "POST listeners"],
            id="listener-ranges",
        ),
    ],
)
async def test_oc_10_a_refused_change_is_sent_once(
    world: World, algorithm: str | None, listeners: list[Any], asked: list[str]
) -> None:
    bench = await settled(world)
    bench.edit(listeners=listeners)
    assert bench.region is not None
    assert bench.region.openstack is not None
    if algorithm:
        bench.region.openstack.loadBalancer.algorithm = algorithm
    ending = await at_rest(bench, world)
    assert isinstance(ending.outcome, Park), ending
    assert ending.outcome.code is Code.NOT_OFFERED
    assert "OVN" not in ending.outcome.message
    assert world.writes() == asked
    for _ in range(5):
        world.clock.advance(100)
        again = await bench.run()
        assert again.outcome == ending.outcome
    assert world.writes() == asked
    assert world.balancer["provisioning_status"] == "ACTIVE"
    bench.edit(listeners=[WEB, DNS])
    bench.region.openstack.loadBalancer.algorithm = "SOURCE_IP_PORT"
    assert (await at_rest(bench, world)).outcome == Done()
    assert "refused" not in bench.status


async def test_oc_10_a_refusal_outlives_a_restart_and_a_slow_load_balancer(world: World) -> None:
    bench = await settled(world)
    bench.edit(listeners=web({"allowedCIDRs": ["10.0.0.0/8"]}))
    assert isinstance((await at_rest(bench, world)).outcome, Park)
    world.balancer["provisioning_status"] = "PENDING_UPDATE"
    restarted = world.bench(listeners=web({"allowedCIDRs": ["10.0.0.0/8"]}))
    restarted.status, restarted.generation = bench.status, bench.generation
    assert isinstance((await restarted.run()).outcome, Yield)
    world.balancer["provisioning_status"] = "ACTIVE"
    assert isinstance((await restarted.run()).outcome, Park)
    assert world.writes() == ["PUT listeners"]


async def test_oc_10_the_regions_remedy_is_tried_without_an_edit(world: World) -> None:
    bench = await settled(world)
    assert bench.region is not None
    assert bench.region.openstack is not None
    bench.region.openstack.loadBalancer.algorithm = "LEAST_CONNECTIONS"
    assert isinstance((await at_rest(bench, world)).outcome, Park)
    bench.region.openstack.loadBalancer.algorithm = "SOURCE_IP"
    assert (await at_rest(bench, world)).outcome == Done()
    assert world.writes() == ["PUT pools"] * 3


# ---------------------------------------------------------------- lost answers and crashes

RENAMED = [{**WEB, "name": "www"}, DNS]


@pytest.mark.parametrize("kind", ["no_answer_after", "no_answer_before"])
@pytest.mark.parametrize(
    ("method", "noun"),
    [
        ("DELETE", "/listeners/"),
        ("POST", "/pools$"),
        ("POST", "/listeners$"),
        ("PUT", "/members$"),
        ("POST", "/healthmonitors$"),
        ("DELETE", "/pools/"),
    ],
)
async def test_inv_143_a_change_whose_answer_was_lost_is_made_once(
    world: World, kind: str, method: str, noun: str
) -> None:
    """The passes go on with a fresh process each time: all that it knows is the stored status."""
    bench = await settled(world)
    bench.edit(listeners=RENAMED)
    world.fail(kind, service=LB, method=method, path=noun)
    lost = 0
    for _ in range(60):
        fresh = world.bench(listeners=RENAMED)
        fresh.status, fresh.generation, fresh.asked = bench.status, bench.generation, bench.asked
        ending = await fresh.run()
        bench = fresh
        lost += code(ending) in (Code.UNKNOWN, Code.UNAVAILABLE)
        if ending.outcome == Done():
            break
        world.clock.advance(5)
    assert ending.outcome == Done()
    assert lost == 1
    names = [row["name"] for kind in ("listeners", "pools", "monitors") for row in world.parts(kind)]
    assert len(names) == len(set(names)) == 6
    assert len(members(world, "www-pool")) == 2


async def test_k6_a_list_of_parts_that_fails_is_no_absence(world: World) -> None:
    bench = await settled(world)
    bench.edit(listeners=RENAMED)
    world.fail("status", service=LB, method="GET", path="/listeners$", status=503, times=3)
    for _ in range(3):
        assert code(await bench.run()) is Code.UNAVAILABLE
    assert world.writes() == []


async def test_a_change_that_breaks_the_load_balancer_is_an_error_and_nothing_more_is_asked(
    world: World,
) -> None:
    bench = await settled(world)
    world.breaks("lb_update")
    bench.edit(listeners=web(members=[]))
    ending = await at_rest(bench, world)
    assert (type(ending.outcome), code(ending)) == (Retry, Code.CONSISTENCY)
    for _ in range(3):
        world.clock.advance(10)
        await bench.run()
    assert world.writes() == ["PUT members"]


# ---------------------------------------------------------------- creates that fail


@pytest.mark.parametrize("quota", ["listener", "pool"])
async def test_oc_22_a_create_that_fails_again_and_again_keeps_at_most_one_port(
    world: World, quota: str
) -> None:
    """The quota is met after the VIP port was made, and the port stays: each try takes the last one's along."""
    limits = world.cloud.settings.quota_load_balancer
    limits[quota] = 0
    bench = world.bench()
    seen = set()
    for _ in range(30):
        ending = await bench.run()
        assert code(ending) is Code.QUOTA_EXCEEDED
        assert len(world.vip_ports()) <= 1
        seen |= {port["id"] for port in world.vip_ports()}
        assert isinstance(ending.outcome, Retry)
        world.clock.advance(ending.outcome.after or 10)
    assert len(seen) > 2
    limits[quota] = -1
    assert (await bench.until_settled()).outcome in (Done(), ending.outcome)
    world.clock.advance(100)
    assert (await bench.until_settled()).outcome == Done()
    assert [port["id"] for port in world.vip_ports()] == [world.balancer["vip_port_id"]]


async def test_oc_22_the_port_of_a_failed_create_goes_with_its_deletion(world: World) -> None:
    world.cloud.settings.quota_load_balancer["pool"] = 0
    bench = world.bench()
    await bench.run()
    assert len(world.vip_ports()) == 1
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.vip_ports() == []


async def test_k15_the_requests_of_a_create_are_counted(world: World) -> None:
    """One write; a list before it, and one for each look until it rests; then the parts once."""
    bench = world.bench()
    await bench.run()
    assert [c.method for c in world.calls(LB)] == ["GET", "POST"]
    world.rest()
    world.cloud.log.clear()
    assert (await bench.run()).outcome == Done()
    assert [c.method for c in world.calls()] == ["GET"] * 7
