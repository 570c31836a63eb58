"""Starting and stopping real processes: what we started ends, nothing else is touched."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud import process, settings
from localcloud.console import CloudError
from localcloud.lifecycle import Supervisor
from localcloud.process import ProcessId
from localcloud.services import Listens, Logs, Service

STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)"
WITH_CHILD = (
    "import subprocess, time\nsubprocess.Popen(['sleep', '60'])\nprint('two', flush=True)\ntime.sleep(60)"
)


def program(name: str, code: str, ready: str | None = None, after: tuple[str, ...] = ()) -> Service:
    return Service(name, (sys.executable, "-u", "-c", code), Logs(ready) if ready else None, after, after)


@pytest.fixture
def loaded(tmp_path: Path) -> settings.Settings:
    made = settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path)})
    made.run.mkdir()
    made.log.mkdir()
    return made


@pytest.fixture
def supervisors(loaded: settings.Settings) -> Iterator[list[Supervisor]]:
    """Supervisors whose processes end with the test."""
    made: list[Supervisor] = []
    yield made
    for supervisor in made:
        supervisor.stop(hard=True)


def supervise(loaded: settings.Settings, made: list[Supervisor], *services: Service) -> Supervisor:
    made.append(Supervisor(loaded, {s.name: s for s in services}))
    return made[-1]


def test_services_start_in_order_of_need(loaded: settings.Settings, supervisors: list[Supervisor]) -> None:
    first = program("first", "import time; time.sleep(0.5); print('up', flush=True); time.sleep(60)", "up")
    second = program("second", "import time; print('up', flush=True); time.sleep(60)", "up", after=("first",))
    supervisor = supervise(loaded, supervisors, second, first)
    supervisor.start([second, first])
    records = [supervisor.running(name) for name in ("first", "second")]
    starts = [int(record.started) for record in records if record]
    assert len(starts) == 2
    assert starts[0] < starts[1]


def test_a_second_start_leaves_a_running_one_alone(
    loaded: settings.Settings, supervisors: list[Supervisor]
) -> None:
    one = program("one", "import time; print('up', flush=True); time.sleep(60)", "up")
    supervisor = supervise(loaded, supervisors, one)
    supervisor.start([one])
    before = supervisor.running("one")
    supervisor.start([one])
    assert supervisor.running("one") == before


def test_one_that_ends_while_starting_is_told_with_its_last_words(
    loaded: settings.Settings, supervisors: list[Supervisor]
) -> None:
    broken = program("broken", "raise SystemExit('no such table')", "never")
    with pytest.raises(CloudError, match="broken ended while starting: no such table"):
        supervise(loaded, supervisors, broken).start([broken])


def test_a_taken_port_is_refused_before_the_start(
    loaded: settings.Settings, supervisors: list[Supervisor]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        one = Service("one", ("sleep", "60"), Listens(port))
        supervisor = supervise(loaded, supervisors, one)
        with pytest.raises(CloudError, match=f"port {port} of one is taken"):
            supervisor.start([one])
    assert supervisor.running("one") is None


def test_stop_ends_children_and_the_deaf(loaded: settings.Settings, supervisors: list[Supervisor]) -> None:
    services = program("deaf", STUBBORN, "deaf"), program("parent", WITH_CHILD, "two")
    supervisor = supervise(loaded, supervisors, *services)
    supervisor.start(services)
    leaders = [supervisor.running(s.name) for s in services]
    family = [one for leader in leaders if leader for one in process.session(leader)]
    assert len(family) == 3
    supervisor.stop()
    assert [one for one in family if one.lives()] == []


def test_a_record_of_an_earlier_process_is_not_believed(
    loaded: settings.Settings, supervisors: list[Supervisor]
) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        one = program("one", "pass")
        supervisor = supervise(loaded, supervisors, one)
        (loaded.run / "one.pid").write_text(f"{stranger.pid} 1\n")
        assert supervisor.running("one") is None
        supervisor.stop(hard=True)
        ProcessId(stranger.pid, "1").signal(signal.SIGKILL)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_frozen_service_hears_stop(loaded: settings.Settings, supervisors: list[Supervisor]) -> None:
    one = program("one", "import time; print('up', flush=True); time.sleep(60)", "up")
    supervisor = supervise(loaded, supervisors, one)
    supervisor.start([one])
    leader = supervisor.running("one")
    assert leader
    supervisor.signal(["one"], signal.SIGSTOP)
    begun = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - begun < 2.5  # by SIGTERM, before the limit after which it is killed
    assert not leader.lives()


def test_freezing_what_does_not_run_is_an_error(
    loaded: settings.Settings, supervisors: list[Supervisor]
) -> None:
    with pytest.raises(CloudError, match="one does not run"):
        supervise(loaded, supervisors, program("one", "pass")).signal(["one"], signal.SIGSTOP)


def test_our_own_process_is_seen_with_its_memory() -> None:
    started = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]
    me = ProcessId(os.getpid(), started)
    assert me.lives()
    resident, proportional = process.memory(me)
    assert resident >= proportional > 1024
