"""One log line a move of Healthy and Active."""

from dataclasses import replace
from typing import Any

from structlog.testing import capture_logs

from roadstead.reconcile.views import StatusView
from roadstead.store.memory import MemoryStore
from roadstead.testing.passbench import view
from roadstead_monitor.transitions import Transitions
from roadstead_monitor.watch import Watch

from .conftest import Sky


def told(healthy: str, active: str, at: str = "00", **changes: Any) -> StatusView:
    status, _, reason = healthy.partition("/")
    conditions = [
        {"type": "Available", "status": "False", "reason": "Errored", "lastTransitionTime": "x"},
        {
            "type": "Healthy",
            "status": status,
            "reason": reason,
            "lastTransitionTime": f"2026-01-01T00:00:{at}Z",
        },
        {
            "type": "Active",
            "status": "True",
            "reason": active,
            "lastTransitionTime": f"2026-01-01T00:00:{at}Z",
        },
    ]
    metadata = {"organizationId": "acme"}
    return replace(view("server", "s", "r", status={"conditions": conditions}, metadata=metadata), **changes)


def lines(transitions: Transitions, *views: StatusView) -> list[tuple[str, str, str, float | None]]:
    with capture_logs() as logs:
        for each in views:
            transitions.heard(each)
    return [
        (e["condition"], e["was"], e["now"], e["seconds"]) for e in logs if e["event"] == "condition moved"
    ]


def test_each_move_is_one_line_with_how_long_it_had_been_so() -> None:
    transitions = Transitions(lambda _view: True)
    found = lines(
        transitions,
        told("Unknown/Unknown", "Building"),
        told("Unknown/Unknown", "Building", "10"),
        told("True/Healthy", "Running", "30"),
        told("False/Errored", "Running", "45"),
    )
    assert found == [
        ("Healthy", "Unknown/Unknown", "True/Healthy", 20.0),
        ("Active", "True/Building", "True/Running", 20.0),
        ("Healthy", "True/Healthy", "False/Errored", 15.0),
    ]


def test_the_first_word_and_the_end_are_no_moves_and_other_kinds_are_none_of_its_business() -> None:
    transitions = Transitions(lambda _view: True)
    network = replace(told("True/Healthy", "Running"), key=replace(told("", "").key, kind="network"))
    assert lines(transitions, told("True/Healthy", "Running"), network) == []
    assert lines(transitions, told("False/Errored", "Stopped", gone=True)) == []
    assert len(transitions) == 0
    assert lines(transitions, told("False/Errored", "Stopped")) == []


def test_what_is_another_replicas_is_remembered_and_not_told() -> None:
    mine = False
    transitions = Transitions(lambda _view: mine)
    assert lines(transitions, told("True/Healthy", "Building"), told("True/Healthy", "Running")) == []
    mine = True
    assert lines(transitions, told("True/Healthy", "Stopped", "05")) == [
        ("Active", "True/Running", "True/Stopped", 5.0)
    ]


async def test_a_server_is_told_of_by_the_replica_that_sweeps_it(sky: Sky) -> None:
    store = MemoryStore(sky.clock, name="monitor")
    watches = [Watch(sky.sweeper, store, sky.clock, owner=f"o{n}", period=60.0, shards=8) for n in range(2)]
    for _ in range(2):
        for watch in watches:
            await watch.keep_once()
    known = sky.directory.get("server", sky.server("web-1"))
    assert known is not None
    assert [watch.is_mine(known) for watch in watches].count(True) == 1
