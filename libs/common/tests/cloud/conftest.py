"""A clock owned by the test and a sender that answers what the test wrote down."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine, RequestNote
from roadstead.cloud.port import Principal, Verdict
from roadstead.cloud.sending import Access, Login, NotSent, Outgoing, RawAnswer
from roadstead.cloud.settings import CloudSettings

REGION, IDENTITY = "r1", "i1"


class ManualClock:
    """Time that passes only when slept on."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds
        await asyncio.sleep(0)


def reply(status: int, body: Any = None, **headers: str) -> RawAnswer:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return RawAnswer(status, {"x-openstack-request-id": "req-1", **named}, data)


CATALOG: tuple[Mapping[str, Any], ...] = tuple(
    {
        "type": kind,
        "endpoints": [
            {"interface": "public", "region_id": "one", "region": "one", "url": f"http://cloud/{kind}{tail}"},
            {"interface": "internal", "region_id": "one", "region": "one", "url": f"http://inside/{kind}"},
        ],
    }
    for kind, tail in (
        ("compute", "/v2.1"),
        ("network", ""),
        ("volumev3", "/v3/p1"),
        ("image", "/"),
        ("load-balancer", ""),
    )
)


@dataclass
class ScriptedSender:
    """Answers from `script` in order: a RawAnswer, an exception, or a function of the request."""

    clock: ManualClock
    script: list[Any] = field(default_factory=list)
    sent: list[Outgoing] = field(default_factory=list)
    logins: list[Login] = field(default_factory=list)
    token_life: float = 3600.0
    changed: dict[str, Any] = field(default_factory=dict)
    login_answers: list[Any] = field(default_factory=list)
    closed: bool = False

    async def login(self, login: Login, deadline: float) -> Access | RawAnswer:
        self.logins.append(login)
        await asyncio.sleep(0)
        if self.login_answers:
            answer = self.login_answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            assert isinstance(answer, RawAnswer)
            return answer
        facts: dict[str, Any] = {
            "token": f"token-{len(self.logins)}",
            "user_id": login.user_id,
            "project_id": login.project_id,
            "project_domain_id": "d1" if login.project_id else None,
            "domain_id": login.domain_id,
            "roles": frozenset({"member"}),
            "expires_at": self.clock.now() + timedelta(seconds=self.token_life),
            "catalog": CATALOG,
        }
        return Access(**{**facts, **self.changed})

    async def send(self, login: Login, request: Outgoing) -> RawAnswer:
        await asyncio.sleep(0)
        if request.guard is not None and not request.guard():
            raise NotSent(Verdict.LEASE_LOST)
        self.sent.append(request)
        answer = self.script.pop(0)
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, RawAnswer)
        return answer

    async def close(self) -> None:
        self.closed = True


def region_secret(**changes: str) -> dict[str, str]:
    return {"domain-id": "d1", "user-id": "u1", "password": "pw", "project-id": "rp1", **changes}


@dataclass
class Bench:
    """An engine over a scripted sender."""

    clock: ManualClock
    sender: ScriptedSender
    keyring: Keyring
    notes: list[RequestNote]
    make: Callable[..., CloudEngine]


@pytest.fixture
def bench() -> Bench:
    clock = ManualClock()
    keyring = Keyring()
    keyring.put_endpoint(REGION, "http://cloud/identity", "one")
    keyring.put_region_secret(REGION, region_secret(), 1)
    record = {"projectID": "p1", "userID": "pu1", "password": "ppw"}
    keyring.put_identity(REGION, IDENTITY, record, 1)
    sender = ScriptedSender(clock)
    notes: list[RequestNote] = []

    def make(*, on_circuit: Sequence[Callable[[str, bool], None]] = (), **settings: Any) -> CloudEngine:
        known = CloudSettings(**settings)
        return CloudEngine(sender, keyring, clock, known, on_request=notes.append, on_circuit=on_circuit)

    return Bench(clock, sender, keyring, notes, make)


@pytest.fixture
def principal() -> Principal:
    return Principal(REGION, IDENTITY)


@pytest.fixture
def answer() -> Callable[..., RawAnswer]:
    """Builds an answer: status, JSON body or bytes, headers by name."""
    return reply
