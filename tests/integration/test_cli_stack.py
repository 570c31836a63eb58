"""`roadstead up`, `down`, `status` and what holds when somebody kills things."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from tests.integration.cli_stack import PROGRAM, ROOT, Home, new_home

from roadstead.cli.stack.state import is_process
from roadstead.subjects import STREAMS

pytestmark = [pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A stack of all services in the background."""
    home = new_home(tmp_path_factory.mktemp("stack"))
    try:
        said = home.good("up", "--detach")
        assert "running in the background" in said
        yield home
    finally:
        home.run("down", "--wipe")


def until(test: Callable[[], bool], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not test():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def test_a_second_up_says_that_it_runs_already(home: Home) -> None:
    done = home.run("up")
    assert done.status == 4
    assert "it is running already" in done.err
    assert len(done.err.splitlines()) == 1


def test_status_shows_every_process_with_its_health_and_the_streams(home: Home) -> None:
    found = home.json("status")
    assert {p["name"]: p["health"] for p in found["processes"]} == dict.fromkeys(
        (
            "nats",
            "postgres",
            "simulator",
            "identity",
            "network",
            "compute",
            "volumes",
            "loadbalancer",
            "monitor",
        ),
        "ok",
    )
    assert {s["name"] for s in found["streams"]} == set(STREAMS)


def test_a_service_that_is_killed_comes_back_and_the_others_stay(home: Home) -> None:
    before = home.parts()
    os.kill(before["network"].pid, signal.SIGKILL)
    until(lambda: home.parts()["network"].restarts == 1)
    down = home.run("status")
    assert down.status == 1, "while it is away, all is not well"
    until(lambda: home.parts()["network"].state == "ready")
    after = home.parts()
    assert after["network"].pid != before["network"].pid
    assert {n: p.pid for n, p in after.items() if n != "network"} == {
        n: p.pid for n, p in before.items() if n != "network"
    }
    assert (
        "network       was killed by SIGKILL; again in 1 s" in (home.path / "logs" / "stack.log").read_text()
    )


def test_a_database_that_is_killed_comes_back_with_its_data(home: Home) -> None:
    os.kill(home.parts()["postgres"].pid, signal.SIGKILL)
    until(lambda: home.parts()["postgres"].restarts == 1 and home.parts()["postgres"].state == "ready")
    until(lambda: home.run("doctor").status == 0)


def test_doctor_names_the_service_that_does_not_answer(home: Home) -> None:
    pid = home.parts()["volumes"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        done = home.run("doctor")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert done.status == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("service volumes")]
    assert "wrong" in line
    assert "roadstead logs volumes" in line


def test_after_a_killed_supervisor_the_next_up_leaves_nothing_of_the_old_run(home: Home) -> None:
    before = home.parts()
    os.kill(home.supervisor(), signal.SIGKILL)
    home.good("up", "--detach")
    after = home.parts()
    assert all(part.state == "ready" for part in after.values())
    assert not any(is_process(part.pid, part.started) for part in before.values())


def test_down_ends_its_own_processes_and_no_other_one(home: Home) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    try:
        parts = home.parts()
        assert home.good("down").strip() == "stopped"
        assert not any(is_process(part.pid, part.started) for part in parts.values())
        assert stranger.poll() is None
        assert home.run("status").status == 1
        assert home.good("down").strip() == "nothing is running here"
    finally:
        stranger.kill()
        stranger.wait(5)


def test_ctrl_c_stops_all_in_order_and_is_a_success(home: Home) -> None:
    program = subprocess.Popen(
        [*PROGRAM, "up", "--bare"],
        cwd=ROOT,
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: "postgres" in home.parts() and home.parts()["postgres"].state == "ready")
        until(lambda: home.run("status").status == 0)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
    finally:
        if program.poll() is None:
            program.kill()
            program.wait(5)
    assert program.returncode == 0, err
    assert err == ""
    assert [line.split()[0] for line in out.splitlines() if line.endswith("stopped")] == ["nats", "postgres"]
    assert not (home.path / "stack.json").exists()
