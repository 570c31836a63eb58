"""How bytes reach a cloud: what the engine asks of a sender, and the ways in which nothing comes back.

A sender logs in and sends; it decides nothing.  Token lifetimes, verdicts, paging and limits are the engine's, so they
are the same whichever sender stands below.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from roadstead.clock import parse_time
from roadstead.cloud.port import Verdict


@dataclass(frozen=True)
class Login:
    """A password login by user id, scoped to a project or a domain.  Equal logins share clients.

    auth_url ends in /v3.  version: of the credential; a new one makes every client of the scope anew.
    """

    region: str
    version: tuple[int, ...]
    auth_url: str
    user_id: str
    password: str = field(repr=False)
    project_id: str | None = None
    domain_id: str | None = None


@dataclass(frozen=True)
class Access:
    """A token as Keystone gave it, with what it says about whom it is for."""

    token: str = field(repr=False)
    user_id: str
    project_id: str | None
    project_domain_id: str | None
    domain_id: str | None
    roles: frozenset[str]
    expires_at: datetime
    catalog: tuple[Mapping[str, Any], ...] = field(repr=False)
    issued_at: datetime | None = None


@dataclass(frozen=True)
class Outgoing:
    """One HTTP request.  url is absolute and quoted; query pairs are not yet quoted; json None sends no body.

    guard: asked in the last moment; False: not sent.  deadline: seconds left for this request.
    """

    region: str
    method: str
    url: str
    query: tuple[tuple[str, str], ...] = ()
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    guard: Callable[[], bool] | None = None
    deadline: float = 60.0


@dataclass(frozen=True)
class RawAnswer:
    """What came back; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def request_id(self) -> str | None:
        return self.headers.get("x-openstack-request-id") or self.headers.get("x-compute-request-id")


class NotSent(Exception):
    """Nothing left; `verdict` says why.  connecting: the cloud's door was shut, which its circuit counts."""

    def __init__(self, verdict: Verdict, text: str = "", *, connecting: bool = False) -> None:
        super().__init__(text or verdict.value)
        self.verdict = verdict
        self.text = text
        self.connecting = connecting


class Unanswered(Exception):
    """Bytes may have left and no whole answer came."""


class Sender(Protocol):
    """The transport.  Both methods raise NotSent or Unanswered; an HTTP status of any kind is an answer."""

    async def login(self, login: Login, deadline: float) -> Access | RawAnswer:
        """A new token, always from Keystone; or Keystone's refusal as it came."""
        ...

    async def send(self, login: Login, request: Outgoing) -> RawAnswer:
        """Send once: no retry of any kind, no redirect followed.  Headers carry the token already."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads; calls in flight end as they end."""
        ...


def password_body(login: Login) -> dict[str, Any]:
    """The body of POST /v3/auth/tokens."""
    scope: dict[str, Any] = (
        {"project": {"id": login.project_id}} if login.project_id else {"domain": {"id": login.domain_id}}
    )
    user = {"id": login.user_id, "password": login.password}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}


def access_of(token: str, body: Any) -> Access:
    """Read the body of a token answer.  ValueError when it is none."""
    try:
        said = body["token"]
        project = said.get("project") or {}
        return Access(
            token=token,
            user_id=said["user"]["id"],
            project_id=project.get("id"),
            project_domain_id=(project.get("domain") or {}).get("id"),
            domain_id=(said.get("domain") or {}).get("id"),
            roles=frozenset(role["name"] for role in said.get("roles", ())),
            expires_at=parse_time(said["expires_at"]),
            catalog=tuple(said.get("catalog") or ()),
            issued_at=parse_time(said["issued_at"]) if said.get("issued_at") else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the answer is no token: {error!r}") from None
