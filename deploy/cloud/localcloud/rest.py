"""A small OpenStack client: a login, its catalogue, one request at a time.

Used for seeding and for the check, so that neither waits for a large library to load
and a test sees the services' own answers.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.console import CloudError

REQUEST_LIMIT_SECONDS = 60.0

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of one answer; body is None when there was none or it was no JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any
    text: str


def request(
    method: str, url: str, *, token: str | None = None, body: Any = None, raw: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:  # fmt: skip
    """One HTTP request; every status is an answer, no connection is a CloudError."""
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    kind = "application/octet-stream" if raw is not None else "application/json"
    sent = {"Content-Type": kind, "Accept": "application/json", **(headers or {})}
    if token:
        sent["X-Auth-Token"] = token
    call = urllib.request.Request(url, data=data, method=method, headers=sent)
    try:
        with _direct.open(call, timeout=REQUEST_LIMIT_SECONDS) as answer:
            return _answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.headers, error.read())
    except OSError as error:
        raise CloudError(f"{method} {url}: {error}; is the cloud up? try `cloud status --check`") from None


def _answer(status: int, headers: Any, content: bytes) -> Answer:
    text = content.decode(errors="replace")
    try:
        body = json.loads(text) if text else None
    except ValueError:
        body = None
    return Answer(status, {str(k).lower(): str(v) for k, v in headers.items()}, body, text)


class Scope:
    """One login: a token and the addresses of the services it may see."""

    def __init__(self, keystone: str, login: Mapping[str, Any], scope: Any = None) -> None:
        """login: Keystone's identity object; scope: its scope object, or None where the login brings its own."""
        auth: dict[str, Any] = {"identity": login}
        if scope is not None:
            auth["scope"] = scope
        answer = request("POST", f"{keystone}/v3/auth/tokens", body={"auth": auth})
        if answer.status != 201:
            raise CloudError(f"Keystone refused a login with {answer.status}: {answer.text[:200]}")
        self.token = answer.headers["x-subject-token"]
        self.user_id: str = answer.body["token"]["user"]["id"]
        self.project_id: str | None = answer.body["token"].get("project", {}).get("id")
        self.roles = sorted(role["name"] for role in answer.body["token"].get("roles", ()))
        self._urls = {
            service["type"]: endpoint["url"].rstrip("/")
            for service in answer.body["token"].get("catalog", ())
            for endpoint in service["endpoints"]
            if endpoint["interface"] == "public"
        }

    def call(
        self, method: str, service: str, path: str, body: Any = None, *, raw: bytes | None = None,
        version: str | None = None,
    ) -> Answer:  # fmt: skip
        """One request to a service of the catalogue; version is a microversion of that service."""
        headers = (
            {}
            if version is None
            else {"OpenStack-API-Version": f"{_VERSIONED.get(service, service)} {version}"}
        )
        return request(
            method, self._urls[service] + path, token=self.token, body=body, raw=raw, headers=headers
        )

    def get(self, service: str, path: str, version: str | None = None) -> Any:
        """The body of a GET that must succeed."""
        return self.must("GET", service, path, version=version)

    def must(
        self, method: str, service: str, path: str, body: Any = None, *, raw: bytes | None = None,
        version: str | None = None,
    ) -> Any:  # fmt: skip
        """The body of a request that must succeed; CloudError with the service's words otherwise."""
        answer = self.call(method, service, path, body, raw=raw, version=version)
        if answer.status >= 400:
            raise CloudError(f"{method} {service} {path} answered {answer.status}: {answer.text[:300]}")
        return answer.body


# Service types whose microversion header names something else.
_VERSIONED = {"block-storage": "volume"}


def with_password(name: str, password: str, domain: str = "Default") -> dict[str, Any]:
    """Keystone's identity object of a user by name and domain name."""
    return {
        "methods": ["password"],
        "password": {"user": {"name": name, "password": password, "domain": {"name": domain}}},
    }


def administrator(keystone: str, password: str) -> Scope:
    """The cloud administrator in the project admin."""
    return Scope(
        keystone,
        with_password("admin", password),
        {"project": {"name": "admin", "domain": {"name": "Default"}}},
    )


def wait_for(look: Callable[[], bool], what: str, *, limit: float = 90.0, every: float = 0.2) -> None:
    """Look until it is so; CloudError after `limit` seconds."""
    deadline = time.monotonic() + limit
    while not look():
        if time.monotonic() > deadline:
            raise CloudError(f"waited {limit:.0f} s in vain: {what}")
        time.sleep(every)
