"""Two cheap reads prove a region's credentials: one in its domain, one in its own project.

While somebody doubts that the cloud answers, every other service is asked for its versions as well, all at once.  The executor compares every new token with the recorded project, domain and region, so both reads also tell a wrong cloud.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Call, CloudError, Verdict
from roadstead.reconcile.decision import Retry, Yield
from roadstead.reconcile.outages import CONDITION
from roadstead.reconcile.outcomes import outcome_of
from roadstead.reconcile.passing import Pass
from roadstead.region import RegionSpec
from roadstead_identity.region.model import RegionSeen, RegionStatus

log = structlog.get_logger("roadstead.identity")

OTHERS = ("network", "block-storage", "image", "load-balancer")
LOOK_DEADLINE = 10.0

RegionPass = Pass[RegionSpec, RegionStatus, RegionSeen]


async def observe(p: RegionPass) -> RegionSeen:
    """Two requests, and up to four more while the cloud is doubted; none while the credential is not complete, or when the region is to go."""
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
    try:
        roles = await p.get(p.region_domain, "identity", "role.list")
        versions = await p.get(p.region_project, "compute", "version")
        if p.resource.status.doubted:
            await _ask_all(p)
    except CloudError as error:
        if error.silent:
            log.warning(
                "no answer from the region's cloud", region=p.region_id, why=str(error), text=error.text
            )
            return RegionSeen(held=True, silent=True)
        if p.resource.conditions.get(CONDITION, {}).get("status") != "False":
            raise
        # It answers again, if only with an error: the Region has to say both.
        log.warning("cloud", key=str(p.resource.key), error=str(error), text=error.text[:500])
        outcome = outcome_of(error)
        assert isinstance(outcome, Retry | Yield), "no error of the cloud parks"
        return RegionSeen(held=True, failed=outcome)
    return RegionSeen(
        held=True,
        roles=frozenset(str(role["name"]) for role in roles),
        microversions=microversions(versions),
        domain=credential.domain_id,
    )


async def _ask_all(p: RegionPass) -> None:
    """Raises a silent CloudError when a service that the catalog names gives no answer; any answer will do."""

    async def ask(service: str) -> None:
        try:
            await p.cloud.call(Call(p.region_project, service, "versions", deadline=LOOK_DEADLINE))
        except CloudError as error:
            if error.silent:
                raise

    found = await asyncio.gather(*(ask(service) for service in OTHERS), return_exceptions=True)
    for error in found:
        if error is not None:
            raise error


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
