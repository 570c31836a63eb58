"""Subnets by id: their network and CIDR never change, so each is asked for once and kept for as long as the process lives.

One that is not there is asked for again after a while: it may have been made meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import Subnet
from roadstead_ovn.network import Network

MISSING_FOR = 10.0  # seconds that an answer "not there" is believed
MOST_MISSING = 10_000


class Subnets:
    """learnt: is told of each subnet when it becomes known."""

    def __init__(
        self,
        network: Network,
        learnt: Callable[[list[tuple[str, str, str]]], None] = lambda _: None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._network = network
        self._learnt = learnt
        self._now = now
        self._known: dict[str, Subnet] = {}
        self._missing: dict[str, float] = {}
        self._asking = asyncio.Lock()

    async def of(self, balancers: Iterable[Balancer]) -> None:
        """Get to know every subnet of these; one request for all that is not known yet.  NetworkRefused."""
        await self.get({subnet for balancer in balancers for subnet in subnets_of(balancer)})

    async def get(self, identifiers: Iterable[str]) -> tuple[Subnet, ...]:
        """Those of them that exist.  NetworkRefused."""
        wanted = [one for one in sorted(set(identifiers)) if one]
        if self._lacking(wanted):
            async with self._asking:  # who waited here finds most of them known
                if lacking := self._lacking(wanted):
                    await self._ask(lacking)
        return self.known(wanted)

    def known(self, identifiers: Iterable[str]) -> tuple[Subnet, ...]:
        return tuple(self._known[one] for one in identifiers if one in self._known)

    def _lacking(self, wanted: list[str]) -> list[str]:
        now = self._now()
        return [one for one in wanted if one not in self._known and self._missing.get(one, 0.0) <= now]

    async def _ask(self, lacking: list[str]) -> None:
        found = {
            str(item["id"]): Subnet(str(item["id"]), str(item["network_id"]), str(item["cidr"]))
            for item in await self._network.subnets(lacking)
        }
        self._known.update(found)
        if len(self._missing) > MOST_MISSING:
            self._missing.clear()
        for one in lacking:
            self._missing.pop(one, None)
            if one not in found:
                self._missing[one] = self._now() + MISSING_FOR
        self._learnt([(s.id, s.network_id, s.cidr) for s in found.values()])


def subnets_of(balancer: Balancer) -> set[str]:
    """Ids of the subnets of its VIPs and members."""
    found = {vip.subnet_id for vip in balancer.vips}
    found |= {balancer.member_subnet(member) for pool in balancer.pools for member in pool.members}
    return found - {""}
