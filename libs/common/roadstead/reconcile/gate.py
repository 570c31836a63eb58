"""What must hold before a pass may touch the cloud, the same for every kind.

References are taken before the first write and asked for once; dependencies are waited for by name; a deletion waits for its
consumers, and ends at once where the identity never had a project, because then nothing can be there.  Pure but for the requests
to the owners of what is referenced.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from roadstead.reconcile.accepting import network_of
from roadstead.reconcile.decision import Code, Outcome, Retry, Yield
from roadstead.reconcile.kind import Need, Publication
from roadstead.reconcile.views import Directory, RequestFailed, Requests, StatusView
from roadstead.store.api import Row
from roadstead.subjects import OWNERS, Key, parse_reference, rpc_subject

WITHOUT_IDENTITY = ("region", "identity", "sshcertificateauthority", "image")


class GateRule(StrEnum):
    """Rules that stand before every kind's own (behaviour.md sections 0.3, 1, 4.2; REF-001, REF-003, REF-007)."""

    REGION_UNKNOWN = "G-region"
    REFERENCE_UNKNOWN = "G-reference-unknown"
    REFERENCE_GOING = "G-reference-deleting"
    NOT_READY = "G-waiting"
    CONSUMERS = "G-in-use"
    CASCADE = "G-cascade"
    UNREALIZED = "G-unrealized"
    IDENTITY_UNKNOWN = "G-identity-unknown"
    LETTING_GO = "G-references"
    INTERNAL = "G-internal"


@dataclass(frozen=True)
class Held:
    """The gate holds the pass back: how it ends instead.  done: a deletion that needs no cloud call."""

    rule: GateRule
    outcome: Outcome | None = None
    done: bool = False
    publish: tuple[Publication, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)  # changes to keep


@dataclass(frozen=True)
class Open:
    """The pass may go on."""

    identity: str | None
    targets: Mapping[tuple[str, str], StatusView] = field(default_factory=dict)
    granted: Mapping[str, int] = field(default_factory=dict)


def reference_key(need: Need) -> str:
    return f"{need.kind}/{need.id}"


def view_of(document: Mapping[str, Any]) -> StatusView:
    """A STATUS envelope as a view.  KeyError or ValueError when it is none."""
    metadata = document["metadata"]
    kind = str(document["kind"])
    project = str(metadata.get("projectId") or "_")
    return StatusView(
        key=Key(str(metadata["regionId"]), project, kind, str(metadata["id"])),
        metadata=metadata,
        spec=document.get("spec", {}),
        status=document.get("status", {}),
        generation=int(metadata["generation"]),
        incarnation=int(metadata["incarnation"]),
        resource_version=int(document["resourceVersion"]),
        consumers=tuple(document.get("consumers", ())),
        deleting="deletionTimestamp" in metadata,
        gone="gone" in document,
        ever_provisioned=document.get("everProvisioned") is True,
    )


class LeaseLost(Exception):
    """The row is another replica's now; nothing more may be done."""


Record = Callable[[Mapping[str, int]], Awaitable[None]]


async def take_references(
    row: Row, needs: tuple[Need, ...], directory: Directory, requests: Requests, record: Record, now: datetime
) -> Held | Open:
    """Hold on to everything needed, then wait for what is not ready.

    What is about to be asked stands in our own row first (`record`, negative generations), so that a reference whose grant was
    never noted is let go of all the same when the resource goes.
    """
    targets: dict[tuple[str, str], StatusView] = {}
    fresh: dict[str, int] = {}
    wanted = list(needs)
    identity = row.metadata.get("identityId")
    outside = row.key.kind not in WITHOUT_IDENTITY
    if outside and identity and Need("identity", str(identity)) not in wanted:
        wanted.append(Need("identity", str(identity)))
    expected = _expected(row, wanted, directory) if outside and not identity else []

    async def take(needs: Sequence[Need]) -> dict[Need, Held]:
        """Ask the owners of all of them at once; what did not work out."""
        await _announce(row, needs, record)
        asked = [n for n in needs if not _has(row, n, directory, targets)]
        answers = await asyncio.gather(
            *(_take(row, n, directory, requests, targets, fresh, now) for n in asked)
        )
        return {n: answer for n, answer in zip(asked, answers, strict=True) if answer is not None}

    failed = await take([*wanted, *expected])
    if held := next((failed[n] for n in wanted if n in failed), None):
        return _held_back(row, held, fresh, directory)
    for need in wanted:
        if need.kind == "network" and not identity:
            identity = _identity_of(targets[need.kind, need.id])
    named = [Need("identity", str(identity))] if outside and identity else []
    for need in named:
        if need not in (*wanted, *expected):
            failed |= await take([need])
        if need in failed:
            return _held_back(row, failed[need], fresh, directory)
    for stray in expected:
        if stray not in named:
            fresh.pop(reference_key(stray), None)  # it stays announced: let go of when this resource goes
    wanted += [need for need in named if need not in wanted]
    if outside and not identity:
        text = "the resource names no identity and no network that has one"
        return Waiting(GateRule.REFERENCE_UNKNOWN, Retry(Code.CONSISTENCY, text), granted=fresh)
    for need in wanted:
        view = targets[need.kind, need.id]
        if need.provisioned and not view.provisioned and not _still_stands(row, view):
            return _held_back(row, _waiting(row, need, view, fresh), fresh, directory)
    return Open(str(identity) if identity else None, targets, fresh)


def _held_back(row: Row, held: Held, fresh: Mapping[str, int], directory: Directory) -> Held:
    """What was granted beside it is kept, but for what has to go: whoever waits, for whatever reason, and has built nothing lets go
    of it, else a chain of deletions ends at one that waits for the chain."""
    if not isinstance(held, Waiting):
        held = Waiting(held.rule, held.outcome, held.done, held.publish, held.status)
    going = () if _touched(row) else (k for k in (*row.references, *fresh) if _goes(k, directory))
    return replace(held, granted=dict(fresh), release=tuple(dict.fromkeys((*held.release, *going))))


def _goes(reference: str, directory: Directory) -> bool:
    kind, _, ident = reference.partition("/")
    view = directory.get(kind, ident)
    return view is not None and (view.deleting or view.gone)


def _has(row: Row, need: Need, directory: Directory, targets: dict[tuple[str, str], StatusView]) -> bool:
    """Whether the reference was granted before; then its target is what the directory knows of it."""
    known = directory.get(need.kind, need.id)
    if known is None or row.references.get(reference_key(need), 0) <= 0:
        return False
    targets[need.kind, need.id] = known
    return True


def _identity_of(network: StatusView) -> str | None:
    identity = network.metadata.get("identityId")
    return str(identity) if identity else None


def _expected(row: Row, needs: Sequence[Need], directory: Directory) -> list[Need]:
    """The identity that a needed network of ours will name, as far as it is known: announced and asked for with all others."""
    for need in needs:
        view = directory.get(need.kind, need.id) if need.kind == "network" else None
        if view is not None and (view.key.region, view.key.project) == (row.key.region, row.key.project):
            identity = _identity_of(view)
            return [Need("identity", identity)] if identity else []
    return []


async def _announce(row: Row, needs: Sequence[Need], record: Record) -> None:
    asked = {
        reference_key(n): -max(1, row.generation) for n in needs if reference_key(n) not in row.references
    }
    if asked:
        await record(asked)


YOUNG = timedelta(seconds=30)


def _unknown(row: Row, need: Need, now: datetime, fresh: Mapping[str, int]) -> "Waiting":
    """An unknown id is a consistency error; but what was published a moment ago may be overtaken by what refers to it."""
    if row.created_at is not None and now - row.created_at < YOUNG:
        text = f"the {need.kind} {need.id} is not known yet"
        return Waiting(GateRule.REFERENCE_UNKNOWN, Yield(Code.WAITING, text), granted=dict(fresh))
    text = f"the {need.kind} {need.id} does not exist"
    return Waiting(GateRule.REFERENCE_UNKNOWN, Retry(Code.CONSISTENCY, text), granted=dict(fresh))


@dataclass(frozen=True)
class Waiting(Held):
    """Held back by a dependency, with the references that were granted on the way (they are kept)."""

    granted: Mapping[str, int] = field(default_factory=dict)
    release: tuple[
        str, ...
    ] = ()  # references to let go of: their target has to go, and nothing of ours stands on it


def _touched(row: Row) -> bool:
    """Whether this life may have anything in the cloud."""
    return row.ever_provisioned or row.written_at is not None or bool(row.intents)


def _still_stands(row: Row, view: StatusView) -> bool:
    """A target that waits for us to go before it goes is as good as ever for what we already built on it."""
    return view.deleting and not view.gone and view.ever_provisioned and _touched(row)


def _waiting(row: Row, need: Need, view: StatusView, fresh: Mapping[str, int]) -> Waiting:
    """Who waits for a target that is itself going lets go of it, else the two would wait for each other for ever."""
    if view.deleting or view.gone:
        text = f"the {need.kind} {need.id} is being deleted"
        held = row.references.get(reference_key(need), 0) > 0 or reference_key(need) in fresh
        release = (reference_key(need),) if held and not _touched(row) else ()
        return Waiting(GateRule.REFERENCE_GOING, Yield(Code.WAITING, text), granted=fresh, release=release)
    state = view.status.get("provisioningStatus", "unknown")
    text = f"waiting for the {need.kind} {need.id}, which is {state}"
    return Waiting(GateRule.NOT_READY, Yield(Code.WAITING, text), granted=fresh)


async def _take(
    row: Row,
    need: Need,
    directory: Directory,
    requests: Requests,
    targets: dict[tuple[str, str], StatusView],
    fresh: dict[str, int],
    now: datetime,
) -> Held | None:
    subject = rpc_subject(OWNERS[need.kind], "reference", "add")
    ask = {"kind": need.kind, "id": need.id, "region": row.key.region, "consumer": row.key.reference}
    try:
        reply = await requests.request(subject, ask)
    except RequestFailed:
        return Held(
            GateRule.NOT_READY, Yield(Code.WAITING, f"the owner of the {need.kind} {need.id} does not answer")
        )
    error = reply.get("error")
    if error is not None:
        if error.get("code") == "DELETING":
            return Waiting(
                GateRule.REFERENCE_GOING,
                Yield(Code.WAITING, f"the {need.kind} {need.id} is being deleted"),
                granted=dict(fresh),
            )
        return _unknown(row, need, now, fresh)
    view = view_of(reply["target"])
    if view.key.region != row.key.region or view.key.project not in ("_", row.key.project):
        text = f"the {need.kind} {need.id} does not exist in this region and project"
        return Held(GateRule.REFERENCE_UNKNOWN, Retry(Code.CONSISTENCY, text))
    directory.put(view)
    newest = directory.get(need.kind, need.id)
    targets[need.kind, need.id] = newest if newest is not None else view
    if row.references.get(reference_key(need), 0) <= 0:
        fresh[reference_key(need)] = row.generation
    return None


def before_delete(
    row: Row,
    directory: Directory,
    has_project: Callable[[str], bool],
    has_user: Callable[[str], bool],
) -> Held | Open:
    """A deletion waits for its consumers; without a project of its identity there is nothing to delete (REF-001), nor is there for who
    has built nothing in one that was never whole.  has_project, has_user: what the credential we hold of an identity has.
    """
    if row.consumers:
        return _consumers(row)
    identity = row.metadata.get("identityId")
    if row.key.kind in WITHOUT_IDENTITY:
        if row.key.kind == "identity" and row.record is None and row.status.get("projectReady") is None:
            return Held(GateRule.UNREALIZED, done=True)  # a project was never asked for, in whatever region
        return Open(None)
    if not identity:
        network = network_of(row.metadata, row.spec)
        view = directory.get("network", network) if network else None
        identity = view.metadata.get("identityId") if view is not None else None
        if identity is None:
            identity = next((k.partition("/")[2] for k in row.references if k.startswith("identity/")), None)
    if identity is None or f"identity/{identity}" not in row.references:
        return Held(GateRule.UNREALIZED, done=True)  # no reference, so no write was ever made
    view = directory.get("identity", str(identity))
    if has_project(str(identity)):
        if _never_whole(row, view, has_user(str(identity))):
            return Held(GateRule.UNREALIZED, done=True)
        return Open(str(identity))
    if view is None:
        if not _touched(row) and not row.status.get("made"):
            return Held(GateRule.UNREALIZED, done=True)  # it waited for an identity that never was
        text = f"nothing is known of the identity {identity} yet"
        return Held(GateRule.IDENTITY_UNKNOWN, Retry(Code.UNKNOWN, text))
    if view.gone or not view.status.get("projectReady"):
        return Held(GateRule.UNREALIZED, done=True)
    text = f"the credentials of the identity {identity} have not arrived yet"
    return Held(GateRule.IDENTITY_UNKNOWN, Retry(Code.UNKNOWN, text))


def _never_whole(row: Row, identity: StatusView | None, has_user: bool) -> bool:
    """Whether the row's identity was never fit to build in, and the row shows no trace of having built.

    Then nothing is there to look for, and the cloud may never let us look in the identity's name: who looked all the same would wait for
    the identity to become whole, and the identity, when it goes, for the row.
    """
    if row.ever_provisioned or row.intents or row.status.get("made"):
        return False
    if identity is not None and (identity.deleting or identity.gone) and not identity.ever_provisioned:
        return True  # for good; also for a rebuilt row, of which nobody knows when it last wrote
    return not has_user and row.written_at is None


def _consumers(row: Row) -> Held:
    """Each consumer of ours is told once to go: a spec that somebody gives it afterwards is its next life, not ours to end."""
    names = ", ".join(row.consumers[:5]) + (
        f" and {len(row.consumers) - 5} more" if len(row.consumers) > 5 else ""
    )
    outcome = Yield(Code.IN_USE, f"in use, cannot be deleted yet: {names}")
    told = set(row.status.get("cascaded", ()))
    fresh = [c for c in row.consumers if row.cascade and c not in told and parse_reference(c) is not None]
    if not fresh:
        return Held(GateRule.CONSUMERS, outcome)
    children = []
    for consumer in fresh:
        parsed = parse_reference(consumer)
        assert parsed is not None
        children.append(
            Publication(Key(row.key.region, row.key.project, *parsed), {"delete": True, "cascade": True})
        )
    return Held(
        GateRule.CASCADE, outcome, publish=tuple(children), status={"cascaded": sorted(told | set(fresh))}
    )
