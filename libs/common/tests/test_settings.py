"""What the pace scales, and what it must leave alone."""

import pytest

from roadstead.clock import OF_CLOUDS, Durations
from roadstead.settings import BadSettings, load_settings
from roadstead.testing.paced import paced_environment


@pytest.mark.parametrize("pace", [0.1, 0.25, 10.0])
def test_k1_the_pace_leaves_the_times_that_depend_on_a_cloud_alone(pace: float) -> None:
    """At 0.25 a slow create was once made a second time: 65 s of settling had become 16."""
    times, usual = load_settings(pace=pace).durations(), Durations()
    assert {name: getattr(times, name) for name in OF_CLOUDS} == {
        "call_deadline": 60.0,
        "settling": 65.0,
        "second_look": 2.0,
    }
    assert times.sweep == usual.sweep * pace
    assert times.lease == usual.lease * pace
    assert times.yield_after == usual.yield_after * pace


def test_times_of_clouds_are_settings() -> None:
    times = load_settings(call_deadline=30, settling=31, second_look=4).durations()
    assert (times.call_deadline, times.settling, times.second_look) == (30, 31, 4)


@pytest.mark.parametrize(("deadline", "settling"), [(60, 60), (65, 65), (70, 65)])
def test_k1_settling_is_longer_than_a_call_may_take(deadline: float, settling: float) -> None:
    with pytest.raises(
        BadSettings, match=r"^ROADSTEAD_SETTLING \(\d+ s\) must be longer than ROADSTEAD_CALL_DEADLINE"
    ):
        load_settings(call_deadline=deadline, settling=settling)


def test_a_simulator_and_its_services_are_quick_in_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in paced_environment(0.1).items():
        monkeypatch.setenv(name, value)
    times, usual = load_settings().durations(), Durations()
    assert {n: getattr(times, n) for n in OF_CLOUDS} == {
        n: pytest.approx(getattr(usual, n) * 0.1) for n in OF_CLOUDS
    }
