"""What both stores know of a Row's columns, and the checks that do not depend on where the bytes lie."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from roadstead.store.api import Change, HistoryEntry, Lease, Outgoing, Query, Row, Work
from roadstead.store.plain_json import check_text, copy_plain, to_plain
from roadstead.subjects import Key

# Columns that hold JSON; those of the second set are tuples of objects in a Row and lists in the database.
OBJECTS = ("metadata", "spec", "next_spec", "observed", "status", "references", "decided")
TUPLES_OF_OBJECTS = ("refusal", "intents")
TUPLES_OF_TEXTS = ("warnings", "consumers")

LARGEST_PAGE = 10_000


def checked_change(key: Key, handed: Row | None, kept: Row | None, change: Change) -> Change:
    """The change with its row in plain values.  `handed` is the row the rule was given, `kept` the store's own.

    A column that is still the very object of `handed` is taken from `kept` unseen.  So a rule that alters a column in
    place alters nothing, in either store.  ValueError when the row is another resource's or cannot be stored.
    """
    row = change.row
    if row is None:
        return change
    if (row.key.kind, row.key.id) != (key.kind, key.id):
        raise ValueError(f"the rule for {key.kind} {key.id} returned a row of {row.key.kind} {row.key.id}")
    if row is handed:
        return Change(kept, change.outgoing, change.history, change.result)

    def column(name: str, value: Any) -> Any:
        if handed is not None and value is getattr(handed, name):
            return getattr(kept, name)
        return to_plain(value)

    plain = rebuilt(row, column)
    texts = (row.key.region, row.key.project, row.key.id, row.identity, row.record, row.work.lease_owner)
    for text in (*texts, *row.warnings, *row.consumers):
        if text:
            check_text(text)
    return Change(plain, change.outgoing, change.history, change.result)


def rebuilt(row: Row, copy: Callable[[str, Any], Any]) -> Row:
    """A new Row whose JSON columns went through `copy(column, value)`."""
    fields = dict(row.__dict__)
    for name in OBJECTS:
        if fields[name] is not None:
            fields[name] = copy(name, fields[name])
    for name in TUPLES_OF_OBJECTS:
        if fields[name]:
            fields[name] = tuple(copy(name, fields[name]))
    if row.work.cause:
        work = dict(row.work.__dict__)
        work["cause"] = to_plain(row.work.cause)
        fields["work"] = assembled(Work, work)
    made: Row = assembled(Row, fields)
    return made


def copied_row(row: Row) -> Row:
    """A copy of a stored row that shares no mutable value with it."""
    return rebuilt(
        row, lambda _, value: [copy_plain(v) for v in value] if type(value) is tuple else copy_plain(value)
    )


def assembled(kind: Any, fields: dict[str, Any]) -> Any:
    """A dataclass object from all of its fields, unchecked."""
    # dataclasses.replace calls __init__ with thirty arguments; a simulation spends most of its time there.
    made = object.__new__(kind)
    made.__dict__.update(fields)
    return made


def checked_outgoing(outgoing: Outgoing) -> Outgoing:
    """A copy with plain headers; ValueError for what cannot be stored."""
    check_text(outgoing.subject)
    if outgoing.message_id is not None:
        check_text(outgoing.message_id)
    headers = {check_text(str(name)): check_text(str(value)) for name, value in outgoing.headers.items()}
    return Outgoing(
        outgoing.subject, bytes(outgoing.payload), headers, outgoing.message_id, outgoing.purge_to
    )


def checked_history(entry: HistoryEntry) -> HistoryEntry:
    """A copy with a plain body; ValueError for what cannot be stored, or for a time without zone."""
    if entry.at.tzinfo is None:
        raise ValueError("a history entry needs an aware time")
    return HistoryEntry(check_text(entry.kind), entry.at, to_plain(entry.body))


def checked_query(query: Query) -> Query:
    """The query itself; ValueError when its page size is out of bounds or a text of it cannot be compared."""
    if not 1 <= query.limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be between 1 and {LARGEST_PAGE}")
    single = (
        query.kind,
        query.region,
        query.project,
        query.identity,
        query.network,
        query.name,
        query.marker,
    )
    for text in (*single, *query.codes, *(part for tag in query.tags for part in tag)):
        if text:
            check_text(text)
    return query


def checked_limits(**numbers: float) -> None:
    """ValueError when one of the named numbers is not above zero."""
    for name, number in numbers.items():
        if number <= 0:
            raise ValueError(f"{name} must be above zero, not {number}")


def checked_pairs(keys: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each (kind, id) once, in the order in which rows are locked."""
    return sorted({(check_text(kind), check_text(ident)) for kind, ident in keys})


def ordered(leases: Iterable[Lease]) -> list[Lease]:
    """Leases in the one order in which rows are locked, so that two callers cannot wait for each other."""
    return sorted(leases, key=lambda lease: (lease.key.kind, lease.key.id))


def lease_is_free(work: Work, now: datetime) -> bool:
    """Whether nobody holds the row at that time."""
    return work.lease_until is None or work.lease_until <= now


def network_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    """The network that a listing finds the resource under: metadata.networkId, spec.networkID or the first of
    spec.networks, in this order."""
    for holder, name in ((metadata, "networkId"), (spec, "networkID")):
        if isinstance(found := holder.get(name), str) and found:
            return found
    networks = spec.get("networks")
    if isinstance(networks, list) and networks and isinstance(networks[0], Mapping):
        found = networks[0].get("id")
        return found if isinstance(found, str) else None
    return None


def matches(query: Query, row: Row) -> bool:
    """Whether a row is one the query asks for, page marks aside."""
    wanted = (
        (query.kind, row.key.kind),
        (query.region, row.key.region),
        (query.project, row.key.project),
        (query.identity, row.identity),
        (query.name, row.metadata.get("name")),
    )
    if query.gone is not (row.gone_at is not None) or any(w is not None and w != has for w, has in wanted):
        return False
    if query.network is not None and network_of(row.metadata, row.spec) != query.network:
        return False
    if query.codes and row.status.get("code") not in query.codes:
        return False
    tags = row.metadata.get("tags")
    held = {(t.get("name"), t.get("value")) for t in tags} if isinstance(tags, list) else set()
    return set(query.tags) <= held
