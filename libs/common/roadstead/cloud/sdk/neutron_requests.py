"""Single requests to Neutron, in a service's own name or with a caller's token.

The library blocks, so requests run in a bounded number of threads; each has a deadline, behind which its thread goes on until the
library's own time-out ends it.  A request whose answer did not come is never "refused" with a status: whether it was carried out is
not known.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keystoneauth1 import exceptions as failures
from keystoneauth1.adapter import Adapter

from roadstead.cloud.sdk.service_user import ServiceUser, service_session

VERSION = "/v2.0"
LONGEST_TEXT = 500

Body = Mapping[str, Any]


class NetworkRefused(Exception):
    """Neutron did not do it.  status: its HTTP status, None when it gave no answer; text: its message, for the user."""

    def __init__(self, status: int | None, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class NeutronRequests:
    """endpoint: instead of the catalogue's."""

    def __init__(self, user: ServiceUser, *, threads: int = 16, endpoint: str | None = None) -> None:
        self._deadline = user.timeout
        self._adapter = Adapter(
            service_session(user, threads),
            service_type="network",
            interface=user.interface,
            region_name=user.region_name,
        )
        self._endpoint = endpoint
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="neutron")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def ask(
        self, method: str, path: str, *, body: Body | None = None, token: str | None = None
    ) -> Body:
        """The answer's body.  path: behind the version.  token: the caller's; else the service asks.  NetworkRefused."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._deadline):
                return await loop.run_in_executor(self._threads, self._send, method, path, body, token)
        except TimeoutError:
            raise NetworkRefused(
                None, f"the network service gave no answer within {self._deadline:g} s"
            ) from None

    def _send(self, method: str, path: str, body: Body | None, token: str | None) -> Body:
        own: dict[str, Any] = {}
        if token is not None:
            own = {"headers": {"X-Auth-Token": token}, "authenticated": False}
        if body is not None:
            own["json"] = body
        try:
            answer = self._adapter.request(f"{self._base()}{path}", method, raise_exc=False, log=False, **own)
        except (failures.ClientException, OSError) as error:
            raise NetworkRefused(
                None, f"the network service cannot be asked: {type(error).__name__}"
            ) from error
        if answer.status_code >= 400:
            raise NetworkRefused(answer.status_code, _text(answer))
        if not answer.content:
            return {}
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise NetworkRefused(None, "the network service answered with something that is no object")
        return found

    def _base(self) -> str:
        endpoint = (self._endpoint or self._adapter.get_endpoint() or "").rstrip("/")
        if not endpoint:
            raise NetworkRefused(None, "the catalogue has no network service")
        return endpoint if endpoint.endswith(VERSION) else endpoint + VERSION


def _text(answer: Any) -> str:
    """What Neutron says for itself, bounded."""
    try:
        said = answer.json()["NeutronError"]
        text = said["message"] if isinstance(said, Mapping) else said
    except (ValueError, KeyError, TypeError):
        text = answer.reason or f"status {answer.status_code}"
    return str(text)[:LONGEST_TEXT]
