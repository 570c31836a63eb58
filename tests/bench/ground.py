"""What figures are taken on: a broker, a database that syncs every commit, the simulated cloud over HTTP, one registered region.

All of it is this run's own, in a folder that goes with it.  Services run as processes of their own, or in this process where a
figure needs to look inside.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import SecretStr

from roadstead.bus.streams import ensure_streams
from roadstead.cloud.configure import Wanted, configure
from roadstead.cloud.register import register
from roadstead.cloud.sdk.administrator import SdkAdministrator
from roadstead.events import dump
from roadstead.seal import new_key
from roadstead.settings import Settings
from roadstead.store.migrate import migrate
from roadstead.subjects import Key, consumers_of, rpc_subject, spec_subject, status_subject
from roadstead.testing.server_process import free_port
from roadstead.testing.servers import NatsServer, PostgresServer

from .figures import Processors

SERVICES = ("identity", "network")
READY_WITHIN = 90.0  # importing openstacksdk takes long on a busy machine
PROJECT, ORGANIZATION = "bench-project", "bench-organization"
ADMIN = {
    "OS_USERNAME": "admin",
    "OS_PASSWORD": "admin",
    "OS_PROJECT_NAME": "admin",
    "OS_USER_DOMAIN_NAME": "Default",
    "OS_PROJECT_DOMAIN_NAME": "Default",
    "OS_REGION_NAME": "RegionOne",
}


class BenchFailed(RuntimeError):
    """Something that a figure stands on did not come about; the text says what."""


@dataclass
class Ground:
    """The running surroundings.  simulator: base address of the simulated cloud; client: a plain connection to the broker."""

    folder: Path
    nats: NatsServer
    postgres: PostgresServer
    simulator: str
    simulator_pid: int
    seal_key: str
    client: Client
    region: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def processors(self) -> Processors:
        return Processors(
            {"postgres": self.postgres.pid, "nats": self.nats.pid, "simulator": self.simulator_pid}
        )

    def settings(self, **more: Any) -> Settings:
        """Of a service in this process."""
        database, key = SecretStr(self.postgres.url), SecretStr(self.seal_key)
        return Settings(
            nats_url=[self.nats.url], database_url=database, seal_keys=[key], log_level="error", **more
        )

    # ------------------------------------------------------------ what people do

    def key(self, kind: str, ident: str | None = None) -> Key:
        return Key(self.region, "_" if kind == "region" else PROJECT, kind, ident or str(uuid.uuid4()))

    def envelope(self, key: Key, name: str, spec: Mapping[str, Any], **metadata: Any) -> bytes:
        base = {"name": name, "organizationId": ORGANIZATION, "projectId": key.project, **metadata}
        return dump({"metadata": base, "spec": dict(spec)})

    async def publish(self, key: Key, body: bytes) -> None:
        await self.client.jetstream().publish(spec_subject(key), body)

    @asynccontextmanager
    async def following(self, keys: Iterable[Key] | None = None) -> AsyncIterator["Told"]:
        """STATUS messages of the block, as they pass."""
        told = Told()
        wanted = ["status.>"] if keys is None else [status_subject(k) for k in keys]
        subscriptions = [await self.client.subscribe(subject, cb=told.hear) for subject in wanted]
        await self.client.flush()
        try:
            yield told
        finally:
            for subscription in subscriptions:
                await subscription.unsubscribe()

    async def register(self) -> None:
        """As `roadstead region configure` and `register` do; the services run."""
        openrc = {**ADMIN, "OS_AUTH_URL": f"{self.simulator}/identity/v3"}
        configured = await configure(SdkAdministrator(openrc=openrc), Wanted(prefix="bench"))
        made = register(
            name="bench",
            namespace="bench",
            endpoint=configured.values["AUTH_URL"],
            region_id=self.region,
            region_name=configured.values.get("REGION_NAME"),
            create_secret=True,
            values=configured.values,
        )
        key = self.key("region", self.region)
        async with self.following([key]) as told:
            await self.publish(key, dump(made.envelope))
            assert made.credential is not None
            subject = rpc_subject("identity", "region", "credentials")
            reply = await self.client.request(subject, dump(made.credential), timeout=10)
            if "version" not in json.loads(reply.data):
                raise BenchFailed(f"the region's credential was refused: {reply.data.decode()}")
            await told.provisioned(key)

    # ------------------------------------------------------------ the cloud's log

    def cloud_sequence(self) -> int:
        return int(self._admin("log?since=999999999999")["sequence"])

    def cloud_calls(self, since: int) -> list[dict[str, Any]]:
        """What the cloud was asked after that sequence, oldest first; `at` is when a call arrived."""
        return list(self._admin(f"log?since={since + 1}")["calls"])

    def clear_cloud_log(self) -> None:
        self._admin("log", "DELETE")

    def _admin(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(f"{self.simulator}/admin/{path}", method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())


class Told:
    """STATUS documents with the moment (wall clock) at which they came."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, str, dict[str, Any]]] = []
        self._changed = asyncio.Event()

    async def hear(self, message: Msg) -> None:
        self.heard.append((time.time(), message.subject, json.loads(message.data)))
        self._changed.set()

    async def provisioned(self, key: Key, generation: int = 1, within: float = 30.0) -> float:
        """When it was first told to be provisioned at that generation.  BenchFailed when it was not in time."""
        subject = status_subject(key)
        try:
            async with asyncio.timeout(within):
                while True:
                    self._changed.clear()
                    for moment, where, document in self.heard:
                        status = document["status"]
                        settled = status.get("provisioningStatus") == "provisioned"
                        if (
                            where == subject
                            and settled
                            and int(status.get("observedGeneration", 0)) >= generation
                        ):
                            return moment
                    await self._changed.wait()
        except TimeoutError:
            last = [d["status"] for _, where, d in self.heard if where == subject][-1:]
            raise BenchFailed(
                f"{key.kind} {key.id} was not provisioned within {within:g} s: {last}"
            ) from None


@asynccontextmanager
async def ground() -> AsyncIterator[Ground]:
    """Everything started, schemas migrated, streams made; nothing of it is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="roadstead-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL may run as another user
        broker = NatsServer(folder / "nats", die_with_parent=True)
        database = PostgresServer(folder / "postgres", die_with_parent=True)
        cloud: subprocess.Popen[bytes] | None = None
        client: Client | None = None
        try:
            broker.start()
            database.start()
            port = free_port()
            command = [sys.executable, "-m", "roadstead.testing.cloudsim", "--pace", "0", "--port", str(port)]
            cloud = start(command)
            await migrate(database.url, SERVICES)
            client = await nats.connect(broker.url, max_reconnect_attempts=2)
            await ensure_streams(
                client.jetstream(), [c for s in SERVICES for c in consumers_of(s)], replicas=1
            )
            await _until_open(port)
            yield Ground(folder, broker, database, f"http://127.0.0.1:{port}", cloud.pid, new_key(), client)
        finally:
            if client is not None:
                await client.close()
            end(cloud)
            database.stop()
            broker.stop()


async def _until_open(port: int) -> None:
    for _ in range(int(READY_WITHIN / 0.05)):
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        await asyncio.sleep(0.05)
    raise BenchFailed("the simulated cloud did not start")


@asynccontextmanager
async def services_as_processes(
    g: Ground, names: Iterable[str] = SERVICES
) -> AsyncIterator[Mapping[str, int]]:
    """Services as they run in production, ready; their process ids by name."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    ports: dict[str, int] = {}
    try:
        for name in names:
            ports[name] = free_port()
            environment = {
                **os.environ,
                "ROADSTEAD_NATS_URL": g.nats.url,
                "ROADSTEAD_DATABASE_URL": g.postgres.url,
                "ROADSTEAD_SEAL_KEYS": g.seal_key,
                "ROADSTEAD_HEALTH_PORT": str(ports[name]),
            }
            command = [sys.executable, "-m", f"roadstead_{name}"]
            running[name] = start(command, g.folder / f"{name}.log", environment)
        for name, port in ports.items():
            await _until_ready(name, port, g.folder / f"{name}.log")
        yield {name: process.pid for name, process in running.items()}
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            end(process)


async def _until_ready(name: str, port: int, log: Path) -> None:
    for _ in range(int(READY_WITHIN / 0.1)):
        with suppress(OSError):
            await asyncio.to_thread(
                lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2).close()
            )
            return
        await asyncio.sleep(0.1)
    raise BenchFailed(f"the {name} service did not become ready: {log.read_text()[-2000:]}")


def start(
    command: Sequence[str], log: Path = Path(os.devnull), environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A program of ours with its output in a file."""
    with log.open("ab") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)


def end(process: subprocess.Popen[bytes] | None) -> None:
    """Ask a process to end, and end it when it does not."""
    if process is None:
        return
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
