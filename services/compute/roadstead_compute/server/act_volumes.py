"""Claim, attach, detach, release: one volume, one write (behaviour.md section 13.4).

Which volume is meant is asked of the same pure functions that decided.  A refusal stays with its volume as `failure`, so that
the others go on; an answer that proves nothing ends the pass.
"""

from dataclasses import replace

import structlog

from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Go, Step
from roadstead.reconcile.outcomes import CODES
from roadstead.reconcile.views import RequestFailed
from roadstead.subjects import rpc_subject
from roadstead_compute.server import texts
from roadstead_compute.server.decide import next_detach, next_release
from roadstead_compute.server.decide_volumes import next_volume
from roadstead_compute.server.observe import ServerPass
from roadstead_compute.server.seen import Seen, ServerSeen, VolumeSeen

log = structlog.get_logger("roadstead.server")

# Verdicts that are about this volume and this server, now; all others are about the cloud and end the pass.
REFUSALS = frozenset(
    {
        Verdict.GONE,
        Verdict.CONFLICT,
        Verdict.BUSY,
        Verdict.IN_USE,
        Verdict.EXISTS,
        Verdict.REFUSED,
        Verdict.QUOTA,
    }
)


def _seen(p: ServerPass) -> Seen:
    assert p.seen is not None, "a verb runs after an observation"
    return p.seen


def _meant(p: ServerPass) -> VolumeSeen:
    """The volume of the decision that called."""
    seen = _seen(p)
    if p.resource.deleting:
        volume = next_detach(p.resource, seen) or next_release(seen)
    else:
        step = next_volume(tuple(v.id for v in p.resource.spec.volumes), seen)
        volume = step[2] if step is not None else None
    assert volume is not None
    return volume


def _server(seen: Seen) -> ServerSeen:
    assert seen.server is not None
    return seen.server


async def _ask(p: ServerPass, verb: str, volume: VolumeSeen) -> str | None:
    """The error code of the owner of the volume, None for ok; "" when nobody answers."""
    payload = {"volumeId": volume.id, "claimant": {"kind": "Server", "id": p.resource.key.id}}
    try:
        reply = await p.requests.request(rpc_subject("volumes", verb), payload)
    except RequestFailed:
        return ""
    error = reply.get("error")
    return str(error.get("code") or "UNKNOWN") if error is not None else None


async def claim(p: ServerPass) -> Step:
    """Compare-and-set at the owner of the volume; asking again for what we hold changes nothing."""
    volume = _meant(p)
    code = await _ask(p, "claim", volume)
    if code is None:
        return _go(p, replace(volume, claimed=True))
    if code == "":
        return _fail(p, volume, Code.UNAVAILABLE, texts.CLAIM_UNANSWERED)
    if code in ("NOT_FOUND", "UNKNOWN", "DELETING"):
        return _fail(p, volume, Code.NOT_FOUND, texts.ATTACH_NO_VOLUME)
    return _fail(p, volume, Code.CONFLICT, texts.ATTACH_CLAIMED)


async def release(p: ServerPass) -> Step:
    """Let the claim go; an owner that knows no such volume, or another claimant, holds none of ours."""
    volume = _meant(p)
    code = await _ask(p, "release", volume)
    if code == "":
        return _fail(p, volume, Code.UNAVAILABLE, texts.CLAIM_UNANSWERED)
    if code is not None:
        log.info("no claim to release", server=p.resource.key.id, volume=volume.id, code=code)
    return Go(_seen(p).without_volume(volume.id))


async def attach(p: ServerPass) -> Step:
    """POST attachment.  A refusal that may mean `already attached` is settled by one read of that attachment."""
    seen, volume = _seen(p), _meant(p)
    server = _server(seen)
    body = {"volumeAttachment": {"volumeId": volume.cloud_id}}
    try:
        answer = await p.write(p.principal, "compute", "attachment.create", server=server.id, json=body)
        device = answer.value.get("device")
    except CloudError as error:
        if error.verdict in (Verdict.EXISTS, Verdict.CONFLICT, Verdict.BUSY):
            return await _settle(p, volume, server)
        if error.verdict is Verdict.GONE:
            return _fail(p, volume, Code.NOT_FOUND, texts.ATTACH_NO_VOLUME)
        if error.verdict in REFUSALS:
            return _fail(p, volume, CODES[error.verdict], texts.ATTACH_FAILED)
        raise
    return _attached(p, volume, server, device)


async def _settle(p: ServerPass, volume: VolumeSeen, server: ServerSeen) -> Step:
    try:
        found = await p.get(
            p.principal, "compute", "attachment.get", server=server.id, volume=str(volume.cloud_id)
        )
    except CloudError as error:
        if error.verdict is Verdict.GONE:
            return _fail(p, volume, Code.CONFLICT, texts.ATTACH_REFUSED_NOW)
        raise
    return _attached(p, volume, server, found.get("device"))


def _attached(p: ServerPass, volume: VolumeSeen, server: ServerSeen, device: str | None) -> Step:
    return _go(
        p, replace(volume, servers=volume.servers | {server.id}, device=device or None, status="in-use")
    )


async def detach(p: ServerPass) -> Step:
    """DELETE attachment; a later read confirms it.  404: it is off already."""
    seen, volume = _seen(p), _meant(p)
    server = _server(seen)
    try:
        await p.write(
            p.principal, "compute", "attachment.delete", server=server.id, volume=str(volume.cloud_id)
        )
    except CloudError as error:
        if error.verdict is Verdict.GONE:
            return _go(p, replace(volume, servers=volume.servers - {server.id}))
        if error.verdict is Verdict.BUSY:
            return _go(p, replace(volume, asked=True))
        if error.verdict in REFUSALS:
            return _fail(p, volume, CODES[error.verdict], texts.DETACH_FAILED)
        raise
    return _go(p, replace(volume, asked=True))


def _go(p: ServerPass, volume: VolumeSeen) -> Step:
    return Go(_seen(p).with_volume(volume))


def _fail(p: ServerPass, volume: VolumeSeen, code: Code, text: str) -> Step:
    return _go(p, replace(volume, failure=(code, text)))
