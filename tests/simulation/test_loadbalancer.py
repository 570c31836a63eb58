"""Load balancers through the whole product on virtual time."""

from typing import Any

from tests.world.admin import Admin
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key
from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_loadbalancer.__main__ import SERVICE as LOADBALANCER
from roadstead_network.__main__ import SERVICE as NETWORK

NET = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
OVN = {"loadBalancer": {"algorithm": "SOURCE_IP_PORT"}}
SERVICES = (IDENTITY, NETWORK, LOADBALANCER)
LEFT_BY_NEUTRON = {"security_groups"}  # the default group that Neutron makes by itself
WEB: dict[str, Any] = {
    "name": "web",
    "protocol": "tcp",
    "port": 80,
    "pool": {
        "members": [{"address": "192.168.10.200", "port": 8080}, {"address": "192.168.10.201", "port": 8080}],
        "healthCheck": {"intervalSeconds": 10, "timeoutSeconds": 5},
    },
}
DNS: dict[str, Any] = {"name": "dns", "protocol": "udp", "port": 53, "pool": {"healthCheck": {}}}


async def balanced(world: SimWorld, **spec: Any) -> tuple[Key, Key]:
    """(network, load balancer), both asked for at once."""
    network = await world.apply(world.key("network"), "net-1", NET)
    wish = {"listeners": [WEB, DNS], **spec}
    balancer = await world.apply(world.key("loadbalancer"), "front", wish, networkId=network.id)
    return network, balancer


def verbs(world: SimWorld, key: Key) -> list[str]:
    return [w["verb"] for w in world.writes(key)]


def test_inv_264_inv_286_a_load_balancer_comes_and_goes_and_leaves_nothing() -> None:
    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register(**OVN)
            before = Admin(world.cloud).objects()
            network, balancer = await balanced(world, publicIP=True)
            document = await world.until(balancer, "provisioned")
            octavia = world.cloud.octavia.state
            (found,) = octavia.lbs
            assert document["status"]["vipAddress"] == found["vip_address"]
            assert document["status"]["publicIP"]
            assert {row["name"] for row in octavia.listeners} == {
                f"lb-{balancer.id}-web-listener",
                f"lb-{balancer.id}-dns-listener",
            }
            assert verbs(world, balancer) == ["loadbalancer.create", "floatingip.create"]
            await world.delete(network, cascade=True)
            await world.until(network, "gone")
            assert world.provisioning(balancer) == "gone"
            assert verbs(world, balancer)[2:] == ["floatingip.delete", "loadbalancer.delete"]
            assert {k for k, _ in Admin(world.cloud).objects() - before} <= LEFT_BY_NEUTRON

    run_virtual(scenario())


def test_oc_10_what_the_provider_refuses_parks_once_and_leaves_no_port() -> None:
    """A region whose method its OVN provider does not know; the operator's remedy and an edit then make it."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            region = await world.register()
            _, balancer = await balanced(world, requestedVIPAddress="192.168.10.210")
            document = await world.until(balancer, "error")
            assert document["status"]["code"] == "NOT_OFFERED"
            await world.quiet()
            assert verbs(world, balancer) == ["loadbalancer.create", "port.delete"]
            registered = world.status(region)
            assert registered is not None
            part = {**registered["spec"]["openstack"], **OVN}
            await world.apply(region, "simulated", {"provider": "openstack", "openstack": part})
            await world.until(region, "provisioned")
            wish = {"listeners": [WEB], "requestedVIPAddress": "192.168.10.210"}
            await world.apply(balancer, "front", wish, networkId=document["metadata"]["networkId"])
            document = await world.until(balancer, "provisioned")
            assert document["status"]["vipAddress"] == "192.168.10.210"

    run_virtual(scenario())


# ---------------------------------------------------------------- the service is killed at every await

STRIDE = 23  # of the awaits between two effects; every one of them would take minutes
EDITED = [
    {**WEB, "name": "www", "pool": {"members": WEB["pool"]["members"][:1]}},
    {**DNS, "pool": {"healthCheck": {"intervalSeconds": 30}}},
]


async def edited_life(kill_at: int | None) -> tuple[int, int]:
    """A load balancer is made, edited in nearly all of its parts, and removed; (awaits counted, kills)."""
    async with SimWorld.running(SERVICES, seed=7) as world:
        await world.register(**OVN)
        before = Admin(world.cloud).objects()
        network = await world.apply(world.key("network"), "net-1", NET)
        await world.until(network, "provisioned")
        world.points.count = 0
        world.points.only = "loadbalancer"
        world.points.kill_at = kill_at
        balancer = await world.apply(
            world.key("loadbalancer"),
            "front",
            {"listeners": [WEB, DNS], "publicIP": True},
            networkId=network.id,
        )
        await world.until(balancer, "provisioned", within=1800)
        await world.apply(balancer, "front", {"listeners": EDITED}, networkId=network.id)
        await world.quiet()
        await world.until(balancer, "provisioned", within=1800)
        octavia = world.cloud.octavia.state
        assert len(octavia.lbs) == 1
        name = f"lb-{balancer.id}"
        assert sorted(row["name"] for row in octavia.listeners) == [
            f"{name}-dns-listener",
            f"{name}-www-listener",
        ]
        assert sorted(row["name"] for row in octavia.pools) == [f"{name}-dns-pool", f"{name}-www-pool"]
        assert [(row["name"], row["delay"]) for row in octavia.monitors] == [(f"{name}-dns-monitor", 30)]
        assert [m["address"] for m in octavia.members] == ["192.168.10.200"]
        await world.delete(balancer)
        await world.until(balancer, "gone", within=1800)
        await world.delete(network)
        await world.until(network, "gone", within=900)
        left = Admin(world.cloud).objects() - before
        assert {kind for kind, _ in left} <= LEFT_BY_NEUTRON, left
        return world.points.count, world.kills


def test_inv_263_kills_all_along_an_edit_leave_what_the_spec_says() -> None:
    total, kills = run_virtual(edited_life(None))
    assert total > 40
    assert kills == 0
    for point in range(1, total + 1, STRIDE):
        _, kills = run_virtual(edited_life(point))
        assert kills >= 1, point


def test_oc_10_two_balancers_that_are_refused_at_once_leave_no_port() -> None:
    """GIVEN a cloud whose refused creates leave their VIP ports WHEN two are refused together THEN both park, and no port is left."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            await world.register()
            network = await world.apply(world.key("network"), "net-1", NET)
            await world.until(network, "provisioned")
            both = [
                await world.apply(
                    world.key("loadbalancer"), f"front-{n}", {"listeners": [WEB]}, networkId=network.id
                )
                for n in range(2)
            ]
            for balancer in both:
                await world.until(balancer, "error")
            owners = [port["device_owner"] for port in world.cloud.neutron.state.ports]
            assert owners.count("ovn-lb:vip") == 2
            await world.quiet()
            owners = [port["device_owner"] for port in world.cloud.neutron.state.ports]
            assert "ovn-lb:vip" not in owners
            written = [verb for balancer in both for verb in verbs(world, balancer)]
            assert written.count("loadbalancer.create") == 2
            assert set(written) == {"loadbalancer.create", "port.delete"}

    run_virtual(scenario())


def test_oc_10_a_refused_edit_parks_until_the_region_takes_it() -> None:
    """GIVEN a load balancer WHEN it is edited in a region whose method OVN refuses by then
    THEN one request parks it, and another method of the region heals it without a further edit."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES) as world:
            region = await world.register(**OVN)
            network, balancer = await balanced(world)
            await world.until(balancer, "provisioned")
            registered = world.status(region)
            assert registered is not None

            async def method(name: str) -> None:
                wish = {**registered["spec"]["openstack"], "loadBalancer": {"algorithm": name}}
                await world.apply(region, "simulated", {"provider": "openstack", "openstack": wish})
                await world.quiet()

            await method("ROUND_ROBIN")
            await world.apply(balancer, "front", {"listeners": [EDITED[0], DNS]}, networkId=network.id)
            await world.quiet()
            document = await world.until(balancer, "error")
            assert document["status"]["code"] == "NOT_OFFERED"
            asked = ["loadbalancer.create", "pool.update", "listener.delete", "pool.create"]
            assert verbs(world, balancer) == asked
            await method("SOURCE_IP")
            await world.until(balancer, "provisioned")
            assert verbs(world, balancer)[4:] == [
                *("pool.create", "listener.create", "member.batch", "pool.update", "pool.delete"),
            ]

    run_virtual(scenario())
