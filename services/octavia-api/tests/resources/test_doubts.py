"""C14 of the faults that are known: what a health monitor may ask for and hardly means is in the log."""

from typing import Any

import pytest
import structlog.testing

from roadstead_octavia.resources.healthmonitor import operations as healthmonitor
from roadstead_octavia.resources.healthmonitor.doubts import doubts, tell

from .test_children import MONITOR, POOL, a_listener, a_pool, a_world
from .world import World


@pytest.mark.parametrize(
    ("monitor", "words"),
    [
        ({"delay": 5, "timeout": 10}, ["a check may take 10 s and the next one begins after 5 s"]),
        ({"expected_codes": "204-200"}, ["the range 204-200 is empty"]),
        ({"expected_codes": "200, 999"}, ["no server answers 999"]),
        ({"expected_codes": "099"}, ["no server answers 099"]),
        ({"expected_codes": "600-200"}, ["no server answers 600-200"]),
        ({"delay": 5, "timeout": 5, "expected_codes": "200,202-204,500"}, []),
        ({"delay": 5, "timeout": None, "expected_codes": None}, []),
        ({"type": "TCP"}, []),
    ],
)
def test_c14_what_is_hardly_meant_is_said_in_words(monitor: dict[str, Any], words: list[str]) -> None:
    assert doubts(monitor) == words
    with structlog.testing.capture_logs() as logs:
        tell("id-1", monitor)
    assert [(e["log_level"], e["health_monitor"], e["doubt"]) for e in logs] == [
        ("warning", "id-1", word) for word in words
    ]


async def test_c14_an_update_is_judged_with_what_the_monitor_has_already() -> None:
    world = a_world()  # its monitor has delay 5 and timeout 3
    with structlog.testing.capture_logs() as logs:
        await world.do(healthmonitor.update, {"name": "a"}, MONITOR)
    assert [e for e in logs if "doubt" in e] == []
    world = a_world()
    with structlog.testing.capture_logs() as logs:
        await world.do(healthmonitor.update, {"timeout": 7}, MONITOR)
    (warned,) = [e for e in logs if "doubt" in e]
    assert warned["doubt"] == "a check may take 7 s and the next one begins after 5 s"


async def test_c14_a_new_monitor_is_made_and_warned_of() -> None:
    world = World(a_listener(default_pool_id=POOL), a_pool())
    wanted = {"pool_id": POOL, "type": "HTTP", "delay": 2, "timeout": 9, "max_retries": 3}
    with structlog.testing.capture_logs() as logs:
        answer = await world.do(healthmonitor.create, {**wanted, "expected_codes": "204-200"})
    assert answer.status == 201
    assert len([e for e in logs if "doubt" in e]) == 2
