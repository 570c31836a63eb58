"""A real OVN for one test run: its databases by `deploy/ovn/ovn`, and a plain client for what others write."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from roadstead_ovn.northbound.wire import Frames

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "deploy" / "ovn" / "ovn"
MISSING = (
    "the databases of OVN are not installed here; `deploy/ovn/ovn install` does it on Debian 12, as root"
)


def is_installed() -> bool:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return all(shutil.which(name, path=path) for name in ("ovsdb-server", "ovn-nbctl", "ovn-northd"))


class RefusedTransaction(Exception):
    """The server's answer to it."""


class Client:
    """Transactions over a Unix socket, one at a time, and waiting."""

    def __init__(self, path: str, database: str) -> None:
        self._database = database
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(20)
        self._socket.connect(path)
        self._frames = Frames()
        self._number = 0

    def close(self) -> None:
        self._socket.close()

    def transact(self, *operations: Mapping[str, Any]) -> list[Any]:
        self._number += 1
        request = {"method": "transact", "id": self._number, "params": [self._database, *operations]}
        self._socket.sendall(orjson.dumps(request))
        while True:
            message = self._next()
            if message.get("method") == "echo":
                answer = {"id": message["id"], "error": None, "result": message["params"]}
                self._socket.sendall(orjson.dumps(answer))
            elif message.get("id") == self._number:
                break
        failed = [r for r in message["result"] or [] if r and r.get("error")]
        if message.get("error") or failed:
            raise RefusedTransaction(message.get("error") or failed)
        found: list[Any] = message["result"]
        return found

    def _next(self) -> Any:
        while (frame := self._frames.next()) is None:
            data = self._socket.recv(1 << 20)
            if not data:
                raise RefusedTransaction("the server closed the connection")
            self._frames.feed(data)
        return orjson.loads(frame)

    def select(self, table: str, where: tuple[Any, ...] = (), *columns: str) -> list[dict[str, Any]]:
        """Rows with plain columns: dicts, lists, single values, UUIDs as text."""
        operation: dict[str, Any] = {"op": "select", "table": table, "where": list(where)}
        if columns:
            operation["columns"] = list(columns)
        rows = self.transact(operation)[0]["rows"]
        return [{name: plain(value) for name, value in row.items()} for row in rows]


def plain(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 2 and value[0] in ("map", "set", "uuid"):
        kind, content = value
        if kind == "map":
            return {plain(key): plain(item) for key, item in content}
        return content if kind == "uuid" else [plain(item) for item in content]
    return value


@dataclass(frozen=True)
class Ovn:
    """home: its folder.  nb, sb: paths of its sockets."""

    home: Path
    environment: Mapping[str, str]

    @property
    def nb(self) -> str:
        return str(self.home / "run" / "nb.sock")

    @property
    def sb(self) -> str:
        return str(self.home / "run" / "sb.sock")

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{PROGRAM.name} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def running(**settings: str) -> Iterator[Ovn]:
    """settings: of `deploy/ovn/ovn`, such as OVN_NB="3"."""
    home = Path(tempfile.mkdtemp(prefix="rso"))  # short: paths of Unix sockets are
    ovn = Ovn(home, {"OVN_HOME": str(home), **settings})
    try:
        ovn.run("up")
        yield ovn
    finally:
        ovn.run("clean")
        shutil.rmtree(home, ignore_errors=True)
