"""Nova's quotas: reading, setting, and the 403 of what goes beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, answer, nothing, route
from .policy import NOVA_QUOTA_UPDATE
from .wire import Response

if TYPE_CHECKING:
    from .nova import Nova

# Before 2.57 (2.36 for the network ones) the set had keys that later versions refuse.
_OLD = {
    "fixed_ips": -1, "floating_ips": -1, "security_groups": -1, "security_group_rules": -1, "injected_files": 5,
    "injected_file_content_bytes": 10240, "injected_file_path_bytes": 255,
}  # fmt: skip
_OLD_SINCE = (2, 57)


class Quotas:
    """Routes of /os-quota-sets and /limits, and the checks other parts make."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud
        self.limits: dict[str, dict[str, int]] = {}

    def limit(self, project_id: str, key: str) -> int:
        """The project's limit; -1 is none."""
        return self.limits.get(project_id, {}).get(key, self.cloud.settings.quota_compute[key])

    def used(self, project_id: str, key: str) -> int:
        """What the project's servers and groups take of a quota; 0 for limits on a single object."""
        if key == "server_groups":
            return sum(1 for g in self.nova.groups.values() if g["project_id"] == project_id)
        servers = [s for s in self.nova.servers.values() if s.project_id == project_id]
        if key == "instances":
            return len(servers)
        field = {"cores": "vcpus", "ram": "ram"}.get(key)
        return sum(s.flavor[field] for s in servers) if field else 0

    # --------------------------------------------------------------- checks

    def check_boot(self, project_id: str, flavor: JsonObject) -> None:
        """403 when one more server of that flavor is beyond instances, cores or RAM."""
        asked = {"instances": 1, "cores": flavor["vcpus"], "ram": flavor["ram"]}
        over = [
            key
            for key, amount in asked.items()
            if 0 <= self.limit(project_id, key) < self.used(project_id, key) + amount
        ]
        if over:
            first = over[0]
            raise self.nova.error(
                403,
                f"Quota exceeded for {', '.join(over)}: Requested {asked[first]}, but already used "
                f"{self.used(project_id, first)} of {self.limit(project_id, first)} {first}",
            )

    def check_metadata(self, project_id: str, count: int) -> None:
        limit = self.limit(project_id, "metadata_items")
        if 0 <= limit < count:
            raise self.nova.error(403, f"Maximum number of metadata items exceeds {limit}")

    def check_keypairs(self, project_id: str, user_id: str) -> None:
        limit = self.limit(project_id, "key_pairs")
        if 0 <= limit <= sum(1 for user, _ in self.nova.keypairs if user == user_id):
            raise self.nova.error(403, "Quota exceeded, too many key pairs.")

    def check_groups(self, project_id: str) -> None:
        if 0 <= self.limit(project_id, "server_groups") <= self.used(project_id, "server_groups"):
            raise self.nova.error(403, "Quota exceeded, too many server groups.")

    def check_group_members(self, project_id: str, count: int) -> None:
        if 0 <= self.limit(project_id, "server_group_members") <= count:
            raise self.nova.error(403, "Quota exceeded, too many servers in group")

    # --------------------------------------------------------------- routes

    def _readable(self, ctx: Ctx) -> str:
        project_id = ctx.params["project"]
        ctx.require(ctx.owns(project_id), "os_compute_api:os-quota-sets:show")
        return project_id

    def _set(self, ctx: Ctx, project_id: str) -> JsonObject:
        found = {key: self.limit(project_id, key) for key in self.cloud.settings.quota_compute}
        return found if ctx.version >= _OLD_SINCE else _OLD | found

    @route("GET", "/v2.1/os-quota-sets/{project}")
    def show(self, ctx: Ctx) -> Response:
        project_id = self._readable(ctx)
        return answer({"quota_set": self._set(ctx, project_id) | {"id": project_id}})

    @route("GET", "/v2.1/os-quota-sets/{project}/detail")
    def detail(self, ctx: Ctx) -> Response:
        project_id = self._readable(ctx)
        rows = {
            key: {"limit": limit, "in_use": 0 if key in _OLD else self.used(project_id, key), "reserved": 0}
            for key, limit in self._set(ctx, project_id).items()
        }
        return answer({"quota_set": rows | {"id": project_id}})

    @route("GET", "/v2.1/os-quota-sets/{project}/defaults")
    def defaults(self, ctx: Ctx) -> Response:
        found = dict(self.cloud.settings.quota_compute)
        body = found if ctx.version >= _OLD_SINCE else _OLD | found
        return answer({"quota_set": body | {"id": ctx.params["project"]}})

    @route("PUT", "/v2.1/os-quota-sets/{project}")
    def update(self, ctx: Ctx) -> Response:
        """400 for a limit below the use unless `force`; unknown keys 400."""
        project_id = ctx.params["project"]
        allowed = ctx.is_admin or (ctx.may(NOVA_QUOTA_UPDATE) and ctx.project_id == project_id)
        ctx.require(allowed, NOVA_QUOTA_UPDATE)
        body = ctx.body("quota_set")
        known = set(self.cloud.settings.quota_compute) | (set() if ctx.version >= _OLD_SINCE else set(_OLD))
        ctx.only(body, known | {"force", "tenant_id", "id"})
        force = ctx.flag(body, "force")
        values: dict[str, int] = {}
        for key in (k for k in body if k in self.cloud.settings.quota_compute):
            value = ctx.integer(body, key, required=True, low=-1)
            used = self.used(project_id, key)
            if value is not None and 0 <= value < used and not force:
                raise self.nova.bad_request(
                    f"Quota limit {value} for {key} must be greater than or equal to already used and reserved {used}."
                )
            if value is not None:
                values[key] = value
        self.limits.setdefault(project_id, {}).update(values)
        return answer({"quota_set": self._set(ctx, project_id)})

    @route("DELETE", "/v2.1/os-quota-sets/{project}")
    def delete(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-quota-sets:delete")
        self.limits.pop(ctx.params["project"], None)
        return nothing(202)

    @route("GET", "/v2.1/limits")
    def show_limits(self, ctx: Ctx) -> Response:
        project_id = ctx.project_id
        absolute = {
            "maxTotalInstances": self.limit(project_id, "instances"),
            "maxTotalCores": self.limit(project_id, "cores"),
            "maxTotalRAMSize": self.limit(project_id, "ram"),
            "maxTotalKeypairs": self.limit(project_id, "key_pairs"),
            "maxServerMeta": self.limit(project_id, "metadata_items"),
            "maxServerGroups": self.limit(project_id, "server_groups"),
            "maxServerGroupMembers": self.limit(project_id, "server_group_members"),
            "totalInstancesUsed": self.used(project_id, "instances"),
            "totalCoresUsed": self.used(project_id, "cores"),
            "totalRAMUsed": self.used(project_id, "ram"),
            "totalServerGroupsUsed": self.used(project_id, "server_groups"),
        }
        return answer({"limits": {"rate": [], "absolute": absolute}})
