"""What makes load balancers due besides calls: changes in the database, the comparison of everything, the start.

Every worker hears of changes and makes the rows due that they concern; a pass over what another has just passed over writes nothing.
The comparison of everything is one worker's at a time: it reads all trees, renders each beside the local copy, and makes due only what
differs.  Rows that bear our revision and have no tree are removed when two comparisons in a row found none.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from roadstead.bus.failures import RequestFailed
from roadstead.store.api import StoreUnavailable
from roadstead.telemetry.metrics import Meters
from roadstead_ovn import reports
from roadstead_ovn.api import Api
from roadstead_ovn.balancer import BadTree, Balancer, balancer_of
from roadstead_ovn.facts import Facts
from roadstead_ovn.health import health_of
from roadstead_ovn.network import Network, NetworkRefused
from roadstead_ovn.northbound.plan import plan
from roadstead_ovn.northbound.port import Northbound, Unready
from roadstead_ovn.passes import ORPHAN
from roadstead_ovn.ports import MONITOR_OWNER, VIP_OWNER
from roadstead_ovn.present import gone, monitored_subnets, probe_ports, tell_lost, vip_ports
from roadstead_ovn.render import render
from roadstead_ovn.runner import Runner
from roadstead_ovn.store.port import Json, Store
from roadstead_ovn.subnets import Subnets, subnets_of

log = structlog.get_logger("roadstead.ovn.stimuli")

DUTY = "sync"
HELD = 60.0  # seconds that one page of a comparison may take at most
LOOK_EVERY = 2.0
AGAIN_AFTER_TROUBLE = 10.0
SECOND_LOOK = 30.0  # seconds until rows without a tree are looked at again


class Stimuli:
    """every, spread: seconds."""

    def __init__(
        self,
        store: Store,
        northbound: Northbound,
        api: Api,
        network: Network,
        subnets: Subnets,
        runner: Runner,
        *,
        every: float,
        spread: float,
        meters: Meters,
    ) -> None:
        self._store = store
        self._nb = northbound
        self._api = api
        self._network = network
        self._subnets = subnets
        self._runner = runner
        self._every = every
        self._spread = spread
        self._meters = meters
        self._suspects: frozenset[str] = frozenset()
        """Ids of rows that had no tree at the last comparison."""

    async def follow(self) -> None:
        """Changes of the database, until cancelled."""
        while True:
            for wake in await self._nb.wakes():
                self._meters.count("roadstead_ovn_wakes_total", source=wake.source.value)
                if wake.ids is None:
                    log.info("all load balancers are due", source=wake.source.value)
                    await self._patiently(partial(self._store.wake_all, wake.source.value, self._spread))
                    # The database may have come back with rows of load balancers that nobody works on any more.
                    await self._patiently(partial(self._store.hasten, DUTY))
                else:
                    await self._patiently(partial(self._store.wake, wake.ids, wake.source.value))
            self._runner.nudge()

    async def compare(self) -> None:
        """Comparisons of everything whenever one is due, until cancelled.  The first is due at the start."""
        await self._nb.ready()
        await self._patiently(partial(self._store.hasten, DUTY))
        while True:
            pause = LOOK_EVERY * random.uniform(0.5, 1.0)
            try:
                if await self._store.hold(DUTY, self._runner.owner, HELD):
                    after = await self.compare_once()
                    await self._store.let_go(DUTY, self._runner.owner, after)
            except (RequestFailed, NetworkRefused, Unready, StoreUnavailable) as error:
                # What could not be read is no reason to remove anything, nor what was read before it.
                self._suspects = frozenset()
                log.warning("comparison given up for now", error=str(error) or type(error).__name__)
                pause = AGAIN_AFTER_TROUBLE
            await asyncio.sleep(pause)

    async def compare_once(self) -> float:
        """One comparison; seconds until the next.  Raises what keeps it from being complete."""
        listed: set[str] = set()
        differing = 0
        ports = await self._ports()
        async for page in self._api.pages():
            await self._store.hold(DUTY, self._runner.owner, HELD)
            due = await self._differing(page, ports)
            differing += len(due)
            revisions = {str(tree["loadbalancer_id"]): int(tree["revision"]) for tree in page}
            await self._store.learn(revisions, due, "sync", min(self._spread, len(due) / 20))
            listed |= revisions.keys()
            if due:
                self._runner.nudge()
        without = self._without_tree(listed)
        twice = without & self._suspects
        self._suspects = without
        if twice:
            await self._store.learn(dict.fromkeys(twice, 0), twice, ORPHAN, 0.0)
            self._runner.nudge()
        log.info("compared", load_balancers=len(listed), differing=differing, without_tree=len(without))
        return SECOND_LOOK if without - twice else self._every * random.uniform(0.9, 1.1)

    def _without_tree(self, listed: set[str]) -> frozenset[str]:
        """Rows of ours that no listed load balancer owns.  An API that lists nothing at all has lost its database: that tells nothing."""
        if not listed:
            return frozenset()
        known: Mapping[str, int | None] = self._nb.known()
        return frozenset(
            name for name, revision in known.items() if revision is not None and name not in listed
        )

    async def _ports(self) -> frozenset[str] | None:
        """Ids of this provider's ports in the network service, with one request; None when it does not answer."""
        try:
            found = await self._network.ports_owned((MONITOR_OWNER, VIP_OWNER))
        except NetworkRefused as error:
            log.warning("compared without a look at ports in the network service", error=error.text)
            return None
        return frozenset(str(port["id"]) for port in found)

    async def _without_lost(self, balancers: Sequence[Balancer], ports: Collection[str]) -> None:
        """Ports for probes that are gone are no facts any more; ports of VIPs that are gone are told of.  ports: some that are there."""
        probes: set[str] = set()
        for balancer in balancers:
            for found in probe_ports(self._facts(balancer), monitored_subnets(balancer)).values():
                probes |= found
            await asyncio.sleep(0)
        vips = {port for balancer in balancers for port in vip_ports(balancer)}
        try:
            lost = await gone(self._network, probes | vips, ports)
        except NetworkRefused as error:
            log.warning("compared without a look at ports in the network service", error=error.text)
            return
        self._nb.disown(lost & probes)
        for balancer in balancers:
            tell_lost(balancer, lost)

    async def _differing(self, page: Sequence[Json], ports: Collection[str] | None) -> set[str]:
        balancers: list[tuple[str, int, Balancer | None]] = []
        due = set()
        for tree in page:
            identifier = str(tree["loadbalancer_id"])
            try:
                balancers.append((identifier, int(tree["revision"]), balancer_of(tree)))
            except BadTree as error:
                log.warning("a tree cannot be read", load_balancer=identifier, error=str(error))
        there = [b for _, _, b in balancers if b is not None]
        await self._subnets.of(there)
        if ports is not None:
            await self._without_lost(there, ports)
        for identifier, revision, balancer in balancers:
            if self._differs(identifier, revision, balancer):
                due.add(identifier)
            await asyncio.sleep(0)
        return due

    def _differs(self, identifier: str, revision: int, balancer: Balancer | None) -> bool:
        if balancer is None:
            return True  # it is being taken away
        facts = self._facts(balancer)
        wanted = render(balancer, facts)
        what = plan(identifier, revision, wanted, self._nb.found(identifier, wanted))
        now = reports.standings(health_of(balancer, facts), balancer)
        missing = any(facts.monitor_port(subnet) is None for subnet in wanted.monitor_subnets)
        return bool(
            what.newer is not None or what.rows or missing or reports.unknown_to_api(now, balancer, {})
        )

    def _facts(self, balancer: Balancer) -> Facts:
        return replace(self._nb.facts(balancer), subnets=self._subnets.known(sorted(subnets_of(balancer))))

    async def _patiently(self, work: Callable[[], Awaitable[object]]) -> None:
        """Until the database takes it."""
        while True:
            try:
                await work()
            except StoreUnavailable as error:
                log.warning("wakes wait for the database", error=str(error))
                await asyncio.sleep(1.0)
            else:
                return
