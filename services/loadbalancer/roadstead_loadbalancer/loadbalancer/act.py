"""The verbs of a load balancer; each is one write to the cloud."""

from dataclasses import replace
from enum import StrEnum

import structlog

from roadstead.clock import iso
from roadstead.cloud.external import first_external
from roadstead.cloud.names import loadbalancer_name
from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Go, Retry, Step, Stop, Yield
from roadstead.reconcile.kind import Action
from roadstead.reconcile.outcomes import outcome_of
from roadstead_loadbalancer.loadbalancer.mend import Change, next_step
from roadstead_loadbalancer.loadbalancer.observe import (
    SERVICE,
    LoadBalancerPass,
    address_seen,
    balancer_seen,
    loose,
    stray_ports,
)
from roadstead_loadbalancer.loadbalancer.rules import (
    CHANGING_PARTS,
    CREATING_PARTS,
    DELETING_PARTS,
    LoadBalancerVerb,
)
from roadstead_loadbalancer.loadbalancer.seen import BalancerSeen, Seen
from roadstead_loadbalancer.loadbalancer.tree import create_body, render

log = structlog.get_logger("roadstead.loadbalancer")

CHANGED = Yield(Code.BUSY, "the cloud was asked to change a part of the load balancer", 2.0)
TAKEN = frozenset({Verdict.CONFLICT, Verdict.EXISTS, Verdict.IN_USE})
FAILED = TAKEN | {Verdict.QUOTA, Verdict.REFUSED}
"""Answers to a create that may have come after its VIP port was made."""
LOOK_AGAIN = Yield(Code.BUSY, "the cloud was asked to delete it; looking again")


def _seen(p: LoadBalancerPass) -> Seen:
    assert p.seen is not None, "a verb runs after an observation"
    return p.seen


def _balancer(seen: Seen) -> BalancerSeen:
    assert seen.balancer is not None
    return seen.balancer


async def create(p: LoadBalancerPass) -> Step:
    """POST the whole tree.

    Two refusals mean something of their own: the provider cannot do it (501), and the requested address is taken (409), perhaps by
    the port of an earlier try.  Whatever the refusal, its VIP port may have been left behind; each was answered, so that no create
    of ours is under way when such ports are looked for.
    """
    seen, spec = _seen(p), p.resource.spec
    assert seen.subnet is not None
    wanted = render(p.resource.key.id, spec, seen.algorithm)
    body = create_body(loadbalancer_name(p.resource.key.id), seen.subnet, spec, wanted)
    try:
        answer = await p.write(p.principal, SERVICE, "loadbalancer.create", json={"loadbalancer": body})
    except CloudError as error:
        if error.verdict is Verdict.NOT_SUPPORTED:
            log.warning(
                "the provider refuses the load balancer", loadbalancer=p.resource.key.id, text=error.text
            )
            return Go(replace(seen, refused=True))
        if error.verdict in TAKEN and spec.requestedVIPAddress:
            strays = await stray_ports(p, None)
            if strays.ports:
                return Go(replace(seen, strays=strays))
        if error.verdict in FAILED:
            return _failed(p, error)
        raise
    p.note("loadbalancer", answer.value["id"])
    return Go(replace(seen, balancer=balancer_seen(answer.value)))


def _failed(p: LoadBalancerPass, error: CloudError) -> Stop:
    """As the error would have ended the pass, and noted so that the next pass looks for its port."""
    log.warning("the load balancer was not made", loadbalancer=p.resource.key.id, text=error.text)
    outcome = outcome_of(error)
    told = {"code": str(outcome.code), "text": outcome.message} if isinstance(outcome, Retry) else {}
    return Stop(outcome, {"refused": {"wish": "", "at": iso(p.now), **told}})


async def change_part(p: LoadBalancerPass) -> Step:
    """The one write that the decision was made for; Octavia then works on it.

    A refusal by the provider (501) is decided upon, since it must not be asked for again.  A part that is gone needs no removal.
    """
    seen = _seen(p)
    wanted = render(p.resource.key.id, p.resource.spec, seen.algorithm)
    change = next_step(_balancer(seen).id, wanted, seen.tree)
    assert isinstance(change, Change)
    try:
        await p.write(p.principal, SERVICE, change.operation, **change.args)
    except CloudError as error:
        if error.verdict is Verdict.NOT_SUPPORTED:
            log.warning(
                "the provider refuses a change of a part",
                loadbalancer=p.resource.key.id,
                change=change.what,
                text=error.text,
            )
            return Go(replace(seen, refused=True))
        if error.verdict is not Verdict.GONE or change.verb not in DELETING_PARTS:
            raise
    return Stop(CHANGED)


async def delete_stray(p: LoadBalancerPass) -> Step:
    """DELETE the first left-over port; one that is gone is as good."""
    seen = _seen(p)
    first, *others = seen.strays.ports
    try:
        await p.write(p.principal, "network", "port.delete", id=first)
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise
    return Go(replace(seen, strays=replace(seen.strays, ports=tuple(others))))


async def create_address(p: LoadBalancerPass) -> Step:
    """Put an address of ours that hangs on nothing back on the VIP port, else POST a new one with the port.

    Up to two list requests beside the write.  The mark in the description is how a lost one is found again (OC-22).
    """
    seen = _seen(p)
    port = _balancer(seen).port
    left = await loose(p)
    if left:
        wish = {"floatingip": {"port_id": port}}
        answer = await p.write(p.principal, "network", "floatingip.update", id=left[0].id, json=wish)
    else:
        listed = await p.get(p.region_project, "network", "network.list", query={"router:external": True})
        external = first_external(listed, p.region)
        if external is None:
            text = "the region has no external network that it selects; an operator must configure one"
            return Stop(Retry(Code.NOT_OFFERED, text))
        made = {
            "floating_network_id": external,
            "port_id": port,
            "description": loadbalancer_name(p.resource.key.id),
        }
        answer = await p.write(p.principal, "network", "floatingip.create", json={"floatingip": made})
    return Go(replace(seen, addresses=(*seen.addresses, address_seen(answer.value))))


async def delete_address(p: LoadBalancerPass) -> Step:
    """DELETE one floating IP; one that is gone is as good."""
    seen = _seen(p)
    first, *others = seen.addresses
    try:
        await p.write(p.principal, "network", "floatingip.delete", id=first.id)
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise
    return Go(replace(seen, addresses=tuple(others)))


async def delete(p: LoadBalancerPass) -> Step:
    """DELETE with everything below; it is gone when a later list shows it no more."""
    ident = _balancer(_seen(p)).id
    try:
        await p.write(p.principal, SERVICE, "loadbalancer.delete", id=ident, query={"cascade": True})
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise
    return Stop(LOOK_AGAIN)


ACTIONS: dict[StrEnum, Action] = {
    LoadBalancerVerb.CREATE: create,
    LoadBalancerVerb.CREATE_ADDRESS: create_address,
    LoadBalancerVerb.DELETE_ADDRESS: delete_address,
    LoadBalancerVerb.DELETE_STRAY: delete_stray,
    **dict.fromkeys(CREATING_PARTS | CHANGING_PARTS | DELETING_PARTS, change_part),
    LoadBalancerVerb.DELETE: delete,
}
