"""The key manager as operations see it: may these references be read, and what do they say?  The executor is `outside/barbican.py`."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Keys(Protocol):
    async def grant(self, reference: str, token: str | None) -> None:
        """Let the service read the reference, in the caller's name.  ApiError CertificateRetrieval."""

    async def unreadable(self, references: Sequence[str], token: str | None) -> Sequence[str]:
        """Those of the references that cannot be read as a certificate with its key."""

    async def secret(self, reference: str, token: str | None) -> str | None:
        """The text of a secret (a CA, a revocation list), None when it cannot be read."""

    async def bundles(
        self, tls: str | None, sni: Sequence[str], token: str | None
    ) -> tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]]:
        """The certificates as a provider gets them: id, certificate, private_key, passphrase, intermediates, primary_cn."""
