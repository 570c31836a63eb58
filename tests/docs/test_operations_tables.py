"""The tables of the operator's page against the program: each one complete, and nothing in it that is not there."""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from roadstead.clock import Durations
from roadstead.cloud.checks.findings import OVERRIDES
from roadstead.reconcile.decision import Code
from roadstead.service import Exit
from roadstead.settings import PREFIX, Settings
from roadstead.subjects import STREAMS, WhenFull
from roadstead.telemetry.metrics import METRICS
from tests.docs.reading import OPERATIONS, ROOT, code, section, table

PAGE = OPERATIONS.read_text()
STATUS = section(PAGE, "How a resource stands")
MIB, DAY = 1 << 20, 86_400.0


def product() -> Iterator[tuple[Path, ast.Module]]:
    """Every module that may give a resource a code."""
    for folder in (ROOT / "libs/common/roadstead", *sorted((ROOT / "services").glob("*/roadstead_*"))):
        for path in sorted(folder.rglob("*.py")):
            if "testing" not in path.parts and path.name != "decision.py":
                yield path, ast.parse(path.read_text())


def codes_in(node: ast.AST) -> set[str]:
    """Members named as `Code.X` anywhere below."""
    return {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "Code"
    }


def calls(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in names:
            yield n


def test_every_status_code_stands_in_the_table_with_its_remedy() -> None:
    rows = {code(row["code"])[0]: row for row in table(STATUS, "code")}
    assert set(rows) == {c.value for c in Code if c is not Code.NONE}
    for name, row in rows.items():
        assert row["meaning"], name
        assert row["remedy"] or row["how"] == "reserved", name


def test_how_a_code_ends_a_pass_is_told_as_the_rules_do_it() -> None:
    """A code that some rule parks with says so, and likewise for waits and retries."""
    how = {code(row["code"])[0]: set(row["how"].split(", ")) for row in table(STATUS, "code")}
    ways = {"stops": ("park", "Park"), "waits": ("wait", "Yield"), "tried again": ("retry", "Retry")}
    said: dict[str, set[str]] = {name: set() for name in how}
    for _, module in product():
        for way, names in ways.items():
            for call in calls(module, *names):
                for name in codes_in(call):
                    said[name].add(way)
    for name, found in said.items():
        # NOT_FOUND, IN_USE and the like wait or fail by rule; texts of attachments bear a code that ends no pass
        assert found <= how[name], f"{name} {found - how[name]} is not told"
    assert {name for name, found in said.items() if "stops" in found} >= {
        "VOLUME_ERRORED",
        "CREATE_EXHAUSTED",
    }


def test_a_code_is_reserved_exactly_when_nothing_gives_it() -> None:
    given: set[str] = set()
    for _, module in product():
        given |= codes_in(module)
        given |= {
            str(call.args[0].value)
            for call in calls(module, "Problem")
            if isinstance(call.args[0], ast.Constant)
        }
    reserved = {code(row["code"])[0] for row in table(STATUS, "code") if row["how"] == "reserved"}
    assert reserved == {c.value for c in Code if c is not Code.NONE and c.value not in given}


def test_every_policy_override_is_listed_with_its_rule_and_file() -> None:
    rows = {code(row["code"])[0]: row for row in table(section(PAGE, "What a cloud has to allow"), "code")}
    assert set(rows) == set(OVERRIDES)
    for name, override in OVERRIDES.items():
        assert set(override.rule.split(" and ")) <= set(code(rows[name]["rule"])), name
        assert rows[name]["file"] == f"{override.service.lower()}.yaml", name
        assert rows[name]["without it"], name


def test_the_policy_files_hold_exactly_the_rules_of_the_table() -> None:
    rows = table(section(PAGE, "What a cloud has to allow"), "code")
    told: dict[str, set[str]] = {}
    for row in rows:
        told.setdefault(row["file"], set()).update(code(row["rule"]))
    shipped = {
        path.name: set(yaml.safe_load(path.read_text()))
        for path in (ROOT / "deploy/cloud/policies").glob("*.yaml")
    }
    assert told == shipped


@pytest.mark.parametrize("name", ["POLICY_VLAN_READ", "POLICY_BAREMETAL"])
def test_inv_298_absences_that_are_answered_with_200_are_marked_silent(name: str) -> None:
    """The two refusals that look like ordinary answers, as the check itself says of them."""
    rows = {code(r["code"])[0]: r for r in table(section(PAGE, "What a cloud has to allow"), "code")}
    assert "silently" in OVERRIDES[name].purpose
    assert rows[name]["silent"] == "**yes**"
    silent = {n for n, r in rows.items() if r["silent"] != "no"}
    assert silent == {n for n, o in OVERRIDES.items() if "silently" in o.purpose}


def test_further_findings_named_on_the_page_are_those_of_the_check() -> None:
    source = "".join(p.read_text() for p in (ROOT / "libs/common/roadstead/cloud/checks").glob("*.py"))
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", section(PAGE, "What a cloud has to allow")))
    named -= {name for name in named if name.startswith("ROADSTEAD_")}
    assert named > set(OVERRIDES)
    assert {name for name in named if f'"{name}"' not in source} == set()


def test_every_waiting_time_is_told() -> None:
    rows = {code(row["time"])[0]: float(row["seconds"]) for row in table(STATUS, "time")}
    durations = Durations()
    assert rows == {field.name: getattr(durations, field.name) for field in fields(durations)}


def test_every_metric_is_told() -> None:
    rows = {code(row["metric"])[0] for row in table(section(PAGE, "Metrics, logs, traces"), "metric")}
    assert rows == {metric.name for metric in METRICS}


def test_limits_of_streams_are_told_as_they_are() -> None:
    for row in table(section(PAGE, "Limits"), "stream"):
        stream = STREAMS[code(row["stream"])[0]]
        kept = "all" if stream.per_subject < 0 else str(stream.per_subject)
        age = f"{stream.max_age / DAY:.0f} days" if stream.max_age else "ever"
        full = "refuses new messages" if stream.when_full is WhenFull.NEW else "drops the oldest"
        told = (row["keeps of each subject"], row["for"], row["bytes"], row["when full"])
        assert told == (kept, age, f"{stream.max_bytes // MIB} MiB", full), stream.name
    assert {code(row["stream"])[0] for row in table(section(PAGE, "Limits"), "stream")} == set(STREAMS)


def test_exit_statuses_are_told_as_they_are() -> None:
    rows = table(section(PAGE, "Installing"), "exit status")
    assert {(int(row["exit status"]), row["name"]) for row in rows} == {(e.value, e.name) for e in Exit}


def test_settings_named_on_the_page_exist() -> None:
    named = set(re.findall(r"\bROADSTEAD_[A-Z_]+\b", PAGE))
    people = {"ROADSTEAD_PROJECT", "ROADSTEAD_ORGANIZATION", "ROADSTEAD_REGION"}  # of the command line
    assert named - people <= {PREFIX + name.upper() for name in Settings.model_fields}


def test_what_is_left_for_later_is_the_list_of_requirements_that_wait() -> None:
    waiting = tomllib.loads((ROOT / "tests/invariants.toml").read_text())["left"]
    rows = {
        code(row["topic"])[0]: row["requirements"].split() for row in table(section(PAGE, "Not yet"), "topic")
    }
    expected = {
        topic: [key for key in parts if key not in ("issue", "reason")] for topic, parts in waiting.items()
    }
    assert rows == expected
