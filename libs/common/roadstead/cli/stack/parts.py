"""The processes of the stack behind one shape: start, ask whether it is ready, stop."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import orjson

from roadstead.testing.server_process import ServerProcess, start_time

PROBE_TIMEOUT = 2.0


class Part(Protocol):
    """One process.  Methods are short and do not wait, but for `begin` of a server and `finish`."""

    name: str
    health: int
    log: Path

    @property
    def address(self) -> str: ...

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        ...

    def begin(self) -> None:
        """Start it.  OSError or ServerError when that cannot be."""
        ...

    def is_running(self) -> bool: ...

    async def fault(self) -> str | None:
        """What keeps it from being ready; None when nothing does."""
        ...

    def ask_to_end(self) -> None: ...

    def kill(self) -> None: ...

    def exit_status(self) -> int | None: ...


class ServerPart:
    """The embedded broker or database; `begin` waits until it is ready, which takes a second at most."""

    health = 0

    def __init__(self, name: str, server: ServerProcess) -> None:
        self.name = name
        self.server = server
        self.log = server.log

    @property
    def address(self) -> str:
        return self.server.url if self.server.port else ""

    @property
    def pid(self) -> int:
        return self.server.pid if self.server.is_running else 0

    def begin(self) -> None:
        self.server.start()

    def is_running(self) -> bool:
        return self.server.is_running

    async def fault(self) -> str | None:
        return None if self.server.is_running else "it does not run"

    def ask_to_end(self) -> None:
        if self.server.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.server.pid, self.server.stop_signal)

    def kill(self) -> None:
        self.server.kill()

    def exit_status(self) -> int | None:
        return None


class Child:
    """A program of ours with its output in a log file.

    health: port of /readyz; ready_url: any address that answers once it is up; address: what people are shown, else one of these.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        health: int = 0,
        ready_url: str = "",
        address: str = "",
        end_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self.environment = dict(environment or {})
        self.health = health
        self._ready_url = ready_url
        self._address = address
        self._end_signal = end_signal
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return self._address or self._ready_url or (f"http://127.0.0.1:{self.health}" if self.health else "")

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None and self.is_running() else 0

    def begin(self) -> None:
        # The kernel ends it with the supervisor, should that be killed; asked from the main thread, whose end is what counts.
        lifeline = (
            ["setpriv", "--pdeathsig", self._end_signal.name[3:], "--"] if shutil.which("setpriv") else []
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*lifeline, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,  # Ctrl-C is the supervisor's, which ends all in order
            )

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def fault(self) -> str | None:
        if not self.is_running():
            return "it does not run"
        if self.health:
            return await asyncio.to_thread(readiness, self.health)
        if self._ready_url:
            return await asyncio.to_thread(_answers, self._ready_url)
        return None

    def ask_to_end(self) -> None:
        self._signal(self._end_signal)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)

    def exit_status(self) -> int | None:
        return self._process.poll() if self._process is not None else None

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running():
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def readiness(port: int) -> str | None:
    """What /readyz of a local process complains of; None when it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=PROBE_TIMEOUT):
            return None
    except urllib.error.HTTPError as error:
        try:
            checks = orjson.loads(error.read())["checks"]
        except (orjson.JSONDecodeError, KeyError, OSError):
            return f"it answers {error.code}"
        return "; ".join(f"{name}: {text}" for name, text in checks.items() if text != "ok")
    except OSError:
        return "it does not answer yet"


def _answers(url: str) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT):  # noqa: S310 - an address that we made
            return None
    except urllib.error.HTTPError:
        return None
    except OSError:
        return "it does not answer yet"


def started_at(pid: int) -> int | None:
    """When the kernel started it, for the record."""
    return start_time(pid) if pid else None


def last_line(path: Path) -> str:
    """The last line with something in it, at most 200 characters: what a process said before it ended."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return ""
    said = [line for line in lines if line]
    return _short(said[-1]) if said else ""


def _short(line: str) -> str:
    """The words of a structured log line, else the line itself."""
    if line.startswith("{"):
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            return line[:200]
        more = entry.get("reason") or entry.get("error") or ""
        line = f"{entry.get('event', '')}{': ' if more else ''}{more}"
    return line[:200]


def until_gone(parts: Sequence[Part], seconds: float) -> list[Part]:
    """Wait; those that still run when the time is over."""
    deadline = time.monotonic() + seconds
    left = list(parts)
    while left and time.monotonic() < deadline:
        left = [part for part in left if part.is_running()]
        time.sleep(0.02)
    return left
