"""How often a pass asks the database: what stands between a message and the first request to the cloud is counted in round trips."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from roadstead.assembly import Assembly, Platform, Service, assemble
from roadstead.clock import SystemClock
from roadstead.cloud.credentials import Keyring
from roadstead.reconcile.kind import Need
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.wiring import Held
from roadstead.seal import Sealer, new_key
from roadstead.store.migrate import migrate
from roadstead.store.postgres import PostgresStore
from roadstead.testing.servers import PostgresServer

from .test_drain import IDENTITY, view
from .test_gate import NETWORK, target
from .test_ingest_rules import spec
from .toy import KEY, KIND, REGION, Seen

pytestmark = pytest.mark.integration
SCHEMA = "trips"


class Owners:
    """Grants every reference; nothing of it needs our database."""

    async def request(self, _subject: str, payload: Any) -> Any:
        return target(payload["kind"], payload["id"], identityId=IDENTITY)


class Rig:
    """A service of one kind on PostgreSQL, whose passes are driven by hand."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.asked: list[int] = []  # round trips until each observation

        async def observe(_p: Pass[Any, Any, Any]) -> Seen:
            self.asked.append(store.round_trips)
            return Seen("whole")

        kind = replace(KIND, observe=observe, needs=lambda _r: (Need("network", NETWORK),))
        self.assembly: Assembly = assemble(
            Service("volumes", kinds=(kind,), follows=()),
            Platform(store, None, Owners(), Keyring(), Sealer([new_key()]), SystemClock()),  # type: ignore[arg-type]  # no call is made
        )
        self.assembly.directory.put(view("region", REGION, {"provider": "openstack"}))
        credential = {"projectID": "p", "userID": "u", "password": "w", "incarnation": 1}
        self.assembly.platform.keyring.put_identity(REGION, IDENTITY, credential, 1)

    async def ingest(self, colour: str, sequence: int) -> int:
        before = self.store.round_trips
        body = spec(colour, metadata={"identityId": IDENTITY})
        await self.assembly.handlers.spec(f"spec.{KEY}", body, (1, sequence), {})
        return self.store.round_trips - before

    async def one(self) -> tuple[int, int]:
        """Round trips of one pass: from the claim to the cloud, and in all."""
        before = self.store.round_trips
        (lease,) = await self.store.claim("me", 10, 20)
        held = Held(lease, 1e12, known=lease.known)
        row = await self.assembly.runner.performing.one(held)
        assert row is not None
        assert (row.work.due_at, row.status["provisioningStatus"]) == (None, "provisioned")
        return self.asked[-1] - before, self.store.round_trips - before


@pytest.fixture
async def rig(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    url = postgres_server.create_database(f"trips_{os.getpid()}_{abs(hash(request.node.name)) % 10**6}")
    await migrate(url, [SCHEMA], roles=False)
    store = PostgresStore(url, SCHEMA)
    await store.open()
    yield Rig(store)
    await store.close()


async def test_a_new_resource_is_four_round_trips_from_its_first_request(rig: Rig) -> None:
    """Two to take it in, one to claim it, one to write down what it is about to ask the owners for; the end of the pass is one."""
    assert await rig.ingest("red", 5) == 2
    assert await rig.one() == (2, 3)
    row = await rig.store.get(KEY.kind, KEY.id)
    assert row is not None
    assert row.references == {f"network/{NETWORK}": 1, f"identity/{IDENTITY}": 1}


async def test_an_edit_is_three_round_trips_from_its_first_request(rig: Rig) -> None:
    await rig.ingest("red", 5)
    await rig.one()
    assert await rig.ingest("blue", 6) == 2
    assert await rig.one() == (1, 2)


async def test_a_pass_that_finds_nothing_to_do_is_a_claim_and_a_write(rig: Rig) -> None:
    await rig.ingest("red", 5)
    await rig.one()
    for _ in range(3):
        await rig.store.wake([(KEY.kind, KEY.id)], {"reason": "again"})
        assert await rig.one() == (1, 2)


async def test_a_wake_during_the_pass_costs_a_read_and_is_not_lost(rig: Rig) -> None:
    await rig.ingest("red", 5)
    await rig.one()
    await rig.store.wake([(KEY.kind, KEY.id)], {"reason": "first"})
    (lease,) = await rig.store.claim("me", 10, 20)
    await rig.store.wake([(KEY.kind, KEY.id)], {"reason": "meanwhile"})
    before = rig.store.round_trips
    row = await rig.assembly.runner.performing.one(Held(lease, 1e12, known=lease.known))
    assert rig.store.round_trips - before == 3
    assert row is not None
    assert row.work.due_at is not None
    await asyncio.sleep(0.01)
    assert await rig.one() == (1, 2)
