"""Health monitors: one per pool, of a type that fits the pool's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import octavia_providers as providers
from .base import Ctx, JsonObject, answer, nothing
from .octavia_routes import lbaas
from .octavia_state import ACTIVE, DELETING
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .octavia import Octavia

TYPES = ("HTTP", "HTTPS", "PING", "SCTP", "TCP", "TLS-HELLO", "UDP-CONNECT")
DATAGRAM_TYPES = ("UDP-CONNECT", "SCTP", "TCP", "HTTP")
HTTP_DEFAULTS = {"http_method": "GET", "url_path": "/", "expected_codes": "200"}
SHORTEST_UDP_DELAY = 3
WRITABLE = {
    "name", "admin_state_up", "delay", "timeout", "max_retries", "max_retries_down", "tags", "http_version",
    "domain_name", *HTTP_DEFAULTS,
}  # fmt: skip
NESTED = WRITABLE | {"type"}
CREATABLE = NESTED | {"pool_id", "project_id"}
RESOURCE = "Health Monitor"


class Monitors:
    """The collection /lbaas/healthmonitors."""

    def __init__(self, octavia: Octavia) -> None:
        self.octavia = octavia
        self.state = octavia.state

    @lbaas("GET", "/healthmonitors")
    def index(self, ctx: Ctx) -> Response:
        return self.octavia.listing(ctx, "healthmonitors", self.state.monitors, self.show)

    @lbaas("GET", "/healthmonitors/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"healthmonitor": self.show(self._find(ctx))})

    @lbaas("POST", "/healthmonitors")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("healthmonitor")
        checked(ctx, body, CREATABLE)
        self.octavia.require_member(ctx)
        pool_id = ctx.text(body, "pool_id", required=True)
        pool = self.octavia.find(ctx, self.state.pools, pool_id, "Pool")
        self._check(ctx, pool, body)
        self.octavia.check_quota(pool["project_id"], "health_monitor", self.state.monitors, 1, RESOURCE)
        lb = self._lock(pool)
        if self.state.monitor_of(pool["id"]) is not None:
            raise self.octavia.error(409, "This pool already has a health monitor")
        self.octavia.refuse(lb["provider"], providers.refuse_monitor(lb["provider"], body))
        nested = {key: value for key, value in body.items() if key in NESTED}
        row = self.make(ctx, lb, pool, nested)
        self._begin(lb, pool, row)
        return answer({"healthmonitor": self.show(row)}, 201)

    @lbaas("PUT", "/healthmonitors/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.octavia.require_member(ctx)
        body = ctx.body("healthmonitor")
        checked(ctx, body, WRITABLE)
        pool = self._pool_of(row)
        lb = self._lock(pool)
        changes = self._values(ctx, body)
        self.state.monitors.change(row, **changes)
        self._begin(lb, pool, row)
        return answer({"healthmonitor": self.show(row)})

    @lbaas("DELETE", "/healthmonitors/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.octavia.require_member(ctx)
        pool = self._pool_of(row)
        lb = self._lock(pool)
        self.state.move(row, DELETING)
        self._begin(lb, pool, row)
        return nothing()

    # ------------------------------------------------------------- pieces

    def make(self, ctx: Ctx, lb: Row, pool: Row, body: JsonObject) -> Row:
        """Store a monitor in PENDING_CREATE; 400 when it does not fit its pool."""
        checked(ctx, body, NESTED)
        self._check(ctx, pool, body)
        http: JsonObject = dict.fromkeys(HTTP_DEFAULTS)
        if body["type"] in ("HTTP", "HTTPS"):
            http = dict(HTTP_DEFAULTS)
        values: Row = {
            "name": "", "admin_state_up": True, "tags": [], "max_retries_down": 3, "http_version": None,
            "domain_name": None, **http, **self._values(ctx, body), "type": body["type"], "_pool": pool["id"],
        }  # fmt: skip
        return self.state.new_row("monitor", lb["project_id"], lb["id"], **values)

    def show(self, row: Row) -> JsonObject:
        """Return the monitor as replies show it."""
        return {**self.octavia.shown(row), "pools": [{"id": row["_pool"]}]}

    def _values(self, ctx: Ctx, body: JsonObject) -> JsonObject:
        made = {key: body[key] for key in WRITABLE if body.get(key) is not None}
        for key in ("delay", "timeout"):
            if key in made:
                made[key] = ctx.integer(body, key, low=0)
        for key in ("max_retries", "max_retries_down"):
            if key in made:
                made[key] = ctx.integer(body, key, low=1, high=10)
        return made

    def _check(self, ctx: Ctx, pool: Row, body: JsonObject) -> None:
        kind = ctx.text(body, "type", required=True)
        if kind not in TYPES:
            raise self.octavia.invalid_field("type", kind, f"Value should be one of: {', '.join(TYPES)}")
        for key in ("delay", "timeout", "max_retries"):
            ctx.integer(body, key, required=True, low=0)
        if pool["protocol"] in ("UDP", "SCTP"):
            if kind not in DATAGRAM_TYPES:
                raise self.octavia.invalid(
                    f"The associated pool protocol is {pool['protocol']}, so only a {'/'.join(DATAGRAM_TYPES)} "
                    "health monitor is supported."
                )
            if kind == "UDP-CONNECT" and int(body["delay"]) < SHORTEST_UDP_DELAY:
                raise self.octavia.invalid(
                    f"The request delay value {body['delay']} should be larger than {SHORTEST_UDP_DELAY} for "
                    "UDP-CONNECT health monitor type."
                )
        elif kind in ("UDP-CONNECT", "SCTP"):
            raise self.octavia.invalid(f"The {kind} type is only supported for pools of type UDP/SCTP.")

    def _find(self, ctx: Ctx) -> Row:
        return self.octavia.find(ctx, self.state.monitors, ctx.params["id"], RESOURCE)

    def _pool_of(self, row: Row) -> Row:
        pool = self.state.pools.get(row["_pool"])
        assert pool is not None  # a pool takes its monitor with it
        return pool

    def _lock(self, pool: Row) -> Row:
        lb = self.octavia.lock(pool["_lb"])
        if pool["provisioning_status"] != ACTIVE:
            raise self.octavia.immutable("Pool", pool["id"])
        return lb

    def _begin(self, lb: Row, pool: Row, row: Row) -> None:
        self.state.begin_change(lb, [row, pool, *self.octavia.pools_part.listeners_of(pool)])
