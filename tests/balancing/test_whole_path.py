"""From a spec on the bus to a connection that arrives: every hop is real but for Keystone and Neutron."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path as Folder
from typing import Any

import pytest
import pytest_asyncio

from roadstead.testing.private_ovn import PrivateOvn
from tests.balancing.path import eventually
from tests.balancing.whole import WholePath
from tests.integration.test_trace import CLIENT, Span, ancestors, read_spans
from tests.ovn.machines import Machine

pytestmark = [pytest.mark.ovn, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="module")]


REPORTED = "process provider.<provider>.result"


@dataclass
class Street:
    """Two servers on TCP 8080 and a client in the region's network."""

    path: WholePath
    client: Machine
    servers: tuple[Machine, Machine]
    spans: Folder

    def listener(self, *servers: Machine, name: str = "web") -> dict[str, Any]:
        members = [{"address": machine.address, "port": 8080} for machine in servers or self.servers]
        check = {"intervalSeconds": 2, "timeoutSeconds": 1}
        return {
            "name": name,
            "protocol": "tcp",
            "port": 80,
            "pool": {"members": members, "healthCheck": check},
        }

    async def arrives(self, address: str, *servers: Machine) -> None:
        """Until a client's connections end at these servers alone, and at each of them."""
        wanted = {machine.name for machine in servers or self.servers}

        async def at_them() -> bool:
            return set(await asyncio.to_thread(self.client.ask, address, 80, 20)) == wanted

        await eventually(at_them)


@pytest.fixture(scope="module")
def ovn() -> Iterator[PrivateOvn]:
    with PrivateOvn(data_path=True) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def street(ovn: PrivateOvn, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Street]:
    spans = tmp_path_factory.mktemp("spans") / "spans.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROADSTEAD_TRACE_FILE", str(spans))
        path = WholePath(ovn, trace=spans)
        try:
            await path.open()
            client, first, second = (path.machine(name) for name in ("client", "s1", "s2"))
            for machine in (first, second):
                machine.serve(8080)
            await asyncio.to_thread(ovn.settled)
            yield Street(path, client, (first, second), spans)
        finally:
            await path.close()


async def test_a_spec_becomes_connections_follows_its_edits_and_goes(street: Street) -> None:
    """GIVEN two servers WHEN a load balancer before them is applied, loses a member and is deleted
    THEN its address answers from both, from the one that is left, and no more."""
    path, first = street.path, street.servers[0]
    ports = path.vip_ports()
    balancer = await path.balancer([street.listener()])
    document = await path.until(balancer, "provisioned")
    address = document["status"]["vipAddress"]
    await street.arrives(address)
    await path.balancer([street.listener(first)], key=balancer)
    await path.until(balancer, "provisioned", generation=2)
    await street.arrives(address, first)
    assert await path.writes(balancer) == ["loadbalancer.create", "member.batch"]
    await path.delete(balancer)
    await path.until(balancer, "gone")
    assert path.rows_of(balancer) == []
    assert path.vip_ports() == ports
    await asyncio.to_thread(path.ovn.settled)
    assert not {"s1", "s2"} & set(await asyncio.to_thread(street.client.ask, address, 80, 2))


async def test_oc_10_what_ovn_refuses_parks_after_one_request(street: Street) -> None:
    path, ports = street.path, street.path.vip_ports()
    balancer = await path.balancer([{**street.listener(), "allowedCIDRs": ["10.0.0.0/8"]}])
    await path.until(balancer, "error", lambda d: bool(d["status"].get("code") == "NOT_OFFERED"))
    await eventually(lambda: path.is_parked(balancer))
    await path.passed(balancer)
    assert await path.writes(balancer) == ["loadbalancer.create not_supported"]
    assert path.vip_ports() == ports
    await path.delete(balancer)
    await path.until(balancer, "gone")


async def test_one_trace_shows_every_hop(street: Street) -> None:
    """GIVEN a plain client that sends a trace with its spec WHEN the load balancer is there
    THEN region service, request, API, call, worker and report are one tree below the client's span."""
    path, trace, span = street.path, secrets.token_hex(16), secrets.token_hex(8)
    headers = {"traceparent": f"00-{trace}-{span}-01"}
    balancer = await path.balancer([street.listener()], headers=headers)
    await path.until(balancer, "provisioned")

    async def told() -> list[Span]:
        """Spans are written a while after they ended; parents later than their children."""
        found = [s for s in await asyncio.to_thread(read_spans, street.spans) if s.trace == trace]
        known = {s.ident for s in found} | {span}
        reported = any(s.name == REPORTED for s in found)
        return found if reported and all(s.parent in known for s in found) else []

    spans = await eventually(told)
    by_id = {s.ident: s for s in spans}
    report = next(s for s in spans if s.name == REPORTED)
    chain = ancestors(report, by_id)
    assert [(s.service, s.name) for s in (report, *chain)] == [
        ("octavia-api", REPORTED),
        ("ovn-worker", "publish provider.<provider>.result"),
        ("ovn-worker", "ovn pass"),
        ("octavia-api", "publish provider.<provider>.call"),
        ("octavia-api", "loadbalancer.create"),
        ("loadbalancer", "pass loadbalancer"),
        ("loadbalancer", "process spec.<region>.<project>.loadbalancer.<id>"),
    ]
    assert chain[-1].parent == span
    [request] = [s for s in spans if s.kind == CLIENT and s.name == "POST load-balancer /lbaas/loadbalancers"]
    assert request.parent == chain[-2].ident
    await path.delete(balancer)
    await path.until(balancer, "gone")


@pytest.mark.parametrize("moment", ["before", "amid"])
@pytest.mark.parametrize("victim", ["loadbalancer", "api", "provider"])
async def test_killing_any_process_on_the_way_only_delays(street: Street, victim: str, moment: str) -> None:
    """GIVEN a spec WHEN a process is dead by then, or is killed while the VIP's port is there and the rest is being made
    THEN after its return connections arrive, and a deletion leaves nothing."""
    path, ports = street.path, street.path.vip_ports()
    if moment == "before":
        await path.kill(victim)
    balancer = await path.balancer([street.listener()])
    if moment == "amid":

        async def begun() -> bool:
            return len(path.vip_ports()) > len(ports)

        await eventually(begun)
        await path.kill(victim)
        path.sql("UPDATE vip_port_claim SET deadline = now()")  # the request has ended with its process
    await asyncio.sleep(1)
    await path.revive(victim)
    document = await path.until(balancer, "provisioned")
    await street.arrives(document["status"]["vipAddress"])
    await path.delete(balancer)
    await path.until(balancer, "gone")
    assert path.pending() == []
    assert path.rows_of(balancer) == []

    async def nothing_left() -> bool:
        return path.vip_ports() == ports

    await eventually(nothing_left)
