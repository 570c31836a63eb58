"""The simulated cloud without a socket: the product's own engine over `Cloud.handle`, on the loop, without threads.

This is what makes thousands of histories affordable.  Both ways of a request pass one suspension point, so that other
tasks may run between a decision and its request, and between an effect and its answer.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import orjson

from roadstead.clock import Clock
from roadstead.cloud.port import Verdict
from roadstead.cloud.sending import (
    Access,
    Login,
    NotSent,
    Outgoing,
    RawAnswer,
    Unanswered,
    access_of,
    password_body,
)
from roadstead.testing.cloudsim.wire import Request, Response


class Handles(Protocol):
    """The simulated cloud as this module uses it."""

    def handle(self, request: Request) -> Response: ...


class DirectSender:
    """A Sender over simulated clouds; `clouds` is one for all regions or one for each.

    A held-back answer (`Response.delay`) passes on the given clock and is cut at the deadline.
    """

    def __init__(self, clouds: Handles | Mapping[str, Handles], clock: Clock) -> None:
        self._clouds = clouds
        self._clock = clock

    def _cloud(self, region: str) -> Handles:
        if isinstance(self._clouds, Mapping):
            found = self._clouds.get(region)
            if found is None:
                raise NotSent(Verdict.UNAVAILABLE, "the address leads nowhere", connecting=True)
            return found
        return self._clouds

    async def login(self, login: Login, deadline: float) -> Access | RawAnswer:
        request = Outgoing(
            login.region,
            "POST",
            f"{login.auth_url}/auth/tokens",
            json=password_body(login),
            deadline=deadline,
        )
        raw = await self.send(login, request)
        if raw.status != 201:
            return raw
        return access_of(raw.headers["x-subject-token"], orjson.loads(raw.body))

    async def send(self, login: Login, request: Outgoing) -> RawAnswer:
        await asyncio.sleep(0)
        cloud = self._cloud(request.region)
        if request.guard is not None and not request.guard():
            raise NotSent(Verdict.LEASE_LOST)
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = b""
        if request.json is not None:
            body = orjson.dumps(request.json)
            headers["content-type"] = "application/json"
        path = unquote(urlsplit(request.url).path)
        response = cloud.handle(Request(request.method, path, list(request.query), headers, body))
        if response.delay > 0:
            await self._clock.sleep(min(response.delay, request.deadline))
        if response.delay >= request.deadline:
            raise Unanswered("no answer within the deadline")
        answer = _raw(response)
        await asyncio.sleep(0)
        return answer

    async def close(self) -> None:
        """Nothing is held."""


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else orjson.dumps(body)


class DirectAdministrator:
    """The simulated cloud's own administrator, in process; an `Administrator` for configure."""

    _PATHS: Mapping[str, str] = {"identity": "/identity/v3", "network": "/network/v2.0", "image": "/image/v2"}

    def __init__(
        self, cloud: Handles, password: str = "admin", region_name: str | None = "RegionOne"
    ) -> None:
        self._cloud = cloud
        self._password = password
        self.region_name = region_name
        self.auth_url = "http://cloud.invalid/identity/v3"

    async def request(
        self, service: str, method: str, path: str, json: Any = None, query: Mapping[str, str] | None = None
    ) -> RawAnswer:
        await asyncio.sleep(0)
        token = self._token()
        if isinstance(token, RawAnswer):
            return token
        body = b"" if json is None else orjson.dumps(json)
        headers = {"x-auth-token": token, "content-type": "application/json"}
        pairs = list((query or {}).items())
        return _raw(self._cloud.handle(Request(method, self._PATHS[service] + path, pairs, headers, body)))

    def _token(self) -> str | RawAnswer:
        """A token of the administrator's own project, or the refusal."""
        person = {"name": "admin", "password": self._password, "domain": {"id": "default"}}
        body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": person}},
                "scope": {"project": {"name": "admin", "domain": {"id": "default"}}},
            }
        }
        headers = {"content-type": "application/json"}
        answer = _raw(
            self._cloud.handle(Request("POST", "/identity/v3/auth/tokens", [], headers, orjson.dumps(body)))
        )
        return answer.headers["x-subject-token"] if answer.status == 201 else answer


def _raw(response: Response) -> RawAnswer:
    if response.no_answer:
        raise Unanswered("the connection was cut")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return RawAnswer(response.status, headers, _bytes(response.body))
