"""What the service stands on in these tests, and the service itself as processes.

A `Service` is a database of its own, a broker, replicas of the API and providers, in some cloud.  A `Ground` is one in the simulated cloud
(Keystone and Neutron over HTTP, in a thread, so that a test can give it faults).  The cloud's catalog names the first replica, as an
installed cloud would.
"""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.http import Front
from roadstead.testing.cloudsim.settings import SimSettings
from roadstead.testing.server_process import HOST, ServerProcess
from roadstead.testing.servers import NatsServer, PostgresServer

from .people import SERVICE_PASSWORD, People

ROOT = Path(__file__).resolve().parents[2]
NOOP = "roadstead_octavia.provider.noop"
START = 90.0  # seconds for a process on a busy machine
PROVIDERS = ",".join(
    f"{name}:{text}"
    for name, text in {
        "noop": "Agrees to everything.",
        "plain": "Leaves VIP ports to the API.",
        "slow": "Takes its time.",
        "picky": "Refuses much.",
        "silent": "Never reports.",
        "absent": "Nobody answers.",
    }.items()
)


class Program(ServerProcess):
    """A Python module as a process with settings of its own.  `ready`: a subject that it answers on the broker."""

    def __init__(
        self, directory: Path, module: str, nats: NatsServer, ready: str, settings: Mapping[str, Any]
    ) -> None:
        super().__init__(directory, die_with_parent=True)
        self.name = module
        self.module = module
        self.nats = nats
        self.ready = ready
        self.settings = dict(settings)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def prepare(self) -> None:
        """Nothing: it keeps no files."""

    def command(self) -> list[str]:
        foreign = [f"-u{name}" for name in os.environ if name.startswith(("ROADSTEAD_", "OS_"))]
        given = [f"{name}={value}" for name, value in self.settings.items()]
        return ["env", *foreign, *given, sys.executable, "-m", self.module]

    def is_ready(self) -> bool:
        """Whether this process's connection to the broker has the subscription."""
        found = answer_of(f"{self.nats.monitor_url}/connz?subs=1&limit=1000")
        return any(
            self.settings["ROADSTEAD_REPLICA"] in str(one.get("name"))
            and self.ready in one.get("subscriptions_list", ())
            for one in (found or {}).get("connections", ())
        )

    def memory(self) -> int:
        """Bytes that it holds in memory."""
        family = subprocess.run(
            ["ps", "-o", "rss=", "--pid", str(self.pid), "--ppid", str(self.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        return 1024 * max(int(word) for word in family.stdout.split())

    def words(self) -> str:
        """All that it has logged."""
        return self.log.read_text(errors="replace")


class Replica(Program):
    """One replica of the API."""

    def command(self) -> list[str]:
        self.settings["ROADSTEAD_OCTAVIA_BIND_PORT"] = self.port
        return super().command()

    def is_ready(self) -> bool:
        return answer_of(self.url) is not None and super().is_ready()


def answer_of(url: str) -> Any:
    """The JSON at an address; None when there is none."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.loads(answer.read())
    except (urllib.error.URLError, OSError, ValueError):
        return None


class Service(ABC):
    """See the module.  `settings` are those of every replica, by name without prefix."""

    people: People
    region = "RegionOne"
    admin_password = "admin"
    service_password = SERVICE_PASSWORD

    def __init__(
        self,
        folder: Path,
        postgres: PostgresServer,
        database: str,
        *,
        replicas: int = 1,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.postgres = postgres
        self.database = database
        self.nats = NatsServer(folder / "nats", die_with_parent=True)
        self.settings = settings
        self.replicas: list[Replica] = []
        self.providers: dict[str, Program] = {}
        self._wanted = replicas

    # ------------------------------------------------------------ the cloud

    @property
    @abstractmethod
    def auth_url(self) -> str:
        """Of Keystone, with its version."""

    @abstractmethod
    def enter_cloud(self) -> None:
        """People and networks are there when it returns."""

    @abstractmethod
    def name_service(self) -> None:
        """The catalog of `region` leads to the first replica."""

    @abstractmethod
    def leave_cloud(self) -> None:
        """Nothing of these tests stays; may be called when nothing was started."""

    # ------------------------------------------------------------ start and end

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)
        self.nats.start()
        self.enter_cloud()
        for _ in range(self._wanted):
            self.add_replica()
        self.add_provider("noop")
        self.add_provider("plain", refuse="create_vip_port:NotImplemented")
        self.name_service()
        return self

    def stop(self) -> None:
        for program in (*self.replicas, *self.providers.values(), self.nats):
            program.kill()
        self.leave_cloud()

    def add_replica(self) -> Replica:
        number = len(self.replicas)
        settings = {
            **self._common(f"api-{number}"),
            "ROADSTEAD_DATABASE_URL": self.postgres.url_of(self.database),
            "ROADSTEAD_OCTAVIA_AUTH_URL": self.auth_url,
            "ROADSTEAD_OCTAVIA_PASSWORD": self.service_password,
            "ROADSTEAD_OCTAVIA_ENABLED_PROVIDER_DRIVERS": PROVIDERS,
            "ROADSTEAD_OCTAVIA_DEFAULT_PROVIDER_DRIVER": "noop",
            **{f"ROADSTEAD_OCTAVIA_{name.upper()}": value for name, value in self.settings.items()},
        }
        replica = Replica(
            self.folder / f"api-{number}", "roadstead_octavia", self.nats, "rpc.provider.*.tree", settings
        )
        self.replicas.append(replica)
        replica.start(START)
        return replica

    def add_provider(self, name: str, *, module: str = NOOP, **manner: str) -> Program:
        """A provider process; manner: delay, fail, silent, refuse as the noop provider's variables have them."""
        if (old := self.providers.get(name)) is not None:
            old.kill()
        settings = {
            **self._common(f"provider-{name}"),
            "ROADSTEAD_NOOP_NAME": name,
            **{f"ROADSTEAD_NOOP_{word.upper()}": value for word, value in manner.items()},
        }
        if module != NOOP:
            settings["PYTHONPATH"] = str(ROOT)
        program = Program(
            self.folder / f"provider-{name}",
            module,
            self.nats,
            f"rpc.provider.{name}.check",
            settings,
        )
        self.providers[name] = program
        program.start(START)
        return program

    def _common(self, replica: str) -> dict[str, Any]:
        return {
            "ROADSTEAD_NATS_URL": self.nats.url,
            "ROADSTEAD_REPLICA": replica,
            "ROADSTEAD_HEALTH_PORT": 0,
            "ROADSTEAD_LOG_LEVEL": "info",
        }

    # ------------------------------------------------------------ what tests look at

    @property
    def url(self) -> str:
        return self.replicas[0].url

    def sql(self, statement: str) -> list[list[str]]:
        """What the database says, bypassing the service: rows of texts."""
        found = self.postgres.execute(f"SET search_path TO octavia; {statement}", self.database)
        return [line.split("|") for line in found.splitlines() if line]

    def number(self, statement: str) -> int:
        return int(self.sql(statement)[0][0])

    def pending(self) -> list[list[str]]:
        """(table, id, status) of everything that waits."""
        tables = ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")
        return self.sql(
            " UNION ALL ".join(
                f"SELECT '{t}', id, provisioning_status FROM {t} WHERE provisioning_status LIKE 'PENDING%'"
                for t in tables
            )
        )

    def rows(self, only: re.Pattern[str] | None = None) -> dict[str, str]:
        """Count and checksum of the rows by table, in all tables or in those that match: equal while nothing is written."""
        schema = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'octavia'"
        tables = sorted(row[0] for row in self.sql(schema) if only is None or only.match(row[0]))
        sums = " UNION ALL ".join(
            f"SELECT '{t}', count(*)::text || ':' || coalesce(sum(hashtext(t::text)::bigint), 0) FROM {t} t"
            for t in tables
        )
        return {row[0]: row[1] for row in self.sql(sums)}

    def ports(self, **filters: str) -> list[dict[str, Any]]:
        """Neutron's ports with these values, as the administrator sees them."""
        found = self.people.admin("GET", "/network/v2.0/ports")["ports"]
        return [port for port in found if all(port.get(k) == v for k, v in filters.items())]


class Ground(Service):
    """A service in the simulated cloud."""

    def __init__(
        self,
        folder: Path,
        postgres: PostgresServer,
        database: str,
        *,
        replicas: int = 1,
        **settings: Any,
    ) -> None:
        super().__init__(folder, postgres, database, replicas=replicas, **settings)
        self.cloud = Cloud(settings=SimSettings(admin_password=self.admin_password), seed=1)
        self.cloud.settings.durations.scale(0)
        self.front = Front(self.cloud)
        self.people = People(lambda: self.front.auth_url, lambda path: f"{self.front.url}{path}")

    @property
    def auth_url(self) -> str:
        return self.front.auth_url

    def enter_cloud(self) -> None:
        self.front.start()
        self.people.settle()

    def name_service(self) -> None:
        self.cloud.settings.endpoints["load-balancer"] = self.url

    def leave_cloud(self) -> None:
        self.front.stop()

    def fault(self, kind: str, path: str, **more: Any) -> None:
        """The next such call to Neutron goes wrong."""
        self.people.ask("POST", "/admin/faults", {"kind": kind, "service": "network", "path": path, **more})

    def no_faults(self) -> None:
        self.people.ask("DELETE", "/admin/faults")
