"""The gauge and the two durations."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from roadstead.testing.passbench import view
from roadstead_monitor.measures import Cell, Measures

FACTS: dict[str, Any] = {
    "status": "ACTIVE",
    "powerState": 1,
    "launchedAt": "2026-01-01T00:01:00.000Z",
    "createdAt": "2026-01-01T00:00:30.000Z",
}
ROW = {"flavor": {"original_name": "small"}}


def known(made: str | None = "2026-01-01T00:00:00.000Z", **status: Any) -> Any:
    metadata = {"creationTime": made} if made else {}
    return view("server", "s", "r", spec={"flavorID": "f"}, metadata=metadata, status=status)


def test_the_gauge_is_made_anew_each_sweep() -> None:
    measures = Measures()
    measures.count(known(), ROW, FACTS, "one")
    assert measures.servers == {}, "not before the sweep is over"
    measures.swept(set())
    assert measures.servers == {Cell("active", "r", "one", "f", "small"): 1}
    measures.count(known(), ROW, {**FACTS, "status": "ERROR"}, "one")
    measures.swept(set())
    assert measures.servers == {Cell("error", "r", "one", "f", "small"): 1}
    measures.swept(set())
    assert measures.servers == {}


def test_durations_are_taken_once_on_the_first_run() -> None:
    measures = Measures()
    for _ in range(3):
        measures.timed(known(), FACTS)
    assert measures.drain() == ([60.0], [30.0])
    assert measures.drain() == ([], [])


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"status": "BUILD"}, {}),
        ({"powerState": 4}, {}),
        ({"launchedAt": None}, {}),
        ({}, {"launchedAt": "2026-01-01T00:01:00.000Z"}),
    ],
)
def test_nothing_is_taken_before_or_after_the_first_run(
    facts: dict[str, Any], status: dict[str, Any]
) -> None:
    measures = Measures()
    measures.timed(known(**status), {**FACTS, **facts})
    assert measures.drain() == ([], [])


def test_ref_066_a_negative_duration_is_logged_and_left_out() -> None:
    measures = Measures()
    with capture_logs() as logs:
        measures.timed(known("2026-01-01T00:00:45.000Z"), FACTS)
    assert measures.drain() == ([15.0], [])
    assert [line["what"] for line in logs] == ["scheduling"]


def test_without_a_creation_time_there_is_no_duration() -> None:
    measures = Measures()
    measures.timed(known(None), FACTS)
    assert measures.drain() == ([], [])


def test_what_was_timed_is_remembered_no_longer_than_the_server_is_known() -> None:
    measures = Measures()
    measures.timed(known(), FACTS)
    measures.swept({"s"})
    measures.timed(known(), FACTS)
    assert measures.drain() == ([60.0], [30.0])
    measures.swept(set())
    measures.timed(known(), FACTS)
    assert measures.drain() == ([60.0], [30.0])
