"""The supervisor with small programs instead of services: readiness, crashes, order, and nobody else's processes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from roadstead.cli.failures import UserError
from roadstead.cli.stack.parts import Child, last_line
from roadstead.cli.stack.state import PartState, StackState, end_processes, is_process, read_state, running
from roadstead.cli.stack.supervisor import Stage, Supervisor
from roadstead.testing.server_process import free_port, start_time

STAYS = "import signal, time; signal.signal(signal.SIGTERM, lambda *a: exit(0)); print('up', flush=True); time.sleep(60)"
ENDS = "print('no such table', flush=True); raise SystemExit(3)"
SERVES = """
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *a): pass
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


class Stand:
    """A supervisor over programs, with what it said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[tuple[str, str]] = []
        pid = os.getpid()
        self.state = StackState(pid, start_time(pid), "now", "none")

    def child(self, name: str, program: str, *words: str, **more: object) -> Child:
        return Child(name, [sys.executable, "-c", program, *words], self.folder / f"{name}.log", **more)  # type: ignore[arg-type]  # as Child takes them

    def of(self, *stages: Stage, **more: float) -> Supervisor:
        self.file = self.folder / "stack.json"
        return Supervisor(
            stages, self.state, self.file, lambda sort, text: self.said.append((sort, text)), **more
        )

    def words(self, sort: str) -> list[str]:
        return [text.split()[0] for s, text in self.said if s == sort]


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


async def until(test: Callable[[], bool], within: float = 10.0) -> None:
    deadline = time.monotonic() + within
    while not test():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.02)


async def test_a_stage_starts_when_the_one_before_is_ready_and_all_end_the_other_way_round(
    stand: Stand,
) -> None:
    order: list[str] = []

    async def between() -> None:
        order.append("between")

    port = free_port()
    first = stand.child("first", SERVES, str(port), health=port)
    second = stand.child("second", STAYS)
    supervisor = stand.of(Stage([first], between, "step"), Stage([second]))
    await supervisor.up()
    try:
        assert stand.words("ready") == ["first", "step", "second"]
        assert order == ["between"]
        state = read_state(stand.file)
        assert state is not None
        assert state.ready
        assert [(p.name, p.state, p.is_alive) for p in state.parts] == [
            ("first", "ready", True),
            ("second", "ready", True),
        ]
        assert state.parts[0].seconds > 0
    finally:
        await supervisor.down()
    assert stand.words("end") == ["second", "first"]
    assert not first.is_running()
    assert not second.is_running()


async def test_a_part_that_is_killed_is_started_again_and_that_is_said(stand: Stand) -> None:
    part = stand.child("worker", STAYS)
    supervisor = stand.of(Stage([part]))
    await supervisor.up()
    watching = asyncio.create_task(supervisor.watch())
    try:
        before = part.pid
        os.kill(before, signal.SIGKILL)
        await until(lambda: part.is_running() and part.pid != before)
        await until(lambda: stand.state.parts[0].state == "ready")
        assert stand.state.parts[0].restarts == 1
        assert "was killed by SIGKILL; again in 1 s" in stand.said[-2][1]
    finally:
        watching.cancel()
        await supervisor.down()


async def test_a_part_that_never_gets_ready_fails_the_start_with_its_last_words(stand: Stand) -> None:
    supervisor = stand.of(Stage([stand.child("broken", ENDS, health=free_port())]), ready_within=2.5)
    with pytest.raises(UserError) as caught:
        await supervisor.up()
    assert "broken is not ready after 2.5 s" in str(caught.value)
    assert str(stand.folder / "broken.log") in str(caught.value)
    assert "ended with status 3; again in 1 s; last line of" in stand.said[0][1]
    assert "no such table" in stand.said[0][1]
    waits = [
        text.partition("again in ")[2].partition(" s")[0] for sort, text in stand.said if sort == "crash"
    ]
    assert waits[:2] == ["1", "2"], "each time it waits longer"
    await supervisor.down()


async def test_a_part_that_does_not_listen_is_killed_when_the_time_is_over(stand: Stand) -> None:
    part = stand.child("deaf", DEAF)
    supervisor = stand.of(Stage([part]), end_within=0.5)
    await supervisor.up()
    await until(lambda: last_line(part.log) == "up")
    await supervisor.down()
    assert not part.is_running()
    assert "did not end in 0.5 s and is killed" in stand.said[-1][1]


def stranger() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def test_a_process_that_got_a_recorded_id_later_is_never_ended() -> None:
    process = stranger()
    try:
        started = start_time(process.pid)
        assert started is not None
        other = PartState("service", pid=process.pid, started=started - 1)
        assert end_processes([other], 1.0) == []
        assert process.poll() is None
        assert end_processes([PartState("service", pid=process.pid, started=started)], 5.0) == ["service"]
        process.wait(5)
    finally:
        process.kill()
        process.wait(5)


def test_a_file_that_cannot_be_read_is_no_running_stack(tmp_path: Path) -> None:
    path = tmp_path / "stack.json"
    for text in ("", "{", "[]", '{"pid": 1}'):
        path.write_text(text)
        assert read_state(path) is None
    assert running(path) is None
    assert not is_process(0, None)


def test_the_last_words_of_a_structured_log_are_its_event(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text('old\n{"event": "the database schema is behind", "reason": "at 3, wanted 4"}\n\n')
    assert last_line(log) == "the database schema is behind: at 3, wanted 4"
    assert last_line(tmp_path / "none.log") == ""


async def test_a_killed_part_is_not_said_to_have_ended_for_what_it_logged_before(stand: Stand) -> None:
    part = stand.child("worker", STAYS)
    supervisor = stand.of(Stage([part]))
    await supervisor.up()
    try:
        await until(lambda: last_line(part.log) == "up")
        os.kill(part.pid, signal.SIGKILL)
        await until(lambda: not part.is_running())
        await supervisor._look()
        (crash,) = [text for sort, text in stand.said if sort == "crash"]
        assert crash == f"worker        was killed by SIGKILL; again in 1 s ({part.log})"
        assert stand.state.parts[0].note == "was killed by SIGKILL"
    finally:
        await supervisor.down()


async def test_a_start_that_takes_long_says_what_it_waits_for(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadstead.cli.stack.supervisor.QUIET_FOR", 0.3)
    supervisor = stand.of(Stage([stand.child("slow", STAYS, health=free_port())]), ready_within=1.5)
    with pytest.raises(UserError):
        await supervisor.up()
    assert ("step", "still starting: slow (slow: it does not answer yet)") in stand.said
    await supervisor.down()
