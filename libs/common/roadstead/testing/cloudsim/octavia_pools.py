"""Pools, alone or as a part of a nested create."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import octavia_providers as providers
from .base import Ctx, JsonObject, answer, nothing
from .octavia_routes import lbaas
from .octavia_state import DELETING
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .octavia import Octavia

PROTOCOLS = ("TCP", "UDP", "SCTP", "HTTP", "HTTPS", "PROXY", "PROXYV2")
ALGORITHMS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")
TLS = {
    "tls_container_ref": None, "ca_tls_container_ref": None, "crl_container_ref": None, "tls_enabled": False,
    "tls_ciphers": None, "tls_versions": None, "alpn_protocols": None,
}  # fmt: skip
WRITABLE = {"name", "description", "admin_state_up", "lb_algorithm", "session_persistence", "tags"}
NESTED = WRITABLE | {"protocol", "members", "healthmonitor", *TLS}
CREATABLE = (NESTED - {"members", "healthmonitor"}) | {"listener_id", "loadbalancer_id", "project_id"}
RESOURCE = "Pool"


class Pools:
    """The collection /lbaas/pools."""

    def __init__(self, octavia: Octavia) -> None:
        self.octavia = octavia
        self.state = octavia.state

    @lbaas("GET", "/pools")
    def index(self, ctx: Ctx) -> Response:
        return self.octavia.listing(ctx, "pools", self.state.pools, self.show)

    @lbaas("GET", "/pools/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"pool": self.show(self._find(ctx))})

    @lbaas("POST", "/pools")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("pool")
        checked(ctx, body, CREATABLE)
        self.octavia.require_member(ctx)
        listener = None
        if body.get("loadbalancer_id"):
            lb_id = body["loadbalancer_id"]
        elif body.get("listener_id"):
            listener = self.octavia.find(ctx, self.state.listeners, body["listener_id"], "Listener")
            lb_id = listener["_lb"]
        else:
            raise self.octavia.invalid("Must provide at least one of: loadbalancer_id, listener_id")
        lb = self.octavia.find(ctx, self.state.lbs, lb_id, "Load Balancer")
        self._check(ctx, body)
        if listener is not None:
            self.octavia.listeners_part.check_protocols(listener["protocol"], str(body["protocol"]))
            if listener["default_pool_id"]:
                raise self.octavia.error(409, "This listener already has a default pool")
        self.octavia.check_quota(lb["project_id"], "pool", self.state.pools, 1, RESOURCE)
        self.octavia.lock(lb["id"])
        self.octavia.refuse(lb["provider"], providers.refuse_pool(lb["provider"], body))
        row = self._make(ctx, lb, body)
        touched = [row]
        if listener is not None:
            self.state.listeners.change(listener, default_pool_id=row["id"])
            touched.append(listener)
        self.state.begin_change(lb, touched)
        return answer({"pool": self.show(row)}, 201)

    @lbaas("PUT", "/pools/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.octavia.require_member(ctx)
        body = ctx.body("pool")
        checked(ctx, body, WRITABLE)
        self._check_algorithm(body)
        lb = self.octavia.lock(row["_lb"])
        self.octavia.refuse(lb["provider"], providers.refuse_pool(lb["provider"], body))
        changes = {
            key: value for key, value in body.items() if value is not None or key == "session_persistence"
        }
        self.state.pools.change(row, **changes)
        self.state.begin_change(lb, [row, *self.listeners_of(row)])
        return answer({"pool": self.show(row)})

    @lbaas("DELETE", "/pools/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.octavia.require_member(ctx)
        lb = self.octavia.lock(row["_lb"])
        self.state.move(row, DELETING)
        self.state.begin_change(lb, [row, *self.listeners_of(row)])
        return nothing()

    # ------------------------------------------------------------- pieces

    def make_nested(self, ctx: Ctx, lb: Row, body: JsonObject) -> Row:
        """Store a pool of a nested create with its monitor and members."""
        checked(ctx, body, NESTED)
        self._check(ctx, body)
        row = self._make(ctx, lb, body)
        monitor = ctx.mapping(body, "healthmonitor")
        if monitor:
            self.octavia.monitors_part.make(ctx, lb, row, monitor)
        members = ctx.objects(body, "members")
        self.octavia.check_quota(lb["project_id"], "member", self.state.members, len(members), "Member")
        for member in members:
            self.octavia.members_part.make(ctx, lb, row, member)
        return row

    def listeners_of(self, pool: Row) -> list[Row]:
        """Return the listeners whose default pool this is."""
        return self.state.listeners.where("default_pool_id", pool["id"])

    def show(self, row: Row) -> JsonObject:
        """Return the pool as replies show it, its relations as ids."""
        made = self.octavia.shown(row)
        monitor = self.state.monitor_of(row["id"])
        made["loadbalancers"] = [{"id": row["_lb"]}]
        made["listeners"] = [{"id": listener["id"]} for listener in self.listeners_of(row)]
        made["members"] = [{"id": member["id"]} for member in self.state.members.where("_pool", row["id"])]
        made["healthmonitor_id"] = monitor["id"] if monitor else None
        return made

    def show_full(self, row: Row) -> JsonObject:
        """Return the pool with members and monitor spelled out, as a nested create answers."""
        made = self.show(row)
        monitor = self.state.monitor_of(row["id"])
        made["members"] = [
            self.octavia.shown(member) for member in self.state.members.where("_pool", row["id"])
        ]
        made["healthmonitor"] = self.octavia.monitors_part.show(monitor) if monitor else None
        return made

    def _find(self, ctx: Ctx) -> Row:
        return self.octavia.find(ctx, self.state.pools, ctx.params["id"], RESOURCE)

    def _check(self, ctx: Ctx, body: JsonObject) -> None:
        protocol = ctx.text(body, "protocol", required=True)
        if protocol not in PROTOCOLS:
            raise self.octavia.invalid_field(
                "protocol", protocol, f"Value should be one of: {', '.join(PROTOCOLS)}"
            )
        ctx.text(body, "lb_algorithm", required=True)
        self._check_algorithm(body)

    def _check_algorithm(self, body: JsonObject) -> None:
        value = body.get("lb_algorithm")
        if value is not None and value not in ALGORITHMS:
            raise self.octavia.invalid_field(
                "lb_algorithm", value, f"Value should be one of: {', '.join(ALGORITHMS)}"
            )

    def _make(self, ctx: Ctx, lb: Row, body: JsonObject) -> Row:
        values: Row = {
            "name": ctx.text(body, "name", "") or "", "description": ctx.text(body, "description", "") or "",
            "admin_state_up": ctx.flag(body, "admin_state_up", True), "protocol": body["protocol"],
            "lb_algorithm": body["lb_algorithm"], "session_persistence": body.get("session_persistence"),
            "tags": ctx.texts(body, "tags"), **TLS,
        }  # fmt: skip
        return self.state.new_row("pool", lb["project_id"], lb["id"], **values)
