"""Barbican over HTTP: who may read a secret is settled in the caller's name, what is in it is read in the service's.

A reference is a secret (a PKCS#12 bundle, a CA, a revocation list) or a container of a certificate and its parts.  Only its kind and id
are taken from it; where Barbican is comes from the catalogue, so a reference leads nowhere else.  Requests run in a bounded number of
threads, each with a deadline.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import structlog
from keystoneauth1 import exceptions as failures
from keystoneauth1.adapter import Adapter

from roadstead_octavia.errors import refuse
from roadstead_octavia.outside.material import Bundle, NoMaterial, bundle_of_parts, bundle_of_pkcs12
from roadstead_octavia.outside.service import ServiceUser, service_session
from roadstead_octavia.settings import OctaviaSettings

log = structlog.get_logger("roadstead.octavia.barbican")

T = TypeVar("T")

VERSION = "/v1"
UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
REFERENCE = re.compile(rf"(?:.*/)?(?P<kind>secrets|containers)/(?P<id>{UUID})/?")
BARE = re.compile(UUID)
LARGEST_SECRET = 256 * 1024  # bytes; a chain of certificates is a few KiB
NAMES = ("certificate", "private_key", "private_key_passphrase", "intermediates")


class Unreadable(Exception):
    """The reference cannot be followed; the text says why (for the log: users are told no more than that)."""


class Reference(NamedTuple):
    kind: str
    id: str

    @property
    def path(self) -> str:
        return f"/{self.kind}/{self.id}"


def parsed(reference: str) -> Reference:
    """Kind and id; an id alone is a secret's.  Unreadable."""
    if BARE.fullmatch(reference):
        return Reference("secrets", reference.lower())
    found = REFERENCE.fullmatch(reference)
    if found is None:
        raise Unreadable("it is no reference to a secret or a container")
    return Reference(found["kind"], found["id"].lower())


def make_keys(user: ServiceUser, settings: OctaviaSettings) -> "Barbican":
    return Barbican(user, threads=settings.cloud_threads, endpoint=settings.barbican_endpoint)


class Barbican:
    """The `Keys` of operations.  endpoint: instead of the catalogue's."""

    def __init__(self, user: ServiceUser, *, threads: int = 16, endpoint: str | None = None) -> None:
        self._deadline = user.timeout
        self._session = service_session(user, threads)
        self._adapter = Adapter(
            self._session,
            service_type="key-manager",
            interface=user.interface,
            region_name=user.region_name,
        )
        self._endpoint = endpoint
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="barbican")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------ what operations ask

    async def grant(self, reference: str, token: str | None) -> None:
        """Let the service read the reference, in the caller's name; without a token there is nobody to grant anything."""
        if token is None:
            return
        try:
            await self._within_deadline(self._grant, parsed(reference), token)
        except Unreadable as error:
            log.info("no access to a reference", reference=reference, reason=str(error))
            raise refuse("CertificateRetrieval", ref=reference) from None

    async def unreadable(self, references: Sequence[str], token: str | None) -> Sequence[str]:
        """ApiError UnreadablePKCS12 and MissingCertSubject for what can be read but not used."""
        return [one for one in references if await self._bundle(one) is None]

    async def secret(self, reference: str, token: str | None) -> str | None:
        try:
            return (await self._within_deadline(self._payload, parsed(reference))).decode()
        except (Unreadable, UnicodeDecodeError) as error:
            log.info("a secret cannot be read", reference=reference, reason=str(error))
            return None

    async def bundles(
        self, tls: str | None, sni: Sequence[str], token: str | None
    ) -> tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]]:
        """ApiError CertificateRetrieval for one that cannot be read."""
        references = ([tls] if tls else []) + list(sni)
        found = await asyncio.gather(*(self._bundle(one) for one in references))
        for reference, bundle in zip(references, found, strict=True):
            if bundle is None:
                raise refuse("CertificateRetrieval", ref=reference)
        whole = [bundle for bundle in found if bundle is not None]
        return (whole[0], whole[1:]) if tls else (None, whole)

    async def _bundle(self, reference: str) -> Bundle | None:
        """None when it cannot be read."""
        try:
            return await self._within_deadline(self._read_bundle, parsed(reference))
        except (Unreadable, NoMaterial) as error:
            log.info("a certificate cannot be read", reference=reference, reason=str(error))
            return None

    # ------------------------------------------------------------ in threads

    async def _within_deadline(self, function: Callable[..., T], *arguments: Any) -> T:
        """Unreadable behind the deadline."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._deadline):
                return await loop.run_in_executor(self._threads, function, *arguments)
        except TimeoutError:
            raise Unreadable(f"no answer within {self._deadline:g} s") from None

    def _grant(self, reference: Reference, token: str) -> None:
        """The caller's token reads the access list, so a caller that may not see the secret is refused here."""
        user = self._service_user()
        secrets = [reference]
        if reference.kind == "containers":
            self._allow(reference, user, token)
            secrets = list(self._parts(reference, token).values())
        for secret in secrets:
            self._allow(secret, user, token)

    def _allow(self, reference: Reference, user: str, token: str) -> None:
        path = f"{reference.path}/acl"
        read = self._json("GET", path, token).get("read") or {}
        users = list(read.get("users") or ())
        if user not in users:
            self._json("PATCH", path, token, {"read": {"users": [*users, user]}})

    def _service_user(self) -> str:
        try:
            found = self._session.get_user_id()
        except (failures.ClientException, OSError) as error:
            raise Unreadable(f"the service cannot log in: {type(error).__name__}") from error
        if not found:
            raise Unreadable("who the service is is not known")
        return str(found)

    def _read_bundle(self, reference: Reference) -> Bundle:
        if reference.kind == "secrets":
            return bundle_of_pkcs12(self._payload(reference))
        parts = self._parts(reference)
        held = {name: self._payload(parts[name]) for name in NAMES if name in parts}
        if "certificate" not in held or "private_key" not in held:
            raise Unreadable("the container has no certificate with its key")
        return bundle_of_parts(
            held["certificate"],
            held["private_key"],
            held.get("private_key_passphrase"),
            held.get("intermediates"),
        )

    def _parts(self, reference: Reference, token: str | None = None) -> Mapping[str, Reference]:
        """Secrets of a container by name."""
        rows = self._json("GET", reference.path, token).get("secret_refs") or ()
        try:
            return {str(row["name"]): parsed(str(row["secret_ref"])) for row in rows}
        except (KeyError, TypeError):
            raise Unreadable("the container is in no form that is known") from None

    def _payload(self, reference: Reference) -> bytes:
        if reference.kind != "secrets":
            raise Unreadable("a container is no secret")
        answer = self._send("GET", f"{reference.path}/payload", None, headers={"Accept": "*/*"})
        content: bytes = answer.content
        if len(content) > LARGEST_SECRET:
            raise Unreadable(f"it is larger than {LARGEST_SECRET} bytes")
        return content

    def _json(
        self, method: str, path: str, token: str | None, body: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        own = {} if body is None else {"json": body}
        answer = self._send(method, path, token, headers={"Accept": "application/json"}, **own)
        try:
            found = answer.json() if answer.content else {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Unreadable("it answered with something that is no object")
        return found

    def _send(
        self, method: str, path: str, token: str | None, *, headers: Mapping[str, str], **own: Any
    ) -> Any:
        """token: the caller's; else the service asks.  Unreadable."""
        if token is not None:
            headers = {**headers, "X-Auth-Token": token}
            own["authenticated"] = False
        try:
            answer = self._adapter.request(
                f"{self._base()}{path}", method, headers=dict(headers), raise_exc=False, log=False, **own
            )
        except (failures.ClientException, OSError) as error:
            raise Unreadable(f"Barbican cannot be asked: {type(error).__name__}") from error
        if answer.status_code >= 400:
            raise Unreadable(f"it answered {answer.status_code}")
        return answer

    def _base(self) -> str:
        endpoint = (self._endpoint or self._adapter.get_endpoint() or "").rstrip("/")
        if not endpoint:
            raise Unreadable("the catalogue has no key manager")
        return endpoint if endpoint.endswith(VERSION) else endpoint + VERSION
