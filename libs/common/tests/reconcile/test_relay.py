"""The outbox on its way out: order within a subject, whatever happens to the relay that has the messages."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from roadstead.reconcile.handlers import PublishFailed
from roadstead.reconcile.relay import Relay
from roadstead.store.api import Change, Outgoing
from roadstead.store.memory import MemoryStore

from .toy import KEY

HIDE = 15.0


class HandClock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Slow:
    """A broker that needs a while for each message, and refuses some."""

    def __init__(self, clock: HandClock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self.refused: set[bytes] = set()
        self.stored: list[bytes] = []

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        self.clock.seconds += self.seconds
        if payload in self.refused:
            raise PublishFailed("no")
        self.stored.append(payload)
        return 1, len(self.stored)

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        raise AssertionError("nothing is purged here")


async def filled(clock: HandClock, *payloads: bytes) -> MemoryStore:
    store = MemoryStore(clock)
    sent = [Outgoing("status.one", payload) for payload in payloads]
    await store.change(KEY, lambda _row, _now: Change(None, sent))
    return store


async def test_what_was_not_sent_in_its_time_is_left_to_whoever_takes_it_next() -> None:
    clock = HandClock()
    store = await filled(clock, b"1", b"2", b"3")
    out = Slow(clock, 8.0)
    relay = Relay(store, out, clock, hide=HIDE)
    assert await relay.flush() == 2
    assert out.stored == [b"1", b"2"]
    assert await Relay(store, out, clock, hide=HIDE).flush() == 1
    assert out.stored == [b"1", b"2", b"3"]


async def test_a_newer_message_waits_for_an_older_one_that_another_relay_could_not_send() -> None:
    clock = HandClock()
    store = await filled(clock, b"1", b"2")
    out = Slow(clock, 0.0)
    out.refused = {b"1"}
    assert await Relay(store, out, clock, hide=HIDE).flush() == 0
    await store.change(KEY, lambda _row, _now: Change(None, [Outgoing("status.one", b"3")]))
    out.refused = set()
    other = Relay(store, out, clock, hide=HIDE)
    assert await other.flush() == 0
    clock.seconds += HIDE
    assert await other.flush() == 3
    assert out.stored == [b"1", b"2", b"3"]
