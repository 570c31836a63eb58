"""Volume types, quotas, attachment rows, zones and services of the simulated Cinder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import policy
from .base import Ctx, JsonObject, answer, nothing, route
from .tables import Row
from .wire import Response

if TYPE_CHECKING:
    from .cinder import Cinder

PER_TYPE = ("volumes", "gigabytes", "snapshots")


class Misc:
    """Everything below /v3 that is not a volume."""

    def __init__(self, cinder: Cinder) -> None:
        self.cinder = cinder

    # --------------------------------------------------------------- types

    @route("GET", "/v3/{project}/types")
    @route("GET", "/v3/types")
    def list_types(self, ctx: Ctx) -> Response:
        rows = [self._show_type(row) for row in self.cinder.types if row["is_public"] or ctx.is_admin]
        return answer({"volume_types": rows})

    @route("GET", "/v3/{project}/types/{id}")
    @route("GET", "/v3/types/{id}")
    def get_type(self, ctx: Ctx) -> Response:
        return answer({"volume_type": self._show_type(self._find_type(ctx))})

    @route("GET", "/v3/{project}/types/{id}/extra_specs")
    @route("GET", "/v3/types/{id}/extra_specs")
    def get_extra_specs(self, ctx: Ctx) -> Response:
        return answer({"extra_specs": dict(self._find_type(ctx)["extra_specs"])})

    @route("POST", "/v3/{project}/types")
    @route("POST", "/v3/types")
    def create_type(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "volume_extension:type_create")
        body = ctx.body("volume_type")
        name = ctx.text(body, "name", required=True) or ""
        if self.cinder.types.where("name", name):
            raise self.cinder.conflict(f"Volume Type {name} already exists.")
        row = self.make_type(
            name,
            description=ctx.text(body, "description"),
            extra_specs=ctx.mapping(body, "extra_specs"),
            is_public=ctx.flag(body, "os-volume-type-access:is_public", True),
        )
        return answer({"volume_type": self._show_type(row)})

    @route("POST", "/v3/{project}/types/{id}/extra_specs")
    @route("POST", "/v3/types/{id}/extra_specs")
    def add_extra_specs(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "volume_extension:types_extra_specs:create")
        row = self._find_type(ctx)
        row["extra_specs"] = {**row["extra_specs"], **ctx.body("extra_specs")}
        return answer({"extra_specs": dict(row["extra_specs"])})

    @route("DELETE", "/v3/{project}/types/{id}")
    @route("DELETE", "/v3/types/{id}")
    def delete_type(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "volume_extension:type_delete")
        row = self._find_type(ctx)
        if any(volume["volume_type_id"] == row["id"] for volume in self.cinder.volumes):
            raise self.cinder.bad_request("Target volume type is still in use.")
        self.cinder.types.remove(row["id"])
        return nothing(202)

    def make_type(
        self,
        name: str,
        *,
        description: str | None = None,
        extra_specs: JsonObject | None = None,
        is_public: bool = True,
    ) -> Row:
        """Store a volume type."""
        row: Row = {
            "id": self.cinder.cloud.ids.uuid(), "name": name, "description": description,
            "extra_specs": dict(extra_specs or {}), "is_public": is_public, "qos_specs_id": None,
        }  # fmt: skip
        return self.cinder.types.add(row)

    def type_for(self, wanted: str | None) -> Row:
        """Return a type by id or name, the first one for None; 404 when there is none."""
        if wanted is None:
            first = next(iter(self.cinder.types), None)
            if first is None:
                raise self.cinder.not_found("Default volume type can not be found.")
            return first
        row = self.cinder.types.get(wanted)
        if row is None:
            row = next((r for r in self.cinder.types.where("name", wanted) if r["name"] == wanted), None)
        if row is None:
            raise self.cinder.not_found(f"Volume type with name {wanted} could not be found.")
        return row

    # -------------------------------------------------------------- quotas

    @route("GET", "/v3/{project}/os-quota-sets/{target}")
    @route("GET", "/v3/os-quota-sets/{target}")
    def get_quota(self, ctx: Ctx) -> Response:
        target = ctx.params["target"]
        ctx.require(ctx.owns(target), "volume_extension:quotas:show")
        body: JsonObject = dict(self._limits(target))
        if ctx.q_flag("usage", False):
            body = {
                key: {"limit": limit, "in_use": self._used(target, key), "reserved": 0, "allocated": 0}
                for key, limit in body.items()
            }
        return answer({"quota_set": {"id": target, **body}})

    @route("GET", "/v3/{project}/os-quota-sets/{target}/defaults")
    @route("GET", "/v3/os-quota-sets/{target}/defaults")
    def get_quota_defaults(self, ctx: Ctx) -> Response:
        target = ctx.params["target"]
        ctx.require(ctx.owns(target), "volume_extension:quotas:show")
        return answer({"quota_set": {"id": target, **self._defaults()}})

    @route("PUT", "/v3/{project}/os-quota-sets/{target}")
    @route("PUT", "/v3/os-quota-sets/{target}")
    def update_quota(self, ctx: Ctx) -> Response:
        target, rule = ctx.params["target"], policy.CINDER_QUOTA_UPDATE
        ctx.require(ctx.may(rule) and ctx.owns(target), rule)
        body = {k: v for k, v in ctx.body("quota_set").items() if k not in ("tenant_id", "force", "id")}
        known = self._defaults()
        bad = [key for key in body if key not in known]
        if bad:
            raise self.cinder.bad_request(f"Bad key(s) in quota set: {','.join(bad)}")
        limits = {key: ctx.integer(body, key, low=-1) for key in body}
        own = self.cinder.quotas.setdefault(target, {})
        own.update({key: limit for key, limit in limits.items() if limit is not None})
        return answer({"quota_set": self._limits(target)})

    @route("DELETE", "/v3/{project}/os-quota-sets/{target}")
    @route("DELETE", "/v3/os-quota-sets/{target}")
    def delete_quota(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "volume_extension:quotas:delete")
        self.cinder.quotas.pop(ctx.params["target"], None)
        return nothing(200)

    def limit(self, project_id: str, key: str) -> int:
        """Return a project's limit; -1 is none."""
        own = self.cinder.quotas.get(project_id, {})
        return own.get(key, self.cinder.cloud.settings.quota_volume.get(key, -1))

    # ---------------------------------------------------------------- rest

    @route("GET", "/v3/{project}/attachments")
    @route("GET", "/v3/attachments")
    @route("GET", "/v3/{project}/attachments/detail")
    @route("GET", "/v3/attachments/detail")
    def list_attachments(self, ctx: Ctx) -> Response:
        wanted = {key: ctx.q(key) for key in ("volume_id", "instance_id", "status", "id")}
        rows = [
            row for row in self._attachments(ctx)
            if all(value is None or row[{"instance_id": "instance"}.get(key, key)] == value
                   for key, value in wanted.items())
        ]  # fmt: skip
        return answer({"attachments": rows})

    @route("GET", "/v3/{project}/attachments/{id}")
    @route("GET", "/v3/attachments/{id}")
    def get_attachment(self, ctx: Ctx) -> Response:
        for row in self._attachments(ctx):
            if row["id"] == ctx.params["id"]:
                return answer({"attachment": row})
        raise self.cinder.not_found(
            f"Volume attachment could not be found with filter: attachment_id = {ctx.params['id']}."
        )

    @route("GET", "/v3/{project}/os-availability-zone")
    @route("GET", "/v3/os-availability-zone")
    def zones(self, ctx: Ctx) -> Response:
        return answer({"availabilityZoneInfo": [{"zoneName": "nova", "zoneState": {"available": True}}]})

    @route("GET", "/v3/{project}/os-services")
    @route("GET", "/v3/os-services")
    def services(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "volume_extension:services:index")
        rows = [
            {"binary": binary, "host": host, "zone": "nova", "status": "enabled", "state": "up",
             "updated_at": self.cinder.cloud.now.isoformat(), "disabled_reason": None}
            for binary, host in (("cinder-scheduler", "storage"), ("cinder-volume", "storage@lvm"))
        ]  # fmt: skip
        return answer({"services": rows})

    @route("GET", "/v3/{project}/extensions")
    @route("GET", "/v3/extensions")
    def extensions(self, ctx: Ctx) -> Response:
        return answer({"extensions": []})

    @route("GET", "/v3/{project}/limits")
    @route("GET", "/v3/limits")
    def limits(self, ctx: Ctx) -> Response:
        project = ctx.project_id
        absolute = {
            "maxTotalVolumes": self.limit(project, "volumes"),
            "maxTotalVolumeGigabytes": self.limit(project, "gigabytes"),
            "maxTotalSnapshots": self.limit(project, "snapshots"),
            "maxTotalBackups": self.limit(project, "backups"),
            "maxTotalBackupGigabytes": self.limit(project, "backup_gigabytes"),
            "totalVolumesUsed": self._used(project, "volumes"),
            "totalGigabytesUsed": self._used(project, "gigabytes"),
            "totalSnapshotsUsed": 0, "totalBackupsUsed": 0, "totalBackupGigabytesUsed": 0,
        }  # fmt: skip
        return answer({"limits": {"rate": [], "absolute": absolute}})

    # ------------------------------------------------------------- pieces

    def _find_type(self, ctx: Ctx) -> Row:
        wanted = ctx.params["id"]
        row = self.type_for(None) if wanted == "default" else self.cinder.types.get(wanted)
        if row is None or not (row["is_public"] or ctx.is_admin):
            raise self.cinder.not_found(f"Volume type {wanted} could not be found.")
        return row

    def _show_type(self, row: Row) -> JsonObject:
        return {
            **row,
            "extra_specs": dict(row["extra_specs"]),
            "os-volume-type-access:is_public": row["is_public"],
        }

    def _defaults(self) -> dict[str, int]:
        made = dict(self.cinder.cloud.settings.quota_volume)
        for row in self.cinder.types:
            for key in PER_TYPE:
                made.setdefault(f"{key}_{row['name']}", -1)
        return made

    def _limits(self, project_id: str) -> dict[str, int]:
        return {**self._defaults(), **self.cinder.quotas.get(project_id, {})}

    def _used(self, project_id: str, key: str) -> int:
        rows = self.cinder.volumes.where("project_id", project_id)
        what, _, kind = key.partition("_")
        if kind:
            rows = [row for row in rows if row["volume_type"] == kind]
        if what == "volumes":
            return len(rows)
        return sum(row["size"] for row in rows) if what == "gigabytes" else 0

    def _attachments(self, ctx: Ctx) -> list[JsonObject]:
        made = []
        for volume in self.cinder.volumes.where("project_id", ctx.project_id):
            made += [
                {"id": r["attachment_id"], "volume_id": volume["id"], "instance": r["server_id"],
                 "status": "attached" if "device" in r else "reserved",
                 "attached_at": r.get("attached_at"), "detached_at": None, "attach_mode": "rw"}
                for r in [*volume["attachments"], *volume["_reserved"]]
            ]  # fmt: skip
        return made
