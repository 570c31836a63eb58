"""What a run of the suite means: every test passes, or is skipped for a reason that stands in skips.yaml.

A skip that no line explains fails the run, and so does a line that explains no skip any more.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SKIPS = Path(__file__).with_name("skips.yaml")


@dataclass(frozen=True)
class Explained:
    """Tests whose name the pattern finds, skipped with a message that holds `says`, because of `reason`."""

    tests: re.Pattern[str]
    says: str
    reason: str

    def fits(self, name: str, message: str) -> bool:
        return self.tests.search(name) is not None and self.says in message


@dataclass
class Verdict:
    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """Name -> the last line of what went wrong."""
    unexplained: dict[str, str] = field(default_factory=dict)
    """Name -> what the suite says."""
    needless: list[str] = field(default_factory=list)
    """Reasons that no skip needed."""

    @property
    def is_good(self) -> bool:
        return self.passed > 0 and not (self.failures or self.unexplained or self.needless)


def read_skips(path: Path = SKIPS) -> list[Explained]:
    """ValueError for a line without a reason."""
    rows: Sequence[Mapping[str, Any]] = yaml.safe_load(path.read_text())
    found = []
    for row in rows:
        if not all(str(row.get(key) or "").strip() for key in ("tests", "says", "reason")):
            raise ValueError(f"{path.name}: {dict(row)} needs tests, says and reason")
        found.append(Explained(re.compile(row["tests"]), row["says"], row["reason"]))
    return found


def judge(report: Path, explained: Sequence[Explained], *, whole: bool) -> Verdict:
    """From a JUnit report.  whole: all tests ran, so that a line without a skip is needless."""
    verdict = Verdict()
    used: set[int] = set()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        skip = case.find("skipped")
        if wrong is not None:
            lines = (wrong.text or wrong.get("message") or "").strip().splitlines() or ["no words"]
            verdict.failures[name] = lines[-1]
        elif skip is not None:
            message = " ".join(((skip.get("message") or "") + " " + (skip.text or "")).split())
            fitting = [n for n, one in enumerate(explained) if one.fits(name, message)]
            used.update(fitting)
            if fitting:
                verdict.skipped += 1
            else:
                verdict.unexplained[name] = message
        else:
            verdict.passed += 1
    if whole:
        verdict.needless = [one.reason for n, one in enumerate(explained) if n not in used]
    return verdict
