"""The request and the response that cross the simulator's boundary.

They are plain values: the HTTP front turns bytes into them and back, and a test that
wants no network builds them itself and calls `Cloud.handle`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(slots=True)
class Request:
    """One API call; header names are lower-case, the path carries the service prefix."""

    method: str
    path: str
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class Response:
    """One answer.

    `body` is a JSON value, None (no body) or bytes (an image's data). `no_answer` means
    that the connection is cut instead of answering; `delay` is how long, in seconds, the
    HTTP front holds the answer back (a direct caller only reads it).
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    no_answer: bool = False
    delay: float = 0.0


def request(
    method: str,
    url: str,
    body: Any = None,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Request:
    """Build a Request from a path with an optional query; `body` is sent as JSON unless bytes."""
    parts = urlsplit(url)
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    if token is not None:
        sent["x-auth-token"] = token
    if body is None:
        data = b""
    elif isinstance(body, bytes):
        data = body
    else:
        data = json.dumps(body).encode()
        sent.setdefault("content-type", "application/json")
    return Request(method, parts.path, parse_qsl(parts.query, keep_blank_values=True), sent, data)
