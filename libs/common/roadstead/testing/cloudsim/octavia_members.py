"""Members of a pool, one by one or replaced as a set."""

from __future__ import annotations

from ipaddress import ip_address
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

WRITABLE = {"name", "admin_state_up", "weight", "backup", "monitor_address", "monitor_port", "tags"}
CREATABLE = WRITABLE | {"address", "protocol_port", "subnet_id", "project_id", "request_sriov"}
RESOURCE = "Member"


class Members:
    """The collection /lbaas/pools/{pool}/members."""

    def __init__(self, octavia: Octavia) -> None:
        self.octavia = octavia
        self.state = octavia.state

    @lbaas("GET", "/pools/{pool}/members")
    def index(self, ctx: Ctx) -> Response:
        pool = self._pool(ctx)
        return self.octavia.listing(
            ctx, "members", self.state.members.where("_pool", pool["id"]), self.octavia.shown
        )

    @lbaas("GET", "/pools/{pool}/members/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"member": self.octavia.shown(self._find(ctx, self._pool(ctx)))})

    @lbaas("POST", "/pools/{pool}/members")
    def create(self, ctx: Ctx) -> Response:
        pool = self._pool(ctx)
        self.octavia.require_member(ctx)
        body = ctx.body("member")
        self.octavia.check_quota(pool["project_id"], "member", self.state.members, 1, RESOURCE)
        lb = self._lock(pool)
        key = self._check(ctx, body)
        if key in self._by_key(pool):
            raise self.octavia.error(
                409, f"Another member on this pool is already using ip {key[0]} on protocol_port {key[1]}"
            )
        self._refuse(lb, body)
        row = self.make(ctx, lb, pool, body)
        self._begin(lb, pool, [row])
        return answer({"member": self.octavia.shown(row)}, 201)

    @lbaas("PUT", "/pools/{pool}/members/{id}")
    def update(self, ctx: Ctx) -> Response:
        pool = self._pool(ctx)
        row = self._find(ctx, pool)
        self.octavia.require_member(ctx)
        body = ctx.body("member")
        checked(ctx, body, WRITABLE)
        lb = self._lock(pool)
        self._refuse(lb, {**body, "subnet_id": row["subnet_id"] or "known"})
        self.state.members.change(row, **self._values(ctx, body))
        self._begin(lb, pool, [row])
        return answer({"member": self.octavia.shown(row)})

    @lbaas("DELETE", "/pools/{pool}/members/{id}")
    def delete(self, ctx: Ctx) -> Response:
        pool = self._pool(ctx)
        row = self._find(ctx, pool)
        self.octavia.require_member(ctx)
        lb = self._lock(pool)
        self.state.move(row, DELETING)
        self._begin(lb, pool, [row])
        return nothing()

    @lbaas("PUT", "/pools/{pool}/members")
    def replace(self, ctx: Ctx) -> Response:
        pool = self._pool(ctx)
        self.octavia.require_member(ctx)
        wanted = ctx.json()
        if not isinstance(wanted, dict) or not isinstance(wanted.get("members"), list):
            raise self.octavia.missing_field("members")
        bodies = ctx.objects(wanted, "members")
        additive = bool(ctx.q_flag("additive_only", False))
        lb = self._lock(pool)
        have = self._by_key(pool)
        keyed = [(self._check(ctx, body), body) for body in bodies]
        seen: set[tuple[str, int]] = set()
        for key, body in keyed:
            if key in seen:
                raise self.octavia.invalid("Member must be updated only once in the same request.")
            seen.add(key)
            self._refuse(lb, body, batch=True)
        gone = [] if additive else [row for key, row in have.items() if key not in seen]
        fresh = [body for key, body in keyed if key not in have]
        if not (keyed or gone):
            return nothing(202)
        if len(fresh) > len(gone):
            more = len(fresh) - len(gone)
            self.octavia.check_quota(pool["project_id"], "member", self.state.members, more, RESOURCE)
        touched = [self.make(ctx, lb, pool, body) for body in fresh]
        for key, body in keyed:
            if key in have:
                self.state.members.change(have[key], **self._values(ctx, body))
                touched.append(have[key])
        for row in gone:
            self.state.move(row, DELETING)
        self._begin(lb, pool, [*touched, *gone])
        return nothing(202)

    # ------------------------------------------------------------- pieces

    def make(self, ctx: Ctx, lb: Row, pool: Row, body: JsonObject) -> Row:
        """Store a member in PENDING_CREATE."""
        address, port = self._check(ctx, body)
        values: Row = {
            "name": "", "admin_state_up": True, "weight": 1, "backup": False, "monitor_address": None,
            "monitor_port": None, "tags": [], "vnic_type": "normal", **self._values(ctx, body),
            "address": address, "protocol_port": port, "subnet_id": body.get("subnet_id"), "_pool": pool["id"],
        }  # fmt: skip
        return self.state.new_row("member", lb["project_id"], lb["id"], **values)

    def _values(self, ctx: Ctx, body: JsonObject) -> JsonObject:
        made = {key: body[key] for key in WRITABLE if body.get(key) is not None}
        if "weight" in made:
            made["weight"] = ctx.integer(body, "weight", 1, low=0, high=256)
        return made

    def _check(self, ctx: Ctx, body: JsonObject) -> tuple[str, int]:
        """Return (address, port) of a member request; 400 when they or the subnet are wrong."""
        checked(ctx, body, CREATABLE)
        text = ctx.text(body, "address", required=True) or ""
        try:
            address = str(ip_address(text))
        except ValueError:
            raise self.octavia.invalid_field("address", text, "Value should be IPv4 or IPv6 format") from None
        port = ctx.integer(body, "protocol_port", required=True, low=1, high=65535) or 0
        subnet_id = ctx.text(body, "subnet_id")
        if subnet_id is not None:
            neutron = self.octavia.cloud.neutron
            subnet = neutron.subnet(subnet_id)
            if subnet is None or not neutron.visible_subnet(ctx, subnet):
                raise self.octavia.bad_request(f"Subnet {subnet_id} not found.")
        return address, port

    def _by_key(self, pool: Row) -> dict[tuple[str, int], Row]:
        return {
            (row["address"], row["protocol_port"]): row
            for row in self.state.members.where("_pool", pool["id"])
        }

    def _refuse(self, lb: Row, body: JsonObject, batch: bool = False) -> None:
        subnet = self.octavia.cloud.neutron.subnet(lb["vip_subnet_id"])
        cidr = subnet["cidr"] if subnet else None
        self.octavia.refuse(lb["provider"], providers.refuse_member(lb["provider"], body, cidr, batch))

    def _pool(self, ctx: Ctx) -> Row:
        return self.octavia.find(ctx, self.state.pools, ctx.params["pool"], "Pool")

    def _find(self, ctx: Ctx, pool: Row) -> Row:
        row = self.octavia.find(ctx, self.state.members, ctx.params["id"], RESOURCE)
        if row["_pool"] != pool["id"]:
            raise self.octavia.gone(RESOURCE, ctx.params["id"])
        return row

    def _lock(self, pool: Row) -> Row:
        lb = self.octavia.lock(pool["_lb"])
        if pool["provisioning_status"] != ACTIVE:
            raise self.octavia.immutable("Pool", pool["id"])
        return lb

    def _begin(self, lb: Row, pool: Row, rows: list[Row]) -> None:
        self.state.begin_change(lb, [*rows, pool, *self.octavia.pools_part.listeners_of(pool)])
