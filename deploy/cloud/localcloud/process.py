"""One process of ours: started in a session of its own, known by pid and start time.

A pid alone may have been reused since; with the kernel's start tick it names one
process for ever, so nothing that we did not start is ever signalled.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessId:
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    started: str  # clock ticks after boot, as the kernel writes them

    def lives(self) -> bool:
        """True while it runs; a zombie does not."""
        fields = _stat(self.pid)
        return fields is not None and fields.started == self.started and not fields.zombie

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended meanwhile is no error."""
        if self.lives():
            with contextlib.suppress(ProcessLookupError):  # it may end between the look and the signal
                os.kill(self.pid, number)


@dataclass(frozen=True)
class _Stat:
    zombie: bool
    session: int
    started: str


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name stands in parentheses and may hold anything, also ")".
    fields = text.rsplit(")", 1)[1].split()
    return _Stat(zombie=fields[0] in "ZX", session=int(fields[3]), started=fields[19])


def spawn(
    argv: Sequence[str], *, environment: Mapping[str, str], directory: Path, output: Path, record: Path
) -> ProcessId:
    """Start a process as leader of its own session and record it."""
    with output.open("ab") as log:
        child = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=dict(environment), cwd=directory, start_new_session=True,
        )  # fmt: skip
    fields = _stat(child.pid)
    process = ProcessId(child.pid, fields.started if fields else "")
    record.write_text(f"{process.pid} {process.started}\n")
    # The parent ends long before its daemons; nobody waits for them through this object.
    child.returncode = 0
    return process


def recorded(record: Path) -> ProcessId | None:
    """The live process of a record, or None."""
    try:
        pid, started = record.read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    process = ProcessId(int(pid), started)
    return process if process.lives() else None


def session(leader: ProcessId) -> list[ProcessId]:
    """The leader and every live process of the session it opened."""
    if not leader.lives():
        return []
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _stat(int(entry))
            if fields and fields.session == leader.pid and not fields.zombie:
                found.append(ProcessId(int(entry), fields.started))
    return found


def memory(process: ProcessId) -> tuple[int, int]:
    """Resident and proportional memory in KiB; zeros when it has ended."""
    resident = proportional = 0
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    for line in lines:
        if line.startswith("Rss:"):
            resident = int(line.split()[1])
        elif line.startswith("Pss:"):
            proportional = int(line.split()[1])
    return resident, proportional
