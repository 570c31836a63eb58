"""One server, one fresh read, one thing to do (behaviour.md sections 6, 9 and 13.4).

The tables are read from the top: claims to let go of, the bounded create retry, what the inventory says of a first create, port,
floating IP, server, image, volumes; for a deletion volumes, server, floating IP, port, claims.  Results of the early steps go along with
whatever the later ones decide, so that a wait or a park never loses them.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from roadstead.reconcile.decision import Code, Decision, Park, Retry, do, done, park, retry, wait
from roadstead.reconcile.kind import Problem, Resource
from roadstead_compute.server import texts
from roadstead_compute.server.decide_image import decide_image
from roadstead_compute.server.decide_retry import decide_retry
from roadstead_compute.server.decide_volumes import (
    decide_release,
    decide_volumes,
    owes_release,
    rows,
    rows_change,
    rows_going,
)
from roadstead_compute.server.model import AddressPair, ServerSpec, ServerStatus
from roadstead_compute.server.rules import Rule, Verb
from roadstead_compute.server.seen import Pair, Seen, VolumeSeen

ServerResource = Resource[ServerSpec, ServerStatus]

INVENTORY_CODES = frozenset(
    {
        Code.NOT_OFFERED,
        Code.FLAVOR_GONE,
        Code.FLAVOR_PINNED,
        Code.IMAGE_NOT_FOUND,
        Code.IMAGE_NOT_READY,
        Code.IMAGE_ARCH,
        Code.IMAGE_DISK,
        Code.IMAGE_VIRT,
        Code.IMAGE_VIRT_UNKNOWN,
    }
)
"""Parks before a first create that lie in what the region offers, and end when that changes."""


def decide(resource: ServerResource, seen: Seen, now: datetime) -> Decision:
    """The next step for this server; total over every observation."""
    return _delete(resource, seen) if resource.deleting else _provision(resource, seen)


# ---------------------------------------------------------------- provision


def _provision(resource: ServerResource, seen: Seen) -> Decision:
    wanted = _wanted(resource)
    learned: dict[str, Any] = dict(rows_change(resource.status.volumes, rows(wanted, seen)))
    decision = decide_release(wanted, seen) or decide_retry(resource.status, resource.conditions, seen)
    if decision is None:
        learned |= _learned(resource, seen)
        decision = _before_create(resource, seen) or _port(resource, seen) or _address(resource.spec, seen)
    if decision is None:
        decision = _server(resource, seen)
    if isinstance(decision.outcome, Park) and owes_release(wanted, seen):
        # the same words, but looked at again: a park would keep the claim for ever
        decision = replace(decision, outcome=Retry(decision.outcome.code, decision.outcome.message))
    return replace(decision, status={**learned, **decision.status})


def _learned(resource: ServerResource, seen: Seen) -> dict[str, Any]:
    """What this read tells by itself: addresses, and that a retry came to an end."""
    learned: dict[str, Any] = {}
    if seen.port is not None:
        learned["privateIP"] = seen.port.address
        learned["publicIP"] = seen.addresses[0].address if len(seen.addresses) == 1 else None
    if resource.status.providerCreateRetrying:
        learned["providerCreateRetrying"] = None
    return learned


def _wanted(resource: ServerResource) -> tuple[str, ...]:
    return tuple(v.id for v in resource.spec.volumes)


def _before_create(resource: ServerResource, seen: Seen) -> Decision | None:
    """What must hold before the first write for a server that is not there."""
    if seen.server is not None:
        return None
    if resource.spec.image is None:
        return park(Rule.R1, Code.IMAGE_MISSING, texts.IMAGE_MISSING)
    if resource.ever_provisioned:
        return None  # accepted once: what was withdrawn since does not keep it from coming back
    if seen.refusals is None:
        return wait(Rule.INVENTORY_LOADING, Code.WAITING, texts.INVENTORY_LOADING)
    if seen.refusals:
        return park(Rule.NOT_OFFERED, code_of(seen.refusals[0]), _messages(seen.refusals))
    return None


def _messages(problems: tuple[Problem, ...]) -> str:
    return "; ".join(p.message for p in problems)


def code_of(problem: Problem) -> Code:
    """The problem's own code where the closed list of codes has it."""
    try:
        return Code(problem.code)
    except ValueError:
        return Code.NOT_OFFERED


def wanted_pairs(pairs: list[AddressPair], own_mac: str) -> frozenset[Pair]:
    """The spec's pairs in the form in which a port is read."""
    return frozenset((p.cidr, None if p.macAddress == own_mac else p.macAddress) for p in pairs)


def _port(resource: ServerResource, seen: Seen) -> Decision | None:
    if seen.misplaced:
        return park(Rule.GROUP_ELSEWHERE, code_of(seen.misplaced[0]), _messages(seen.misplaced))
    if seen.network_id is None:
        return wait(Rule.NETWORK_ABSENT, Code.WAITING, texts.NETWORK_ABSENT)
    if None in seen.groups:
        return wait(Rule.GROUP_ABSENT, Code.WAITING, texts.GROUP_ABSENT)
    port = seen.port
    if port is None:
        return do(Rule.PORT_ABSENT, Verb.CREATE_PORT, "the server has no port")
    if port.network_id != seen.network_id:
        return retry(Rule.PORT_MISPLACED, Code.CONSISTENCY, texts.PORT_MISPLACED)
    pairs = wanted_pairs(resource.spec.nic.allowedAddressPairs, port.mac)
    if port.groups != frozenset(seen.groups) or port.pairs != pairs:
        return do(
            Rule.PORT_DRIFTED, Verb.UPDATE_PORT, "security groups or address pairs differ from the spec"
        )
    return None


def _address(spec: ServerSpec, seen: Seen) -> Decision | None:
    if len(seen.addresses) > 1:
        return retry(Rule.ADDRESSES_MANY, Code.CONSISTENCY, texts.ADDRESSES_MANY)
    if spec.publicIPAllocation.enabled and not seen.addresses:
        return do(Rule.ADDRESS_ABSENT, Verb.CREATE_ADDRESS, "a public address is wanted")
    if seen.addresses and not spec.publicIPAllocation.enabled:
        return do(Rule.ADDRESS_UNWANTED, Verb.DELETE_ADDRESS, "no public address is wanted")
    return None


def _server(resource: ServerResource, seen: Seen) -> Decision:
    if seen.server is None:
        if seen.taken:
            return retry(Rule.PORT_TAKEN, Code.CONSISTENCY, texts.PORT_TAKEN)
        return do(Rule.SERVER_ABSENT, Verb.CREATE_SERVER, "a complete list shows no such server of ours")
    image = resource.spec.image
    decision = decide_image(image.id if image is not None else None, seen.server)
    if decision.rule is Rule.R3_DONE:
        return decide_volumes(_wanted(resource), seen) or decision
    return decision


# ---------------------------------------------------------------- delete


def _delete(resource: ServerResource, seen: Seen) -> Decision:
    decision = _delete_server(resource, seen) or _delete_rest(seen)
    stored = resource.status.volumes
    changes: Mapping[str, Any] = rows_change(stored, rows_going(stored, seen))
    if not seen.addresses and resource.status.publicIP is not None:
        changes = {**changes, "publicIP": None}
    return replace(decision, status={**changes, **decision.status})


def next_detach(resource: ServerResource, seen: Seen) -> VolumeSeen | None:
    """The next volume to take off a server that is to go.

    Each is asked for once: what is still there a pass later goes off with the server, so that a guest which does not let go
    cannot hold a deletion up.
    """
    if seen.server is None or not seen.server.attachable:
        return None
    asked = {r.id for r in resource.status.volumes if r.provisioningStatus == "Deprovisioning"}
    fresh = [v for v in seen.volumes if v.on(seen.server) and not v.detaching and v.failure is None]
    return next((v for v in fresh if v.id not in asked), None)


def _delete_server(resource: ServerResource, seen: Seen) -> Decision | None:
    server = seen.server
    if server is None:
        return None
    if server.going:
        return wait(Rule.DELETE_GOING, Code.BUSY, texts.SERVER_GOING)
    if next_detach(resource, seen) is not None:
        return do(Rule.DELETE_DETACH, Verb.DETACH, "volumes come off before the server goes")
    if any(v.asked for v in seen.volumes):
        return wait(Rule.DELETE_DETACHING, Code.BUSY, texts.DETACHING)
    return do(Rule.DELETE_SERVER, Verb.DELETE_SERVER, "the server is to go")


def next_release(seen: Seen) -> VolumeSeen | None:
    """The next claim to let go once the server is gone."""
    if seen.server is not None:
        return None
    return next((v for v in seen.volumes if v.failure is None), None)


def _delete_rest(seen: Seen) -> Decision:
    """The server is proved absent: its addresses, its port, then the claims on its volumes."""
    if seen.taken:
        return wait(Rule.DELETE_PORT_TAKEN, Code.IN_USE, texts.PORT_TAKEN)
    if seen.addresses:
        return do(Rule.DELETE_ADDRESS, Verb.DELETE_ADDRESS, "the server is gone")
    if seen.port is not None:
        return do(Rule.DELETE_PORT, Verb.DELETE_PORT, "the server and its public address are gone")
    held = next_release(seen)
    if held is not None:
        return do(Rule.DELETE_RELEASE, Verb.RELEASE, f"volume {held.id}")
    if seen.volumes:
        code, text = next(v.failure for v in seen.volumes if v.failure is not None)
        return retry(Rule.DELETE_UNRELEASED, code, text)
    return done(Rule.DELETED)
