"""What the cloud refuses, by answer: its own code, a pause that grows, and an end as soon as the cause is gone (OC-30)."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from tests.simulation.cases import everything, fault, region_section
from tests.simulation.test_server import message
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

HOUR = 3600.0


def neutron(kind: str, text: str) -> dict[str, Any]:
    return {"NeutronError": {"type": kind, "message": text, "detail": ""}}


def nova(word: str, code: int, text: str) -> dict[str, Any]:
    return {word: {"code": code, "message": text}}


def octavia(text: str) -> dict[str, Any]:
    return {"faultcode": "Client", "faultstring": text, "debuginfo": None}


FULL = neutron("IpAddressGenerationFailure", "No more IP addresses available on network 5e1d.")
EXTERNAL = neutron("ExternalIpAddressExhausted", "Unable to find any IP address on external network 5e1d.")


class Refused(NamedTuple):
    """kind: whose status tells it; path: of the POST; at_most: how often it is asked in an hour."""

    kind: str
    path: str
    status: int
    answer: Mapping[str, Any]
    code: str
    says: str
    at_most: int = 20


REFUSALS = {
    "neutron_quota": Refused("server", "/ports$", 409, neutron("OverQuota", "Quota exceeded for resources: ['port']."), "QUOTA_EXCEEDED", "quota of the network service"),
    "neutron_address_in_use": Refused("server", "/ports$", 409, neutron("IpAddressInUse", "taken 5e1d"), "CONFLICT", "present state"),
    "neutron_pool_full_port": Refused("server", "/ports$", 409, FULL, "ALLOCATION", "no free addresses on the network left"),
    "neutron_pool_full_router": Refused("network", "/routers$", 409, FULL, "ALLOCATION", "no free addresses on the external network left"),
    "neutron_pool_full_address": Refused("server", "/floatingips$", 409, FULL, "ALLOCATION", "no free addresses on the external network left"),
    "neutron_external_exhausted": Refused("server", "/floatingips$", 400, EXTERNAL, "ALLOCATION", "no free addresses on the external network left"),
    "neutron_bad_value": Refused("securitygroup", "/security-groups$", 400, neutron("InvalidInput", "bad 5e1d"), "REFUSED", "check the specification"),
    "nova_quota": Refused("server", "/servers$", 403, nova("forbidden", 403, "Quota exceeded for instances: Requested 1"), "QUOTA_EXCEEDED", "quota of the compute service"),
    "nova_busy": Refused("server", "/servers$", 409, nova("conflictingRequest", 409, "Port 5e1d is still in use."), "CONFLICT", "present state"),
    "nova_no_host": Refused("server", "/servers$", 500, nova("computeFault", 500, "No valid host was found."), "ALLOCATION", "no host with room"),
    "nova_bad_value": Refused("server", "/servers$", 400, nova("badRequest", 400, "Invalid key_name 5e1d."), "REFUSED", "check the specification"),
    "nova_forbidden": Refused("server", "/servers$", 403, nova("forbidden", 403, "Policy doesn't allow 5e1d"), "FORBIDDEN", "does not permit"),
    "nova_5xx": Refused("server", "/servers$", 503, nova("serviceUnavailable", 503, "down 5e1d"), "SETTLING", "", 60),
    "cinder_quota": Refused("volume", "/volumes$", 413, nova("overLimit", 413, "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'."), "QUOTA_EXCEEDED", "quota of the block storage service"),
    "cinder_no_room": Refused("volume", "/volumes$", 500, nova("computeFault", 500, "No valid backend was found. No weighed backends available"), "ALLOCATION", "no storage with room"),
    "octavia_quota": Refused("loadbalancer", "/loadbalancers$", 403, octavia("Quota has been met for resources: Load Balancer"), "QUOTA_EXCEEDED", "quota of the load balancer service"),
    "octavia_immutable": Refused("loadbalancer", "/loadbalancers$", 409, octavia("Load Balancer 5e1d is immutable and cannot be updated."), "BUSY", "still working", 400),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_oc_30_each_answer_has_its_code_and_is_not_asked_for_ever_at_one_pace(name: str) -> None:
    """GIVEN a cloud that refuses one thing for an hour WHEN it is asked THEN the status has that answer's code and our own words for
    it, the request is repeated later each time and never without a pause, and once the cause is gone it succeeds by itself."""
    case = REFUSALS[name]

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=30) as world:
            await world.register(**region_section(world))
            refusal = fault(
                world, "status", method="POST", path=case.path, status=case.status, answer=dict(case.answer), times=None
            )  # fmt: skip
            wished = await everything(world)
            key = wished[case.kind]
            codes = set()
            for _ in range(360):
                await asyncio.sleep(HOUR / 360)
                document = world.status(key)
                assert document is not None
                if document["status"].get("code") == case.code:
                    codes.add(case.code)
                    assert case.says in message(document)
                assert "5e1d" not in str(document["status"]), "a word of the cloud's own"
            assert codes == {case.code}, world.status(key)
            asked = [c for c in world.cloud.log.calls(method="POST", path=case.path) if c.fault is not None]
            assert 3 <= len(asked) <= case.at_most
            pauses = [(b.at - a.at).total_seconds() for a, b in itertools.pairwise(asked)]
            early = [p for p in pauses if p < 5]
            assert len(early) <= 2, (
                "only a wake, such as a dependency that moved meanwhile, comes before the pause is over"
            )
            world.cloud.faults.remove(refusal)
            for other in wished.values():
                await world.until(other, "provisioned", within=1200)

    run_virtual(scenario())


def test_oc_30_a_revision_that_moved_on_is_read_again_before_it_is_written() -> None:
    """GIVEN a port whose update is answered 412 twice WHEN its server's groups change
    THEN each write follows a read of its own, and the third one succeeds."""

    async def scenario() -> None:
        async with SimWorld.running(ALL, seed=302) as world:
            await world.register(**region_section(world))
            wished = await everything(world)
            for key in wished.values():
                await world.until(key, "provisioned", within=1200)
            await world.quiet()
            moved = neutron("RevisionNumberConstraintFailed", "Constrained to 3")
            fault(world, "status", method="PUT", path="/ports/", status=412, answer=moved, times=2)
            mark = world.cloud.sequence + 1
            document = world.status(wished["server"])
            assert document is not None
            await world.apply(wished["server"], "web-1", {**document["spec"], "securityGroups": []})
            await asyncio.sleep(120)
            await world.quiet()
            calls = world.cloud.log.calls(path="/v2.0/ports", since=mark)
            methods = [c.method for c in calls if c.method in ("GET", "PUT")]
            assert methods.count("PUT") == 3
            assert all(methods[i - 1] == "GET" for i, m in enumerate(methods) if m == "PUT"), methods
            assert world.provisioning(wished["server"]) == "provisioned"

    run_virtual(scenario())
