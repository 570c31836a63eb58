"""The process of a service: `run(SERVICE)` is all that its `__main__` does.

Start: health port, database, broker; streams and epochs; what others own is followed until it is known; then specs are consumed
and passes run.  A database or broker that is not there yet is waited for.  SIGTERM ends it in good order: nothing new is taken,
running passes end within the drain time, leases are given back, the outbox goes out once.  A second signal ends it at once.
"""

import asyncio
import sys
from collections.abc import Callable

import structlog
import uvloop

from roadstead.assembly import Assembly, Platform, Service, assemble
from roadstead.bus.connection import Bus
from roadstead.bus.failures import BusRefused
from roadstead.bus.streams import release
from roadstead.clock import Clock, SystemClock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import Cloud
from roadstead.cloud.sdk import SdkSender
from roadstead.cloud.settings import CloudSettings
from roadstead.logs import start_logging
from roadstead.seal import Sealer
from roadstead.service_app import Answers, make_app
from roadstead.service_health import HealthServer, Readiness, health_app
from roadstead.service_life import Exit, Life, Step, bus_options, tracing_of
from roadstead.service_streams import Streams
from roadstead.service_tasks import Spreading, Supervisor, purge_job, release_job
from roadstead.service_watch import CloudWatcher, PassWatcher
from roadstead.settings import BadSettings, Settings, load_settings
from roadstead.store.api import SchemaBehind, Store, StoreUnavailable
from roadstead.store.postgres import PostgresStore
from roadstead.telemetry.metrics import Meters

log = structlog.get_logger("roadstead.service")

STOPPING_BOUND = 10.0  # seconds for each step of an ending that has no bound of its own


def run(service: Service) -> None:
    """Run the service until a signal ends it; exits the process with a status of `Exit`."""
    try:
        settings = load_settings()
        process = Process(service, settings)
    except (BadSettings, ValueError) as error:
        for line in str(error).splitlines():
            print(f"roadstead {service.name}: {line}", file=sys.stderr)  # noqa: T201 - logs are not set up yet
        sys.exit(Exit.SETTINGS)
    sys.exit(uvloop.run(process.main()))


class Process:
    """One service in one process.  ValueError or BadSettings for settings that cannot be.

    store and cloud are made from the settings unless given, and wrap may put something around all that the service stands on;
    tests do both.
    """

    def __init__(
        self,
        service: Service,
        settings: Settings,
        *,
        store: Store | None = None,
        cloud: Cloud | None = None,
        wrap: Callable[[Platform], Platform] = lambda platform: platform,
    ) -> None:
        self.service = service
        self.settings = settings
        self.meters = Meters(process=True)
        self.tracing = tracing_of(service.name, settings)
        self.clock: Clock = SystemClock()
        self.durations = settings.durations()
        self.sealer = Sealer(settings.sealing_keys())
        self.keyring = Keyring()
        self.bus_options = bus_options(service.name, settings)
        self.store = store or PostgresStore(
            settings.database_url.get_secret_value(),
            settings.database_schema or service.name,
            pool_size=settings.database_pool,
            patience=settings.database_patience,
            role=settings.database_role,
        )
        self._cloud = cloud
        self._circuits: list[Callable[[str, bool], None]] = [self._circuit_moved]
        self._wrap = wrap
        self.readiness = Readiness()
        self.supervisor = Supervisor(self.meters, fatal=(BusRefused, SchemaBehind))
        self.life = Life("roadstead.service")
        self.stopping = self.life.stopping
        self.bus: Bus | None = None
        self.assembly: Assembly | None = None
        self.streams: Streams | None = None

    async def main(self) -> int:
        """Start, wait for the end, end.  The exit status."""
        s = self.settings
        start_logging(self.service.name, s.replica, level=s.log_level, form=s.log_format)
        self.life.listen_for_signals()
        return int(await self.life.lived(self._serve, self._end))

    # ------------------------------------------------------------ start

    async def _serve(self) -> Exit:
        log.info("starting", release=release(), pace=self.settings.pace)
        bus = self.bus = Bus(self.bus_options, meters=self.meters, tracing=self.tracing)
        self.readiness.checks["bus"] = self._bus_fault
        self.readiness.checks["database"] = self._database_fault
        if self.settings.health_port:
            server = HealthServer(
                health_app(self.readiness, self.meters), self.settings.health_host, self.settings.health_port
            )
            self.supervisor.start("health", server.run_until_cancelled)
        or_stop = self.life.or_stop
        if not await or_stop(self.life.opened(self.store.open)) or not await or_stop(bus.connect()):
            return Exit.DONE
        assembly = self.assembly = assemble(self.service, self._wrap(self._platform(bus)))
        make_app(
            self.service, broker=bus.broker, answer=Answers(assembly, bus), more=tuple(assembly.api.more)
        )
        streams = self.streams = Streams(
            assembly, bus, in_hand=self.settings.in_hand, start=self._start_passes
        )
        self.readiness.checks["streams"] = streams.fault
        self.supervisor.start("streams", streams.run)
        self.supervisor.start("figures", streams.measure)
        self.supervisor.start("heard", streams.remember)
        return await self._until_the_end(bus)

    async def _start_passes(self) -> None:
        """Once, when everything that others own is known: requests are answered and passes run."""
        assembly, bus = self.assembly, self.bus
        assert assembly is not None
        assert bus is not None
        await bus.broker.start()
        self.supervisor.start("passes", assembly.runner.run)
        self.supervisor.start("outbox", assembly.relay.run)
        self.supervisor.start("purge", lambda: purge_job(self.store, self.clock))
        kinds = {kind.name: kind for kind in self.service.kinds}
        spreading = Spreading(seconds=600 * self.settings.pace)
        self.supervisor.start(
            "release", lambda: release_job(self.store, self.clock, kinds, assembly.runner.nudge, spreading)
        )
        for number, job in enumerate(assembly.jobs):
            self.supervisor.start(f"job {number}", job)
        log.info("started")

    def _platform(self, bus: Bus) -> Platform:
        settings = self.settings
        cloud_settings = CloudSettings(
            threads_per_region=settings.threads_per_region,
            call_deadline=self.durations.call_deadline,
            nova_microversion=settings.nova_microversion,
        )
        if self._cloud is None:
            self._cloud = CloudEngine(
                SdkSender(cloud_settings),
                self.keyring,
                self.clock,
                cloud_settings,
                on_request=CloudWatcher(self.meters, self.tracing),
                trace_headers=self.tracing.headers,
                on_circuit=self._circuits,
            )
        return Platform(
            store=self.store,
            cloud=self._cloud,
            broker=bus,
            keyring=self.keyring,
            sealer=self.sealer,
            clock=self.clock,
            durations=self.durations,
            pace=settings.pace,
            owner=f"{self.service.name}-{settings.replica}",
            max_passes=settings.max_passes,
            watcher=PassWatcher(self.meters, self.tracing),
            meters=self.meters,
            circuits=self._circuits,
            outbox_prefix=f"outbox-{self.service.name}",
            facts={
                "create_attempts": settings.create_attempts,
                "image_cache": settings.image_cache,
                "sweep_shards": settings.sweep_shards,
            },
        )

    async def _until_the_end(self, bus: Bus) -> Exit:
        ends = {
            asyncio.create_task(self.stopping.wait(), name="signal"),
            asyncio.create_task(bus.closed.wait(), name="bus"),
            asyncio.create_task(self.supervisor.failed.wait(), name="fault"),
        }
        done, left = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        names = {task.get_name() for task in done}
        if "fault" in names and self.supervisor.fault is not None:
            raise self.supervisor.fault
        return Exit.BUS if "bus" in names and "signal" not in names else Exit.DONE

    def _circuit_moved(self, region: str, shut: bool) -> None:
        self.meters.put("roadstead_region_circuit_open", float(shut), region=region)

    # ------------------------------------------------------------ readiness

    async def _bus_fault(self) -> str | None:
        return (
            None
            if self.bus is not None and self.bus.is_settled
            else "not connected, or its streams are being checked"
        )

    async def _database_fault(self) -> str | None:
        return None if await answers(self.store) else "the database does not answer"

    # ------------------------------------------------------------ end

    async def _end(self) -> None:
        self.readiness.stopping = True
        drain = self.durations.drain + STOPPING_BOUND
        assembly, bus, streams = self.assembly, self.bus, self.streams
        steps: list[Step] = []
        if bus is not None:
            steps.append(("requests", lambda: _stop_answering(bus), STOPPING_BOUND))
        steps.append(("consuming", lambda: self.supervisor.stop("streams"), STOPPING_BOUND))
        if streams is not None:
            steps.append(("messages in hand", lambda: streams.idle(STOPPING_BOUND / 2), STOPPING_BOUND))
        if assembly is not None:
            self.supervisor.let_end("passes")
            assembly.runner.stop()
            steps.append(("passes", lambda: self.supervisor.finish("passes", drain), drain + 1))
            steps.append(("jobs", self.supervisor.stop_all, STOPPING_BOUND * 2))
            if bus is not None and bus.is_settled:
                steps.append(("outbox", lambda: _flush(assembly), STOPPING_BOUND))
        steps.append(("tasks", self.supervisor.stop_all, STOPPING_BOUND * 2))
        if bus is not None:
            steps.append(("bus", bus.close, STOPPING_BOUND))
        if isinstance(self._cloud, CloudEngine):
            steps.append(("cloud", self._cloud.close, STOPPING_BOUND))
        steps.append(("database", self.store.close, STOPPING_BOUND))
        steps.append(("traces", lambda: asyncio.to_thread(self.tracing.close), STOPPING_BOUND))
        await self.life.end_in_steps(steps)


async def answers(store: Store, seconds: float = 2.0) -> bool:
    """Whether the database answers in time."""
    try:
        async with asyncio.timeout(seconds):
            await store.now()
    except (StoreUnavailable, TimeoutError, OSError):
        return False
    return True


async def _stop_answering(bus: Bus) -> None:
    for subscriber in bus.broker.subscribers:
        await subscriber.stop()


async def _flush(assembly: Assembly) -> None:
    await assembly.telling.tell()
    while await assembly.relay.flush():
        pass


__all__ = ["Exit", "Process", "Service", "run"]
