"""From headers to a caller: tokens, what is remembered of them, and what is never believed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roadstead_octavia.http.faults import Unauthenticated
from roadstead_octavia.http.identity import HeaderIdentity, IdentityDown, TokenIdentity, TokenRules
from roadstead_octavia.policy_engine import PolicyEngine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES = TokenRules("http://keystone/v3", ttl=60, size=3)


def a_token(*roles: str, project: str | None = "p1", minutes: float = 60, **more: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "user": {"id": "u1", "domain": {"id": "default"}},
        "roles": [{"id": r, "name": r} for r in roles],
        "expires_at": (NOW + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z"),
    }
    if project:
        content["project"] = {"id": project, "domain": {"id": "default"}}
    return content | more


@dataclass
class Asked:
    """An identity service that knows some tokens."""

    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    expired: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, bool]] = field(default_factory=list)
    gate: asyncio.Event | None = None
    fault: str = ""

    async def look_up(self, token: str, *, allow_expired: bool = False) -> Mapping[str, Any] | None:
        self.asked.append((token, allow_expired))
        if self.gate is not None:
            await self.gate.wait()
        if self.fault:
            raise IdentityDown(self.fault)
        return self.known.get(token) or (self.expired.get(token) if allow_expired else None)


class Clock:
    time = 1000.0

    def __call__(self) -> float:
        return self.time


def an_identity(keystone: Asked, rules: TokenRules = RULES) -> tuple[TokenIdentity, Clock]:
    clock = Clock()
    made = TokenIdentity(keystone, PolicyEngine().is_admin, rules, clock=clock, now=lambda: NOW)
    return made, clock


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"x-auth-token": token, **{k.replace("_", "-"): v for k, v in more.items()}}


async def test_a_token_says_who_asks() -> None:
    identity, _ = an_identity(Asked({"t": a_token("member", "reader")}))
    got = await identity.caller(bearer("t"))
    assert (got.user_id, got.project_id, got.roles) == ("u1", "p1", ("member", "reader"))
    assert (got.is_admin, got.system_scope, got.token) == (False, None, "t")
    assert got.credentials["roles"] == ["member", "reader"]


async def test_headers_that_name_an_identity_are_never_looked_at() -> None:
    identity, _ = an_identity(Asked({"t": a_token("reader")}))
    got = await identity.caller(
        bearer(
            "t",
            x_project_id="victim",
            x_roles="admin",
            x_user_id="root",
            x_identity_status="Confirmed",
            x_service_roles="service",
            openstack_system_scope="all",
        )
    )
    assert (got.user_id, got.project_id, got.roles, got.is_admin) == ("u1", "p1", ("reader",), False)
    assert "victim" not in str(got.credentials)
    assert "service_roles" not in got.credentials
    with pytest.raises(Unauthenticated):
        await identity.caller(
            {"x-project-id": "victim", "x-roles": "admin", "x-identity-status": "Confirmed"}
        )


async def test_an_administrator_is_one_by_the_policy_and_not_with_a_system_token() -> None:
    keystone = Asked({"a": a_token("admin"), "s": a_token("admin", project=None, system={"all": True})})
    identity, _ = an_identity(keystone)
    assert (await identity.caller(bearer("a"))).is_admin
    system = await identity.caller(bearer("s"))
    assert (system.system_scope, system.project_id, system.is_admin) == ("all", None, False)


@pytest.mark.parametrize(
    "headers", [{}, {"x-auth-token": ""}, {"x-auth-token": "x" * 20_000}, {"x-auth-token": "?"}]
)
async def test_without_a_token_that_is_known_nobody_is_let_in(headers: dict[str, str]) -> None:
    identity, _ = an_identity(Asked())
    with pytest.raises(Unauthenticated) as caught:
        await identity.caller(headers)
    assert caught.value.challenge == 'Keystone uri="http://keystone/v3"'


async def test_a_token_is_asked_about_once_in_its_time_and_a_revoked_one_is_refused_after_it() -> None:
    keystone = Asked({"t": a_token("reader")})
    identity, clock = an_identity(keystone)
    for _ in range(3):
        await identity.caller(bearer("t"))
    assert len(keystone.asked) == 1
    del keystone.known["t"]
    clock.time += 59
    await identity.caller(bearer("t"))
    clock.time += 2
    with pytest.raises(Unauthenticated):
        await identity.caller(bearer("t"))


async def test_a_token_is_not_believed_longer_than_it_lives() -> None:
    keystone = Asked({"t": a_token("reader", minutes=0.5)})
    identity, clock = an_identity(keystone)
    await identity.caller(bearer("t"))
    keystone.known.clear()
    clock.time += 31
    with pytest.raises(Unauthenticated):
        await identity.caller(bearer("t"))


@pytest.mark.parametrize("expires", ["2025-12-31T23:59:59Z", "never", None])
async def test_a_token_that_ran_out_or_says_no_time_is_none(expires: str | None) -> None:
    identity, _ = an_identity(Asked({"t": {**a_token("reader"), "expires_at": expires}}))
    with pytest.raises(Unauthenticated):
        await identity.caller(bearer("t"))


async def test_a_token_that_there_is_not_is_remembered_for_a_while() -> None:
    keystone = Asked()
    identity, clock = an_identity(keystone)
    for _ in range(5):
        with pytest.raises(Unauthenticated):
            await identity.caller(bearer("t"))
    assert len(keystone.asked) == 1
    keystone.known["t"] = a_token("reader")
    clock.time += 11
    assert (await identity.caller(bearer("t"))).user_id == "u1"


async def test_requests_with_the_same_new_token_ask_once() -> None:
    keystone = Asked({"t": a_token("reader")}, gate=asyncio.Event())
    identity, _ = an_identity(keystone)
    waiting = [asyncio.create_task(identity.caller(bearer("t"))) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # the first one leaves; the others get their answer
    await asyncio.sleep(0)
    assert keystone.gate is not None
    keystone.gate.set()
    found = await asyncio.gather(*waiting[1:])
    assert len(keystone.asked) == 1
    assert {caller.user_id for caller in found} == {"u1"}


async def test_no_more_tokens_than_told_are_remembered() -> None:
    keystone = Asked({f"t{n}": a_token("reader") for n in range(5)})
    identity, _ = an_identity(keystone)
    for n in (0, 1, 2, 0, 3, 4):  # t0 was used again, t1 and t2 go
        await identity.caller(bearer(f"t{n}"))
    keystone.asked.clear()
    for n in (0, 3, 4, 1):
        await identity.caller(bearer(f"t{n}"))
    assert keystone.asked == [("t1", False)]


async def test_what_cannot_be_known_is_no_refusal_and_is_asked_again() -> None:
    keystone = Asked({"t": a_token("reader")}, fault="no answer within 10 s")
    identity, _ = an_identity(keystone)
    with pytest.raises(IdentityDown):
        await identity.caller(bearer("t"))
    keystone.fault = ""
    assert (await identity.caller(bearer("t"))).user_id == "u1"


# ---------------------------------------------------------------- service tokens


async def test_a_token_that_ran_out_counts_beside_a_services_token() -> None:
    keystone = Asked(
        {"s": a_token("service", project="svc")}, expired={"old": a_token("member", minutes=-90)}
    )
    identity, _ = an_identity(keystone)
    got = await identity.caller(bearer("old", x_service_token="s"))
    assert (got.project_id, got.roles) == ("p1", ("member",))
    assert got.credentials["service_roles"] == ["service"]
    with pytest.raises(Unauthenticated):
        await identity.caller(bearer("old"))


async def test_a_service_token_without_the_role_lets_no_expired_token_in() -> None:
    keystone = Asked({"s": a_token("member")}, expired={"old": a_token("member", minutes=-90)})
    identity, _ = an_identity(keystone)
    with pytest.raises(Unauthenticated):
        await identity.caller(bearer("old", x_service_token="s"))


async def test_a_service_token_that_there_is_not_is_a_refusal() -> None:
    identity, _ = an_identity(Asked({"t": a_token("member")}))
    with pytest.raises(Unauthenticated):
        await identity.caller(bearer("t", x_service_token="nonsense"))


# ---------------------------------------------------------------- development


async def test_noauth_makes_everybody_an_administrator_of_the_project_in_the_headers() -> None:
    identity = HeaderIdentity(PolicyEngine().is_admin, everybody_is_admin=True)
    got = await identity.caller({"x-project-id": "p", "x-user-id": "u"})
    assert (got.project_id, got.user_id, got.is_admin) == ("p", "u", True)
    assert (await identity.caller({})).project_id is None


async def test_testing_takes_the_roles_from_the_headers() -> None:
    identity = HeaderIdentity(PolicyEngine().is_admin, everybody_is_admin=False)
    got = await identity.caller({"x-tenant-id": "p", "x-roles": "member, reader"})
    assert (got.project_id, got.roles, got.is_admin) == ("p", ("member", "reader"), False)
    assert (await identity.caller({"x-roles": "admin"})).is_admin
