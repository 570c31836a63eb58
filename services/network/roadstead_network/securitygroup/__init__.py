"""SecurityGroup: what may pass to and from the servers that use it."""

from roadstead.reconcile.kind import Kind, Need, Resource
from roadstead_network.securitygroup.act import ACTIONS
from roadstead_network.securitygroup.decide import CREATING, DESTRUCTIVE, SecurityGroupRule, decide
from roadstead_network.securitygroup.model import SecurityGroupSeen, SecurityGroupSpec, SecurityGroupStatus
from roadstead_network.securitygroup.observe import observe
from roadstead_network.securitygroup.validate import validate


def needs(resource: Resource[SecurityGroupSpec, SecurityGroupStatus]) -> tuple[Need, ...]:
    """Its network, which need not be ready: the group is a thing of the project; and the identity, where one is named."""
    network, identity = resource.metadata.networkId, resource.metadata.identityId
    return (
        *((Need("network", network, provisioned=False),) if network else ()),
        *((Need("identity", identity),) if identity else ()),
    )


KIND: Kind[SecurityGroupSpec, SecurityGroupStatus, SecurityGroupSeen] = Kind(
    name="securitygroup",
    service="network",
    spec=SecurityGroupSpec,
    status=SecurityGroupStatus,
    observe=observe,
    decide=decide,
    act=ACTIONS,
    rules=SecurityGroupRule,
    validate=validate,
    needs=needs,
    creating=CREATING,
    destructive=DESTRUCTIVE,
    max_verbs=256,
)
