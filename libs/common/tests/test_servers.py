"""The embedded servers: data, port and isolation over stop, kill and start."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import nats
import pytest

from roadstead.testing import server_process, servers
from roadstead.testing.servers import NatsServer, PostgresServer, ServerError, end_leftover

pytestmark = pytest.mark.integration


@pytest.fixture
def folder(server_directory: Path, request: pytest.FixtureRequest) -> Path:
    return server_directory / str(request.node.name)


@pytest.fixture
def postgres(folder: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(folder, durable=True, die_with_parent=True)
    yield server
    server.kill()


async def rows(url: str, query: str) -> list[int]:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return [record[0] for record in await connection.fetch(query)]
    finally:
        await connection.close()


async def test_postgres_keeps_committed_rows_and_port_over_a_crash(postgres: PostgresServer) -> None:
    postgres.start()
    port, first_pid = postgres.port, postgres.pid
    connection = await asyncpg.connect(postgres.url, timeout=10)
    await connection.execute("CREATE TABLE t (n int)")
    await connection.execute("INSERT INTO t VALUES (7)")

    postgres.kill()

    assert not postgres.is_running
    connection.terminate()
    postgres.start()
    assert (postgres.port, await rows(postgres.url, "SELECT n FROM t")) == (port, [7])
    assert postgres.pid != first_pid


async def test_postgres_restarts_in_good_order_with_clients_connected(postgres: PostgresServer) -> None:
    postgres.start()
    connection = await asyncpg.connect(postgres.url, timeout=10)
    started = time.monotonic()
    postgres.restart()
    assert time.monotonic() - started < 10
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await connection.fetch("SELECT 1")
    assert await rows(postgres.url, "SELECT 1") == [1]
    assert "shut down" in postgres.log.read_text()


@pytest.mark.parametrize(("durable", "fsync"), [(True, "on"), (False, "off")])
def test_postgres_syncs_only_when_durable(folder: Path, durable: bool, fsync: str) -> None:
    server = PostgresServer(folder.with_name(f"fsync-{fsync}"), durable=durable, die_with_parent=True).start()
    try:
        assert server.execute("SHOW fsync") == fsync
    finally:
        server.kill()


def test_postgres_refuses_a_bad_statement_with_its_reason(postgres_server: PostgresServer) -> None:
    with pytest.raises(ServerError, match='relation "nowhere" does not exist'):
        postgres_server.execute("SELECT * FROM nowhere")


async def test_a_database_is_a_copy_of_its_template(postgres_server: PostgresServer) -> None:
    model = postgres_server.create_database("copy_model")
    connection = await asyncpg.connect(model, timeout=10)
    await connection.execute("CREATE TABLE t AS SELECT 5 AS n")
    await connection.close()
    copy = postgres_server.create_database("copy_made", template="copy_model")
    assert await rows(copy, "SELECT n FROM t") == [5]
    postgres_server.drop_database("copy_made")
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await rows(copy, "SELECT 1")


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_sees_an_empty_database(database_url: str, turn: int) -> None:
    assert await rows(database_url, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'") == []
    connection = await asyncpg.connect(database_url, timeout=10)
    await connection.execute(f"CREATE TABLE left_by_{turn} (n int)")
    await connection.close()


async def stored_messages(url: str) -> int:
    client = await nats.connect(url, connect_timeout=5)
    try:
        info = await client.jetstream().stream_info("S")
        return int(info.state.messages)
    finally:
        await client.close()


async def store_message(url: str) -> None:
    client = await nats.connect(url, connect_timeout=5)
    stream = client.jetstream()
    await stream.add_stream(name="S", subjects=["s.>"])
    await stream.publish("s.one", b"1")
    await client.close()


async def test_nats_keeps_its_stream_and_port_over_a_crash(folder: Path) -> None:
    server = NatsServer(folder, sync_interval="always", die_with_parent=True).start()
    try:
        port = server.port
        await store_message(server.url)
        server.kill()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), timeout=1)
        server.start()
        assert (server.port, await stored_messages(server.url)) == (port, 1)
        server.restart()
        assert await stored_messages(server.url) == 1
    finally:
        server.kill()


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_sees_an_empty_broker(nats_url: str, turn: int) -> None:
    client = await nats.connect(nats_url, connect_timeout=5)
    assert await client.jetstream().streams_info() == []
    await client.close()
    await store_message(nats_url)


async def test_nats_takes_a_configuration_file(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    config.write_text('authorization { user: "anna", password: "berta" }\n')
    server = NatsServer(folder, config=config, die_with_parent=True).start()
    try:
        client = await nats.connect(server.url, user="anna", password="berta", connect_timeout=5)
        assert (await client.jetstream().account_info()).streams == 0
        await client.close()
        with pytest.raises(nats.errors.Error, match="Authorization"):
            await nats.connect(server.url, connect_timeout=2, allow_reconnect=False)
    finally:
        server.kill()


def test_nats_with_a_faulty_configuration_says_why(folder: Path) -> None:
    server = NatsServer(folder, extra="max_payload: banana")
    with pytest.raises(ServerError, match=r"ended while starting.*server\.log"):
        server.start()
    assert not server.is_running


def test_a_given_port_that_is_taken_fails_and_is_not_exchanged(folder: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(ServerError, match="ended while starting"):
            NatsServer(folder, port, die_with_parent=True).start(timeout=10)


def test_a_chosen_port_that_is_taken_meanwhile_is_exchanged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        offers = iter([holder.getsockname()[1]])
        really_free = servers.free_port
        monkeypatch.setattr(server_process, "free_port", lambda: next(offers, 0) or really_free())
        server = NatsServer(folder, die_with_parent=True).start()
        try:
            assert server.port != holder.getsockname()[1]
        finally:
            server.kill()


def test_a_server_left_by_a_killed_run_is_replaced(folder: Path) -> None:
    first = PostgresServer(folder).start()
    left = first.pid
    second = PostgresServer(folder, die_with_parent=True).start()
    try:
        assert server_process.start_time(left) is None
        assert second.execute("SELECT 1") == "1"
    finally:
        second.kill()


def test_a_recorded_pid_of_another_process_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as bystander:
        record = tmp_path / "process.json"
        record.write_text(json.dumps({"pid": bystander.pid, "started": 1}))
        assert end_leftover(tmp_path) is False
        assert bystander.poll() is None
        assert not record.exists()
        bystander.kill()


@pytest.mark.parametrize("kind", ["NatsServer", "PostgresServer"])
def test_the_server_ends_with_a_killed_parent(folder: Path, kind: str) -> None:
    script = (
        "import sys, time; from pathlib import Path; from roadstead.testing import servers\n"
        f"print(servers.{kind}(Path(sys.argv[1]), die_with_parent=True).start().pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        assert server_process.start_time(server) is not None
        os.kill(parent.pid, signal.SIGKILL)
    assert server_process.wait_until_gone([server], timeout=10)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_root_without_namespaces_runs_postgres_as_nobody(
    server_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = server_process.RunAs(user=servers.NOBODY)
    program = servers.postgres_binary("postgres")
    reachable = (
        subprocess.run(
            [program, "--version"], user=servers.NOBODY, group=servers.NOBODY, extra_groups=[], check=False
        )
        if all(parent.stat().st_mode & 1 for parent in program.parents)
        else None
    )
    if reachable is None or reachable.returncode != 0:
        pytest.skip(f"{program} lies in a folder that only root may enter")
    monkeypatch.setattr(servers, "postgres_user", lambda: nobody)
    monkeypatch.setenv("ROADSTEAD_CACHE_DIR", str(server_directory / "cache-of-nobody"))
    (server_directory / "cache-of-nobody").mkdir()
    (server_directory / "cache-of-nobody").chmod(0o777)
    server = PostgresServer(server_directory / "as-nobody", die_with_parent=True).start()
    try:
        assert Path(f"/proc/{server.pid}").stat().st_uid == servers.NOBODY
        assert server.execute("SELECT 1") == "1"
    finally:
        server.kill()


def test_a_template_that_was_cut_short_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADSTEAD_CACHE_DIR", str(tmp_path))
    (tmp_path / "thing.partial").mkdir()
    (tmp_path / "thing.partial" / "rubbish").touch()

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "whole").touch()

    made = servers.cached_folder("thing", make)
    assert [path.name for path in made.iterdir()] == ["whole"]
    (made / "whole").unlink()
    assert list(servers.cached_folder("thing", make).iterdir()) == [], (
        "a folder that is there is used as it is"
    )


async def test_starting_twice_is_one_server(own_nats: NatsServer) -> None:
    pid = own_nats.pid
    await asyncio.to_thread(own_nats.start)
    assert own_nats.pid == pid
