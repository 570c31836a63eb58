"""The OVSDB library's connection with a fast reader: whole messages are cut out of the stream and read by orjson.

The library parses JSON character by character in Python, which takes minutes for a copy of a large database; nothing else of it is replaced.
docs/adr/0024-the-ovsdb-library-drives-and-we-read.md has the numbers.
"""

import errno
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import ovs.jsonrpc
import ovs.reconnect
import ovs.stream
import ovs.timeval

CHUNK = 256 * 1024
EOF = ovs.jsonrpc.EOF

# Everything up to the next brace outside of a text. Possessive: it never goes back over what it has read.
_TO_BRACE = re.compile(rb'(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+([{}])', re.DOTALL)


class Frames:
    """Cuts a stream of JSON objects into objects.  has_more: a further one may be there already."""

    def __init__(self) -> None:
        self.has_more = False
        self._buffer = bytearray()
        self._at = 0
        self._depth = 0

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> bytes | None:
        """The next whole object, or None while it is not there."""
        while (match := _TO_BRACE.match(self._buffer, self._at)) is not None:
            self._at = match.end()
            self._depth += 1 if match[1] == b"{" else -1
            if self._depth <= 0:
                frame = bytes(self._buffer[: self._at])
                # The match holds on to the buffer, which must not change its size meanwhile.
                del match
                del self._buffer[: self._at]
                self._at = self._depth = 0
                self.has_more = bool(self._buffer)
                return frame
        self.has_more = False
        return None


class Wire(ovs.jsonrpc.Connection):  # type: ignore[misc]  # the library has no types
    """One connection: the library's, but for how bytes become messages and back."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.output: bytes = b""
        self._frames = Frames()

    def send(self, msg: Any) -> int:
        if self.status:
            return int(self.status)
        was_empty = not self.output
        self.output += orjson.dumps(msg.to_json())
        if was_empty:
            self.run()
        return int(self.status)

    def recv(self) -> tuple[int, Any]:
        if self.status:
            return self.status, None
        while True:
            if (frame := self._frames.next()) is not None:
                return self._message(frame)
            error, data = self.stream.recv(CHUNK)
            if error == errno.EAGAIN:
                return error, None
            if error or not data:
                self.error(error or EOF)
                return self.status, None
            self.received_bytes += len(data)
            self._frames.feed(data)

    def _message(self, frame: bytes) -> tuple[int, Any]:
        try:
            message = ovs.jsonrpc.Message.from_json(orjson.loads(frame))
        except orjson.JSONDecodeError:
            message = None
        if not isinstance(message, ovs.jsonrpc.Message):
            self.error(errno.EPROTO)
            return self.status, None
        return 0, message

    def recv_wait(self, poller: Any) -> None:
        # The last read may have brought more messages than were taken; the socket says nothing of those.
        if self.status or self._frames.has_more:
            poller.immediate_wake()
        else:
            self.stream.recv_wait(poller)


class WireSession(ovs.jsonrpc.Session):  # type: ignore[misc]  # the library has no types
    """A session that puts the fast reader on every connection it makes.

    refused: the text of the last error answer that was no answer to a transaction, such as to a request for columns that are not there.
    """

    refused = ""
    rpc: Any

    def run(self) -> None:
        super().run()
        if self.rpc is not None and not isinstance(self.rpc, Wire):
            self.rpc = Wire(self.rpc.stream)

    def recv(self) -> Any:
        message = super().recv()
        if message is not None and message.type == ovs.jsonrpc.Message.T_ERROR:
            self.refused = str(message.error)
        return message


@dataclass(frozen=True)
class Bounds:
    """Seconds.  probe: silence after which the peer is asked for an echo, and as long again until it counts as lost; 0: never."""

    probe: float = 10.0
    first_retry: float = 0.1
    longest_retry: float = 8.0
    reply: float = 10.0


def open_session(remotes: Sequence[str], bounds: Bounds) -> WireSession:
    """remotes: one of them is connected to at a time; the next one is tried when it is lost or will not do."""
    now = ovs.timeval.msec()
    reconnect = ovs.reconnect.Reconnect(now)
    reconnect.set_quiet(True)
    reconnect.set_backoff(int(bounds.first_retry * 1000), int(bounds.longest_retry * 1000))
    session = WireSession(reconnect, None, list(remotes))
    session.pick_remote()
    reconnect.enable(now)
    reconnect.set_backoff_free_tries(len(remotes))
    needs = ovs.stream.stream_or_pstream_needs_probes(reconnect.get_name())
    reconnect.set_probe_interval(int(bounds.probe * 1000) if needs else 0)
    return session


@dataclass(frozen=True)
class TlsFiles:
    """Paths of PEM files."""

    private_key: str
    certificate: str
    authority: str


_TLS = threading.Lock()


def register_tls(method: str, files: TlsFiles) -> None:
    """Remotes `method:HOST:PORT` are reached with these files; the library itself knows one set for the whole process."""

    class Stream(ovs.stream.SSLStream):  # type: ignore[misc]  # the library has no types
        @staticmethod
        def _open(suffix: str, dscp: int) -> Any:
            with _TLS:
                ovs.stream.Stream.ssl_set_private_key_file(files.private_key)
                ovs.stream.Stream.ssl_set_certificate_file(files.certificate)
                ovs.stream.Stream.ssl_set_ca_cert_file(files.authority)
                return ovs.stream.SSLStream._open(suffix, dscp)

    ovs.stream.Stream.register_method(method, Stream)
