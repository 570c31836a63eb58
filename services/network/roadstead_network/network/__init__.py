"""Network: one IPv4 subnet behind one router, as a tenant network or on a VLAN of the region."""

from roadstead.reconcile.kind import Kind, Need, Resource
from roadstead_network.network.act import ACTIONS
from roadstead_network.network.decide import CREATING, DESTRUCTIVE, NetworkRule, decide
from roadstead_network.network.hidden import admit, on_gone
from roadstead_network.network.model import NetworkSeen, NetworkSpec, NetworkStatus
from roadstead_network.network.observe import observe
from roadstead_network.network.validate import validate


def needs(resource: Resource[NetworkSpec, NetworkStatus]) -> tuple[Need, ...]:
    """Its identity, provisioned."""
    identity = resource.metadata.identityId
    return (Need("identity", identity),) if identity else ()


KIND: Kind[NetworkSpec, NetworkStatus, NetworkSeen] = Kind(
    name="network",
    service="network",
    spec=NetworkSpec,
    status=NetworkStatus,
    observe=observe,
    decide=decide,
    act=ACTIONS,
    rules=NetworkRule,
    validate=validate,
    needs=needs,
    admit=admit,
    on_gone=on_gone,
    creating=CREATING,
    destructive=DESTRUCTIVE,
)
