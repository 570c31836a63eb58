"""Neutron quotas: limits per project, use, and the rule that a limit may not fall below the use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import policy
from .base import Ctx, JsonObject, answer, nothing, route
from .tables import Table
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron


class Quotas:
    """The collection /v2.0/quotas."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/quotas")
    def index(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "get_quota")
        rows = [{"project_id": p, "tenant_id": p, **self._limits(p)} for p in sorted(self.state.quotas)]
        return answer({"quotas": rows})

    @route("GET", "/v2.0/quotas/{project}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"quota": self._limits(self._readable(ctx))})

    @route("GET", "/v2.0/quotas/{project}/default")
    @route("GET", "/v2.0/quotas/{project}/default.json")
    def get_default(self, ctx: Ctx) -> Response:
        self._readable(ctx)
        return answer({"quota": dict(self.neutron.cloud.settings.quota_network)})

    @route("GET", "/v2.0/quotas/{project}/details")
    @route("GET", "/v2.0/quotas/{project}/details.json")
    def get_details(self, ctx: Ctx) -> Response:
        project = self._readable(ctx)
        rows = {
            key: {"limit": limit, "used": self._used(project, key), "reserved": 0}
            for key, limit in self._limits(project).items()
        }
        return answer({"quota": rows})

    @route("PUT", "/v2.0/quotas/{project}")
    def update(self, ctx: Ctx) -> Response:
        project = ctx.params["project"]
        rule = policy.NEUTRON_QUOTA_UPDATE
        ctx.require(ctx.may(rule) and ctx.owns(project), rule)
        body = dict(ctx.body("quota"))
        force = ctx.flag(body, "force") or ctx.flag(body, "check_limit", True) is False
        for key in ("force", "check_limit", "tenant_id", "project_id"):
            body.pop(key, None)
        checked(ctx, body, self.neutron.cloud.settings.quota_network)
        limits = {key: ctx.integer(body, key, low=-1) for key in body}
        for key, limit in limits.items():
            used = self._used(project, key)
            if not force and limit is not None and 0 <= limit < used:
                raise self.neutron.error(
                    400,
                    f"Quota limit {limit} for {key} must be greater than or equal to already used and "
                    f"reserved {used}.",
                )
        own = self.state.quotas.setdefault(project, {})
        own.update({key: limit for key, limit in limits.items() if limit is not None})
        return answer({"quota": self._limits(project)})

    @route("DELETE", "/v2.0/quotas/{project}")
    def delete(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "delete_quota")
        self.state.quotas.pop(ctx.params["project"], None)
        return nothing()

    def _readable(self, ctx: Ctx) -> str:
        project = ctx.params["project"]
        ctx.require(ctx.owns(project), "get_quota")
        return project

    def _limits(self, project: str) -> JsonObject:
        return {key: self.neutron.limit(project, key) for key in self.neutron.cloud.settings.quota_network}

    def _used(self, project: str, resource: str) -> int:
        tables: dict[str, Table] = {
            "network": self.state.networks, "subnet": self.state.subnets, "port": self.state.ports,
            "router": self.state.routers, "floatingip": self.state.floating_ips,
            "security_group": self.state.groups, "security_group_rule": self.state.rules,
        }  # fmt: skip
        table = tables.get(resource)
        return len(table.where("project_id", project)) if table is not None else 0
