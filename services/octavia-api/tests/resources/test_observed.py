"""What was observed on the original, asked of us: the same refusals in the same order of checks, the same values where it is accepted."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead_octavia.errors import ApiError

from . import observed

# Where we answer otherwise on purpose: (operation, part of the case's name) -> line of docs/octavia-departures.md.
DEPARTURES = {
    ("listener.create", "protocol_port=81.5"): "read-integers",
    ("listener.create", "protocol_port=True"): "read-integers",
    ("listener.create", "connection_limit=None"): "read-null-is-absent",
    ("listener.create", "client_authentication=None"): "read-null-is-absent",
    ("listener.update", "client_authentication=None"): "read-null-is-absent",
    ("member.create", "weight=None"): "read-null-is-absent",
    ("listener.create", "tls_versions=['TLSv9']"): "tls-always-checked",
    ("pool.create", "tls_versions=['x']"): "tls-always-checked",
    ("pool.create", "listener_id=<liu>"): "pool-fits-listener",
    ("l7policy.create", "li itself DELETED"): "deleted-listener",
    ("member.batch", "existing with another subnet_id"): "member-subnet-fixed",
    ("l7policy.create", "redirect_url=http://a/xxxx"): "read-sizes",
}
# What the mocks of that day made of it, or a load balancer that this tree has not.
ELSEWHERE = re.compile(r"MagicMock|'loadbalancer_id': '<lb2>'|'project_id': '<uuid>'|\[pecan\]")
SKIPPED_CASES = re.compile(r"^load balancer |itself PENDING")
LIST = Path(__file__).resolve().parents[4] / "docs" / "octavia-departures.md"
STATE = re.compile(r"(\w+) itself (\w+)")


def cases() -> list[Mapping[str, Any]]:
    if not observed.FILE.exists():
        return []
    recorded = yaml.safe_load(observed.FILE.read_text())["cases"]
    return [
        case
        for case in recorded
        if case["op"].partition(".")[0] in observed.RESOURCES
        and not case["op"].endswith(".show")
        and not SKIPPED_CASES.search(case["case"])
        and not ELSEWHERE.search(f"{case.get('body')}{case.get('text')}")
        and not case.get("body", "").endswith("...")
    ]


CASES = cases()


def name_of(case: Mapping[str, Any]) -> str:
    return f"{case['op']} {case['case'][:60]}"


def departure(case: Mapping[str, Any]) -> str | None:
    return next(
        (
            line
            for (op, part), line in DEPARTURES.items()
            if case["op"] == op and case["case"].startswith(part)
        ),
        None,
    )


def shown_values(answer: Any, wanted: Mapping[str, Any]) -> dict[str, str]:
    body = next(iter(answer.body.values())) if answer.body else {}
    return {name: observed.shown(str(body.get(name))) for name in wanted}


@pytest.mark.skipif(not CASES, reason="the observed requests are not on this machine")
@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_what_was_observed_is_answered_alike(case: Mapping[str, Any]) -> None:
    world = observed.tree()
    if state := STATE.fullmatch(case["case"]):
        _put(world, observed.IDS[state[1]], state[2])
    for earlier in _earlier(case):
        await observed.asked(world, earlier)
        world.settle()
    answer = await observed.asked(world, case)
    status = answer.status
    if case["status"] >= 500:
        assert status < 500, "what the original failed at is refused or done"
        return
    text = observed.shown(answer.text) if isinstance(answer, ApiError) else None
    expected = observed.shown(case["text"]) if case.get("text") else None
    result = case.get("result") or {}
    same = (status, text) == (case["status"], expected) and (
        isinstance(answer, ApiError)
        or shown_values(answer, result) == {name: str(value) for name, value in result.items()}
    )
    if (line := departure(case)) is not None:
        assert not same, f"{line} is no departure here any more"
    else:
        assert same, (status, text, case)


def _earlier(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Updates of the same object before this one: they were made one after the other."""
    if not case["op"].endswith(".update") or " itself " in case["case"]:
        return []
    alike = [one for one in CASES if (one["op"], one["request"]) == (case["op"], case["request"])]
    return [one for one in alike[: alike.index(case)] if one["status"] == 200 and departure(one) is None]


def _put(world: Any, identifier: str, status: str) -> None:
    rows = {
        table: [{**row, "provisioning_status": status} if row.get("id") == identifier else row for row in of]
        for table, of in world.tree.rows.items()
    }
    world.database.now = replace(world.tree, rows=rows)


def test_each_departure_is_a_line_of_the_list() -> None:
    text = LIST.read_text()
    assert all(f"| {line} |" in text for line in DEPARTURES.values())


@pytest.mark.skipif(not CASES, reason="the observed requests are not on this machine")
def test_each_departure_is_met() -> None:
    met = {line for case in CASES if (line := departure(case)) is not None}
    assert met == set(DEPARTURES.values())
