"""Servers: the complete create path, bounded create retry, image rebuild, volume attachments, delete.

Left out in this step, and refused or absent rather than pretended: placement preflight and pinned create, the SSH certificate
authority and the merge of user data, power and console, snapshots, bare-metal states.
"""

from roadstead.drift import contradicts
from roadstead.reconcile.kind import Kind, Need, Resource
from roadstead_compute.server.act import ACTIONS
from roadstead_compute.server.decide import decide
from roadstead_compute.server.model import ServerSpec, ServerStatus, id_of
from roadstead_compute.server.observe import observe
from roadstead_compute.server.project import project, wakes
from roadstead_compute.server.rules import CREATING, DESTRUCTIVE, REPEATABLE, Rule
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
    creating=CREATING,
    destructive=DESTRUCTIVE,
    repeatable=REPEATABLE,
    id_of=id_of,
    max_verbs=MAX_VERBS,
)

__all__ = ["KIND"]
