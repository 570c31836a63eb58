"""What is in a certificate, a CA, a revocation list or a bundle; pure, whoever brought the bytes.

A bundle is what a provider gets: `id` (changes with the certificate), `certificate`, `private_key` (without a pass phrase),
`passphrase` (always None then), `intermediates`, all PEM, and `primary_cn`.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs7,
    pkcs12,
)

from roadstead_octavia.errors import invalid, refuse

UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion)
PEM_MARK = b"-----BEGIN"

Bundle = dict[str, Any]


class NoMaterial(Exception):
    """The parts are no certificate with its key; the text says why."""


def check_authority(authority: str, revocations: str | None) -> None:
    """400 unless `authority` is a PEM certificate and `revocations`, where given, a PEM revocation list that it signed."""
    try:
        certificate = x509.load_pem_x509_certificate(authority.encode())
    except UNREADABLE as error:
        raise invalid(
            "The client authentication CA certificate is invalid. It must be a valid x509 PEM format certificate."
            f" Error: {error}"
        ) from None
    if revocations is None:
        return
    try:
        crl = x509.load_pem_x509_crl(revocations.encode())
        key = certificate.public_key()
    except UNREADABLE as error:
        raise invalid(
            "The client authentication certificate revocation list is invalid. It must be a valid x509 PEM format certificate"
            f" revocation list. Error: {error}"
        ) from None
    try:
        is_signed = crl.is_signature_valid(key)  # type: ignore[arg-type]  # keys that cannot sign are refused by the call
    except (TypeError, ValueError):
        is_signed = False
    if not is_signed:
        raise invalid("The CRL specified is not valid for client certificate authority reference supplied.")


def bundle_of_pkcs12(data: bytes) -> Bundle:
    """The bundle in a PKCS#12 file without a pass phrase; ApiError 400 UnreadablePKCS12, MissingCertSubject."""
    try:
        key, certificate, others = pkcs12.load_key_and_certificates(data, None)
    except UNREADABLE as error:
        raise refuse("UnreadablePKCS12", error=error) from None
    if key is None or certificate is None:
        raise refuse("UnreadablePKCS12", error="it holds no certificate with its key")
    return _bundle(certificate, key, others)


def bundle_of_parts(
    certificate: bytes, key: bytes, passphrase: bytes | None = None, intermediates: bytes | None = None
) -> Bundle:
    """The bundle of a container with its parts in PEM or DER; NoMaterial, ApiError 400 MissingCertSubject."""
    try:
        own = _certificates(certificate)[0]
        private = _key(key, passphrase or None)
        others = _certificates(intermediates) if intermediates else []
    except (*UNREADABLE, IndexError) as error:
        raise NoMaterial(str(error)) from None
    return _bundle(own, private, others)


def _certificates(data: bytes) -> Sequence[x509.Certificate]:
    """One or many, as PEM, DER or PKCS#7."""
    if b"-----BEGIN PKCS7" in data:
        return pkcs7.load_pem_pkcs7_certificates(data)
    if PEM_MARK in data:
        return x509.load_pem_x509_certificates(data)
    try:
        return [x509.load_der_x509_certificate(data)]
    except ValueError:
        return pkcs7.load_der_pkcs7_certificates(data)


def _key(data: bytes, passphrase: bytes | None) -> PrivateKeyTypes:
    load = load_pem_private_key if PEM_MARK in data else load_der_private_key
    return load(data, passphrase)


def _bundle(
    certificate: x509.Certificate, key: PrivateKeyTypes, others: Sequence[x509.Certificate]
) -> Bundle:
    pem = certificate.public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {
        "id": hashlib.sha1(pem, usedforsecurity=False).hexdigest(),
        "primary_cn": primary_name(certificate),
        "certificate": pem.decode(),
        "private_key": private.decode(),
        "passphrase": None,
        "intermediates": [other.public_bytes(Encoding.PEM).decode() for other in others],
    }


def primary_name(certificate: x509.Certificate) -> str:
    """The subject's common name, else the first DNS name; ApiError 400 MissingCertSubject without either."""
    names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    if names:
        value = names[0].value
        return value if isinstance(value, str) else value.decode("utf-8", "replace")
    try:
        more = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, *UNREADABLE):
        raise refuse("MissingCertSubject") from None
    hosts: list[str] = more.value.get_values_for_type(x509.DNSName)
    if not hosts:
        raise refuse("MissingCertSubject")
    return hosts[0]
