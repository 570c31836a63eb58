"""Providers asked over the bus: `rpc.provider.<name>.check` and `rpc.provider.<name>.ask.<method>`.

A provider answers `{"ok": true}` (a question also `returns`) or `{"error": {"class", "user", "operator"}}`; what its error means to the
client is decided here, in one table.  No answer in time is no verdict: the client is told to come again.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import structlog

from roadstead.bus.failures import RequestFailed
from roadstead.subjects import provider_rpc_subject
from roadstead_octavia.errors import ApiError, refuse

log = structlog.get_logger("roadstead.octavia.provider")

PATIENCE = 10.0  # seconds that an answer is waited for
COME_AGAIN = 5  # seconds, for Retry-After
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")  # what one token of a subject may be
NOT_IMPLEMENTED = "This feature is not implemented by the provider."
UNREADABLE = "its answer could not be read"


class Requests(Protocol):
    """The part of the bus that is used here."""

    async def request(
        self, subject: str, payload: Mapping[str, Any], *, within: float | None = None
    ) -> Mapping[str, Any]: ...


class RpcProvider:
    """The `Provider` of operations.  patience: seconds that a provider has for its answer."""

    def __init__(self, bus: Requests, *, patience: float = PATIENCE) -> None:
        self._bus = bus
        self._patience = patience

    async def check(self, provider: str, method: str, arguments: Sequence[Any], revision: int = 0) -> None:
        body = {"method": method, "arguments": list(arguments), "revision": revision}
        await self._asked(provider, ("check",), body)

    async def ask(self, provider: str, method: str, arguments: Sequence[Any]) -> Any:
        reply = await self._asked(provider, ("ask", method), {"arguments": list(arguments)})
        return reply.get("returns")

    async def _asked(
        self, provider: str, verb: tuple[str, ...], body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if not NAME.match(provider):
            raise refuse("ProviderNotFound", prov=provider)
        try:
            reply = await self._bus.request(
                provider_rpc_subject(provider, *verb), body, within=self._patience
            )
        except RequestFailed as failure:
            log.warning("provider does not answer", provider=provider, reason=str(failure))
            raise unavailable(provider) from None
        if (error := refused(provider, reply)) is not None:
            log.info(
                "provider refused",
                provider=provider,
                method=body.get("method", verb[-1]),
                error=reply.get("error"),
            )
            raise error
        return reply


def unavailable(provider: str) -> ApiError:
    """503, to be tried again."""
    return ApiError(
        503,
        f"Provider '{provider}' does not answer. Please try again.",
        "ProviderUnavailable",
        (("Retry-After", str(COME_AGAIN)),),
    )


def refused(provider: str, reply: Mapping[str, Any]) -> ApiError | None:
    """What a reply means to the client; None when it agrees (pure)."""
    error = reply.get("error")
    if error is None:
        return (
            None
            if reply.get("ok") is True
            else refuse("ProviderDriverError", prov=provider, user_msg=UNREADABLE)
        )
    if not isinstance(error, Mapping):
        return refuse("ProviderDriverError", prov=provider, user_msg=UNREADABLE)
    kind, user = error.get("class"), error.get("user")
    text = user if isinstance(user, str) else ""
    if kind == "Conflict":
        return refuse("VIPAddressConflict", msg=text)
    if kind == "NotImplemented":
        return refuse(
            "ProviderNotImplemented", prov=provider, user_msg=text if user is not None else NOT_IMPLEMENTED
        )
    if kind == "UnsupportedOption":
        return refuse("ProviderUnsupportedOption", prov=provider, user_msg=text)
    return refuse("ProviderDriverError", prov=provider, user_msg=text)
