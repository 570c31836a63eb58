"""A plain HTTP client of these tests: bytes in, status and JSON out, connections kept; nothing is tried again."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

LBAAS = "/v2/lbaas"
SETTLED_WITHIN = 30.0


@dataclass(frozen=True)
class Reply:
    """body: the JSON read, else the text, None without one."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def fault(self) -> str:
        """The words of a refusal."""
        if isinstance(self.body, Mapping):
            return str(self.body.get("faultstring") or self.body.get("description") or self.body)
        return str(self.body)


class Client:
    """One caller; `call` may run many times at once.  OSError when the connection fails."""

    def __init__(self, url: str, token: str | None, **headers: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 80
        self.headers = {"Accept": "application/json", **headers}
        if token is not None:
            self.headers["X-Auth-Token"] = token
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        within: float = 60.0,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """body: bytes as they are, anything else as JSON; path below /v2/lbaas unless it begins with /."""
        target = path if path.startswith("/") else f"{LBAAS}/{path}"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {**self.headers, "Host": f"{self.host}:{self.port}", "Content-Length": str(len(data))}
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent |= headers or {}
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in sent.items()) + "\r\n"
        async with asyncio.timeout(within):
            reader, writer = await self._connection()
            try:
                writer.write(head.encode() + data)
                await writer.drain()
                reply, keep = await _read(reader, method)
            except BaseException:
                writer.close()
                raise
        if keep:
            self._idle.append((reader, writer))
        else:
            writer.close()
        return reply

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self.host, self.port, limit=2**24)

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    # ------------------------------------------------------------ in short

    async def ok(self, method: str, path: str, body: Any = None) -> Any:
        """The object in the answer's envelope; the answer must be a success."""
        reply = await self.call(method, path, body)
        assert reply.status < 300, f"{method} {path} {body}: {reply.status} {reply.body}"
        if isinstance(reply.body, Mapping) and len(reply.body) == 1:
            return next(iter(reply.body.values()))
        return reply.body

    async def listed(self, path: str) -> list[Any]:
        """The rows of a list."""
        reply = await self.call("GET", path)
        assert reply.status == 200, f"GET {path}: {reply.status} {reply.body}"
        return next(value for name, value in reply.body.items() if not name.endswith("_links"))

    async def settled(self, path: str, within: float = SETTLED_WITHIN) -> Any:
        """The object at the path once it is PENDING no more; None when it is gone."""
        ends = time.monotonic() + within
        while True:
            reply = await self.call("GET", path)
            if reply.status == 404:
                return None
            assert reply.status == 200, f"GET {path}: {reply.status} {reply.body}"
            found = next(iter(reply.body.values()))
            if not found["provisioning_status"].startswith("PENDING"):
                return found
            assert time.monotonic() < ends, f"{path} is {found['provisioning_status']} after {within:g} s"
            await asyncio.sleep(0.05)

    async def active(self, path: str, within: float = SETTLED_WITHIN) -> Any:
        found = await self.settled(path, within)
        assert found is not None, f"{path} is gone"
        assert found["provisioning_status"] == "ACTIVE", f"{path} is {found['provisioning_status']}"
        return found

    async def made(self, kind: str, path: str, below: str, **values: Any) -> Any:
        """An object, made, once its load balancer (id `below`) can be changed again."""
        found = await self.ok("POST", path, {kind: values})
        await self.active(f"loadbalancers/{below}")
        return found

    async def load_balancer(self, **values: Any) -> Any:
        """A load balancer that is ACTIVE."""
        found = await self.ok("POST", "loadbalancers", {"loadbalancer": values})
        return await self.active(f"loadbalancers/{found['id']}")


async def _read(reader: asyncio.StreamReader, method: str) -> tuple[Reply, bool]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    status = int(first.split()[1])
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
    data = b""
    if method != "HEAD" and status not in (204, 304):
        if headers.get("transfer-encoding") == "chunked":
            data = await _chunks(reader)
        else:
            data = await reader.readexactly(int(headers["content-length"]))
    body: Any = None
    if data:
        try:
            body = json.loads(data)
        except ValueError:
            body = data.decode(errors="replace")
    return Reply(status, headers, body), headers.get("connection", "").lower() != "close"


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    data = b""
    while size := int(await reader.readline(), 16):
        data += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return data
