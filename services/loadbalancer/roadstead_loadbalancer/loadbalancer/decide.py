"""What a load balancer's pass does next (behaviour.md section 14).

Left for a later step, and never done behind anybody's back: mending parts in place, and removing parts that the spec no longer
has.  A load balancer whose parts differ from its spec is therefore not called realized: it parks and says in what they differ.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Address
from typing import Any

from roadstead.clock import iso
from roadstead.reconcile.decision import Code, Decision, do, done, park, retry, wait
from roadstead.reconcile.kind import Resource
from roadstead_loadbalancer.loadbalancer.model import LoadBalancerSpec, LoadBalancerStatus
from roadstead_loadbalancer.loadbalancer.seen import PENDING, BalancerSeen, Seen
from roadstead_loadbalancer.loadbalancer.tree import Tree, WantedListener, differences, render
from roadstead_loadbalancer.loadbalancer.validate import vip_problems

LoadBalancerResource = Resource[LoadBalancerSpec, LoadBalancerStatus]

REFUSED = (
    "the region's load balancer provider cannot do what is asked for (balancing method, allowed address ranges or proxy protocol); "
    "change the listeners, or let an operator set the region's balancing method"
)
STRAY = "a refused create left its port behind; it goes once nobody can be using it"
STRANGE = "the load balancer service shows a state that should not exist; an operator must look at it"


class LoadBalancerRule(StrEnum):
    """Rules of a load balancer's pass, in order."""

    FOREIGN = "14-foreign"
    MISMATCH = "14-identity"
    NO_SUBNET = "14-subnet"
    VIP_OUTSIDE = "14.2-vip-outside"
    STRAY = "14.2-1-stray-port"
    STRAY_YOUNG = "14.2-1-stray-port-young"
    REFUSED = "14.2-1-refused"
    ABSENT = "14.2-1"
    VIP_DIFFERS = "14.2-2"
    MOVING = "14.2-3-pending"
    BROKEN = "14.2-3"
    NO_VIP = "14.2-4"
    ADDRESSES_MANY = "14.2-5-many"
    ADDRESS_ABSENT = "14.2-5-create"
    ADDRESS_UNWANTED = "14.2-5-delete"
    PARTS_MANY = "14.2-7-many"
    PART_MOVING = "14.2-7-pending"
    PART_BROKEN = "14.2-7"
    DIFFERS_ONCE = "14.2-7-differs-once"
    DIFFERS = "14.2-7-differs"
    REALIZED = "14.2-9"
    NOTHING_OURS = "14.4-foreign"
    DELETE_MOVING = "14.4-pending"
    DELETE_ADDRESS = "14.4-floating-ip"
    DELETE_RESTLESS = "14.4-parts"
    LEFT = "14.4-cascade"
    REMOVED = "14.4-gone"


class LoadBalancerVerb(StrEnum):
    """Each is one write to the cloud."""

    CREATE = "create"
    CREATE_ADDRESS = "create floating ip"
    DELETE_ADDRESS = "delete floating ip"
    DELETE_STRAY = "delete stray port"
    DELETE = "cascade delete"


Verb = LoadBalancerVerb
CREATING = frozenset({Verb.CREATE, Verb.CREATE_ADDRESS})
REPEATABLE = frozenset({Verb.CREATE_ADDRESS})
DESTRUCTIVE = frozenset({Verb.DELETE_ADDRESS, Verb.DELETE_STRAY, Verb.DELETE})


def decide(resource: LoadBalancerResource, seen: Seen, now: datetime) -> Decision:
    """Total over every observation."""
    decision = _delete(seen) if resource.deleting else _provision(resource, seen, now)
    return replace(decision, status={**_learned(resource, seen), **decision.status})


def _learned(resource: LoadBalancerResource, seen: Seen) -> dict[str, Any]:
    """What this read tells by itself: the addresses, and that a refused wish came true after all.

    The public address is told where it was looked at: while the load balancer rests, or is gone.
    """
    if seen.foreign or seen.mismatch:
        return {}
    status, balancer = resource.status, seen.balancer
    learned: dict[str, Any] = {}
    vip = balancer.vip if balancer is not None else None
    if vip != status.vipAddress and (vip or balancer is None):
        learned["vipAddress"] = vip
    if balancer is not None and status.refused is not None:
        learned["refused"] = None
    looked_at = balancer is None or balancer.status == "ACTIVE" or (resource.deleting and not balancer.moving)
    public = seen.addresses[0].address if balancer is not None and len(seen.addresses) == 1 else None
    if looked_at and public != status.publicIP:
        learned["publicIP"] = public
    return learned


# ---------------------------------------------------------------- provision


def _provision(resource: LoadBalancerResource, seen: Seen, now: datetime) -> Decision:
    if seen.foreign:
        text = "network or identity belong to another project; name those of this project"
        return retry(LoadBalancerRule.FOREIGN, Code.CONSISTENCY, text)
    if seen.mismatch:
        text = "the network belongs to another identity than the load balancer; name the network's identity or none"
        return retry(LoadBalancerRule.MISMATCH, Code.CONSISTENCY, text)
    if seen.balancer is None:
        return _absent(resource, seen, now)
    return (
        _balancer(resource.spec, seen.balancer)
        or _address(resource.spec, seen)
        or _parts(resource, render(resource.key.id, resource.spec, seen.algorithm), seen.tree)
    )


def _absent(resource: LoadBalancerResource, seen: Seen, now: datetime) -> Decision:
    """A refused wish is Errored at once and not asked again; it is looked at until its left-over port is gone, then parks.

    Another spec or another balancing method is another wish.
    """
    if seen.strays.ports:
        return do(LoadBalancerRule.STRAY, Verb.DELETE_STRAY, "a refused create left its port behind")
    wish, refused = f"{resource.generation}:{seen.algorithm}", resource.status.refused
    if seen.refused:
        mark = {"wish": wish, "at": iso(now)}
        return retry(LoadBalancerRule.REFUSED, Code.NOT_OFFERED, REFUSED, 2.0, refused=mark)
    if refused is not None and refused.wish == wish and seen.strays.young:
        return retry(LoadBalancerRule.REFUSED, Code.NOT_OFFERED, REFUSED, 20.0)
    if refused is not None and refused.wish == wish:
        return park(LoadBalancerRule.REFUSED, Code.NOT_OFFERED, REFUSED)
    if seen.strays.young:
        return wait(LoadBalancerRule.STRAY_YOUNG, Code.BUSY, STRAY)
    outside = vip_problems(resource.spec, seen.prefix)
    if outside:
        return park(LoadBalancerRule.VIP_OUTSIDE, Code.REFUSED, outside[0].message)
    if seen.subnet is None:
        text = "the network does not tell its subnet; an operator must look at it"
        return retry(LoadBalancerRule.NO_SUBNET, Code.CONSISTENCY, text)
    # an older refusal is forgotten with the new request: ports may be this one's from now on
    why = "a complete list shows no such load balancer"
    return do(
        LoadBalancerRule.ABSENT, Verb.CREATE, why, **({"refused": None} if resource.status.refused else {})
    )


def _balancer(spec: LoadBalancerSpec, balancer: BalancerSeen) -> Decision | None:
    """Steps 2 to 4: the address, the status, and both of them together."""
    if balancer.vip and not _is_ipv4(balancer.vip):
        return retry(LoadBalancerRule.VIP_DIFFERS, Code.CONSISTENCY, STRANGE)
    if balancer.vip and spec.requestedVIPAddress not in (None, balancer.vip):
        text = "the load balancer has another address than the requested one; an operator must look at it"
        return retry(LoadBalancerRule.VIP_DIFFERS, Code.CONSISTENCY, text)
    if balancer.moving:
        text = "the cloud is working on the load balancer"
        return wait(LoadBalancerRule.MOVING, Code.BUSY, text)
    if balancer.status != "ACTIVE":
        return retry(LoadBalancerRule.BROKEN, Code.CONSISTENCY, STRANGE)
    if not balancer.vip or not balancer.port:
        return retry(LoadBalancerRule.NO_VIP, Code.CONSISTENCY, STRANGE)
    return None


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _address(spec: LoadBalancerSpec, seen: Seen) -> Decision | None:
    if len(seen.addresses) > 1:
        text = "the load balancer has more than one public address; an operator must look at it"
        return retry(LoadBalancerRule.ADDRESSES_MANY, Code.CONSISTENCY, text)
    if spec.publicIP and not seen.addresses:
        return do(LoadBalancerRule.ADDRESS_ABSENT, Verb.CREATE_ADDRESS, "a public address is wanted")
    if seen.addresses and not spec.publicIP:
        return do(LoadBalancerRule.ADDRESS_UNWANTED, Verb.DELETE_ADDRESS, "no public address is wanted")
    return None


def _parts(resource: LoadBalancerResource, wanted: tuple[WantedListener, ...], tree: Tree) -> Decision:
    """Step 7: each wanted listener's parts are there once and at rest, in the spec's order.

    A difference is believed at the second look: a list that lacks a part once is no proof that the part is missing.
    """
    for names in (
        [part.name for part in tree.listeners],
        [part.name for part in tree.pools],
        [part.name for part in tree.monitors],
    ):
        if len(set(names)) != len(names):
            return retry(LoadBalancerRule.PARTS_MANY, Code.CONSISTENCY, STRANGE)
    for status in _statuses(wanted, tree):
        if status in PENDING:
            text = "the cloud is working on a part of the load balancer"
            return wait(LoadBalancerRule.PART_MOVING, Code.BUSY, text)
        if status != "ACTIVE":
            return retry(LoadBalancerRule.PART_BROKEN, Code.CONSISTENCY, STRANGE)
    differs = differences(wanted, tree)
    if differs:
        text = (
            f"the load balancer differs from its specification ({'; '.join(differs[:5])}); changing it in place "
            "is not offered yet, delete it and make it anew"
        )
        if resource.status.differs != text:
            again = "the parts of the load balancer seem to differ from its specification; looking again"
            return wait(LoadBalancerRule.DIFFERS_ONCE, Code.SETTLING, again, 2.0, differs=text)
        return park(LoadBalancerRule.DIFFERS, Code.NOT_OFFERED, text)
    forgotten: dict[str, Any] = {"differs": None} if resource.status.differs else {}
    return done(LoadBalancerRule.REALIZED, **forgotten)


def _statuses(wanted: tuple[WantedListener, ...], tree: Tree) -> Iterable[str]:
    for w in wanted:
        for name in (w.pool, w.listener, w.monitor):
            yield from (part.status for part in tree.parts if part.name == name)


# ---------------------------------------------------------------- delete


def _delete(seen: Seen) -> Decision:
    """The floating IP, then the rest in one; absence is proved by a list (section 14.4)."""
    if seen.foreign:
        return done(LoadBalancerRule.NOTHING_OURS)
    balancer = seen.balancer
    if balancer is not None and balancer.moving:
        text = "the cloud is working on the load balancer"
        return wait(LoadBalancerRule.DELETE_MOVING, Code.BUSY, text)
    if seen.addresses:
        why = "the public address goes before the load balancer"
        return do(LoadBalancerRule.DELETE_ADDRESS, Verb.DELETE_ADDRESS, why)
    if balancer is None and seen.strays.ports:
        return do(LoadBalancerRule.STRAY, Verb.DELETE_STRAY, "a refused create left its port behind")
    if balancer is None and seen.strays.young:
        return wait(LoadBalancerRule.STRAY_YOUNG, Code.BUSY, STRAY)
    if balancer is None:
        return done(LoadBalancerRule.REMOVED)
    if seen.restless:
        text = "the cloud is working on a part of the load balancer; a delete now would strand it"
        return wait(LoadBalancerRule.DELETE_RESTLESS, Code.BUSY, text)
    return do(LoadBalancerRule.LEFT, Verb.DELETE, "the load balancer is to go")
