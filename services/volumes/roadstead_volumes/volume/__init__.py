"""Volume: storage that a server may hold on to; its attachments lie with the server."""

from roadstead.reconcile.kind import Kind, Need, Resource
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
    creating=CREATING,
    destructive=DESTRUCTIVE,
)
