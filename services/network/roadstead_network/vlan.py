"""The table of VLAN ids, one document a region: which network holds which id (behaviour.md section 17).

Pure: every function takes the document and returns the new one with a result.  An id is taken before the network is asked for,
kept when that fails, and given back by network id once the network is proved gone; so no id is ever in two hands.
Document: {"allocations": [{"id": 1..4094, "physicalNetworkID": network id}]}, sorted by id.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from roadstead.region import Segment

LOWEST, HIGHEST = 1, 4094

Document = Mapping[str, Any] | None
R = TypeVar("R")


class VlanError(Exception):
    """The table does not allow it; the text is safe to show and names the remedy."""


def document_name(region: str) -> str:
    """Name of a region's table."""
    return f"vlan.{region}"


def allocate(document: Document, network: str, segments: Iterable[Segment] | None) -> tuple[Document, int]:
    """The network's id: the one it holds, else the lowest free one of the segments (None: all of 1..4094).

    VlanError when it holds several, or when none is free; then nothing changes (REF-026, REF-027, REF-029).
    """
    held = held_by(document, network)
    if len(held) > 1:
        raise VlanError("the network holds more than one VLAN id; an operator must look at it")
    if held:
        return document, held[0]
    taken = {int(entry["id"]) for entry in _entries(document)}
    for ident in _allocatable(segments):
        if ident not in taken:
            return _with(document, network, ident), ident
    raise VlanError("no VLAN id is free in the region's segments; free one or widen the segments")


def claim(document: Document, network: str, ident: int) -> tuple[Document, int]:
    """Note an id that the cloud says the network has.  VlanError when the table says otherwise."""
    _in_range(ident)
    held = held_by(document, network)
    if held == (ident,):
        return document, ident
    if held or any(entry["id"] == ident for entry in _entries(document)):
        raise VlanError(
            "the VLAN table and the cloud disagree about this network; an operator must look at it"
        )
    return _with(document, network, ident), ident


def free(document: Document, ident: int) -> tuple[Document, bool]:
    """Give an id back; whether it was taken.  VlanError for an id out of range or held twice (REF-031)."""
    _in_range(ident)
    holding = [entry for entry in _entries(document) if entry["id"] == ident]
    if len(holding) > 1:
        raise VlanError("the VLAN id is held more than once; an operator must look at it")
    return _without(document, lambda entry: entry["id"] == ident), bool(holding)


def free_network(document: Document, network: str) -> tuple[Document, tuple[int, ...]]:
    """Give back whatever the network holds, several entries too; a missing table holds nothing (REF-020, REF-028)."""
    held = held_by(document, network)
    return _without(document, lambda entry: entry["physicalNetworkID"] == network), held


def held_by(document: Document, network: str) -> tuple[int, ...]:
    """The ids that the network holds."""
    return tuple(int(entry["id"]) for entry in _entries(document) if entry["physicalNetworkID"] == network)


def rule(
    change: Callable[[Document], tuple[Document, R]],
) -> Callable[[Document, datetime], tuple[Document, R | VlanError]]:
    """A rule for `change_document`; a refusal is its result and leaves the document as it was."""

    def apply(document: Document, _now: datetime) -> tuple[Document, R | VlanError]:
        try:
            return change(document)
        except VlanError as refusal:
            return document, refusal

    return apply


def documents_of(
    statuses: Iterable[Mapping[str, Any]], _credentials: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    """The tables of all regions from STATUS documents of networks, for a database that was lost.  A network says its VLAN id before
    it is asked for, so no id in use is missing; an id that two networks say stands there twice, which an operator must look at."""
    tables: dict[str, Document] = {}
    for status in statuses:
        held = (status["status"].get("openstack") or {}).get("vlanID")
        if status["kind"] == "network" and "gone" not in status and held is not None:
            name = document_name(str(status["metadata"]["regionId"]))
            tables[name] = _with(tables.get(name), str(status["metadata"]["id"]), int(held))
    return {name: table for name, table in tables.items() if table is not None}


def _entries(document: Document) -> list[Mapping[str, Any]]:
    return list((document or {}).get("allocations", ()))


def _with(document: Document, network: str, ident: int) -> Document:
    entries = [*_entries(document), {"id": ident, "physicalNetworkID": network}]
    return {**(document or {}), "allocations": sorted(entries, key=lambda entry: int(entry["id"]))}


def _without(document: Document, goes: Callable[[Mapping[str, Any]], bool]) -> Document:
    if document is None:
        return None
    return {**document, "allocations": [entry for entry in _entries(document) if not goes(entry)]}


def _allocatable(segments: Iterable[Segment] | None) -> Iterable[int]:
    """In order and without repetition.  An inverted segment holds nothing: clamping it would widen it to all."""
    if segments is None:
        return range(LOWEST, HIGHEST + 1)
    return sorted({i for s in segments for i in range(max(LOWEST, s.startId), min(HIGHEST, s.endId) + 1)})


def _in_range(ident: int) -> None:
    if not LOWEST <= ident <= HIGHEST:
        raise VlanError(f"{ident} is no VLAN id; ids are {LOWEST} to {HIGHEST}")
