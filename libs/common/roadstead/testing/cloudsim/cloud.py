"""The simulated cloud: one object that holds every service's state and answers calls.

`Cloud.handle` is synchronous and does no I/O; time is what its clock says, and
asynchronous changes that are due are applied, in their order, before a call is answered.
Equal seeds, clocks and calls give equal answers.

Services work together through plain method calls; "raw" is the service's own record, a
dict in the wire's names, which the caller must not change; `Refused` (base.py) says no:

neutron  port(id) -> raw | None; network(id) -> raw | None; ports_of(device_id) -> [raw]
         networks_for_server(project_id) -> [raw]             networks usable without naming one
         port_create_for_server(network_id, project_id, server_id, host, fixed_ip=None,
                                security_groups=()) -> raw     (group names or ids; may raise Refused)
         port_bind(port_id, server_id, host, security_groups=()) -> None     ACTIVE after `port_up`
         port_unbind(port_id) -> None                          DOWN, no device id, no host
         port_delete_for_server(port_id) -> None               silent when gone
         port_security_groups(port_id) -> [name]
         floating_of(port_id) -> [(fixed address, floating address)]
glance   image(id) -> raw | None                               whatever its visibility
         image_for_boot(id, project_id) -> raw | None          None when not there or not visible
         snapshot_create(name, project_id, user_id, properties, min_disk, base=None) -> id
                                                               status queued
         snapshot_finish(id, size, error=False) -> None        active, or gone on an error
cinder   volume(id) -> raw | None
         attach_reserve(volume_id, server_id, project_id) -> attachment id  (may raise Refused,
                                                               with Cinder's text); status reserved
         attach_complete(attachment_id, device, host) -> None  status in-use, row in `attachments`
         attach_cancel(attachment_id) -> None                  back to available
         detach_begin(volume_id, server_id) -> None            status detaching (may raise Refused)
         detach_complete(volume_id, server_id) -> None         available, row gone
         volume_create_for_server(project_id, user_id, size, image_id=None, volume_type=None,
                                  name="") -> id               (may raise Refused)
         volume_delete_for_server(volume_id) -> None           silent when gone
keystone token_of(id) -> Token | None; project(id) -> raw | None; user(id) -> raw | None
nova     server(id) -> the Server record | None

Classes: keystone.Keystone (prefix and name "identity"), nova.Nova ("compute"), neutron.Neutron
("network"), glance.Glance ("image"), cinder.Cinder ("volume"; version_key "volume"),
octavia.Octavia ("load-balancer"), placement.Placement ("placement"). Routes are below the
prefix: @route("GET", "/v2.0/networks/{id}"). Keystone takes auth=False on version documents.

Every service also has:
         dump() -> {kind: [{"id", "name", "project_id"}]}      for leak checks, by /admin/dump
         foreign(verb, id, values) -> JsonObject               changes by somebody else, by
                                                               /admin/foreign; ValueError for an
                                                               unknown verb, KeyError for an unknown id
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from .admin import Admin
from .base import ApiError, Ctx, JsonObject, Service
from .cinder import Cinder
from .faults import Fault, Faults, Outcome, shortened
from .glance import Glance
from .ids import Clock, Ids, SimClock
from .keystone import Keystone
from .log import Call, Log, body_for_log
from .neutron import Neutron
from .nova import Nova
from .octavia import Octavia
from .orders import Orders
from .placement import Placement
from .settings import SimSettings
from .tokens import Token
from .wire import Request, Response


class Cloud:
    """One simulated cloud; see the module's text for how its services call each other."""

    def __init__(
        self, clock: Clock | None = None, settings: SimSettings | None = None, seed: int = 0
    ) -> None:
        self.settings = settings if settings is not None else SimSettings()
        self.clock = SimClock(clock)
        # Held by every entry point: the HTTP front and a test may live in different threads.
        self.lock = threading.RLock()
        self.seed = seed
        self.log = Log(self.settings.log_limit)
        self.sequence = 0
        self.admin = Admin(self)
        # Called under the lock after every call: whoever shows this cloud's objects elsewhere.
        self.followers: list[Callable[[], None]] = []
        self._build()

    def __getstate__(self) -> dict[str, object]:
        """What is saved: everything but the followers, who belong to the process."""
        return {**self.__dict__, "followers": []}

    def _build(self) -> None:
        self.ids = Ids(self.seed)
        self.faults = Faults(Ids(self.seed + 1).random)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._now: datetime | None = None
        self._other: Cloud | None = None
        self.orders = Orders()
        self.keystone = Keystone(self)
        self.neutron = Neutron(self)
        self.glance = Glance(self)
        self.cinder = Cinder(self)
        self.nova = Nova(self)
        self.octavia = Octavia(self)
        self.placement = Placement(self)
        self.services: tuple[Service, ...] = (
            self.keystone, self.nova, self.neutron, self.glance, self.cinder, self.octavia, self.placement,
        )  # fmt: skip
        self._by_prefix = {service.prefix: service for service in self.services}
        for service in self.services:
            service.seed()

    def reset(self) -> None:
        """Back to the seed content: no objects, faults or log; settings and clock stay."""
        with self.lock:
            self.log.clear()
            self._build()

    # --------------------------------------------------------------- time

    @property
    def now(self) -> datetime:
        """The time of what is going on: while a due change is applied, the moment it was due."""
        return self._now if self._now is not None else self.clock.now()

    def later(self, seconds: float, change: Callable[[], None]) -> None:
        """Apply `change` when that many seconds have passed; changes due together keep their order.

        The change must look its object up again: it may be gone by then.
        """
        start = self.clock.monotonic()
        if self._now is not None:
            # Chained changes count from the moment the first was due, not from when it was applied.
            start -= (self.clock.now() - self._now).total_seconds()
        self._scheduled += 1
        heapq.heappush(self._due, (start + seconds, self._scheduled, change))

    def settle(self) -> None:
        """Apply the changes that are due by now."""
        if not self._due:
            return
        mono = self.clock.monotonic()
        wall = self.clock.now()
        try:
            while self._due and self._due[0][0] <= mono + 1e-9:
                due, _, change = heapq.heappop(self._due)
                self._now = wall - timedelta(seconds=max(0.0, mono - due))
                change()
        finally:
            self._now = None

    def advance(self, seconds: float) -> None:
        """Move the clock and apply what became due."""
        with self.lock:
            self.clock.advance(seconds)
            self.settle()

    def next_change(self) -> float | None:
        """Seconds until the next asynchronous change; None when the cloud is at rest."""
        return max(0.0, self._due[0][0] - self.clock.monotonic()) if self._due else None

    def rest(self, limit: float = 3600.0) -> None:
        """Advance the clock change by change until nothing is scheduled, at most `limit` seconds."""
        spent = 0.0
        while (wait := self.next_change()) is not None:
            spent += wait
            if spent > limit:
                raise RuntimeError(f"the cloud is still changing after {limit} simulated seconds")
            self.advance(wait)

    # -------------------------------------------------------------- calls

    def handle(self, request: Request) -> Response:
        """Answer one call; never raises for anything a client can send."""
        with self.lock:
            response = self._handle(request)
            self._tell()
            return response

    def _handle(self, request: Request) -> Response:
        self.settle()
        prefix, _, rest = request.path.lstrip("/").partition("/")
        if prefix == "admin":
            return self.admin.handle(request, rest)
        service = self._by_prefix.get(prefix)
        if service is None:
            return self.admin.no_such_service(request)
        token = self.keystone.token_for(service, request.headers.get("x-auth-token"))
        fault = self.faults.take(service.name, request, token) if self.faults.rules else None
        request_id = f"req-{self.ids.uuid()}"
        took_effect = fault is None or fault.kind not in ("status", "no_answer_before", "wrong_cloud")
        if fault is None:
            response = self._answer(service, request, rest, token)
        else:
            response = self._faulty(fault, service, request, rest, token)
        response.headers.setdefault("X-Openstack-Request-Id", request_id)
        self._record(service, request, token, response, request_id, fault, took_effect)
        return response

    def _answer(self, service: Service, request: Request, rest: str, token: Token | None) -> Response:
        ctx = Ctx(self, service, request, token, self.now)
        try:
            response = service.dispatch(ctx, rest)
        except ApiError as error:
            response = Response(error.status, dict(error.headers), error.body)
        service.decorate(ctx, response)
        if request.method == "HEAD":
            response.body = None
        return response

    def _faulty(
        self, fault: Fault, service: Service, request: Request, rest: str, token: Token | None
    ) -> Response:
        if fault.kind == "status":
            return fault.response()
        if fault.kind == "no_answer_before":
            return Response(0, no_answer=True)
        if fault.kind == "wrong_cloud":
            other = self.other_cloud()
            other.settle()
            return other._answer(other._by_prefix[service.prefix], request, rest, token)
        response = self._answer(service, request, rest, token)
        if fault.kind == "status_after":
            return fault.response()
        if fault.kind == "no_answer_after":
            return Response(response.status, no_answer=True)
        if fault.kind == "empty_list" and response.status < 300:
            response.body = shortened(response.body, 0)
        elif fault.kind == "partial_list" and response.status < 300:
            response.body = shortened(response.body, fault.keep)
        response.delay = fault.delay
        return response

    def other_cloud(self) -> Cloud:
        """The empty cloud that answers under the fault wrong_cloud; it accepts this cloud's tokens."""
        if self._other is None:
            self._other = Cloud(self.clock, self.settings, self.seed + 1000)
        return self._other

    def outcome(self, kind: str, name: str) -> Outcome | None:
        """Whether an asynchronous change is to fail; see faults.py."""
        return self.faults.outcome(kind, name) if self.faults.outcomes else None

    def dump(self) -> JsonObject:
        """What there is: per service and kind the count and the objects (id, name, project_id)."""
        return {
            service.name: {
                kind: {"count": len(rows), "objects": rows} for kind, rows in service.dump().items()
            }
            for service in self.services
        }

    def foreign(self, service: str, verb: str, object_id: str, **values: object) -> JsonObject:
        """A change made by somebody else, behind the client's back and outside the log."""
        with self.lock:
            self.settle()
            made = next(s for s in self.services if s.name == service).foreign(verb, object_id, dict(values))
            self._tell()
            return made

    def _tell(self) -> None:
        for follower in self.followers:
            follower()

    def _record(
        self,
        service: Service,
        request: Request,
        token: Token | None,
        response: Response,
        request_id: str,
        fault: Fault | None,
        took_effect: bool,
    ) -> None:
        self.sequence += 1
        call = Call(
            self.sequence, self.now, request_id, service.name, request.method, request.path, list(request.query),
            body_for_log(request.body, request.headers.get("content-type", "")), response.status,
        )  # fmt: skip
        if token is not None:
            call.user_id, call.user_name, call.scope = token.user_id, token.user_name, token.scope
            call.project_id, call.domain_id = token.project_id, token.domain_id
            call.roles = tuple(sorted(token.roles))
        if fault is not None:
            call.fault, call.no_answer, call.took_effect = fault.kind, response.no_answer, took_effect
        self.log.add(call)
