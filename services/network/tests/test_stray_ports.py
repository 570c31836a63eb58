"""A network's deletion and the VIP ports that refused load balancers leave behind (measured: Octavia does not remove them)."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest
from services.network.tests.world import World

from roadstead.cloud.port import Answer, Call
from roadstead.reconcile.decision import Code, Done, Yield
from roadstead.testing.cloudsim.caller import Caller
from roadstead.testing.passbench import PassBench
from roadstead_network.network.observe import MOST_STRAYS

GOING = ["PUT routers/*/remove_router_interface", "DELETE routers/*", "DELETE subnets/*", "DELETE networks/*"]


@pytest.fixture
def world() -> World:
    made = World()
    made.grant(made.user, made.project, "load-balancer_member")
    return made


async def going(world: World) -> tuple[PassBench, str]:
    """A settled network that is to be deleted, and its subnet."""
    bench = world.network()
    ending = await bench.run()
    assert ending.outcome == Done()
    world.cloud.log.clear()
    bench.deleting = True
    return bench, bench.status["openstack"]["subnetID"]


def stray(world: World, subnet: str, owner: str = "ovn-lb:vip", project: str = "", mark: str = "") -> Any:
    """The VIP port of a load balancer that nobody knows."""
    mark = mark or f"lb-{uuid4()}"
    return world.cloud.neutron.vip_port_create(subnet, None, project or world.project, "v", owner, mark)


@pytest.mark.parametrize("owner", ["ovn-lb:vip", "Octavia"])
async def test_k3_a_left_over_vip_port_goes_once_nobody_can_be_using_it(world: World, owner: str) -> None:
    bench, subnet = await going(world)
    stray(world, subnet, owner)
    first = await bench.run()
    assert (first.rule, first.outcome.code) == ("5.2-in-use", Code.IN_USE)  # type: ignore[union-attr]  # a Yield has a code
    assert world.writes() == []
    world.clock.advance(70)
    assert (await bench.run()).outcome == Done()
    assert world.writes() == ["DELETE ports/*", *GOING]
    assert {kind: names for kind, names in world.ours().items() if names} == {"security_groups": ["default"]}


async def test_k3_several_old_ones_in_one_subnet_go_as_well_a_bounded_number_a_pass(world: World) -> None:
    bench, subnet = await going(world)
    for _ in range(MOST_STRAYS + 2):
        stray(world, subnet)
    world.clock.advance(70)
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.message == "the network still has ports in use: 2 of a load balancer"
    reads = [c for c in world.calls() if c.service == "load-balancer"]
    assert len(reads) == 1 + MOST_STRAYS
    assert world.writes() == ["DELETE ports/*"] * MOST_STRAYS
    ending = await bench.run()
    assert ending.outcome == Done()
    assert world.writes() == ["DELETE ports/*"] * (MOST_STRAYS + 2) + GOING


async def test_k2_a_living_load_balancers_port_is_waited_for(world: World) -> None:
    bench, subnet = await going(world)
    tenant = Caller.login(world.cloud, {"id": world.user}, "tenant-word", {"project": {"id": world.project}})
    wish = {"name": "theirs", "vip_subnet_id": subnet}
    tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", {"loadbalancer": wish})
    world.clock.advance(100)
    world.cloud.settle()
    world.cloud.log.clear()
    assert (await bench.run()).rule == "5.2-in-use"
    assert world.writes() == []


@pytest.mark.parametrize("empty", [True, False])
async def test_k6_one_answer_that_says_unknown_is_not_enough(world: World, empty: bool) -> None:
    """The list lies, or the read by id does: the other one knows the load balancer."""
    bench, subnet = await going(world)
    tenant = Caller.login(world.cloud, {"id": world.user}, "tenant-word", {"project": {"id": world.project}})
    wish = {"name": "theirs", "vip_subnet_id": subnet}
    tenant.call("load-balancer", "POST", "/v2/lbaas/loadbalancers", {"loadbalancer": wish})
    world.clock.advance(100)
    world.cloud.settle()
    world.cloud.log.clear()
    fault = {"service": "load-balancer", "method": "GET"}
    if empty:
        world.fail("empty_list", path="/loadbalancers$", **fault)
    else:
        world.fail("status", path="/loadbalancers/", status=404, **fault)
    assert (await bench.run()).rule == "5.2-in-use"
    assert world.writes() == []


@pytest.mark.parametrize("status", [500, 503, 401])
async def test_k6_a_load_balancer_service_in_trouble_decides_nothing(world: World, status: int) -> None:
    bench, subnet = await going(world)
    stray(world, subnet)
    world.clock.advance(70)
    world.fail("status", service="load-balancer", method="GET", status=status, times=None)
    ending = await bench.run()
    assert ending.error is not None
    assert world.writes() == []


@dataclass
class NetworkOwnersSee:
    """A port whose cloud shows a network's owner all ports on it, as Neutron does and the simulator does not."""

    world: World

    async def call(self, call: Call) -> Answer:
        answer = await self.world.port.call(call)
        if call.verb != "port.list":
            return answer
        return replace(answer, value=[dict(p) for p in self.world.cloud.neutron.state.ports])


async def test_k2_what_is_another_projects_or_bears_another_mark_is_left(world: World) -> None:
    bench, subnet = await going(world)
    bench.cloud = NetworkOwnersSee(world)
    other = world.cloud.keystone.store.new_project("other", "default")["id"]
    stray(world, subnet, project=other)
    stray(world, subnet, owner="compute:nova")
    stray(world, subnet, mark="lb-not-an-id")
    world.clock.advance(70)
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.message == "the network still has ports in use: 2 of a load balancer, 1 of a server"
    assert world.writes() == []
    assert [c for c in world.calls() if c.service == "load-balancer"] == []


async def test_k2_a_stray_on_another_network_of_the_project_is_not_ours(world: World) -> None:
    bench, _ = await going(world)
    manager = Caller.login(
        world.cloud, {"id": world.region_user}, "region-word", {"project": {"id": world.project}}
    )
    network = manager.call("network", "POST", "/v2.0/networks", {"network": {"name": "x"}})["network"]
    wish = {"name": "x", "network_id": network["id"], "ip_version": 4, "cidr": "10.9.0.0/24"}
    subnet = manager.call("network", "POST", "/v2.0/subnets", {"subnet": wish})["subnet"]
    left = stray(world, subnet["id"])
    world.clock.advance(70)
    world.cloud.log.clear()
    assert (await bench.run()).outcome == Done()
    assert world.writes() == GOING
    assert world.cloud.neutron.state.ports.get(left["id"]) is not None
