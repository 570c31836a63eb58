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
