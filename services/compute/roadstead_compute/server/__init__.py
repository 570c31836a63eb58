"""Servers: the complete create path, bounded create retry, image rebuild, volume attachments, delete.

Left out in this step, and refused or absent rather than pretended: placement preflight and pinned create, the SSH certificate
authority and the merge of user data, power and console, snapshots, bare-metal states.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from roadstead.drift import contradicts
from roadstead.reconcile.kind import Kind, Need, Resource
from roadstead.region import RegionSpec
from roadstead_compute.server.act import ACTIONS
from roadstead_compute.server.decide import INVENTORY_CODES, decide
from roadstead_compute.server.model import ServerSpec, ServerStatus, id_of
from roadstead_compute.server.observe import observe
from roadstead_compute.server.offer import offer_of
from roadstead_compute.server.project import project, wakes
from roadstead_compute.server.rules import CONCLUDING, CREATING, DESTRUCTIVE, REPEATABLE, Rule
from roadstead_compute.server.seen import Seen
from roadstead_compute.server.validate import at_apply, validate

# port, floating IP and server, then claim and attach for a few dozen volumes
MAX_VERBS = 64


def needs(resource: Resource[ServerSpec, ServerStatus]) -> tuple[Need, ...]:
    """Identity (where the metadata names it), network and security groups.  A volume is held by its claim instead."""
    identity = resource.metadata.identityId
    return (
        *((Need("identity", identity),) if identity else ()),
        Need("network", resource.spec.nic.id),
        *(Need("securitygroup", g.id) for g in resource.spec.securityGroups),
    )


def watches(resource: Resource[ServerSpec, ServerStatus]) -> tuple[Need, ...]:
    """Its volumes: held by claims, and waited for until they are provisioned."""
    return tuple(Need("volume", v.id) for v in resource.spec.volumes)


def judged(
    resource: Resource[ServerSpec, ServerStatus], region: RegionSpec, extras: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The facts of its flavor and its image; nothing for one that was accepted once, which they do not keep back any more."""
    if resource.ever_provisioned:
        return None
    spec = resource.spec
    image = spec.image.id if spec.image is not None else None
    offer = offer_of(extras.get("inventory"), resource.key.region, spec.flavorID, image)
    return asdict(offer) if offer is not None else None


KIND: Kind[ServerSpec, ServerStatus, Seen] = Kind(
    name="server",
    service="compute",
    spec=ServerSpec,
    status=ServerStatus,
    observe=observe,
    decide=decide,
    act=ACTIONS,
    rules=Rule,
    validate=validate,
    needs=needs,
    watches=watches,
    project=project,
    wakes=wakes,
    contradicted=contradicts,
    at_apply=at_apply,
    judged=judged,
    judged_codes=INVENTORY_CODES,
    creating=CREATING,
    destructive=DESTRUCTIVE,
    repeatable=REPEATABLE,
    concluding=CONCLUDING,
    id_of=id_of,
    max_verbs=MAX_VERBS,
)

__all__ = ["KIND"]
