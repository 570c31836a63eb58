"""The processes of all services, from the test's side: start, kill, freeze, and start again what ended.

A `Member` is one replica.  While the crew keeps it, a thread starts it again within a moment of its end.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roadstead.testing.server_process import free_port, start_time

ROOT = Path(__file__).parents[2]
START_LIMIT = 60.0
LOOK_EVERY = 0.05
BACK_AFTER = 0.2


class CrewError(RuntimeError):
    """A process did not do what was asked."""


@dataclass
class Member:
    """One replica of a service.  again: share of messages that are delivered twice."""

    service: str
    number: int
    log: Path
    environment: dict[str, str]
    again: float = 0.0
    health: int = 0
    pid: int = 0
    kept: bool = False
    ends: list[int] = field(default_factory=list)  # pids that ended

    @property
    def name(self) -> str:
        return f"{self.service}-{self.number}"

    @property
    def is_running(self) -> bool:
        return self.pid != 0 and start_time(self.pid) is not None

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def fault(self) -> str | None:
        """What keeps it from being ready; None when nothing does."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=2):
                return None
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError as error:
            return str(error)


class Crew:
    """All members; use from one thread."""

    def __init__(self, folder: Path, services: Sequence[str]) -> None:
        self.folder = folder
        self.arms, self.exits, self.logs = folder / "arms", folder / "exits", folder / "logs"
        for made in (self.arms, self.exits, self.logs):
            made.mkdir(parents=True)
        self.members: list[Member] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        words = [sys.executable, "-m", "tests.chaos.victim", str(self.exits), *services]
        self._errors = (folder / "cradle.log").open("ab")
        self._cradle = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._hear()
        self._keeper = threading.Thread(target=self._keep, daemon=True, name="crew")
        self._keeper.start()

    def add(self, service: str, number: int, environment: Mapping[str, str], again: float = 0.0) -> Member:
        port = free_port()
        own = {"ROADSTEAD_HEALTH_PORT": str(port), "ROADSTEAD_REPLICA": f"{service}-{number}"}
        log = self.logs / f"{service}-{number}.log"
        member = Member(service, number, log, {**environment, **own}, again, port)
        self.members.append(member)
        self.start(member)
        return member

    def of(self, service: str) -> list[Member]:
        return [m for m in self.members if m.service == service]

    def start(self, member: Member) -> None:
        """Start it and keep it."""
        wish = {
            "service": member.service,
            "environment": member.environment,
            "log": str(member.log),
            "arms": str(self.arms),
            "again": member.again,
        }
        with self._lock:
            member.pid = int(self._ask(wish)["pid"])
            member.kept = True

    def kill(self, member: Member, *, keep: bool = True) -> None:
        """kill -9; kept ones come back at once."""
        member.kept = keep
        member.signal(signal.SIGKILL)

    def terminate(self, member: Member, within: float) -> int:
        """SIGTERM; the exit status once it has ended.  It stays away."""
        member.kept = False
        pid = member.pid
        member.signal(signal.SIGTERM)
        return self.status_of(pid, within)

    def status_of(self, pid: int, within: float) -> int:
        ends = time.monotonic() + within
        while time.monotonic() < ends:
            with suppress(FileNotFoundError):
                return int((self.exits / str(pid)).read_text())
            time.sleep(LOOK_EVERY)
        raise CrewError(f"process {pid} did not end within {within:g} s")

    def ready(self, within: float = START_LIMIT) -> None:
        """Wait until every kept member is ready."""
        ends = time.monotonic() + within
        for member in self.members:
            while member.kept and (fault := member.fault()) is not None:
                if time.monotonic() > ends:
                    raise CrewError(f"{member.name} is not ready: {fault} (log: {member.log})")
                time.sleep(LOOK_EVERY)

    def close(self) -> None:
        self._closing.set()
        self._keeper.join(5)
        assert self._cradle.stdin is not None
        self._cradle.stdin.close()
        try:
            self._cradle.wait(10)
        except subprocess.TimeoutExpired:
            self._cradle.kill()
        for member in self.members:
            if member.is_running:
                member.signal(signal.SIGKILL)
        self._errors.close()

    # ------------------------------------------------------------ inside

    def _keep(self) -> None:
        while not self._closing.wait(LOOK_EVERY):
            for member in self.members:
                if not member.kept or member.is_running:
                    continue
                member.ends.append(member.pid)
                if not self._closing.wait(BACK_AFTER):
                    self._again(member)

    def _again(self, member: Member) -> None:
        if member.kept:  # it may have been told to stay away meanwhile
            self.start(member)

    def _ask(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        assert self._cradle.stdin is not None
        self._cradle.stdin.write(json.dumps(wish) + "\n")
        self._cradle.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._cradle.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._cradle.stdout, selectors.EVENT_READ)
            line = self._cradle.stdout.readline() if waiting.select(START_LIMIT) else ""
        if not line:
            self._cradle.kill()
            raise CrewError(f"the parent of the services does not answer; see {self._errors.name}")
        answer: dict[str, Any] = json.loads(line)
        return answer
