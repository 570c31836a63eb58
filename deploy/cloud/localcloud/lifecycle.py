"""Starting in order of need, stopping in the reverse order, and waiting within bounds."""

import os
import shutil
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from localcloud import process
from localcloud.console import CloudError, last_lines, say
from localcloud.process import ProcessId
from localcloud.services import AnswersHttp, HasSocket, Listens, Logs, Service, members
from localcloud.settings import Settings

START_LIMIT_SECONDS = 300.0
# The API servers keep nothing, so they need not finish anything; databases do.
STOP_LIMIT_SECONDS = 3.0
LASTING_STOP_LIMIT_SECONDS = 25.0
KILL_LIMIT_SECONDS = 5.0
POLL_SECONDS = 0.1

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Supervisor:
    """Starts, stops and watches the processes of one cloud."""

    def __init__(self, settings: Settings, services: Mapping[str, Service]) -> None:
        self.settings = settings
        self.services = services
        self._log_starts: dict[Path, int] = {}

    def running(self, name: str) -> ProcessId | None:
        return process.recorded(self._record(name))

    def start(self, wanted: Sequence[Service]) -> float:
        """Start what does not run yet, each as soon as all that it comes after answers; return seconds."""
        begun = time.monotonic()
        ready: set[str] = set()
        pending = list(wanted)
        probes: dict[str, _Probe] = {}
        while pending or probes:
            for service in list(pending):
                if ready.issuperset(service.after):
                    fresh = not self.running(service.name)
                    if fresh:
                        self._spawn(service)
                    probes[service.name] = _Probe(self, service, fresh)
                    pending.remove(service)
            for name, probe in list(probes.items()):
                if not self.running(name):
                    raise CloudError(f"{name} ended while starting: {self._last_words(name)}")
                if probe.ready_after is not None:
                    ready.add(name)
                    del probes[name]
                    if probe.fresh:
                        say(f"  {name:<22} ready after {probe.ready_after:5.1f} s")
            if time.monotonic() - begun > START_LIMIT_SECONDS:
                names = " ".join([*probes, *(s.name for s in pending)])
                raise CloudError(
                    f"not ready after {START_LIMIT_SECONDS:.0f} s: {names}; look into {self.settings.log},"
                    " then `cloud down` and `cloud up`"
                )
            time.sleep(POLL_SECONDS)
        return time.monotonic() - begun

    def stop(self, names: Iterable[str] = (), *, hard: bool = False) -> None:
        """End the named services and groups, or all; `hard` kills at once.  Returns when none of theirs lives."""
        chosen = {m for name in names for m in members(name, self.services)} or set(self.services)
        order = [s for s in reversed(list(self.services.values())) if s.name in chosen]
        batches = (
            ([s for s in order if not s.lasting and s.name != "epmd"], STOP_LIMIT_SECONDS),
            ([s for s in order if s.lasting], LASTING_STOP_LIMIT_SECONDS),
            ([s for s in order if s.name == "epmd"], STOP_LIMIT_SECONDS),
        )
        for batch, limit in batches:
            self._stop_batch([s.name for s in batch], 0.0 if hard else limit)

    def signal(self, names: Iterable[str], number: signal.Signals) -> None:
        """Send a signal to every process of the named services; CloudError when one does not run."""
        for name in [m for given in names for m in members(given, self.services)]:
            leader = self.running(name)
            if leader is None:
                raise CloudError(f"{name} does not run; start it with `cloud up {name}`")
            for one in process.session(leader):
                one.signal(number)

    def answers(self, service: Service, patience: float = 20.0) -> bool:
        """One look whether a service is ready, waiting at most `patience` seconds for an answer."""
        match service.ready:
            case Listens(port):
                return _listens(port)
            case AnswersHttp(port):
                return _listens(port) and _answers_http(f"http://127.0.0.1:{port}/", patience)
            case Logs(text):
                return self._logged_since_start(service.name, text)
            case HasSocket(path):
                return path.exists()
            case None:
                return True

    def _record(self, name: str) -> Path:
        return self.settings.run / f"{name}.pid"

    def _logs(self, name: str) -> tuple[Path, Path]:
        return self.settings.log / f"{name}.log", self.settings.log / f"{name}.out"

    def _spawn(self, service: Service) -> None:
        if service.port is not None and _listens(service.port):
            raise CloudError(
                f"port {service.port} of {service.name} is taken by a process that is not ours;"
                " end that one or install with another ROADSTEAD_CLOUD_HOME and ROADSTEAD_CLOUD_PORT_BASE"
            )
        if service.name == "neutron":
            shutil.rmtree(self.settings.run / "neutron-tmp", ignore_errors=True)
            (self.settings.run / "neutron-tmp").mkdir()
        if isinstance(service.ready, HasSocket):
            service.ready.path.unlink(missing_ok=True)
        for path in self._logs(service.name):
            self._log_starts[path] = path.stat().st_size if path.exists() else 0
        process.spawn(
            service.argv,
            environment={**environment(self.settings), **service.environment},
            directory=self.settings.run,
            output=self._logs(service.name)[1],
            record=self._record(service.name),
        )

    def _stop_batch(self, names: Sequence[str], limit: float) -> None:
        left: list[ProcessId] = []
        for name in names:
            leader = self.running(name)
            if leader is None:
                continue
            left += process.session(leader)
            if limit > 0:
                leader.signal(signal.SIGTERM)
                leader.signal(signal.SIGCONT)  # a frozen one could not hear the first
        left = _wait_for_end(left, limit)
        for one in left:
            one.signal(signal.SIGKILL)
        stubborn = _wait_for_end(left, KILL_LIMIT_SECONDS)
        if stubborn:
            raise CloudError(f"processes {' '.join(str(p.pid) for p in stubborn)} survive SIGKILL; see dmesg")
        for name in names:
            self._record(name).unlink(missing_ok=True)

    def _logged_since_start(self, name: str, text: str) -> bool:
        for path in self._logs(name):
            if path.exists():
                with path.open("rb") as log:
                    log.seek(self._log_starts.get(path, 0))
                    if text.encode() in log.read():
                        return True
        return False

    def _last_words(self, name: str) -> str:
        said, output = (last_lines(path) for path in self._logs(name))
        return f"{output or said or 'it said nothing'} (logs: {self.settings.log}/{name}.*)"


class _Probe:
    """Asks one service in a thread of its own until it answers: a loading web server keeps its first caller waiting."""

    def __init__(self, supervisor: Supervisor, service: Service, fresh: bool) -> None:
        self.fresh = fresh
        self.ready_after: float | None = None
        self._supervisor, self._service = supervisor, service
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        begun = time.monotonic()
        while time.monotonic() - begun < START_LIMIT_SECONDS:
            if self._supervisor.answers(self._service):
                self.ready_after = time.monotonic() - begun
                return
            time.sleep(POLL_SECONDS)


def environment(settings: Settings) -> dict[str, str]:
    """What every process of the cloud gets: ours without credentials, proxies and other Pythons."""
    kept = {
        k: v for k, v in os.environ.items()
        if not k.startswith(("OS_", "PYTHON", "UWSGI_")) and k not in ("VIRTUAL_ENV", "TMPDIR")
    }  # fmt: skip
    kept.update(
        PATH=f"{settings.venv}/bin:{kept.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin",
        PYTHONPATH=str(settings.drivers),
        PYTHONWARNINGS="ignore",
        MALLOC_ARENA_MAX="2",  # many threads, little memory
        no_proxy="127.0.0.1,localhost",
    )
    return kept


def _wait_for_end(processes: Sequence[ProcessId], limit: float) -> list[ProcessId]:
    deadline = time.monotonic() + limit
    left = [p for p in processes if p.lives()]
    while left and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 2)
        left = [p for p in left if p.lives()]
    return left


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0):
            return True
    except OSError:
        return False


def _answers_http(url: str, patience: float) -> bool:
    try:
        with _direct.open(url, timeout=patience) as answer:
            return bool(answer.status < 500)
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
