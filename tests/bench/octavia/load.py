"""Sends requests from some threads over kept connections and takes the time of each.

The client is as small as can be, since it runs on the processors that the services run on: ready bytes out, head and body in.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tests.bench.figures import percentile
from tests.bench.octavia.wanted import PROJECT, Request

TIMEOUT = 120.0
CHUNK = 262_144


class BadAnswer(Exception):
    """A request was not answered as it should be; the text has status and body."""


class Connection:
    """One kept connection; made again where the service closes it, as the original's workers do after each answer."""

    def __init__(self, port: int, *, within: float = TIMEOUT) -> None:
        self._port = port
        self._within = within
        self._socket: socket.socket | None = None

    def send(self, request: Request) -> tuple[int, bytes]:
        """Status and body."""
        head = f"{request.method} {request.path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\nx-project-id: {PROJECT}\r\n"
        data = request.data
        if data:
            head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
        ready = f"{head}\r\n".encode() + data
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), self._within)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(ready)
        return self._receive(self._socket)

    def _receive(self, held: socket.socket) -> tuple[int, bytes]:
        seen = b""
        while (end := seen.find(b"\r\n\r\n")) < 0:
            more = held.recv(CHUNK)
            if not more:
                raise BadAnswer(f"the connection ended after {seen[:200]!r}")
            seen += more
        head = seen[:end].lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or b"0")
        parts, have = [seen[end + 4 :]], len(seen) - end - 4
        while have < length:
            more = held.recv(CHUNK)
            if not more:
                raise BadAnswer(f"the connection ended after {have} of {length} bytes")
            parts.append(more)
            have += len(more)
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), b"".join(parts)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@dataclass(frozen=True)
class Slice:
    """Some requests sent in one go.  times: seconds of each; seconds: of all."""

    times: Sequence[float]
    seconds: float
    bodies: Sequence[bytes]


@dataclass(frozen=True)
class Taken:
    """rate: per second; p50, p95: milliseconds."""

    count: int
    rate: float
    p50: float
    p95: float
    bytes: int


def taken(slices: Sequence[Slice]) -> Taken:
    """What several goes come to together."""
    times = [seconds for one in slices for seconds in one.times]
    rate = len(times) / sum(one.seconds for one in slices)
    halves = percentile(times, 0.5) * 1000, percentile(times, 0.95) * 1000
    return Taken(len(times), rate, *halves, len(slices[-1].bodies[-1]))


def load(ports: Sequence[int], requests: Sequence[Request], clients: int, wanted: int) -> Slice:
    """Send all of them, clients at a time, each client to one of the ports in turn.  BadAnswer for one that is not `wanted`."""
    todo: Iterator[Request] = iter(requests)
    lock, times, bodies, faults = threading.Lock(), list[float](), list[bytes](), list[Exception]()

    def work(connection: Connection) -> None:
        while not faults:
            with lock:
                request = next(todo, None)
            if request is None:
                break
            began = time.perf_counter()
            status, body = connection.send(request)
            took = time.perf_counter() - began
            if status != wanted:
                raise BadAnswer(f"{request.method} {request.path}: {status} {body[:300]!r}")
            times.append(took)
            bodies.append(body)

    def guarded(connection: Connection) -> None:
        try:
            work(connection)
        except (BadAnswer, OSError, ValueError) as fault:
            faults.append(fault)
        finally:
            connection.close()

    connections = [Connection(ports[number % len(ports)]) for number in range(clients)]
    took = _timed([partial(guarded, connection) for connection in connections])
    if faults:
        raise faults[0]
    return Slice(times, took, bodies)


def _timed(works: Sequence[Callable[[], None]]) -> float:
    threads = [threading.Thread(target=work) for work in works]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began
