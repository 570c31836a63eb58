"""QoS policies: what a port or VIP may name. They shape no traffic, and have no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, answer, nothing, route
from .ids import seconds_z
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

EXTENSION = "qos"
CREATABLE = {"name", "description", "shared", "is_default", "project_id", "tenant_id"}
NOT_FOUND = ("QosPolicyNotFound", "QoS policy {} could not be found.")


class QosPolicies:
    """The collection /v2.0/qos/policies; nothing of it is there where the setting `qos_policies` is off."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.table = neutron.state.qos_policies

    @route("GET", "/v2.0/qos/policies")
    def index(self, ctx: Ctx) -> Response:
        self._require_extension()
        return self.neutron.listing(ctx, "policies", self.table, self.show, self._visible)

    @route("GET", "/v2.0/qos/policies/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"policy": self.show(ctx, self._find(ctx))})

    @route("POST", "/v2.0/qos/policies")
    def create(self, ctx: Ctx) -> Response:
        self._require_extension()
        body = ctx.body("policy")
        checked(ctx, body, CREATABLE)
        ctx.require(ctx.is_admin, "create_policy")
        now = seconds_z(ctx.now)
        project = self.neutron.project_for(ctx, body, "create_policy")
        row = self.table.add(
            {
                "id": self.neutron.cloud.ids.uuid(), "name": ctx.text(body, "name", "") or "",
                "description": ctx.text(body, "description", "") or "", "rules": [], "tags": [],
                "shared": ctx.flag(body, "shared", False), "is_default": ctx.flag(body, "is_default", False),
                "project_id": project, "tenant_id": project, "revision_number": 0, "created_at": now,
                "updated_at": now,
            }
        )  # fmt: skip
        return answer({"policy": self.show(ctx, row)}, 201)

    @route("DELETE", "/v2.0/qos/policies/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        ctx.require(ctx.is_admin, "delete_policy")
        self.table.remove(row["id"])
        return nothing()

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the policy as clients see it."""
        return self.neutron.shown(ctx, row)

    def _find(self, ctx: Ctx) -> Row:
        self._require_extension()
        return self.neutron.find(ctx, self.table, ctx.params["id"], NOT_FOUND, self._visible)

    def _visible(self, ctx: Ctx, row: Row) -> bool:
        return ctx.owns(row["project_id"]) or row["shared"]

    def _require_extension(self) -> None:
        if not self.neutron.cloud.settings.qos_policies:
            raise self.neutron.error(404, "The resource could not be found.")
