"""A region is usable when its credentials open its domain and its project, and what every identity needs is there."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from roadstead.reconcile.decision import Code, Decision, done, park, retry, wait
from roadstead.reconcile.kind import Resource
from roadstead.reconcile.outages import CONDITION
from roadstead.region import OpenStack, RegionSpec
from roadstead_identity.region.model import PINNED_MICROVERSION, RegionSeen, RegionStatus

MANAGER = "manager"
SILENT = "a service of the region's cloud gives no answer; it is asked again until it does"


class RegionRule(StrEnum):
    """Rules of a region's pass (behaviour.md sections 2, 3 and 4.1), in order."""

    DELETED = "3-delete"
    WRONG_KIND = "3-kind"
    KEY_MISSING = "3-key"
    NO_CREDENTIALS = "3-credentials"
    OTHER_DOMAIN = "3-domain"
    NO_ANSWER = "3-no-answer"
    NOT_READ = "3-unread"
    ROLE_MISSING = "3-roles"
    MICROVERSION = "3-microversion"
    USABLE = "3-usable"


class RegionVerb(StrEnum):
    """A region's pass writes nothing to the cloud."""


def decide(resource: Resource[RegionSpec, RegionStatus], seen: RegionSeen, _now: datetime) -> Decision:
    """Total over every observation.  Nothing of a region lies in the cloud, so its deletion is done at once."""
    if resource.deleting:
        return done(RegionRule.DELETED)
    decision = _usable(resource, seen)
    return replace(decision, status={**_reached(seen), **decision.status})


def _reached(seen: RegionSeen) -> Mapping[str, Any]:
    """What the look tells of the cloud's answering; nothing where it was not asked."""
    if seen.silent:
        return {CONDITION: {"status": "False", "reason": "NoAnswer", "message": SILENT}}
    if seen.roles is None and seen.failed is None:
        return {}
    return {CONDITION: {"status": "True", "reason": "Answers"}, "doubted": None}


def _usable(resource: Resource[RegionSpec, RegionStatus], seen: RegionSeen) -> Decision:
    part = resource.spec.openstack
    if part is None:
        return park(RegionRule.WRONG_KIND, Code.NOT_OFFERED, "the region has no openstack section; add one")
    if seen.missing:
        names = ", ".join(seen.missing)
        text = f"the region's credentials lack {names}; hand them in with `roadstead region register`"
        return retry(RegionRule.KEY_MISSING, Code.KEY, text)
    if not seen.held:
        text = "the region's credentials are not there yet; hand them in with `roadstead region register`"
        return wait(RegionRule.NO_CREDENTIALS, Code.WAITING, text)
    if resource.status.domainId and seen.domain not in (None, resource.status.domainId):
        text = (
            "the region's credentials are of another domain than the one that its identities are in; hand in the right ones with "
            "`roadstead region register`, or register that domain as a region of its own"
        )
        return retry(RegionRule.OTHER_DOMAIN, Code.WRONG_CLOUD, text)
    if seen.silent:
        return retry(RegionRule.NO_ANSWER, Code.UNAVAILABLE, SILENT)
    if seen.failed is not None:
        return Decision(RegionRule.NOT_READ, outcome=seen.failed, why=seen.failed.message)
    if seen.roles is None or seen.microversions is None:
        return retry(RegionRule.NOT_READ, Code.UNKNOWN, "the region's cloud could not be read")
    absent = sorted({MANAGER, *part.identity.roles} - seen.roles)
    if absent:
        text = f"the cloud has no role named {', '.join(absent)}; create it or change identity.clusterRoles"
        return retry(RegionRule.ROLE_MISSING, Code.NOT_FOUND, text)
    low, high = seen.microversions
    if not low <= PINNED_MICROVERSION <= high:
        text = f"the compute service offers {_text(low)} to {_text(high)}, but {_text(PINNED_MICROVERSION)} is needed"
        return retry(RegionRule.MICROVERSION, Code.NOT_OFFERED, text)
    return done(RegionRule.USABLE, **usable(resource, part, seen))


def usable(
    resource: Resource[RegionSpec, RegionStatus], part: OpenStack, seen: RegionSeen
) -> Mapping[str, Any]:
    """Status of a usable region: features, where it is, and what was checked."""
    assert seen.microversions is not None
    low, high = seen.microversions
    return {
        "name": f"{resource.spec.provider}.{resource.key.id}",
        "features": {"physicalNetworks": part.network.providerNetworks is not None},
        "endpoint": {"url": part.endpoint, "regionName": part.regionName},
        "domainId": seen.domain,
        "checks": {
            "roles": sorted({MANAGER, *part.identity.roles}),
            "computeMicroversion": {
                "pinned": _text(PINNED_MICROVERSION),
                "min": _text(low),
                "max": _text(high),
            },
        },
    }


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
