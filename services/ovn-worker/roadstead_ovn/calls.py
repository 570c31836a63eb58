"""The worker on the bus: calls are kept and begun, checks and questions answered.

A call is a row before it is acknowledged; when there is room its pass begins with the same statement and with the tree that the call
brought.  Checks have no side effects and need the load balancer only for members.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from roadstead.bus.connection import Bus
from roadstead.bus.dead import DeadLetter
from roadstead.bus.durable import Durable
from roadstead.bus.failures import RequestFailed
from roadstead.bus.pull import Delivery
from roadstead.bus.rights import provider_user
from roadstead.bus.tasks import end_all
from roadstead.store.api import StoreUnavailable
from roadstead.subjects import provider_calls, provider_rpc_subject
from roadstead_ovn.api import Api
from roadstead_ovn.balancer import BadTree, Balancer, balancer_of
from roadstead_ovn.check import Surroundings, check
from roadstead_ovn.facts import Facts
from roadstead_ovn.network import Network, NetworkRefused
from roadstead_ovn.northbound.port import Unready
from roadstead_ovn.operate import PREFIX as OPERATE
from roadstead_ovn.operate import Operate, fault
from roadstead_ovn.passes import Passes
from roadstead_ovn.runner import Runner
from roadstead_ovn.store.port import Json, NewCall, Store
from roadstead_ovn.subnets import Subnets
from roadstead_ovn.vip_ports import PortRefused, make_vip_ports

log = structlog.get_logger("roadstead.ovn.calls")

LONGEST = 1_000_000  # bytes of an answer
AT_ONCE = 64  # checks and questions that are answered at the same time
REMEMBERED = 10_000  # pools whose load balancer's VIPs are known without asking


class BadCall(ValueError):
    """The message is no call of the provider protocol; the text says where."""


def read_call(data: bytes, traceparent: str | None, at: float) -> tuple[NewCall, Json | None]:
    """The call, and the tree when it brought one.  at: seconds since 1970.  BadCall."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise BadCall("the message is not JSON") from None
    if not isinstance(body, dict):
        raise BadCall("the message is not an object")
    texts = [body.get(name) for name in ("operation", "loadbalancer_id", "deadline")]
    if not all(isinstance(text, str) and 0 < len(text) <= 36 for text in texts):
        raise BadCall("operation, loadbalancer_id or deadline is missing")
    revision = body.get("revision")
    if not isinstance(revision, int) or isinstance(revision, bool):
        raise BadCall("revision is no whole number")
    try:
        deadline = datetime.fromisoformat(str(body["deadline"])).timestamp()
    except ValueError:
        raise BadCall("deadline is no time") from None
    tree = body.get("tree")
    if tree is not None and not (
        isinstance(tree, dict) and tree.get("loadbalancer_id") == body["loadbalancer_id"]
    ):
        raise BadCall("tree is none of this load balancer")
    entry = {
        "revision": revision,
        "send": body.get("send", 1),
        "deadline": deadline,
        "method": str(body.get("method")),
        "verb": str(body.get("verb")),
        "objects": body.get("objects") or {},
        "removes": body.get("removes"),
        "traceparent": traceparent,
        "at": at,
    }
    return NewCall(body["loadbalancer_id"], revision, body["operation"], entry), tree


class Intake:
    """Keeps calls, and begins their passes where there is room.  wall: seconds since 1970."""

    def __init__(
        self,
        store: Store,
        passes: Passes,
        runner: Runner,
        surroundings: "Around",
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._passes = passes
        self._runner = runner
        self._around = surroundings
        self._wall = wall

    async def receive(self, data: bytes, traceparent: str | None = None) -> DeadLetter | None:
        """When it returns, the call is kept; a reason when it will never do.  StoreUnavailable."""
        try:
            call, tree = read_call(data, traceparent, self._wall())
        except BadCall as error:
            return DeadLetter("BAD_CALL", str(error))
        runner = self._runner
        work = await self._store.take(call, runner.owner if runner.has_room else None, runner.lease)
        if work is not None:
            runner.start(work, tree)
        else:
            if tree is not None:
                self._passes.offer(tree)
            runner.nudge()
        if tree is not None:
            self._around.keep(tree)
        return None


class Calls(Durable):
    """Hears PROVIDER_CALLS."""

    def __init__(self, bus: Bus, name: str, intake: Intake, healthy: Callable[[], Awaitable[bool]]) -> None:
        async def handle(delivery: Delivery, _epoch: int) -> DeadLetter | None:
            return await intake.receive(delivery.data, delivery.headers.get("traceparent"))

        super().__init__(
            bus,
            provider_calls(name),
            handle,
            healthy,
            service=provider_user(name),
            lane=lambda delivery: str(delivery.sequence),  # the revision orders them
        )


class Around:
    """What checks need of the load balancers that they are about."""

    def __init__(self, api: Api, subnets: Subnets) -> None:
        self._api = api
        self._subnets = subnets
        self._vips: OrderedDict[str, Balancer] = OrderedDict()

    def keep(self, tree: Json) -> None:
        """A load balancer's VIPs never change: members of its pools need no question about them."""
        for pool in tree["loadbalancer"].get("pools") or ():
            try:
                balancer = balancer_of(
                    {**tree, "loadbalancer": {**tree["loadbalancer"], "pools": [], "listeners": []}}
                )
            except BadTree:
                return
            if balancer is not None:
                self._vips[str(pool.get("pool_id"))] = balancer
                self._vips.move_to_end(str(pool.get("pool_id")))
        while len(self._vips) > REMEMBERED:
            self._vips.popitem(last=False)

    async def of(self, method: str, arguments: Sequence[Any]) -> Surroundings:
        """RequestFailed, NetworkRefused."""
        balancer = await self._balancer(method, arguments)
        subnet = self._vip_subnet(method, arguments, balancer)
        known = await self._subnets.get([subnet]) if subnet else ()
        return Surroundings(balancer, Facts(subnets=known))

    async def _balancer(self, method: str, arguments: Sequence[Any]) -> Balancer | None:
        if method == "member_batch_update":
            pool = arguments[0] if arguments else None
            return await self._asked("pools", pool)  # which members it has must be as new as can be
        model = next((value for value in arguments if isinstance(value, Mapping)), {})
        if method in ("member_create", "member_delete"):
            pool = model.get("pool_id")
            return self._vips.get(str(pool)) or await self._asked("pools", pool)
        if method == "pool_create" and model.get("members"):
            return await self._asked("loadbalancers", model.get("loadbalancer_id"))
        return None

    async def _asked(self, kind: str, identifier: Any) -> Balancer | None:
        if not isinstance(identifier, str):
            return None
        tree = await self._api.tree_of(kind, identifier)
        if tree is None:
            return None
        self.keep(tree)
        return balancer_of(tree)

    def _vip_subnet(self, method: str, arguments: Sequence[Any], balancer: Balancer | None) -> str | None:
        """The subnet that members without one of their own must lie in; None when there is no such member."""
        if not any(_member_without_subnet(value) for value in arguments):
            return None
        if balancer is not None:
            return balancer.vip.subnet_id
        model = next((value for value in arguments if isinstance(value, Mapping)), {})
        subnet = model.get("vip_subnet_id")
        return subnet if method == "loadbalancer_create" and isinstance(subnet, str) else None


def _member_without_subnet(value: Any) -> bool:
    if isinstance(value, list):
        return any(_member_without_subnet(item) for item in value)
    if not isinstance(value, Mapping):
        return False
    if value.get("$type") == "Member":
        return not value.get("subnet_id")
    return any(_member_without_subnet(item) for item in value.values() if isinstance(item, list | Mapping))


class Answers:
    """Answers checks and questions, one of all replicas each."""

    def __init__(self, bus: Bus, name: str, network: Network, surroundings: Around, operate: Operate) -> None:
        self._operate = operate
        self._bus = bus
        self._name = name
        self._network = network
        self._around = surroundings
        self._room = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled."""
        client = self._bus.client
        held = []
        subjects = (provider_rpc_subject(self._name, "check"), provider_rpc_subject(self._name, "ask", "*"))
        try:
            for subject in subjects:
                held.append(await client.subscribe(subject, queue=provider_user(self._name), cb=self._take))
            await asyncio.Event().wait()
        finally:
            for subscription in held:
                if not client.is_closed and not client.is_reconnecting:
                    await subscription.unsubscribe()
            await end_all(self._tasks)

    async def _take(self, message: Msg) -> None:
        await self._room.acquire()
        task = asyncio.create_task(self._one(message))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _one(self, message: Msg) -> None:
        headers = dict(message.headers or {})
        method = message.subject.rpartition(".")[2]
        carrier = headers if "traceparent" in headers else {}
        with self._bus.tracing.span(f"ovn {method}", carrier):
            reply = await self.answer(method, message.data)
        data = orjson.dumps(reply, default=_shown)
        if len(data) > LONGEST:
            data = orjson.dumps(_error("DriverError", "the answer is larger than the broker takes"))
        try:
            await message.respond(data)
        except (NatsError, OSError) as error:
            log.warning("reply not sent", method=method, error=str(error) or type(error).__name__)

    async def answer(self, method: str, data: bytes) -> Json:
        """The reply to a check, or to the question of that name."""
        try:
            request = orjson.loads(data)
        except orjson.JSONDecodeError:
            return _error("DriverError", "the request is not JSON")
        if not isinstance(request, Mapping):
            return _error("DriverError", "the request is not an object")
        arguments = request.get("arguments")
        given: Sequence[Any] = arguments if isinstance(arguments, list) else []
        name = str(request.get("method")) if method == "check" else method
        try:
            if method == "create_vip_port":
                return await self._vip_port(given)
            if method.startswith(OPERATE):
                return await self._operate.answer(method, given)
            refusal = check(name, given, await self._around.of(name, given))
        except (RequestFailed, NetworkRefused, BadTree, Unready, StoreUnavailable) as error:
            text = str(error) or "the local copy of the database is not complete"
            if method.startswith(OPERATE):
                return fault(f"it cannot be looked at now: {text}")
            return _error("DriverError", f"it cannot be looked at now: {text}")
        except Exception:
            log.exception("a request failed", method=name)
            return _error("DriverError", "the request failed; the worker's log has more")
        return {"ok": True} if refusal is None else _error(refusal.kind, refusal.text)

    async def _vip_port(self, given: Sequence[Any]) -> Json:
        if len(given) < 3 or not isinstance(given[2], Mapping):
            return _error("DriverError", "create_vip_port needs the wanted VIP")
        more = [item for item in (given[3] if len(given) > 3 else None) or () if isinstance(item, Mapping)]
        try:
            vip, additional = await make_vip_ports(
                self._network, str(given[0]), str(given[1]), given[2], more
            )
        except PortRefused as refused:
            return _error(refused.kind, refused.text)
        return {"ok": True, "returns": [vip, additional]}


def _shown(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(type(value).__name__)


def _error(kind: str, text: str | None) -> Json:
    return {"error": {"class": kind, "user": text, "operator": text}}
