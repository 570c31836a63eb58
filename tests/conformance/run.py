"""Replays the recorded exchanges on the Octavia API and counts what came of them.

    python -m tests.conformance.run [--data FOLDER] [--only TEXT] [--files NAME,...] [--show N] [--report FILE] [--workers N]

Each worker has a database, an API and an adapter of its own.  An exchange is identical, explained (by rules that are lines of
docs/octavia-departures.md), unsupported (cannot be staged from data), or different; the exit status is 0 when none is different.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roadstead.testing.server_process import free_port
from roadstead.testing.servers import PostgresServer

from . import recordings, vectors
from .departures import explain

ROOT = recordings.ROOT
PATIENCE = 60.0  # seconds for an adapter to be there
LONGEST = 1500.0  # seconds for the replay of one share
IDENTICAL = ("exact", "unordered")


@dataclass
class Outcome:
    """Counts by file and verdict; differences that nothing explains; how often each departure was needed."""

    counts: dict[str, collections.Counter[str]] = field(default_factory=dict)
    different: list[dict[str, Any]] = field(default_factory=list)
    departures: collections.Counter[str] = field(default_factory=collections.Counter)
    seam: collections.Counter[str] = field(default_factory=collections.Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        for name, counter in other.counts.items():
            self.counts.setdefault(name, collections.Counter()).update(counter)
        self.different += other.different
        self.departures += other.departures
        self.seam += other.seam
        self.faults += other.faults

    @property
    def total(self) -> collections.Counter[str]:
        total: collections.Counter[str] = collections.Counter()
        for counter in self.counts.values():
            total.update(counter)
        return total

    @property
    def is_good(self) -> bool:
        return not self.different and not self.faults and self.total["identical"] > 0


@contextmanager
def adapter(postgres: PostgresServer, number: int) -> Iterator[tuple[str, str]]:
    """A running API with its adapter: (address of the API, address of the adapter)."""
    url = postgres.create_database(f"conformance_{os.getpid()}_{number}", template="template1")
    api, admin = free_port(), free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.conformance.adapter", "--database", url),
            *("--api-port", str(api), "--admin-port", str(admin)),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("the adapter did not start; its error stands above")
        yield f"http://127.0.0.1:{api}", f"http://127.0.0.1:{admin}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _python(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def replayed(files: Sequence[Path], target: tuple[str, str], only: str | None, internal: bool) -> Outcome:
    """One share of the files on one target."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        report, counts = Path(folder) / "report.jsonl", Path(folder) / "counts.json"
        done = _python(
            [
                str(recordings.FOLDER / "replay.py"),
                *("--target", target[0], "--admin", target[1], "--show", "0"),
                *("--report", str(report), "--json", str(counts)),
                *(("--only", only) if only else ()),
                *(("--internal",) if internal else ()),
                *(str(f) for f in files),
            ]
        )
        if not counts.exists():
            outcome.faults.append(f"the replayer ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
            return outcome
        for name, found in json.loads(counts.read_text())["files"].items():
            outcome.counts[name.removesuffix(".jsonl.gz")] = _verdicts(found)
        same = _comparison()
        tests = _tests_of(files)
        for text in report.read_text().splitlines():
            line = json.loads(text)
            counter = outcome.counts[tests[line["test"]]]
            used = explain(line, same)
            if used is None:
                counter["different"] += 1
                outcome.different.append(line)
            else:
                counter["explained"] += 1
                outcome.departures.update(used)
    return outcome


def _verdicts(found: dict[str, int]) -> collections.Counter[str]:
    """What the replayer counted, without the differences, which are judged one by one."""
    counter: collections.Counter[str] = collections.Counter()
    for verdict, count in found.items():
        if verdict in IDENTICAL:
            counter["identical"] += count
        elif verdict.endswith("(skipped)") or verdict == "unsupported by the adapter":
            counter["unsupported"] += count
        elif verdict == "exchanges":
            counter["exchanges"] += count
    return counter


def _comparison() -> Any:
    conflib = recordings.module("conflib")

    def same(expected: Any, actual: Any) -> bool:
        parts = [p for p in conflib.PARTS if p in expected or p in actual]
        return all(conflib.unordered(expected.get(p)) == conflib.unordered(actual.get(p)) for p in parts)

    return same


def _tests_of(files: Sequence[Path]) -> dict[str, str]:
    conflib = recordings.module("conflib")

    return {
        test["test"]: file.name.removesuffix(".jsonl.gz")
        for file in files
        for _, test in conflib.read_file(str(file))
    }


def seam(file: Path, target: tuple[str, str]) -> Outcome:
    """The vectors of the driver agent."""
    counts, departures, different = vectors.replay(file, target)
    outcome = Outcome(seam=counts, departures=departures)
    outcome.faults += [f"seam vector {json.dumps(line)[:2000]}" for line in different]
    return outcome


def shares(files: Sequence[Path], workers: int) -> list[list[Path]]:
    """The files spread so that the biggest do not meet."""
    made: list[list[Path]] = [[] for _ in range(workers)]
    weights = [0] * workers
    for file in sorted(files, key=lambda f: -f.stat().st_size):
        lightest = weights.index(min(weights))
        made[lightest].append(file)
        weights[lightest] += file.stat().st_size
    return [share for share in made if share]


def run(
    data: Path,
    *,
    only: str | None = None,
    names: Sequence[str] = (),
    workers: int = 2,
    internal: bool = False,
) -> Outcome:
    """Everything under `data`, or the named files of it."""
    files = [f for f in sorted(data.glob("*.jsonl.gz")) if not names or f.name.split(".")[0] in names]
    recorded = [f for f in files if not f.name.startswith("seam")]
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        postgres = PostgresServer(Path(folder) / "postgres", durable=False, die_with_parent=True)
        postgres.start()
        try:

            def work(numbered: tuple[int, list[Path]]) -> Outcome:
                number, share = numbered
                with adapter(postgres, number) as target:
                    mine = replayed(share, target, only, internal) if share else Outcome()
                    if number == 0:
                        for file in files:
                            if file.name.startswith("seam"):
                                mine.add(seam(file, target))
                    return mine

            parts = shares(recorded, workers) or [[]]
            with ThreadPoolExecutor(len(parts)) as pool:
                for part in pool.map(work, enumerate(parts)):
                    outcome.add(part)
        finally:
            postgres.stop()
    return outcome


def show(outcome: Outcome, lines: int) -> None:
    """Counts by resource and verdict, and the first differences."""
    print(
        f"{'resource':32}{'exchanges':>10}{'identical':>10}{'explained':>10}{'unsupported':>12}{'different':>10}"
    )
    for name, counter in [*sorted(outcome.counts.items()), ("all", outcome.total)]:
        print(
            f"{name:32}{counter['exchanges']:>10}{counter['identical']:>10}{counter['explained']:>10}"
            f"{counter['unsupported']:>12}{counter['different']:>10}"
        )
    if outcome.seam:
        print("seam vectors: " + ", ".join(f"{k} {v}" for k, v in sorted(outcome.seam.items())))
    if outcome.departures:
        print("departures: " + ", ".join(f"{k} {v}" for k, v in outcome.departures.most_common()))
    for line in outcome.different[:lines]:
        print(f"{line['test']} step {line['step']}: {line['request']['method']} {line['request']['path']}")
        for part in line["parts"]:
            expected, actual = (line.get(side) for side in ("expected", "actual"))
            if not isinstance(expected, dict) or not isinstance(actual, dict):
                print("   ", part)
                continue
            print(f"    - {part}: {json.dumps(expected.get(part))[:900]}")
            print(f"    + {part}: {json.dumps(actual.get(part))[:900]}")
    for fault in outcome.faults:
        print(fault)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=recordings.FOLDER, help="folder of recorded exchanges")
    parser.add_argument("--only", help="only tests whose name contains this")
    parser.add_argument(
        "--files", default="", help="only these files, by name without ending, with commas between"
    )
    parser.add_argument("--show", type=int, default=10, help="differences to print (default: %(default)s)")
    parser.add_argument("--report", type=Path, help="write all differences here, one JSON object a line")
    parser.add_argument(
        "--workers", type=int, default=2, help="processes side by side (default: %(default)s)"
    )
    parser.add_argument("--internal", action="store_true", help="also what the original fails at with a 500")
    given = parser.parse_args()
    reason = recordings.missing()
    if reason is not None:
        print(f"conformance: {reason}", file=sys.stderr)
        return 2
    if not given.data.is_dir():
        print(f"conformance: {given.data} is no folder", file=sys.stderr)
        return 2
    started = time.monotonic()
    outcome = run(
        given.data,
        only=given.only,
        names=[n for n in given.files.split(",") if n],
        workers=given.workers,
        internal=given.internal,
    )
    if given.report:
        given.report.write_text("".join(json.dumps(line) + "\n" for line in outcome.different))
    show(outcome, given.show)
    print(f"seconds: {time.monotonic() - started:.0f}")
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
