"""Every recorded exchange of the original, and every vector of its driver agent: identical, or explained by a line of the departures."""

import re

import pytest

from .departures import RULES
from .departures_seam import RULES as SEAM_RULES
from .recordings import FOLDER, ROOT, needs_recordings
from .run import Outcome, run, show

pytestmark = pytest.mark.conformance

LINE = re.compile(r"^\| ([a-z0-9-]+) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    found = run(FOLDER)
    show(found, 20)
    return found


@needs_recordings
@pytest.mark.timeout(1500)
def test_no_exchange_is_answered_otherwise_without_a_line_that_says_why(outcome: Outcome) -> None:
    assert outcome.faults == []
    assert [f"{line['test']} step {line['step']}" for line in outcome.different] == []
    assert outcome.total["identical"] > 9000
    assert outcome.seam["vectors"] > 50
    assert outcome.seam["different"] == 0


def test_each_rule_has_its_line_in_the_documented_departures() -> None:
    written = set(LINE.findall((ROOT / "docs/octavia-departures.md").read_text()))
    assert {rule.id for rule in RULES} | {identifier for identifier, _ in SEAM_RULES} <= written
