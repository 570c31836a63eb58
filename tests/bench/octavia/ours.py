"""Ours: two replicas with tracing on, a PostgreSQL and a broker of their own, and the noop provider as the process that it is."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from roadstead.store.migrate import migrate
from roadstead.testing.server_process import free_port
from roadstead.testing.servers import NatsServer, PostgresServer
from tests.bench.ground import BenchFailed, end, start
from tests.bench.octavia.load import Connection
from tests.bench.octavia.wanted import create

REPLICAS = 2
STARTS_WITHIN = 60.0


class Ours:
    """Running from `start` to `stop`.  profile: where each replica writes what its time went to."""

    def __init__(
        self, folder: Path, *, replicas: int = REPLICAS, fsync: bool = False, profile: bool = False
    ) -> None:
        self.folder = folder
        self.postgres = PostgresServer(folder / "postgres", durable=fsync, die_with_parent=True)
        self.nats = NatsServer(folder / "nats", die_with_parent=True)
        self.ports = tuple(free_port() for _ in range(replicas))
        self.profile = profile
        self._servers: list[subprocess.Popen[bytes]] = []
        self._provider: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> dict[str, list[int]]:
        """Process ids by what they are; children count with them."""
        assert self._provider is not None
        others = [self.postgres.pid, self.nats.pid, self._provider.pid]
        return {"api": [server.pid for server in self._servers], "others": others}

    def start(self) -> None:
        self.nats.start()
        self.postgres.start()
        asyncio.run(migrate(self.postgres.url, ["octavia"]))
        self._provider = start(
            [sys.executable, "-m", "roadstead_octavia.provider.noop"],
            self.folder / "noop.log",
            self._environment("noop"),
        )
        for number, port in enumerate(self.ports):
            more = {
                "ROADSTEAD_DATABASE_URL": self.postgres.url,
                "ROADSTEAD_TRACE_FILE": str(self.folder / f"trace-{number}.jsonl"),
                "ROADSTEAD_OCTAVIA_BIND_PORT": str(port),
                "ROADSTEAD_OCTAVIA_AUTH_STRATEGY": "noauth",
                "ROADSTEAD_OCTAVIA_ENABLED_PROVIDER_DRIVERS": "noop:noop",
                "ROADSTEAD_OCTAVIA_DEFAULT_PROVIDER_DRIVER": "noop",
            }
            if self.profile:
                more["PROFILE"] = str(self.folder / f"profile-{number}")
            environment = self._environment(f"api-{number}") | more
            command = [sys.executable, "-m", "tests.bench.octavia.served"]
            self._servers.append(start(command, self.folder / f"api-{number}.log", environment))
        for number, port in enumerate(self.ports):
            self._until_created(number, port)

    def _environment(self, replica: str) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ROADSTEAD_")}
        return {
            **clean,
            "ROADSTEAD_NATS_URL": self.nats.url,
            "ROADSTEAD_REPLICA": replica,
            "ROADSTEAD_LOG_LEVEL": "warning",
        }

    def _until_created(self, number: int, port: int) -> None:
        """Database, broker and provider are there when a load balancer can be made."""
        ends, last = time.monotonic() + STARTS_WITHIN, "nothing listens"
        while time.monotonic() < ends:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                connection = Connection(port)
                status, body = connection.send(create(0))
                connection.close()
                if status == 201:
                    return
                last = f"{status} {body[:300]!r}"
            except OSError:
                pass
            time.sleep(0.2)
        words = (self.folder / f"api-{number}.log").read_text()[-1500:]
        raise BenchFailed(f"replica {number} does not create: {last}\n{words}")

    def settle(self, within: float = 120.0) -> float:
        """Seconds until the provider has reported everything."""
        began = time.monotonic()
        count = "SELECT count(*) FROM octavia.load_balancer WHERE provisioning_status LIKE 'PENDING%'"
        while self.postgres.execute(count) != "0":
            if time.monotonic() - began > within:
                raise BenchFailed(f"load balancers still wait after {within:g} s")
            time.sleep(0.1)
        return time.monotonic() - began

    def stop(self) -> None:
        for server in self._servers:
            server.terminate()
        for process in (*self._servers, self._provider):
            end(process)
        self.postgres.stop()
        self.nats.stop()
