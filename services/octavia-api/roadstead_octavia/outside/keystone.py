"""Asking the identity service what a token says.

The library blocks, so requests run in a bounded number of threads; each has a deadline, behind which its thread goes on until the
library's own time-out ends it.  What cannot be learnt is `IdentityDown`, never "no such token".
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keystoneauth1 import exceptions as failures

from roadstead_octavia.outside.service import ServiceUser, service_session


class IdentityDown(Exception):
    """The identity service could not be asked; the text says why."""


class Keystone:
    """`look_up` is all that the API asks."""

    def __init__(self, user: ServiceUser, *, threads: int = 8) -> None:
        self._url = f"{user.auth_url}/auth/tokens"
        self._deadline = user.timeout
        self._session = service_session(user, threads)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="keystone")

    async def look_up(self, token: str, *, allow_expired: bool = False) -> Mapping[str, Any] | None:
        """The token's content; None when there is no such token (any more).  IdentityDown.

        allow_expired: a token that ran out counts too, as long as the identity service still knows it.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._deadline):
                return await loop.run_in_executor(self._threads, self._ask, token, allow_expired)
        except TimeoutError:
            raise IdentityDown(f"no answer within {self._deadline:g} s") from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, token: str, allow_expired: bool) -> Mapping[str, Any] | None:
        query = {"nocatalog": "1", **({"allow_expired": "1"} if allow_expired else {})}
        try:
            answer = self._session.get(
                self._url,
                params=query,
                headers={"X-Subject-Token": token, "Accept": "application/json"},
                raise_exc=False,
                log=False,
            )
        except (failures.ClientException, OSError) as error:
            raise IdentityDown(f"{type(error).__name__}: {error}") from None
        if answer.status_code == 404:
            return None
        if answer.status_code != 200:
            # 401 here is about our own user: the session has already logged in again and was refused twice.
            raise IdentityDown(f"it answered {answer.status_code}")
        try:
            content = answer.json()["token"]
        except (ValueError, KeyError, TypeError):
            raise IdentityDown("it answered with something that is no token") from None
        if not isinstance(content, Mapping):
            raise IdentityDown("it answered with something that is no token")
        return content
