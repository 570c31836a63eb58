"""Rows and rules that the store's tests share."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from roadstead.store.api import Change, HistoryEntry, Outgoing, Query, Row, RowRule, Store, Work
from roadstead.subjects import Key

REGION = "00000000-0000-4000-8000-000000000001"


def key(number: int, kind: str = "server", region: str = REGION, project: str = "p1") -> Key:
    return Key(region, project, kind, str(UUID(int=number)))


def blank(of: Key, identity: str = "i", **columns: Any) -> Row:
    row = Row(
        key=of,
        identity=identity,
        metadata={"name": "n"},
        spec={"size": 1},
        generation=1,
        incarnation=1,
        epoch=1,
        sequence=1,
    )
    return replace(row, **columns)


def put(row: Row, outgoing: Iterable[Outgoing] = (), history: Iterable[HistoryEntry] = ()) -> RowRule:
    """A rule that writes this row whatever was there."""
    return lambda _row, _now: Change(row, tuple(outgoing), tuple(history))


def alter(**columns: Any) -> RowRule:
    """A rule that replaces columns of a row that must exist."""

    def rule(row: Row | None, _now: datetime) -> Change:
        assert row is not None
        return Change(replace(row, **columns))

    return rule


def alter_work(**columns: Any) -> RowRule:
    """A rule that replaces queue columns of a row that must exist."""

    def rule(row: Row | None, _now: datetime) -> Change:
        assert row is not None
        return Change(replace(row, work=replace(row.work, **columns)))

    return rule


async def add_due(store: Store, number: int, identity: str, late: float = 0.0) -> Key:
    """A row of that identity, due since `late` seconds."""
    of = key(number)
    due = await store.now() - timedelta(seconds=late)
    await store.change(of, put(blank(of, identity, work=Work(due_at=due))))
    return of


async def existing(store: Store, of: Key) -> Row:
    row = await store.get(of.kind, of.id)
    assert row is not None
    return row


async def listed(store: Store, **filters: Any) -> list[int]:
    """Numbers of the keys that a list of servers finds, in its order."""
    return [int(r.key.id[-4:], 16) for r in await store.list(Query("server", **filters))]
