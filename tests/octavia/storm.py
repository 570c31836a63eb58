"""Fifty clients at once: random operations, valid and not, on load balancers that they share."""

import asyncio
import random
import time
from collections import Counter
from typing import Any

from .building import member
from .client import Client, Reply

LOAD_BALANCERS = 12
POOLS = "pools"
# What a client may be told; 503 only while something that is needed is away.
EXPECTED = frozenset((200, 201, 202, 204, 400, 403, 404, 405, 409))
WORDS = ("deadlock", "serializ", "traceback", "asyncpg", "sqlalchemy")


class Storm:
    """Counts what came back; `faults` are answers that must not be, each with its request."""

    def __init__(self, subnet: str, seed: int, *, allowed: frozenset[int] = EXPECTED) -> None:
        self.subnet = subnet
        self.random = random.Random(seed)
        self.allowed = allowed
        self.counts: Counter[int] = Counter()
        self.faults: list[str] = []
        self.broken = 0

    async def client(self, client: Client, seed: int, until: float) -> None:
        """One client until then; a connection that breaks is counted and opened again."""
        dice = random.Random(seed)
        while time.monotonic() < until:
            try:
                method, path, body = await self._choice(client, dice)
                reply = await client.call(method, path, body)
            except (OSError, EOFError):
                self.broken += 1
                await asyncio.sleep(0.05)
                continue
            self._judge(method, path, body, reply)

    def _judge(self, method: str, path: str, body: Any, reply: Reply) -> None:
        self.counts[reply.status] += 1
        text = str(reply.body).lower()
        if reply.status not in self.allowed or any(word in text for word in WORDS):
            self.faults.append(f"{method} {path} {body}: {reply.status} {str(reply.body)[:300]}")

    async def _ids(self, client: Client, kind: str, query: str = "") -> list[str]:
        reply = await client.call("GET", f"{kind}?fields=id{query}")
        self._judge("GET", kind, None, reply)
        return [row["id"] for row in reply.body[kind]] if reply.status == 200 else []

    async def _choice(self, client: Client, dice: random.Random) -> tuple[str, str, Any]:
        """What to ask next; reads what there is, as others change it all the time."""
        kind = dice.choices(
            ("lb", "listener", "pool", "member", "batch", "monitor", "policy", "rule", "read", "wrong"),
            (12, 12, 12, 10, 10, 6, 8, 6, 16, 8),
        )[0]
        lbs = await self._ids(client, "loadbalancers")
        lb = dice.choice(lbs) if lbs else "11111111-2222-4333-8444-555555555555"
        if kind == "lb" or not lbs:
            return self._load_balancer(dice, lbs, lb)
        if kind == "read":
            return (
                "GET",
                dice.choice((f"loadbalancers/{lb}/status", f"loadbalancers/{lb}", "listeners", POOLS)),
                None,
            )
        if kind == "wrong":
            return dice.choice(self._wrong(lb))
        if kind == "listener":
            return await self._below(client, dice, "listeners", "listener", lb, _listener(dice, lb))
        pools = await self._ids(client, POOLS, f"&loadbalancer_id={lb}")
        if kind == "pool" or not pools:
            wanted = {
                "loadbalancer_id": lb,
                "protocol": "HTTP",
                "lb_algorithm": dice.choice(("ROUND_ROBIN", "SOURCE_IP")),
            }
            return await self._below(client, dice, POOLS, "pool", lb, wanted)
        pool = dice.choice(pools)
        if kind == "batch":
            some = dice.sample(range(10), dice.randint(0, 5))
            return ("PUT", f"pools/{pool}/members", {"members": [_member(n) for n in some]})
        if kind == "member":
            found = await self._members(client, pool)
            if found and dice.random() < 0.6:
                path = f"pools/{pool}/members/{dice.choice(found)}"
                change = {"member": {"weight": dice.randint(0, 256)}}
                return ("DELETE", path, None) if dice.random() < 0.5 else ("PUT", path, change)
            return ("POST", f"pools/{pool}/members", {"member": _member(dice.randint(0, 9))})
        if kind == "monitor":
            values = {"pool_id": pool, "type": "HTTP", "delay": 5, "timeout": 3, "max_retries": 2}
            return await self._below(
                client, dice, "healthmonitors", "healthmonitor", lb, values, f"&pool_id={pool}"
            )
        return await self._policy(client, dice, kind, lb)

    def _load_balancer(self, dice: random.Random, lbs: list[str], lb: str) -> tuple[str, str, Any]:
        if len(lbs) < LOAD_BALANCERS:
            return ("POST", "loadbalancers", {"loadbalancer": {"vip_subnet_id": self.subnet}})
        if dice.random() < 0.15:
            return ("DELETE", f"loadbalancers/{lb}?cascade=true", None)
        return (
            "PUT",
            f"loadbalancers/{lb}",
            {"loadbalancer": {"name": f"n{dice.randint(0, 99)}", "tags": ["t"]}},
        )

    async def _below(
        self,
        client: Client,
        dice: random.Random,
        kind: str,
        name: str,
        lb: str,
        new: Any,
        query: str | None = None,
    ) -> tuple[str, str, Any]:
        found = await self._ids(client, kind, f"&loadbalancer_id={lb}" if query is None else query)
        if found and (len(found) > 4 or dice.random() < 0.6):
            path = f"{kind}/{dice.choice(found)}"
            if dice.random() < 0.4:
                return ("DELETE", path, None)
            return (
                "PUT",
                path,
                {name: {"name": f"n{dice.randint(0, 99)}", "admin_state_up": dice.random() < 0.5}},
            )
        return ("POST", kind, {name: new})

    async def _policy(self, client: Client, dice: random.Random, kind: str, lb: str) -> tuple[str, str, Any]:
        listeners = await self._ids(client, "listeners", f"&loadbalancer_id={lb}")
        if not listeners:
            return ("POST", "listeners", {"listener": _listener(dice, lb)})
        listener = dice.choice(listeners)
        policies = await self._ids(client, "l7policies", f"&listener_id={listener}")
        if kind == "policy" or not policies:
            new = {"listener_id": listener, "action": "REJECT", "position": dice.randint(1, 4)}
            if policies and (len(policies) > 3 or dice.random() < 0.6):
                path = f"l7policies/{dice.choice(policies)}"
                if dice.random() < 0.4:
                    return ("DELETE", path, None)
                return ("PUT", path, {"l7policy": {"position": dice.randint(1, 5)}})
            return ("POST", "l7policies", {"l7policy": new})
        path = f"l7policies/{dice.choice(policies)}/rules"
        return (
            "POST",
            path,
            {"rule": {"type": "PATH", "compare_type": "EQUAL_TO", "value": f"/{dice.random()}"}},
        )

    async def _members(self, client: Client, pool: str) -> list[str]:
        reply = await client.call("GET", f"pools/{pool}/members?fields=id")
        self._judge("GET", f"pools/{pool}/members", None, reply)
        return [row["id"] for row in reply.body["members"]] if reply.status == 200 else []

    def _wrong(self, lb: str) -> tuple[tuple[str, str, Any], ...]:
        return (
            ("POST", "loadbalancers", {"loadbalancer": {"vip_subnet_id": lb}}),
            ("POST", "loadbalancers", b"{"),
            ("PUT", f"loadbalancers/{lb}", {"loadbalancer": {"vip_address": "192.0.2.1"}}),
            (
                "POST",
                "listeners",
                {"listener": {"loadbalancer_id": lb, "protocol": "HTTP", "protocol_port": 99999}},
            ),
            (
                "POST",
                "listeners",
                {"listener": {"loadbalancer_id": lb, "protocol": "NONE", "protocol_port": 80}},
            ),
            ("POST", POOLS, {"pool": {"loadbalancer_id": lb, "protocol": "HTTP", "lb_algorithm": "\0"}}),
            ("DELETE", f"loadbalancers/{lb}", None),
            ("GET", "loadbalancers?limit=-3&marker=x", None),
            ("PATCH", "loadbalancers", None),
        )


def _listener(dice: random.Random, lb: str) -> dict[str, Any]:
    return {"loadbalancer_id": lb, "protocol": "HTTP", "protocol_port": 8000 + dice.randint(0, 7)}


def _member(number: int) -> dict[str, Any]:
    return member(f"192.0.2.{number}", weight=number)
