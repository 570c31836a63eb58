"""One stack a folder: who comes second is told so, whatever the two are, and touches nothing of the first."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roadstead.cli.failures import BUSY
from roadstead.cli.main import run
from roadstead.cli.stack.build import Ports
from roadstead.cli.stack.claim import Busy, claimed, holder, take
from roadstead.cli.stack.home import Home
from roadstead.cli.stack.state import PartState, StackState, write_state
from roadstead.testing.server_process import free_port, start_time

HOLDS = """
import sys, time
from pathlib import Path
from roadstead.cli.stack.claim import claimed
from roadstead.cli.stack.home import Home
with claimed(Home(Path(sys.argv[1])), sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""
TAKES_OVER = """
import sys, time
from pathlib import Path
from roadstead.cli.stack.claim import take
from roadstead.cli.stack.home import Home
take(Home(Path(sys.argv[1])), "up")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "run")
    made.make()
    return made


@contextmanager
def process(program: str, *words: str, **more: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more) as child:  # type: ignore[call-overload]  # options as one dict
        try:
            assert child.stdout.readline() == "held\n"
            yield child
        finally:
            child.kill()


def state_of(home: Home, pid: int, *, ready: bool) -> None:
    write_state(home.state, StackState(pid, start_time(pid), "now", "simulator", ready))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up"], "another `roadstead up`"),
        (["up", "--detach"], "another `roadstead up`"),
        (["migrate"], "is starting or ending"),
        (["rebuild", "--from", "bus"], "is starting or ending"),
        (["status"], "only starting"),
    ],
)
def test_what_meets_a_starting_stack_is_refused_in_one_line_with_the_remedy(
    home: Home, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with process(HOLDS, str(home.path), "up") as other:
        assert run(words) == BUSY
        err = capsys.readouterr().err
        assert said in err
        assert f"(process {other.pid})" in err
        assert len(err.splitlines()) == 1
        assert other.poll() is None
    assert not home.state.exists()
    assert not home.ports.exists(), "a refused start chooses no ports"
    assert not home.log("stack").exists()


def test_what_meets_a_running_stack_is_told_so(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with process(HOLDS, str(home.path), "up") as other:
        state_of(home, other.pid, ready=True)
        assert run(["up"]) == BUSY
        assert "it is running already" in capsys.readouterr().err


def test_a_rebuild_waits_for_no_service_that_is_about_to_come_back(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    state = StackState(os.getpid(), start_time(os.getpid()), "now", "simulator", True)
    state.parts = [PartState("nats", "ready"), PartState("compute", "restarting")]
    write_state(home.state, state)
    assert run(["rebuild", "--from", "bus"]) == BUSY
    assert "runs compute: `roadstead down`" in capsys.readouterr().err


def test_a_folder_that_is_being_ended_is_not_ended_twice(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    with process(HOLDS, str(home.path), "down") as other:
        assert run(["down"]) == BUSY
        assert run(["up"]) == BUSY
        err = capsys.readouterr().err.splitlines()
        assert len(err) == 2
        assert all("is ending the stack" in line for line in err)
        assert other.poll() is None


def test_down_ends_a_stack_that_has_written_no_state_yet(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    with process(HOLDS, str(home.path), "up") as other:
        assert run(["down", "--wipe"]) == 0
        assert other.wait(5) == -signal.SIGTERM
    assert "stopped" in capsys.readouterr().out
    assert not home.claim.exists()


def test_a_killed_holder_holds_nothing(home: Home) -> None:
    with process(HOLDS, str(home.path), "up") as other:
        with pytest.raises(Busy):
            take(home, "up")
        other.kill()
        other.wait(5)
        with claimed(home, "up"):
            assert holder(home) is not None
    assert holder(home) is None


def test_a_child_that_was_given_the_claim_keeps_it(home: Home) -> None:
    claim = take(home, "up")
    environment = {**os.environ, **claim.environment}
    with process(TAKES_OVER, str(home.path), pass_fds=(claim.number,), env=environment) as child:
        claim.leave()
        who = holder(home)
        assert who is not None
        assert who.pid == child.pid
        with pytest.raises(Busy):
            take(home, "up")


def test_other_children_do_not_keep_it(home: Home) -> None:
    with claimed(home, "up"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        take(home, "up").end()
    finally:
        child.kill()
        child.wait(5)


def test_a_file_that_was_taken_away_is_no_lock_of_the_folder(home: Home) -> None:
    first = take(home, "up")
    first.remove()
    second = take(home, "up")
    with pytest.raises(Busy):
        take(home, "up")
    second.end()


def test_two_starts_at_once_are_one_stack(tmp_path: Path) -> None:
    for place in (tmp_path.parent, tmp_path):
        place.chmod(0o711)  # PostgreSQL may run as another user
    folder = tmp_path / "stack"
    environment = {**os.environ, "ROADSTEAD_HOME": str(folder)}
    command = [sys.executable, "-m", "roadstead.cli", "up", "--bare"]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        deadline = time.monotonic() + 60
        while all(p.poll() is None for p in both):
            assert time.monotonic() < deadline, "neither was refused"
            time.sleep(0.05)
        (loser,) = [p for p in both if p.poll() is not None]
        (winner,) = [p for p in both if p is not loser]
        out, err = loser.communicate(timeout=10)
        assert (loser.returncode, out, len(err.splitlines())) == (BUSY, "", 1)
        down = [sys.executable, "-m", "roadstead.cli", "down"]
        ended = subprocess.run(down, env=environment, capture_output=True, text=True, timeout=90, check=False)
        assert (ended.returncode, ended.stdout) == (0, "stopped\n")
        out, err = winner.communicate(timeout=30)
        assert winner.returncode == 0, err
        assert err == ""
    finally:
        for each in both:
            each.kill()
            each.wait(10)


# ---------------------------------------------------------------- ports


def test_a_name_goes_back_to_its_port_when_that_is_free_again_and_every_move_is_said(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    own = Ports(path).take("nats", wish=free_port())
    with socket.create_server(("127.0.0.1", own)):
        away = Ports(path)
        other = away.take("nats")
        assert other != own
        assert away.notes == [f"port {own} of nats is taken by another program; this time it is {other}"]
        assert Ports(path).take("nats") == other, "the stand-in stays the same as well"
    back = Ports(path)
    assert back.take("nats") == own
    assert back.notes == [f"nats is back on its port {own}"]
    again = Ports(path)
    assert (again.take("nats"), again.notes) == (own, [])


def test_a_wished_port_that_is_taken_at_the_first_start_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wish = taken.getsockname()[1]
        ports = Ports(tmp_path / "ports.json")
        own = ports.take("nats", wish)
        assert own != wish
        assert ports.notes == [f"port {wish} is taken by another program; nats gets {own} for good"]
    assert json.loads((tmp_path / "ports.json").read_text()) == {"nats": own}
