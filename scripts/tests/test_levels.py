"""The level runner: what it picks, what it counts and when it fails."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from scripts import levels
from scripts.levels import Level, Machine, Result

REPORT = (
    '<testsuites><testsuite name="x" errors="1" failures="2" skipped="3" tests="10" time="1.0"/></testsuites>'
)


def machine(root: Path, *, is_root: bool = True, debian: bool = True, **environment: str) -> Machine:
    return Machine(root, environment, is_root, debian)


@pytest.mark.parametrize(
    ("is_root", "debian", "reason"),
    [(True, True, None), (False, True, "needs root"), (True, False, "no Debian")],
)
def test_the_cloud_runs_as_root_on_debian_alone(
    tmp_path: Path, is_root: bool, debian: bool, reason: str | None
) -> None:
    given = levels.needs_root_on_debian(machine(tmp_path, is_root=is_root, debian=debian))
    assert given is None if reason is None else reason in str(given)


def test_a_level_without_its_folder_does_not_exist_yet(tmp_path: Path) -> None:
    level = Level("ovn", timeout=1, home="tests/ovn")
    assert not levels.in_tree(level, tmp_path)
    (tmp_path / "tests/ovn").mkdir(parents=True)
    assert levels.in_tree(level, tmp_path)


def test_counts_come_from_the_report(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    report.write_text(REPORT)
    assert levels.read_counts(report) == (4, 3, 3)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (Result("unit", 12.4, passed=123), "level unit: 123 passed in 12 s"),
        (Result("unit", 1, 5, 2, 1), "level unit: 5 passed, 2 failed, 1 skipped in 1 s"),
        (Result("cloud", left_out="no root"), "level cloud: left out, no root"),
        (
            Result("chaos", 1, trouble="no test bears its mark"),
            "level chaos: 0 passed in 1 s; no test bears its mark",
        ),
    ],
)
def test_a_level_ends_in_one_line(result: Result, line: str) -> None:
    assert result.line == line


def test_the_sums_count_a_level_in_trouble_as_a_failure() -> None:
    results = [Result("unit", passed=3, skipped=1), Result("chaos", trouble="no test bears its mark")]
    assert levels.closing_lines(results)[-1] == "total: 3 passed, 1 failed, 1 skipped"


def test_a_level_left_out_fails_only_where_all_are_required() -> None:
    left_out = Result("cloud", left_out="no root")
    assert left_out.is_good(require_all=False)
    assert not left_out.is_good(require_all=True)
    assert not Result("unit", passed=1, failed=1).is_good(require_all=False)
    assert not Result("unit", passed=1, trouble="x").is_good(require_all=False)


@pytest.fixture
def small_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one passing unit test and one failing chaos test, in the place of the repository."""
    marks = "".join(f"    {mark}: x\n" for mark in levels.MARKS)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{marks}")
    (tmp_path / "test_small.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "@pytest.mark.chaos\ndef test_bad(): assert False\n"
        "@pytest.mark.simulation\ndef test_slow():\n    import time; time.sleep(30)\n"
        "@pytest.mark.integration\n@pytest.mark.skip(reason='x')\ndef test_skipped(): pass\n"
    )
    alone = tuple(replace(level, processes=1) for level in levels.LEVELS)
    monkeypatch.setattr(levels, "LEVELS", alone)
    monkeypatch.setattr(levels, "ROOT", tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a bare pytest starts in a third of the time
    return tmp_path


@pytest.mark.parametrize(
    ("name", "timeout", "expected"),
    [
        ("unit", 60, "1 passed in"),
        ("chaos", 60, "0 passed, 1 failed in"),
        ("ovn", 60, "no test bears its mark"),
        ("integration", 60, "every test was skipped"),
        ("simulation", 4, "ended after its 4 s"),
    ],
)
def test_a_level_is_run_by_pytest(small_tree: Path, name: str, timeout: float, expected: str) -> None:
    result = levels.run_level(Level(name, timeout=timeout), [])
    assert expected in result.line
    assert result.is_good(require_all=True) == (name == "unit")


def test_surroundings_go_down_whatever_became_of_the_tests(small_tree: Path) -> None:
    level = Level("unit", 60, before=(("touch", "up"), ("false",)), after=(("mv", "up", "down"),))
    assert levels.run_level(level, []).trouble == "`false` failed"
    assert (small_tree / "down").exists()


def test_surroundings_that_ran_before_are_left_running(small_tree: Path) -> None:
    level = Level("unit", 60, in_use=lambda _: True, before=(("touch", "up"),), after=(("rm", "up"),))
    assert levels.run_level(level, []).passed == 1
    assert (small_tree / "up").exists()


@pytest.mark.parametrize(
    ("shown", "runs"), [("nova-api down", False), ("nova-api    pid 17    processes 1", True)]
)
def test_one_running_service_means_that_the_cloud_is_in_use(tmp_path: Path, shown: str, runs: bool) -> None:
    program = tmp_path / "deploy/cloud/cloud"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n[ $1 = status ] && echo '{shown}'; exit 1\n")
    program.chmod(0o755)
    assert levels.cloud_runs(tmp_path) is runs


def test_the_exit_status_tells_failure(small_tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert levels.main(["--only", "unit"]) == 0
    assert levels.main(["--only", "unit", "--only", "chaos"]) == 1
    closing = capfd.readouterr().out.splitlines()
    assert closing[-1] == "total: 1 passed, 1 failed, 0 skipped"
    assert any(line.startswith("1 passed in") or " 1 passed" in line for line in closing), "pytest's own line"


def test_arguments_reach_pytest(small_tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert levels.main(["--only", "unit", "--", "-k", "nothing_of_that_name"]) == 1
    assert "no test bears its mark" in capfd.readouterr().out


def test_require_all_fails_on_a_level_left_out(
    small_tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        levels, "LEVELS", (Level("cloud", 1, obstacle=lambda _: "no root"), Level("unit", 60))
    )
    assert levels.main([]) == 0
    assert levels.main(["--require", "all"]) == 1
    assert "level cloud: left out, no root" in capfd.readouterr().out


def test_a_command_that_overruns_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "ROOT", tmp_path)
    script = "import subprocess, sys; child = subprocess.Popen(['sleep', '60']); print(child.pid, file=open('pid', 'w'), flush=True); child.wait()"
    started = time.monotonic()
    assert levels.run_bounded([sys.executable, "-c", script], timeout=1.5) == levels.TIMED_OUT
    assert time.monotonic() - started < 55  # the command alone would take 60
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()


def test_early_work_runs_beside_the_other_levels_and_is_waited_for(
    small_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = Level(
        "integration", 60, early=("sh", "-c", "sleep 0.5; touch made"), before=(("test", "-e", "made"),)
    )
    monkeypatch.setattr(levels, "LEVELS", (Level("unit", 60), early))
    levels.main([])
    assert (small_tree / "made").exists()
    assert (small_tree / levels.REPORTS / "integration.xml").exists(), "its before found what was made"


def test_early_work_that_nobody_waited_for_is_ended(small_tree: Path) -> None:
    slow = Level("cloud", 60, early=("sh", "-c", "echo $$ > pid; exec sleep 60"))
    with levels.early_work([Level("unit", 60), slow]):
        deadline = time.monotonic() + 10
        while not (small_tree / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert not Path(f"/proc/{(small_tree / 'pid').read_text().strip()}").exists()
