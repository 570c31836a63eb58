"""An administrator's hand in a cloud: raw requests to any service, the same for a simulated and a real one."""

import asyncio
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import orjson
import yaml

from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.wire import Request

VERSIONS = {
    "identity": "/v3",
    "compute": "/v2.1",
    "network": "/v2.0",
    "image": "/v2",
    "block-storage": "/v3",
    "load-balancer": "/v2",
}
MICROVERSIONS = {"compute": "compute 2.90"}
_OLD_NAMES = {"volumev3": "block-storage", "volume": "block-storage"}


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:300]}")
        self.status = status


class Hand(Protocol):
    """project: the administrator's own."""

    project: str

    async def ask(
        self,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        media: str = "application/json",
    ) -> Any:
        """The JSON of an answer, None where there is none.  body: JSON, or bytes as they are.  Refused for 4xx and 5xx."""
        ...


def login_body(
    user: str, password: str, user_domain: str, project: str, project_domain: str
) -> dict[str, Any]:
    person = {"name": user, "password": password, "domain": {"name": user_domain}}
    return {
        "auth": {
            "identity": {"methods": ["password"], "password": {"user": person}},
            "scope": {"project": {"name": project, "domain": {"name": project_domain}}},
        }
    }


class DirectHand:
    """Over the simulator's state, without a socket."""

    def __init__(self, cloud: Cloud, password: str = "admin") -> None:
        self._cloud = cloud
        body = login_body("admin", password, "Default", "admin", "Default")
        answer = cloud.handle(
            Request(
                "POST",
                "/identity/v3/auth/tokens",
                [],
                {"content-type": "application/json"},
                orjson.dumps(body),
            )
        )
        assert answer.status == 201, answer.body
        self._token = answer.headers["X-Subject-Token"]
        self.project = str(answer.body["token"]["project"]["id"])

    async def ask(
        self,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        media: str = "application/json",
    ) -> Any:
        await asyncio.sleep(0)
        place = "volume" if service == "block-storage" else service
        raw = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {"x-auth-token": self._token, "content-type": media}
        if service in MICROVERSIONS:
            headers["openstack-api-version"] = MICROVERSIONS[service]
        url = f"/{place}{VERSIONS[service]}{path}"
        answer = self._cloud.handle(Request(method, url, list((query or {}).items()), headers, raw))
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, f"{method} {service}{path}: {answer.body}")
        return answer.body


class HttpHand:
    """Over HTTP, with a cloud of a clouds.yaml.  Every request runs in a thread."""

    def __init__(self, clouds: Path, name: str) -> None:
        found = yaml.safe_load(clouds.read_text())["clouds"][name]
        auth = found["auth"]
        url = str(auth["auth_url"]).rstrip("/").removesuffix("/v3")
        body = login_body(
            auth["username"],
            auth["password"],
            auth.get("user_domain_name", "Default"),
            auth["project_name"],
            auth.get("project_domain_name", "Default"),
        )
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        status, headers, answer = self._send("POST", f"{url}/v3/auth/tokens", orjson.dumps(body), {})
        assert status == 201, answer
        self._token = headers["x-subject-token"]
        token = json.loads(answer)["token"]
        self.project = str(token["project"]["id"])
        self._bases = {"identity": url}
        for service in token["catalog"]:
            public = [
                each["url"]
                for each in service["endpoints"]
                if each["interface"] == "public" and each.get("region") == found["region_name"]
            ]
            if public:
                kind = _OLD_NAMES.get(service["type"], service["type"])
                self._bases.setdefault(kind, re.sub(r"/v\d[\d.]*(/[^/]*)?/?$", "", public[0]).rstrip("/"))

    def _send(
        self, method: str, url: str, raw: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        call = urllib.request.Request(url, data=raw, method=method, headers=sent)
        try:
            with self._direct.open(call, timeout=60) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()

    async def ask(
        self,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        media: str = "application/json",
    ) -> Any:
        raw = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        url = self._bases[service] + VERSIONS[service] + path
        if query:
            url += "?" + urllib.parse.urlencode(query)
        headers = {"X-Auth-Token": self._token, "Content-Type": media}
        if service in MICROVERSIONS:
            headers["OpenStack-API-Version"] = MICROVERSIONS[service]
        status, _, answer = await asyncio.to_thread(self._send, method, url, raw, headers)
        if not 200 <= status < 300:
            raise Refused(status, f"{method} {service}{path}: {answer.decode(errors='replace')}")
        return json.loads(answer) if answer.strip() else None
