"""What the supervisor tells others: one small file, replaced as a whole.

Process ids stand in it with the time at which the kernel started each, so that nobody ends a stranger that was given the same id.
"""

import json
import os
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from roadstead.testing.server_process import start_time, wait_until_gone


@dataclass
class PartState:
    """One process.  health: port of /readyz, 0 for none; seconds: from its start until it was ready."""

    name: str
    state: str = "waiting"  # waiting | starting | ready | restarting | stopped
    pid: int = 0
    started: int | None = None
    health: int = 0
    address: str = ""
    log: str = ""
    seconds: float = 0.0
    restarts: int = 0
    note: str = ""

    @property
    def is_alive(self) -> bool:
        return is_process(self.pid, self.started)


@dataclass
class StackState:
    """The whole stack.  since: when it was started, RFC 3339."""

    pid: int
    started: int | None
    since: str
    cloud: str
    ready: bool = False
    parts: list[PartState] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        return is_process(self.pid, self.started)

    def part(self, name: str) -> PartState | None:
        return next((part for part in self.parts if part.name == name), None)


def is_process(pid: int, started: int | None) -> bool:
    """Whether exactly that process still runs."""
    return pid > 0 and started is not None and start_time(pid) == started


def write_state(path: Path, state: StackState) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(state), indent=1))
    fresh.replace(path)


def read_state(path: Path) -> StackState | None:
    """None when there is no stack, or nothing that can be read."""
    try:
        data: Mapping[str, Any] = json.loads(path.read_text())
        parts = [PartState(**part) for part in data["parts"]]
        return StackState(**{**data, "parts": parts})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def running(path: Path) -> StackState | None:
    """The state of a stack whose supervisor runs."""
    state = read_state(path)
    return state if state is not None and state.is_alive else None


def end_processes(parts: Iterable[PartState], seconds: float) -> list[str]:
    """End recorded processes that nobody supervises any more: told first, killed after the time.  Names of those there were."""
    living = [part for part in parts if part.is_alive]
    for sign in (signal.SIGINT, signal.SIGKILL):  # SIGINT is the orderly end of every one of them
        for part in living:
            if part.is_alive:
                with suppress(ProcessLookupError):
                    os.kill(part.pid, sign)
        if wait_until_gone([part.pid for part in living if part.is_alive], seconds):
            break
    return [part.name for part in living]


def wait_for_end(pid: int, started: int | None, seconds: float) -> bool:
    """Whether that process is gone within the time."""
    deadline = time.monotonic() + seconds
    while is_process(pid, started):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
