"""One pass, on the model of everything around it: what it writes, reports, counts, and how it fails."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.conformance_ovn import laying

from roadstead.bus.tasks import end_all
from roadstead.telemetry.metrics import Meters
from roadstead_ovn.calls import Around, Intake
from roadstead_ovn.facts import Subnet
from roadstead_ovn.network import NetworkRefused
from roadstead_ovn.northbound.database import NORTHBOUND, SOUTHBOUND, Database
from roadstead_ovn.northbound.model import Faults
from roadstead_ovn.northbound.port import Rejected
from roadstead_ovn.operate import REASON as OPERATOR
from roadstead_ovn.passes import ORPHAN, Passes
from roadstead_ovn.ports import MONITOR_OWNER
from roadstead_ovn.probe_ports import ProbePorts
from roadstead_ovn.runner import Runner
from roadstead_ovn.stimuli import Stimuli
from roadstead_ovn.store.memory import MemoryWork
from roadstead_ovn.subnets import Subnets

from . import virtual
from .model_api import ModelApi
from .model_region import Copy, ModelRegion
from .shapes import listener, member, monitor, pool


def parts() -> dict[str, Any]:
    """A listener and its pool with two members."""
    members = [member("me-1", "192.0.2.10"), member("me-2", "192.0.2.11")]
    return {"pools": [pool("po", members)], "listeners": [listener("li", 80, "po")]}


def watched(name: str = "") -> dict[str, Any]:
    """The same with a monitor, its ids ending in `name`."""
    members = [member(f"me-1{name}", "192.0.2.10"), member(f"me-2{name}", "192.0.2.11")]
    made = pool(f"po{name}", members, healthmonitor=monitor(f"hm{name}"))
    return {"pools": [made], "listeners": [listener(f"li{name}", 80, f"po{name}")]}


class Stage:
    """One worker whose passes begin with calls alone, unless `live` adds what falls due."""

    def __init__(self) -> None:
        self.region = ModelRegion()
        self.store = MemoryWork(virtual.now)
        self.api = ModelApi(self._bus)
        self.copy = Copy(self.region, Faults())
        self.meters = Meters()
        subnets = Subnets(self.region, self.copy.remember, now=asyncio.get_running_loop().time)
        self.passes = Passes(
            self.store, self.copy, self.api, self.region, subnets, "w", meters=self.meters, wall=virtual.now
        )
        self.runner = Runner(self.store, self.passes, "w", most=8, lease=15.0, poll=1.0, meters=self.meters)
        self.intake = Intake(self.store, self.passes, self.runner, Around(self.api, subnets), virtual.now)
        self.stimuli = Stimuli(
            self.store,
            self.copy,
            self.api,
            self.region,
            subnets,
            self.runner,
            every=60.0,
            spread=1.0,
            meters=self.meters,
        )
        self.received: list[bytes] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def _bus(self, data: bytes) -> None:
        self.received.append(data)
        assert await self.intake.receive(data) is None

    def live(self) -> None:
        self.tasks += [asyncio.create_task(work()) for work in (self.runner.run, self.stimuli.follow)]

    def create(self, name: str = "lb-1", address: str = "192.0.2.101", **values: Any) -> None:
        self.region.vip_port(f"vip-{name}", name, address)
        self.copy.deliver()
        self.api.create(name, vip_port_id=f"vip-{name}", vip_address=address, **values)

    def status(self, kind: str, identifier: str, owner: str = "lb-1") -> tuple[str, str]:
        provisioning, operating = self.api.trees[owner]["statuses"][kind][identifier]
        return provisioning, operating

    def rows(self, name: str = "lb-1") -> list[dict[str, Any]]:
        return [r for r in self.region.databases["nb"].tables["Load_Balancer"].values() if r["name"] == name]

    async def close(self) -> None:
        await end_all([*self.tasks, *self.runner._tasks, *self.api.tasks])


def played(story: Callable[[Stage], Awaitable[None]]) -> Callable[[], None]:
    """The story as a test in virtual time."""

    async def play() -> None:
        stage = Stage()
        try:
            await story(stage)
        finally:
            await stage.close()

    def test() -> None:
        virtual.run(play())

    test.__name__ = story.__name__
    test.__doc__ = story.__doc__
    return test


@played
async def test_a_creation_takes_two_statements_one_transaction_and_one_report(stage: Stage) -> None:
    stage.create(**parts())
    await asyncio.sleep(1)
    assert stage.store.statements == 2
    assert stage.copy.writes == ["lb-1"]
    assert len(stage.api.reports) == 1
    assert stage.region.asked == ["subnets"]
    assert stage.status("loadbalancers", "lb-1") == ("ACTIVE", "ONLINE")
    assert stage.status("members", "me-1") == ("ACTIVE", "NO_MONITOR")
    assert stage.rows()[0]["vips"] == {"192.0.2.101:80": "192.0.2.10:80,192.0.2.11:80"}


@played
async def test_a_second_creation_in_a_known_subnet_asks_neutron_nothing(stage: Stage) -> None:
    stage.create()
    await asyncio.sleep(1)
    stage.region.asked.clear()
    stage.create("lb-2", "192.0.2.102")
    await asyncio.sleep(1)
    assert stage.region.asked == []
    assert stage.status("loadbalancers", "lb-2", "lb-2")[0] == "ACTIVE"


@played
async def test_a_call_that_comes_again_is_reported_again_and_writes_nothing(stage: Stage) -> None:
    stage.create(**parts())
    await asyncio.sleep(1)
    await stage.intake.receive(stage.received[0])
    await asyncio.sleep(1)
    assert len(stage.api.reports) == 2
    assert stage.api.reports[1]["outcome"] == "success"
    assert stage.copy.writes == ["lb-1"]


@played
async def test_a_batch_is_one_transaction(stage: Stage) -> None:
    stage.create(**parts())
    await asyncio.sleep(1)
    model = stage.api.trees["lb-1"]["loadbalancer"]["pools"][0]
    names = [f"more-{n}" for n in range(300)]
    model["members"] += [member(name, "192.0.2.20", 1000 + n) for n, name in enumerate(names)]
    stage.api._touch(
        "lb-1", "member_batch_update", {"members": names, "loadbalancers": ["lb-1"]}, "PENDING_CREATE"
    )
    await asyncio.sleep(1)
    assert stage.copy.writes == ["lb-1", "lb-1"]
    assert stage.status("members", "more-299") == ("ACTIVE", "NO_MONITOR")


@played
async def test_a_call_during_a_pass_is_carried_out_with_the_lease_that_is_held(stage: Stage) -> None:
    stage.create(**parts())
    await asyncio.sleep(0)
    stage.api.trees["lb-1"]["loadbalancer"]["admin_state_up"] = False
    stage.api._touch("lb-1", "loadbalancer_update", {"loadbalancers": ["lb-1"]}, "PENDING_UPDATE")
    await asyncio.sleep(1)
    assert stage.rows()[0]["external_ids"]["enabled"] == "False"
    assert stage.status("loadbalancers", "lb-1") == ("ACTIVE", "OFFLINE")
    assert {r["operation"] for r in stage.api.reports} == {"op-0", "op-1"}


@played
async def test_a_late_older_tree_is_not_rendered(stage: Stage) -> None:
    stage.create(**parts())
    await asyncio.sleep(1)
    stage.api.switch("lb-1", "listeners", "li")
    await asyncio.sleep(1)
    before = stage.rows()
    await stage.intake.receive(stage.received[0])
    await asyncio.sleep(1)
    assert stage.rows() == before
    assert before[0]["vips"] == {}


@played
async def test_a_conflict_is_decided_again_at_once(stage: Stage) -> None:
    stage.live()
    stage.copy._faults = Faults(conflict=0.5)
    for number in range(10):
        stage.create(f"lb-{number}", f"192.0.2.{100 + number}")
    await asyncio.sleep(3)
    assert stage.meters.value("roadstead_ovn_transactions_total", outcome="conflict") > 0
    assert {stage.status("loadbalancers", f"lb-{n}", f"lb-{n}")[0] for n in range(10)} == {"ACTIVE"}


@played
async def test_while_the_database_is_away_a_call_waits_and_its_failure_is_told_before_the_deadline(
    stage: Stage,
) -> None:
    stage.live()
    stage.copy.cut()
    stage.create()
    await asyncio.sleep(30)
    assert stage.api.reports == []
    await asyncio.sleep(29.9)
    assert [r["outcome"] for r in stage.api.reports] == ["failure"]
    assert stage.api.reports[0]["user"] == "the Northbound database cannot be reached"
    assert stage.status("loadbalancers", "lb-1")[0] == "ERROR"
    stage.copy.mend()
    await asyncio.sleep(40)
    assert stage.status("loadbalancers", "lb-1") == ("ACTIVE", "ONLINE")
    assert len(stage.rows()) == 1


@played
async def test_what_the_database_refuses_is_told_at_once(stage: Stage) -> None:
    async def refuse(*_: Any) -> Any:
        raise Rejected("constraint violation")

    stage.copy.write = refuse  # type: ignore[method-assign,assignment]  # stands in for a server with another schema
    stage.create()
    await asyncio.sleep(1)
    assert [(r["outcome"], r["user"]) for r in stage.api.reports] == [
        ("failure", "the Northbound database refuses it: constraint violation")
    ]


@played
async def test_a_vip_without_a_switch_fails_in_words_and_is_mended_when_the_switch_comes(
    stage: Stage,
) -> None:
    stage.live()
    stage.region.vip_port("vip-lb-1", "lb-1", "192.0.2.101")
    stage.api.create("lb-1", vip_port_id="vip-lb-1", vip_address="192.0.2.101", vip_network_id="net-z")
    await asyncio.sleep(5)
    assert stage.api.reports[0]["user"] == "network net-z of the VIP has no logical switch"
    assert stage.status("loadbalancers", "lb-1")[0] == "ERROR"
    stage.region.write(laying.network("net-z"))
    await asyncio.sleep(70)
    assert stage.status("loadbalancers", "lb-1") == ("ACTIVE", "ONLINE")


@played
async def test_a_deletion_takes_rows_and_ports_and_is_remembered(stage: Stage) -> None:
    stage.create(**watched())
    await asyncio.sleep(1)
    assert [p.name for p in stage.region.ports.values() if "hm" in p.name] == ["ovn-lb-hm-sub-a"]
    stage.api.destroy("lb-1")
    await asyncio.sleep(1)
    assert stage.rows() == []
    assert not [p for p in stage.region.ports.values() if p.name.startswith("ovn-lb")]
    assert "lb-1" not in stage.api.trees
    for data in list(stage.received):
        await stage.intake.receive(data)
    await asyncio.sleep(1)
    assert stage.rows() == []


def change(stage: Stage, kind: str) -> None:
    """One operation of that kind on the load balancer of `watched`."""
    match kind:
        case "create":
            stage.api.child("lb-1", "members", pool_id="po", address="192.0.2.12", port=80, subnet_id="sub-a")
        case "update":
            stage.api.switch("lb-1", "members", "me-1")
        case "batch":
            stage.api.batch("lb-1", "po", {"address": "192.0.2.12"}, ["me-1"])
        case "delete all":
            stage.api.destroy("lb-1")
        case _:
            stage.api.delete("lb-1", *kind.split())


LEFT = {
    "create": {"192.0.2.101:80": "192.0.2.10:80,192.0.2.11:80,192.0.2.12:80"},
    "update": {"192.0.2.101:80": "192.0.2.11:80"},
    "batch": {"192.0.2.101:80": "192.0.2.11:80,192.0.2.12:80"},
    "members me-1": {"192.0.2.101:80": "192.0.2.11:80"},
    "listeners li": {},
    "pools po": {},
    "healthmonitors hm": {"192.0.2.101:80": "192.0.2.10:80,192.0.2.11:80"},
    "delete all": None,
}


@pytest.mark.parametrize("told_by", ["worker", "deadline"])
@pytest.mark.parametrize("kind", LEFT)
def test_a_late_success_ends_every_object_of_an_operation_that_had_failed(kind: str, told_by: str) -> None:
    @played
    async def story(stage: Stage) -> None:
        stage.live()
        stage.create(**watched())
        await asyncio.sleep(3)
        stage.api.made = 2  # the next member is me-3
        held: list[bytes] = []

        async def hold(data: bytes) -> None:
            held.append(data)

        if told_by == "worker":
            stage.copy.cut()
        else:
            stage.api.send = hold
        change(stage, kind)
        await asyncio.sleep(61)
        failed = {
            i
            for rows in stage.api.trees["lb-1"]["statuses"].values()
            for i, s in rows.items()
            if s[0] == "ERROR"
        }
        assert failed >= {i for i, _ in touched_last(stage)}
        if told_by == "worker":
            stage.copy.mend()
        for data in held:
            await stage.intake.receive(data)
        await asyncio.sleep(60)
        assert {operation.state for operation in stage.api.operations.values()} == {"DONE"}
        if LEFT[kind] is None:
            assert (stage.rows(), "lb-1" in stage.api.trees) == ([], False)
            return
        assert stage.rows()[0]["vips"] == LEFT[kind]
        left = stage.api.trees["lb-1"]["statuses"]
        assert {s[0] for rows in left.values() for s in rows.values()} == {"ACTIVE"}

    story()


def touched_last(stage: Stage) -> list[tuple[str, str]]:
    last = list(stage.api.operations.values())[-1]
    return [pair for pairs in last.touched.values() for pair in pairs]


@played
async def test_what_a_failed_operation_was_to_remove_stays_once_the_load_balancer_has_moved_on(
    stage: Stage,
) -> None:
    stage.live()
    stage.create(**parts())
    await asyncio.sleep(3)
    stage.copy.cut()
    stage.api.batch("lb-1", "po", None, ["me-1"])
    await asyncio.sleep(61)
    stage.api.switch("lb-1", "listeners", "li")
    stage.api.switch("lb-1", "listeners", "li")
    stage.copy.mend()
    await asyncio.sleep(60)
    assert stage.status("members", "me-1")[0] == "ERROR"
    assert stage.rows()[0]["vips"] == {"192.0.2.101:80": "192.0.2.10:80,192.0.2.11:80"}


@played
async def test_a_late_success_that_comes_too_late_leaves_rows_as_the_api_has_them(stage: Stage) -> None:
    stage.live()
    stage.create(**parts())
    await asyncio.sleep(3)
    stage.copy.cut()
    stage.api.batch("lb-1", "po", None, ["me-1"])
    await asyncio.sleep(61)

    async def unheard(*_: Any) -> None:
        return

    stage.api.result = unheard  # type: ignore[method-assign,assignment]  # the API has ended it otherwise meanwhile
    stage.copy.mend()
    await asyncio.sleep(90)
    assert stage.status("members", "me-1")[0] == "ERROR"
    assert stage.rows()[0]["vips"] == {"192.0.2.101:80": "192.0.2.10:80,192.0.2.11:80"}


def probe_ports(stage: Stage) -> list[str]:
    return [port.id for port in stage.region.ports.values() if port.owner == MONITOR_OWNER]


async def compared(stage: Stage) -> list[str]:
    """What the network service is asked by a comparison and what follows it."""
    stage.region.asked.clear()
    await stage.stimuli.compare_once()
    await asyncio.sleep(5)
    return list(stage.region.asked)


@played
async def test_an_empty_database_is_no_reason_to_remove_a_port_for_probes(stage: Stage) -> None:
    stage.live()
    stage.create(**watched())
    await asyncio.sleep(2)
    (port,) = probe_ports(stage)
    full = copy.deepcopy(stage.region.databases)
    stage.copy.cut()
    stage.region.databases = {"nb": Database(NORTHBOUND), "sb": Database(SOUTHBOUND)}
    stage.copy.mend()
    await asyncio.sleep(100)
    assert probe_ports(stage) == [port]
    stage.copy.cut()
    stage.region.databases = full
    stage.copy.mend()
    await asyncio.sleep(100)
    assert probe_ports(stage) == [port]
    address = stage.region.ports[port].ips[0].partition("/")[0]
    assert stage.rows()[0]["ip_port_mappings"]["192.0.2.10"] == f"vm-192.0.2.10:{address}"
    stage.api.delete("lb-1", "healthmonitors", "hm")
    await asyncio.sleep(5)
    assert probe_ports(stage) == []


@played
async def test_machines_that_are_gone_leave_the_port_for_probes_to_the_tree(stage: Stage) -> None:
    """Another load balancer's monitor goes meanwhile: the port is needed still."""
    stage.live()
    stage.create(**watched())
    await asyncio.sleep(2)
    for address in ("192.0.2.10", "192.0.2.11"):
        stage.region.plug(address, "sub-a")
    stage.create("lb-2", "192.0.2.102", **watched("-2"))
    await asyncio.sleep(2)
    assert len(probe_ports(stage)) == 1
    for name, monitored in (("lb-1", "hm"), ("lb-2", "hm-2")):
        assert len(probe_ports(stage)) == 1
        stage.api.delete(name, "healthmonitors", monitored)
        await asyncio.sleep(5)
    assert probe_ports(stage) == []


async def with_lost_port(stage: Stage) -> str:
    """Its port for probes is gone in the network service, and the database came back with it."""
    stage.live()
    stage.create(**watched())
    await asyncio.sleep(2)
    (port,) = probe_ports(stage)
    stage.region.ports.pop(port)
    return port


def assert_probed_from_the_new_port(stage: Stage, lost: str) -> None:
    (port,) = probe_ports(stage)
    assert port != lost
    address = stage.region.ports[port].ips[0].partition("/")[0]
    mappings = {f"192.0.2.{n}": f"vm-192.0.2.{n}:{address}" for n in (10, 11)}
    assert stage.rows()[0]["ip_port_mappings"] == mappings


@played
async def test_a_comparison_makes_a_port_again_that_only_the_database_has(stage: Stage) -> None:
    lost = await with_lost_port(stage)
    asked = await compared(stage)
    assert_probed_from_the_new_port(stage, lost)
    assert asked.count("make") == 1
    assert await compared(stage) == ["ports by owner"]


@played
async def test_a_person_s_sync_makes_a_port_again_that_only_the_database_has(stage: Stage) -> None:
    lost = await with_lost_port(stage)
    await stage.store.learn({"lb-1": 0}, {"lb-1"}, OPERATOR, 0.0)
    await asyncio.sleep(5)
    assert_probed_from_the_new_port(stage, lost)


@played
async def test_of_two_ports_for_probes_every_worker_takes_the_one_that_is_there(stage: Stage) -> None:
    """Another worker made the second one: this one has not seen that the first is gone."""
    lost = await with_lost_port(stage)
    subnet = Subnet("sub-a", "net-a", "192.0.2.0/24")
    await ProbePorts(stage.store, stage.region, "another").make([subnet], {})
    await asyncio.sleep(5)
    assert_probed_from_the_new_port(stage, lost)


@played
async def test_a_vip_whose_port_is_gone_is_told_of(stage: Stage) -> None:
    stage.live()
    stage.create()
    stage.create("lb-2", "192.0.2.102")
    await asyncio.sleep(2)
    stage.region.ports.pop("vip-lb-1")
    with capture_logs() as logs:
        asked = await compared(stage)
    told = [(entry["load_balancer"], entry["port"]) for entry in logs if "port of this VIP" in entry["event"]]
    assert told == [("lb-1", "vip-lb-1")]
    assert asked == ["ports by owner", "ports by id"]


@played
async def test_a_network_service_that_is_down_stops_no_comparison(stage: Stage) -> None:
    stage.live()
    stage.create(**watched())
    await asyncio.sleep(2)
    stage.region.is_down = True
    stage.region.meddle("lb-1")
    await stage.store.learn({"lb-1": 0}, {"lb-1"}, OPERATOR, 0.0)
    await asyncio.sleep(1)
    assert stage.rows()
    assert await compared(stage) == ["ports by owner"]


@played
async def test_a_probe_that_two_load_balancers_share_shows_in_both(stage: Stage) -> None:
    stage.live()
    for number in (1, 2):
        stage.create(f"lb-{number}", f"192.0.2.10{number}", **watched(f"-{number}"))
    await asyncio.sleep(2)
    stage.api.reports.clear()
    stage.region.probe("192.0.2.10", 80, "offline")
    await asyncio.sleep(2)
    for number in (1, 2):
        assert stage.status("members", f"me-1-{number}", f"lb-{number}")[1] == "ERROR"
        assert stage.status("pools", f"po-{number}", f"lb-{number}")[1] == "DEGRADED"
    told = len(stage.api.reports)
    assert told == 2
    stage.region.probe("192.0.2.10", 80, "offline")
    await asyncio.sleep(2)
    assert len(stage.api.reports) == told
    assert len([p for p in stage.region.ports.values() if "hm" in p.name]) == 1


@played
async def test_a_floating_ip_and_a_lost_database_need_no_call(stage: Stage) -> None:
    stage.live()
    stage.create(**parts())
    await asyncio.sleep(1)
    stage.region.float("vip-lb-1")
    await asyncio.sleep(2)
    address = stage.region.floating["vip-lb-1"]
    assert set(stage.rows()[0]["vips"]) == {"192.0.2.101:80", f"{address}:80"}
    stage.region.lose()
    await asyncio.sleep(5)
    assert set(stage.rows()[0]["vips"]) == {"192.0.2.101:80", f"{address}:80"}


async def _orphan(stage: Stage) -> None:
    """Rows of ours whose load balancer the API has lost, beside one that it has."""
    stage.create()
    stage.create("lb-2", "192.0.2.102")
    await asyncio.sleep(1)
    del stage.api.trees["lb-1"]


@played
async def test_rows_without_a_tree_go_only_after_the_second_look(stage: Stage) -> None:
    await _orphan(stage)
    await stage.stimuli.compare_once()
    stage.live()
    await asyncio.sleep(3)
    assert len(stage.rows()) == 1
    await stage.stimuli.compare_once()
    await asyncio.sleep(3)
    assert (len(stage.rows()), len(stage.rows("lb-2"))) == (0, 1)


@played
async def test_an_api_that_lists_nothing_or_fails_removes_nothing(stage: Stage) -> None:
    await _orphan(stage)
    stage.live()
    del stage.api.trees["lb-2"]
    for _ in range(3):
        await stage.stimuli.compare_once()
        await asyncio.sleep(3)
    assert (len(stage.rows()), len(stage.rows("lb-2"))) == (1, 1)


@played
async def test_rows_of_another_writer_without_a_tree_are_left_alone(stage: Stage) -> None:
    await _orphan(stage)
    stage.live()
    ids = {"enabled": "True", "neutron:vip": "192.0.2.77"}
    row = {"name": "theirs", "external_ids": laying.as_map(ids)}
    stage.region.write([{"op": "insert", "table": "Load_Balancer", "row": row}])
    for _ in range(3):
        await stage.stimuli.compare_once()
        await asyncio.sleep(3)
    assert len(stage.rows("theirs")) == 1


@played
async def test_a_comparison_makes_due_only_what_differs(stage: Stage) -> None:
    for number in range(5):
        stage.create(f"lb-{number}", f"192.0.2.{100 + number}", **watched(f"-{number}"))
    await asyncio.sleep(2)
    stage.region.meddle("lb-3")
    await asyncio.sleep(1)
    await stage.stimuli.compare_once()
    await asyncio.sleep(1)
    claimed = await stage.store.claim("w", 10, 15.0)
    assert [(work.id, work.reason) for work in claimed] == [("lb-3", "sync")]


@played
async def test_a_row_woken_as_orphan_that_has_a_tree_after_all_is_kept(stage: Stage) -> None:
    stage.create()
    await asyncio.sleep(1)
    await stage.store.learn({"lb-1": 0}, {"lb-1"}, ORPHAN, 0.0)
    stage.live()
    await asyncio.sleep(2)
    assert len(stage.rows()) == 1


@played
async def test_a_drain_lets_passes_end_and_gives_leases_back(stage: Stage) -> None:
    stage.create(**parts())
    await asyncio.sleep(0.002)
    assert stage.runner._tasks
    await stage.runner.drain(5.0)
    assert stage.status("loadbalancers", "lb-1")[0] == "ACTIVE"
    assert all(row.owner is None for row in stage.store.rows.values())
    assert not stage.runner.has_room


@played
async def test_a_monitor_whose_port_is_refused_for_good_is_in_error_alone(stage: Stage) -> None:
    make = stage.region.make_port

    async def refuse(body: Any) -> Any:
        if str(body["name"]).startswith("ovn-lb-hm"):
            raise NetworkRefused(403, "not for you")
        return await make(body)

    stage.region.make_port = refuse  # type: ignore[method-assign]  # a policy of the network service
    stage.create(**watched())
    await asyncio.sleep(1)
    assert stage.status("healthmonitors", "hm") == ("ERROR", "ERROR")
    assert stage.status("loadbalancers", "lb-1")[0] == "ACTIVE"
