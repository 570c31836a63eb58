"""Messages that fail: delivered again, later each time; put aside only when they fail while all is well."""

import asyncio
from typing import Any

import pytest
from nats.aio.client import Client

from roadstead.bus import durable
from roadstead.bus.durable import delay_after
from roadstead.store.api import StoreUnavailable

from .conftest import Rig, dead_letters, eventually, new_id, spec_body, subject_of

pytestmark = pytest.mark.integration


def test_delays_double_up_to_thirty_seconds() -> None:
    assert [delay_after(n) for n in (1, 2, 3, 4, 5, 6, 7, 1000)] == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ladder of delays, a hundred times as fast."""
    monkeypatch.setattr(durable, "delay_after", lambda deliveries: delay_after(deliveries) / 100)


class Faults:
    """Raises for the change of one resource, a number of times."""

    def __init__(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: dict[str, tuple[int, Exception]] = {}
        self.raised: list[str] = []
        real = rig.store.change

        async def change(key: Any, rule: Any) -> Any:
            count, error = self.left.get(key.id, (0, Exception()))
            if count > 0:
                self.left[key.id] = (count - 1, error)
                self.raised.append(key.id)
                raise error
            return await real(key, rule)

        monkeypatch.setattr(rig.store, "change", change)


@pytest.fixture
def faults(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(rig, monkeypatch)


async def test_a_message_that_failed_is_delivered_again_and_then_stored(
    rig: Rig, person: Client, faults: Faults, quick: None
) -> None:
    ident = new_id()
    faults.left[ident] = (4, RuntimeError("a passing fault"))
    await person.jetstream().publish(subject_of(ident), spec_body("red"))
    await eventually(lambda: rig.row(ident))
    assert len(faults.raised) == 4
    assert await dead_letters(person) == []


async def test_after_five_failures_in_health_a_message_is_quarantined_and_later_ones_go_on(
    rig: Rig, person: Client, faults: Faults, quick: None
) -> None:
    bad, good = new_id(), new_id()
    faults.left[bad] = (5, RuntimeError("secret detail"))
    js = person.jetstream()
    await js.publish(subject_of(bad), spec_body("red"))
    await js.publish(subject_of(good), spec_body("green"))
    [(subject, headers, body)] = await eventually(lambda: dead_letters(person))
    assert subject.endswith(bad)
    assert headers["Roadstead-Reason"] == "QUARANTINED"
    assert "RuntimeError" in headers["Roadstead-Message"]
    assert "secret detail" not in str(headers)
    assert body == spec_body("red")
    assert await rig.colour(good) == "green"
    assert len(faults.raised) == 5

    # What comes later for the same resource is served.
    await js.publish(subject_of(bad), spec_body("blue"))

    async def served() -> bool:
        return await rig.colour(bad) == "blue"

    await eventually(served)


async def test_oc_37_a_handler_that_never_returns_is_ended_and_its_message_put_aside(
    rig: Rig, person: Client, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    """GIVEN a handler that hangs for one message for ever WHEN it and others arrive THEN ours is the limit that ends it, well before
    the broker's; after five tries it is quarantined, nobody had it twice at a time, and all behind it is served."""
    stuck, behind = new_id(), [new_id() for _ in range(5)]
    at_once = most = tries = 0
    real = rig.store.change

    async def change(key: Any, rule: Any) -> Any:
        nonlocal at_once, most, tries
        if key.id != stuck or tries >= 5:
            return await real(key, rule)
        tries += 1
        at_once += 1
        most = max(most, at_once)
        try:
            await asyncio.Event().wait()
        finally:
            at_once -= 1

    monkeypatch.setattr(rig.store, "change", change)
    for consumer in rig.streams.durables:
        assert consumer.limit < consumer.settings.ack_wait
        consumer.limit = 0.2
    js = person.jetstream()
    await js.publish(subject_of(stuck), spec_body("red"))
    for ident in behind:
        await js.publish(subject_of(ident), spec_body("green"))
    await js.publish(subject_of(stuck), spec_body("blue"))
    [(subject, headers, body)] = await eventually(lambda: dead_letters(person), what="a dead letter")
    assert subject.endswith(stuck)
    assert (headers["Roadstead-Reason"], body) == ("QUARANTINED", spec_body("red"))
    assert "TimeoutError" in headers["Roadstead-Message"]
    assert (tries, most) == (5, 1)
    assert [await rig.colour(ident) for ident in behind] == ["green"] * 5

    async def next_one_served() -> bool:
        return await rig.colour(stuck) == "blue"

    await eventually(next_one_served, what="the next message about the same resource")


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), OSError("gone"), RuntimeError("gone")])
async def test_an_outage_of_the_database_never_becomes_quarantine(
    rig: Rig, person: Client, monkeypatch: pytest.MonkeyPatch, quick: None, error: Exception
) -> None:
    """Whatever it looks like to the handler: while the database does not answer, failures do not count."""
    real, down, tries = rig.store.change, True, 0

    async def change(key: Any, rule: Any) -> Any:
        nonlocal tries
        if down:
            tries += 1
            raise error
        return await real(key, rule)

    async def now() -> Any:
        if down:
            raise StoreUnavailable("the database does not answer")
        return rig.store.clock.now()

    monkeypatch.setattr(rig.store, "change", change)
    monkeypatch.setattr(rig.store, "now", now)
    idents = [new_id() for _ in range(5)]
    for ident in idents:
        await person.jetstream().publish(subject_of(ident), spec_body("red"))
    await eventually(lambda: tries >= 40, what="eight deliveries of each message")
    assert await dead_letters(person) == []
    down = False

    async def stored() -> bool:
        return all([await rig.row(i) is not None for i in idents])

    await eventually(stored)


async def test_a_later_edit_waits_for_an_earlier_one_that_failed(
    rig: Rig, person: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delete that fails once, followed at once by a new spec: the order of the two is kept."""
    monkeypatch.setattr(durable, "delay_after", lambda deliveries: 0.2)
    ident = new_id()
    js = person.jetstream()
    await js.publish(subject_of(ident), spec_body("red"))
    await eventually(lambda: rig.row(ident))
    faults.left[ident] = (1, RuntimeError("a passing fault"))
    await js.publish(subject_of(ident), b'{"delete": true}')
    await js.publish(subject_of(ident), spec_body("blue"))

    async def both() -> Any:
        row = await rig.row(ident)
        return row if row.deleting and row.next_spec else None

    row = await eventually(both)
    assert row.next_spec["spec"]["colour"] == "blue"


async def test_a_slow_message_holds_back_no_other_resource(
    rig: Rig, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, real, release = new_id(), rig.store.change, asyncio.Event()

    async def change(key: Any, rule: Any) -> Any:
        if key.id == slow:
            await release.wait()
        return await real(key, rule)

    monkeypatch.setattr(rig.store, "change", change)
    js = person.jetstream()
    await js.publish(subject_of(slow), spec_body("red"))
    others = [new_id() for _ in range(200)]
    for ident in others:
        await js.publish(subject_of(ident), spec_body("red"))

    async def stored() -> bool:
        return all([await rig.row(i) is not None for i in others])

    await eventually(stored)
    assert await rig.row(slow) is None
    release.set()
    await eventually(lambda: rig.row(slow))


async def test_nothing_is_acknowledged_before_the_stream_document_knows_of_it(
    rig: Rig, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, blocked = rig.store.change_document, asyncio.Event()

    async def change_document(name: str, rule: Any) -> Any:
        if name == "stream.SPEC":
            await blocked.wait()
        return await real(name, rule)

    monkeypatch.setattr(rig.store, "change_document", change_document)
    ident = new_id()
    js = person.jetstream()
    await js.publish(subject_of(ident), spec_body("red"))
    await eventually(lambda: rig.row(ident))
    await asyncio.sleep(0.2)
    assert (await js.consumer_info("SPEC", "volumes-spec")).num_ack_pending == 1
    blocked.set()

    async def acknowledged() -> bool:
        return bool((await js.consumer_info("SPEC", "volumes-spec")).num_ack_pending == 0)

    await eventually(acknowledged)
    document = await rig.store.document("stream.SPEC")
    assert document is not None
    assert document["sequence"] == 1


async def test_a_dead_letter_that_cannot_be_stored_keeps_the_message(
    rig: Rig, person: Client, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    from roadstead.bus.failures import PublishFailed

    real, refused = rig.bus.publish, 0

    async def publish(subject: str, payload: bytes, headers: Any) -> tuple[int, int]:
        nonlocal refused
        if subject.startswith("dlq.") and refused < 7:
            refused += 1
            raise PublishFailed("not now")
        return await real(subject, payload, headers)

    monkeypatch.setattr(rig.bus, "publish", publish)
    await person.jetstream().publish(subject_of(new_id()), b"{")
    [(_, headers, _)] = await eventually(lambda: dead_letters(person))
    assert headers["Roadstead-Reason"] == "NOT_JSON"
    assert refused == 7
