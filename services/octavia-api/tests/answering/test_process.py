"""The whole process in front of a real database and broker: it answers, tells how it is, and ends in good order."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from roadstead.settings import Settings, load_settings
from roadstead.testing.servers import NatsServer
from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Insert
from roadstead_octavia.http.operations import load_what_is_there
from roadstead_octavia.process import Process
from roadstead_octavia.settings import OctaviaSettings, load_octavia_settings

from .client import LB, PROJECT

pytestmark = pytest.mark.timeout(60)
LIST = "/v2/lbaas/loadbalancers"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def settings_of(database_url: str, nats_url: str, **more: Any) -> Settings:
    given = {"database_url": database_url, "nats_url": [nats_url], "log_level": "warning", **more}
    return load_settings(**given)


def octavia_of(**more: Any) -> OctaviaSettings:
    return load_octavia_settings(
        **{"auth_strategy": "noauth", "bind_port": 0, "healthcheck_enabled": True, **more}
    )


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[int]:
    """The port of the API; the process ends with the block, and well."""
    task = asyncio.create_task(process.main())
    listening = asyncio.create_task(process.server.listening.wait())
    await asyncio.wait({task, listening}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    assert not task.done(), "it ended before it answered"
    try:
        yield process.server.address()[1]
    finally:
        process.stopping.set()
        assert await asyncio.wait_for(task, 30) == 0


async def fetch(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and body, over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    raw = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    head, _, body = raw.decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


def a_load_balancer() -> Insert:
    row = {
        "id": LB,
        "project_id": PROJECT,
        "name": "lb1",
        "provisioning_status": "ACTIVE",
        "operating_status": "ONLINE",
        "enabled": True,
        "provider": "ovn",
    }
    return Insert("load_balancer", row)


async def test_it_lists_and_shows_from_a_real_database(database_url: str, own_nats: NatsServer) -> None:
    health = free_port()
    settings = settings_of(database_url, own_nats.url, health_port=health)
    process = Process(settings, octavia_of(), operations=load_what_is_there())
    async with running(process) as port:
        await process.database.write([a_load_balancer()])
        status, body = await fetch(port, f"{LIST}?fields=name")
        assert (status, body) == (200, '{"loadbalancers":[{"name":"lb1"}],"loadbalancers_links":[]}')
        assert (await fetch(port, f"{LIST}/{LB}?fields=id")) == (200, f'{{"loadbalancer":{{"id":"{LB}"}}}}')
        assert (await fetch(port, f"{LIST}/{PROJECT}"))[0] == 404
        assert (await fetch(port, "/healthcheck"))[0] == 204
        assert (await fetch(health, "/readyz"))[0] == 200
        assert "roadstead_requests_total" in (await fetch(health, "/metrics"))[1]


async def test_without_a_broker_what_is_read_is_answered_and_it_ends_well(database_url: str) -> None:
    settings = settings_of(database_url, f"nats://127.0.0.1:{free_port()}")
    process = Process(settings, octavia_of(), operations=load_what_is_there())
    async with running(process) as port:
        assert (await fetch(port, LIST))[0] == 200


async def test_two_replicas_answer_on_one_port_when_they_may_and_else_the_second_one_says_so(
    database_url: str, own_nats: NatsServer
) -> None:
    port, settings = free_port(), settings_of(database_url, own_nats.url)
    shared = octavia_of(bind_port=port, reuse_port=True)
    async with running(Process(settings, shared)) as first, running(Process(settings, shared)) as second:
        assert first == second == port
        assert [(await fetch(port, LIST))[0] for _ in range(8)] == [200] * 8
        assert await Process(settings, octavia_of(bind_port=port)).main() != 0


async def test_it_waits_for_a_database_and_can_be_told_to_stop_meanwhile(own_nats: NatsServer) -> None:
    settings = settings_of(f"postgresql://127.0.0.1:{free_port()}/none", own_nats.url)
    process = Process(settings, octavia_of(), operations=load_what_is_there())
    task = asyncio.create_task(process.main())
    await asyncio.sleep(0.5)
    assert not task.done()
    process.stopping.set()
    assert await asyncio.wait_for(task, 30) == 0


async def test_a_schema_that_is_behind_ends_it_with_the_status_of_that(
    postgres_server: Any, own_nats: NatsServer
) -> None:
    url = postgres_server.create_database(f"empty_{os.getpid()}")
    process = Process(settings_of(url, own_nats.url), octavia_of(), operations=load_what_is_there())
    assert await asyncio.wait_for(process.main(), 30) == 3


async def test_a_request_in_hand_ends_before_the_process_does(
    database_url: str, own_nats: NatsServer
) -> None:
    gate = asyncio.Event()

    async def slow(call: Call) -> Answer:
        gate.set()
        await asyncio.sleep(1.0)
        return Answer(200, {"done": True})

    operations = {**load_what_is_there(), "loadbalancer.list": slow}
    process = Process(settings_of(database_url, own_nats.url), octavia_of(), operations=operations)
    task = asyncio.create_task(process.main())
    await asyncio.wait_for(process.server.listening.wait(), 30)
    port = process.server.address()[1]
    asking = asyncio.create_task(fetch(port, LIST))
    await asyncio.wait_for(gate.wait(), 10)
    process.stopping.set()
    assert await asyncio.wait_for(asking, 20) == (200, '{"done":true}')
    assert await asyncio.wait_for(task, 30) == 0
    with pytest.raises(OSError):
        await fetch(port, LIST)


async def test_settings_that_cannot_be_are_told_with_status_2(
    database_url: str, own_nats: NatsServer
) -> None:
    environment = {
        **os.environ,
        "ROADSTEAD_DATABASE_URL": database_url,
        "ROADSTEAD_NATS_URL": own_nats.url,
        "ROADSTEAD_OCTAVIA_AUTH_STRATEGY": "keystone",
        "ROADSTEAD_OCTAVIA_AUTH_URL": "",
    }
    bad = await _program(environment)
    assert await asyncio.wait_for(bad.wait(), 30) == 2
    assert bad.stderr is not None
    assert b"octavia-api: ROADSTEAD_OCTAVIA_AUTH_URL: set it" in await bad.stderr.read()


async def test_a_port_that_is_taken_is_told_with_status_2(database_url: str, own_nats: NatsServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        program = await _program(
            {
                **os.environ,
                "ROADSTEAD_DATABASE_URL": database_url,
                "ROADSTEAD_NATS_URL": own_nats.url,
                "ROADSTEAD_OCTAVIA_AUTH_STRATEGY": "noauth",
                "ROADSTEAD_OCTAVIA_BIND_PORT": str(taken.getsockname()[1]),
            }
        )
        assert program.stderr is not None
        said = await asyncio.wait_for(program.stderr.read(), 60)
    assert (await program.wait(), b"Traceback" in said) == (2, False), said.decode()[-2000:]
    assert b"set ROADSTEAD_OCTAVIA_BIND_HOST or ROADSTEAD_OCTAVIA_BIND_PORT" in said


async def _program(environment: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "roadstead_octavia", env=environment, stderr=asyncio.subprocess.PIPE
    )
