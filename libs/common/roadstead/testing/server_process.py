"""One server as a child process: start, wait, stop, kill, and never somebody else's process.

A server's folder holds its data, its log and `process.json` with the pid and the time at which the kernel started
it. The pair is what makes it safe to end a server that an earlier, killed run left behind: a pid alone may by now
belong to anybody.
"""

import json
import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

START_TIMEOUT = 30.0
STOP_TIMEOUT = 20.0
STARTS_TRIED = 3
POLL = 0.01
HOST = "127.0.0.1"


class ServerError(RuntimeError):
    """A server did not do what was asked; the text names the log and the remedy."""


@dataclass(frozen=True)
class RunAs:
    """How a program is started: words put before its own, and a user when it must not be root."""

    prefix: tuple[str, ...] = ()
    user: int | None = None


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def start_time(pid: int) -> int | None:
    """Return when the kernel started the process (clock ticks since boot); None when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def children(pid: int) -> list[int]:
    """Return the pids of the live children of a process; empty when it is gone."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def wait_until_gone(pids: Sequence[int], timeout: float) -> bool:
    """Wait until none of the processes runs; False when the time (seconds) was not enough."""
    deadline = time.monotonic() + timeout
    while any(start_time(pid) is not None for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


class ServerProcess(ABC):
    """A server in a folder of its own on a port that stays the same over restarts.

    `port=0` takes a free one at the first start. With `die_with_parent` the kernel ends the server when the thread
    that called start() ends, so give it only where that is the main thread of a run.
    """

    stop_signal = signal.SIGTERM
    name = "server"

    def __init__(self, directory: Path, port: int = 0, *, die_with_parent: bool = False) -> None:
        self.directory = directory.absolute()
        self.port = port
        self._port_is_ours_to_choose = port == 0
        self._die_with_parent = die_with_parent
        self._child: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The address that a client connects to; ServerError before the first start."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the folder ready for a start; called before each one and safe to repeat."""

    @abstractmethod
    def command(self) -> list[str]:
        """The server's program and arguments, staying in the foreground."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Ask the server once whether it serves clients; False as well when nothing answers."""

    def run_as(self) -> RunAs:
        """How the server is started; as the caller unless a subclass knows better."""
        return RunAs()

    @property
    def log(self) -> Path:
        """The file that holds the server's own output."""
        return self.directory / "server.log"

    @property
    def pid(self) -> int:
        """The server's process id; ServerError when it does not run."""
        if self._child is None or self._child.poll() is not None:
            raise ServerError(f"{self.name} in {self.directory} does not run; call start() first")
        return self._child.pid

    @property
    def is_running(self) -> bool:
        """True while the process lives, ready or not."""
        return self._child is not None and self._child.poll() is None

    def start(self, timeout: float = START_TIMEOUT) -> Self:
        """Start the server and wait until it is ready. Nothing happens when it runs already.

        A port that was chosen here may be taken by another program before the server binds it: then another one is
        chosen, three times at most. A port that was given is used or the start fails.
        """
        if self.is_running:
            return self
        self.directory.mkdir(parents=True, exist_ok=True)
        end_leftover(self.directory, timeout=STOP_TIMEOUT)
        for attempt in range(1, STARTS_TRIED + 1):
            if self.port == 0:
                self.port = free_port()
            self.prepare()
            self._launch()
            try:
                self.wait_ready(timeout)
            except ServerError:
                died_at_once = not self.is_running
                self.kill()
                if not (died_at_once and self._port_is_ours_to_choose) or attempt == STARTS_TRIED:
                    raise
                self.port = 0
            else:
                self._port_is_ours_to_choose = False
                return self
        raise AssertionError("unreachable: the last attempt returns or raises")

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Return once clients are served; ServerError when the process ends or the time (seconds) is over."""
        deadline = time.monotonic() + timeout
        while not self.is_ready():
            if not self.is_running:
                raise ServerError(f"{self.name} ended while starting: {self._last_words()} (log: {self.log})")
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{self.name} is not ready after {timeout:g} s: {self._last_words()} (log: {self.log})"
                )
            time.sleep(POLL)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Ask the server to end in good order and wait for it.

        ServerError when it had to be killed because the time (seconds) was over; it is gone then too.
        """
        if self._child is None:
            return
        if self.is_running:
            self._child.send_signal(self.stop_signal)
            try:
                self._child.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise ServerError(
                    f"{self.name} did not stop within {timeout:g} s and was killed (log: {self.log})"
                ) from None
        self._forget()

    def kill(self) -> None:
        """End the server and its own children at once, as a crash would: nothing is flushed."""
        if self._child is None:
            return
        pids = [self._child.pid]
        if self.is_running:
            pids += children(self._child.pid)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._child.wait(STOP_TIMEOUT)
        if not wait_until_gone(pids, STOP_TIMEOUT):
            raise ServerError(f"{self.name}: some of the processes {pids} outlive SIGKILL")
        self._forget()

    def restart(self, timeout: float = START_TIMEOUT) -> None:
        """Stop in good order and start again on the same port and data."""
        self.stop()
        self.start(timeout)

    def _launch(self) -> None:
        how = self.run_as()
        lifeline = (
            ("setpriv", "--pdeathsig", self.stop_signal.name[3:], "--") if self._die_with_parent else ()
        )
        extra: dict[str, object] = {}
        if how.user is not None:
            extra = {"user": how.user, "group": how.user, "extra_groups": []}
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(  # type: ignore[call-overload]  # the user arguments come as one dict
                [*how.prefix, *lifeline, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
                **extra,
            )
        # The kernel's start time survives exec, so it holds although the prefix still runs at this moment.
        record = {"pid": self._child.pid, "started": start_time(self._child.pid)}
        (self.directory / "process.json").write_text(json.dumps(record))

    def _forget(self) -> None:
        self._child = None
        (self.directory / "process.json").unlink(missing_ok=True)

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").split("\n")
        except OSError as problem:
            return str(problem)
        return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")


def end_leftover(directory: Path, timeout: float = STOP_TIMEOUT) -> bool:
    """End the server that an earlier run left in the folder; True when there was one.

    Only a process whose pid and start time are both the recorded ones is touched. SIGINT is the fast and orderly
    stop of every server here. ServerError when it is still there after the time (seconds) and a SIGKILL.
    """
    record = directory / "process.json"
    try:
        noted = json.loads(record.read_text())
        pid, started = int(noted["pid"]), noted["started"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        record.unlink()  # a half-written record proves nothing about any process
        return False
    if started is None or start_time(pid) != started:
        record.unlink()
        return False
    family = [pid, *children(pid)]
    for sign in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        if wait_until_gone(family, timeout):
            record.unlink(missing_ok=True)
            return True
    raise ServerError(f"process {pid} of an earlier run in {directory} does not end; end it by hand")
