"""The process of the worker: the bus in front, OVN's databases and the network service behind, its own rows between.

Start: database, then broker, OVN and the network service side by side; calls are taken and passes run once all of them have answered,
so that a worker whose own settings are wrong leaves the work to others.  SIGTERM ends it in good order: nothing new is taken, running passes end
within the drain time, every lease is given back.  A second signal ends it at once.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import structlog

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.failures import BusRefused
from roadstead.bus.rights import inbox_of, provider_user
from roadstead.bus.streams import release
from roadstead.bus.tasks import end_all
from roadstead.logs import start_logging
from roadstead.service import Exit
from roadstead.service_health import HealthServer, Readiness, health_app
from roadstead.service_tasks import Supervisor
from roadstead.settings import BadSettings, Settings
from roadstead.store.api import SchemaBehind, StoreUnavailable
from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.traces import Tracing, start_tracing
from roadstead_ovn.api import BusApi
from roadstead_ovn.bus_side import BusSide
from roadstead_ovn.calls import Answers, Around, Calls, Intake
from roadstead_ovn.network import Network, network_of
from roadstead_ovn.northbound.ovsdb import OvsdbNorthbound, Server, Servers
from roadstead_ovn.northbound.port import Northbound
from roadstead_ovn.northbound.wire import Bounds, TlsFiles
from roadstead_ovn.operate import Operate
from roadstead_ovn.passes import Passes
from roadstead_ovn.runner import Runner
from roadstead_ovn.settings import PREFIX, OvnSettings
from roadstead_ovn.standing import Standing
from roadstead_ovn.stimuli import Stimuli
from roadstead_ovn.store.postgres import SCHEMA, PostgresWork
from roadstead_ovn.subnets import Subnets

log = structlog.get_logger("roadstead.ovn")

NAME = "ovn-worker"
OPEN_AGAIN = 2.0
STEP_BOUND = 10.0  # seconds for each step of an ending


class Startable(Northbound, Protocol):
    async def start(self) -> None: ...


def northbound_of(settings: OvnSettings) -> OvsdbNorthbound:
    """BadSettings when a file that `ssl:` needs is not given."""

    def tls(side: str, connections: tuple[str, ...]) -> TlsFiles | None:
        if not any(one.startswith("ssl:") for one in connections):
            return None
        files = []
        for name in ("private_key", "certificate", "ca_cert"):
            path = getattr(settings, f"{side}_{name}") or getattr(settings, f"nb_{name}")
            if path is None:
                raise BadSettings(f"{PREFIX}{side.upper()}_{name.upper()}: needed for an ssl: connection")
            files.append(str(path))
        return TlsFiles(*files)

    sides = [
        Server(tuple(connections), tls(side, connections))
        for side, connections in (("nb", settings.nb_connection), ("sb", settings.sb_connection))
    ]
    bounds = Bounds(probe=settings.ovsdb_probe_interval / 1000, reply=settings.ovsdb_timeout)
    return OvsdbNorthbound(Servers(sides[0], sides[1], bounds))


def bus_options(settings: Settings, name: str) -> BusOptions:
    user = provider_user(name)
    return BusOptions(
        servers=tuple(settings.nats_url),
        name=f"roadstead-{user}-{settings.replica}",
        inbox_prefix=settings.nats_inbox_prefix or inbox_of(user),
        nkey_seed=settings.nkey_seed(),
        ca_file=settings.nats_ca_file,
        replicas=settings.nats_replicas,
        publish_patience=settings.publish_patience,
        request_timeout=settings.request_timeout,
    )


class Process:
    """One replica.  BadSettings for what cannot be.  northbound and network: those of the settings unless given."""

    def __init__(
        self,
        settings: Settings,
        ovn: OvnSettings,
        *,
        northbound: Startable | None = None,
        network: Network | None = None,
    ) -> None:
        self.settings = settings
        self.ovn = ovn
        self.meters = Meters(process=True)
        self.tracing = _tracing(settings)
        self.store = PostgresWork(
            settings.database_url.get_secret_value(),
            settings.database_schema or SCHEMA,
            pool_size=settings.database_pool,
            patience=settings.database_patience,
            role=settings.database_role,
        )
        self.bus = Bus(bus_options(settings, ovn.provider_name), meters=self.meters, tracing=self.tracing)
        self.northbound: Startable = northbound or northbound_of(ovn)
        self.network = network or network_of(ovn)
        self.subnets = Subnets(self.network, self.northbound.remember)
        self.standing = Standing(self.northbound, self.network, self._away)
        self.api = BusApi(self.bus, ovn.provider_name)
        owner = f"{settings.replica}-{secrets.token_hex(3)}"
        self.passes = Passes(
            self.store,
            self.northbound,
            self.api,
            self.network,
            self.subnets,
            owner,
            lease=ovn.lease,
            meters=self.meters,
            tracing=self.tracing,
        )
        self.runner = Runner(
            self.store,
            self.passes,
            owner,
            most=ovn.passes,
            lease=ovn.lease,
            poll=ovn.poll,
            meters=self.meters,
        )
        around = Around(self.api, self.subnets)
        intake = Intake(self.store, self.passes, self.runner, around)
        self.calls = Calls(self.bus, ovn.provider_name, intake, self._healthy)
        operate = Operate(self.store, self.northbound, self.api, self.subnets, self.runner)
        self.answers = Answers(self.bus, ovn.provider_name, self.network, around, operate)
        self.bus_side = BusSide(
            self.bus, ovn.provider_name, (self.calls, self.answers), self.standing.all_there
        )
        self.stimuli = Stimuli(
            self.store,
            self.northbound,
            self.api,
            self.network,
            self.subnets,
            self.runner,
            every=ovn.sync_every,
            spread=ovn.spread,
            meters=self.meters,
        )
        self.readiness = Readiness(
            {
                "database": self._database_fault,
                "bus": self._bus_fault,
                "northbound": self._northbound_fault,
                "network": self._network_fault,
            }
        )
        self.supervisor = Supervisor(self.meters, fatal=(BusRefused, SchemaBehind))
        self.stopping = asyncio.Event()

    async def main(self) -> int:
        """Start, wait for the end, end.  The exit status."""
        s = self.settings
        start_logging(NAME, s.replica, level=s.log_level, form=s.log_format)
        self._listen_for_signals()
        return int(await self.serve())

    async def serve(self) -> Exit:
        """`main` without the set-up of logs and signals."""
        try:
            status = await self._serve()
        except SchemaBehind as error:
            log.critical("the database schema is behind", reason=str(error))
            status = Exit.SCHEMA
        except BusRefused as error:
            log.critical("the broker refused us", reason=str(error))
            status = Exit.BUS
        except Exception:
            log.exception("the service failed")
            status = Exit.FAULT
        finally:
            await self._end()
        log.info("stopped", status=int(status))
        return status

    # ------------------------------------------------------------ start

    async def _serve(self) -> Exit:
        log.info("starting", release=release(), provider=self.ovn.provider_name)
        if self.settings.health_port:
            health = HealthServer(
                health_app(self.readiness, self.meters), self.settings.health_host, self.settings.health_port
            )
            self.supervisor.start("health", health.run_until_cancelled)
        if not await self._or_stop(self._open_store()):
            return Exit.DONE
        await self.northbound.start()
        jobs: dict[str, Callable[[], Awaitable[None]]] = {
            "standing": self.standing.run,
            "bus": self.bus_side.run,
            "passes": self._passes,
            "changes": self.stimuli.follow,
            "comparison": self._comparison,
            "figures": self._figures,
        }
        for name, work in jobs.items():
            self.supervisor.start(name, work)
        ends = {
            asyncio.create_task(self.stopping.wait(), name="signal"),
            asyncio.create_task(self.supervisor.failed.wait(), name="fault"),
        }
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.readiness.stopping = True
            await end_all(ends)
        if self.supervisor.fault is not None:
            raise self.supervisor.fault
        return Exit.DONE

    async def _open_store(self) -> None:
        """Waits for a database that is not there; SchemaBehind at once."""
        while True:
            try:
                await self.store.open()
            except (StoreUnavailable, OSError) as error:
                log.warning("no database yet", error=str(error) or type(error).__name__)
                await asyncio.sleep(OPEN_AGAIN)
            else:
                return

    async def _or_stop(self, work: Awaitable[None]) -> bool:
        """Whether the work was done before the process was told to stop.  Raises what the work raises."""
        task = asyncio.ensure_future(work)
        stop = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task.done():
            task.result()
            return True
        await end_all((task,))
        return False

    # ------------------------------------------------------------ jobs

    async def _passes(self) -> None:
        await self.standing.all_there()
        log.info("the local copy is complete", load_balancers=len(self.northbound.known()))
        await self.runner.run()

    async def _comparison(self) -> None:
        await self.bus_side.bound.wait()
        await self.stimuli.compare()

    async def _figures(self) -> None:
        async def connection() -> None:
            while True:
                self.meters.put("roadstead_ovn_northbound_connected", float(self.northbound.is_ready()))
                await asyncio.sleep(1.0)

        beside = asyncio.create_task(connection())
        try:
            await self.runner.measure()
        finally:
            await end_all((beside,))

    # ------------------------------------------------------------ readiness

    async def _healthy(self) -> bool:
        return await self._database_fault() is None and await self.bus.answers()

    async def _database_fault(self) -> str | None:
        try:
            async with asyncio.timeout(2.0):
                await self.store.ping()
        except (StoreUnavailable, TimeoutError, OSError):
            return "the database does not answer"
        return None

    async def _bus_fault(self) -> str | None:
        return None if self.bus_side.bound.is_set() else "not connected, or its consumer is being made"

    async def _northbound_fault(self) -> str | None:
        return self._away()

    def _away(self) -> str | None:
        if self.northbound.is_ready():
            return None
        known = self.northbound.fault() if isinstance(self.northbound, OvsdbNorthbound) else None
        return known or "the local copy of OVN's databases is not complete"

    async def _network_fault(self) -> str | None:
        return self.standing.network_fault

    # ------------------------------------------------------------ end

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        if self.stopping.is_set():
            os._exit(Exit.FAULT)  # asked twice: at once, leases run out by themselves
        log.info("stopping; a second signal ends it at once")
        self.stopping.set()

    async def _end(self) -> None:
        """Each step is bounded, and a step that fails does not keep the next ones from being taken."""
        self.readiness.stopping = True
        steps: list[tuple[str, Callable[[], Awaitable[Any]], float]] = [
            ("bus side", lambda: self.supervisor.stop("bus"), STEP_BOUND),
            ("messages in hand", lambda: self.calls.idle(STEP_BOUND / 2), STEP_BOUND),
            ("due rows", lambda: self.supervisor.stop("passes"), STEP_BOUND),
            ("passes", lambda: self.runner.drain(self.ovn.drain), self.ovn.drain + STEP_BOUND),
            ("tasks", self.supervisor.stop_all, STEP_BOUND * 2),
            ("bus", self.bus.close, STEP_BOUND),
            ("northbound", self.northbound.close, STEP_BOUND),
            ("database", self.store.close, STEP_BOUND),
            ("traces", lambda: asyncio.to_thread(self.tracing.close), STEP_BOUND),
        ]
        for name, step, seconds in steps:
            try:
                async with asyncio.timeout(seconds):
                    await step()
            except TimeoutError:
                log.warning("ending took too long", step=name, seconds=seconds)
            except StoreUnavailable as error:
                log.warning("not given back; leases run out", step=name, error=str(error))
            except Exception:
                log.exception("ending failed", step=name)
        self.network.close()


def _tracing(settings: Settings) -> Tracing:
    try:
        return start_tracing(
            NAME, settings.replica, release(), endpoint=settings.otlp_endpoint, file=settings.trace_file
        )
    except OSError as error:
        raise BadSettings(
            f"ROADSTEAD_TRACE_FILE: {settings.trace_file} cannot be written: {error.strerror}"
        ) from None
