"""A wake that a message asks for outlives a failure of the store between what is known in memory and what is due in it."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from roadstead.assembly import Platform, Service, assemble
from roadstead.clock import SystemClock
from roadstead.cloud.credentials import Keyring
from roadstead.reconcile.handlers import Handlers
from roadstead.reconcile.owed import Owed
from roadstead.reconcile.views import Directory
from roadstead.seal import Sealer, new_key
from roadstead.store.memory import MemoryStore
from roadstead.testing.passbench import StandingClock

from .test_drain import Nobody
from .toy import REGION

NETWORK, SERVER, OTHER, IDENTITY = (f"{n}" * 8 + "-0000-4000-8000-000000000000" for n in (1, 2, 3, 4))
SUBJECT = f"status.{REGION}.p.network.{NETWORK}"
KEY = new_key()


class Failing:
    """A store whose next wakes fail; the others are noted."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.woken: list[list[tuple[str, str]]] = []
        self.done = asyncio.Event()

    async def wake(self, keys: Iterable[tuple[str, str]], _cause: Mapping[str, Any]) -> int:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the store is away")
        self.woken.append(sorted(keys))
        self.done.set()
        return 1


def handlers(store: Any, nudged: list[int]) -> Handlers:
    kinds: Any = {"server": None}
    made = Handlers("compute", kinds, store, Directory(), Keyring(), Sealer([KEY]))
    made.nudge = lambda: nudged.append(1)
    return made


def status(version: int, state: str, consumers: tuple[str, ...] = (SERVER,)) -> bytes:
    document = {
        "kind": "network",
        "metadata": {"id": NETWORK, "regionId": REGION, "projectId": "p", "generation": 1, "incarnation": 1},
        "status": {"provisioningStatus": state, "observedGeneration": 1},
        "resourceVersion": version,
        "consumers": [f"servers.region.unikorn-cloud.org/{c}" for c in consumers],
    }
    return json.dumps(document).encode()


async def test_k12_a_failure_between_knowing_and_waking_loses_no_wake() -> None:
    store, nudged = Failing(1), list[int]()
    made = handlers(store, nudged)
    with pytest.raises(ConnectionError):
        await made.status(SUBJECT, status(1, "provisioned"))
    assert (store.woken, nudged) == ([], [])
    await made.status(SUBJECT, status(2, "provisioned"))  # says nothing that moved
    assert store.woken == [[("server", SERVER)]]
    assert nudged == [1]


async def test_k12_without_another_message_the_job_makes_up_for_it() -> None:
    store, nudged = Failing(3), list[int]()
    made = handlers(store, nudged)
    made.awaited["network", NETWORK] = {("server", OTHER)}
    job = asyncio.create_task(made.owed.run(StandingClock()))
    with pytest.raises(ConnectionError):
        await made.status(SUBJECT, status(1, "provisioned"))
    async with asyncio.timeout(5):
        await store.done.wait()
    await asyncio.sleep(0)
    job.cancel()
    assert store.woken == [[("server", SERVER), ("server", OTHER)]]
    assert (len(made.owed), nudged) == (0, [1])


async def test_k12_whoever_waits_for_credentials_is_woken_after_a_failure_too() -> None:
    store, nudged = Failing(1), list[int]()
    made = handlers(store, nudged)
    made.awaited["credential", IDENTITY] = {("server", SERVER)}
    record = {"projectID": "p", "userID": "u", "password": "w"}
    body = json.dumps({"version": 1, "sealed": Sealer([KEY]).seal_json(record)}).encode()
    with pytest.raises(ConnectionError):
        await made.credential(f"credential.{REGION}.{IDENTITY}", body)
    await made.owed.pay()
    assert store.woken == [[("server", SERVER)]]


async def test_k12_a_listener_that_fails_keeps_nobody_asleep() -> None:
    store = Failing(0)
    made = handlers(store, [])

    def broken(_view: Any) -> None:
        raise ValueError

    made.on_status.append(broken)
    with pytest.raises(ValueError):
        await made.status(SUBJECT, status(1, "provisioned"))
    await made.owed.pay()
    assert store.woken == [[("server", SERVER)]]


async def test_k12_what_a_reply_told_first_still_wakes_those_who_wait_for_the_message() -> None:
    """One row's pass learns a version by the reply to its reference; STATUS of the same version is news for all others."""
    store = Failing(0)
    made = handlers(store, [])
    await made.status(SUBJECT, status(1, "provisioning"))
    store.woken.clear()
    learnt = Directory()
    learner = Handlers("compute", made.kinds, store, learnt, Keyring(), Sealer([KEY]))  # type: ignore[arg-type]  # wakes alone
    await learner.status(SUBJECT, status(2, "provisioned"))
    store.woken.clear()
    view = learnt.get("network", NETWORK)
    assert view is not None
    made.directory.put(view)
    assert await made.status(SUBJECT, status(2, "provisioned"))
    assert store.woken == [[("server", SERVER)]]
    assert not await made.status(SUBJECT, status(2, "provisioned")), "the same again is none"
    assert len(store.woken) == 1


async def test_an_older_message_takes_nothing_back() -> None:
    made = handlers(Failing(0), [])
    await made.status(SUBJECT, status(3, "provisioned"))
    assert not await made.status(SUBJECT, status(2, "provisioning"))
    view = made.directory.get("network", NETWORK)
    assert view is not None
    assert view.resource_version == 3


async def test_one_message_is_one_write_and_a_quiet_one_none() -> None:
    store = Failing(0)
    made = handlers(store, [])
    made.awaited["network", NETWORK] = {("server", OTHER)}
    await made.status(SUBJECT, status(1, "provisioned"))
    await made.status(SUBJECT, status(2, "provisioned"))
    assert store.woken == [[("server", SERVER), ("server", OTHER)]]


async def test_a_row_that_is_owed_again_while_it_is_paid_stays_owed() -> None:
    store = Failing(0)
    owed = Owed(store, lambda: None)  # type: ignore[arg-type]  # wakes alone
    owed.add([("server", SERVER)], {"reason": "first"})
    paying = asyncio.create_task(owed.pay())
    await asyncio.sleep(0)
    owed.add([("server", SERVER)], {"reason": "second"})
    await paying
    assert len(store.woken) == 2
    assert len(owed) == 0


def test_every_service_makes_up_for_what_it_owes() -> None:
    clock = SystemClock()
    platform = Platform(MemoryStore(clock), None, Nobody(), Keyring(), Sealer([KEY]), clock)  # type: ignore[arg-type]  # no call is made
    assembly = assemble(Service("compute", kinds=(), follows=()), platform)
    jobs = [job() for job in assembly.jobs]
    assert "Owed.run" in [getattr(job, "__qualname__", "") for job in jobs]
    for job in jobs:
        job.close()  # type: ignore[attr-defined]  # a coroutine
