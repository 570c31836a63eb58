"""Identity: one tenant's service principal in one region, with its project, user, credential, server group and key."""

from roadstead.reconcile.kind import Kind, Need, Resource
from roadstead_identity.identity.act import MAKING
from roadstead_identity.identity.decide import CREATING, DESTRUCTIVE, IdentityRule, decide
from roadstead_identity.identity.model import IdentityLeft, IdentitySeen, IdentitySpec, IdentityStatus
from roadstead_identity.identity.observe import observe
from roadstead_identity.identity.remove import REMOVING
from roadstead_identity.identity.validate import validate


def needs(resource: Resource[IdentitySpec, IdentityStatus]) -> tuple[Need, ...]:
    """Its Region, usable."""
    return (Need("region", resource.key.region),)


KIND: Kind[IdentitySpec, IdentityStatus, IdentitySeen | IdentityLeft] = Kind(
    name="identity",
    service="identity",
    spec=IdentitySpec,
    status=IdentityStatus,
    observe=observe,
    decide=decide,
    act={**MAKING, **REMOVING},
    rules=IdentityRule,
    validate=validate,
    needs=needs,
    creating=CREATING,
    destructive=DESTRUCTIVE,
    publishes_record=True,
    max_verbs=64,
)
