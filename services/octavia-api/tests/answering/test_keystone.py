"""Asking an identity service about tokens over HTTP."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.http import Front
from roadstead_octavia.http.faults import Unauthenticated
from roadstead_octavia.http.identity import IdentityDown, TokenIdentity, TokenRules
from roadstead_octavia.outside.keystone import Keystone
from roadstead_octavia.outside.service import ServiceUser, service_session
from roadstead_octavia.policy_engine import PolicyEngine


@pytest.fixture
def front() -> Iterator[Front]:
    with Front(Cloud()) as started:
        yield started


@contextlib.contextmanager
def asking(user: ServiceUser) -> Iterator[Keystone]:
    keystone = Keystone(user)
    try:
        yield keystone
    finally:
        keystone.close()


def a_user(front: Front) -> ServiceUser:
    password = front.cloud.settings.admin_password
    return ServiceUser(front.auth_url, "admin", password, "admin", timeout=5.0)


def a_token(user: ServiceUser) -> str:
    return str(service_session(user).get_token())


async def test_a_token_is_looked_up_and_a_revoked_one_is_none(front: Front) -> None:
    user = a_user(front)
    token = await asyncio.to_thread(a_token, user)
    with asking(user) as keystone:
        found = await keystone.look_up(token)
        assert found is not None
        assert (found["user"]["name"], "catalog" in found) == ("admin", False)
        front.cloud.keystone.tokens[token].revoked = True
        assert await keystone.look_up(token) is None
        assert await keystone.look_up("nonsense") is None


async def test_the_service_logs_in_again_when_its_own_token_is_gone(front: Front) -> None:
    user = a_user(front)
    token = await asyncio.to_thread(a_token, user)
    with asking(user) as keystone:
        await keystone.look_up(token)
        for known in front.cloud.keystone.tokens.values():
            known.revoked = known.id != token
        found = await keystone.look_up(token)
        assert found is not None
        assert found["user"]["name"] == "admin"


async def test_a_caller_comes_out_of_a_real_answer(front: Front) -> None:
    user = a_user(front)
    token = await asyncio.to_thread(a_token, user)
    with asking(user) as keystone:
        identity = TokenIdentity(keystone, PolicyEngine().is_admin, TokenRules("http://k/v3"))
        caller = await identity.caller({"x-auth-token": token})
        assert (caller.is_admin, "admin" in caller.roles, caller.system_scope) == (True, True, None)
        assert caller.project_id
        with pytest.raises(Unauthenticated):
            await identity.caller({"x-auth-token": "nonsense"})


async def test_a_password_that_is_wrong_is_a_fault_of_ours_and_no_refusal(front: Front) -> None:
    token = await asyncio.to_thread(a_token, a_user(front))
    with asking(replace(a_user(front), password="wrong")) as keystone, pytest.raises(IdentityDown):
        await keystone.look_up(token)


async def test_an_identity_service_that_is_not_there_is_down() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = ServiceUser(f"http://127.0.0.1:{port}/v3", "u", "p", "service", timeout=2.0)
    with asking(user) as keystone, pytest.raises(IdentityDown):
        await keystone.look_up("t")


async def test_an_identity_service_that_does_not_answer_is_down_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        user = ServiceUser(f"http://127.0.0.1:{silent.getsockname()[1]}/v3", "u", "p", "service", timeout=0.5)
        with asking(user) as keystone, pytest.raises(IdentityDown):
            async with asyncio.timeout(5):
                await keystone.look_up("t")
