"""LoadBalancer: made as one tree, waited for, given its public address, kept as its spec says, and taken away again."""

from collections.abc import Mapping
from typing import Any

from roadstead.reconcile.decision import Code
from roadstead.reconcile.kind import Kind, Need, Resource
from roadstead.region import RegionSpec
from roadstead_loadbalancer.loadbalancer.act import ACTIONS
from roadstead_loadbalancer.loadbalancer.decide import decide
from roadstead_loadbalancer.loadbalancer.model import LoadBalancerSpec, LoadBalancerStatus
from roadstead_loadbalancer.loadbalancer.observe import observe
from roadstead_loadbalancer.loadbalancer.rules import CREATING, DESTRUCTIVE, REPEATABLE, LoadBalancerRule
from roadstead_loadbalancer.loadbalancer.seen import Seen
from roadstead_loadbalancer.loadbalancer.validate import at_apply, validate


def needs(resource: Resource[LoadBalancerSpec, LoadBalancerStatus]) -> tuple[Need, ...]:
    """Its network, which must be ready and tells the identity; and the identity, where one is named."""
    network, identity = resource.metadata.networkId, resource.metadata.identityId
    return (
        *((Need("network", network),) if network else ()),
        *((Need("identity", identity),) if identity else ()),
    )


def judged(
    _resource: Resource[LoadBalancerSpec, LoadBalancerStatus], region: RegionSpec, _extras: Mapping[str, Any]
) -> str | None:
    """The balancing method: what a refusal, or a difference of the parts, may lie in."""
    return region.openstack.loadBalancer.algorithm if region.openstack is not None else None


KIND: Kind[LoadBalancerSpec, LoadBalancerStatus, Seen] = Kind(
    name="loadbalancer",
    service="loadbalancer",
    spec=LoadBalancerSpec,
    status=LoadBalancerStatus,
    observe=observe,
    decide=decide,
    act=ACTIONS,
    rules=LoadBalancerRule,
    validate=validate,
    needs=needs,
    at_apply=at_apply,
    judged=judged,
    judged_codes=frozenset({Code.NOT_OFFERED}),
    creating=CREATING,
    destructive=DESTRUCTIVE,
    repeatable=REPEATABLE,
)
