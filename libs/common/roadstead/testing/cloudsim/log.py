"""Every call the cloud was sent, in order, with who made it and what it was answered.

The log is what tests assert against: which writes were made, by whom, in which scope.
Secrets in bodies are masked before an entry is kept.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

_SECRET_KEYS = frozenset(
    {"password", "original_password", "secret", "adminPass", "private_key", "original_secret"}
)
_MASK = "***"
READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(slots=True)
class Call:
    """One call; `scope` is project, domain, system, unscoped or none (no valid token)."""

    sequence: int
    at: datetime
    request_id: str
    service: str
    method: str
    path: str
    query: list[tuple[str, str]]
    body: Any
    status: int
    user_id: str | None = None
    user_name: str | None = None
    scope: str = "none"
    project_id: str | None = None
    domain_id: str | None = None
    roles: tuple[str, ...] = field(default_factory=tuple)
    no_answer: bool = False
    fault: str | None = None
    took_effect: bool = True
    """False when a fault answered instead of the service."""

    @property
    def is_write(self) -> bool:
        """True for calls that may change something (authentication is not one of them)."""
        return self.method not in READS and not (
            self.service == "identity" and self.path.endswith("/auth/tokens")
        )

    def as_json(self) -> dict[str, Any]:
        """The entry with JSON values only."""
        row = asdict(self)
        row["at"] = self.at.isoformat()
        return row


class Log:
    """The calls of one cloud, oldest first; the oldest go when `limit` is passed."""

    def __init__(self, limit: int) -> None:
        self._calls: deque[Call] = deque(maxlen=limit)

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def add(self, call: Call) -> None:
        self._calls.append(call)

    def clear(self) -> None:
        """Forget all calls; sequence numbers go on."""
        self._calls.clear()

    def calls(
        self,
        *,
        service: str | None = None,
        method: str | None = None,
        path: str | None = None,
        body: str | None = None,
        user: str | None = None,
        scope: str | None = None,
        project_id: str | None = None,
        status: int | None = None,
        since: int = 0,
    ) -> list[Call]:
        """Calls that match every given criterion.

        `path` and `body` are regular expressions found anywhere (the body as JSON text),
        `user` is a name or an id, `since` the first sequence number wanted.
        """
        path_re = re.compile(path) if path else None
        body_re = re.compile(body) if body else None
        return [
            call
            for call in self._calls
            if call.sequence >= since
            and (service is None or call.service == service)
            and (method is None or call.method == method)
            and (path_re is None or path_re.search(call.path))
            and (body_re is None or body_re.search(json.dumps(call.body)))
            and (user is None or user in (call.user_name, call.user_id))
            and (scope is None or call.scope == scope)
            and (project_id is None or call.project_id == project_id)
            and (status is None or call.status == status)
        ]

    def writes(self, *, since: int = 0, service: str | None = None) -> list[Call]:
        """Calls that are not reads, whatever they were answered; see `Call.is_write`."""
        return [call for call in self.calls(since=since, service=service) if call.is_write]


def masked(value: Any) -> Any:
    """A copy of a JSON value without secrets: passwords, secrets, private keys, token ids in auth."""
    if isinstance(value, dict):
        return {
            key: _MASK if key in _SECRET_KEYS and not isinstance(item, dict) else _masked_item(key, item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def _masked_item(key: str, item: Any) -> Any:
    if key == "token" and isinstance(item, dict) and "id" in item:
        return {**masked(item), "id": _MASK}
    return masked(item)


def body_for_log(body: bytes, content_type: str) -> Any:
    """The body as it is kept: masked JSON, or its length for anything else."""
    if not body:
        return None
    if "octet-stream" in content_type:
        return {"bytes": len(body)}
    try:
        return masked(json.loads(body))
    except ValueError:
        return {"bytes": len(body)}
