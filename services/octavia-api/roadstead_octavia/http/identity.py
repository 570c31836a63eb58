"""Who asks: from the headers of a request to a `Caller`.

With strategy keystone the token alone counts, and headers that name an identity (X-Project-Id, X-Roles and the like) are never looked at.
What the identity service said is believed for a short time, so a revoked token is refused after that time at the latest; requests that
bring the same unknown token at once ask only once.  noauth and testing take the identity from the headers and are for development.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from roadstead_octavia.call import Caller
from roadstead_octavia.http.faults import Unauthenticated
from roadstead_octavia.outside.keystone import IdentityDown

log = structlog.get_logger("roadstead.octavia.identity")

Headers = Mapping[str, str]
IsAdmin = Callable[[Mapping[str, Any]], bool]

REFUSED_TIME = 10.0  # seconds for which a token that there is not is remembered
REFUSED_SIZE = 2000
LONGEST_TOKEN = 16_384


class Identity(Protocol):
    async def caller(self, headers: Headers) -> Caller:
        """headers: lower-case names.  Unauthenticated; IdentityDown when it cannot be known."""


class LooksUp(Protocol):
    async def look_up(self, token: str, *, allow_expired: bool = False) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True)
class TokenRules:
    """ttl: seconds for which a token is believed.  service_roles: of which a service's token must have one."""

    authenticate_uri: str
    ttl: float = 60.0
    size: int = 10_000
    service_roles: frozenset[str] = frozenset(("service",))


class TokenIdentity:
    """Strategy keystone."""

    def __init__(
        self,
        keystone: LooksUp,
        is_admin: IsAdmin,
        rules: TokenRules,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._keystone = keystone
        self._is_admin = is_admin
        self._rules = rules
        self._clock = clock
        self._now = now
        self._known: OrderedDict[tuple[str, bool], tuple[float, Caller]] = OrderedDict()
        self._refused: OrderedDict[tuple[str, bool], float] = OrderedDict()
        self._asked: dict[tuple[str, bool], asyncio.Task[Caller | None]] = {}

    async def caller(self, headers: Headers) -> Caller:
        token = headers.get("x-auth-token", "").strip()
        if not token or len(token) > LONGEST_TOKEN:
            raise self._unauthenticated()
        service = headers.get("x-service-token", "").strip()
        if not service:
            found = await self._believed(token, False)
        else:
            helper = await self._believed(service, False) if len(service) <= LONGEST_TOKEN else None
            if helper is None:
                raise self._unauthenticated()
            trusted = not self._rules.service_roles.isdisjoint(helper.roles)
            found = await self._believed(token, trusted)
            if found is not None:
                found = _helped(found, helper)
        if found is None:
            raise self._unauthenticated()
        return found

    def forget(self) -> None:
        """Ask about every token anew, e.g. since the policy's idea of an administrator changed."""
        self._known.clear()
        self._refused.clear()

    def _unauthenticated(self) -> Unauthenticated:
        return Unauthenticated(f'Keystone uri="{self._rules.authenticate_uri}"')

    async def _believed(self, token: str, allow_expired: bool) -> Caller | None:
        key, now = (token, allow_expired), self._clock()
        known = self._known.get(key)
        if known is not None:
            if known[0] > now:
                self._known.move_to_end(key)
                return known[1]
            del self._known[key]
        if self._refused.get(key, 0.0) > now:
            return None
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._learn(key))
            task.add_done_callback(lambda ended: self._answered(key, ended))
        # A client that goes away does not take the answer from the others that wait for it.
        return await asyncio.shield(task)

    def _answered(self, key: tuple[str, bool], task: "asyncio.Task[Caller | None]") -> None:
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()  # read here too: everybody who waited may have gone

    async def _learn(self, key: tuple[str, bool]) -> Caller | None:
        token, allow_expired = key
        content = await self._keystone.look_up(token, allow_expired=allow_expired)
        now = self._clock()
        left = self._rules.ttl if content is None or allow_expired else self._left(content)
        if content is None or left <= 0:
            _remember(self._refused, key, now + REFUSED_TIME, REFUSED_SIZE)
            return None
        values = credentials_of(content)
        is_admin = self._is_admin(values)
        caller = Caller(
            user_id=values["user_id"],
            project_id=values["project_id"],
            roles=tuple(values["roles"]),
            is_admin=is_admin,
            system_scope=values["system_scope"],
            token=token,
            credentials={**values, "is_admin": is_admin},
        )
        _remember(self._known, key, (now + min(self._rules.ttl, left), caller), self._rules.size)
        return caller

    def _left(self, content: Mapping[str, Any]) -> float:
        """Seconds until the token runs out."""
        try:
            until = datetime.fromisoformat(str(content["expires_at"]).replace("Z", "+00:00"))
        except (KeyError, ValueError):
            log.warning("a token without an expiry was taken for no token")
            return 0.0
        return (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() - self._now().timestamp()


def _remember(cache: "OrderedDict[Any, Any]", key: Any, value: Any, size: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > size:
        cache.popitem(last=False)


def _helped(caller: Caller, service: Caller) -> Caller:
    """The caller, with what the policy may ask about the service that acts for them."""
    return replace(
        caller,
        credentials={
            **caller.credentials,
            "service_user_id": service.user_id,
            "service_project_id": service.project_id,
            "service_roles": list(service.roles),
        },
    )


def credentials_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """What the policy engine is given about a token."""

    def of(part: Any, *path: str) -> Any:
        for name in path:
            part = part.get(name) if isinstance(part, Mapping) else None
        return part

    return {
        "user_id": of(content, "user", "id"),
        "user_domain_id": of(content, "user", "domain", "id"),
        "project_id": of(content, "project", "id"),
        "project_domain_id": of(content, "project", "domain", "id"),
        "domain_id": of(content, "domain", "id"),
        "system_scope": "all" if of(content, "system", "all") else None,
        "is_admin_project": content.get("is_admin_project", True),
        "roles": [role["name"] for role in content.get("roles") or () if "name" in role],
    }


class HeaderIdentity:
    """Strategies noauth (everybody is administrator) and testing.  Never for a service that others can reach."""

    def __init__(self, is_admin: IsAdmin, *, everybody_is_admin: bool) -> None:
        self._is_admin = is_admin
        self._everybody = everybody_is_admin

    async def caller(self, headers: Headers) -> Caller:
        project = headers.get("x-project-id") or headers.get("x-tenant-id") or None
        roles = [part.strip() for part in headers.get("x-roles", "").split(",") if part.strip()]
        values: dict[str, Any] = {
            "user_id": headers.get("x-user-id") or None,
            "project_id": project,
            "domain_id": headers.get("x-domain-id") or None,
            "system_scope": headers.get("openstack-system-scope") or None,
            "roles": roles,
        }
        is_admin = self._everybody or self._is_admin(values)
        return Caller(
            user_id=values["user_id"],
            project_id=project,
            roles=tuple(roles),
            is_admin=is_admin,
            system_scope=values["system_scope"],
            token=headers.get("x-auth-token"),
            credentials={**values, "is_admin": is_admin},
        )


__all__ = ["HeaderIdentity", "Identity", "IdentityDown", "TokenIdentity", "TokenRules", "credentials_of"]
