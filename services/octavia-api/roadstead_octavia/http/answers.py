"""An answer as bytes, and the sending of it."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import orjson

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = tuple[tuple[str, str], ...]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = "application/json"
XML = "application/xml; charset=UTF-8"
TEXT = "text/plain; charset=UTF-8"
HTML = "text/html; charset=UTF-8"


@dataclass(frozen=True, slots=True)
class Response:
    """content_type None: the answer has no body and says nothing about one."""

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: Headers = ()


def json_response(status: int, body: Any, headers: Headers = ()) -> Response:
    return Response(status, orjson.dumps(body), JSON, headers)


async def send_response(send: Send, response: Response, more: Headers, *, without_body: bool) -> None:
    """more: headers that every answer has.  without_body: the request was HEAD."""
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in (*more, *response.headers)
    ]
    if response.content_type is not None:
        headers.append((b"content-type", response.content_type.encode("latin-1")))
    if response.status != 204:
        headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if without_body else response.body})
