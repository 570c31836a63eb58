"""Listeners: protocol and port, timeouts, allowed CIDRs, default pool."""

from __future__ import annotations

from ipaddress import ip_network
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

PROTOCOLS = ("TCP", "UDP", "SCTP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROMETHEUS")
POOL_PROTOCOLS = {
    "TCP": ("HTTP", "HTTPS", "PROXY", "PROXYV2", "TCP"), "HTTP": ("HTTP", "PROXY", "PROXYV2"),
    "HTTPS": ("HTTPS", "PROXY", "PROXYV2", "TCP"), "TERMINATED_HTTPS": ("HTTP", "PROXY", "PROXYV2"),
    "UDP": ("UDP",), "SCTP": ("SCTP",), "PROMETHEUS": (),
}  # fmt: skip
TIMEOUTS = {
    "timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 50000,
    "timeout_tcp_inspect": 0,
}  # fmt: skip
LONGEST = 24 * 24 * 3600 * 1000
WRITABLE = {
    "name", "description", "admin_state_up", "connection_limit", "default_pool_id", "allowed_cidrs",
    "insert_headers", "tags", *TIMEOUTS,
}  # fmt: skip
NESTED = WRITABLE | {"protocol", "protocol_port", "default_pool", "l7policies"}
CREATABLE = NESTED | {"loadbalancer_id", "project_id"}
RESOURCE = "Listener"


class Listeners:
    """The collection /lbaas/listeners."""

    def __init__(self, octavia: Octavia) -> None:
        self.octavia = octavia
        self.state = octavia.state

    @lbaas("GET", "/listeners")
    def index(self, ctx: Ctx) -> Response:
        return self.octavia.listing(ctx, "listeners", self.state.listeners, self.show)

    @lbaas("GET", "/listeners/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"listener": self.show(self._find(ctx))})

    @lbaas("POST", "/listeners")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("listener")
        checked(ctx, body, CREATABLE)
        self.octavia.require_member(ctx)
        lb_id = ctx.text(body, "loadbalancer_id", required=True)
        lb = self.octavia.find(ctx, self.state.lbs, lb_id, "Load Balancer")
        self.octavia.check_quota(lb["project_id"], "listener", self.state.listeners, 1, RESOURCE)
        pool_id = ctx.text(body, "default_pool_id")
        if pool_id is not None:
            self._check_pool(lb, pool_id, str(body.get("protocol")))
        self.octavia.lock(lb["id"])
        self._check_new(ctx, lb, body)
        self.octavia.refuse(lb["provider"], providers.refuse_listener(lb["provider"], body))
        row = self.make(ctx, lb, body, pool_id)
        self.state.begin_change(lb, [row])
        return answer({"listener": self.show(row)}, 201)

    @lbaas("PUT", "/listeners/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.octavia.require_member(ctx)
        body = ctx.body("listener")
        checked(ctx, body, WRITABLE)
        changes = self._checked(ctx, body)
        if body.get("default_pool_id"):
            lb_of = self.state.lbs.get(row["_lb"])
            if lb_of is not None:
                self._check_pool(lb_of, str(body["default_pool_id"]), row["protocol"])
        lb = self.octavia.lock(row["_lb"])
        self.octavia.refuse(lb["provider"], providers.refuse_listener(lb["provider"], changes))
        self.state.listeners.change(row, **changes)
        self.state.begin_change(lb, [row])
        return answer({"listener": self.show(row)})

    @lbaas("DELETE", "/listeners/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.octavia.require_member(ctx)
        lb = self.octavia.lock(row["_lb"])
        self.state.move(row, DELETING)
        self.state.begin_change(lb, [row])
        return nothing()

    @lbaas("GET", "/listeners/{id}/stats")
    def stats(self, ctx: Ctx) -> Response:
        self._find(ctx)
        keys = ("bytes_in", "bytes_out", "active_connections", "total_connections", "request_errors")
        return answer({"stats": dict.fromkeys(keys, 0)})

    # ------------------------------------------------------------- pieces

    def make(self, ctx: Ctx, lb: Row, body: JsonObject, pool_id: str | None) -> Row:
        """Store a listener in PENDING_CREATE; 400 or 409 when the definition is refused."""
        if "loadbalancer_id" not in body:
            checked(ctx, body, NESTED)
            self._check_new(ctx, lb, body)
        made = self._checked(ctx, body)
        values: Row = {
            "name": "", "description": "", "admin_state_up": True, "connection_limit": -1, "insert_headers": {},
            "allowed_cidrs": None, "tags": [], **TIMEOUTS, "default_tls_container_ref": None,
            "sni_container_refs": [], "client_ca_tls_container_ref": None, "client_authentication": "NONE",
            "client_crl_container_ref": None, "tls_ciphers": None, "tls_versions": None, "alpn_protocols": None,
            "hsts_max_age": None, "hsts_include_subdomains": False, "hsts_preload": False, "l7policies": [],
            **made, "default_pool_id": pool_id, "protocol": body["protocol"],
            "protocol_port": ctx.integer(body, "protocol_port", low=1, high=65535),
        }  # fmt: skip
        return self.state.new_row("listener", lb["project_id"], lb["id"], **values)

    def show(self, row: Row) -> JsonObject:
        """Return the listener as replies show it."""
        made = self.octavia.shown(row)
        made["loadbalancers"] = [{"id": row["_lb"]}]
        return made

    def _find(self, ctx: Ctx) -> Row:
        return self.octavia.find(ctx, self.state.listeners, ctx.params["id"], RESOURCE)

    def _check_new(self, ctx: Ctx, lb: Row, body: JsonObject) -> None:
        protocol = ctx.text(body, "protocol", required=True)
        if protocol not in PROTOCOLS:
            raise self.octavia.invalid_field(
                "protocol", protocol, f"Value should be one of: {', '.join(PROTOCOLS)}"
            )
        port = ctx.integer(body, "protocol_port", required=True, low=1, high=65535)
        for other in self.state.listeners.where("_lb", lb["id"]):
            if other["protocol_port"] == port and _transport(other["protocol"]) == _transport(protocol):
                raise self.octavia.error(
                    409,
                    "Another Listener on this Load Balancer is already using protocol "
                    f"{protocol} and protocol_port {port}",
                )

    def _checked(self, ctx: Ctx, body: JsonObject) -> JsonObject:
        """Return the fields of a request that are stored as they are; null means the default."""
        made = {key: body[key] for key in WRITABLE if key in body and body[key] is not None}
        for key, default in TIMEOUTS.items():
            if key in body:
                made[key] = ctx.integer(body, key, default, low=0, high=LONGEST)
        if "connection_limit" in body:
            made["connection_limit"] = ctx.integer(body, "connection_limit", -1, low=-1)
        if "allowed_cidrs" in body:
            cidrs = ctx.texts(body, "allowed_cidrs")
            for cidr in cidrs:
                try:
                    ip_network(cidr, strict=False)
                except ValueError:
                    raise self.octavia.invalid_field(
                        "allowed_cidrs", cidr, "Value should be IPv4 or IPv6 CIDR format"
                    ) from None
            made["allowed_cidrs"] = cidrs or None
        if "default_pool_id" in body:
            made["default_pool_id"] = body["default_pool_id"]
        for key in ("name", "description"):
            if key in body:
                made[key] = ctx.text(body, key, "") or ""
        return made

    def _check_pool(self, lb: Row, pool_id: str, protocol: str) -> None:
        pool = self.state.pools.get(pool_id)
        if pool is None or pool["_lb"] != lb["id"]:
            raise self.octavia.gone("Pool", pool_id)
        self.check_protocols(protocol, pool["protocol"])

    def check_protocols(self, listener: str, pool: str) -> None:
        """Refuse (400) a pool protocol that the listener's protocol does not allow."""
        if pool not in POOL_PROTOCOLS.get(listener, ()):
            raise self.octavia.invalid(
                f"The pool protocol '{pool}' is invalid while the listener protocol is '{listener}'."
            )


def _transport(protocol: str | None) -> str | None:
    return protocol if protocol in ("UDP", "SCTP") else "TCP"
