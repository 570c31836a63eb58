"""Any sequence of calls and events, in any order, repeated or lost, with workers that are killed at any await and databases that vanish,
ends well: rendering again gives an empty difference, nothing is pending, and what is shown is what is so.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from random import seed as seed_all
from typing import Any

import pytest

from roadstead.bus.tasks import end_all
from roadstead.telemetry.metrics import Meters
from roadstead_ovn import reports
from roadstead_ovn.balancer import balancer_of
from roadstead_ovn.calls import Around, Intake
from roadstead_ovn.facts import Subnet
from roadstead_ovn.health import health_of
from roadstead_ovn.northbound.model import Faults
from roadstead_ovn.northbound.plan import plan
from roadstead_ovn.passes import Passes
from roadstead_ovn.render import render
from roadstead_ovn.runner import Runner
from roadstead_ovn.stimuli import Stimuli
from roadstead_ovn.store.memory import MemoryWork
from roadstead_ovn.subnets import Subnets

from . import virtual
from .model_api import ModelApi
from .model_region import Copy, ModelRegion
from .shapes import ADDRESSES, SUBNETS, listener, member, monitor, pool

SEQUENCES = int(os.environ.get("ROADSTEAD_OVN_SEQUENCES", "200"))
SHARE = 50  # sequences of one test
STEPS = 30
QUIET = 240.0  # virtual seconds within which all must be well after the last trouble
MOST = 3  # load balancers at the same time
LEASE = 15.0


class Mortal:
    """Something outside of a worker: once the worker is dead it answers no more, so that nothing of it goes on, no clean-up either."""

    def __init__(self, inner: Any, worker: "Worker") -> None:
        self._inner, self._worker = inner, worker

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not asyncio.iscoroutinefunction(value):
            return value

        async def call(*arguments: Any, **named: Any) -> Any:
            await self._worker.alive()
            answer = await value(*arguments, **named)
            await self._worker.alive()
            return answer

        return call


class Worker:
    """One process.  dies_in: awaits of the outside until it is killed, None: never."""

    def __init__(self, world: "World", dies_in: int | None) -> None:
        self.dies_in = dies_in
        self.is_dead = False
        seed = world.random.randrange(1 << 30)
        self.copy = Copy(world.region, replace(world.faults, seed=seed))
        store, network = Mortal(world.store, self), Mortal(world.region, self)
        api, nb = Mortal(world.api, self), Mortal(self.copy, self)
        owner = f"w{world.random.randrange(1 << 30)}"
        meters = Meters()
        subnets = Subnets(network, self.copy.remember, now=asyncio.get_running_loop().time)
        passes = Passes(store, nb, api, network, subnets, owner, lease=LEASE, meters=meters, wall=virtual.now)
        self.runner = Runner(store, passes, owner, most=8, lease=LEASE, poll=1.0, meters=meters)
        stimuli = Stimuli(
            store, nb, api, network, subnets, self.runner, every=60.0, spread=2.0, meters=meters
        )
        self.intake = Intake(store, passes, self.runner, Around(api, subnets), virtual.now)
        jobs = (self.runner.run, stimuli.follow, stimuli.compare)
        self.tasks = [asyncio.create_task(job()) for job in jobs]

    async def alive(self) -> None:
        if self.dies_in is not None and not self.is_dead:
            self.dies_in -= 1
            self.is_dead = self.dies_in < 0
            if self.is_dead:
                self.copy.cut()
        if self.is_dead:
            await asyncio.Event().wait()


@dataclass
class World:
    random: Random
    faults: Faults

    def __post_init__(self) -> None:
        self.region = ModelRegion(Random(self.random.random()))
        self.store = MemoryWork(virtual.now)
        self.api = ModelApi(self._bus, lambda: self.random.random() < 0.8)
        self.workers: list[Worker] = []
        self.dead: list[Worker] = []
        self.is_lossy = True
        self.created = 0
        self.sending: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------ bus

    async def _bus(self, data: bytes) -> None:
        """Calls come late, twice, or not at all."""
        if self.is_lossy and self.random.random() < 0.15:
            return
        for _ in range(1 + (self.is_lossy and self.random.random() < 0.15)):
            task = asyncio.create_task(self._deliver(data, self.random.choice([0.0, 0.01, 3.0])))
            self.sending.add(task)
            task.add_done_callback(self.sending.discard)

    async def _deliver(self, data: bytes, delay: float) -> None:
        await asyncio.sleep(delay)
        while True:
            living = [w for w in self.workers if not w.is_dead]
            if living:
                try:
                    async with asyncio.timeout(20.0):
                        letter = await self.random.choice(living).intake.receive(data)
                except TimeoutError:
                    continue  # it died over it: the broker gives it to the next one
                assert letter is None
                return
            await asyncio.sleep(1.0)

    # ------------------------------------------------------------ steps

    def bury(self) -> None:
        gone = [w for w in self.workers if w.is_dead]
        self.workers = [w for w in self.workers if not w.is_dead]
        self.dead += gone
        for worker in gone:
            if worker.copy in self.region.copies:
                self.region.copies.remove(worker.copy)

    def add_worker(self, is_mortal: bool) -> None:
        self.workers.append(Worker(self, self.random.randrange(1, 60) if is_mortal else None))

    def step(self) -> None:
        self.bury()
        if len(self.workers) < 2 and self.random.random() < 0.5:
            self.add_worker(self.random.random() < 0.6)
        choices: list[tuple[int, Callable[[], None]]] = [
            (12, self._change),
            (3, self._create),
            (1, self._destroy),
            (
                1,
                lambda: self.region.float(self.random.choice([*self._vip_ports(), "vm-192.0.2.10"])),
            ),
            (1, lambda: self.region.join(self.random.choice(["sub-a", "sub-b"]))),
            (1, lambda: self.region.plug(*self._machine())),
            (
                2,
                lambda: self.region.probe(
                    self._machine()[0], 80, self.random.choice(["online", "offline", ""])
                ),
            ),
            (1, lambda: self.region.meddle(self.random.choice([*self.api.trees, "lb-1"]))),
            (1, lambda: self.region.rename(self.random.choice([*self.api.trees, "lb-1"]))),
            (1, self.region.forget_probes),
            (1, self._trouble),
        ]
        weights, steps = zip(*choices, strict=True)
        self.random.choices(steps, weights)[0]()

    def _vip_ports(self) -> list[str]:
        return [port for port in self.region.ports if port.startswith("vip-")]

    def _machine(self) -> tuple[str, str]:
        subnet = self.random.choice(["sub-a", "sub-b"])
        return self.random.choice(ADDRESSES[subnet]), subnet

    def _create(self) -> None:
        if len(self.api.trees) < MOST:
            self.created += 1  # an id is never used again
            name, port = f"lb-{self.created}", f"vip-{self.created}"
            address = f"192.0.2.{50 + self.created}"
            self.region.vip_port(port, name, address)
            parts = self._parts() if self.random.random() < 0.7 else {}
            self.api.create(name, vip_port_id=port, vip_address=address, **parts)

    def _parts(self) -> dict[str, Any]:
        """A listener, its pool with members, and a monitor: one creation may bring it all."""
        self.api.made += 1
        number = self.api.made
        places = [self._machine() for _ in range(self.random.randrange(3))]
        members = [member(f"me-{number}-{n}", a, 80, s) for n, (a, s) in enumerate(places)]
        watched = monitor(f"he-{number}") if self.random.random() < 0.7 else None
        made = pool(f"po-{number}", members, healthmonitor=watched)
        return {"pools": [made], "listeners": [listener(f"li-{number}", 80, f"po-{number}")]}

    def _destroy(self) -> None:
        free = [name for name in self.api.trees if self.api.is_free(name)]
        if free:
            self.api.destroy(self.random.choice(free))

    def _change(self) -> None:
        free = [name for name in self.api.trees if self.api.is_free(name)]
        if not free:
            return
        name = self.random.choice(free)
        children = self.api.children(name)
        pools = [i for kind, i in children if kind == "pools"]
        bare = [p["pool_id"] for p in self.api.trees[name]["loadbalancer"]["pools"] if not p["healthmonitor"]]
        match self.random.randrange(8):
            case 0:
                pool = self.random.choice([*pools, None])
                self.api.child(name, "listeners", port=self.random.choice([80, 81, 443]), pool_id=pool)
            case 1:
                self.api.child(name, "pools")
            case 2 | 3 if pools:
                address, subnet = self._machine()
                pool = self.random.choice(pools)
                self.api.child(name, "members", pool_id=pool, address=address, port=80, subnet_id=subnet)
            case 4 if bare:
                self.api.child(name, "healthmonitors", pool_id=self.random.choice(bare))
            case 5 if children:
                self.api.switch(name, *self.random.choice([*children, ("loadbalancers", name)]))
            case 6 if children:
                self.api.delete(name, *self.random.choice(children))
            case 7 if pools:
                self._batch(name, self.random.choice(pools))

    def _batch(self, name: str, pool_id: str) -> None:
        found = self.api.trees[name]["loadbalancer"]["pools"]
        there = [m["member_id"] for p in found if p["pool_id"] == pool_id for m in p["members"]]
        gone = [member_id for member_id in there if self.random.random() < 0.5]
        address, subnet = self._machine()
        self.api.batch(name, pool_id, {"address": address, "port": 80, "subnet": subnet}, gone)

    def _trouble(self) -> None:
        match self.random.randrange(4):
            case 0:
                self.region.lose()
            case 1:
                self.api.is_down = not self.api.is_down
            case 2:
                self.region.is_down = not self.region.is_down
            case 3 if self.workers:
                worker = self.random.choice(self.workers)
                worker.is_dead = True
                worker.copy.cut()

    # ------------------------------------------------------------ the end

    def heal(self) -> None:
        self.is_lossy = self.api.is_down = self.region.is_down = False
        for worker in self.workers:
            worker.dies_in = None
            worker.copy._faults = Faults()
            if not worker.copy.is_ready():
                worker.copy.mend()
        self.faults = Faults()
        self.bury()
        if not self.workers:
            self.add_worker(is_mortal=False)

    def faults_left(self) -> list[str]:
        """What is not as it should be."""
        found = []
        copy = Copy(self.region, Faults())
        self.region.copies.remove(copy)
        subnets = tuple(Subnet(i, network, cidr) for i, (network, cidr) in SUBNETS.items())
        copy.remember([(s.id, s.network_id, s.cidr) for s in subnets])
        copy.disown(self.region.forgotten)
        for name, tree in self.api.trees.items():
            pending = [
                (key, pair)
                for rows in tree["statuses"].values()
                for key, pair in rows.items()
                if pair[0].startswith("PENDING")
            ]
            if pending:
                found.append(f"{name}: pending {pending}")
            balancer = balancer_of(tree)
            if balancer is None:
                continue
            facts = replace(copy.facts(balancer), subnets=subnets)
            wanted = render(balancer, facts)
            what = plan(name, tree["revision"], wanted, copy.found(name, wanted))
            if what.rows:
                found.append(f"{name}: differs: {what}")
            shown = {key: pair[1] for rows in tree["statuses"].values() for key, pair in rows.items()}
            now = reports.standings(health_of(balancer, facts), balancer)
            if wrong := {
                key: (shown.get(key), value) for key, value in now.items() if shown.get(key) != value
            }:
                found.append(f"{name}: shown and so: {wrong}")
            lacking = [s for s in wanted.monitor_subnets if facts.monitor_port(s) is None]
            if lacking:
                found.append(f"{name}: no port for probes in {lacking}")
        needed = {s for s, owner in self.store.probes if owner in self.api.trees}
        strange = set(copy.known()) - set(self.api.trees)
        if strange and self.api.trees:  # an API that lists nothing is not believed
            found.append(f"rows without a load balancer: {strange}")
        made = {
            p.name.removeprefix("ovn-lb-hm-")
            for p in self.region.ports.values()
            if p.name.startswith("ovn-lb-hm-")
        }
        if made - needed:
            found.append(f"ports for probes that nobody needs: {made - needed}")
        if len(made) != sum(p.name.startswith("ovn-lb-hm-") for p in self.region.ports.values()):
            found.append("two ports for probes in one subnet")
        owned = {tree["loadbalancer"]["vip_port_id"] for tree in self.api.trees.values()}
        if left := set(self._vip_ports()) - owned:
            found.append(f"VIP ports are left behind: {left}")
        return found


async def sequence(seed: int) -> list[str]:
    random = Random(seed)
    seed_all(seed)  # the worker's pauses
    faults = Faults(0, *(random.choice([0.0, 0.1, 0.3]) for _ in range(3)))
    world = World(random, faults)
    world.add_worker(is_mortal=True)
    try:
        for _ in range(STEPS):
            world.step()
            await asyncio.sleep(random.choice([0.0, 0.01, 0.05, 1.0, 1.0, 7.0]))
        world.heal()
        left = ["it has not ended"]
        ends = asyncio.get_running_loop().time() + QUIET
        while left and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(5.0)
            left = world.faults_left()
        return left
    finally:
        everybody = [*world.workers, *world.dead]
        tasks = [t for w in everybody for t in (*w.tasks, *w.runner._tasks)]
        await end_all([*tasks, *world.api.tasks, *world.sending])


@pytest.mark.parametrize("share", range(-(-SEQUENCES // SHARE)))
def test_any_sequence_ends_well(share: int) -> None:
    for seed in range(share * SHARE, min((share + 1) * SHARE, SEQUENCES)):
        left = virtual.run(sequence(seed))
        assert not left, f"sequence {seed}: " + "; ".join(left)
