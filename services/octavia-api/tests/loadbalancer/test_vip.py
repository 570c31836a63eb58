"""Where a VIP will be: what the request may name, and what is learnt from the network, in whose name.

The texts are the original's; `a_23` is a line of the faults that are mended on purpose, `oc_07` a case.
"""

from dataclasses import replace
from typing import Any

import pytest

from roadstead_octavia.errors import ApiError
from roadstead_octavia.resources.loadbalancer.lookups import Lookups
from roadstead_octavia.resources.loadbalancer.vip import Additional, Vip, resolved

from .world import NETWORK, OPTIONS, OTHER_SUBNET, SUBNET, TOKEN, World, an_id


@pytest.fixture
def world() -> World:
    return World(None)


async def place(world: World, **body: Any) -> Vip:
    call = world.call(world.read("POST", body))
    return await resolved(call, call.body, Lookups(call))


async def refusal(world: World, **body: Any) -> str:
    with pytest.raises(ApiError) as refused:
        await place(world, **body)
    assert refused.value.status == 400
    return refused.value.text.removeprefix("Validation failure: ")


def a_port(world: World, *fixed: tuple[str, str], **more: Any) -> str:
    ips = [{"subnet_id": subnet, "ip_address": address} for subnet, address in fixed]
    given = {"network_id": NETWORK, "device_id": "", "qos_policy_id": None, "fixed_ips": ips, **more}
    return world.net.add("ports", an_id(), **given)


async def test_nothing_that_says_where_is_refused_with_what_would(world: World) -> None:
    assert "vip_port_id, vip_network_id, vip_subnet_id" in await refusal(world, name="x")
    world.options = replace(OPTIONS, allow_vip_network_id=False)
    assert await refusal(world, vip_network_id=NETWORK) == (
        "use of vip_network_id is disallowed by this deployment's configuration."
    )
    assert "vip_port_id, vip_subnet_id." in await refusal(world, name="x")


async def test_a_subnet_tells_the_network(world: World) -> None:
    assert await place(world, vip_subnet_id=SUBNET) == Vip(network_id=NETWORK, subnet_id=SUBNET)
    assert world.net.asked == [("subnets", SUBNET, TOKEN)]


async def test_a_port_tells_the_rest(world: World) -> None:
    port = a_port(world, (SUBNET, "192.0.0.4"))
    whole = Vip(port_id=port, network_id=NETWORK, subnet_id=SUBNET, ip_address="192.0.0.4")
    assert await place(world, vip_port_id=port) == whole
    assert await place(world, vip_port_id=port, vip_subnet_id=SUBNET) == whole
    assert await place(world, vip_port_id=port, vip_address="192.0.0.4") == whole


async def test_a_ports_addresses_are_compared_as_addresses(world: World) -> None:
    port = a_port(world, (OTHER_SUBNET, "192.0.1.4"), (SUBNET, "2001:db8::5"))
    found = await place(world, vip_port_id=port, vip_address="2001:db8:0:0::5")
    assert (found.subnet_id, found.ip_address) == (SUBNET, "2001:db8:0:0::5")


async def test_a_port_that_does_not_fit_is_refused(world: World) -> None:
    two = a_port(world, (SUBNET, "192.0.0.4"), (OTHER_SUBNET, "192.0.1.4"))
    assert (await refusal(world, vip_port_id=two)).startswith("VIP port's subnet could not be determined.")
    one = a_port(world, (SUBNET, "192.0.0.4"))
    assert await refusal(world, vip_port_id=one, vip_address="192.0.0.5") == (
        "Specified VIP address not found on the specified VIP port."
    )
    assert await refusal(world, vip_port_id=one, vip_subnet_id=OTHER_SUBNET) == (
        "No VIP address found on the specified VIP port within the specified subnet."
    )
    used = a_port(world, (SUBNET, "192.0.0.4"), device_id="server")
    assert await refusal(world, vip_port_id=used) == f"Port {used} is already used by device server "
    absent = an_id()
    assert await refusal(world, vip_port_id=absent) == f"Port {absent} not found."


async def test_a_ports_qos_policy_is_kept_unless_the_request_says_otherwise(world: World) -> None:
    own, other = (world.net.add("qos_policies", an_id()) for _ in range(2))
    port = a_port(world, (SUBNET, "192.0.0.4"), qos_policy_id=own)
    assert (await place(world, vip_port_id=port)).qos_policy_id == own
    assert (await place(world, vip_port_id=port, vip_qos_policy_id=other)).qos_policy_id == other
    assert (await place(world, vip_port_id=port, vip_qos_policy_id=None)).qos_policy_id is None


async def test_an_address_finds_its_subnet_in_the_network(world: World) -> None:
    found = await place(world, vip_network_id=NETWORK, vip_address="192.0.1.7")
    assert found.subnet_id == OTHER_SUBNET
    assert await refusal(world, vip_network_id=NETWORK, vip_address="198.51.100.1") == (
        "Supplied network does not contain a subnet for VIP address specified."
    )


async def test_a_23_a_subnet_without_a_readable_cidr_holds_no_address(world: World) -> None:
    for cidr in (None, "", "broken"):
        world.net.things["subnets", SUBNET]["cidr"] = cidr
        found = await place(world, vip_network_id=NETWORK, vip_address="192.0.1.7")
        assert found.subnet_id == OTHER_SUBNET


async def test_a_network_gives_its_first_subnet_of_ipv4_with_room(world: World) -> None:
    world.net.free = {SUBNET: 2, OTHER_SUBNET: 2}
    assert (await place(world, vip_network_id=NETWORK)).subnet_id == SUBNET
    world.net.things["subnets", SUBNET]["ip_version"] = 6
    assert (await place(world, vip_network_id=NETWORK)).subnet_id == OTHER_SUBNET
    world.net.things["subnets", OTHER_SUBNET]["ip_version"] = 6
    assert (await place(world, vip_network_id=NETWORK)).subnet_id == SUBNET
    world.net.free = {SUBNET: 1}
    assert (await refusal(world, vip_network_id=NETWORK)).startswith("Subnet(s) in the supplied network")
    world.options = replace(OPTIONS, loadbalancer_topology="ACTIVE_STANDBY")
    world.net.free = {SUBNET: 2, OTHER_SUBNET: 2}
    assert (await refusal(world, vip_network_id=NETWORK)).startswith("Subnet(s) in the supplied network")


async def test_a_network_without_that_subnet_or_without_any_is_refused(world: World) -> None:
    stranger = world.net.add("subnets", an_id(), network_id=an_id())
    assert (
        await refusal(world, vip_network_id=NETWORK, vip_subnet_id=stranger)
        == f"Subnet {stranger} not found."
    )
    empty = world.net.add("networks", an_id(), subnets=[])
    assert await refusal(world, vip_network_id=empty) == "Supplied network does not contain a subnet."


async def test_a_cloud_without_qos_refuses_a_policy(world: World) -> None:
    world.net.qos = False
    assert await refusal(world, vip_subnet_id=SUBNET, vip_qos_policy_id=an_id()) == (
        "VIP QoS policy is not allowed in this deployment."
    )
    world.net.qos = True
    absent = an_id()
    assert (
        await refusal(world, vip_subnet_id=SUBNET, vip_qos_policy_id=absent)
        == f"qos_policy {absent} not found."
    )


async def test_additional_vips_are_in_other_subnets_of_the_same_network(world: World) -> None:
    more = [{"subnet_id": OTHER_SUBNET, "ip_address": "192.0.1.5"}]
    found = await place(world, vip_subnet_id=SUBNET, additional_vips=more)
    assert found.additional == (Additional(OTHER_SUBNET, "192.0.1.5", NETWORK),)
    assert (await refusal(world, vip_subnet_id=SUBNET, additional_vips=[{"subnet_id": SUBNET}])).startswith(
        "Duplicate VIP subnet(s) specified."
    )
    far = world.net.add("subnets", an_id(), network_id=an_id())
    assert await refusal(world, vip_subnet_id=SUBNET, additional_vips=[{"subnet_id": far}]) == (
        "All VIP subnets must belong to the same network."
    )
    absent = an_id()
    assert await refusal(world, vip_subnet_id=SUBNET, additional_vips=[{"subnet_id": absent}]) == (
        f"Subnet {absent} not found"
    )


async def test_a_08_null_for_additional_vips_is_none(world: World) -> None:
    assert (await place(world, vip_subnet_id=SUBNET, additional_vips=None)).additional == ()


async def test_oc_07_everything_that_a_request_names_is_looked_up_with_the_callers_token(
    world: World,
) -> None:
    qos, group = world.net.add("qos_policies", an_id()), world.net.add("security_groups", an_id())
    named = {
        "vip_qos_policy_id": qos,
        "vip_sg_ids": [group],
        "additional_vips": [{"subnet_id": OTHER_SUBNET}],
    }
    port = a_port(world, (SUBNET, "192.0.0.4"))
    for where in (
        {"vip_subnet_id": SUBNET},
        {"vip_network_id": NETWORK, "vip_address": "192.0.0.5"},
        {"vip_port_id": port},
    ):
        world.net.asked.clear()
        await place(world, **where, **named)
        names = {qos, group, OTHER_SUBNET, *where.values()}
        asked = {(identifier, token) for _, identifier, token in world.net.asked if identifier in names}
        assert asked == {(name, TOKEN) for name in names if name != "192.0.0.5"}


async def test_no_object_is_looked_up_twice_in_a_request(world: World) -> None:
    await place(world, vip_subnet_id=SUBNET, additional_vips=[{"subnet_id": OTHER_SUBNET}])
    assert [identifier for _, identifier, _ in world.net.asked] == [SUBNET, OTHER_SUBNET]
