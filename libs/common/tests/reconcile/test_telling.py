"""Consumers are told together: the cost of a resource's STATUS grows with its consumers, not with their square."""

import json
from collections.abc import Mapping
from typing import Any

from roadstead.assembly import Assembly, Platform, Service, assemble
from roadstead.clock import SystemClock
from roadstead.cloud.credentials import Keyring
from roadstead.reconcile.telling import TELL_AFTER, Telling
from roadstead.seal import Sealer, new_key
from roadstead.store.memory import MemoryStore

from ..store.conftest import HandClock
from .test_ingest_rules import spec
from .toy import KEY, KIND, REGION

CONSUMERS = 200


class Nobody:
    """A bus that is not used."""


def made() -> tuple[MemoryStore, HandClock, Assembly]:
    clock = HandClock()
    store = MemoryStore(clock)
    platform = Platform(store, Nobody(), Nobody(), Keyring(), Sealer([new_key()]), SystemClock())  # type: ignore[arg-type]  # no call is made
    return store, clock, assemble(Service(KIND.service, (KIND,), ()), platform)


async def accepted(assembly: Assembly) -> None:
    await assembly.handlers.spec(f"spec.{KEY}", spec(), (1, 5), {})


async def told(store: MemoryStore) -> list[dict[str, Any]]:
    """STATUS documents that left since the last call."""
    items = await store.outbox_take(1000, 15)
    await store.outbox_done([i.id for i in items])
    return [json.loads(i.outgoing.payload) for i in items if i.outgoing.subject.startswith("status.")]


async def ask(assembly: Assembly, verb: str, number: int) -> Mapping[str, Any]:
    consumer = f"servers.region.unikorn-cloud.org/{number:04d}"
    ask = {"kind": KEY.kind, "id": KEY.id, "region": REGION, "consumer": consumer}
    return await assembly.api.rpc(f"reference.{verb}", ask)


async def test_two_hundred_consumers_in_a_second_are_one_message() -> None:
    store, clock, assembly = made()
    await accepted(assembly)
    [first] = await told(store)
    telling = Telling(store, clock, lambda: None, after=TELL_AFTER)
    replies = []
    for number in range(CONSUMERS):
        clock.forward(TELL_AFTER / CONSUMERS * 0.9)
        replies.append(await ask(assembly, "add", number))
        await telling.tell(TELL_AFTER)
    assert await told(store) == []
    assert all(r["ok"] and r["target"]["metadata"]["id"] == KEY.id for r in replies)
    assert len({len(json.dumps(r)) for r in replies}) == 1, "no answer lists the consumers before it"
    clock.forward(TELL_AFTER)
    await telling.tell(TELL_AFTER)
    [last] = await told(store)
    assert len(last["consumers"]) == CONSUMERS
    assert last["resourceVersion"] == first["resourceVersion"] + 1
    await telling.tell()
    assert await told(store) == []


async def test_consumers_that_come_all_the_time_are_told_once_an_interval() -> None:
    store, clock, assembly = made()
    await accepted(assembly)
    await told(store)
    telling = Telling(store, clock, lambda: None, after=TELL_AFTER)
    for number in range(CONSUMERS):
        clock.forward(TELL_AFTER / 10)
        await ask(assembly, "add", number)
        await telling.tell(TELL_AFTER)
    assert len(await told(store)) in range(CONSUMERS // 12, CONSUMERS // 10 + 1)


async def test_those_that_leave_are_told_as_well_and_a_message_for_another_reason_spares_its_own() -> None:
    store, clock, assembly = made()
    await accepted(assembly)
    telling = Telling(store, clock, lambda: None, after=TELL_AFTER)
    for number in (1, 2):
        await ask(assembly, "add", number)
    await telling.tell()
    await told(store)
    await ask(assembly, "remove", 1)
    await assembly.api.request(f"api.{REGION}.{KEY.project}.{KEY.kind}.pause", {"id": KEY.id}, {})
    [paused] = await told(store)
    assert [c[-4:] for c in paused["consumers"]] == ["0002"]
    assert await telling.tell() == 0
    await ask(assembly, "remove", 2)
    assert await telling.tell() == 1
    assert [d["consumers"] for d in await told(store)] == [[]]


async def test_what_a_process_that_ended_did_not_tell_the_next_one_tells() -> None:
    store, clock, assembly = made()
    await accepted(assembly)
    await told(store)
    await ask(assembly, "add", 1)
    clock.forward(TELL_AFTER)
    assert await Telling(store.reopened(), clock, lambda: None, after=TELL_AFTER).tell(TELL_AFTER) == 1
    assert [len(d["consumers"]) for d in await told(store)] == [1]
