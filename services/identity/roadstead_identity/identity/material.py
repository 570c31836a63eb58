"""Secrets that are made here: password, SSH key pair, client configuration.  Nothing of it is logged or shown."""

from uuid import uuid4

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from roadstead_identity.identity.model import CLOUD


def new_password() -> str:
    """122 random bits as UUID text."""
    return str(uuid4())


def new_keypair() -> tuple[str, str]:
    """(public key as OpenSSH writes it, private key as PEM) of a fresh ed25519 key (INV-305)."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return public, private


def client_config(endpoint: str, region_name: str | None, credential_id: str, secret: str) -> str:
    """A clouds.yaml with the one cloud `cloud`, which signs in by application credential."""
    entry: dict[str, object] = {
        "auth_type": "v3applicationcredential",
        "auth": {
            "auth_url": endpoint,
            "application_credential_id": credential_id,
            "application_credential_secret": secret,
        },
        "identity_api_version": 3,
        "interface": "public",
    }
    if region_name is not None:
        entry["region_name"] = region_name
    return yaml.safe_dump({"clouds": {CLOUD: entry}}, sort_keys=False)
