"""The provider side of a process of the API: what is sent, what is heard, what is answered, what is looked after.

`ProviderSide` is made from the bus and the database, and runs beside the HTTP server; operations use its `provider` and `dispatch`.
The watchdog does not wait for the broker; everything else runs while there is a connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import orjson
import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from roadstead.bus.connection import Bus
from roadstead.bus.dead import DeadLetter
from roadstead.bus.durable import Durable
from roadstead.bus.epochs import Epochs
from roadstead.bus.pull import Delivery
from roadstead.bus.session import Sessions
from roadstead.bus.tasks import end_all
from roadstead.subjects import MIB, OCTAVIA_API, REPORTS, rpc_subject
from roadstead_octavia.call import _now
from roadstead_octavia.db.port import Stale
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options
from roadstead_octavia.outside.network import Network
from roadstead_octavia.provider.calls import Dispatcher
from roadstead_octavia.provider.judge import Fault
from roadstead_octavia.provider.presence import Presence
from roadstead_octavia.provider.recent import Recent
from roadstead_octavia.provider.reports import Enders, PortKept, Reports, failed_reply, fault_reply
from roadstead_octavia.provider.rpc import PATIENCE, RpcProvider
from roadstead_octavia.provider.store import SqlOperations
from roadstead_octavia.provider.watchdog import Watchdog

log = structlog.get_logger("roadstead.octavia.provider")

AT_ONCE = 32  # requests of providers that are answered at the same time
IN_HAND = 64  # reports
LONGEST = 8 * MIB

Answer = Callable[[str, Any], Awaitable[Mapping[str, Any]]]


def load_balancer_of(delivery: Delivery) -> str:
    """What orders reports: the load balancer that they say they are about, else their subject."""
    try:
        owner = orjson.loads(delivery.data).get("loadbalancer_id")
    except (orjson.JSONDecodeError, AttributeError):
        return delivery.subject
    return owner if isinstance(owner, str) else delivery.subject


class ProviderSide:
    """See the module.  `run` until cancelled."""

    def __init__(
        self,
        bus: Bus,
        database: PostgresDatabase,
        network: Network,
        options: Options,
        *,
        patience: float = PATIENCE,
        now: Callable[[], datetime] = _now,
        watch_every: float = 1.0,
    ) -> None:
        self._bus = bus
        self._database = database
        operations = SqlOperations(database)
        enders = Enders(database, network, options, operations=operations, now=now)
        self.provider = RpcProvider(bus, patience=patience)
        recent = Recent()
        self.dispatch = Dispatcher(bus, recent)
        self.reports = Reports(database, operations, enders, recent)
        self.watchdog = Watchdog(operations, enders, self.dispatch, now=now, every=watch_every)
        self._durable = Durable(
            bus,
            REPORTS,
            self._heard,
            self._healthy,
            service=OCTAVIA_API,
            in_hand=IN_HAND,
            lane=load_balancer_of,
        )
        answers = Answers(bus, self.reports, Presence(bus, options))
        self._sessions = Sessions(bus, (REPORTS,), (self._durable, answers), epochs={}, reread=_no_reread)

    @property
    def bound(self) -> asyncio.Event:
        """Set while reports are heard and requests answered."""
        return self._sessions.bound

    async def run(self) -> None:
        """Until cancelled.  BusRefused when a person must look at the broker."""
        parts = [
            asyncio.create_task(part)
            for part in (self._sessions.run(), self.watchdog.run(), self.dispatch.run())
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await end_all(parts)

    async def drain(self, seconds: float) -> None:
        """Calls that wait go out and reports in hand are finished, as far as the time allows."""
        if not await self.dispatch.drain(seconds) or not await self._durable.idle(seconds):
            log.warning("what was in hand is left to other replicas and the watchdog")

    async def _healthy(self) -> bool:
        try:
            await self._database.ping()
        except ApiError:
            return False
        return await self._bus.answers()

    async def _heard(self, delivery: Delivery, _epoch: int) -> DeadLetter | None:
        """One message of PROVIDER_REPORTS; a reason when it will never do."""
        _, provider, what = delivery.subject.split(".", 2)
        try:
            message = _read(delivery.data)
            if what == "result":
                await self.reports.result(provider, message)
            elif what == "status":
                await self.reports.apply_status(provider, message)
            else:
                await self.reports.apply_statistics(provider, message)
        except PortKept:
            raise
        except Fault as fault:
            return DeadLetter("BAD_REPORT", fault.text)
        return None


async def _no_reread(_: Epochs) -> None:
    """No position is kept: a report that comes twice changes nothing."""


def _read(data: bytes) -> Any:
    if len(data) > LONGEST:
        raise Fault("the message is too large")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Fault(f"the message is not JSON in UTF-8: {error.msg}") from None


class Answers:
    """Answers what providers (and people) ask, one of all replicas each."""

    def __init__(self, bus: Bus, reports: Reports, presence: Presence) -> None:
        self._bus = bus
        self._room = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

        async def operations(_: str, message: Any) -> Mapping[str, Any]:
            return await reports.operations(message)

        async def providers(*_: Any) -> Mapping[str, Any]:
            return await presence.look()

        self._subjects: dict[str, tuple[Answer, str]] = {
            "rpc.provider.*.status": (reports.status, "status_object"),
            "rpc.provider.*.statistics": (reports.statistics, "stats_object"),
            "rpc.provider.*.get": (reports.get, ""),
            "rpc.provider.*.tree": (reports.tree, ""),
            rpc_subject(OCTAVIA_API, "operations"): (operations, ""),
            rpc_subject(OCTAVIA_API, "providers"): (providers, ""),
        }

    async def run(self) -> None:
        """Until cancelled."""
        client = self._bus.client
        held = []
        try:
            for subject, (answer, name) in self._subjects.items():
                held.append(await client.subscribe(subject, queue=OCTAVIA_API, cb=self._taker(answer, name)))
            await asyncio.Event().wait()
        finally:
            for subscription in held:
                if not client.is_closed and not client.is_reconnecting:
                    await subscription.unsubscribe()
            await end_all(self._tasks)

    def _taker(self, answer: Answer, name: str) -> Callable[[Msg], Awaitable[None]]:
        async def take(message: Msg) -> None:
            await self._room.acquire()
            task = asyncio.create_task(self._one(message, answer, name))
            self._tasks.add(task)
            task.add_done_callback(self._done)

        return take

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _one(self, message: Msg, answer: Answer, name: str) -> None:
        try:
            reply = await answer(message.subject.split(".")[2], _read(message.data))
        except Fault as fault:
            reply = fault_reply(fault, name or "status_object")
        except (ApiError, Stale) as error:
            log.warning("request not carried out", subject=message.subject, error=str(error))
            reply = failed_reply(error)
        except Exception as error:
            log.exception("request failed", subject=message.subject)
            reply = failed_reply(error)
        if not message.reply:
            return
        try:
            await message.respond(orjson.dumps(reply))
        except (NatsError, OSError) as error:
            log.warning("reply not sent", subject=message.subject, error=str(error) or type(error).__name__)
