"""Whether a stream is the one it was, and which life a message belongs to (architecture.md section 3.2): pure rules."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.js import JetStreamContext

from roadstead.bus.epochs import LIVES_KEPT, Epochs, Known, Life, Seen, compare, compare_again, micros
from roadstead.clock import SystemClock
from roadstead.store.memory import MemoryStore

MADE = 1_000
KNOWN = Known(MADE, sequence=500, time=9_000)


def test_a_stream_never_seen_begins_epoch_one() -> None:
    assert compare(None, Seen(MADE, 12)) == (Known(MADE), None)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (Seen(MADE, 500, 9_000), None),
        (Seen(MADE, 700, 9_000), None),
        (Seen(MADE, 700, None), None),  # that message was purged with its resource: no proof of anything
        (Seen(MADE + 1, 700, 9_000), "made anew"),
        (Seen(MADE + 1, 0, None), "made anew"),
        (Seen(MADE, 499, None), "last sequence is 499"),
        (Seen(MADE, 0, None), "last sequence is 0"),
        (Seen(MADE, 500, 9_001), "another one"),
        (Seen(MADE, 900, 8_000), "another one"),
    ],
)
def test_the_epoch_rises_for_a_new_stream_a_lower_end_or_another_message(seen: Seen, why: str | None) -> None:
    fresh, reason = compare(KNOWN, seen)
    if why is None:
        assert reason is None
        assert fresh == KNOWN
    else:
        assert reason is not None
        assert why in reason
        assert fresh.epoch == 2
        assert (fresh.sequence, fresh.time, fresh.created) == (0, 0, seen.created)
        assert fresh.reread < fresh.epoch


def test_a_stream_in_which_nothing_was_handled_cannot_have_another_message() -> None:
    fresh, reason = compare(Known(MADE), Seen(MADE, 40, None))
    assert (fresh.epoch, reason) == (1, None)


def test_messages_that_a_restored_copy_still_holds_keep_their_epoch() -> None:
    fresh, _ = compare(KNOWN, Seen(MADE, 450))
    assert fresh.epoch_of(450, 8_000) == 1
    assert fresh.epoch_of(451, 8_500) == 2  # beyond the copy's end
    assert (
        fresh.epoch_of(430, 9_500) == 2
    )  # later than anything known: published after the restore, before the check
    assert fresh.epoch_of(1, 100) == 1


def test_after_two_restores_each_message_belongs_to_its_own_life() -> None:
    once, _ = compare(KNOWN, Seen(MADE, 450))
    moved = Known(MADE, once.lives, 480, 20_000)
    twice, reason = compare(moved, Seen(MADE, 460))
    assert reason is not None
    assert [twice.epoch_of(*m) for m in ((449, 8_000), (455, 15_000), (461, 19_000), (300, 21_000))] == [
        1,
        2,
        3,
        3,
    ]


def test_a_stream_made_anew_after_nothing_was_handled_there_knows_the_life_before() -> None:
    once, _ = compare(KNOWN, Seen(MADE + 1, 0))
    twice, _ = compare(once, Seen(MADE + 2, 0))
    assert twice.epoch == 3
    assert twice.epoch_of(3, 9_001) == 3
    assert twice.epoch_of(3, 8_999) == 3  # it was empty at the rise: whatever is there came later


def test_only_the_last_lives_are_kept() -> None:
    known = KNOWN
    for number in range(20):
        known, reason = compare(known, Seen(MADE + number + 1, 0))
        assert reason is not None
    assert known.epoch == 21
    assert len(known.lives) == LIVES_KEPT


def test_the_document_comes_back_as_it_was() -> None:
    known, _ = compare(KNOWN, Seen(MADE, 450))
    assert Known.of_document(known.to_document()) == known


@given(
    st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=6),
    st.integers(1, 1000),
    st.integers(0, 10**6),
)
def test_a_message_after_a_rise_is_newer_than_every_one_before_it(
    restores: list[tuple[int, bool]], sequence: int, gap: int
) -> None:
    """Whatever happened to the stream, what is published afterwards has a higher position than anything handled."""
    known, now, highest = Known(1), 10, (1, 0)
    for end, anew in restores:
        now += 1
        handled = known.sequence + 10
        known = Known(known.created, known.lives, handled, now, known.reread)
        highest = max(highest, (known.epoch, handled))
        now += 1 + gap
        known, _ = compare(known, Seen(now if anew else known.created, min(end, handled - 1)))
        after = known.sequence + min(end, handled - 1) + 1
        now += 1
        assert (known.epoch_of(after, now), after) > highest
    if restores:
        assert known.epoch_of(sequence, now + 1) == known.epoch


def test_micros_are_exact_and_know_the_zone() -> None:
    moment = datetime(2031, 5, 6, 7, 8, 9, 123457, tzinfo=UTC)
    assert micros(moment) % 1_000_000 == 123457
    assert micros(moment) // 1_000_000 == int(moment.replace(microsecond=0).timestamp())


def test_lives_compare_by_sequence_first_even_when_a_clock_ran_back() -> None:
    known = Known(MADE, (Life(1), Life(2, above=450, after=9_000)))
    assert known.epoch_of(451, 10) == 2


def test_what_another_replica_noted_after_the_look_is_no_sign_of_a_shorter_stream() -> None:
    moved_on = Known(MADE, sequence=520, time=9_500)
    assert compare_again(KNOWN, moved_on, Seen(MADE, 510, 9_000)) == (moved_on, None)


def test_a_rise_that_another_replica_noted_is_not_made_twice() -> None:
    seen = Seen(MADE, 450)
    by_other, _ = compare(KNOWN, seen)
    assert compare_again(KNOWN, by_other, seen) == (by_other, None)
    fresh, reason = compare_again(KNOWN, KNOWN, seen)
    assert fresh == by_other
    assert reason is not None


def test_a_document_that_another_replica_made_meanwhile_is_kept() -> None:
    assert compare_again(None, KNOWN, Seen(MADE, 600)) == (KNOWN, None)


class GrowingStream:
    """A stream that another replica reads on while this one looks at it."""

    def __init__(self, epochs: Epochs, sequence: int) -> None:
        self.epochs = epochs
        self.sequence = sequence

    async def stream_info(self, _name: str) -> Any:
        created = datetime(2031, 1, 1, tzinfo=UTC)
        state = SimpleNamespace(last_seq=self.sequence)
        self.sequence += 10
        await self.epochs.cover(1, self.sequence, 10 * self.sequence)
        return SimpleNamespace(created=created, state=state)

    async def get_msg(self, _name: str, seq: int) -> Any:
        return SimpleNamespace(time=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=10 * seq))


async def test_a_replica_that_connects_while_messages_flow_sees_no_other_stream() -> None:
    store = MemoryStore(SystemClock())
    other = Epochs(store, "SPEC")
    stream = GrowingStream(other, 100)
    assert await other.check(cast(JetStreamContext, stream)) is None
    assert await Epochs(store, "SPEC").check(cast(JetStreamContext, stream)) is None
    assert await Epochs(store, "SPEC").check(cast(JetStreamContext, stream)) is None


async def test_a_replica_learns_of_a_rise_with_the_next_message_that_it_notes() -> None:
    store = MemoryStore(SystemClock())
    epochs = Epochs(store, "SPEC")
    await epochs.check(cast(JetStreamContext, GrowingStream(epochs, 100)))
    await store.change_document(
        "stream.SPEC",
        lambda d, _now: (compare(Known.of_document(d or {}), Seen(7, 5))[0].to_document(), None),
    )
    await epochs.cover(1, 500, 5_000)
    assert epochs.epoch == 2
