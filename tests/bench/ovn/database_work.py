"""What one change costs from the load balancer as it is wanted to the rows in a real Northbound database, on both sides in turn.

Ours: tree, facts, rendering, comparison, one verified transaction.  The original: a call of its driver until its queue is empty; its network
service answers at once and its status messages cost nothing.  All load balancers hang on one network, on the router that joins it to
another one, and on that one; each that is there already has a listener, a pool and a member.
"""

import asyncio
import gc
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from roadstead.testing.ovn_mirror.ovsdb import NamedUUID, encoded
from roadstead.testing.private_ovn import PrivateOvn
from roadstead_ovn.balancer import balancer_of
from roadstead_ovn.facts import Subnet
from roadstead_ovn.northbound.ovsdb import OvsdbNorthbound, Server, Servers
from roadstead_ovn.northbound.port import Written
from roadstead_ovn.render import render
from roadstead_ovn.rows import Wanted
from tests.ovn.original.process import Original

NETWORK = "00000ae7-0000-4000-8000-000000000001"
SUBNET = "0000005b-0000-4000-8000-000000000001"
CIDR = "10.0.0.0/8"
ROUTER = "00004047-0000-4000-8000-000000000001"
# Network and the router's address there.
JOINED = ((NETWORK, "10.0.0.1/8"), ("00000ae7-0000-4000-8000-000000000002", "172.16.0.1/16"))
LIMIT = 900.0
Json = dict[str, Any]


@dataclass
class Figure:
    """Seconds of each run, by side."""

    ours: list[float] = field(default_factory=list)
    original: list[float] = field(default_factory=list)
    transactions: int = 0


def identifier(kind: int, number: int) -> str:
    return f"{kind:08x}-0000-4000-8000-{number:012x}"


def address(number: int, net: int = 1) -> str:
    return f"10.{net}.{number // 250 % 250}.{1 + number % 250}"


def member(number: int, lb: int) -> Json:
    return {
        "member_id": identifier(0x3E30000 + lb, number), "pool_id": identifier(0x9001, lb), "address": address(number, 2),
        "protocol_port": 8080, "subnet_id": SUBNET, "admin_state_up": True,
    }  # fmt: skip


def listener(lb: int) -> Json:
    return {
        "listener_id": identifier(0x115, lb), "loadbalancer_id": identifier(0x1B, lb), "protocol": "TCP",
        "protocol_port": 80, "admin_state_up": True, "default_pool_id": identifier(0x9001, lb),
    }  # fmt: skip


def pool(lb: int, members: list[Json]) -> Json:
    return {
        "pool_id": identifier(0x9001, lb), "loadbalancer_id": identifier(0x1B, lb), "protocol": "TCP",
        "lb_algorithm": "SOURCE_IP_PORT", "admin_state_up": True, "members": members,
    }  # fmt: skip


def balancer(lb: int) -> Json:
    return {
        "loadbalancer_id": identifier(0x1B, lb), "name": "bench", "admin_state_up": True, "vip_address": address(lb),
        "vip_port_id": identifier(0x9047, lb), "vip_network_id": NETWORK, "vip_subnet_id": SUBNET,
    }  # fmt: skip


def tree(lb: int, members: int | None = None, revision: int = 1) -> Json:
    """members: None for a load balancer without anything in it."""
    model = balancer(lb)
    if members is not None:
        model |= {
            "listeners": [listener(lb)],
            "pools": [pool(lb, [member(n, lb) for n in range(1, members + 1)])],
        }
    return {
        "loadbalancer_id": model["loadbalancer_id"],
        "revision": revision,
        "loadbalancer": model,
        "statuses": {},
    }


def laid() -> list[Json]:
    """Two networks and the router between them, as the network service writes them."""
    held: list[Any] = []
    found: list[Json] = []
    for number, (network, address_there) in enumerate(JOINED, 1):
        port, name = identifier(0x9047, 900_000 + number), f"neutron-{network}"
        inner = {
            "name": port, "type": "router", "addresses": "router", "options": encoded({"router-port": f"lrp-{port}"}),
            "external_ids": encoded({
                "neutron:device_owner": "network:router_interface", "neutron:device_id": ROUTER,
                "neutron:cidrs": address_there, "neutron:network_name": name, "neutron:port_name": "",
                "neutron:project_id": "",
            }),
        }  # fmt: skip
        outer = {
            "name": f"lrp-{port}", "mac": f"fa:16:3e:00:00:0{number}", "networks": address_there,
            "external_ids": encoded({
                "neutron:network_name": name, "neutron:router_name": ROUTER, "neutron:is_ext_gw": "False",
            }),
        }  # fmt: skip
        switch = {"name": name, "ports": encoded([NamedUUID(f"inner{number}")])}
        found += [
            {"op": "insert", "table": "Logical_Switch_Port", "uuid-name": f"inner{number}", "row": inner},
            {"op": "insert", "table": "Logical_Router_Port", "uuid-name": f"outer{number}", "row": outer},
            {"op": "insert", "table": "Logical_Switch", "row": switch},
        ]
        held.append(NamedUUID(f"outer{number}"))
    router = {"name": f"neutron-{ROUTER}", "ports": encoded(held)}
    return [*found, {"op": "insert", "table": "Logical_Router", "row": router}]


class DatabaseWork:
    """An OVN, our side in this process, and the original as a process (None: it is not here)."""

    def __init__(self, ovn: PrivateOvn, original: Original | None) -> None:
        self.ovn = ovn
        self.original = original
        self.there = 0
        self._next = 100_000

    async def start(self) -> None:
        session = self.ovn.nb()
        session.transact(*laid())
        session.close()
        servers = Servers(Server((self.ovn.northbound,)), Server((self.ovn.southbound,)))
        self.northbound = OvsdbNorthbound(servers)
        await self.northbound.start()
        await asyncio.wait_for(self.northbound.ready(), 30)
        self.northbound.remember([(SUBNET, NETWORK, CIDR)])

    async def stop(self) -> None:
        await self.northbound.close()

    async def ours(self, wanted: Mapping[str, Any]) -> tuple[float, Written]:
        """Seconds from the tree to the answer of the database."""
        start = time.perf_counter()
        made = balancer_of(wanted)
        assert made is not None
        facts = replace(self.northbound.facts(made), subnets=(Subnet(SUBNET, NETWORK, CIDR),))
        rows = render(made, facts)
        found = self.northbound.found(made.id, rows)
        written = await self.northbound.write(made.id, made.revision, rows, found)
        return time.perf_counter() - start, written

    async def removed(self, lb: int) -> None:
        name, nothing = identifier(0x1B, lb), Wanted()
        await self.northbound.write(name, 2**31, nothing, self.northbound.found(name, nothing))

    async def grow(self, count: int) -> None:
        """Until that many whole load balancers are there."""
        while self.there < count:
            self.there += 1
            await self.ours(tree(self.there, 1))

    async def creations(self, rounds: int) -> Figure:
        figure = Figure()
        # Each side would otherwise take in the other's writes on the same processors.
        with self.original.frozen() if self.original is not None else nullcontext():
            for _ in range(rounds):
                self._next += 1
                with no_collection():
                    seconds, written = await self.ours(tree(self._next))
                figure.ours.append(seconds)
                figure.transactions = max(figure.transactions, written.transactions)
                await self.removed(self._next)
        for _ in range(rounds if self.original is not None else 0):
            assert self.original is not None
            self._next += 1
            figure.original.append(await self._original_creates(self.original, self._next))
        return figure

    async def _original_creates(self, original: Original, lb: int) -> float:
        model = balancer(lb)
        original.ask("know", tree=model)
        answer = await asyncio.to_thread(original.call, "loadbalancer_create", "LoadBalancer", model)
        assert answer.error is None, answer.error
        if not answer.statuses:
            raise RuntimeError(f"the original said nothing; its log: {original.log.read_text()[-1500:]}")
        await asyncio.to_thread(original.call, "loadbalancer_delete", "LoadBalancer", model, cascade=True)
        return answer.seconds

    async def batch(self, members: int) -> Figure:
        """A pool without members gets that many in one call."""
        self._next += 1
        lb, figure = self._next, Figure()
        with self.original.frozen() if self.original is not None else nullcontext():
            await self.ours(tree(lb, 0))
            with no_collection():
                seconds, written = await self.ours(tree(lb, members, revision=2))
            figure.ours.append(seconds)
            figure.transactions = written.transactions
            await self.removed(lb)
        if self.original is not None:
            figure.original.append(await self._original_batch(self.original, lb, members))
        return figure

    async def _original_batch(self, original: Original, lb: int, members: int) -> float:
        def go() -> float:
            bare = {k: v for k, v in pool(lb, []).items() if k != "members"} | {
                "listener_id": identifier(0x115, lb)
            }
            plain = {k: v for k, v in listener(lb).items() if k != "default_pool_id"}
            original.ask("know", tree={**balancer(lb), "listeners": [plain], "pools": [pool(lb, [])]})
            for method, kind, values in (
                ("loadbalancer_create", "LoadBalancer", balancer(lb)),
                ("listener_create", "Listener", plain),
                ("pool_create", "Pool", bare),
            ):
                answer = original.call(method, kind, values)
                assert answer.error is None, answer.error
            new = [member(n, lb) for n in range(1, members + 1)]
            answer = original.ask("batch", LIMIT, pool_id=identifier(0x9001, lb), members=new)
            assert answer.error is None, answer.error
            return answer.seconds

        seconds = await asyncio.to_thread(go)
        await self.removed(lb)
        return seconds


@contextmanager
def no_collection() -> Iterator[None]:
    """A run is not charged for the objects that earlier ones left behind."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="bench-ovn-", dir="/tmp"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
