"""What is in certificates and bundles, made here and now."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs7,
    pkcs12,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead_octavia.errors import ApiError
from roadstead_octavia.outside.material import (
    NoMaterial,
    bundle_of_parts,
    bundle_of_pkcs12,
    check_authority,
)

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
END = START + datetime.timedelta(days=3650)
KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())


def a_certificate(
    name: str | None = "www.example.com", *hosts: str, by: ec.EllipticCurvePrivateKey = KEY
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)] if name else [])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(KEY.public_key())
        .serial_number(7)
        .not_valid_before(START)
        .not_valid_after(END)
    )
    if hosts:
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(by, hashes.SHA256())


def a_crl(by: ec.EllipticCurvePrivateKey) -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ca")])
    builder = x509.CertificateRevocationListBuilder().issuer_name(name).last_update(START).next_update(END)
    return builder.sign(by, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def key_pem(passphrase: bytes | None = None) -> bytes:
    secret = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)


def a_pkcs12(
    certificate: x509.Certificate, *others: x509.Certificate, passphrase: bytes | None = None
) -> bytes:
    secret = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return pkcs12.serialize_key_and_certificates(b"x", KEY, certificate, list(others), secret)


def test_a_pkcs12_bundle_gives_what_a_provider_needs() -> None:
    own, chain = a_certificate(), a_certificate("ca")
    bundle = bundle_of_pkcs12(a_pkcs12(own, chain))
    assert bundle["certificate"] == pem(own).decode()
    assert bundle["private_key"] == key_pem().decode()
    assert bundle["intermediates"] == [pem(chain).decode()]
    assert (bundle["primary_cn"], bundle["passphrase"]) == ("www.example.com", None)
    assert bundle["id"] != bundle_of_pkcs12(a_pkcs12(chain))["id"]


@pytest.mark.parametrize(
    "data", [b"", b"junk", a_pkcs12(a_certificate(), passphrase=b"secret"), pem(a_certificate())]
)
def test_a_bundle_that_cannot_be_opened_is_unreadable(data: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        bundle_of_pkcs12(data)
    assert (refused.value.status, refused.value.name) == (400, "UnreadablePKCS12")


def test_the_parts_of_a_container_may_be_pem_der_or_pkcs7_and_the_key_may_have_a_passphrase() -> None:
    own, chain = a_certificate(), a_certificate("ca")
    der = own.public_bytes(Encoding.DER)
    many = pkcs7.serialize_certificates([chain], Encoding.PEM)
    expected = bundle_of_pkcs12(a_pkcs12(own, chain))
    assert bundle_of_parts(pem(own), key_pem(), None, pem(chain)) == expected
    assert bundle_of_parts(der, key_pem(b"secret"), b"secret", many) == expected
    assert (
        bundle_of_parts(der, key_pem(), None, pkcs7.serialize_certificates([chain], Encoding.DER)) == expected
    )


def test_parts_that_do_not_open_are_no_material() -> None:
    for parts in (
        (b"junk", key_pem(), None, None),
        (pem(a_certificate()), b"junk", None, None),
        (pem(a_certificate()), key_pem(b"secret"), None, None),
        (pem(a_certificate()), key_pem(b"secret"), b"wrong", None),
        (pem(a_certificate()), key_pem(), None, b"junk"),
    ):
        with pytest.raises(NoMaterial):
            bundle_of_parts(*parts)


def test_the_name_is_the_subjects_else_the_first_host() -> None:
    assert (
        bundle_of_pkcs12(a_pkcs12(a_certificate(None, "b.example.com", "a.example.com")))["primary_cn"]
        == "b.example.com"
    )
    with pytest.raises(ApiError) as refused:
        bundle_of_pkcs12(a_pkcs12(a_certificate(None)))
    assert refused.value.text == "No CN or DNSName(s) found in certificate. The certificate is invalid."


def test_a_revocation_list_must_be_the_authoritys_own() -> None:
    authority = pem(a_certificate("ca")).decode()
    check_authority(authority, None)
    check_authority(authority, a_crl(KEY))
    with pytest.raises(ApiError, match="The CRL specified is not valid for client certificate authority"):
        check_authority(authority, a_crl(OTHER))
    with pytest.raises(ApiError, match="The client authentication certificate revocation list is invalid"):
        check_authority(authority, authority)
    with pytest.raises(ApiError, match="The client authentication CA certificate is invalid"):
        check_authority(a_crl(KEY), None)


def test_an_authority_whose_key_signs_otherwise_is_refused_and_no_fault_of_ours() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ca")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = builder.serial_number(7).not_valid_before(START).not_valid_after(END).sign(key, None)
    with pytest.raises(ApiError, match="The CRL specified is not valid"):
        check_authority(pem(made).decode(), a_crl(KEY))


@settings(max_examples=100, deadline=None)
@given(st.text(), st.one_of(st.none(), st.text()), st.binary())
def test_nothing_but_refusals_comes_of_junk(authority: str, revocations: str | None, data: bytes) -> None:
    with pytest.raises(ApiError):
        check_authority(authority, revocations)
    with pytest.raises(ApiError):
        bundle_of_pkcs12(data)
    with pytest.raises(NoMaterial):
        bundle_of_parts(data, data, data, data)
