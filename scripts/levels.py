#!/usr/bin/env python3
"""Runs the levels of proof one after another, each by one pytest, and says what was left out and why.

    levels.py [--require all] [--only LEVEL]... [-- PYTEST ARGUMENTS]

A level that this machine cannot run is one line with the reason; with `--require all` such a line fails the run, as
does a level in which no test was collected. pytest writes straight to the terminal; the counts of the closing lines
come from its JUnit report.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parent.parent
REPORTS = Path(".run/levels")
MARKS = ("integration", "simulation", "cloud", "conformance", "chaos", "ovn")
NO_TESTS = 5
TIMED_OUT = 124


@dataclass(frozen=True)
class Machine:
    """What a level may ask of the machine it runs on."""

    root: Path
    environment: Mapping[str, str]
    is_root: bool
    is_debian_with_apt: bool

    @classmethod
    def this_one(cls) -> "Machine":
        """The machine that this process runs on."""
        debian = Path("/etc/debian_version").exists() and which("apt-get") is not None
        return cls(ROOT, os.environ, os.geteuid() == 0, debian)


def runs_anywhere(_: Machine) -> str | None:
    """No level asks less: never left out."""
    return None


def needs_root_on_debian(machine: Machine) -> str | None:
    """The reason for which servers cannot be installed by apt here; None when they can."""
    if not machine.is_debian_with_apt:
        return "it installs servers by apt, and this is no Debian machine"
    if not machine.is_root:
        return "it installs servers by apt, which needs root"
    return None


def nothing_runs(_: Path) -> bool:
    """For levels without surroundings."""
    return False


def cloud_runs(root: Path) -> bool:
    """True when any service of the reference cloud runs; its status shows the pid of each that does."""
    status = [str(root / "deploy/cloud/cloud"), "status"]
    shown = subprocess.run(status, cwd=root, capture_output=True, text=True, check=False, timeout=60).stdout
    return " pid " in shown


@dataclass(frozen=True)
class Level:
    """One level of proof.

    `obstacle` says why it cannot run on a machine. `home` is the folder that a level waits for: until the tree has
    it, the level does not exist. `timeout` bounds the whole level, in seconds. `before` and `after` are commands that
    bring its surroundings up and down; `after` runs whatever became of the tests, but never when `in_use` said that
    some of the surroundings ran before: what somebody else started is used and left as it is. `processes` run the tests
    side by side, each with servers of its own; a level whose tests share surroundings, or load the machine on purpose,
    has one. `early` is a command that prepares its surroundings and disturbs nobody: it is started with the run and waited
    for when the level begins; `before` does the same again if it failed. `folders` are those that hold its tests; without them all are looked through, which takes half a minute.
    """

    name: str
    timeout: float
    obstacle: Callable[[Machine], str | None] = runs_anywhere
    home: str | None = None
    processes: int = 1
    folders: tuple[str, ...] = ()
    in_use: Callable[[Path], bool] = nothing_runs
    early: tuple[str, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    after: tuple[tuple[str, ...], ...] = ()

    @property
    def spread(self) -> list[str]:
        """pytest's options for that many processes; tests of one module stay together."""
        return ["-n", str(self.processes), "--dist", "loadscope"] if self.processes > 1 else []

    @property
    def marks(self) -> str:
        """pytest's -m expression: a test that bears no other mark is a unit test."""
        return f"not ({' or '.join(MARKS)})" if self.name == "unit" else self.name


LEVELS = (
    Level("unit", timeout=900, processes=2),
    Level("integration", timeout=1500, processes=2),
    Level("simulation", timeout=900, processes=2, folders=("tests/simulation", "tests/scenarios")),
    Level("chaos", timeout=900, folders=("tests/chaos",)),
    # Where the recordings are missing its tests say so and are skipped: they are data that the project does not hold.
    Level("conformance", timeout=1200, home="tests/conformance", folders=("tests/conformance",)),
    Level(
        "ovn",
        timeout=900,
        obstacle=needs_root_on_debian,
        home="tests/ovn",
        processes=2,
        folders=("tests/ovn", "tests/balancing", "tests/conformance_ovn", "services/ovn-worker"),
        early=("deploy/ovn/ovn", "install"),
        before=(("deploy/ovn/ovn", "install"),),
    ),
    Level(
        "cloud",
        timeout=1500,
        obstacle=needs_root_on_debian,
        folders=("tests/cloud", "tests/scenarios", "libs/common/tests/cloud"),
        in_use=cloud_runs,
        early=("deploy/cloud/cloud", "install"),
        before=(("make", "cloud"),),
        after=(("make", "cloud-down"),),
    ),
)


@dataclass(frozen=True)
class Result:
    """How a level went; `trouble` is what went wrong beyond failed tests."""

    name: str
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    trouble: str | None = None
    left_out: str | None = None

    def is_good(self, require_all: bool) -> bool:
        """True when this result lets the whole run succeed."""
        if self.left_out is not None:
            return not require_all
        return self.failed == 0 and self.trouble is None

    @property
    def line(self) -> str:
        """The closing line of the level."""
        if self.left_out is not None:
            return f"level {self.name}: left out, {self.left_out}"
        counts = f"{self.passed} passed"
        counts += f", {self.failed} failed" if self.failed else ""
        counts += f", {self.skipped} skipped" if self.skipped else ""
        ending = f"; {self.trouble}" if self.trouble else ""
        return f"level {self.name}: {counts} in {self.seconds:.0f} s{ending}"


def read_counts(report: Path) -> tuple[int, int, int]:
    """Return passed, failed (errors too) and skipped of a JUnit report; OSError or ParseError when there is none."""
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return max(0, total - failed - skipped), failed, skipped


def run_bounded(command: Sequence[str], timeout: float) -> int:
    """Run a command in the root with the terminal as it is; TIMED_OUT when it had to be ended.

    It gets SIGINT first, so that pytest can still tear down and report, and is killed with its group 30 s later.
    """
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as child:
        try:
            return child.wait(timeout)
        except BaseException as reason:
            os.killpg(child.pid, signal.SIGINT)
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
            if isinstance(reason, subprocess.TimeoutExpired):
                return TIMED_OUT
            raise


def trouble_of(level: Level, status: int, failed: int) -> str | None:
    """Say what pytest's exit status means beyond failed tests; None when it says nothing more."""
    if status == 0 or (status == 1 and failed):
        return None
    known = {
        NO_TESTS: "no test bears its mark",
        TIMED_OUT: f"ended after its {level.timeout:.0f} s",
        2: "interrupted, or tests could not be collected",
    }
    return known.get(status, f"pytest ended with exit status {status}")


@contextmanager
def early_work(levels: Sequence[Level]) -> Iterator[Callable[[Level], None]]:
    """Start what levels may have prepared meanwhile; the function given waits for one level's, and at the end all is over.

    What it prints goes to a file beside the reports: a failure is seen when the level's `before` does it again.
    """
    started: dict[str, subprocess.Popen[bytes]] = {}
    (ROOT / REPORTS).mkdir(parents=True, exist_ok=True)
    for level in levels:
        if level.early and len(levels) > 1:
            with (ROOT / REPORTS / f"{level.name}-early.log").open("wb") as log:
                started[level.name] = subprocess.Popen(
                    level.early, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )

    def wait(level: Level) -> None:
        if level.name in started:
            with suppress(subprocess.TimeoutExpired):
                started[level.name].wait(level.timeout)

    try:
        yield wait
    finally:
        for child in started.values():
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def run_level(level: Level, arguments: Sequence[str]) -> Result:
    """Bring the level's surroundings up, run its tests, and take the surroundings down again."""
    print(f"\n--- level {level.name}", flush=True)
    started = time.monotonic()
    after = () if level.in_use(ROOT) else level.after
    try:
        for command in level.before:
            if run_bounded(command, level.timeout) != 0:
                return Result(level.name, time.monotonic() - started, trouble=f"`{' '.join(command)}` failed")
        return run_tests(level, arguments, started)
    finally:
        for command in after:
            if run_bounded(command, 300) != 0:
                print(f"level {level.name}: `{' '.join(command)}` failed", file=sys.stderr)


def run_tests(level: Level, arguments: Sequence[str], started: float) -> Result:
    """Run pytest for the level and read its report."""
    report = ROOT / REPORTS / f"{level.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    selection = ["-m", level.marks, f"--junitxml={report}", "-o", f"junit_suite_name={level.name}"]
    folders = [folder for folder in level.folders if (ROOT / folder).is_dir()]
    status = run_bounded(
        [sys.executable, "-m", "pytest", "-q", *level.spread, *selection, *arguments, *folders], level.timeout
    )
    seconds = time.monotonic() - started
    try:
        passed, failed, skipped = read_counts(report)
    except (OSError, ElementTree.ParseError):
        return Result(level.name, seconds, trouble=trouble_of(level, status, 0) or "pytest left no report")
    trouble = trouble_of(level, status, failed)
    if trouble is None and passed == 0 and failed == 0:
        trouble = "every test was skipped"
    return Result(level.name, seconds, passed, failed, skipped, trouble)


def in_tree(level: Level, root: Path) -> bool:
    """True when the tree has the level."""
    return level.home is None or (root / level.home).is_dir()


def closing_lines(results: Sequence[Result]) -> list[str]:
    """One line a level, then the sums in the plain form that other programs read."""
    passed, failed, skipped = (
        sum(getattr(r, key) for r in results) for key in ("passed", "failed", "skipped")
    )
    failed += sum(r.trouble is not None and r.failed == 0 for r in results)
    return [
        *(result.line for result in results),
        f"total: {passed} passed, {failed} failed, {skipped} skipped",
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the wanted levels; exit status 0 only when each of them is good."""
    names = [level.name for level in LEVELS]
    parser = argparse.ArgumentParser(description="Run the levels of proof, each by one pytest.")
    parser.add_argument(
        "--require", choices=["all", ""], default="", help="all: a level left out fails the run"
    )
    parser.add_argument(
        "--only", action="append", choices=names, metavar="LEVEL", help=f"one of {', '.join(names)}"
    )
    parser.add_argument("pytest_arguments", nargs="*", help="handed to pytest, after --")
    options = parser.parse_args(arguments)

    machine = Machine.this_one()
    wanted = [
        level
        for level in LEVELS
        if (not options.only or level.name in options.only) and in_tree(level, machine.root)
    ]
    results: list[Result] = []
    with early_work([level for level in wanted if level.obstacle(machine) is None]) as waited:
        for level in wanted:
            if (obstacle := level.obstacle(machine)) is not None:
                results.append(Result(level.name, left_out=obstacle))
                print(results[-1].line, flush=True)
            else:
                waited(level)
                results.append(run_level(level, options.pytest_arguments))
    require_all = options.require == "all"
    print()
    for line in closing_lines(results):
        print(line)
    sys.stdout.flush()
    good = all(result.is_good(require_all) for result in results)
    if require_all and any(result.left_out for result in results):
        print("REQUIRE=all: a level that was left out fails the run", file=sys.stderr)
    return 0 if good and results else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
