"""The simulated Octavia: error shape, access, lists, providers and quotas; the objects are in its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import octavia_providers as providers
from .base import ApiError, Ctx, JsonObject, Service, answer, nothing, route
from .octavia_lbs import LoadBalancers
from .octavia_listeners import Listeners
from .octavia_members import Members
from .octavia_monitors import Monitors
from .octavia_pools import Pools
from .octavia_routes import lbaas
from .octavia_state import ACTIVE, LoadBalancerState
from .paging import linked, name_matches, sort_rows
from .tables import Row, Table
from .wire import Response

if TYPE_CHECKING:
    from .cloud import Cloud

CONTROL = {"fields", "limit", "marker", "sort", "sort_key", "sort_dir", "page_reverse"}
VERSIONS = 30
QUOTA_ALIASES = {"loadbalancer": "load_balancer", "healthmonitor": "health_monitor"}


class Octavia(Service):
    """Load balancers of the simulated cloud."""

    name = "load-balancer"
    prefix = "load-balancer"

    def __init__(self, cloud: Cloud) -> None:
        self.state = LoadBalancerState(cloud)
        super().__init__(cloud)
        self.listeners_part = Listeners(self)
        self.members_part = Members(self)
        self.monitors_part = Monitors(self)
        self.pools_part = Pools(self)
        self.lbs_part = LoadBalancers(self)
        for part in (
            self.lbs_part, self.listeners_part, self.pools_part, self.members_part, self.monitors_part,
        ):  # fmt: skip
            self.include(part)

    # -------------------------------------------------------------- errors

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        word = "Client" if status < 500 else "Server"
        return ApiError(status, {"faultcode": word, "faultstring": message, "debuginfo": None})

    def policy_error(self, rule: str) -> ApiError:
        return self.error(403, "Policy does not allow this request to be performed.")

    def invalid_field(self, key: str, value: Any, reason: str) -> ApiError:
        return self.bad_request(f"Invalid input for field/attribute {key}. Value: '{value}'. {reason}")

    def missing_field(self, key: str) -> ApiError:
        return self.bad_request(
            f"Invalid input for field/attribute {key}. Value: 'None'. Mandatory field missing."
        )

    def unknown_fields(self, names: Iterable[str]) -> ApiError:
        return self.bad_request(f"Unknown attribute for argument: {', '.join(names)}")

    def invalid(self, detail: str) -> ApiError:
        """The 400 of a failed validation."""
        return self.bad_request(f"Validation failure: {detail}")

    def gone(self, resource: str, row_id: str) -> ApiError:
        """The 404 of an object."""
        return self.error(404, f"{resource} {row_id} not found.")

    def immutable(self, resource: str, row_id: str) -> ApiError:
        """The 409 of a part whose load balancer (or pool) is not ACTIVE."""
        return self.error(409, f"{resource} {row_id} is immutable and cannot be updated.")

    def refuse(self, provider: str, reason: str | None) -> None:
        """Raise the 501 of a provider that gave a reason to refuse."""
        if reason is not None:
            raise self.error(501, f"Provider '{provider}' does not support a requested option: {reason}")

    # -------------------------------------------------------------- access

    def require_member(self, ctx: Ctx) -> None:
        """Refuse callers that may only read."""
        allowed = ctx.is_admin or ctx.has_role("member") or ctx.has_role("load-balancer_member")
        ctx.require(allowed, "os_load-balancer_api")

    def find(self, ctx: Ctx, table: Table, row_id: Any, resource: str) -> Row:
        """Return a row of the caller's project: 404 when it is not there, 403 when it is another's."""
        row = table.get(row_id)
        if row is None:
            raise self.gone(resource, str(row_id))
        ctx.require(ctx.owns(row["project_id"]), "os_load-balancer_api")
        return row

    def lock(self, lb_id: str) -> Row:
        """Return the load balancer of a part that is to change; 409 unless it is ACTIVE."""
        lb = self.state.lbs.get(lb_id)
        if lb is None or lb["provisioning_status"] != ACTIVE:
            raise self.immutable("Load Balancer", lb_id)
        return lb

    def listing(
        self, ctx: Ctx, plural: str, rows: Table | list[Row], show: Callable[[Row], JsonObject]
    ) -> Response:
        """Answer a list of the caller's project with filters, sorting and pages."""
        wanted = [(k, v) for k, v in ctx.request.query if k not in CONTROL]
        found = self._candidates(ctx, rows, wanted)
        shown = {row["id"]: show(row) for row in found}
        kept = [
            row for row in found if all(self._passes(ctx, row, shown[row["id"]], k, v) for k, v in wanted)
        ]
        kept = sort_rows(ctx, kept, lambda row, key: row.get(key), "created_at", False)
        fields = ctx.q_all("fields")

        def render(row: Row) -> JsonObject:
            made = shown[row["id"]]
            return {k: v for k, v in made.items() if k in fields} if fields else made

        size = self.cloud.settings.pages.load_balancer
        body = linked(ctx, plural, kept, lambda row: row["id"], render, default=size, maximum=size)
        body.setdefault(f"{plural}_links", [])
        return answer(body)

    def _candidates(self, ctx: Ctx, rows: Table | list[Row], wanted: list[tuple[str, str]]) -> list[Row]:
        if not isinstance(rows, Table):
            return [row for row in rows if ctx.owns(row["project_id"])]
        exact = {"loadbalancer_id": "_lb", "project_id": "project_id"}
        narrow = [(exact[k], v) for k, v in wanted if k in exact]
        if self.cloud.settings.name_filter == "real":
            narrow += [(k, v) for k, v in wanted if k == "name"]
        if not ctx.is_admin:
            narrow.append(("project_id", ctx.project_id))
        return [row for row in rows.narrowest(narrow) if ctx.owns(row["project_id"])]

    def _passes(self, ctx: Ctx, row: Row, shown: JsonObject, key: str, value: str) -> bool:
        if key == "name":
            return name_matches(ctx, value, row["name"])
        if key == "loadbalancer_id" and "_lb" in row:
            return bool(row["_lb"] == value)
        if key == "pool_id" and "_pool" in row:
            return bool(row["_pool"] == value)
        if key in ("tags", "tags-any"):
            asked, have = set(value.split(",")), set(row["tags"])
            return asked <= have if key == "tags" else bool(asked & have)
        if key not in shown:
            raise self.bad_request("One or more arguments are either duplicate or invalid")
        have = shown[key]
        if isinstance(have, bool):
            return value.lower() in (("true", "1") if have else ("false", "0"))
        return str(have).lower() == value.lower()

    def check_quota(self, project_id: str, key: str, table: Table, more: int, resource: str) -> None:
        """Refuse (403) objects beyond the project's limit; -1 is no limit."""
        limit = self._limits(project_id)[key]
        if 0 <= limit < len(table.where("project_id", project_id)) + more:
            raise self.error(403, f"Quota has been met for resources: {resource}")

    def shown(self, row: Row) -> JsonObject:
        """Return the row without its hidden keys."""
        return {key: value for key, value in row.items() if key[0] != "_"}

    # ------------------------------------------------- providers and quotas

    @lbaas("GET", "/providers")
    def list_providers(self, ctx: Ctx) -> Response:
        names = self.cloud.settings.lb_providers
        return answer({"providers": [{"name": n, "description": providers.description(n)} for n in names]})

    @lbaas("GET", "/flavors")
    def list_flavors(self, ctx: Ctx) -> Response:
        return answer({"flavors": [], "flavors_links": []})

    @lbaas("GET", "/l7policies")
    def list_policies(self, ctx: Ctx) -> Response:
        return answer({"l7policies": [], "l7policies_links": []})

    @lbaas("GET", "/quotas/defaults")
    def quota_defaults(self, ctx: Ctx) -> Response:
        return answer({"quota": _with_aliases(self.cloud.settings.quota_load_balancer)})

    @lbaas("GET", "/quotas/{project}")
    def get_quota(self, ctx: Ctx) -> Response:
        ctx.require(ctx.owns(ctx.params["project"]), "os_load-balancer_api:quota:get_one")
        return answer({"quota": _with_aliases(self._limits(ctx.params["project"]))})

    @lbaas("PUT", "/quotas/{project}")
    def update_quota(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_load-balancer_api:quota:put")
        body, known = ctx.body("quota"), self.cloud.settings.quota_load_balancer
        ctx.only(body, [*known, *QUOTA_ALIASES])
        own = self.state.quotas.setdefault(ctx.params["project"], {})
        for key in body:
            limit = ctx.integer(body, key, -1, low=-1)
            own[QUOTA_ALIASES.get(key, key)] = -1 if limit is None else limit
        return answer({"quota": _with_aliases(self._limits(ctx.params["project"]))}, 202)

    @lbaas("DELETE", "/quotas/{project}")
    def delete_quota(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_load-balancer_api:quota:delete")
        self.state.quotas.pop(ctx.params["project"], None)
        return nothing()

    def _limits(self, project_id: str) -> dict[str, int]:
        return {**self.cloud.settings.quota_load_balancer, **self.state.quotas.get(project_id, {})}

    # ---------------------------------------------------------------- rest

    def dump(self) -> dict[str, list[JsonObject]]:
        state = self.state
        tables = {
            "load_balancers": state.lbs, "listeners": state.listeners, "pools": state.pools,
            "members": state.members, "health_monitors": state.monitors,
        }  # fmt: skip
        return {
            kind: [{key: row[key] for key in ("id", "name", "project_id")} for row in table]
            for kind, table in tables.items()
        }

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        """`set` raw fields, `rename`, `delete` any object behind the client's back."""
        state = self.state
        for table in (state.lbs, state.listeners, state.pools, state.members, state.monitors):
            row = table.get(object_id)
            if row is None:
                continue
            if verb == "set":
                table.change(row, **values)
            elif verb == "rename":
                table.change(row, name=values["name"])
            elif verb != "delete":
                raise ValueError(f"load-balancer knows no foreign change {verb!r}; use set, rename or delete")
            elif table is state.lbs:
                for part in state.parts_of(object_id):
                    state.forget(part)
                table.remove(object_id)
            else:
                state.forget(row)
            return self.shown(row)
        raise KeyError(object_id)

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        base = f"{self.cloud.settings.base_url.rstrip('/')}/load-balancer/v2"
        rows = [
            {
                "id": f"v2.{minor}",
                "status": "CURRENT" if minor == VERSIONS else "SUPPORTED",
                "updated": "2026-01-01T00:00:00Z",
                "links": [{"href": base, "rel": "self"}],
            }
            for minor in range(VERSIONS + 1)
        ]
        return answer({"versions": rows})


def _with_aliases(limits: dict[str, int]) -> JsonObject:
    return {**limits, **{alias: limits[key] for alias, key in QUOTA_ALIASES.items()}}
