"""The real thing on this machine: NATS, PostgreSQL and every service as processes of their own."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from roadstead.seal import new_key
from roadstead.store.migrate import migrate
from roadstead.testing.paced import paced_environment
from roadstead.testing.servers import NatsServer, PostgresServer, free_port

SERVICES = ("identity", "network", "compute", "volumes", "loadbalancer", "monitor")
READY_WITHIN = 150.0
ENDS_WITHIN = 40.0


class Process:
    """One program of ours with its output in a file."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._environment = {**os.environ, **environment}
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # The kernel ends it with this process, should that be killed.
        lifeline = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [*lifeline, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )

    @property
    def runs(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def ask_to_end(self) -> None:
        if self._child is not None and self.runs:
            self._child.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """As a crash would."""
        if self._child is not None and self.runs:
            self._child.kill()
            self._child.wait(10)

    def wait(self, seconds: float) -> int:
        """The exit status; killed, and -9, when it does not end in time."""
        assert self._child is not None
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait(10)

    def last_words(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Stack:
    """Built by `start`, ended by `stop`.  pace scales the services' waiting times; replicas is per service."""

    def __init__(
        self,
        *,
        pace: float,
        replicas: int = 1,
        services: Sequence[str] = SERVICES,
        simulated: bool = True,
    ) -> None:
        """simulated False: the times of clouds are those of a real one, whatever the pace."""
        self.folder = Path(tempfile.mkdtemp(prefix="roadstead-stack-"))
        self.folder.chmod(0o711)  # the database may run as another user
        self.pace = pace
        self.simulated = simulated
        self.seal_key = new_key()
        self.nats = NatsServer(self.folder / "nats", die_with_parent=True)
        self.postgres = PostgresServer(self.folder / "postgres", durable=False, die_with_parent=True)
        self._wanted = [(name, number) for name in services for number in range(replicas)]
        self.health: dict[str, int] = {}
        self.processes: dict[str, Process] = {}

    async def start(self) -> None:
        """Broker and database, the schemas, then every service until it is ready."""
        await asyncio.gather(asyncio.to_thread(self.nats.start), asyncio.to_thread(self.postgres.start))
        await migrate(self.postgres.url, sorted({name for name, _ in self._wanted}))
        for name, number in self._wanted:
            self._service(name, number).start()
        await self.ready()

    def _service(self, name: str, number: int) -> Process:
        label = f"{name}-{number}"
        self.health[label] = free_port()
        environment = {
            "ROADSTEAD_NATS_URL": self.nats.url,
            "ROADSTEAD_DATABASE_URL": self.postgres.url,
            "ROADSTEAD_DATABASE_POOL": "4",
            "ROADSTEAD_SEAL_KEYS": self.seal_key,
            **(paced_environment(self.pace) if self.simulated else {"ROADSTEAD_PACE": str(self.pace)}),
            "ROADSTEAD_HEALTH_PORT": str(self.health[label]),
            "ROADSTEAD_REPLICA": label,
        }
        command = [sys.executable, "-m", f"roadstead_{name}"]
        process = self.processes[label] = Process(label, command, self.folder / f"{label}.log", environment)
        return process

    async def ready(self) -> None:
        """Until every service that runs says that it is ready."""
        ends = time.monotonic() + READY_WITHIN
        for label, process in self.processes.items():
            while (fault := await asyncio.to_thread(self._fault, label)) is not None:
                if not process.runs or time.monotonic() > ends:
                    raise AssertionError(f"{label} is not ready: {fault}\n{process.last_words()}")
                await asyncio.sleep(0.1)

    def _fault(self, label: str) -> str | None:
        if not self.processes[label].runs:
            return "it does not run"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health[label]}/readyz", timeout=2):
                return None
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode(errors="replace")
        except OSError as error:
            return str(error)

    def restart(self, label: str, *, kill: bool = False) -> int:
        """End a service (as a crash would, when `kill`) and start it again; its exit status."""
        process = self.processes[label]
        if kill:
            process.kill()
        else:
            process.ask_to_end()
        status = process.wait(ENDS_WITHIN)
        process.start()
        return status

    def stop(self) -> dict[str, int]:
        """End everything; the exit status of each service."""
        for process in self.processes.values():
            process.ask_to_end()
        ends = {label: p.wait(ENDS_WITHIN) for label, p in self.processes.items() if p._child is not None}
        self.nats.stop()
        self.postgres.stop()
        return ends

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    # ------------------------------------------------------------ logs

    def sweeps(self) -> int:
        """How many sweeps the monitors have ended."""
        logs = [p.log for label, p in self.processes.items() if label.startswith("monitor-")]
        return sum(len(re.findall(r'"event": ?"swept"', log.read_text(errors="replace"))) for log in logs)

    def errors(self) -> list[str]:
        """Log lines of level error or critical, of every service."""
        found = []
        for process in self.processes.values():
            for line in process.log.read_text(errors="replace").splitlines():
                if not line.startswith("{"):
                    continue
                entry = json.loads(line)
                if entry.get("level") in ("error", "critical"):
                    found.append(f"{process.name}: {line[:2000]}")
        return found


class Simulator:
    """The simulator's HTTP process."""

    def __init__(self, folder: Path, *, pace: float) -> None:
        self.clouds = folder / "clouds.yaml"
        self._process = Process(
            "simulator",
            [
                *(sys.executable, "-m", "roadstead.testing.cloudsim", "--pace", str(pace)),
                *("--write-clouds", str(self.clouds)),
            ],
            folder / "simulator.log",
            {},
        )
        self.url = ""

    def start(self) -> None:
        self._process.start()
        ends = time.monotonic() + READY_WITHIN
        while not (found := re.search(r"simulated cloud at (\S+),", self._process.last_words())):
            assert self._process.runs, self._process.last_words()
            assert time.monotonic() < ends, self._process.last_words()
            time.sleep(0.05)
        self.url = found[1]

    def stop(self) -> None:
        self._process.ask_to_end()
        self._process.wait(10)
