"""A plain OVSDB session over Unix sockets: one transaction at a time, by whichever member of a cluster answers.

Values are Python's: str, int, bool, a list for a set, a dict for a map, `UUID` or `NamedUUID` for a reference.
"""

import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

SECONDS = 10.0
CHUNK = 1 << 20


class OvsdbError(Exception):
    """No member answers, or the connection ended; what was sent may have been carried out."""


class OvsdbRefused(Exception):
    """The database refused the transaction; nothing of it was carried out."""


class UUID(str):
    """A reference to a row."""

    __slots__ = ()


class NamedUUID(str):
    """A reference to a row that the same transaction inserts under that name."""

    __slots__ = ()


def encoded(value: Any) -> Any:
    """A value in the wire's notation."""
    if isinstance(value, UUID):
        return ["uuid", str(value)]
    if isinstance(value, NamedUUID):
        return ["named-uuid", str(value)]
    if isinstance(value, Mapping):
        return ["map", [[encoded(key), encoded(item)] for key, item in value.items()]]
    if isinstance(value, list | tuple | set | frozenset):
        return ["set", [encoded(item) for item in value]]
    return value


def decoded(value: Any) -> Any:
    """A value of the wire; a set of one is its only element, as the wire has it."""
    if isinstance(value, list) and len(value) == 2:
        kind, content = value
        if kind == "map":
            return {decoded(key): decoded(item) for key, item in content}
        if kind == "set":
            return [decoded(item) for item in content]
        if kind == "uuid":
            return UUID(content)
    return value


def as_list(value: Any) -> list[Any]:
    """A decoded set as a list, however many it holds."""
    return value if isinstance(value, list) else [value]


class Session:
    """`remotes`: comma-joined `unix:PATH` or `tcp:HOST:PORT`.  Connects when first used, and again after a failure."""

    def __init__(self, remotes: str, database: str = "OVN_Northbound") -> None:
        self.remotes = [part for part in remotes.split(",") if part]
        self.database = database
        self._socket: socket.socket | None = None
        self._left = ""
        self._number = 0

    def close(self) -> None:
        """End the connection; the next transaction makes a new one."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
        self._socket, self._left = None, ""

    def select(
        self, table: str, columns: Sequence[str], where: Sequence[Sequence[Any]] = ()
    ) -> list[dict[str, Any]]:
        """Rows of a table, decoded."""
        operation = {"op": "select", "table": table, "where": list(where), "columns": list(columns)}
        rows = self.transact(operation)[0]["rows"]
        return [{name: decoded(value) for name, value in row.items()} for row in rows]

    def transact(self, *operations: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Carry out all operations or none, and return their results.  OvsdbError, OvsdbRefused."""
        self._number += 1
        try:
            connection = self._connected()
            message = {"method": "transact", "id": self._number, "params": [self.database, *operations]}
            connection.sendall(json.dumps(message).encode())
            reply = self._reply(connection)
        except OSError as error:
            self.close()
            raise OvsdbError(f"the database {self.database} does not answer: {error}") from error
        if reply.get("error"):
            self.close()  # a member that has lost its cluster says so here; another one may be better
            raise OvsdbError(f"the database {self.database} answered {reply['error']}")
        results = reply["result"]
        for result in results:
            if result and result.get("error"):
                raise OvsdbRefused(f"{result['error']}: {result.get('details', '')}")
        return [result or {} for result in results]

    def _connected(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        failure: OSError = OSError("no remote is named")
        for remote in self.remotes:
            kind, _, place = remote.partition(":")
            try:
                if kind == "unix":
                    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    made.settimeout(SECONDS)
                    made.connect(place)
                else:
                    host, _, port = place.rpartition(":")
                    made = socket.create_connection((host.strip("[]"), int(port)), SECONDS)
            except OSError as error:
                failure = error
                continue
            self._socket = made
            return made
        raise failure

    def _reply(self, connection: socket.socket) -> dict[str, Any]:
        decoder = json.JSONDecoder()
        while True:
            self._left = self._left.lstrip()
            try:
                message, end = decoder.raw_decode(self._left)
            except ValueError:
                data = connection.recv(CHUNK)
                if not data:
                    raise ConnectionResetError("the connection ended") from None
                self._left += data.decode()
                continue
            self._left = self._left[end:]
            if message.get("method") == "echo":
                answer = {"id": message["id"], "error": None, "result": message["params"]}
                connection.sendall(json.dumps(answer).encode())
            elif message.get("id") == self._number:
                return dict(message)
