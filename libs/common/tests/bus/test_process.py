"""A service as a process: start, readiness, orderly end, and how it refuses to start."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from roadstead.seal import new_key
from roadstead.service import Exit, run
from roadstead.store.migrate import migrate
from roadstead.testing.paced import paced_environment
from roadstead.testing.servers import NatsServer, free_port

from .conftest import PROJECT, REGION, SERVICE, eventually, messages_of, new_id, spec_body, subject_of

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).with_name("toy_process.py")


@dataclass
class Program:
    """One replica.  Ends with the test."""

    folder: Path
    environment: dict[str, str]
    port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    def start(self, **more: str) -> "Program":
        own = {"ROADSTEAD_HEALTH_PORT": str(self.port), **self.environment, **more}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ROADSTEAD_")}
        with (self.folder / "log").open("ab") as log:
            self.child = subprocess.Popen(
                [sys.executable, str(PROGRAM)], env={**kept, **own}, stderr=log, stdout=subprocess.DEVNULL
            )
        return self

    def signal(self, number: int) -> None:
        assert self.child is not None
        self.child.send_signal(number)

    async def ended(self, seconds: float = 60) -> int:
        assert self.child is not None
        return await asyncio.to_thread(self.child.wait, seconds)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    async def is_ready(self) -> bool:
        return (await asyncio.to_thread(self.get, "/readyz"))[0] == 200

    async def ready(self) -> None:
        await eventually(self.is_ready, seconds=90, what=f"ready; the log is {self.log()[-2000:]}")

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log().splitlines()]


@pytest.fixture
async def environment(own_nats: NatsServer, database_url: str) -> dict[str, str]:
    await migrate(database_url, ["volumes"])
    return {
        "ROADSTEAD_NATS_URL": own_nats.url,
        "ROADSTEAD_DATABASE_URL": database_url,
        "ROADSTEAD_SEAL_KEYS": new_key(),
        **paced_environment(0.1),
    }


@pytest.fixture
def program(tmp_path: Path, environment: dict[str, str]) -> Iterator[Program]:
    program = Program(tmp_path, environment)
    yield program
    if program.child is not None and program.child.poll() is None:
        program.child.kill()
        program.child.wait(10)


@pytest.fixture
async def running(program: Program) -> Program:
    program.start()
    await program.ready()
    return program


async def test_a_spec_is_taken_and_answered_and_sigterm_ends_it_in_order(
    running: Program, person: Client
) -> None:
    ident = new_id()
    await person.jetstream().publish(subject_of(ident), spec_body("red"))

    async def status() -> Any:
        found = await messages_of(person, "STATUS", subject_of(ident, head="status"))
        return found if found and found[-1]["status"].get("code") else None

    [*_, last] = await eventually(status, what="a pass wrote how it ended")
    assert last["spec"]["colour"] == "red"
    reply = await person.request(f"api.{REGION}.{PROJECT}.volume.get", f'{{"id": "{ident}"}}'.encode())
    assert json.loads(reply.data)["metadata"]["generation"] == 1
    assert running.get("/healthz")[0] == 200
    figures = running.get("/metrics")[1]
    assert 'roadstead_passes_total{kind="volume",outcome="yield ' in figures or "retry" in figures
    assert ident not in figures
    assert REGION not in figures
    running.signal(signal.SIGTERM)
    assert await running.ended() == Exit.DONE
    events = [entry["event"] for entry in running.entries()]
    assert events[-1] == "stopped"
    assert not [e for e in running.entries() if e["level"] in ("error", "critical")]


async def test_ready_goes_with_broker_and_database_and_comes_back(
    running: Program, own_nats: NatsServer
) -> None:
    own_nats.kill()

    async def unready() -> bool:
        status, text = await asyncio.to_thread(running.get, "/readyz")
        return status == 503 and json.loads(text)["checks"]["bus"] != "ok"

    await eventually(unready)
    assert running.get("/healthz")[0] == 200
    own_nats.start()
    await running.ready()


async def test_a_broker_that_is_not_there_yet_is_waited_for(program: Program, own_nats: NatsServer) -> None:
    own_nats.stop()
    program.start()

    async def listening() -> bool:
        return (await asyncio.to_thread(program.get, "/healthz"))[0] == 200

    await eventually(listening, seconds=90)
    assert not await program.is_ready()
    own_nats.start()
    await program.ready()


async def test_it_can_be_stopped_while_it_waits(program: Program, own_nats: NatsServer) -> None:
    own_nats.stop()
    program.start()

    async def listening() -> bool:
        return (await asyncio.to_thread(program.get, "/healthz"))[0] == 200

    await eventually(listening, seconds=90)
    program.signal(signal.SIGTERM)
    assert await program.ended() == Exit.DONE


async def test_a_second_signal_ends_it_at_once(running: Program) -> None:
    running.signal(signal.SIGSTOP)  # both signals wait, so the second comes while the first is being served
    running.signal(signal.SIGTERM)
    running.signal(signal.SIGINT)
    began = time.monotonic()
    running.signal(signal.SIGCONT)
    assert await running.ended() == Exit.FAULT
    assert time.monotonic() - began < 5


async def test_a_schema_that_is_behind_is_refused_with_the_remedy(
    program: Program, database_url: str
) -> None:
    program.start(ROADSTEAD_DATABASE_SCHEMA="never_migrated")
    assert await program.ended() == Exit.SCHEMA
    assert "roadstead migrate" in program.log()


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("ROADSTEAD_PACE", "fast", "ROADSTEAD_PACE"),
        ("ROADSTEAD_SETTLING", "5.9", "ROADSTEAD_SETTLING (5.9 s) must be longer than"),
        ("ROADSTEAD_NOVA_MICROVERSION", "2.93", "2.92"),
        ("ROADSTEAD_SEAL_KEYS", "short", "urlsafe base64"),
        ("ROADSTEAD_SEAL_KEYS", "", "ROADSTEAD_SEAL_KEY_FILE"),
        ("ROADSTEAD_NATS_NKEY_SEED_FILE", "/nowhere/seed", "cannot be read"),
        ("ROADSTEAD_TRACE_FILE", "/dev/null/traces", "ROADSTEAD_TRACE_FILE"),
        ("ROADSTEAD_DATABASE_URL", "mysql://x", "postgresql://"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line_and_its_own_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv("ROADSTEAD_SEAL_KEYS", new_key())
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit) as ended:
        run(SERVICE)
    assert ended.value.code == Exit.SETTINGS
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("roadstead volumes: ")
    assert says in line


async def test_a_user_that_the_broker_does_not_know_is_refused(
    program: Program, server_directory: Path
) -> None:
    server = NatsServer(
        server_directory / f"auth-{new_id()}",
        extra='authorization { users: [ { user: "a", password: "b" } ] }',
        die_with_parent=True,
    )
    server.start()
    try:
        program.start(ROADSTEAD_NATS_URL=server.url)
        assert await program.ended() == Exit.BUS
    finally:
        server.kill()


async def test_a_kill_loses_nothing_that_was_accepted(running: Program, person: Client) -> None:
    js, idents = person.jetstream(), [new_id() for _ in range(50)]
    config = (await js.consumer_info("SPEC", "volumes-spec")).config
    await js.add_consumer(
        "SPEC", config.evolve(ack_wait=1.0)
    )  # what was in hand comes again sooner than in 30 s
    for ident in idents[:25]:
        await person.jetstream().publish(subject_of(ident), spec_body("red"))
    running.signal(signal.SIGKILL)
    await running.ended()
    for ident in idents[25:]:
        await person.jetstream().publish(subject_of(ident), spec_body("red"))
    running.start()
    await running.ready()

    async def all_there() -> bool:
        body = json.dumps({"limit": 100}).encode()
        items = json.loads(
            (await person.request(f"api.{REGION}.{PROJECT}.volume.list", body, timeout=5)).data
        )
        return {item["metadata"]["id"] for item in items["items"]} == set(idents)

    await eventually(all_there)


async def test_a_trace_goes_from_the_publisher_through_ingest_and_pass(
    program: Program, person: Client
) -> None:
    file, trace = program.folder / "traces.jsonl", "4bf92f3577b34da6a3ce929d0e0e4736"
    program.start(ROADSTEAD_TRACE_FILE=str(file))
    await program.ready()
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    ident = new_id()
    await person.jetstream().publish(subject_of(ident), spec_body("red"), headers=headers)

    def spans() -> dict[str, dict[str, Any]]:
        found = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            for part in json.loads(line)["resourceSpans"]:
                for span in part["scopeSpans"][0]["spans"]:
                    if span["traceId"] == trace:
                        found[span["name"]] = span
        return found

    names = await eventually(lambda: spans() if "pass volume" in spans() else None)
    ingest = names["process spec.<region>.<project>.volume.<id>"]
    assert ingest["parentSpanId"] == "00f067aa0ba902b7"
    assert names["pass volume"]["parentSpanId"] == ingest["spanId"]
    assert not any(ident in name or REGION in name for name in names)

    def publication() -> Any:
        return spans().get("publish status.<region>.<project>.volume.<id>")

    assert await eventually(publication)
