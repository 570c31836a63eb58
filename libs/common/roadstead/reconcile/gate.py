"""What must hold before a pass may touch the cloud, the same for every kind.

References are taken before the first write and asked for once; dependencies are waited for by name; a deletion waits for its
consumers, and ends at once where the identity never had a project, because then nothing can be there.  Pure but for the requests
to the owners of what is referenced.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from roadstead.reconcile.decision import Code, Outcome, Retry, Yield
from roadstead.reconcile.kind import Need, Publication
from roadstead.reconcile.rules import network_of
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
    )


async def take_references(
    row: Row, needs: tuple[Need, ...], directory: Directory, requests: Requests
) -> Held | Open:
    """Hold on to everything needed, then wait for what is not ready."""
    targets: dict[tuple[str, str], StatusView] = {}
    fresh: dict[str, int] = {}
    wanted = list(needs)
    identity = row.metadata.get("identityId")
    for need in wanted:  # grows by the identity once the network has told it
        held = await _take(row, need, directory, requests, targets, fresh)
        if held is not None:
            return held
        if need.kind == "network" and not identity:
            identity = targets[need.kind, need.id].metadata.get("identityId")
    if row.key.kind not in WITHOUT_IDENTITY:
        if not identity:
            text = "the resource names no identity and no network that has one"
            return Held(GateRule.REFERENCE_UNKNOWN, Retry(Code.CONSISTENCY, text))
        need = Need("identity", str(identity))
        if need not in wanted:
            held = await _take(row, need, directory, requests, targets, fresh)
            if held is not None:
                return held
            wanted.append(need)
    for need in wanted:
        view = targets[need.kind, need.id]
        if need.provisioned and not view.provisioned:
            return _waiting(need, view, fresh, targets, identity)
    return Open(str(identity) if identity else None, targets, fresh)


@dataclass(frozen=True)
class Waiting(Held):
    """Held back by a dependency, with the references that were granted on the way (they are kept)."""

    granted: Mapping[str, int] = field(default_factory=dict)


def _waiting(
    need: Need,
    view: StatusView,
    fresh: Mapping[str, int],
    targets: Mapping[tuple[str, str], StatusView],
    identity: str | None,
) -> Waiting:
    if view.deleting or view.gone:
        return Waiting(
            GateRule.REFERENCE_GOING,
            Yield(Code.WAITING, f"the {need.kind} {need.id} is being deleted"),
            granted=fresh,
        )
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
) -> Held | None:
    held = reference_key(need) in row.references
    known = directory.get(need.kind, need.id)
    if held and known is not None:
        targets[need.kind, need.id] = known
        return None
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
        text = f"the {need.kind} {need.id} does not exist"
        return Waiting(GateRule.REFERENCE_UNKNOWN, Retry(Code.CONSISTENCY, text), granted=dict(fresh))
    view = view_of(reply["target"])
    if view.key.region != row.key.region:
        text = f"the {need.kind} {need.id} does not exist in this region"
        return Held(GateRule.REFERENCE_UNKNOWN, Retry(Code.CONSISTENCY, text))
    directory.put(view)
    newest = directory.get(need.kind, need.id)
    targets[need.kind, need.id] = newest if newest is not None else view
    if not held:
        fresh[reference_key(need)] = row.generation
    return None


def before_delete(row: Row, directory: Directory, has_project: Callable[[str], bool]) -> Held | Open:
    """A deletion waits for its consumers; without a project of its identity there is nothing to delete (REF-001)."""
    if row.consumers:
        return _consumers(row)
    identity = row.metadata.get("identityId")
    if row.key.kind in WITHOUT_IDENTITY:
        return Open(None)
    if not identity:
        network = network_of(row.metadata, row.spec)
        view = directory.get("network", network) if network else None
        identity = view.metadata.get("identityId") if view is not None else None
        if identity is None:
            identity = next((k.partition("/")[2] for k in row.references if k.startswith("identity/")), None)
    if identity is None or f"identity/{identity}" not in row.references:
        return Held(GateRule.UNREALIZED, done=True)  # no reference, so no write was ever made
    if has_project(str(identity)):
        return Open(str(identity))
    view = directory.get("identity", str(identity))
    if view is None:
        text = f"nothing is known of the identity {identity} yet"
        return Held(GateRule.IDENTITY_UNKNOWN, Retry(Code.UNKNOWN, text))
    if view.gone or not view.status.get("projectReady"):
        return Held(GateRule.UNREALIZED, done=True)
    text = f"the credentials of the identity {identity} have not arrived yet"
    return Held(GateRule.IDENTITY_UNKNOWN, Retry(Code.UNKNOWN, text))


def _consumers(row: Row) -> Held:
    names = ", ".join(row.consumers[:5]) + (
        f" and {len(row.consumers) - 5} more" if len(row.consumers) > 5 else ""
    )
    children: list[Publication] = []
    if row.cascade:
        for consumer in row.consumers:
            parsed = parse_reference(consumer)
            if parsed is not None:
                key = Key(row.key.region, row.key.project, *parsed)
                children.append(Publication(key, {"delete": True, "cascade": True}))
    rule = GateRule.CASCADE if children else GateRule.CONSUMERS
    return Held(rule, Yield(Code.IN_USE, f"in use, cannot be deleted yet: {names}"), publish=tuple(children))
