"""The Region's status and what a pass saw of its cloud.  The spec is a message between services: `roadstead.region`."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

PINNED_MICROVERSION = (2, 90)


class Features(BaseModel):
    """What clients may ask of this region (resources.md section 1)."""

    model_config = ConfigDict(extra="allow")

    physicalNetworks: bool = False


class RegionStatus(BaseModel):
    """name: `{provider}.{region id}`, the key of per-region singletons.

    endpoint: where Keystone is and which of its regions is used.  domainId: the managed domain in which its identities are, as it
    was first proved.  checks: what the last pass proved, by topic.
    """

    model_config = ConfigDict(extra="allow")

    name: str | None = None
    features: Features = Field(default_factory=Features)
    endpoint: dict[str, Any] | None = None
    domainId: str | None = None
    checks: dict[str, Any] | None = None


@dataclass(frozen=True)
class RegionSeen:
    """What one pass found.

    held: a credential is in the keyring.  missing: keys that its secret lacks.  roles: names Keystone has; None: not asked.
    microversions: Nova's (lowest, highest) as (major, minor); None: not asked.  domain: the credential's.
    """

    held: bool = False
    missing: tuple[str, ...] = ()
    roles: frozenset[str] | None = field(default=None)
    microversions: tuple[tuple[int, int], tuple[int, int]] | None = None
    domain: str | None = None
