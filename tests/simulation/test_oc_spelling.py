"""Equal values in different spelling, and parts that the cloud fills in: no pass writes for them (OC-35)."""

import asyncio
import json
from typing import Any

from tests.simulation.cases import everything, region_section
from tests.simulation.test_oc_credentials import wake_all, writes
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key

PAIRS: list[list[dict[str, str]]] = [
    [{"cidr": "10.9.0.0/24"}, {"cidr": "10.8.0.7/32", "macAddress": "fa:16:3e:00:00:0a"}, {"cidr": "10.7.0.0/16"}],
    [{"cidr": "10.8.0.7", "macAddress": "FA-16-3E-00-00-0A"}, {"cidr": "10.7.0.0/255.255.0.0"}, {"cidr": "10.9.0.0/24"}],
    [{"cidr": "10.7.0.0/16"}, {"cidr": "10.8.0.7/32", "macAddress": "FA:16:3E:00:00:0A"}, {"cidr": "10.9.0.0/24"}],
]  # fmt: skip
RULES: list[list[dict[str, Any]]] = [
    [
        {"direction": "ingress", "protocol": "tcp", "port": {"number": 22}, "prefix": "192.0.2.0/24"},
        {"direction": "ingress", "protocol": "tcp", "port": {"range": {"start": 80, "end": 81}}},
        {"direction": "egress", "protocol": "udp", "port": {"number": 53}},
    ],
    [
        {
            "direction": "egress",
            "protocol": "udp",
            "port": {"number": 53},
            "prefix": "0.0.0.0/0",
        },
        {"direction": "ingress", "protocol": "tcp", "port": {"number": 22}, "cidr": "192.0.2.7/24"},
        {
            "direction": "ingress",
            "protocol": "tcp",
            "port": {"range": {"start": 80, "end": 81}},
            "prefix": "0.0.0.0/0",
        },
    ],
]
MEMBERS = [{"address": "192.168.10.200", "port": 8080}, {"address": "192.168.10.201", "port": 8080}]
LISTENERS = [
    {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": MEMBERS, "healthCheck": {}}},
    {"name": "dns", "protocol": "udp", "port": 53, "pool": {"members": []}},
]
BALANCERS: list[dict[str, Any]] = [
    {"listeners": LISTENERS},
    {
        "listeners": [
            {**LISTENERS[1], "allowedCIDRs": [], "idleTimeoutSeconds": None},
            {
                **LISTENERS[0],
                "allowedCIDRs": None,
                "idleTimeoutSeconds": 60,
                "pool": {
                    "members": MEMBERS[::-1],
                    "proxyProtocolV2": False,
                    "healthCheck": {"intervalSeconds": 10, "timeoutSeconds": 5},
                },
            },
        ],
        "publicIP": False,
        "tags": None,
    },
]
NETWORKS: list[dict[str, Any]] = [
    {"prefix": "192.168.10.0/24", "dnsNameservers": []},
    {"prefix": "192.168.10.0/24"},
    {"prefix": "192.168.10.0/24", "dnsNameservers": [], "routes": []},
]
WATCHED = ("network", "compute", "volume", "load-balancer")


def cloud_now(world: SimWorld) -> str:
    """All that the cloud holds of the workload, times of last change included."""
    held = world.cloud.dump()
    return json.dumps({service: held[service] for service in WATCHED}, sort_keys=True, default=str)


async def spell(world: SimWorld, keys: dict[str, Key], number: int) -> None:
    """Every wish once more, in the spelling of that number."""
    network = keys["network"]
    document = world.status(keys["server"])
    assert document is not None
    nic = {"id": network.id, "allowedAddressPairs": PAIRS[number % len(PAIRS)]}
    rules = {"rules": RULES[number % len(RULES)]}
    balancer = BALANCERS[number % len(BALANCERS)]
    await world.apply(network, "net-1", NETWORKS[number % len(NETWORKS)])
    await world.apply(keys["securitygroup"], "web", rules, networkId=network.id)
    await world.apply(keys["server"], "web-1", {**document["spec"], "networks": [nic]})
    await world.apply(keys["loadbalancer"], "front", balancer, networkId=network.id)


def test_oc_35_ten_passes_over_equal_values_in_other_spellings_write_once() -> None:
    """GIVEN address pairs without MAC, rules, members and listeners in other orders, things left out, null and empty
    WHEN ten passes each see another spelling THEN after the first nothing is written and nothing in the cloud changed."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=35) as world:
            await world.register(**region_section(world))
            keys = await everything(world)
            for key in keys.values():
                await world.until(key, "provisioned", within=1200)
            await world.delete(keys["loadbalancer"])
            await world.until(keys["loadbalancer"], "gone")
            await spell(world, keys, 0)
            for key in keys.values():
                await world.until(key, "provisioned", within=1200)
            await world.quiet()
            before, mark = cloud_now(world), world.cloud.sequence + 1
            for number in range(1, 11):
                await spell(world, keys, number)
                await wake_all(world)
                await asyncio.sleep(60)
                assert world.bus.dead == [], "a spelling was refused"
                assert writes(world, mark) == [], f"spelling {number}"
                assert {k.kind: world.provisioning(k) for k in keys.values()} == dict.fromkeys(
                    keys, "provisioned"
                )
            assert cloud_now(world) == before

    run_virtual(scenario())
