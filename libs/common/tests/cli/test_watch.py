"""`watch` as a process on a real broker: it says what it watches, shows what comes, and outlives a restart of the broker."""

import asyncio
import os
import sys
from pathlib import Path

import nats

from roadstead.testing.servers import NatsServer

from .stand_ins import REGION

SUBJECT = f"status.{REGION}.demo.server.f5e2664a-8633-52e2-b00e-255dcca2ca9c"
BODY = b'{"kind": "server", "metadata": {"name": "web"}, "status": {"provisioningStatus": "provisioned"}}'


async def publish_until(server: NatsServer, process: asyncio.subprocess.Process) -> str:
    """The line that comes of a status message, published until there is one."""
    assert process.stdout is not None
    line = asyncio.ensure_future(process.stdout.readline())
    other = await nats.connect(server.url)
    try:
        for _ in range(150):
            await other.publish(SUBJECT, BODY)
            done, _ = await asyncio.wait({line}, timeout=0.1)
            if done:
                return (await line).decode()
    finally:
        await other.close()
    raise AssertionError("nothing was shown")


async def drained(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while True:
        try:
            await asyncio.wait_for(process.stdout.readline(), 0.5)
        except TimeoutError:
            return


async def test_watch_says_what_it_watches_and_goes_on_behind_a_restart(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    server.start()
    environment = {
        **os.environ,
        "ROADSTEAD_NATS_URL": server.url,
        "ROADSTEAD_REGION": REGION,
        "ROADSTEAD_PROJECT": "demo",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "roadstead.cli", "watch", "server"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = (await asyncio.wait_for(process.stderr.readline(), 20)).decode()
        assert said == f"watching server of project demo in region {REGION}; Ctrl-C ends it\n"
        assert "server         web  provisioned" in await publish_until(server, process)
        await drained(process)
        await asyncio.to_thread(server.stop)
        assert "the broker is away" in (await asyncio.wait_for(process.stderr.readline(), 20)).decode()
        await asyncio.to_thread(server.start)
        assert "the broker is back" in (await asyncio.wait_for(process.stderr.readline(), 20)).decode()
        assert "web  provisioned" in await publish_until(server, process)
    finally:
        process.kill()
        await process.wait()
        server.stop()
