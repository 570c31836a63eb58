"""The noop provider as a process, and the whole seam with the shipped users of the broker."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.tasks import end_all
from roadstead.settings import BadSettings
from roadstead.testing.servers import NatsServer
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.errors import ApiError
from roadstead_octavia.provider.noop.__main__ import manner_of
from roadstead_octavia.provider.noop.driver import Manner
from roadstead_octavia.provider.noop.process import NoopProvider

from .conftest import Rig, eventually, inserted, operation
from .trees import IDS, a_tree

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = [sys.executable, "-m", "roadstead_octavia.provider.noop"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "ROADSTEAD_LOG_FORMAT": "console", **more}


@pytest.mark.integration
async def test_the_process_answers_reports_and_ends_when_told_to(rig: Rig, nats_url: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        env=environment(ROADSTEAD_NATS_URL=nats_url, ROADSTEAD_NOOP_REFUSE="pool_create:NotImplemented"),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:

        async def answers() -> bool:
            try:
                await rig.side.provider.check("noop", "listener_create", [], 1)
            except ApiError:
                return False  # nobody is there yet
            return True

        await eventually(answers, 30)
        with pytest.raises(ApiError) as caught:
            await rig.side.provider.check("noop", "pool_create", [], 1)
        assert caught.value.status == 501
        made = operation("loadbalancer_create", list(IDS))
        await rig.commit(inserted(a_tree("PENDING_CREATE"), made))

        async def active() -> bool:
            return set((await rig.statuses()).values()) == {"ACTIVE"}

        await eventually(active)
    finally:
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0


@pytest.mark.parametrize(
    ("variable", "value"), [("DELAY", "soon"), ("REFUSE", "pool_create"), ("NAME", "a.b")]
)
def test_a_setting_that_cannot_be_is_one_line_and_status_2(variable: str, value: str) -> None:
    done = subprocess.run(
        PROGRAM,
        env=environment(**{f"ROADSTEAD_NOOP_{variable}": value}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"noop: ROADSTEAD_NOOP_{variable}: ")
    assert done.stderr.count("\n") == 1


def test_its_manner_comes_from_the_environment() -> None:
    manner = manner_of(
        {
            "ROADSTEAD_NOOP_DELAY": "1.5",
            "ROADSTEAD_NOOP_FAIL": "pool_create, pool_update",
            "ROADSTEAD_NOOP_SILENT": "*",
            "ROADSTEAD_NOOP_REFUSE": "create_vip_port:NotImplemented",
        }
    )
    assert manner == Manner(
        1.5, frozenset({"pool_create", "pool_update"}), frozenset("*"), {"create_vip_port": "NotImplemented"}
    )
    assert manner_of({}) == Manner()
    with pytest.raises(BadSettings):
        manner_of({"ROADSTEAD_NOOP_DELAY": "x"})


@pytest.fixture
def secured(server_directory: Path) -> Iterator[tuple[NatsServer, Path]]:
    """A broker with the shipped users."""
    folder = server_directory / "octavia-secured"
    generate = ROOT / "deploy/nats/generate.py"
    command = [sys.executable, str(generate), str(folder), "--provider", "noop"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    os.environ["NATS_SERVER_NAME"] = "octavia-secured"
    server = NatsServer(folder / "server", config=folder / "roadstead.conf", die_with_parent=True)
    server.start()
    yield server, folder / "keys"
    server.kill()


@pytest.mark.integration
async def test_the_seam_works_with_the_least_rights_and_nothing_is_refused(
    secured: tuple[NatsServer, Path], database: PostgresDatabase
) -> None:
    server, keys = secured

    def seed(user: str) -> str:
        return (keys / f"{user}.nk").read_text().strip()

    rig = Rig(server.url, database, nkey_seed=seed("octavia-api"))
    options = BusOptions(
        (server.url,), "noop", inbox_prefix="_INBOX_provider-noop", nkey_seed=seed("provider-noop")
    )
    bus = Bus(options)
    provider = NoopProvider(bus)
    tasks = []
    await rig.start()
    try:
        await bus.connect()
        tasks.append(asyncio.create_task(provider.run()))
        await asyncio.wait_for(provider.bound.wait(), 20)
        await rig.side.provider.check("noop", "listener_create", [], 1)
        await rig.side.provider.ask("noop", "create_vip_port", ["lb", "p", {}, []])
        made = operation("loadbalancer_create", list(IDS))
        await rig.commit(inserted(a_tree("PENDING_CREATE"), made))

        async def active() -> bool:
            return set((await rig.statuses()).values()) == {"ACTIVE"}

        await eventually(active)
        reply = await bus.request("rpc.provider.noop.tree", {"after": None})
        assert len(reply["trees"]) == 1
        await bus.publish("provider.noop.result", b"{}", {})

        async def put_aside() -> bool:
            return bool((await rig.bus.js.stream_info("DLQ")).state.messages)

        await eventually(put_aside)
        for each in (rig.bus, bus):
            assert each.meters.value("roadstead_bus_errors_total", error="Error") == 0
    finally:
        await end_all(tasks)
        await bus.close()
        await rig.stop()
