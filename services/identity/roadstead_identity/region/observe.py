"""Two cheap reads prove a region's credentials: one in its domain, one in its own project.

The executor compares every new token with the recorded project, domain and region, so both reads also tell a wrong cloud.
"""

from collections.abc import Mapping
from typing import Any

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.passing import Pass
from roadstead.region import RegionSpec
from roadstead_identity.region.model import RegionSeen, RegionStatus

RegionPass = Pass[RegionSpec, RegionStatus, RegionSeen]


async def observe(p: RegionPass) -> RegionSeen:
    """Two requests; none while the credential is not complete, or when the region is to go."""
    if p.resource.deleting:
        return RegionSeen()
    keyring: Keyring = p.extras["keyring"]
    part = p.resource.spec.openstack
    if part is not None:
        # At once, not when our own STATUS comes round: this pass must judge the address that was just accepted.
        keyring.put_endpoint(p.region_id, part.endpoint, part.regionName)
    missing = tuple(keyring.missing_keys.get(p.region_id, ()))
    credential = keyring.region(p.region_id)
    if missing or credential is None:
        return RegionSeen(held=False, missing=missing)
    roles = await p.get(p.region_domain, "identity", "role.list")
    versions = await p.get(p.region_project, "compute", "version")
    return RegionSeen(
        held=True,
        roles=frozenset(str(role["name"]) for role in roles),
        microversions=microversions(versions),
        domain=credential.domain_id,
    )


def microversions(document: Mapping[str, Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """(lowest, highest) of Nova's version document.  CloudError(CONSISTENCY) when it has none."""
    listed = document.get("versions", [document.get("version", document)])
    for entry in listed if isinstance(listed, list) else []:
        try:
            low, high = _number(entry["min_version"]), _number(entry["version"])
        except (KeyError, ValueError, TypeError, AttributeError):
            continue
        return low, high
    raise CloudError(Verdict.CONSISTENCY, text="Nova's version document names no microversions")


def _number(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)
