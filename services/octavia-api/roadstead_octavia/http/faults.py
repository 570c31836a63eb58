"""The bodies that refusals travel in.

A fault (`faultcode`, `faultstring`, `debuginfo`) tells what an operation refused, a routing error (`code`, `title`, `description`) what was
refused on the way to it; the identity layer and the health check have their own.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson

from roadstead_octavia.errors import ApiError

UNEXPECTED = "An unexpected error occurred. Request ID: %s"

TITLES = {413: "Request Entity Too Large"}


class RoutingError(Exception):
    """Refused before any operation.  description: for the client; the root of the API has None where a resource has ''."""

    def __init__(
        self, status: int, description: str | None, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.headers = headers

    def body(self) -> bytes:
        return orjson.dumps(
            {"code": self.status, "title": title(self.status), "description": self.description}
        )


class Unauthenticated(Exception):
    """401.  challenge: of the header WWW-Authenticate."""

    def __init__(self, challenge: str) -> None:
        super().__init__(challenge)
        self.challenge = challenge


def title(status: int) -> str:
    try:
        return TITLES.get(status) or HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def fault(error: ApiError) -> Mapping[str, Any]:
    """The body of an operation's refusal."""
    return {"faultcode": error.faultcode, "faultstring": error.text, "debuginfo": None}


def unexpected(request_id: str) -> ApiError:
    """What a client may know of a fault of ours: the number under which the log has the rest."""
    return ApiError(500, UNEXPECTED % request_id, "Unexpected")


UNAUTHORIZED = orjson.dumps(
    {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }
)
IDENTITY_DOWN = orjson.dumps(
    {
        "error": {
            "code": 503,
            "title": "Service Unavailable",
            "message": "The identity service cannot be reached; try again later.",
        }
    }
)
