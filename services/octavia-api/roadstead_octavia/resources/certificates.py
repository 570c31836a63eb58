"""References to certificates, as operations follow them: may they be read, do they fit, what is in them.

References are checked in the caller's name when they are set.  What a provider gets is read again each time it is told of the object;
what cannot be read then refuses a change, but never stands in the way of a deletion.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from roadstead_octavia.call import Call
from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.outside.material import check_authority
from roadstead_octavia.provider.models import Secrets

UNREADABLE = "CertificateRetrieval"


@dataclass(frozen=True)
class References:
    """What an object refers to.  tls, sni: containers with a certificate and its key.  texts: secrets, a CA or a revocation list."""

    tls: str | None = None
    sni: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tls or self.sni or self.texts)


def of_row(table: str, row: Row, sni: Iterable[str] = ()) -> References:
    """What a listener's or a pool's columns refer to (those that are there)."""
    prefix = "client_" if table == "listener" else ""
    texts = (
        row.get(f"{prefix}ca_tls_certificate_id"),
        row.get("client_crl_container_id" if table == "listener" else "crl_container_id"),
    )
    return References(
        row.get("tls_certificate_id") or None, tuple(sni), tuple(text for text in texts if text)
    )


def of_listener(tree: Tree, identifier: str, sni: Iterable[str] | None = None) -> list[References]:
    """What the listener refers to, and its default pool, which providers get with it.  sni: in the order that was asked for."""
    row = tree.get("listener", identifier) or {}
    if sni is None:
        sni = [one["tls_container_id"] for one in tree.of("sni") if one["listener_id"] == identifier]
    pool_id = row.get("default_pool_id")
    pool = tree.get("pool", pool_id) if pool_id else None
    return [of_row("listener", row, sni)] + ([of_row("pool", pool)] if pool else [])


async def require_certificates(call: Call, references: Iterable[str]) -> None:
    """400 that names the references that cannot be read; 400 for what is no PKCS#12 bundle."""
    unreadable = [one for one in references if not await _is_readable(call, one)]
    if unreadable:
        raise refuse(UNREADABLE, ref=unreadable)


async def _is_readable(call: Call, reference: str) -> bool:
    keys, token = call.parts.keys, call.caller.token
    try:
        await keys.grant(reference, token)
    except ApiError as error:
        if error.name != UNREADABLE:
            raise
        return False
    return not await keys.unreadable([reference], token)


async def require_authority(call: Call, authority: str, revocations: str | None) -> None:
    """400 unless the reference is a CA certificate and the other, if there is one, a revocation list of that CA."""
    references = [authority] if revocations is None else [authority, revocations]
    texts = [await _text(call, reference) for reference in references]
    if unreadable := [one for one, text in zip(references, texts, strict=True) if text is None]:
        raise refuse(UNREADABLE, ref=unreadable)
    check_authority(str(texts[0]), texts[1] if revocations is not None else None)


async def _text(call: Call, reference: str) -> str | None:
    keys, token = call.parts.keys, call.caller.token
    try:
        await keys.grant(reference, token)
    except ApiError as error:
        if error.name != UNREADABLE:
            raise
        return None
    return await keys.secret(reference, token)


async def secrets_of(call: Call, *objects: References, deleting: bool = False) -> Secrets:
    """What all of the objects refer to, for a provider; 400 when some of it cannot be read (left out when deleting)."""
    certificates: dict[str, Mapping[str, Any]] = {}
    texts: dict[str, str] = {}
    for one in objects:
        try:
            await _read(call, one, certificates, texts)
        except ApiError:
            if not deleting:
                raise
    return Secrets(certificates, texts)


async def _read(
    call: Call, wanted: References, certificates: dict[str, Mapping[str, Any]], texts: dict[str, str]
) -> None:
    keys, token = call.parts.keys, call.caller.token
    if wanted.tls or wanted.sni:
        tls, sni = await keys.bundles(wanted.tls, wanted.sni, token)
        if wanted.tls and tls is not None:
            certificates[wanted.tls] = tls
        certificates.update(zip(wanted.sni, sni, strict=False))
    for reference in wanted.texts:
        if reference not in texts:
            text = await keys.secret(reference, token)
            if text is None:
                raise refuse(UNREADABLE, ref=reference)
            texts[reference] = text
