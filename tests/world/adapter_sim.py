"""Scenarios on virtual time: the whole product in one thread over the simulator's state, a fresh world for each scenario."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from roadstead.events import dump
from roadstead.subjects import OWNERS, Key, spec_subject
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.direct import DirectAdministrator
from tests.world.admin import Admin
from tests.world.base import Document, Home, World
from tests.world.cloud_admin import CloudAdmin
from tests.world.foreigner import Foreigner
from tests.world.hand import DirectHand
from tests.world.registration import offer_of, registered
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import VirtualClock, run_virtual

INVENTORIES = {
    "flavor": "compute",
    "image": "compute",
    "volumeclass": "volumes",
    "externalnetwork": "network",
}
TURN = 0.25  # virtual seconds between two looks


class SimScenario(World):
    """A World over a SimWorld."""

    level = "simulation"

    def __init__(self, sim: SimWorld, cloud: CloudAdmin, foreigner: Foreigner) -> None:
        super().__init__()
        self.sim = sim
        self.cloud = cloud
        self.foreigner = foreigner
        self.region = sim.region
        self.project = sim.project

    async def open(self) -> None:
        """Configure and register with the product's own code."""
        prefix = "scenario"
        self.offer = await offer_of(self.cloud, self.foreigner, prefix)
        made = await registered(DirectAdministrator(self.sim.cloud), self.offer, prefix, self.region)
        key = Key(self.region, "_", "region", self.region)
        await self.publish(key, made.envelope)
        reply = await self.sim.bus.request("rpc.identity.region.credentials", made.credential or {})
        assert reply.get("version"), reply
        await self.sim.until(key, "provisioned")

    async def publish(self, key: Key, body: Mapping[str, Any] | bytes) -> int:
        raw = body if isinstance(body, bytes) else dump(body)
        _, sequence = await self.sim.bus.publish(spec_subject(key), raw, {})
        return sequence

    def newest(self, key: Key) -> Document | None:
        return self.sim.status(key)

    async def request(self, kind: str, verb: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        service = INVENTORIES.get(kind) or OWNERS[kind]
        owner = next(r for r in self.sim.replicas if r.service.name == service and r.assembly is not None)
        assert owner.assembly is not None
        return await owner.assembly.api.request(
            f"api.{self.region}.{self.project}.{kind}.{verb}", payload, {}
        )

    async def home(self) -> Home:
        return await self.build_home()

    async def sweep(self) -> None:
        for replica in self.sim.replicas:
            if replica.service.name == "monitor" and replica.assembly is not None:
                await replica.assembly.extras["watch"].sweep_once()
        await self.eventually(lambda: not self.sim.bus.delivering, "rest of the broker")

    async def quiet_pass(self, ref: Any) -> None:
        await self.request(ref.kind, "resume", {"id": ref.id})
        store = self.sim.stores[OWNERS[ref.kind]]
        for _ in range(4000):
            row = await store.get(ref.kind, ref.id)
            assert row is not None
            if row.work.due_at is None and row.work.lease_owner is None:
                return
            await asyncio.sleep(TURN)
        raise AssertionError(f"{ref.kind} {ref.name} did not come to rest")

    async def moved(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, TURN))

    def clock(self) -> float:
        return asyncio.get_running_loop().time()


def run_scenario(scenario: Callable[[World], Awaitable[None]]) -> None:
    """One scenario in a world of its own, to its end; nothing of it may stay in the cloud."""

    async def whole() -> None:
        cloud = Cloud(VirtualClock(asyncio.get_running_loop()))
        admin = CloudAdmin(DirectHand(cloud))
        async with SimWorld.running(ALL, cloud=cloud) as sim:
            world = SimScenario(sim, admin, Foreigner(admin))
            await world.open()
            before = Admin(cloud).objects()
            await scenario(world)
            await world.clear()
            await world.foreigner.tidy()
            await asyncio.sleep(5.0)
            left = {o for o in Admin(cloud).objects() - before if o[0] != "security_groups"}
            assert not left, f"left behind in the cloud: {left}"

    run_virtual(whole())
