"""The end of a process's loop: passes that end in time are written, the leases of the others are given back at once."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from roadstead.assembly import Assembly, Platform, Service, assemble
from roadstead.clock import Durations, SystemClock
from roadstead.cloud.credentials import Keyring
from roadstead.reconcile.gate import view_of
from roadstead.reconcile.passing import Pass
from roadstead.seal import Sealer, new_key
from roadstead.store.api import Change, Row, Work
from roadstead.store.memory import MemoryStore

from .toy import KEY, KIND, REGION, Seen

IDENTITY = "33333333-3333-4333-8333-333333333333"


class Nobody:
    """A broker that takes everything and answers that the identity is ready."""

    async def publish(self, subject: str, payload: bytes, headers: Any) -> tuple[int, int]:
        return 1, 1

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        return None

    async def request(self, subject: str, payload: Any) -> Any:
        return {"ok": True}


def view(kind: str, ident: str, spec: dict[str, Any]) -> Any:
    return view_of(
        {
            "kind": kind,
            "metadata": {"id": ident, "regionId": REGION, "generation": 1, "incarnation": 1},
            "spec": spec,
            "status": {"observedGeneration": 1, "provisioningStatus": "provisioned"},
            "resourceVersion": 1,
        }
    )


async def running(seconds: float, drain: float) -> tuple[Assembly, MemoryStore, asyncio.Event]:
    """A loop with one row, whose pass takes that long; the event is set when the pass has begun."""
    begun = asyncio.Event()

    async def observe(_p: Pass[Any, Any, Any]) -> Seen:
        begun.set()
        await asyncio.sleep(seconds)
        return Seen("whole")

    kind = replace(KIND, observe=observe)
    store = MemoryStore(SystemClock())
    assembly = assemble(
        Service("volumes", kinds=(kind,), follows=()),
        Platform(
            store=store,
            cloud=None,  # type: ignore[arg-type]  # no call is made
            broker=Nobody(),
            keyring=Keyring(),
            sealer=Sealer([new_key()]),
            clock=SystemClock(),
            durations=replace(Durations(), drain=drain),
        ),
    )
    assembly.directory.put(view("region", REGION, {"provider": "openstack"}))
    assembly.directory.put(view("identity", IDENTITY, {}))
    credential = {"projectID": "p", "userID": "u", "password": "w", "incarnation": 1}
    assembly.platform.keyring.put_identity(REGION, IDENTITY, credential, 1)
    now = datetime.now(UTC)
    row = Row(
        key=KEY, identity=IDENTITY, metadata={"name": "tin", "identityId": IDENTITY}, spec={"colour": "red"},
        generation=1, incarnation=1, epoch=1, sequence=1, references={f"identity/{IDENTITY}": 1},
        created_at=now, work=Work(due_at=now - timedelta(seconds=1), wake_seq=1),
    )  # fmt: skip
    await store.change(KEY, lambda _row, _now: Change(row))
    return assembly, store, begun


async def stopped(assembly: Assembly, begun: asyncio.Event) -> float:
    """Run until the pass is under way, stop; seconds that the end took."""
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(assembly.runner.run())
    async with asyncio.timeout(5):
        await begun.wait()
        assembly.runner.stop()
        began = loop.time()
        await task
    return loop.time() - began


async def test_a_pass_that_ends_within_the_drain_is_written() -> None:
    assembly, store, begun = await running(seconds=0.2, drain=2.0)
    await stopped(assembly, begun)
    row = await store.get("volume", KEY.id)
    assert row is not None
    assert row.ever_provisioned
    assert row.work.due_at is None


async def test_the_lease_of_a_pass_that_does_not_end_is_given_back() -> None:
    assembly, store, begun = await running(seconds=30.0, drain=0.2)
    assert await stopped(assembly, begun) < 2.0
    row = await store.get("volume", KEY.id)
    assert row is not None
    assert (row.work.lease_owner, row.ever_provisioned) == (None, False)
    leases = await store.claim("another", 1, 20.0)
    assert [lease.key for lease in leases] == [KEY]
