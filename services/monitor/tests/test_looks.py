"""Who is looked at between two sweeps, how often, and what that costs."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from roadstead.reconcile.views import StatusView
from roadstead.store.memory import MemoryStore
from roadstead.telemetry.metrics import Meters
from roadstead.testing.cloudsim.faults import Fault
from roadstead.testing.passbench import view
from roadstead_monitor.looks import LOOKS, PASSING, REST, Agenda, on_its_way
from roadstead_monitor.watch import Watch

from .conftest import Sky

PROJECT = ("r", "i")


def server(active: str | None, ident: str = "s", **changes: Any) -> StatusView:
    conditions = [] if active is None else [{"type": "Active", "status": "False", "reason": active}]
    return replace(view("server", ident, "r", status={"conditions": conditions}), **changes)


def dues(agenda: Agenda, until: float, step: float = 0.5) -> list[float]:
    """The seconds at which the project is looked at, each look taking no time."""
    found = []
    for now in (n * step for n in range(int(until / step))):
        for project in agenda.due(now):
            agenda.taken(project, now)
            agenda.done(project, now, now)
            found.append(now)
    return found


@pytest.mark.parametrize("reason", [None, *sorted(PASSING)])
def test_a_provisioned_server_whose_active_passes_by_is_on_its_way(reason: str | None) -> None:
    assert on_its_way(server(reason))


@pytest.mark.parametrize(
    "known",
    [
        server("Running"),
        server("Stopped"),
        server("Error"),
        server("Building", generation=2),
        server("Building", deleting=True),
        server("Building", gone=True),
        replace(server("Building"), key=replace(server("Building").key, kind="volume")),
    ],
)
def test_no_other_is(known: StatusView) -> None:
    assert not on_its_way(known)


def test_looks_are_each_further_off_and_then_end() -> None:
    agenda = Agenda(1.0)
    agenda.heard(server("Building"), PROJECT, 0.0)
    assert dues(agenda, 600.0) == [1.0, 2.5, 5.0, 8.5, 14.0, 22.0, 33.5, 51.0]
    assert agenda.idle()
    agenda.heard(server("Building"), PROJECT, 700.0)
    assert dues(agenda, 900.0) == [], "the same again asks for nothing"
    agenda.heard(server("Rebuilding", generation=2, status=_provisioned("Rebuilding", 2)), PROJECT, 0.0)
    assert len(dues(agenda, 600.0)) == LOOKS, "another spec does"


def _provisioned(active: str, generation: int) -> dict[str, Any]:
    known = server(active).status
    return {**known, "observedGeneration": generation}


def test_who_arrived_asks_for_no_more() -> None:
    agenda = Agenda(1.0)
    agenda.heard(server("Building"), PROJECT, 0.0)
    assert agenda.due(1.0) == {PROJECT}
    agenda.heard(server("Running"), PROJECT, 1.0)
    assert agenda.due(math.inf) == set()
    assert (agenda.idle(), agenda._wanted) == (True, {})


def test_many_of_one_project_share_their_looks() -> None:
    agenda = Agenda(1.0)
    for n in range(100):
        agenda.heard(server("Building", f"s{n}"), PROJECT, n / 100)
    assert dues(agenda, 60.0, 0.01)[0] == 1.0
    agenda = Agenda(1.0)
    for n in range(100):
        agenda.heard(server("Building", f"s{n}"), PROJECT, n / 10)
    looks = dues(agenda, 60.0, 0.1)
    assert min(b - a for a, b in pairwise(looks)) >= 0.99, "never twice within the rest, whoever waits"


def test_a_project_whose_list_is_slow_is_read_for_a_tenth_of_the_time() -> None:
    agenda = Agenda(1.0)
    agenda.heard(server("Building"), PROJECT, 0.0)
    agenda.taken(PROJECT, 1.0)
    assert agenda.due(100.0) == set(), "not again while a look runs"
    agenda.done(PROJECT, 1.0, 9.0)
    assert agenda.due(9.0 + REST * 8.0 - 0.1) == set()
    assert agenda.due(9.0 + REST * 8.0) == {PROJECT}


# ---------------------------------------------------------------- with the simulated cloud


def watch(sky: Sky, meters: Meters | None = None, owner: str = "o") -> Watch:
    store = MemoryStore(sky.clock, name="monitor")
    return Watch(sky.sweeper, store, sky.clock, owner=owner, period=60.0, shards=8, meters=meters)


def provisioned(sky: Sky, *idents: str) -> None:
    for ident in idents:
        sky.owner.stamp(
            ident,
            provisioningStatus="provisioned",
            observedGeneration=1,
        )


def hear(sky: Sky, watching: Watch, *idents: str) -> None:
    for ident in idents:
        known = sky.directory.get("server", ident)
        assert known is not None
        watching.heard(known)


async def turn(sky: Sky, watching: Watch, seconds: float) -> int:
    """The clock goes on, what is due is looked at; how many projects."""
    sky.clock.advance(seconds)
    projects = watching.to_look_at()
    for project in projects:
        await watching.look(project)
    return len(projects)


async def test_inv_122_inv_231_a_booted_server_is_shown_running_before_the_sweep_comes(sky: Sky) -> None:
    meters = Meters()
    watching = watch(sky, meters)
    await watching.keep_once()
    idents = [sky.server(f"web-{n}") for n in range(3)]
    provisioned(sky, *idents)
    sky.clock.advance(60.0)  # they boot
    hear(sky, watching, *idents)
    sky.cloud.log.clear()
    assert await turn(sky, watching, 1.0) == 1
    assert [sky.condition(i, "Active") for i in idents] == ["Running"] * 3
    assert all(sky.status(i)["provisionedAt"] for i in idents)
    assert (len(sky.lists()), sky.gets(), sky.cloud.log.writes()) == (1, [], [])
    hear(sky, watching, *idents)
    assert [await turn(sky, watching, 5.0) for _ in range(20)] == [0] * 20
    assert meters.value("roadstead_sweep_looks_total", outcome="read") == 1
    assert meters.value("roadstead_sweep_observations_total", outcome="sent") == 3


async def test_ref_063_a_project_that_cannot_be_read_is_looked_at_no_more_often(sky: Sky) -> None:
    meters = Meters()
    watching = watch(sky, meters)
    await watching.keep_once()
    ident = sky.server("web-1")
    provisioned(sky, ident)
    hear(sky, watching, ident)
    sky.cloud.faults.add(Fault("status", service="compute", status=503, times=None))
    assert sum([await turn(sky, watching, 1.0) for _ in range(300)]) == LOOKS
    assert meters.value("roadstead_sweep_looks_total", outcome="failed") == LOOKS
    assert sky.condition(ident, "Active") == "Building"


async def test_the_gauge_stays_the_last_sweeps_and_a_first_run_is_timed_once(sky: Sky) -> None:
    meters = Meters()
    watching = watch(sky, meters)
    await watching.keep_once()
    ident = sky.server("web-1")
    provisioned(sky, ident)
    sky.clock.advance(60.0)
    hear(sky, watching, ident)
    await turn(sky, watching, 1.0)
    assert sky.sweeper.measures.servers == {}
    await watching.sweep_once()
    assert sum(sky.sweeper.measures.servers.values()) == 1
    assert "roadstead_server_provisioning_seconds_count 1.0" in meters.text().decode()


async def test_one_replica_looks_at_a_project(sky: Sky) -> None:
    store = MemoryStore(sky.clock, name="monitor")
    watches = [Watch(sky.sweeper, store, sky.clock, owner=f"o{n}", period=60.0, shards=8) for n in range(2)]
    for _ in range(2):
        for each in watches:
            await each.keep_once()
    ident = sky.server("web-1")
    provisioned(sky, ident)
    for each in watches:
        hear(sky, each, ident)
    sky.clock.advance(1.0)
    assert sorted(len(each.to_look_at()) for each in watches) == [0, 1]
