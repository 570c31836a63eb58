"""The Region's status and what a pass saw of its cloud.  The spec is a message between services: `roadstead.region`."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from roadstead.reconcile.decision import Retry, Yield

PINNED_MICROVERSION = (2, 90)


class Features(BaseModel):
    """What clients may ask of this region (resources.md section 1)."""

    model_config = ConfigDict(extra="allow")

    physicalNetworks: bool = False


class RegionStatus(BaseModel):
    """name: `{provider}.{region id}`, the key of per-region singletons.

    endpoint: where Keystone is and which of its regions is used.  domainId: the managed domain in which its identities are, as it
    was first proved.  checks: what the last pass proved, by topic.  doubted: since when somebody gets no answer from the cloud; until
    it answers, each look asks every service.
    """

    model_config = ConfigDict(extra="allow")

    name: str | None = None
    features: Features = Field(default_factory=Features)
    endpoint: dict[str, Any] | None = None
    domainId: str | None = None
    checks: dict[str, Any] | None = None
    doubted: str | None = None


@dataclass(frozen=True)
class RegionSeen:
    """What one pass found.

    held: a credential is in the keyring.  missing: keys that its secret lacks.  roles: names Keystone has; None: not asked.
    microversions: Nova's (lowest, highest) as (major, minor); None: not asked.  domain: the credential's.
    silent: some service of the cloud gave no answer.  failed: how the look ended where the cloud answered with an error.
    """

    held: bool = False
    missing: tuple[str, ...] = ()
    roles: frozenset[str] | None = field(default=None)
    microversions: tuple[tuple[int, int], tuple[int, int]] | None = None
    domain: str | None = None
    silent: bool = False
    failed: Retry | Yield | None = None
