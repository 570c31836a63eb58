"""What a local stack consists of, from its folder, its cloud and the services that are installed."""

import json
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from roadstead.cli.context import Context
from roadstead.cli.failures import UserError
from roadstead.cli.stack.home import SIMULATOR, Home
from roadstead.cli.stack.octavia import API, API_PORT, MODULE, Octavia, OctaviaParts
from roadstead.cli.stack.ovn import OvnParts
from roadstead.cli.stack.parts import Child, Part, ServerPart
from roadstead.cli.stack.supervisor import Stage
from roadstead.seal import keys_from_file
from roadstead.testing.server_process import free_port
from roadstead.testing.servers import NatsServer, PostgresServer

NATS_PORT = 4222
PROJECT = ORGANIZATION = "demo"


def service_modules() -> dict[str, str]:
    """Package of each installed service by its name, in the order in which they are shown."""
    order = ["identity", "network", "compute", "volumes", "loadbalancer", "monitor"]
    found = {ep.name: ep.value.partition(":")[0] for ep in entry_points(group="roadstead.services")}
    if not found:
        raise UserError(
            "no service is installed: run `make setup`, or install the roadstead-... distributions"
        )
    found = {name: module for name, module in found.items() if find_spec(module) is not None}
    names = sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))
    return {name: found[name].removesuffix(".__main__") for name in names}


def simulator_region() -> str:
    """The id of the simulated region: the same on every machine and port, so that files and notes stay valid."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "roadstead:simulator"))


class Ports:
    """Ports that stay the same over restarts.

    A name's own port is chosen at its first start.  While somebody else has it another one stands in, and as soon as it is free the
    name goes back to it.  notes: a line for every name whose port is not the one that people expect.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.notes: list[str] = []
        self._own: dict[str, int] = {}
        self._stand_ins: dict[str, int] = {}  # of the last time, by name
        with suppress(OSError, ValueError, AttributeError, TypeError):
            data = json.loads(path.read_text())
            self._stand_ins = {name: int(port) for name, port in data.pop("standIns", {}).items()}
            self._own = {name: int(port) for name, port in data.items()}

    def take(self, name: str, wish: int = 0) -> int:
        """The port of that name for this time: its own; at the first start the wished one if that is free, else any."""
        own, stood_in = self._own.get(name, 0), self._stand_ins.pop(name, 0)
        if not own:
            own = wish if wish and _is_free(wish) else free_port()
            self._own[name] = port = own
            if wish and own != wish:
                self.notes.append(f"port {wish} is taken by another program; {name} gets {own} for good")
        elif _is_free(own):
            port = own
            if stood_in:
                self.notes.append(f"{name} is back on its port {own}")
        else:
            port = stood_in if stood_in and _is_free(stood_in) else free_port()
            self._stand_ins[name] = port
            self.notes.append(f"port {own} of {name} is taken by another program; this time it is {port}")
        self._write()
        return port

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(
            json.dumps({**self._own, **({"standIns": self._stand_ins} if self._stand_ins else {})})
        )
        fresh.replace(self._path)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do it: a port of which only old connections linger is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Blueprint:
    """The parts and how they hang together.  cloud: `simulator` or a name of clouds.yaml; octavia: with the Octavia API, and which provider."""

    def __init__(
        self, home: Home, cloud: str, only: Sequence[str] = (), *, octavia: Octavia | None = None
    ) -> None:
        self.home = home
        self.cloud = cloud
        self._ports = Ports(home.ports)
        self.notes = self._ports.notes
        lifeline = shutil.which("setpriv") is not None
        self.nats = NatsServer(home.nats, self._ports.take("nats", NATS_PORT), die_with_parent=lifeline)
        self.postgres = PostgresServer(home.postgres, self._ports.take("postgres"), die_with_parent=lifeline)
        modules = service_modules()
        self.services = {name: modules[name] for name in (only or modules)}
        self.schemas = list(modules)
        self.simulator_port = self._ports.take(SIMULATOR) if cloud == SIMULATOR else 0
        self.octavia = self._octavia(octavia) if octavia else None
        if self.octavia is not None:
            self.schemas += self.octavia.schemas
        keys_from_file(home.seal_keys, create=True)

    @property
    def clouds_yaml(self) -> Path:
        """The administrator's clouds.yaml of the simulated cloud."""
        return self.home.simulator / "clouds.yaml"

    def context(self, region: str | None) -> Context:
        return Context(
            "local",
            nats_url=self.nats.url,
            database_url=self.postgres.url,
            seal_key_file=str(self.home.seal_keys),
            octavia_url=self.octavia.url if self.octavia is not None else None,
            region=region,
            project=PROJECT,
            organization=ORGANIZATION,
        )

    def stages(self, migrate: Callable[[], Awaitable[None]], *, bare: bool = False) -> list[Stage]:
        """Broker and database, then the schemas, then everything else at once (bare: nothing else).

        With the Octavia API the cloud comes before it, because its user is made there.
        """
        ground: list[Part] = [ServerPart("nats", self.nats), ServerPart("postgres", self.postgres)]
        if bare:
            return [Stage(ground, migrate, "schemas")]
        upper = [self._service(name, module) for name, module in self.services.items()]
        if self.octavia is not None:
            octavia = self.octavia
            ground += octavia.ground
            upper += octavia.children(free_port, self._environment)
            cloud = Stage([self._simulator()], lambda: octavia.prepare(self.clouds_yaml), "octavia user")
            return [Stage(ground, migrate, "schemas"), cloud, Stage(upper)]
        if self.cloud == SIMULATOR:
            upper.insert(0, self._simulator())
        return [Stage(ground, migrate, "schemas"), Stage(upper)]

    def _octavia(self, provider: Octavia) -> OctaviaParts:
        if self.cloud != SIMULATOR:
            raise UserError(
                "the Octavia API goes with the simulated cloud here; for a real one see deploy/octavia/README.md",
                2,
            )
        if find_spec(MODULE) is None:
            raise UserError(
                "the Octavia API is not installed: run `make setup`, or install roadstead-octavia-api"
            )
        auth_url = f"http://127.0.0.1:{self.simulator_port}/identity/v3"
        kind = OvnParts if provider is Octavia.OVN else OctaviaParts
        return kind(self.home, self._ports.take(API, API_PORT), auth_url)

    def _service(self, name: str, module: str) -> Child:
        health = free_port()
        return Child(
            name,
            [sys.executable, "-m", module],
            self.home.log(name),
            environment=self._environment(health),
            health=health,
        )

    def _environment(self, health: int) -> Mapping[str, str]:
        return {
            "ROADSTEAD_NATS_URL": self.nats.url,
            "ROADSTEAD_DATABASE_URL": self.postgres.url,
            "ROADSTEAD_SEAL_KEY_FILE": str(self.home.seal_keys),
            "ROADSTEAD_HEALTH_PORT": str(health),
            "ROADSTEAD_LOG_FORMAT": os.environ.get("ROADSTEAD_LOG_FORMAT", "json"),
        }

    def _simulator(self) -> Child:
        port = self.simulator_port
        command = [sys.executable, "-m", "roadstead.cli.stack.simulator", "--port", str(port)]
        command += self.octavia.simulator_arguments if self.octavia is not None else []
        return Child(
            SIMULATOR,
            [*command, "--state", str(self.home.saved_cloud), "--clouds", str(self.clouds_yaml)],
            self.home.log(SIMULATOR),
            ready_url=f"http://127.0.0.1:{port}/identity/v3",
        )
