"""The cloud behind a socket: a bare ASGI application, served by uvicorn.

`Front` runs in a thread of its own (`with Front(cloud) as front: front.url`) or in the
caller's loop (`await front.run()`). A call that the cloud does not answer ends with a
reset connection, as when a proxy dies.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl

import orjson
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .cloud import Cloud
from .wire import Request, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_CUT = "roadstead.cut"
START_LIMIT = 10.0


class _CuttingProtocol(H11Protocol):
    """uvicorn's protocol, with the means to drop the connection handed to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # narrower in uvicorn
        super().connection_made(transport)
        inner = self.app

        async def with_cut(scope: Scope, receive: Receive, send: Send) -> None:
            scope[_CUT] = transport.abort
            await inner(scope, receive, send)

        self.app = with_cut


def application(cloud: Cloud) -> Application:
    """The ASGI application of a cloud; HTTP only."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the simulated cloud speaks http only, not {scope['type']}")
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        response = cloud.handle(_request(scope, bytes(body)))
        if response.delay:
            await asyncio.sleep(response.delay)
        if response.no_answer:
            scope[_CUT]()
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await _reply(response, send)

    return app


def _request(scope: Scope, body: bytes) -> Request:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return Request(scope["method"], scope["path"], query, headers, body)


def _encoded(body: Any) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode()  # an IPv6 network has more addresses than 64 bits count


async def _reply(response: Response, send: Send) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
    given = {name.lower() for name in response.headers}
    if response.body is None:
        payload = b""
    elif isinstance(response.body, bytes):
        payload = response.body
    else:
        payload = _encoded(response.body)
        if "content-type" not in given:
            headers.append((b"Content-Type", b"application/json"))
    if "content-length" not in given and response.status != 204:
        headers.append((b"Content-Length", str(len(payload)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": payload})


class Front:
    """A cloud served over HTTP; port 0 takes a free one, and the catalog names the real one."""

    def __init__(self, cloud: Cloud, host: str = "127.0.0.1", port: int = 0) -> None:
        self.cloud = cloud
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError:
            self._socket.close()
            raise
        self.host, self.port = host, int(self._socket.getsockname()[1])
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.port}"
        cloud.settings.base_url = self.url
        config = uvicorn.Config(
            application(cloud),
            http=_CuttingProtocol,
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def auth_url(self) -> str:
        """What goes into clouds.yaml as auth_url."""
        return f"{self.url}/identity/v3"

    async def run(self) -> None:
        """Serve in the running loop until cancelled or stopped."""
        await self._server.serve(sockets=[self._socket])

    def start(self) -> Front:
        """Serve in a thread; returns when calls are answered."""
        self._thread = threading.Thread(target=self._run_in_thread, name=f"cloudsim-{self.port}", daemon=True)
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(START_LIMIT / 0.01)):
            if self._server.started:
                return self
            if not self._thread.is_alive():
                break
            waited.wait(0.01)
        raise RuntimeError(f"the simulated cloud did not start on {self.url}")

    def _run_in_thread(self) -> None:
        asyncio.run(self.run())

    def stop(self) -> None:
        """End serving; returns when the port is free again."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(START_LIMIT)
        self._socket.close()

    def __enter__(self) -> Front:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def clouds_yaml(self, name: str = "sim") -> str:
        """The entry of clouds.yaml for the cloud administrator."""
        return clouds_yaml(
            self.auth_url, self.cloud.settings.admin_password, self.cloud.settings.region_name, name
        )


def clouds_yaml(auth_url: str, password: str, region: str = "RegionOne", name: str = "sim") -> str:
    """A clouds.yaml with one cloud: project and user admin in the domain Default."""
    return f"""clouds:
  {name}:
    auth:
      auth_url: {auth_url}
      username: admin
      password: {password}
      project_name: admin
      user_domain_name: Default
      project_domain_name: Default
    region_name: {region}
    identity_api_version: 3
"""


def serve(cloud: Cloud, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve until interrupted."""
    asyncio.run(Front(cloud, host, port).run())
