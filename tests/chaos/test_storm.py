"""Everything at once: people edit, processes, broker and database die, lines are cut, the cloud fails - then all is as wished.

In CI it lasts some seconds; ROADSTEAD_SOAK=1 (make soak) lets it blow for ROADSTEAD_STORM seconds (default 600).
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from roadstead.subjects import Key
from tests.chaos.edits import Edits
from tests.chaos.lives import SOAK
from tests.chaos.stack import People, Stack

SECONDS = float(os.environ.get("ROADSTEAD_STORM", "600")) if SOAK else 12.0
SEEDS = (1,) if not SOAK else (2, 3, 4)


@dataclass
class Wanted:
    """A server that people make and remove."""

    key: Key
    name: str
    present: bool = False


class Storm:
    """Chance picks what goes wrong and when; the seed stands in the test's name."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self.stack = stack
        self.chance = random.Random(seed)

    async def blow(self, until: float) -> None:
        choices: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (8, self.kill), (2, self.freeze), (4, self.fault), (2, self.cut), (1, self.broker), (1, self.database),
        ]  # fmt: skip
        weights = [weight for weight, _ in choices]
        while time.monotonic() < until:
            _, trouble = self.chance.choices(choices, weights)[0]
            await trouble()
            await asyncio.sleep(self.chance.uniform(0.2, 1.5))

    async def kill(self) -> None:
        self.stack.crew.kill(self.chance.choice(self.stack.crew.members))

    async def freeze(self) -> None:
        member = self.chance.choice(self.stack.crew.members)
        pid = member.pid
        member.signal(signal.SIGSTOP)
        await asyncio.sleep(self.chance.uniform(0.5, 4.0))
        if member.pid == pid:
            member.signal(signal.SIGCONT)

    async def fault(self) -> None:
        kind = self.chance.choice(("status", "status_after", "no_answer_before", "no_answer_after", "slow"))
        method = self.chance.choice(("GET", "POST", "PUT", "DELETE"))
        status = self.chance.choice((500, 502, 503, 429))
        self.stack.trouble(kind, method=method, status=status, delay=2.0, times=self.chance.randint(1, 3))

    async def cut(self) -> None:
        for line in (self.stack.bus_line, self.stack.database_line):
            await asyncio.to_thread(self.stack.lines.do, line.cut())

    async def broker(self) -> None:
        await self.stack.do(self.stack.nats.kill)
        await asyncio.sleep(self.chance.uniform(0.0, 1.5))
        await self.stack.do(self.stack.nats.start)

    async def database(self) -> None:
        await self.stack.do(self.stack.postgres.kill)
        await asyncio.sleep(self.chance.uniform(0.0, 1.5))
        await self.stack.do(self.stack.postgres.start)


class Crowd:
    """People who make and remove servers on one network."""

    def __init__(self, stack: Stack, people: People, network: Key, seed: int) -> None:
        self.stack = stack
        self.people = people
        self.network = network
        self.chance = random.Random(-seed)
        self.servers = [
            Wanted(people.server_key(network, name), name) for name in (stack.name("web") for _ in range(4))
        ]

    async def act(self, until: float) -> None:
        while time.monotonic() < until:
            await self.change(self.chance.choice(self.servers))
            await asyncio.sleep(self.chance.uniform(0.5, 3.0))

    async def change(self, server: Wanted) -> None:
        server.present = not server.present
        if server.present:
            spec = self.people.server_spec(self.network, public=self.chance.random() < 0.5)
            await self.people.apply(server.key, server.name, spec)
        else:
            await self.people.delete(server.key)

    async def settled(self) -> None:
        for server in self.servers:
            wanted = "provisioned" if server.present else "gone"
            if await self.people.state(server.key) == "absent" and not server.present:
                continue
            await self.people.until(server.key, wanted, within=60)
            count = 1 if server.present else 0
            assert len(self.stack.servers(server.key.id)) == count, server
            assert len(self.stack.ports(server.key.id)) == count, server
            assert len(self.stack.addresses(server.key.id)) <= count, server


@pytest.mark.timeout(SECONDS + 150)
@pytest.mark.parametrize("seed", SEEDS)
async def test_k1_k7_k12_k13_after_a_storm_all_is_as_wished(stack: Stack, people: People, seed: int) -> None:
    """GIVEN edits without end WHEN for a while everything dies, freezes, fails and comes back
    THEN afterwards each resource is as it was wished last, once, and a cascade leaves nothing."""
    network = await people.network()
    edits = Edits(stack, people, network, 3)
    crowd = Crowd(stack, people, network, seed)
    storm = Storm(stack, seed)
    until = time.monotonic() + SECONDS
    editing = asyncio.create_task(edits.for_ever(0.5))
    try:
        await asyncio.gather(storm.blow(until), crowd.act(until))
    finally:
        editing.cancel()
        await asyncio.gather(editing, return_exceptions=True)
    stack.calm()
    await asyncio.to_thread(stack.crew.ready)
    await edits.everywhere()
    await edits.settled(60)
    await crowd.settled()
    await people.delete(network, cascade=True)
    await people.until(network, "gone", within=60)
    assert [s for w in crowd.servers for s in stack.servers(w.key.id)] == []
    assert [n for n in stack.listed("network", "/v2.0/networks", "networks") if network.id in n["name"]] == []
