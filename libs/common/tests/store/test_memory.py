"""What the memory store offers to a simulation beside the contract: edges, replicas, and the same ids in every run."""

from dataclasses import replace

import pytest

from roadstead.store.api import Outgoing
from roadstead.store.memory import MemoryStore

from .conftest import HandClock
from .rows import add_due, alter, blank, existing, key, put


class Crash(Exception):
    pass


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_at_an_edge_leaves_the_operation_undone_or_done_and_never_half(after: bool) -> None:
    async def edge(operation: str, at_end: bool) -> None:
        if operation == "change" and at_end is after:
            raise Crash

    store = MemoryStore(HandClock())
    await store.change(key(1), put(blank(key(1))))
    dying = store.reopened(edge=edge)
    with pytest.raises(Crash):
        await dying.change(
            key(1), lambda r, n: replace(alter(failures=1)(r, n), outgoing=[Outgoing("s", b"")])
        )
    assert (await existing(store, key(1))).failures == (1 if after else 0)
    assert len(await store.outbox_take(5, 5)) == (1 if after else 0)


async def test_every_operation_passes_its_edges() -> None:
    seen: list[tuple[str, bool]] = []

    async def edge(operation: str, at_end: bool) -> None:
        seen.append((operation, at_end))

    clock = HandClock()
    store = MemoryStore(clock, edge=edge)
    of = await add_due(store, 1, "a")
    leases = await store.claim("me", 1, 5)
    await store.renew(leases, 5)
    await store.release(leases)
    await store.wake([(of.kind, of.id)], {})
    await store.outbox_take(1, 1)
    await store.outbox_done([])
    await store.change_document("d", lambda d, _n: (d, None))
    await store.purge(clock.now(), clock.now())
    writes = [
        "change",
        "claim",
        "renew",
        "release",
        "wake",
        "outbox_take",
        "outbox_done",
        "change_document",
        "purge",
    ]
    assert seen == [(name, at_end) for name in writes for at_end in (False, True)]


async def test_replicas_share_rows_and_have_cursors_of_their_own() -> None:
    store = MemoryStore(HandClock())
    for n, identity in enumerate("abc"):
        await add_due(store, n, identity)
    replica = store.reopened()
    assert [x.key for x in await store.claim("one", 1, 5)] == [key(0)]
    assert [x.key for x in await replica.claim("two", 1, 5)] == [key(1)]
    assert [x.key for x in await store.claim("one", 1, 5)] == [key(2)]


async def test_two_runs_of_one_history_give_the_same_message_ids() -> None:
    async def run() -> list[str | None]:
        store = MemoryStore(HandClock(), name="compute")
        for n in range(3):
            await store.change(key(n), put(blank(key(n)), [Outgoing("s", b"")]))
        return [i.outgoing.message_id for i in await store.outbox_take(10, 1)]

    assert await run() == await run() == ["compute-1", "compute-2", "compute-3"]
