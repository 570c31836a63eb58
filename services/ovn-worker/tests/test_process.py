"""The worker as a process on a real broker and a real database, with OVN and Neutron in memory; and as a program."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from nats.aio.msg import Msg

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.streams import ensure_streams
from roadstead.bus.tasks import end_all
from roadstead.service import Exit
from roadstead.settings import BadSettings, Settings, load_settings, table
from roadstead.subjects import provider_call_subject
from roadstead_ovn.northbound.model import Faults
from roadstead_ovn.process import Process
from roadstead_ovn.settings import OvnSettings, load_ovn_settings
from roadstead_ovn.standing import NOT_ASKED
from roadstead_ovn.store.port import Work

from .model_region import Copy, ModelRegion
from .shapes import listener, member, pool, tree
from .test_store import work_template as work_template

ROOT = Path(__file__).resolve().parents[3]
LB = "10000000-0000-4000-8000-000000000001"


class Ground:
    """The API's side of the bus, and a process.  trees: what it answers; reports: what it heard."""

    def __init__(self, nats_url: str, process: Process, region: ModelRegion) -> None:
        self.bus = Bus(BusOptions((nats_url,), "test-api", inbox_prefix="_INBOX_api"))
        self.process = process
        self.region = region
        self.trees: dict[str, Any] = {}
        self.reports: list[tuple[Any, dict[str, str]]] = []
        self.running: asyncio.Task[Exit] | None = None

    async def start(self) -> None:
        await self.bus.connect()
        await ensure_streams(self.bus.js, ())
        self.bus.settle(self.bus.number, {})
        await self.bus.client.subscribe("rpc.provider.ovn.tree", cb=self._tree)
        await self.bus.client.subscribe("provider.ovn.result", cb=self._heard)
        await self.bus.client.subscribe("provider.ovn.status", cb=self._heard)
        self.running = asyncio.create_task(self.process.serve())
        await eventually(self.process.bus_side.bound.is_set)
        await eventually(lambda: self.process.store.session.round_trips and self._has_compared())

    def _has_compared(self) -> bool:
        return self.asked_pages > 0

    asked_pages = 0

    async def _tree(self, message: Msg) -> None:
        question = orjson.loads(message.data)
        if "loadbalancer_id" in question:
            reply: Any = {"tree": self.trees.get(question["loadbalancer_id"])}
        elif "object" in question:
            reply = {"tree": next(iter(self.trees.values()), None)}
        else:
            self.asked_pages += 1
            reply = {"trees": list(self.trees.values()), "next": None}
        await message.respond(orjson.dumps(reply))

    async def _heard(self, message: Msg) -> None:
        self.reports.append((orjson.loads(message.data), dict(message.headers or {})))

    async def call(self, verb: str, revision: int, parts: dict[str, Any], pending: str, **more: Any) -> str:
        """Publish a call with its tree; the operation's id."""
        made = tree(vip_port_id="vip-lb", **parts)
        made["loadbalancer"]["loadbalancer_id"] = LB
        made |= {
            "loadbalancer_id": LB,
            "revision": revision,
            "statuses": {"loadbalancers": {LB: [pending, "OFFLINE"]}},
        }
        self.trees[LB] = made
        operation = f"operation-{revision}"
        deadline = datetime.now(UTC) + timedelta(seconds=60)
        body = {
            "operation": operation,
            "send": 1,
            "loadbalancer_id": LB,
            "revision": revision,
            "method": f"loadbalancer_{verb}",
            "object": "loadbalancer",
            "verb": verb,
            "objects": {"loadbalancers": [LB]},
            "deadline": f"{deadline.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z",
            "tree": made,
            **more,
        }
        headers = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
        await self.bus.publish(
            provider_call_subject("ovn", "loadbalancer", verb), orjson.dumps(body), headers
        )
        return operation

    def ended(self, operation: str) -> bool:
        return any(said.get("operation") == operation for said, _ in self.reports)

    async def ask(self, what: str, body: Any) -> Any:
        reply = await self.bus.client.request(f"rpc.provider.ovn.{what}", orjson.dumps(body), timeout=10)
        return orjson.loads(reply.data)

    async def stop(self) -> Exit | None:
        self.process.stopping.set()
        status = await asyncio.wait_for(self.running, 30) if self.running else None
        await self.bus.close()
        return status


async def eventually(check: Callable[[], Any], seconds: float = 20.0) -> Any:
    ends = asyncio.get_running_loop().time() + seconds
    while not (value := check()):
        if asyncio.get_running_loop().time() > ends:
            pytest.fail(f"not within {seconds:g} s")
        await asyncio.sleep(0.01)
    return value


@asynccontextmanager
async def grounded(nats_url: str, database: str, **ovn: Any) -> AsyncIterator[Ground]:
    region = ModelRegion()
    region.vip_port("vip-lb", LB, "192.0.2.5")
    settings = load_settings(nats_url=nats_url, database_url=database, replica="one")
    copy = Copy(region, Faults())
    process = Process(settings, load_ovn_settings(**ovn), northbound=copy, network=region)
    ground = Ground(nats_url, process, region)
    await ground.start()
    try:
        yield ground
    finally:
        if ground.running is not None and not ground.running.done():
            await ground.stop()


@pytest.fixture
async def ground(nats_url: str, postgres_server: Any, work_template: str) -> AsyncIterator[Ground]:
    name = f"{work_template}_{os.urandom(3).hex()}"
    url = postgres_server.create_database(name, template=work_template)
    async with grounded(nats_url, url, sync_every=3600.0, poll=3600 / 60) as made:
        yield made
    postgres_server.drop_database(name)


def parts() -> dict[str, Any]:
    members = [member("me-1", "192.0.2.10")]
    return {"pools": [pool("po", members)], "listeners": [listener("li", 80, "po")]}


@pytest.mark.integration
async def test_an_operation_takes_two_round_trips_one_transaction_and_one_message_in_its_trace(
    ground: Ground,
) -> None:
    await asyncio.sleep(0.3)  # what the start brings is over
    store, copy = ground.process.store.session, ground.process.northbound
    assert isinstance(copy, Copy)
    before = store.round_trips
    operation = await ground.call("create", 1, parts(), "PENDING_CREATE")
    await eventually(lambda: ground.reports)
    await eventually(lambda: not ground.process.runner._tasks)
    assert store.round_trips - before == 2
    assert copy.writes == [LB]
    said, headers = ground.reports[0]
    assert (said["operation"], said["outcome"], said["revision"]) == (operation, "success", 1)
    assert said["statuses"]["loadbalancers"] == [{"id": LB, "operating_status": "ONLINE"}]
    assert headers["traceparent"].split("-")[1] == "ab" * 16
    assert headers["Nats-Msg-Id"] == "operation-1.1.result"


@pytest.mark.integration
async def test_a_large_tree_is_asked_for_and_a_deletion_ends_it(ground: Ground) -> None:
    first = await ground.call("create", 1, parts(), "PENDING_CREATE")
    await eventually(lambda: ground.ended(first))
    second = await ground.call("update", 2, {**parts(), "admin_state_up": False}, "PENDING_UPDATE", tree=None)
    await eventually(lambda: ground.ended(second))
    rows = list(ground.region.databases["nb"].tables["Load_Balancer"].values())
    assert [row["external_ids"]["enabled"] for row in rows] == ["False"]
    third = await ground.call("delete", 3, parts(), "PENDING_DELETE")
    await eventually(lambda: ground.ended(third))
    assert not ground.region.databases["nb"].tables["Load_Balancer"]
    assert "vip-lb" not in ground.region.ports


@pytest.mark.integration
async def test_checks_and_questions_are_answered(ground: Ground) -> None:
    refused = await ground.ask("check", {"method": "loadbalancer_failover", "arguments": [LB], "revision": 1})
    assert refused["error"]["class"] == "UnsupportedOption"
    assert await ground.ask(
        "check", {"method": "listener_create", "arguments": [listener("l")], "revision": 1}
    ) == {"ok": True}
    await ground.call("create", 1, parts(), "PENDING_CREATE")
    await eventually(lambda: ground.reports)
    outside = member("me-9", "203.0.113.1", subnet=None) | {"pool_id": "po"}
    reply = await ground.ask("check", {"method": "member_create", "arguments": [outside], "revision": 1})
    assert reply["error"]["user"].startswith("Subnet is required")
    wanted = {
        "vip_network_id": "net-a",
        "vip_subnet_id": "sub-a",
        "vip_address": "192.0.2.77",
        "vip_port_id": None,
    }
    made = await ground.ask("ask.create_vip_port", {"arguments": ["lb-x", "project", wanted, []]})
    assert made["returns"][0]["vip_address"] == "192.0.2.77"
    assert (await ground.ask("ask.get_supported_flavor_metadata", {"arguments": []}))["error"][
        "class"
    ] == "NotImplemented"
    reply = await ground.bus.client.request("rpc.provider.ovn.check", b"{", timeout=5)
    assert orjson.loads(reply.data)["error"]["class"] == "DriverError"


@pytest.mark.integration
async def test_operators_see_what_differs_and_have_it_put_right(ground: Ground) -> None:
    await ground.call("create", 1, parts(), "PENDING_CREATE")
    await eventually(lambda: ground.reports)
    assert (await ground.ask("ask.operate_diff", {"arguments": [LB]}))["returns"]["differences"] == []
    row = {"selection_fields": ["set", ["ip_src"]]}
    ground.region.write(
        [{"op": "update", "table": "Load_Balancer", "where": [["name", "==", LB]], "row": row}]
    )
    ground.process.northbound.deliver()  # type: ignore[attr-defined]  # the model's
    await asyncio.sleep(0.5)
    assert (await ground.ask("ask.operate_diff", {"arguments": [LB]}))["returns"]["differences"] == []
    shown = (await ground.ask("ask.operate_show", {"arguments": [LB]}))["returns"]
    assert shown["rows"][0]["vips"] == {"192.0.2.5:80": "192.0.2.10:80"}
    assert shown["work"]["done"] == 1
    assert (await ground.ask("ask.operate_sync", {"arguments": [LB]}))["returns"] == {"due": 1}
    for question, about in (("show", "x" * 300), ("dance", LB)):
        reply = await ground.ask(f"ask.operate_{question}", {"arguments": [about]})
        assert reply["returns"]["fault"]


async def command(context: Path, *words: str) -> tuple[int, str, str]:
    """Exit status and both outputs of `roadstead ovn ...`."""
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "roadstead.cli", "--context", str(context), "ovn", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(started.communicate(), 60)
    return started.returncode or 0, out.decode(), err.decode()


@pytest.mark.integration
async def test_the_commands_ask_a_running_worker(ground: Ground, tmp_path: Path) -> None:
    operation = await ground.call("create", 1, parts(), "PENDING_CREATE")
    await eventually(lambda: ground.ended(operation))
    context = tmp_path / "context.yaml"
    context.write_text(yaml.safe_dump({"natsUrl": ground.bus.options.servers[0]}))
    status, out, err = await command(context, "diff", LB)
    assert (status, out, err) == (0, "", "nothing differs\n")
    status, out, _ = await command(context, "show", LB)
    assert status == 0
    assert "192.0.2.5:80  192.0.2.10:80" in out
    assert "revision 1, done 1, failures 0" in out
    status, out, _ = await command(context, "sync", LB, "-o", "json")
    assert orjson.loads(out) == {"due": 1}
    status, _, err = await command(context, "sync")
    assert (status, err) == (2, "roadstead: give the id of a load balancer, or --all\n")
    unknown = "8b1f6a1e-0d5c-4d53-8d35-6a1c1b7f0a42"
    for question in ("diff", "show", "sync"):
        status, out, err = await command(context, question, unknown)
        assert (status, out) == (1, "")
        assert err.startswith(f"roadstead: no such load balancer: {unknown} is neither id nor name")
    status, _, err = await command(context, "show", "x" * 300)
    assert (status, err) == (1, "roadstead: give the id of a load balancer\n")


@pytest.mark.integration
async def test_it_is_ready_with_all_it_stands_on_and_ends_with_leases_given_back(ground: Ground) -> None:
    assert await ground.process.readiness.faults() == {}
    ground.process.northbound.cut()  # type: ignore[attr-defined]  # the model's
    assert "northbound" in await ground.process.readiness.faults()
    await ground.call("create", 1, parts(), "PENDING_CREATE")
    await eventually(lambda: ground.process.runner._tasks)
    store = ground.process.store
    assert await ground.stop() == Exit.DONE
    await store.open()
    left: Sequence[Work] = ()
    for _ in range(40):  # a pass that had failed already waits a little before it is due again
        if left := await store.claim("another", 10, 5.0):
            break
        await asyncio.sleep(0.05)
    await store.close()
    assert [work.id for work in left] == [LB]
    assert "operation-1" in left[0].calls


@pytest.mark.integration
async def test_a_worker_whose_network_service_does_not_answer_takes_nothing_until_it_does(
    nats_url: str, postgres_server: Any, work_template: str
) -> None:
    name = f"{work_template}_{os.urandom(3).hex()}"
    url = postgres_server.create_database(name, template=work_template)
    region = ModelRegion()
    region.vip_port("vip-lb", LB, "192.0.2.5")
    region.is_down = True
    settings = load_settings(nats_url=nats_url, database_url=url, replica="one")
    process = Process(settings, load_ovn_settings(), northbound=Copy(region, Faults()), network=region)
    ground = Ground(nats_url, process, region)
    begun = asyncio.create_task(ground.start())
    try:
        await eventually(lambda: process.standing.network_fault != NOT_ASKED)
        await asyncio.sleep(0.5)
        await ground.call("create", 1, parts(), "PENDING_CREATE")
        await asyncio.sleep(1.0)
        assert await process.store.view(LB) is None
        assert (ground.reports, ground.asked_pages) == ([], 0)
        assert set(await process.readiness.faults()) == {"bus", "network"}
        region.is_down = False
        await eventually(lambda: ground.ended("operation-1"))
        await begun
        assert await process.readiness.faults() == {}
    finally:
        await end_all((begun,))
        await ground.stop()
    postgres_server.drop_database(name)


@pytest.mark.integration
async def test_a_message_that_is_no_call_is_put_aside(ground: Ground) -> None:
    await ground.bus.publish(provider_call_subject("ovn", "pool", "create"), b"{}", {})

    async def aside() -> int:
        return int((await ground.bus.js.stream_info("DLQ")).state.messages)

    ends = asyncio.get_running_loop().time() + 20
    while not await aside():
        assert asyncio.get_running_loop().time() < ends
        await asyncio.sleep(0.05)


# ------------------------------------------------------------ the program


def program(**environment: str) -> "subprocess.CompletedProcess[str]":
    foreign = {k: v for k, v in os.environ.items() if not k.startswith("ROADSTEAD_")}
    return subprocess.run(
        [sys.executable, "-m", "roadstead_ovn"],
        env={**foreign, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NB_CONNECTION", "localhost"),
        ("PROVIDER_NAME", "a.b"),
        ("LEASE", "1"),
        ("PASSWORD_FILE", "/nowhere"),
        ("NB_CONNECTION", "ssl:127.0.0.1:6641"),
        ("NB_CONNECTION", ""),
        ("SB_CONNECTION", " "),
        ("AUTH_URL", "keystone:5000"),
        ("AUTH_URL", "ftp://keystone/v3"),
        ("NEUTRON_ENDPOINT", "http://"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line_and_status_2(variable: str, value: str) -> None:
    cloud = {"ROADSTEAD_OVN_AUTH_URL": "http://127.0.0.1:1/v3"}
    done = program(**(cloud | {f"ROADSTEAD_OVN_{variable}": value}))
    assert done.returncode == Exit.SETTINGS
    assert done.stderr.startswith("ovn-worker: ROADSTEAD_OVN_") or "no password" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_password_that_is_missing_is_said() -> None:
    with pytest.raises(BadSettings, match="no password"):
        load_ovn_settings(auth_url="http://127.0.0.1:1").service_user()
    assert load_ovn_settings().service_user() is None


@pytest.mark.integration
def test_a_schema_that_is_behind_ends_it_with_its_own_status(database_url: str) -> None:
    assert program(ROADSTEAD_DATABASE_URL=database_url).returncode == Exit.SCHEMA


# ------------------------------------------------------------ what is shipped


@pytest.mark.parametrize(
    "path", ["compose.ovn.yaml", "kubernetes/ovn/kustomization.yaml", "kubernetes/ovn/ovn-worker.yaml"]
)
def test_only_settings_that_there_are_are_named(path: str) -> None:
    known = {row["variable"] for model in (Settings, OvnSettings) for row in table(model)}
    text = (ROOT / "deploy" / path).read_text()
    named = {
        n for n in re.findall(r"ROADSTEAD_[A-Z0-9_]*[A-Z0-9]", text) if not n.startswith("ROADSTEAD_OCTAVIA_")
    }
    assert named
    assert named <= known


def test_a_pod_has_time_for_its_ending_and_little_power() -> None:
    documents = yaml.safe_load_all((ROOT / "deploy/kubernetes/ovn/ovn-worker.yaml").read_text())
    pod = next(d for d in documents if d["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > float(OvnSettings.model_fields["drain"].default) + 40
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
