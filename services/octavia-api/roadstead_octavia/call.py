"""A request on its way through an operation: who asks (`Caller`), what (`Call`), what the operation may use (`Parts`), what comes back.

An operation is `async def name(call: Call) -> Answer`; it raises `ApiError` to refuse.  It holds no state of its own and reads no
setting but through `call.options`.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from roadstead_octavia.db import port as db
from roadstead_octavia.options import Options
from roadstead_octavia.outside.keys import Keys
from roadstead_octavia.outside.network import Network
from roadstead_octavia.policy import Policy
from roadstead_octavia.provider.port import Provider


@dataclass(frozen=True)
class Caller:
    """Who asks.  credentials: what the policy engine is given.  token: for look-ups in the caller's name."""

    user_id: str | None
    project_id: str | None
    roles: tuple[str, ...] = ()
    is_admin: bool = False
    system_scope: str | None = None
    token: str | None = None
    credentials: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """status, and the body as plain values (None: no body).  Names in a body are the wire's."""

    status: int
    body: Mapping[str, Any] | None = None


def _now() -> datetime:
    # The original's columns and answers carry UTC without a zone.
    return datetime.now(UTC).replace(tzinfo=None)


@dataclass(frozen=True)
class Parts:
    """What operations stand on; the adapter of the conformance tests puts its own in."""

    database: db.Database
    provider: Provider
    network: Network
    keys: Keys
    policy: Policy
    dispatch: Callable[
        [db.Operation, db.Tree, int], None
    ]  # after the commit: publish it; must not raise or wait
    now: Callable[[], datetime] = _now
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())


@dataclass(frozen=True)
class Call:
    """One request.

    ids: ids from the path in order, e.g. (pool id, member id).  query: arguments in order, as often as they came.
    body: the root object read by the resource's description (wire names; an absent key was not sent, None was null), {} without one.
    """

    caller: Caller
    options: Options
    parts: Parts
    ids: tuple[str, ...] = ()
    query: Sequence[tuple[str, str]] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""  # scheme://host/path as the client wrote it; links are made from it
    request_id: str = ""


Operation = Callable[[Call], Awaitable[Answer]]
