"""Volumes of a server: claim, attach, detach, release, and the rows that tell of it (behaviour.md section 13.4).

A claim comes before the attachment, its release after the cloud shows that the volume is off.  Cinder's attachment rows decide:
one on this server alone is success, one on any other a conflict whatever else there is (INV-192, 193, 194; Q5).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from roadstead.reconcile.decision import Code, Decision, do, retry, wait
from roadstead_compute.server import texts
from roadstead_compute.server.model import Row
from roadstead_compute.server.rules import Rule, Verb
from roadstead_compute.server.seen import MOVING, Seen, ServerSeen, VolumeSeen

Trouble = tuple[Code, str]


def next_volume(wanted: Sequence[str], seen: Seen) -> tuple[Rule, Verb, VolumeSeen] | None:
    """The next thing to do about a volume, unwanted ones first; also tells the verb which volume is meant."""
    unwanted = [v for v in seen.volumes if v.id not in wanted and v.failure is None]
    free = next((v for v in unwanted if v.off(seen.server)), None)
    if free is not None:
        return Rule.RELEASE, Verb.RELEASE, free
    held_on = next((v for v in unwanted if v.on(seen.server) and not v.detaching), None)
    if held_on is not None and seen.server is not None and seen.server.attachable:
        return Rule.DETACH, Verb.DETACH, held_on
    for ident in wanted:
        held = seen.volume(ident)
        if held is None or trouble(held, seen.server) is not None:
            continue
        if not held.claimed and (held.ready or held.on(seen.server)):
            return Rule.CLAIM, Verb.CLAIM, held
        if _may_attach(held, seen.server):
            return Rule.ATTACH, Verb.ATTACH, held
    return None


def decide_release(wanted: Sequence[str], seen: Seen) -> Decision | None:
    """Let go of what is neither wanted nor on the server; a claim waits for nothing that may be wrong with the server itself."""
    step = next_volume(wanted, seen)
    if step is None or step[0] is not Rule.RELEASE:
        return None
    rule, verb, volume = step
    return do(rule, verb, f"volume {volume.id}")


def owes_release(wanted: Sequence[str], seen: Seen) -> bool:
    """Whether a claim is still to be let go without anybody's doing: its volume comes off, or its owner did not answer."""
    return any(v.id not in wanted and (v.detaching or not v.on(seen.server)) for v in seen.volumes)


def _may_attach(volume: VolumeSeen, server: ServerSeen | None) -> bool:
    return (
        volume.ready
        and volume.claimed
        and not volume.servers
        and volume.status not in MOVING
        and server is not None
        and server.attachable
    )


def trouble(volume: VolumeSeen, server: ServerSeen | None) -> Trouble | None:
    """Why a wanted volume cannot be attached; None while it is, or may still be."""
    if volume.failure is not None:
        return volume.failure
    if not volume.exists:
        return Code.NOT_FOUND, texts.ATTACH_NO_VOLUME
    if volume.servers - ({server.id} if server is not None else set()):
        return Code.CONFLICT, texts.ATTACH_CONFLICT
    if volume.ready and volume.status is None:
        return Code.NOT_FOUND, texts.ATTACH_NO_VOLUME
    return None


def decide_volumes(wanted: Sequence[str], seen: Seen) -> Decision | None:
    """What to do about the volumes of a settled server; None when all are as they should be."""
    step = next_volume(wanted, seen)
    if step is not None:
        rule, verb, volume = step
        return do(rule, verb, f"volume {volume.id}")
    found = [trouble(v, seen.server) if v.id in wanted else v.failure for v in seen.volumes]
    first = next((t for t in found if t is not None), None)
    if first is not None:
        return retry(Rule.ATTACHMENT_FAILED, first[0], first[1])
    open_ = [v for v in seen.volumes if v.id not in wanted or not v.on(seen.server)]
    if open_:
        texts_of = {_waiting_text(v, v.id in wanted, seen.server) for v in open_}
        return wait(Rule.ATTACHMENT_WAITS, Code.WAITING, "; ".join(sorted(texts_of)))
    return None


def _waiting_text(volume: VolumeSeen, wanted: bool, server: ServerSeen | None) -> str:
    if not wanted:
        return texts.DETACHING
    if not volume.ready:
        return texts.ATTACH_WAIT_VOLUME
    if server is None or not server.attachable:
        return texts.ATTACH_WAIT_SERVER
    return texts.ATTACH_WAIT


def rows(wanted: Sequence[str], seen: Seen) -> list[dict[str, Any]]:
    """`status.volumes`: one row a volume, wanted ones in the order of the spec, then those on their way off."""
    known = {v.id: v for v in seen.volumes}
    ordered = [known[i] for i in wanted if i in known] + [v for v in seen.volumes if v.id not in wanted]
    return [_row(v, v.id in wanted, seen.server) for v in ordered]


def rows_going(stored: Sequence[Row], seen: Seen) -> list[dict[str, Any]]:
    """The rows of a deletion: Deprovisioning from the moment a detach was asked for or the volume is off."""
    before = {r.id: r.model_dump(mode="json", exclude_none=True) for r in stored}
    made = []
    for volume in seen.volumes:
        leaving = volume.detaching or volume.failure is not None or not volume.on(seen.server)
        if leaving:
            made.append(_row(volume, False, seen.server))
        elif volume.id in before:
            made.append(before[volume.id])
    return made


def _row(volume: VolumeSeen, wanted: bool, server: ServerSeen | None) -> dict[str, Any]:
    def row(state: str, message: str, device: str | None = None) -> dict[str, Any]:
        made: dict[str, Any] = {"id": volume.id, "provisioningStatus": state, "message": message}
        return {**made, "device": device} if device else made

    if not wanted:
        if volume.failure is not None:
            return row("Errored", volume.failure[1])
        return row("Deprovisioning", texts.DETACHING)
    wrong = trouble(volume, server)
    if wrong is not None:
        return row("Errored", wrong[1])
    if volume.on(server):
        return row("Provisioned", "", volume.device)
    if server is not None and server.status == "ERROR":
        return row("Errored", texts.ATTACH_SERVER_ERROR)
    return row("Provisioning", _waiting_text(volume, True, server))


def rows_change(stored: Sequence[Row], made: list[dict[str, Any]]) -> Mapping[str, Any]:
    """The status change that brings the stored rows to `made`; nothing where there are none on either side."""
    if made:
        return {"volumes": made}
    return {"volumes": None} if stored else {}
