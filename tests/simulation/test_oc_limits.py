"""A cloud that asks to slow down, lists of many pages, and an OVN-only Octavia (OC-10, OC-33, OC-34)."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.simulation.cases import fault, region_section
from tests.simulation.test_loadbalancer import DNS, OVN, SERVICES, WEB, verbs
from tests.simulation.test_oc_credentials import wake_all, writes
from tests.simulation.test_oc_names import somebody
from tests.simulation.test_server import network_of, server_in
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.subjects import Key

SLOW = {"overLimit": {"code": 429, "message": "This request was rate-limited."}}


async def statuses(world: SimWorld, keys: list[Key], seconds: int) -> set[str]:
    """Every word that the keys' provisioning took in that time."""
    seen = set()
    for _ in range(seconds):
        await asyncio.sleep(1)
        seen |= {world.provisioning(key) for key in keys}
    return seen


# ---------------------------------------------------------------- OC-33


@pytest.mark.parametrize("form", ["seconds", "nothing", "date"])
def test_oc_33_a_cloud_that_asks_to_slow_down_is_obeyed_by_all_and_fails_nobody(form: str) -> None:
    """GIVEN twenty servers under way and a cloud that answers 429 three times WHEN it names 7 s, a date, or nothing
    THEN nothing leaves for that region in the pause, no server reads error, and each is made once."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=33) as world:
            world.cloud.settings.quota_compute["instances"] = -1
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            await world.until(network, "provisioned")
            told = {"seconds": {"Retry-After": "7"}, "nothing": {}, "date": {}}[form]
            if form == "date":
                told = {"Retry-After": format_datetime(world.clock.now() + timedelta(seconds=9), usegmt=True)}
            fault(world, "status", path="/servers", status=429, answer=SLOW, headers=told, times=3)
            keys = [await server_in(world, network, f"web-{n}") for n in range(20)]
            assert "error" not in await statuses(world, keys, 200)
            for key in keys:
                await world.until(key, "provisioned", within=600)
            slowed = [c for c in world.cloud.log if c.status == 429]
            assert len(slowed) == 3
            first, until = slowed[0], slowed[0].at + timedelta(seconds=6.9 if form != "nothing" else 0.9)
            meanwhile = [
                c for c in world.cloud.log.calls(since=first.sequence) if c.at < until and c.status < 300 and c.user_name != "admin"
            ]  # fmt: skip
            assert len(meanwhile) <= 10, "more than what was on its way already"
            assert {c.at for c in meanwhile} <= {first.at}
            assert len(world.cloud.nova.servers) == 20

    run_virtual(scenario())


def test_oc_33_another_region_is_not_slowed_down() -> None:
    """GIVEN two regions and one whose cloud asks for five minutes WHEN both have servers to make THEN the other's are made meanwhile."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=330) as slow, SimWorld.running(ALL, seed=331) as quick:
            networks = []
            for world in (slow, quick):
                await world.register(**region_section(world))
                network, _ = await network_of(world)
                await world.until(network, "provisioned")
                networks.append(network)
            told = {"Retry-After": "300"}
            fault(slow, "status", path="/servers", status=429, answer=SLOW, headers=told, times=1)
            held = [await server_in(slow, networks[0], f"web-{n}") for n in range(4)]
            free = [await server_in(quick, networks[1], f"web-{n}") for n in range(4)]
            for key in free:
                await quick.until(key, "provisioned", within=60)
            assert "provisioned" not in {slow.provisioning(key) for key in held}
            for key in held:
                await slow.until(key, "provisioned", within=900)

    run_virtual(scenario())


@pytest.mark.parametrize(("headers", "word"), [({}, "error"), ({"Retry-After": "7"}, "provisioning")])
def test_oc_33_a_413_is_a_refusal_unless_it_names_a_time(headers: Mapping[str, str], word: str) -> None:
    """GIVEN 413 for each POST of a server WHEN it comes with and without a time THEN one is waited out, the other is told and
    asked ever more seldom."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=332) as world:
            await world.register(**region_section(world))
            network, _ = await network_of(world)
            await world.until(network, "provisioned")
            answer = {"overLimit": {"code": 413, "message": "Request is too large."}}
            refusal = fault(
                world, "status", method="POST", path="/servers$", status=413, answer=answer, headers=dict(headers), times=None
            )  # fmt: skip
            key = await server_in(world, network, "web-1")
            await asyncio.sleep(60)
            assert world.provisioning(key) == word
            if word == "error":
                await asyncio.sleep(3540)
                assert len([c for c in world.cloud.log if c.status == 413]) <= 20
            world.cloud.faults.remove(refusal)
            await world.until(key, "provisioned", within=600)

    run_virtual(scenario())


# ---------------------------------------------------------------- OC-34


@pytest.mark.parametrize("vanish", [False, True])
def test_oc_34_no_decision_is_made_on_part_of_a_list(vanish: bool) -> None:
    """GIVEN pages of two rows everywhere and many objects beside ours WHEN ten passes and sweeps run, markers vanishing meanwhile
    THEN nothing is made again, deleted or called lost."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=34) as world:
            await world.register(**region_section(world))
            network, group = await network_of(world)
            keys = [await server_in(world, network, f"web-{n}") for n in range(7)]
            for key in keys:
                await world.until(key, "provisioned", within=1200)
            pages = world.cloud.settings.pages
            pages.compute = pages.network = pages.volume = pages.load_balancer = pages.image = 2
            pages.image_max = 2
            tenant = somebody(world)
            theirs = [
                tenant.call("network", "POST", "/v2.0/security-groups", {"security_group": {"name": f"x{n}"}})["security_group"]["id"]
                for n in range(9)
            ]  # fmt: skip
            await world.quiet()
            mark = world.cloud.sequence + 1
            for ident in theirs:
                await wake_all(world)
                if vanish:
                    await asyncio.sleep(0.01)
                    tenant.call("network", "DELETE", f"/v2.0/security-groups/{ident}")
                await asyncio.sleep(65)
            await world.quiet()
            assert [w for w in writes(world, mark) if not w[1].endswith(tuple(theirs))] == []
            assert {world.provisioning(key) for key in (*keys, network, group)} == {"provisioned"}
            paged = [c for c in world.cloud.log.calls(since=mark) if any(k == "marker" for k, _ in c.query)]
            assert paged, "nothing was ever cut into pages"

    run_virtual(scenario())


# ---------------------------------------------------------------- OC-10

REFUSED_BY_OVN: dict[str, dict[str, Any]] = {
    "source_ranges": {**WEB, "allowedCIDRs": ["192.0.2.0/24"]},
    "proxy_protocol": {**WEB, "pool": {**WEB["pool"], "proxyProtocolV2": True}},
}


def test_oc_10_an_ovn_only_cloud_gets_what_it_can_do_and_no_pass_runs_against_a_501() -> None:
    """GIVEN an Octavia with OVN alone WHEN plain TCP with health check, source ranges, proxy protocol and UDP are asked for
    THEN the method comes from the region, what OVN can do is provisioned, and what it cannot is asked once, told, and left."""

    async def scenario() -> None:
        async with SimWorld.running(SERVICES, seed=10) as world:
            world.cloud.settings.lb_providers = ("ovn",)
            await world.register(**OVN)
            network = await world.apply(world.key("network"), "net-1", {"prefix": "192.168.10.0/24"})
            wishes = {"plain": WEB, "udp": DNS, **REFUSED_BY_OVN}
            keys = {}
            for name, wish in wishes.items():
                keys[name] = await world.apply(
                    world.key("loadbalancer"), name, {"listeners": [wish]}, networkId=network.id
                )
                document = await world.until(keys[name], "error" if name in REFUSED_BY_OVN else "provisioned")
                assert document["status"].get("code") == ("NOT_OFFERED" if name in REFUSED_BY_OVN else None)
                await world.quiet()
            await asyncio.sleep(6 * 3600)
            await world.quiet()
            refused = [c for c in world.cloud.log if c.status == 501]
            assert len(refused) == len(REFUSED_BY_OVN)
            assert {p["lb_algorithm"] for p in world.cloud.octavia.state.pools} == {"SOURCE_IP_PORT"}
            for name in REFUSED_BY_OVN:
                assert verbs(world, keys[name]) == ["loadbalancer.create", "port.delete"]
            assert len(world.cloud.octavia.state.lbs) == 2
            # An edit to what it cannot do is asked for once and told as well, and an edit back heals without a word to the cloud.
            mark = world.cloud.sequence + 1
            for wish, word in ((REFUSED_BY_OVN["source_ranges"], "error"), (WEB, "provisioned")):
                await world.apply(keys["plain"], "plain", {"listeners": [wish]}, networkId=network.id)
                await world.until(keys["plain"], word)
                await asyncio.sleep(3600)
                await world.quiet()
            assert [(method, path.split("/")[-2]) for method, path, _ in writes(world, mark)] == [
                ("PUT", "listeners")
            ]
            assert [c.status for c in world.cloud.log.calls(since=mark) if c.method == "PUT"] == [501]

    run_virtual(scenario())
