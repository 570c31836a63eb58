"""The one way to the cloud: `await cloud.call(Call(scope, service, verb, args)) -> Answer`.

A call is data: who asks (scope), what (an entry of `operations.py`), with which arguments.  What stands behind the port
decides how the bytes travel; what an answer means is decided by `verdicts.py` alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


@dataclass(frozen=True)
class RegionDomain:
    """The region's service user with a token of the managed domain: users, projects, role grants; nothing else."""

    region: str


@dataclass(frozen=True)
class RegionProject:
    """The region's service user in the region's own project: inventory only."""

    region: str


@dataclass(frozen=True)
class Principal:
    """The identity's own user in the identity's project: the workload."""

    region: str
    identity: str


@dataclass(frozen=True)
class PrivilegedPrincipal:
    """The region's service user in the identity's project: quotas, networks, security groups."""

    region: str
    identity: str


Scope = RegionDomain | RegionProject | Principal | PrivilegedPrincipal


class Verdict(StrEnum):
    """What an answer means to a pass (errors.md section 3, lab scopes section 5)."""

    GONE = "gone"  # the named object is not there, proved
    CONFLICT = "conflict"  # refused in the present state; passes by itself
    BUSY = "busy"  # a task runs on it (409 of a rebuild, PENDING of a load balancer)
    IN_USE = "in_use"  # something else still needs it
    EXISTS = "exists"  # one of that name, grant or attachment is there already
    QUOTA = "quota"  # a limit that somebody set is reached
    EXHAUSTED = "exhausted"  # the cloud itself has none left: addresses, hosts, storage
    REFUSED = "refused"  # the request itself is wrong
    IMAGE_NOT_FOUND = "image_not_found"  # 400 of a rebuild with Nova's signature text
    FORBIDDEN = "forbidden"
    UNAUTHORIZED = "unauthorized"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"  # 5xx, no endpoint, circuit open: nothing was done
    UNKNOWN = "unknown"  # no answer: the request may have taken effect
    CONSISTENCY = "consistency"  # several matches, a malformed answer
    NOT_SUPPORTED = "not_supported"  # 501 of a provider, 406 of a version
    WRONG_CLOUD = "wrong_cloud"
    KEY = "key"  # a credential lacks a key
    LEASE_LOST = "lease_lost"  # our own guard: the request never left


@dataclass(frozen=True)
class Call:
    """One operation of `operations.py`, e.g. Call(Principal(r, i), "compute", "server.create", {"json": {...}}).

    args: path parameters by name, and optionally `query` (mapping; None values are dropped) and `json`.
    guard: asked in the last moment before the bytes leave (and on the sending thread); False: nothing is sent and the
    call raises LEASE_LOST.
    deadline: seconds for the whole call, retries and paging included; None: the executor's default.
    """

    scope: Scope
    service: str
    verb: str
    args: Mapping[str, Any] = field(default_factory=dict)
    guard: Callable[[], bool] | None = None
    deadline: float | None = None


@dataclass(frozen=True)
class Answer:
    """What the cloud said: the object (unwrapped from its envelope), the whole list (every page), or None.

    read_started_at: when the first request of this call began, our clock.
    requests: how many HTTP requests it took.
    """

    value: Any
    status: int
    request_id: str | None
    read_started_at: datetime
    requests: int = 1


class CloudError(Exception):
    """A call that did not succeed.  `text` is the cloud's own and for the log only, never for users.

    silent: the cloud gave no answer of any kind, or was not asked because it gave none lately.
    """

    def __init__(
        self,
        verdict: Verdict,
        call: Call | None = None,
        *,
        status: int | None = None,
        text: str = "",
        request_id: str | None = None,
        retry_after: float | None = None,
        silent: bool = False,
    ) -> None:
        where = f"{call.service} {call.verb}" if call else "cloud"
        super().__init__(f"{where}: {verdict.value}" + (f" ({status})" if status else ""))
        self.verdict = verdict
        self.call = call
        self.status = status
        self.text = text
        self.request_id = request_id
        self.retry_after = retry_after
        self.silent = silent

    @classmethod
    def lease_lost(cls) -> "CloudError":
        """Our own guard: another replica may hold the row, so nothing was sent."""
        return cls(Verdict.LEASE_LOST)


class Cloud(Protocol):
    """The port."""

    async def call(self, call: Call) -> Answer:
        """Perform one operation.  Raises CloudError; a list is complete or an error."""
        ...
