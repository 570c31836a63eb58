"""The monitor's rhythms: shards are kept a few times a period, projects swept once a period, and looked at where servers are on their way."""

import asyncio
import contextlib

import structlog

from roadstead.assembly import Assembly
from roadstead.clock import Clock, iso
from roadstead.reconcile.views import StatusView
from roadstead.store.api import Store
from roadstead.telemetry.metrics import Meters
from roadstead_monitor.export import export, export_look
from roadstead_monitor.looks import Agenda
from roadstead_monitor.shards import DOCUMENT, leave, shard_of, take
from roadstead_monitor.sweep import Project, Sweeper, Swept, identity_of, projects_of
from roadstead_monitor.transitions import Transitions

log = structlog.get_logger("roadstead.monitor")

SHARDS = 32
TURNS = 4  # of shard keeping in one period; a lease lasts one period


class Watch:
    """Runs until cancelled.  period: seconds between the beginnings of two sweeps; early: from news to the first look."""

    def __init__(
        self,
        sweeper: Sweeper,
        store: Store,
        clock: Clock,
        *,
        owner: str,
        period: float,
        early: float = 1.0,
        shards: int = SHARDS,
        meters: Meters | None = None,
    ) -> None:
        self.sweeper = sweeper
        self._meters = meters
        self._store = store
        self._clock = clock
        self._owner = owner
        self._period = period
        self._early = early
        self._shards = shards
        self._agenda = Agenda(early)
        self._waited_for = asyncio.Event()
        self.mine: tuple[int, ...] = ()
        self.last: Swept | None = None

    async def keep_shards(self) -> None:
        """Renew our leases for ever; without a store the shards that we have stay ours until their end."""
        try:
            while True:
                await self.keep_once()
                await self._clock.sleep(self._period / TURNS)
        finally:
            with contextlib.suppress(Exception):  # the leases end by themselves
                await self._store.change_document(DOCUMENT, lambda d, now: leave(d, now, owner=self._owner))

    async def keep_once(self) -> None:
        """One turn; an outage of the store is logged."""
        try:
            self.mine = await self._store.change_document(
                DOCUMENT,
                lambda document, now: take(
                    document, now, owner=self._owner, shards=self._shards, lease=self._period
                ),
            )
        except Exception:
            log.warning("shards could not be kept; trying again", exc_info=True)

    async def sweep_for_ever(self) -> None:
        """A sweep a period, whatever the last one met."""
        while True:
            began = self._clock.monotonic()
            await self.sweep_once()
            spent = self._clock.monotonic() - began
            await self._clock.sleep(max(self._period - spent, self._period / TURNS))

    async def sweep_once(self) -> Swept:
        """Sweep the shards that are ours now."""
        if not self.mine:
            await self.keep_once()
        name = f"{self._owner}/{iso(self._clock.now())}"
        began = self._clock.monotonic()
        self.last = await self.sweeper.sweep(name, self._shards, self.mine)
        if self._meters is not None:
            export(self.sweeper.measures, self.last, self._clock.monotonic() - began, self._meters)
        log.info("swept", **vars(self.last))
        return self.last

    def heard(self, view: StatusView) -> None:
        """One STATUS message: a server may be on its way, or have arrived."""
        identity = identity_of(view, self.sweeper.directory) if view.key.kind == "server" else None
        if identity is not None:
            self._agenda.heard(view, (view.key.region, identity), self._clock.monotonic())
            self._waited_for.set()

    async def look_for_ever(self) -> None:
        """While servers are on their way: their projects as the agenda says, beside each other."""
        async with asyncio.TaskGroup() as looking:
            while True:
                await self._waited_for.wait()
                await self._clock.sleep(self._early)
                for project in self.to_look_at():
                    looking.create_task(self.look(project))
                if self._agenda.idle():
                    self._waited_for.clear()

    def to_look_at(self) -> list[Project]:
        """The projects that are due and ours; those of other replicas are crossed off, for they look themselves."""
        now = self._clock.monotonic()
        due = self._agenda.due(now)
        if not due:
            return []
        found = {(p.region, p.identity): p for p in projects_of(self.sweeper.directory)}
        ours = []
        for key in sorted(due):
            self._agenda.taken(key, now)
            if key in found and shard_of(*key, self._shards) in self.mine:
                ours.append(found[key])
            else:
                self._agenda.done(key, now, now)
        return ours

    async def look(self, project: Project) -> None:
        """One project now."""
        began = self._clock.monotonic()
        looked = await self.sweeper.look(f"{self._owner}/{iso(self._clock.now())}/look", project)
        self._agenda.done((project.region, project.identity), began, self._clock.monotonic())
        if self._meters is not None:
            export_look(looked, self._meters)

    def is_mine(self, view: StatusView) -> bool:
        """Whether the server's project is in a shard of ours now."""
        identity = identity_of(view, self.sweeper.directory)
        return identity is not None and shard_of(view.key.region, identity, self._shards) in self.mine


def install(assembly: Assembly) -> None:
    """Add the monitor's jobs to a service that has no kinds of its own."""
    platform = assembly.platform
    sweeper = Sweeper(platform.cloud, assembly.directory, platform.broker)
    watch = Watch(
        sweeper,
        platform.store,
        platform.clock,
        owner=platform.owner,
        period=platform.durations.sweep,
        early=platform.durations.early_look,
        shards=int(platform.facts.get("sweep_shards", SHARDS)),
        meters=platform.meters,
    )
    assembly.handlers.on_status.append(Transitions(watch.is_mine).heard)
    assembly.handlers.on_status.append(watch.heard)
    assembly.extras["watch"] = watch
    assembly.jobs += [watch.keep_shards, watch.sweep_for_ever, watch.look_for_ever]
