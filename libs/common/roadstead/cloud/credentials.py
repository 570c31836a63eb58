"""Whose credentials stand behind a scope, with the version that every client hangs on.

The keyring is fed from the CREDENTIAL stream (and, in the identity service, by its own passes at once).  A version that
changes makes every client of that scope anew, as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REGION_KEYS = ("domain-id", "user-id", "password", "project-id")


@dataclass(frozen=True)
class RegionCredential:
    """The region's service user and where its Keystone is.  password is secret."""

    version: int
    endpoint: str
    region_name: str | None
    domain_id: str
    user_id: str
    password: str = field(repr=False)
    project_id: str


@dataclass(frozen=True)
class IdentityCredential:
    """An identity's project and, once made, its user.  user_id and password are None until then."""

    version: int
    project_id: str
    user_id: str | None
    password: str | None = field(repr=False)


@dataclass
class Keyring:
    """Credentials by region and identity.  missing_keys names what a region's secret lacks (INV-029)."""

    _secrets: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict, repr=False)
    _endpoints: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    _identities: dict[tuple[str, str], IdentityCredential] = field(default_factory=dict)
    missing_keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    records: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict, repr=False)

    def put_region_secret(self, region: str, secret: Mapping[str, Any], version: int) -> None:
        """Take the region's four secret keys; an older version than the held one is ignored."""
        held = self._secrets.get(region)
        if held is not None and held[0] > version:
            return
        self._secrets[region] = (version, dict(secret))
        missing = tuple(k for k in REGION_KEYS if not secret.get(k))
        if missing:
            self.missing_keys[region] = missing
        else:
            self.missing_keys.pop(region, None)

    def put_endpoint(self, region: str, endpoint: str, region_name: str | None) -> None:
        """Where the Region's accepted spec says that its Keystone is; every client hangs on it as on the secret."""
        self._endpoints[region] = (endpoint, region_name)

    def put_identity(self, region: str, identity: str, record: dict[str, Any], version: int) -> None:
        """Take an OpenstackIdentity record (resources.md section 2); an older version than the held one is ignored."""
        held = self._identities.get((region, identity))
        if held is not None and held.version > version:
            return
        self.records[region, identity] = dict(record)
        if record.get("projectID"):
            self._identities[region, identity] = IdentityCredential(
                version, record["projectID"], record.get("userID"), record.get("password")
            )

    def drop_identity(self, region: str, identity: str) -> None:
        self._identities.pop((region, identity), None)
        self.records.pop((region, identity), None)

    def region(self, region: str) -> RegionCredential | None:
        """None until both the secret, with all four keys, and the endpoint are known."""
        held, where = self._secrets.get(region), self._endpoints.get(region)
        if held is None or where is None or region in self.missing_keys:
            return None
        version, secret = held
        endpoint, region_name = where
        return RegionCredential(
            version=version,
            endpoint=endpoint,
            region_name=region_name,
            domain_id=str(secret["domain-id"]),
            user_id=str(secret["user-id"]),
            password=str(secret["password"]),
            project_id=str(secret["project-id"]),
        )

    def has_secret(self, region: str) -> bool:
        return region in self._secrets

    def identity(self, region: str, identity: str) -> IdentityCredential | None:
        return self._identities.get((region, identity))

    def record(self, region: str, identity: str) -> dict[str, Any]:
        """The identity's whole record ({} when unknown): serverGroupID, sshKeyName and the like."""
        return self.records.get((region, identity), {})
