"""Shards: stable, shared out fairly, taken over from the dead."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from roadstead.store.memory import MemoryStore
from roadstead.testing.passbench import StandingClock
from roadstead_monitor.shards import leave, shard_of, take
from roadstead_monitor.watch import Watch

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def turn(document: Any, owner: str, at: float = 0.0, shards: int = 8) -> tuple[Any, tuple[int, ...]]:
    return take(document, NOW + timedelta(seconds=at), owner=owner, shards=shards, lease=60.0)


def test_a_project_keeps_its_shard() -> None:
    assert shard_of("r", "i", 32) == 29
    assert {shard_of("r", f"i{n}", 8) for n in range(200)} == set(range(8))


def test_alone_takes_all() -> None:
    document, mine = turn(None, "a")
    assert mine == tuple(range(8))
    assert turn(document, "a", 30)[1] == mine


def test_a_newcomer_gets_its_share_within_one_turn_of_the_others() -> None:
    document, _ = turn(None, "a")
    document, second = turn(document, "b", 1)
    assert second == ()
    document, first = turn(document, "a", 15)
    assert len(first) == 4
    document, second = turn(document, "b", 16)
    assert len(second) == 4
    assert set(first) | set(second) == set(range(8))


def test_the_shards_of_a_dead_replica_are_taken_over_when_its_lease_ends() -> None:
    document, _ = turn(None, "a")
    document, _ = turn(document, "b", 1)
    document, _ = turn(document, "a", 15)
    document, _ = turn(document, "b", 16)
    document, mine = turn(document, "b", 50)
    assert len(mine) == 4
    assert turn(document, "b", 80)[1] == tuple(range(8))


def test_one_that_leaves_frees_its_shards_at_once() -> None:
    document, _ = turn(None, "a")
    document, _ = leave(document, NOW, owner="a")
    assert turn(document, "b", 1)[1] == tuple(range(8))


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 200)), max_size=30), st.integers(1, 40))
def test_no_shard_ever_has_two_live_owners(turns: list[tuple[str, float]], shards: int) -> None:
    document: Any = None
    ours: dict[str, tuple[float, tuple[int, ...]]] = {}
    for owner, at in sorted(turns, key=lambda t: t[1]):
        document, mine = turn(document, owner, at, shards)
        ours[owner] = (at + 60.0, mine)
        live = [n for until, held in ours.values() if until > at for n in held]
        assert len(live) == len(set(live))
        assert all(0 <= n < shards for n in mine)


async def test_a_watch_sweeps_all_shards_when_it_is_alone_and_half_when_there_are_two() -> None:
    class Still:
        def __init__(self) -> None:
            self.mine: list[tuple[int, ...]] = []

        async def sweep(self, name: str, shards: int, mine: tuple[int, ...]) -> Any:
            from roadstead_monitor.sweep import Swept

            self.mine.append(mine)
            return Swept()

    clock = StandingClock()
    store = MemoryStore(clock, name="monitor")
    sweepers = [Still(), Still()]
    watches = [
        Watch(s, store, clock, owner=f"o{n}", period=60.0, shards=8)  # type: ignore[arg-type]  # a still one
        for n, s in enumerate(sweepers)
    ]
    await watches[0].sweep_once()
    assert sweepers[0].mine == [tuple(range(8))]
    for _ in range(2):
        for watch in watches:
            await watch.keep_once()
    for watch in watches:
        await watch.sweep_once()
    assert sorted(sweepers[0].mine[-1] + sweepers[1].mine[-1]) == list(range(8))


async def test_a_store_that_is_away_leaves_the_shards_as_they_are() -> None:
    class Away:
        async def change_document(self, name: str, rule: Any) -> Any:
            raise ConnectionError

    watch = Watch(None, Away(), StandingClock(), owner="o", period=60.0)  # type: ignore[arg-type]  # a store that is away
    watch.mine = (1, 2)
    await watch.keep_once()
    assert watch.mine == (1, 2)
