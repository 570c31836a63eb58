"""The process of the API: HTTP in front, the database and the cloud behind, the providers on the bus beside.

Start: the database is waited for, then requests are answered; the broker may come later, until then what needs a provider is 503.
SIGTERM ends it in good order: no longer ready, no new connections, requests in hand end, calls to providers go out.  A second signal
ends it at once.
"""

import asyncio
import contextlib
import gc
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from datetime import timedelta
from typing import Any

import structlog
import uvicorn

from roadstead.bus.connection import Bus
from roadstead.bus.failures import BusRefused
from roadstead.bus.streams import release
from roadstead.bus.tasks import end_all
from roadstead.logs import start_logging
from roadstead.service_health import CannotListen, HealthServer, Readiness, health_app
from roadstead.service_life import Exit, Life, bus_options, tracing_of
from roadstead.service_tasks import Supervisor
from roadstead.settings import Settings
from roadstead.store.api import SchemaBehind
from roadstead.subjects import OCTAVIA_API
from roadstead.telemetry.metrics import Meters
from roadstead_octavia.call import Operation, Parts, _now
from roadstead_octavia.db.claims import Claims
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.purge import purge
from roadstead_octavia.db.tables import SCHEMA
from roadstead_octavia.errors import ApiError
from roadstead_octavia.http.app import App
from roadstead_octavia.http.cors import Cors
from roadstead_octavia.http.identity import HeaderIdentity, Identity, TokenIdentity, TokenRules
from roadstead_octavia.http.operations import load
from roadstead_octavia.outside.build import keys_of, network_of, service_user
from roadstead_octavia.outside.keys import Keys
from roadstead_octavia.outside.keystone import Keystone
from roadstead_octavia.outside.network import Network, NetworkRefused
from roadstead_octavia.policy_engine import PolicyEngine
from roadstead_octavia.provider.side import ProviderSide
from roadstead_octavia.settings import PREFIX, OctaviaSettings

log = structlog.get_logger("roadstead.octavia")

OPEN_AGAIN = 2.0
POLICY_EVERY = 10.0
CLAIMS_EVERY = 10.0
PURGE_EVERY = 3600.0
STEP_BOUND = 10.0  # seconds for each step of an ending
# Containers that are made before the collector looks for cycles among them: one list of a thousand makes ten thousand, which without
# this are walked through ten times and more, together with everything that was loaded at the start.
COLLECT_AFTER = (100_000, 20, 50)
KEEP_ALIVE = 75  # seconds that an idle connection stays; longer than clients and proxies keep theirs


class Server(uvicorn.Server):
    """The HTTP server beside the process's own loop: signals are the process's.  `listening` is set when it answers.

    reuse_port: other processes may listen where this one does.
    """

    def __init__(self, config: uvicorn.Config, *, reuse_port: bool = False) -> None:
        super().__init__(config)
        self.reuse_port = reuse_port
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.address()
            log.info("answering", host=host, port=port)
            self.listening.set()

    async def run_until_told(self) -> None:
        """Until `should_exit`.  CannotListen."""
        try:
            shared = [_shared(self.config.host, self.config.port)] if self.reuse_port else None
            await self.serve(shared)
        except (SystemExit, OSError):
            raise CannotListen(
                f"port {self.config.port} of {self.config.host} cannot be bound: it is taken, or the address is none of this machine;"
                f" set {PREFIX}BIND_HOST or {PREFIX}BIND_PORT"
            ) from None

    def address(self) -> tuple[str, int]:
        """Where it listens; only once it does."""
        host, port, *_ = self.servers[0].sockets[0].getsockname()
        return str(host), int(port)


def _shared(host: str, port: int) -> socket.socket:
    """A socket that others may bind as well.  OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


class Process:
    """One replica.  BadSettings (BadPolicy, NoSuchOperation) for what cannot be.  network, keys and operations: those of the
    settings and the package unless given."""

    def __init__(
        self,
        settings: Settings,
        octavia: OctaviaSettings,
        *,
        network: Network | None = None,
        keys: Keys | None = None,
        operations: Mapping[str, Operation] | None = None,
    ) -> None:
        self.settings = settings
        self.octavia = octavia
        self.meters = Meters(process=True)
        self.tracing = tracing_of(OCTAVIA_API, settings)
        self.policy = PolicyEngine(octavia.policy_file)
        self.keystone, self.identity = self._identity()
        self.database = PostgresDatabase(
            settings.database_url.get_secret_value(),
            settings.database_schema or SCHEMA,
            pool_size=settings.database_pool,
            patience=min(settings.database_patience, 5.0),  # a client waits for it
            role=settings.database_role,
        )
        self.bus = Bus(bus_options(OCTAVIA_API, settings), meters=self.meters, tracing=self.tracing)
        self.network = network or network_of(octavia)
        self.keys = keys or keys_of(octavia)
        options = octavia.options()
        self.side = ProviderSide(self.bus, self.database, self.network, options)
        parts = Parts(
            database=self.database,
            provider=self.side.provider,
            network=self.network,
            keys=self.keys,
            policy=self.policy,
            dispatch=self.side.dispatch,
        )
        self.app = App(
            parts,
            options,
            self.identity,
            operations=load() if operations is None else operations,
            meters=self.meters,
            tracing=self.tracing,
            cors=Cors(octavia.cors_allowed_origin),
            prefix=octavia.url_prefix,
        )
        self.readiness = Readiness({"database": self._database_fault})
        self.supervisor = Supervisor(self.meters, fatal=(BusRefused, SchemaBehind))
        self.server = Server(self._server_config(), reuse_port=octavia.reuse_port)
        self.life = Life("roadstead.octavia")
        self.stopping = self.life.stopping

    async def main(self) -> int:
        """Start, wait for the end, end.  The exit status."""
        s = self.settings
        start_logging(OCTAVIA_API, s.replica, level=s.log_level, form=s.log_format)
        _collect_seldom()
        self.life.listen_for_signals()
        return int(await self.life.lived(self._serve, self._end))

    # ------------------------------------------------------------ start

    async def _serve(self) -> Exit:
        log.info("starting", release=release(), strategy=self.octavia.auth_strategy)
        if self.octavia.auth_strategy != "keystone":
            log.warning(
                "tokens are not checked: this is for development alone", strategy=self.octavia.auth_strategy
            )
        if self.settings.health_port:
            health = HealthServer(
                health_app(self.readiness, self.meters), self.settings.health_host, self.settings.health_port
            )
            self.supervisor.start("health", health.run_until_cancelled)
        if not await self.life.or_stop(self.life.opened(self.database.open)):
            return Exit.DONE
        for name, work in self._jobs().items():
            self.supervisor.start(name, work)
        serving = asyncio.create_task(self.server.run_until_told(), name="http")
        ends = {
            serving,
            asyncio.create_task(self.stopping.wait(), name="signal"),
            asyncio.create_task(self.supervisor.failed.wait(), name="fault"),
        }
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.readiness.stopping = True
            self.server.should_exit = True
            await asyncio.wait({serving}, timeout=self.octavia.drain + STEP_BOUND)
            await end_all(ends - {serving} if serving.done() else ends)
        if self.supervisor.fault is not None:
            raise self.supervisor.fault
        if serving.done() and not serving.cancelled() and (error := serving.exception()) is not None:
            raise error
        return Exit.DONE if self.stopping.is_set() else Exit.FAULT

    def _server_config(self) -> uvicorn.Config:
        o = self.octavia
        return uvicorn.Config(
            self.app,
            host=o.bind_host,
            port=o.bind_port,
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(o.trusted_proxies),
            forwarded_allow_ips=o.trusted_proxies or "",
            limit_concurrency=o.connections,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=int(o.drain),
        )

    def _identity(self) -> tuple[Keystone | None, Identity]:
        o = self.octavia

        def is_admin(values: Any) -> bool:
            return self.policy.is_admin(
                values, enforce_scope=o.enforce_scope, enforce_new_defaults=o.enforce_new_defaults
            )

        if o.auth_strategy != "keystone":
            return None, HeaderIdentity(is_admin, everybody_is_admin=o.auth_strategy == "noauth")
        keystone = Keystone(service_user(o, o.identity_timeout))
        rules = TokenRules(
            authenticate_uri=o.www_authenticate_uri or o.identity_url(),
            ttl=o.token_cache_time,
            size=o.token_cache_size,
            service_roles=frozenset(o.service_token_roles),
        )
        return keystone, TokenIdentity(keystone, is_admin, rules)

    # ------------------------------------------------------------ jobs

    def _jobs(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            "provider": self._provider_side,
            "policy": lambda: _again(POLICY_EVERY, self._reload_policy),
            "claims": lambda: _again(CLAIMS_EVERY, self._sweep_claims),
            "purge": lambda: _again(PURGE_EVERY, self._purge),
        }

    async def _provider_side(self) -> None:
        if self.bus.number == 0:
            await self.bus.connect()
        await self.side.run()

    async def _reload_policy(self) -> None:
        if await asyncio.to_thread(self.policy.reload) and isinstance(self.identity, TokenIdentity):
            self.identity.forget()

    async def _sweep_claims(self) -> None:
        """VIP ports of creations that never came to an end are removed."""
        claims = Claims(self.database)
        try:
            overdue = await claims.take_overdue(_now())
        except ApiError as error:
            log.warning("claims are swept later", error=error.text)
            return
        for claim in overdue:
            identifier = claim["load_balancer_id"]
            try:
                await self.network.remove_vip_port(identifier, None)
                await claims.forget(identifier)
            except (ApiError, NetworkRefused) as error:
                log.warning("a VIP port is removed later", load_balancer=identifier, error=error.text)
            else:
                log.info("the VIP port of a creation that failed is gone", load_balancer=identifier)

    async def _purge(self) -> None:
        age = timedelta(seconds=self.octavia.load_balancer_expiry_age)
        try:
            gone = await purge(self.database, _now(), age)
        except ApiError as error:
            log.warning("old rows are purged later", error=error.text)
        else:
            if any(gone.values()):
                log.info("old rows removed", **gone)

    async def _database_fault(self) -> str | None:
        try:
            async with asyncio.timeout(2.0):
                await self.database.ping()
        except (ApiError, TimeoutError, OSError):
            return "the database does not answer"
        return None

    # ------------------------------------------------------------ end

    async def _end(self) -> None:
        self.readiness.stopping = True
        steps: list[tuple[str, Callable[[], Awaitable[Any]]]] = []
        if self.bus.number:
            steps.append(("calls to providers", lambda: self.side.drain(STEP_BOUND / 2)))
        steps += [
            ("tasks", self.supervisor.stop_all),
            ("bus", self.bus.close),
            ("database", self.database.close),
            ("traces", lambda: asyncio.to_thread(self.tracing.close)),
        ]
        await self.life.end_in_steps((name, step, STEP_BOUND) for name, step in steps)
        for asked in (self.keystone, self.network, self.keys):
            if (
                close := getattr(asked, "close", None)
            ) is not None:  # those that stand in for a cloud hold nothing
                close()


def _collect_seldom() -> None:
    """What is there now stays and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


async def _again(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await work()
        await asyncio.sleep(seconds)
