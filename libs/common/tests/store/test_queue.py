"""The queue columns, over both stores: wake, claim, renew, release, and fairness between identities."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest

from roadstead.store.api import Change, Lease, Row, Store, Work

from .conftest import HandClock
from .rows import add_due, alter_work, blank, existing, key, put

CAUSE = {"subject": "spec.x", "sequence": 4}


async def test_a_wake_makes_due_and_counts_and_keeps_an_earlier_due_time(
    store: Store, clock: HandClock
) -> None:
    resting, early, later = key(1), key(2), key(3)
    before, after = clock.now() - timedelta(seconds=9), clock.now() + timedelta(seconds=9)
    await store.change(resting, put(blank(resting)))
    await store.change(early, put(blank(early, work=Work(due_at=before, wake_seq=3))))
    await store.change(later, put(blank(later, work=Work(due_at=after))))
    pairs = [("server", k.id) for k in (resting, early, later)]
    assert await store.wake([*pairs, pairs[0], ("server", key(9).id), ("volume", resting.id)], CAUSE) == 3
    assert (await existing(store, resting)).work == Work(clock.now(), 1, cause=CAUSE)
    assert (await existing(store, early)).work == Work(before, 4, cause=CAUSE)
    assert (await existing(store, later)).work == Work(clock.now(), 1, cause=CAUSE)


async def test_a_wake_of_nothing_and_of_a_tombstone_wakes_nothing(store: Store, clock: HandClock) -> None:
    of = key(1)
    await store.change(of, put(blank(of, gone_at=clock.now())))
    assert await store.wake([], CAUSE) == 0
    assert await store.wake([("server", of.id)], CAUSE) == 0
    assert (await existing(store, of)).work == Work()


async def test_a_row_that_lives_again_can_be_woken(store: Store, clock: HandClock) -> None:
    of = key(1)
    await store.change(of, put(blank(of, gone_at=clock.now())))
    await store.change(of, put(blank(of)))
    assert await store.wake([("server", of.id)], CAUSE) == 1


async def test_a_claim_takes_what_is_due_and_nothing_else(store: Store, clock: HandClock) -> None:
    of = await add_due(store, 1, "a", late=3)
    await add_due(store, 2, "b", late=-3)
    await store.change(key(3), put(blank(key(3))))
    leases = await store.claim("me", 10, 20)
    assert leases == [
        Lease(of, "me", 1, clock.now() + timedelta(seconds=20), 0, clock.now() - timedelta(seconds=3))
    ]
    work = (await existing(store, of)).work
    assert (work.lease_owner, work.lease_until, work.lease_epoch) == ("me", leases[0].until, 1)
    assert await store.claim("me", 10, 20) == []
    clock.forward(3)
    assert [lease.key for lease in await store.claim("me", 10, 20)] == [key(2)]


async def test_a_lease_that_ends_lets_the_row_be_claimed_with_the_next_epoch(
    store: Store, replica: Store, clock: HandClock
) -> None:
    await add_due(store, 1, "a")
    (first,) = await store.claim("one", 10, 20)
    clock.forward(19.999)
    assert await replica.claim("two", 10, 20) == []
    clock.forward(0.001)
    (second,) = await replica.claim("two", 10, 20)
    assert (second.owner, second.epoch) == ("two", first.epoch + 1)
    assert await store.renew([first], 20) == {}
    await store.release([first])
    assert (await existing(store, first.key)).work.lease_owner == "two"


async def test_a_claim_tells_the_wake_it_answers(store: Store) -> None:
    of = await add_due(store, 1, "a")
    await store.wake([("server", of.id)] * 3, CAUSE)
    await store.wake([("server", of.id)], CAUSE)
    assert [lease.wake_seq for lease in await store.claim("me", 1, 20)] == [2]


async def test_a_wake_during_a_lease_is_seen_at_its_end_and_makes_the_row_due(
    store: Store, clock: HandClock
) -> None:
    of = await add_due(store, 1, "a")
    (lease,) = await store.claim("me", 1, 20)

    def finish(row: Row | None, now: datetime) -> Change:
        assert row is not None
        moved = row.work.wake_seq != lease.wake_seq
        return alter_work(due_at=now if moved else None, lease_owner=None, lease_until=None)(row, now)

    clock.forward(1)
    assert await store.wake([("server", of.id)], CAUSE) == 1
    assert await store.claim("other", 1, 20) == []
    await store.change(of, finish)
    (again,) = await store.claim("me", 1, 20)
    assert (again.wake_seq, again.due_at, again.epoch) == (lease.wake_seq + 1, clock.now(), 2)
    lease = again
    await store.change(of, finish)
    assert await store.claim("me", 1, 20) == []
    assert await store.next_due() is None


async def test_wakes_race_with_the_end_of_a_pass_and_none_is_lost(store: Store, replica: Store) -> None:
    of = await add_due(store, 1, "a")
    for _ in range(10):
        (lease,) = await store.claim("me", 1, 20)

        def finish(row: Row | None, now: datetime, lease: Lease = lease) -> Change:
            assert row is not None
            moved = row.work.wake_seq != lease.wake_seq
            return alter_work(due_at=now if moved else None, lease_owner=None, lease_until=None)(row, now)

        await asyncio.gather(store.change(of, finish), replica.wake([("server", of.id)], CAUSE))
        work = (await existing(store, of)).work
        assert work.wake_seq == lease.wake_seq + 1
        assert work.due_at is not None


async def test_renewing_extends_what_is_ours_and_leaves_out_what_is_lost(
    store: Store, clock: HandClock
) -> None:
    for n in (1, 2, 3):
        await add_due(store, n, "a")
    leases = await store.claim("me", 3, 20)
    stolen = leases[1]
    await store.change(stolen.key, alter_work(lease_epoch=stolen.epoch + 1))
    clock.forward(5)
    end = clock.now() + timedelta(seconds=20)
    assert await store.renew(leases, 20) == {leases[0].key: end, leases[2].key: end}
    assert (await existing(store, stolen.key)).work.lease_until == stolen.until
    assert await store.renew([], 20) == {}


async def test_renewing_never_makes_a_lease_shorter(store: Store, clock: HandClock) -> None:
    """A lease that was extended past a call's deadline outlives the next ordinary renewal."""
    await add_due(store, 1, "a")
    (lease,) = await store.claim("me", 1, 80)
    assert await store.renew([lease], 20) == {lease.key: lease.until}


async def test_an_ended_lease_that_nobody_took_can_be_renewed(store: Store, clock: HandClock) -> None:
    await add_due(store, 1, "a")
    (lease,) = await store.claim("me", 1, 20)
    clock.forward(60)
    assert await store.renew([lease], 20) == {lease.key: clock.now() + timedelta(seconds=20)}
    assert await store.claim("other", 1, 20) == []


async def test_released_work_is_due_at_once_for_another_and_cannot_be_renewed(
    store: Store, replica: Store, clock: HandClock
) -> None:
    await add_due(store, 1, "a", late=4)
    (lease,) = await store.claim("me", 1, 20)
    await store.change(lease.key, alter_work(due_at=None))
    await store.release([lease])
    assert await store.renew([lease], 20) == {}
    (taken,) = await replica.claim("other", 1, 20)
    assert (taken.due_at, taken.epoch) == (clock.now(), lease.epoch + 1)


async def test_two_replicas_claiming_at_once_never_get_one_row_twice(store: Store, replica: Store) -> None:
    for n in range(40):
        await add_due(store, n, f"i{n % 5}")
    batches = await asyncio.gather(*(s.claim(f"{n}", 8, 20) for n in range(4) for s in (store, replica)))
    keys = [lease.key for batch in batches for lease in batch]
    assert len(keys) == len(set(keys)) > 8


async def test_next_due_is_the_earliest_of_due_times_and_lease_ends(store: Store, clock: HandClock) -> None:
    assert await store.next_due() is None
    first = await add_due(store, 1, "a", late=-30)
    assert await store.next_due() == clock.now() + timedelta(seconds=30)
    await add_due(store, 2, "b", late=2)
    assert await store.next_due() == clock.now() - timedelta(seconds=2)
    await store.claim("me", 5, 20)
    assert await store.next_due() == clock.now() + timedelta(seconds=20)
    await store.change(first, alter_work(due_at=clock.now() + timedelta(seconds=7)))
    assert await store.next_due() == clock.now() + timedelta(seconds=7)
    clock.forward(21)
    await store.change(first, alter_work(due_at=None))
    assert await store.next_due() == clock.now() - timedelta(seconds=23)


@pytest.mark.parametrize("bad", [{"limit": 0}, {"lease_seconds": 0}, {"per_identity": 0}], ids=str)
async def test_a_claim_of_nothing_is_refused(store: Store, bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        await store.claim("me", **{"limit": 1, "lease_seconds": 1, "per_identity": 1, **bad})


# ---- fairness


async def test_a_claim_takes_a_few_of_each_identity_the_oldest_first(store: Store) -> None:
    for n in range(9):
        await add_due(store, n, "big", late=n)
    await add_due(store, 50, "small", late=1)
    leases = await store.claim("me", 10, 20, per_identity=2)
    assert [lease.key for lease in leases] == [key(8), key(7), key(50)]


async def test_claims_walk_on_from_where_the_last_one_ended(store: Store, replica: Store) -> None:
    for n, identity in enumerate("abcde"):
        for m in range(3):
            await add_due(store, n * 10 + m, identity)
    taken = []
    for _ in range(4):
        taken.append(
            [(await existing(store, x.key)).identity for x in await store.claim("me", 2, 20, per_identity=1)]
        )
    assert taken == [["a", "b"], ["c", "d"], ["e", "a"], ["b", "c"]]
    assert [(await existing(store, x.key)).identity for x in await replica.claim("me", 1, 20)] == ["a"]


async def test_one_identity_with_nine_tenths_of_the_rows_starves_nobody(store: Store) -> None:
    """400 due rows, 360 of one identity and the oldest: the other forty identities are all served in three claims."""
    for n in range(360):
        await add_due(store, n, "m-burst", late=100)
    others = {f"{'az'[n % 2]}-{n}" for n in range(40)}
    for n, identity in enumerate(sorted(others)):
        await add_due(store, 1000 + n, identity, late=1)
    served: Counter[str] = Counter()
    for _ in range(3):
        for lease in await store.claim("me", 20, 20):
            served[(await existing(store, lease.key)).identity] += 1
    assert others <= set(served)
    assert served["m-burst"] <= 2 * 4


async def test_a_burst_behind_many_identities_with_nothing_due_yet_is_still_served(store: Store) -> None:
    for n in range(300):
        await add_due(store, n, f"f-{n:03}", late=-3600)
    for n in range(300):
        await add_due(store, 1000 + n, "z-burst", late=9)
    await add_due(store, 2000, "a-late", late=1)
    served: Counter[str] = Counter()
    for _ in range(4):
        leases = await store.claim("me", 8, 20)
        assert leases, "something is due, so a claim finds something"
        for lease in leases:
            served[(await existing(store, lease.key)).identity] += 1
    assert served["a-late"] == 1
    assert served["z-burst"] >= 12
    assert set(served) == {"a-late", "z-burst"}


async def test_every_due_row_is_claimed_once_in_the_end(store: Store, replica: Store) -> None:
    keys = [await add_due(store, n, f"i{n % 7}" if n % 3 else "one", late=n % 11) for n in range(300)]
    taken: list[Lease] = []
    while batch := [*await store.claim("a", 16, 99), *await replica.claim("b", 16, 99)]:
        taken += batch
    assert sorted(lease.key for lease in taken) == sorted(keys)
