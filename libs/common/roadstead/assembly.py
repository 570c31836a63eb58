"""A service put together from its parts, whatever carries its messages.

The process (`service.py`) assembles it on NATS, PostgreSQL and openstacksdk; the simulation assembles the same parts on memory, the
simulator's state and virtual time.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roadstead.clock import Clock, Durations
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.inventory import Keeper, Offered, Rhythm
from roadstead.cloud.port import Cloud
from roadstead.reconcile.api import Api
from roadstead.reconcile.handlers import Handlers, Publisher
from roadstead.reconcile.kind import Kind
from roadstead.reconcile.offers import Offers
from roadstead.reconcile.outages import Outages
from roadstead.reconcile.relay import Out, Relay
from roadstead.reconcile.runner import Runner
from roadstead.reconcile.telling import TELL_AFTER, Telling
from roadstead.reconcile.views import Directory, Requests
from roadstead.reconcile.wiring import Silent, Watcher, Wiring
from roadstead.seal import Sealer
from roadstead.store.api import Store
from roadstead.telemetry.metrics import Meters

HIDE_OUTGOING = 15.0  # seconds for which what a relay took is its own; a killed one's messages wait that long


@dataclass(frozen=True)
class Service:
    """What a service is: its kinds, what it follows, and what it adds.

    follows: kinds whose STATUS it needs to know.  setup: adds inventories to `extras`, further requests, and background jobs.
    documents_of: named documents of its store that follow from its kinds' STATUS documents and from CREDENTIAL messages (by region
    and whom they are for); with them a lost database is made anew.
    """

    name: str
    kinds: tuple[Kind[Any, Any, Any], ...]
    follows: tuple[str, ...]
    setup: Callable[["Assembly"], None] = lambda _assembly: None
    documents_of: Callable[
        [Sequence[Mapping[str, Any]], Mapping[tuple[str, str], Mapping[str, Any]]],
        Mapping[str, Mapping[str, Any]],
    ] = lambda _statuses, _credentials: {}


class Broker(Publisher, Out, Requests):
    """The bus as a service uses it: acknowledged publishing, purging, requests to other services."""


@dataclass(frozen=True)
class Platform:
    """What a service stands on."""

    store: Store
    cloud: Cloud
    broker: Any  # Publisher, Out and Requests in one; see Broker
    keyring: Keyring
    sealer: Sealer
    clock: Clock
    durations: Durations = field(default_factory=Durations)
    pace: float = 1.0
    owner: str = "one"
    max_passes: int = 64
    watcher: Watcher = field(default_factory=Silent)
    meters: Meters | None = None  # for figures of a service's own
    # listeners of the cloud's circuits by region: the list that `cloud` tells
    circuits: list[Callable[[str, bool], None]] = field(default_factory=list)
    seed: int | None = None
    outbox_prefix: str = "outbox"
    facts: Mapping[str, Any] = field(
        default_factory=dict
    )  # settings that kinds read from their pass's extras


@dataclass
class Assembly:
    """The running parts.  jobs: coroutines that run beside the loop until the process ends."""

    service: Service
    platform: Platform
    directory: Directory
    handlers: Handlers
    api: Api
    runner: Runner
    relay: Relay
    telling: Telling
    offers: Offers
    extras: dict[str, Any]
    jobs: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def inventory_rhythm(self) -> Rhythm:
        """How often lists of what regions offer are read."""
        d = self.platform.durations
        return Rhythm(d.inventory_life, d.image_refresh, d.second_look)

    def keep(self, lists: Iterable[Offered[Any]], keeper: Keeper) -> None:
        """Keep these lists warm, and let rows that were parked for what one says know when it says something else."""
        for offered in lists:
            offered.on_change.append(self.offers.stir)
        self.jobs.append(keeper.keep_warm)
        self.handlers.on_status.append(lambda view: keeper.stir() if view.key.kind == "region" else None)
        self.handlers.on_credential.append(lambda _region, who: keeper.stir() if who is None else None)


class LocalFirst:
    """Requests to the service's own owner functions are called directly, all others go over the bus."""

    def __init__(self, service: str, outer: Requests) -> None:
        self._prefix = f"rpc.{service}."
        self._outer = outer
        self.api: Api | None = None

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.api is not None and subject.startswith(self._prefix):
            return await self.api.rpc(subject.removeprefix(self._prefix), payload)
        return await self._outer.request(subject, payload)


def assemble(service: Service, platform: Platform) -> Assembly:
    """Wire the parts; nothing runs yet."""
    directory = Directory()
    extras: dict[str, Any] = dict(platform.facts)
    requests = LocalFirst(service.name, platform.broker)
    handlers = Handlers(
        service.name,
        {k.name: k for k in service.kinds},
        platform.store,
        directory,
        platform.keyring,
        platform.sealer,
    )
    api = Api(handlers, platform.broker, extras)
    requests.api = api
    runner = Runner(
        Wiring(
            service=service.name,
            kinds=service.kinds,
            store=platform.store,
            cloud=platform.cloud,
            directory=directory,
            requests=requests,
            keyring=platform.keyring,
            sealer=platform.sealer,
            clock=platform.clock,
            durations=platform.durations,
            pace=platform.pace,
            owner=platform.owner,
            max_passes=platform.max_passes,
            extras=extras,
            watcher=platform.watcher,
            seed=platform.seed,
        )
    )
    relay = Relay(platform.store, platform.broker, platform.clock, hide=HIDE_OUTGOING * platform.pace).named(
        platform.outbox_prefix
    )
    handlers.nudge = runner.nudge
    handlers.awaited = runner.performing.awaited
    handlers.on_outbox = relay.nudge
    runner.performing.on_outbox = relay.nudge
    every = platform.durations.inventory_life
    offers = Offers(service.kinds, platform.store, directory, platform.clock, extras, every=every)
    offers.nudge = runner.nudge
    runner.performing.on_parked = offers.parked
    telling = Telling(platform.store, platform.clock, relay.nudge, after=TELL_AFTER * platform.pace)
    assembly = Assembly(service, platform, directory, handlers, api, runner, relay, telling, offers, extras)
    assembly.jobs.append(telling.run)
    assembly.jobs.append(lambda: handlers.owed.run(platform.clock))
    d = platform.durations
    outages = Outages(requests, directory, platform.clock, every=d.sweep, again=d.retry_after)
    platform.circuits.append(outages.moved)
    assembly.jobs.append(outages.run)
    if any(kind.judged_codes for kind in service.kinds):
        handlers.on_status.append(offers.region_moved)
        assembly.jobs.append(offers.run)
    service.setup(assembly)
    return assembly
