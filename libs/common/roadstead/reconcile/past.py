"""How a resource stood at an earlier time.

Each time a STATUS document gives way to another, history keeps the one that ends, with the moment of its end.  So what stood at a
time is the first document that ended later, or the present one; nothing older than that time has to be kept for the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from roadstead.clock import iso, parse_time
from roadstead.reconcile.status import status_document
from roadstead.store.api import Change, HistoryEntry, Row, Store

KEPT_FOR = timedelta(days=30)  # history and tombstones
SINCE = "history.status"  # the document that says when this was begun; without one it was always done


def superseding(before: Row | None, change: Change, now: datetime) -> Change:
    """The change, with the document that it ends in its history.  Consumers are left out: any number, and no state of its own."""
    after = change.row
    if before is None or after is None or after.resource_version == before.resource_version:
        return change
    ended = status_document(before)
    del ended["consumers"]
    return replace(change, history=[*change.history, HistoryEntry("status", now, ended)])


@dataclass(frozen=True)
class Past:
    """The document of then, or why there is none."""

    document: Mapping[str, Any] | None
    note: str = ""


async def stood(store: Store, row: Row, at: datetime) -> Past:
    """How the resource stood at that time, as far as that is kept; two or three reads."""
    now = await store.now()
    began = await store.document(SINCE)
    kept = now - KEPT_FOR
    if began is not None:
        kept = max(kept, parse_time(str(began["since"])))
    if at > now:
        return Past(status_document(row), "this time is still to come; it is shown as it stands now")
    if at < kept:
        return Past(None, f"how it stood before {iso(kept)} is not kept")
    entry = await store.stood(row.key, at)
    document = dict(entry.body) if entry is not None else status_document(row)
    created = document["metadata"].get("creationTime")
    if created is not None and parse_time(str(created)) > at:
        return Past(None, f"it was not there yet; it was made at {created}")
    return Past(document)


def told_in_order(entries: Sequence[HistoryEntry]) -> list[dict[str, Any]]:
    """Entries as they are answered, oldest first.  A write is shown at the time it was made, though it is stored when its pass ends."""

    def when(told: Mapping[str, Any], stored: datetime) -> datetime:
        try:
            return parse_time(str(told["at"]))
        except ValueError:
            return stored

    told = [(e.at, {"kind": e.kind, "at": iso(e.at), **e.body}) for e in entries]
    timed = sorted(((when(body, at), body) for at, body in told), key=lambda pair: pair[0])
    return [{**body, "at": iso(at)} for at, body in timed]
