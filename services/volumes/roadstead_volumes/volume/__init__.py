"""Volume: storage that a server may hold on to; its attachments lie with the server."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from roadstead.reconcile.decision import Code
from roadstead.reconcile.kind import Kind, Need, Resource
from roadstead.region import RegionSpec
from roadstead_volumes.inventory import VolumeClassInventory
from roadstead_volumes.volume.act import ACTIONS
from roadstead_volumes.volume.decide import CREATING, DESTRUCTIVE, VolumeRule, decide
from roadstead_volumes.volume.model import VolumeSeen, VolumeSpec, VolumeStatus
from roadstead_volumes.volume.observe import observe
from roadstead_volumes.volume.validate import at_apply, validate


def needs(resource: Resource[VolumeSpec, VolumeStatus]) -> tuple[Need, ...]:
    """Its network, which need not be ready and tells the identity; and the identity, where one is named."""
    identity = resource.metadata.identityId
    return (
        Need("network", resource.spec.networkID, provisioned=False),
        *((Need("identity", identity),) if identity else ()),
    )


def judged(
    resource: Resource[VolumeSpec, VolumeStatus], region: RegionSpec, extras: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """Its class as it is offered, an empty list where it is not; nothing for a volume that was accepted once."""
    if resource.ever_provisioned:
        return None
    inventory: VolumeClassInventory = extras["inventory"]
    known = inventory.known(resource.key.region)
    return None if known is None else [asdict(c) for c in known if c.id == resource.spec.volumeClassID]


KIND: Kind[VolumeSpec, VolumeStatus, VolumeSeen] = Kind(
    name="volume",
    service="volumes",
    spec=VolumeSpec,
    status=VolumeStatus,
    observe=observe,
    decide=decide,
    act=ACTIONS,
    rules=VolumeRule,
    validate=validate,
    needs=needs,
    at_apply=at_apply,
    judged=judged,
    judged_codes=frozenset({Code.NOT_OFFERED}),
    creating=CREATING,
    destructive=DESTRUCTIVE,
)
