"""All recorded scenarios on a real Northbound database, and the rules that may explain a difference."""

from pathlib import Path

import pytest

from tests.conformance_ovn.recorded import Replay, needs_recordings, scenarios
from tests.conformance_ovn.rules import RULES, Story, explained
from tests.conformance_ovn.run import main
from tests.conformance_ovn.server import MISSING, is_installed

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.ovn
@pytest.mark.timeout(300)
@pytest.mark.skipif(not is_installed(), reason=MISSING)
@needs_recordings
async def test_no_scenario_differs_without_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    status = await main("", show=False)
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert " 0 different;" in shown


def test_every_rule_is_a_line() -> None:
    text = (ROOT / "docs" / "ovn-departures.md").read_text()
    for rule in RULES:
        assert f"\n| {rule.name} |" in text, rule.name


@needs_recordings
def test_a_rule_explains_only_what_it_is_about() -> None:
    story = Story(list(Replay(scenarios()["hm-create-twice"]).moments()))
    assert explained(story, frozenset({"health_check"})) == (["hm-create-twice"], frozenset())
    assert explained(story, frozenset({"health_check", "vips"}))[1] == {"vips"}
    other = (
        Story(list(Replay(scenarios()["hm-create"]).moments())) if "hm-create" in scenarios() else Story([])
    )
    assert explained(other, frozenset({"health_check"})) == ([], frozenset({"health_check"}))
