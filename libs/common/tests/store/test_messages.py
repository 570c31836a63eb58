"""Outbox, history and tombstones, over both stores: written with the row, given out in order, kept for as long as is said."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from roadstead.store.api import Change, HistoryEntry, Outgoing, Store, Work

from .conftest import HandClock
from .rows import add_due, alter, blank, existing, key, listed, put


async def test_messages_and_history_are_there_when_the_row_is_and_in_order(
    store: Store, clock: HandClock
) -> None:
    of = key(1)
    sent = [Outgoing("s.1", b"\x00\xff", {"h": "v"}, "m1"), Outgoing("s.2", b"", {}, None, purge_to=7)]
    entries = [HistoryEntry("decided", clock.now(), {"n": 1}), HistoryEntry("acted", clock.now(), {"n": 2})]
    await store.change(of, put(blank(of), sent, entries))
    one, two = await store.outbox_take(10, 30)
    assert one.outgoing == sent[0]
    assert replace(two.outgoing, message_id=None) == sent[1]
    assert two.outgoing.message_id
    assert one.id < two.id
    assert await store.history(of) == entries


async def test_a_rule_without_a_row_still_sends_and_notes(store: Store, clock: HandClock) -> None:
    entry = HistoryEntry("event", clock.now(), {})
    for of in (key(1), key(2)):
        if of == key(2):
            await store.change(of, put(blank(of)))
        await store.change(of, lambda _r, _n: Change(None, [Outgoing("s", b"x")], [entry]))
        assert await store.history(of) == [entry]
    assert len(await store.outbox_take(10, 30)) == 2
    assert await store.get("server", key(1).id) is None


async def test_made_message_ids_differ(store: Store) -> None:
    await store.change(key(1), put(blank(key(1)), [Outgoing("s", b"x")] * 20))
    assert len({i.outgoing.message_id for i in await store.outbox_take(20, 30)}) == 20


async def test_taken_messages_are_hidden_from_other_relays_until_their_time_is_over(
    store: Store, replica: Store, clock: HandClock
) -> None:
    await store.change(key(1), put(blank(key(1)), [Outgoing(f"s.{n}", b"") for n in range(5)]))
    first = await store.outbox_take(3, 30)
    assert [i.outgoing.subject for i in first] == ["s.0", "s.1", "s.2"]
    assert [i.outgoing.subject for i in await replica.outbox_take(10, 30)] == ["s.3", "s.4"]
    assert await replica.outbox_take(10, 30) == []
    await store.outbox_done([first[0].id])
    clock.forward(30)
    assert [i.outgoing.subject for i in await replica.outbox_take(10, 30)] == ["s.1", "s.2", "s.3", "s.4"]
    await store.outbox_done([first[0].id])  # again: nothing is there any more
    clock.forward(30)
    await store.outbox_done([i.id for i in await store.outbox_take(10, 30)])
    clock.forward(30)
    assert await store.outbox_take(10, 30) == []


async def test_a_later_message_of_a_subject_waits_until_an_earlier_one_is_free_or_gone(
    store: Store, replica: Store, clock: HandClock
) -> None:
    await store.change(key(1), put(blank(key(1)), [Outgoing("s.1", b"old")]))
    (old,) = await store.outbox_take(10, 30)
    await store.change(key(1), put(blank(key(1)), [Outgoing("s.1", b"new"), Outgoing("s.2", b"")]))
    assert [i.outgoing.subject for i in await replica.outbox_take(10, 10)] == ["s.2"]
    clock.forward(30)
    again = await replica.outbox_take(10, 30)
    assert [i.outgoing.payload for i in again if i.outgoing.subject == "s.1"] == [b"old", b"new"]
    clock.forward(30)
    (first, *_) = await store.outbox_take(1, 30)
    assert first.id == old.id
    assert "s.1" not in [i.outgoing.subject for i in await replica.outbox_take(10, 30)]
    await store.outbox_done([old.id])
    assert [i.outgoing.payload for i in await replica.outbox_take(10, 30)] == [b"new"]


async def test_relays_that_take_at_once_never_share_a_subject(store: Store, replica: Store) -> None:
    for n in range(4):
        sent = [Outgoing(f"s.{number % 5}", b"") for number in range(n, n + 20)]
        await store.change(key(n), put(blank(key(n)), sent))
    for _ in range(4):
        batches = await asyncio.gather(*(s.outbox_take(7, 30) for _ in range(4) for s in (store, replica)))
        of = [{i.outgoing.subject for i in batch} for batch in batches]
        assert sum(map(len, of)) == len(set().union(*of)) > 0
        await store.outbox_done([i.id for batch in batches for i in batch])


async def test_two_relays_never_take_one_message_at_once(store: Store, replica: Store) -> None:
    await store.change(key(1), put(blank(key(1)), [Outgoing(f"s.{n}", b"") for n in range(40)]))
    batches = await asyncio.gather(*(s.outbox_take(5, 30) for _ in range(4) for s in (store, replica)))
    ids = [i.id for batch in batches for i in batch]
    assert len(ids) == len(set(ids)) > 0


async def test_history_is_cut_by_time_and_to_the_newest_entries(store: Store, clock: HandClock) -> None:
    of, start = key(1), clock.now()
    for n in range(6):
        await store.change(
            of, put(blank(of), history=[HistoryEntry("acted", start + timedelta(days=n), {"n": n})])
        )

    async def numbers(**window: Any) -> list[int]:
        return [e.body["n"] for e in await store.history(of, **window)]

    assert await numbers() == [0, 1, 2, 3, 4, 5]
    assert await numbers(limit=2) == [4, 5]
    assert await numbers(since=start + timedelta(days=1), until=start + timedelta(days=3)) == [1, 2]
    assert await store.history(key(2)) == []


async def test_history_of_any_day_is_kept_also_far_from_today(store: Store) -> None:
    of = key(1)
    days = [datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)]
    await store.change(of, put(blank(of), history=[HistoryEntry("acted", day, {}) for day in days]))
    assert [e.at for e in await store.history(of)] == days


async def test_purge_removes_what_is_older_and_nothing_else(store: Store, clock: HandClock) -> None:
    old, now = clock.now(), clock.forward(86_400 * 31)
    entries = [HistoryEntry("acted", at, {}) for at in (old, now - timedelta(hours=1), now)]
    await store.change(key(1), put(blank(key(1), gone_at=old), history=entries))
    await store.change(key(2), put(blank(key(2), gone_at=now)))
    await store.change(key(3), put(blank(key(3))))
    assert await store.purge(now - timedelta(days=1), now) == 3
    assert await store.get("server", key(1).id) is None
    assert await store.history(key(1)) == [entries[2]]
    assert await listed(store) == [3]
    assert await listed(store, gone=True) == [2]
    assert await store.purge(now - timedelta(days=1), now) == 0


async def test_a_purged_id_can_be_made_anew(store: Store, clock: HandClock) -> None:
    of = key(1)
    await store.change(of, put(blank(of, gone_at=clock.now(), work=Work(wake_seq=5))))
    await store.purge(clock.forward(1), clock.now())
    await store.change(of, put(blank(of)))
    assert await existing(store, of) == blank(of)


async def test_what_stood_is_the_first_status_that_ended_later(store: Store, clock: HandClock) -> None:
    of, begin = key(1), clock.now()
    ends = [begin + timedelta(hours=h) for h in (1, 2, 2, 30)]
    told = [HistoryEntry("status", at, {"n": n}) for n, at in enumerate(ends)]
    decided = HistoryEntry("decided", ends[0], {"n": 9})
    await store.change(of, put(blank(of), history=[decided, *told]))
    found = {h: await store.stood(of, begin + timedelta(hours=h)) for h in (0, 0.5, 1, 1.5, 2, 29, 30, 31)}
    numbers = {h: entry.body["n"] if entry is not None else None for h, entry in found.items()}
    assert numbers == {0: 0, 0.5: 0, 1: 1, 1.5: 1, 2: 3, 29: 3, 30: None, 31: None}
    assert found[0] == told[0]
    assert await store.history(of) == [decided], "a status is no entry of the history that people read"
    assert await store.stood(key(2), begin) is None


async def test_untold_rows_are_found_once_they_waited_and_the_longest_first(
    store: Store, clock: HandClock
) -> None:
    for number in (3, 1, 2):
        await store.change(key(number), put(blank(key(number), untold_since=clock.forward(1))))
    await store.change(key(4), put(blank(key(4))))
    assert await store.untold(3, 10) == []
    assert await store.untold(1, 10) == [key(3), key(1)]
    assert await store.untold(0, 10) == [key(3), key(1), key(2)]
    assert await store.untold(0, 1) == [key(3)]
    await store.change(key(3), alter(untold_since=None))
    assert await store.untold(0, 10) == [key(1), key(2)]


async def test_a_claim_brings_the_row_and_what_is_known_of_it_is_never_believed_against_the_store(
    store: Store, replica: Store
) -> None:
    of = await add_due(store, 1, "i")
    (lease,) = await store.claim("me", 10, 20)
    assert lease.known is not None
    assert lease.known.row == await existing(store, of)
    await replica.change(of, alter(failures=7))
    change = await store.change(
        of, lambda r, _n: Change(r and replace(r, generation=r.failures)), lease.known
    )
    assert change.row is not None
    assert (change.row.generation, (await existing(store, of)).generation) == (7, 7)
