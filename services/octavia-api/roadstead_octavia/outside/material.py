"""What is in a certificate, a CA, a revocation list or a bundle; pure, whoever brought the bytes."""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from roadstead_octavia.errors import invalid

UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion)


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
