"""The original 19.0.0 in an environment of its own under `.run/`, served by gunicorn with two workers and a PostgreSQL of its own.

PostgreSQL because it is here and because it is the faster of the two that the original can use on this machine: none of MySQL's servers
comes as a wheel.  Its noop driver and no identity, as ours.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from roadstead.testing.server_process import free_port
from roadstead.testing.servers import PostgresServer
from roadstead_octavia.db.tables import LOOKUPS, PLACEHOLDERS
from tests.bench.ground import BenchFailed, end, start
from tests.bench.octavia.load import BadAnswer, Connection
from tests.bench.octavia.wanted import NETWORK, SUBNET, list_all

VERSION = "19.0.0"
PACKAGES = (f"octavia=={VERSION}", "sqlalchemy<2.1", "gunicorn", "psycopg2-binary")
HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[2] / ".run" / "octavia-original"
WORKERS = 2
STARTS_WITHIN = 120.0
CONFIG = """[database]
connection = {database}
[api_settings]
auth_strategy = noauth
default_provider_driver = noop_driver
enabled_provider_drivers = noop_driver:noop
"""


class NotHere(Exception):
    """The original cannot be installed or started; the text says why in one line."""


def install() -> Path:
    """Its interpreter; installed once.  NotHere."""
    python = ENVIRONMENT / "bin" / "python"
    installed = ENVIRONMENT / "installed"
    if installed.exists() and installed.read_text() == VERSION:
        return python
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)])
        _run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES])
    except subprocess.CalledProcessError as error:
        words = [w for w in (error.stderr or error.stdout or "").splitlines() if "ERROR" in w]
        raise NotHere(
            f"octavia=={VERSION} cannot be installed here: {(words or ['pip failed'])[0]}"
        ) from None
    installed.write_text(VERSION)
    return python


class Original:
    """Running from `start` to `stop`."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self.folder = folder
        self.postgres = PostgresServer(folder / "postgres", durable=fsync, die_with_parent=True)
        self.port = free_port()
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port,)

    @property
    def pids(self) -> dict[str, list[int]]:
        """Process ids by what they are; children count with them."""
        assert self._server is not None
        return {"api": [self._server.pid], "others": [self.postgres.pid]}

    def start(self) -> None:
        """NotHere."""
        python = install()
        self.postgres.start()
        database = self.postgres.create_database("original")
        config, rows = self.folder / "octavia.conf", self.folder / "rows.json"
        config.write_text(CONFIG.format(database=database.replace("postgresql://", "postgresql+psycopg2://")))
        rows.write_text(json.dumps(_first_rows()))
        environment = {
            **os.environ,
            "ORIGINAL_CONFIG": str(config),
            "ORIGINAL_ROWS": str(rows),
            "ORIGINAL_NETWORK": NETWORK,
            "ORIGINAL_SUBNET": SUBNET,
            "PYTHONWARNINGS": "ignore",
            "PYTHONPATH": str(HERE),
        }
        try:
            _run([str(python), str(HERE / "original_app.py")], environment)
        except subprocess.CalledProcessError as error:
            words = (error.stderr or "").strip().splitlines() or ["no word"]
            raise NotHere(f"the original's tables cannot be made: {words[-1]}") from None
        log = self.folder / "original.log"
        arguments = ["--workers", str(WORKERS), "--bind", f"127.0.0.1:{self.port}", "--timeout", "600"]
        command = [str(python), "-m", "gunicorn", *arguments, "--log-level", "warning"]
        self._server = start([*command, "original_app:application()"], log, environment)
        _until_answering(self.port, log)

    def activate(self) -> None:
        """Its noop driver reports nothing: what it was given is set to work here, so that it can be changed."""
        for table in ("load_balancer", "listener", "pool", "member", "health_monitor"):
            self.postgres.execute(
                f"UPDATE {table} SET provisioning_status = 'ACTIVE'",
                "original",
            )

    def stop(self) -> None:
        end(self._server)
        self.postgres.stop()


def _first_rows() -> dict[str, list[dict[str, object]]]:
    looked_up = {name: [{"name": value} for value in values] for name, values in LOOKUPS.items()}
    return {**looked_up, **{name: [row] for name, row in PLACEHOLDERS.items()}}


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=900, env=environment)


def _until_answering(port: int, log: Path) -> None:
    ends = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < ends:
        connection = Connection(port, within=5.0)
        try:
            if connection.send(list_all())[0] == 200:
                return
        except (OSError, BadAnswer):
            pass
        finally:
            connection.close()
        time.sleep(0.5)
    raise BenchFailed(f"the original did not start: {log.read_text()[-1500:]}")
