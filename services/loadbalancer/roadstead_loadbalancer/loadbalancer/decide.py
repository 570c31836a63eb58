"""What a load balancer's pass does next (behaviour.md section 14).

What Octavia's provider cannot do is asked for once: the refusal is kept with the wish that it answered, and the load balancer parks
until the spec or the region's balancing method makes another wish of it (OC-10).
"""

from dataclasses import replace
from datetime import datetime
from ipaddress import IPv4Address
from typing import Any

from roadstead.clock import iso
from roadstead.reconcile.decision import Code, Decision, do, done, park, retry, wait
from roadstead.reconcile.kind import Resource
from roadstead_loadbalancer.loadbalancer.mend import Change, Halt, next_step
from roadstead_loadbalancer.loadbalancer.model import LoadBalancerSpec, LoadBalancerStatus
from roadstead_loadbalancer.loadbalancer.rules import DELETING_PARTS, LoadBalancerRule
from roadstead_loadbalancer.loadbalancer.rules import LoadBalancerVerb as Verb
from roadstead_loadbalancer.loadbalancer.seen import PENDING, BalancerSeen, Seen
from roadstead_loadbalancer.loadbalancer.tree import Tree, WantedListener, differences, render
from roadstead_loadbalancer.loadbalancer.validate import vip_problems

LoadBalancerResource = Resource[LoadBalancerSpec, LoadBalancerStatus]

REFUSED = (
    "the region's load balancer provider cannot do what is asked for (balancing method, allowed address ranges or proxy protocol); "
    "change the listeners, or let an operator set the region's balancing method"
)
STRAY = "a failed create left its port behind; it goes once nobody can be using it"
STRANGE = "the load balancer service shows a state that should not exist; an operator must look at it"


def decide(resource: LoadBalancerResource, seen: Seen, now: datetime) -> Decision:
    """Total over every observation."""
    decision = _delete(seen) if resource.deleting else _provision(resource, seen, now)
    return replace(decision, status={**_learned(resource, seen), **decision.status})


def _learned(resource: LoadBalancerResource, seen: Seen) -> dict[str, Any]:
    """What this read tells by itself: the addresses, that a refused create came true after all, and that a wish is refused no more.

    The public address is told where it was looked at: while the load balancer rests, or is gone.
    """
    if seen.foreign or seen.mismatch:
        return {}
    status, balancer = resource.status, seen.balancer
    learned: dict[str, Any] = {}
    vip = balancer.vip if balancer is not None else None
    if vip != status.vipAddress and (vip or balancer is None):
        learned["vipAddress"] = vip
    if balancer is not None and status.refused is not None and not _still_refused(resource, seen):
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
        or _parts(resource, seen, seen.balancer, now)
    )


def _wish(resource: LoadBalancerResource, seen: Seen) -> str:
    """What a refusal answers: another spec or another balancing method is another wish."""
    return f"{resource.generation}:{seen.algorithm}"


def _still_refused(resource: LoadBalancerResource, seen: Seen) -> bool:
    """Whether a change of a part was refused for the present wish; its create is out of the question once it is there."""
    refused = resource.status.refused
    return refused is not None and bool(refused.what) and refused.wish == _wish(resource, seen)


def _absent(resource: LoadBalancerResource, seen: Seen, now: datetime) -> Decision:
    """A refused wish is Errored at once and not asked again; it is looked at until its left-over port is gone, then parks.

    Ports that other failed creates left behind go as well before the next one is asked for, or each would leave one more (OC-22).
    """
    if seen.strays.ports:
        return do(LoadBalancerRule.STRAY, Verb.DELETE_STRAY, "a failed create left its port behind")
    refused = resource.status.refused
    if seen.refused:
        mark = {"wish": _wish(resource, seen), "at": iso(now)}
        return retry(LoadBalancerRule.REFUSED, Code.NOT_OFFERED, REFUSED, 2.0, refused=mark)
    if refused is not None and refused.wish == _wish(resource, seen) and not refused.what:
        if seen.strays.young:
            return retry(LoadBalancerRule.REFUSED, Code.NOT_OFFERED, REFUSED, 20.0)
        return park(LoadBalancerRule.REFUSED, Code.NOT_OFFERED, REFUSED)
    if seen.strays.young and refused is not None and refused.text:
        return retry(LoadBalancerRule.STRAY_YOUNG, Code(refused.code), refused.text, 20.0)
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


def _parts(resource: LoadBalancerResource, seen: Seen, balancer: BalancerSeen, now: datetime) -> Decision:
    """Steps 6 to 8: what nobody wants goes, each wanted part is there once, at rest and as wanted, in the spec's order."""
    tree, wanted = seen.tree, render(resource.key.id, resource.spec, seen.algorithm)
    for names in (
        [part.name for part in tree.listeners],
        [part.name for part in tree.pools],
        [part.name for part in tree.monitors],
    ):
        if len(set(names)) != len(names):
            return retry(LoadBalancerRule.PARTS_MANY, Code.CONSISTENCY, STRANGE)
    step = next_step(balancer.id, wanted, tree)
    named = {name for w in wanted for name in (w.pool, w.listener, w.monitor)}
    if isinstance(step, Change):
        named.add(step.name)
    if any(part.status in PENDING for part in tree.parts if part.name in named):
        text = "the cloud is working on a part of the load balancer"
        return wait(LoadBalancerRule.PART_MOVING, Code.BUSY, text)
    if isinstance(step, Halt) and step.fixed:
        text = f"the load balancer differs from its specification in what cannot be changed ({_told(wanted, tree)}); make it anew"
        return retry(LoadBalancerRule.DIFFERS, Code.CONSISTENCY, text)
    if isinstance(step, Halt):
        return retry(LoadBalancerRule.PART_BROKEN, Code.CONSISTENCY, STRANGE)
    if step is not None:
        return _change(resource, seen, step, _told(wanted, tree), now)
    forgotten: dict[str, Any] = {
        name: None for name in ("differs", "refused") if getattr(resource.status, name) is not None
    }
    return done(LoadBalancerRule.REALIZED, **forgotten)


def _told(wanted: tuple[WantedListener, ...], tree: Tree) -> str:
    return "; ".join(differences(wanted, tree)[:5])


def _change(
    resource: LoadBalancerResource, seen: Seen, change: Change, differs: str, now: datetime
) -> Decision:
    """One change of a part: not one that was refused for this wish, and not on the word of one list alone."""
    refused = resource.status.refused
    known = _still_refused(resource, seen) and refused is not None and refused.what == change.what
    if seen.refused or known:
        mark = {"wish": _wish(resource, seen), "at": iso(now), "what": change.what}
        told: dict[str, Any] = {"refused": mark} if seen.refused else {}
        text = f"{REFUSED} ({differs})"
        return park(LoadBalancerRule.CHANGE_REFUSED, Code.NOT_OFFERED, text, **told)
    if change.absence and resource.status.differs != f"{change.what}: {differs}":
        again = "the parts of the load balancer seem to differ from its specification; looking again"
        text = f"{change.what}: {differs}"
        return wait(LoadBalancerRule.DIFFERS_ONCE, Code.SETTLING, again, 2.0, differs=text)
    if change.verb is Verb.DELETE_LISTENER:
        rule = LoadBalancerRule.LISTENER_LEFT
    else:
        rule = LoadBalancerRule.PART_LEFT if change.verb in DELETING_PARTS else LoadBalancerRule.DIFFERS
    return do(rule, change.verb, differs)


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
        return do(LoadBalancerRule.STRAY, Verb.DELETE_STRAY, "a failed create left its port behind")
    if balancer is None and seen.strays.young:
        return wait(LoadBalancerRule.STRAY_YOUNG, Code.BUSY, STRAY)
    if balancer is None:
        return done(LoadBalancerRule.REMOVED)
    if seen.restless:
        text = "the cloud is working on a part of the load balancer; a delete now would strand it"
        return wait(LoadBalancerRule.DELETE_RESTLESS, Code.BUSY, text)
    return do(LoadBalancerRule.LEFT, Verb.DELETE, "the load balancer is to go")
