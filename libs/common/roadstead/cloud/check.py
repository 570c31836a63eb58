"""`region check`: what a cloud hides or refuses that the product needs, told before it hurts.

Some refusals look like ordinary answers: VLAN fields are left out, bare metal nodes are an empty list, a hidden task
makes every rebuild look settled.  Each probe is a read, a write that changes nothing, or a request that must fail behind
the permission; only `deep` makes things, inside a project of its own that it removes again.
"""

from roadstead.cloud.checks.deep import look_deep
from roadstead.cloud.checks.findings import Checkup, Finding, Severity
from roadstead.cloud.checks.project import look_inside
from roadstead.cloud.checks.region import clock, inventory, load_balancers, logins, roles, services, versions
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import CloudError
from roadstead.region import OpenStack

__all__ = ["Finding", "Severity", "check"]


async def check(
    cloud: CloudEngine, region: str, spec: OpenStack, *, identity: str | None = None, deep: bool = False
) -> list[Finding]:
    """Everything found about a region; an empty list means that all that was looked at fits.

    identity: whose project to look into; None takes any whose credential is known.  deep: make a probe identity and
    what else is needed to tell the rest, and remove it all again.
    """
    run = Checkup(cloud, region, spec)
    if not await logins(run):
        return run.findings
    await services(run)
    await roles(run)
    await versions(run)
    await inventory(run)
    await load_balancers(run)
    if deep:
        await look_deep(run)
    else:
        known = identity or _any_identity(cloud, region)
        if known is None:
            run.note(
                "IDENTITY_NOT_CHECKED",
                "the rights inside an identity's project",
                "make an identity, or ask for --deep",
            )
        else:
            try:
                await look_inside(run, known)
            except CloudError as error:
                run.failed("IDENTITY", "the rights inside an identity's project", error)
    clock(run)
    return run.findings


def _any_identity(cloud: CloudEngine, region: str) -> str | None:
    for place, identity in cloud.keyring.records:
        held = cloud.keyring.identity(place, identity) if place == region else None
        if held is not None and held.user_id and held.password:
            return identity
    return None
