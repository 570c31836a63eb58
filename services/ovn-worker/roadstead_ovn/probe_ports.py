"""Ports that probes come from, one for each subnet: made by whoever needs one first, removed when nobody does any more.

A duty row of the worker's database sees to it that only one worker makes or removes the port of a subnet at a time.  A port that is
removed while another load balancer begins to need it is made again: its disappearance wakes that load balancer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from secrets import token_hex

import structlog

from roadstead_ovn.facts import MONITOR_PORT_PREFIX, Subnet
from roadstead_ovn.network import Network, NetworkRefused, is_passing
from roadstead_ovn.ports import monitor_port_request
from roadstead_ovn.store.port import Store

log = structlog.get_logger("roadstead.ovn.ports")

HELD = 30.0  # seconds that making or removing one may take
ELSEWHERE = 0.1
TRIES = 30

Step = Callable[[], Awaitable[None]]


class ProbePorts:
    """owner: this process among its replicas."""

    def __init__(self, store: Store, network: Network, owner: str) -> None:
        self._store = store
        self._network = network
        self._owner = owner

    async def make(self, subnets: Collection[Subnet], projects: Mapping[str, str]) -> Mapping[str, str]:
        """See that each subnet has its port; why not, by subnet id, for those that the network service refuses for good.

        projects: of a member's port, by subnet id.  NetworkRefused for trouble that may pass.
        """
        refused = {}
        for subnet in sorted(subnets, key=lambda s: s.id):
            try:
                await self._alone(subnet.id, partial(self._make, subnet, projects.get(subnet.id, "")))
            except NetworkRefused as error:
                if is_passing(error):
                    raise
                refused[subnet.id] = error.text
        return refused

    async def _make(self, subnet: Subnet, project_id: str) -> None:
        name = MONITOR_PORT_PREFIX + subnet.id
        if await self._network.ports_named(name, subnet.network_id):
            return
        body = monitor_port_request(subnet.network_id, subnet.id, project_id)
        port = await self._network.make_port(body)
        log.info("a port for probes was made", subnet=subnet.id, port=port.get("id"))

    async def give_back(self, load_balancer_id: str, subnets: Collection[Subnet]) -> None:
        """That load balancer needs them no more; ports that nobody needs are removed.  NetworkRefused."""
        for subnet in sorted(subnets, key=lambda s: s.id):
            await self._alone(subnet.id, partial(self._give_back, load_balancer_id, subnet))

    async def _give_back(self, load_balancer_id: str, subnet: Subnet) -> None:
        # It says so last: who dies on the way leaves the rest to the next pass.
        if not await self._store.others_need_probes(load_balancer_id, subnet.id):
            for port in await self._network.ports_named(MONITOR_PORT_PREFIX + subnet.id, subnet.network_id):
                await self._network.remove_port(str(port["id"]))
                log.info("a port for probes was removed", subnet=subnet.id, port=port["id"])
        await self._store.drop_probes(load_balancer_id, subnet.id)

    async def _alone(self, subnet_id: str, work: Step) -> None:
        name, holder = f"probe:{subnet_id}", f"{self._owner}:{token_hex(4)}"
        for _ in range(TRIES):
            if await self._store.hold(name, holder, HELD):
                break
            await asyncio.sleep(ELSEWHERE)
        else:
            raise NetworkRefused(
                None, f"the port for probes in subnet {subnet_id} is in another worker's hands"
            )
        try:
            await work()
        finally:
            await self._store.let_go(name, holder, 0.0)
