"""From a creation that the API accepted to ACTIVE: API, bus, worker, and a Northbound database that flushes to the disk.

Creations come at a fixed pace whatever becomes of them (open loop); each is looked at every few milliseconds until it is ACTIVE.  20 load
balancers share a network.  The API, the worker, the broker, PostgreSQL and the database are processes of their own; the simulated network
service shares this process, and its part, the VIP's port, is over before a creation is accepted.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

from roadstead.testing.private_ovn import PrivateOvn
from roadstead.testing.servers import PostgresServer
from tests.octavia.client import Client
from tests.ovn.stack import Stack

PER_NETWORK = 20
LOOK_EVERY = 0.004  # seconds between two looks at one load balancer
GIVEN_UP = 30.0
CLIENTS = 8  # at once, while the database is filled
NO_LIMIT = dict.fromkeys(("network", "subnet", "port"), -1)


class WholePath:
    """Running between `start` and `stop`."""

    def __init__(self, folder: Path, postgres: PostgresServer, database: str, ovn: PrivateOvn) -> None:
        self.stack = Stack(folder, postgres, database, ovn)
        self.there = 0
        self._subnets: list[str] = []

    def start(self) -> None:
        self.stack.start()
        self.stack.cloud.settings.log_limit = 100
        self.stack.cloud.neutron.state.quotas[self.stack.people.red.project] = dict(NO_LIMIT)

    def stop(self) -> None:
        self.stack.stop()

    def client(self) -> Client:
        return Client(self.stack.url, self.stack.people.token_of(self.stack.people.red))

    def _subnet(self, number: int) -> str:
        """Of the network that the load balancer of that number goes to."""
        place = number // PER_NETWORK
        while len(self._subnets) <= place:
            scene, at = self.stack.scene, len(self._subnets)
            network = scene.make("network", name=f"bench-{at}")["id"]
            cidr = f"10.{100 + at // 250}.{at % 250}.0/24"
            wanted: dict[str, Any] = {
                "network_id": network,
                "ip_version": 4,
                "cidr": cidr,
                "enable_dhcp": False,
            }
            self._subnets.append(scene.make("subnet", **wanted)["id"])
        return self._subnets[place]

    async def grow(self, count: int) -> None:
        """Until that many load balancers are there and ACTIVE; several clients at once."""
        numbers = iter(range(self.there, count))
        self.there = max(self.there, count)

        async def go() -> None:
            client = self.client()
            for number in numbers:
                await _until_active(client, await self._create(client, number))
            client.close()

        await asyncio.gather(*(go() for _ in range(CLIENTS)))

    async def _create(self, client: Client, number: int) -> str:
        wanted = {"name": f"bench-{number}", "vip_subnet_id": self._subnet(number)}
        reply = await client.call("POST", "loadbalancers", {"loadbalancer": wanted})
        if reply.status != 201:
            raise RuntimeError(f"a creation was answered {reply.status}: {reply.fault}")
        return str(reply.body["loadbalancer"]["id"])

    async def paced(self, per_second: float, seconds: float) -> list[float]:
        """Seconds from accepted to ACTIVE of each creation."""
        count = int(per_second * seconds)
        first, self.there = self.there, self.there + count
        self._subnet(self.there)  # networks are not made on the way
        client = self.client()

        async def one(number: int) -> float:
            identifier = await self._create(client, number)
            accepted = time.perf_counter()
            await _until_active(client, identifier)
            return time.perf_counter() - accepted

        tasks = []
        start = time.perf_counter()
        for index in range(count):
            await asyncio.sleep(max(0.0, start + index / per_second - time.perf_counter()))
            tasks.append(asyncio.create_task(one(first + index)))
        taken = await asyncio.gather(*tasks)
        client.close()
        return list(taken)


async def _until_active(client: Client, identifier: str) -> None:
    deadline = time.monotonic() + GIVEN_UP
    while True:
        reply = await client.call("GET", f"loadbalancers/{identifier}?fields=provisioning_status")
        status = (
            reply.body["loadbalancer"]["provisioning_status"]
            if reply.status == 200
            else f"HTTP {reply.status}"
        )
        if status == "ACTIVE":
            return
        if status != "PENDING_CREATE" or time.monotonic() > deadline:
            raise RuntimeError(f"load balancer {identifier} is {status}")
        await asyncio.sleep(LOOK_EVERY)
