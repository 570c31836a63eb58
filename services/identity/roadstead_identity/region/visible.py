"""Who may see a region (REF-067): everybody, or the organizations it names.  One that may not is told that there is none."""

from roadstead.reconcile.kind import Metadata, Problem
from roadstead.region import RegionSpec

UNKNOWN_REGION = "the region does not exist"


def visible_to(spec: RegionSpec, organization: str | None, *, global_read: bool = False) -> bool:
    """True unless the region names organizations and this is none of them."""
    named = spec.security.organizations if spec.security else None
    return global_read or not named or organization in {item.id for item in named}


def check_region(metadata: Metadata, region: RegionSpec | None) -> list[Problem]:
    """Problems of anything that shall live in the region, for a request: unknown and invisible read alike, 404."""
    if region is not None and visible_to(region, metadata.organizationId):
        return []
    return [Problem("REGION_NOT_FOUND", "metadata.regionId", UNKNOWN_REGION, 404)]
