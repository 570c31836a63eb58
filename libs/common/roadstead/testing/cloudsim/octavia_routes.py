"""Octavia answers below /v2 and /v2.0 alike; one mark for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .base import route
from .wire import Response

_H = TypeVar("_H", bound=Callable[..., Response])


def lbaas(method: str, path: str) -> Callable[[_H], _H]:
    """Mark a handler of `method` /v2/lbaas`path` and /v2.0/lbaas`path`."""

    def mark(handler: _H) -> _H:
        for version in ("v2", "v2.0"):
            handler = route(method, f"/{version}/lbaas{path}")(handler)
        return handler

    return mark
