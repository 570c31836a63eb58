"""Volumes: their states, lists, metadata and actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import Ctx, JsonObject, answer, nothing, route
from .ids import micros
from .orders import Obeyed
from .paging import linked, name_matches, sort_rows
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .cinder import Cinder

DELETABLE = ("available", "error", "error_restoring", "error_extending", "error_managing")
NOT_DELETABLE = (
    f"Invalid volume: Volume status must be {' or '.join(DELETABLE)} and must not be migrating, attached, "
    "belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume "
    "transfer."
)
CONTROL = {"limit", "marker", "offset", "sort", "sort_key", "sort_dir", "all_tenants", "with_count"}
FILTERS = {
    "name", "status", "metadata", "bootable", "migration_status", "availability_zone", "group_id", "size",
    "created_at", "updated_at", "project_id", "id", "volume_type_id", "consumes_quota", "display_name",
}  # fmt: skip
VALIDATED_SINCE = (3, 31)
CREATE_ATTEMPTS = 3


class Volumes:
    """The collection /v3/volumes."""

    def __init__(self, cinder: Cinder) -> None:
        self.cinder = cinder

    @route("GET", "/v3/{project}/volumes")
    @route("GET", "/v3/volumes")
    def index(self, ctx: Ctx) -> Response:
        def brief(row: Row) -> JsonObject:
            return {"id": row["id"], "name": row["name"], "links": self._links(ctx, row)}

        return answer(self._page(ctx, brief))

    @route("GET", "/v3/{project}/volumes/detail")
    @route("GET", "/v3/volumes/detail")
    def list_details(self, ctx: Ctx) -> Response:
        return answer(self._page(ctx, lambda row: self.show(ctx, row)))

    @route("GET", "/v3/{project}/volumes/summary")
    @route("GET", "/v3/volumes/summary")
    def summary(self, ctx: Ctx) -> Response:
        rows = self._visible(ctx)
        total = {"total_size": sum(r["size"] for r in rows), "total_count": len(rows)}
        return answer({"volume-summary": total})

    @route("POST", "/v3/{project}/volumes")
    @route("POST", "/v3/volumes")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("volume")
        checked(ctx, body, list(body))
        ctx.require(ctx.is_admin or ctx.has_role("member"), "volume:create")
        image_id = ctx.text(body, "imageRef")
        size = ctx.integer(body, "size", low=1)
        if size is None:
            raise self.cinder.bad_request(
                "Invalid input received: Invalid volume size provided for create request: None "
                "(size argument must be an integer (or string representation of an integer) and greater than zero)."
            )
        kind = self.cinder.misc_part.type_for(ctx.text(body, "volume_type"))
        if image_id is not None:
            image = self.cinder.cloud.glance.image_for_boot(image_id, ctx.project_id)
            if image is None:
                raise self.cinder.bad_request("Invalid image identifier or unable to access requested image.")
            self._check_image(image, size)
        self.check_quota(ctx.project_id, size)
        metadata = self._metadata(ctx.mapping(body, "metadata"))
        row = self.make(
            ctx.project_id, ctx.token.user_id, size, kind, name=ctx.text(body, "name"),
            description=ctx.text(body, "description"), metadata=metadata, image_id=image_id,
            multiattach=ctx.flag(body, "multiattach") or kind["extra_specs"].get("multiattach") == "<is> True",
            zone=ctx.text(body, "availability_zone", "nova") or "nova",
        )  # fmt: skip
        return answer({"volume": self.show(ctx, row)}, 202)

    @route("GET", "/v3/{project}/volumes/{id}")
    @route("GET", "/v3/volumes/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"volume": self.show(ctx, self.find(ctx))})

    @route("PUT", "/v3/{project}/volumes/{id}")
    @route("PUT", "/v3/volumes/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "volume:update")
        body = ctx.body("volume")
        checked(ctx, body, {"name", "description", "display_name", "display_description", "metadata"})
        changes: JsonObject = {key: body[key] for key in ("name", "description") if key in body}
        if "metadata" in body:
            changes["metadata"] = self._metadata(ctx.mapping(body, "metadata"))
        self.cinder.volumes.change(row, **changes)
        self._touch(row)
        return answer({"volume": self.show(ctx, row)})

    @route("DELETE", "/v3/{project}/volumes/{id}")
    @route("DELETE", "/v3/volumes/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "volume:delete")
        forced = bool(ctx.q_flag("force", False)) and ctx.is_admin
        if row["attachments"] or (row["status"] not in DELETABLE and not forced):
            raise self.cinder.bad_request(NOT_DELETABLE)
        self.begin_delete(row)
        return nothing(202)

    @route("GET", "/v3/{project}/volumes/{id}/metadata")
    @route("GET", "/v3/volumes/{id}/metadata")
    def get_metadata(self, ctx: Ctx) -> Response:
        return answer({"metadata": dict(self.find(ctx)["metadata"])})

    @route("POST", "/v3/{project}/volumes/{id}/metadata")
    @route("POST", "/v3/volumes/{id}/metadata")
    def add_metadata(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "volume:update_volume_metadata")
        row["metadata"] = {**row["metadata"], **self._metadata(ctx.body("metadata"))}
        return answer({"metadata": dict(row["metadata"])})

    @route("PUT", "/v3/{project}/volumes/{id}/metadata")
    @route("PUT", "/v3/volumes/{id}/metadata")
    def set_metadata(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "volume:update_volume_metadata")
        row["metadata"] = self._metadata(ctx.body("metadata"))
        return answer({"metadata": dict(row["metadata"])})

    @route("DELETE", "/v3/{project}/volumes/{id}/metadata/{key}")
    @route("DELETE", "/v3/volumes/{id}/metadata/{key}")
    def delete_metadata(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "volume:delete_volume_metadata")
        key = ctx.params["key"]
        if key not in row["metadata"]:
            raise self.cinder.not_found(f"Volume {row['id']} has no metadata with key {key}.")
        del row["metadata"][key]
        return nothing(200)

    @route("POST", "/v3/{project}/volumes/{id}/action")
    @route("POST", "/v3/volumes/{id}/action")
    def action(self, ctx: Ctx) -> Response:
        row = self.find(ctx)
        value = ctx.json()
        if not isinstance(value, dict) or len(value) != 1:
            raise self.cinder.bad_request("There is no such action: None")
        ((name, detail),) = value.items()
        arguments: JsonObject = detail if isinstance(detail, dict) else {}
        if name == "os-extend":
            return self._extend(ctx, row, arguments)
        if name == "os-set_bootable":
            ctx.require(
                ctx.is_admin or ctx.has_role("member"), "volume_extension:volume_actions:set_bootable"
            )
            row["bootable"] = "true" if ctx.flag(arguments, "bootable") else "false"
            return nothing(200)
        if name in ("os-reset_status", "os-force_delete"):
            rule = {"os-reset_status": "reset_status", "os-force_delete": "force_delete"}[name]
            ctx.require(ctx.is_admin, f"volume_extension:volume_admin_actions:{rule}")
            if name == "os-reset_status":
                self.set_status(row, ctx.text(arguments, "status", row["status"]) or row["status"])
            else:
                self.begin_delete(row)
            return nothing(202)
        raise self.cinder.bad_request(f"There is no such action: {name}")

    # -------------------------------------------------------------- effects

    def make(
        self,
        project_id: str,
        user_id: str,
        size: int,
        kind: Row,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: JsonObject | None = None,
        image_id: str | None = None,
        multiattach: bool = False,
        zone: str = "nova",
    ) -> Row:
        """Store a volume in `creating`; it turns available, or error by the outcome volume_create."""
        cloud = self.cinder.cloud
        row: Row = {
            "id": cloud.ids.uuid(), "name": name, "description": description, "size": size,
            "status": "creating", "availability_zone": zone, "bootable": "true" if image_id else "false",
            "encrypted": False, "multiattach": multiattach, "metadata": metadata or {}, "attachments": [],
            "snapshot_id": None, "source_volid": None, "consistencygroup_id": None, "group_id": None,
            "replication_status": None, "user_id": user_id, "volume_type": kind["name"],
            "volume_type_id": kind["id"], "shared_targets": False, "consumes_quota": True,
            "created_at": micros(cloud.now), "updated_at": None, "project_id": project_id, "_reserved": [],
        }  # fmt: skip
        if image_id is not None:
            row["volume_image_metadata"] = {"image_id": image_id}
        self.cinder.volumes.add(row)
        volume_id = row["id"]

        # Cinder's scheduler tries a create on the one backend three times.
        orders = [self._obey(row, "create")]
        while orders[-1].reason is not None and len(orders) < CREATE_ATTEMPTS:
            orders.append(self._obey(row, "create"))
        refused = orders[-1].reason is not None

        def finish() -> None:
            found = self.cinder.volumes.get(volume_id)
            if found is not None and found["status"] == "creating":
                failed = cloud.outcome("volume_create", found["name"] or "") is not None or refused
                self.set_status(found, "error" if failed else "available")

        cloud.later(cloud.settings.durations.volume_create + sum(o.seconds for o in orders), finish)
        return row

    def _obey(self, row: Row, verb: str) -> Obeyed:
        """The order that the volume's metadata or its type's extra specs hold for this attempt."""
        kind = self.cinder.types.get(row["volume_type_id"])
        places = (row["metadata"], kind["extra_specs"] if kind is not None else {})
        return self.cinder.cloud.orders.obey(row["id"], (verb,), places)

    def begin_delete(self, row: Row) -> None:
        """Put a volume into `deleting`; it vanishes, or turns error_deleting by the outcome volume_delete."""
        cloud, volume_id = self.cinder.cloud, row["id"]
        self.set_status(row, "deleting")
        order = self._obey(row, "delete")

        def finish() -> None:
            found = self.cinder.volumes.get(volume_id)
            if found is None or found["status"] != "deleting":
                return
            if cloud.outcome("volume_delete", found["name"] or "") or order.reason is not None:
                self.set_status(found, "error_deleting")
            else:
                self.cinder.volumes.remove(volume_id)

        cloud.later(cloud.settings.durations.volume_delete + order.seconds, finish)

    def set_status(self, row: Row, status: str) -> None:
        """Write the status and note the time."""
        row["status"] = status
        self._touch(row)

    def check_quota(self, project_id: str, size: int, count: int = 1) -> None:
        """Refuse (413) a volume beyond the limits of number or gigabytes; -1 is no limit."""
        misc = self.cinder.misc_part
        rows = self.cinder.volumes.where("project_id", project_id)
        allowed = misc.limit(project_id, "volumes")
        if 0 <= allowed < len(rows) + count:
            raise self.cinder.over_quota(
                f"VolumeLimitExceeded: Maximum number of volumes allowed ({allowed}) exceeded for quota 'volumes'."
            )
        each = misc.limit(project_id, "per_volume_gigabytes")
        if 0 <= each < size:
            raise self.cinder.over_quota(
                f"VolumeSizeExceedsLimit: Requested volume size {size}G is larger than maximum allowed limit {each}G."
            )
        used, room = sum(r["size"] for r in rows), misc.limit(project_id, "gigabytes")
        if size and 0 <= room < used + size:
            raise self.cinder.over_quota(
                "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. "
                f"Requested {size}G, quota is {room}G and {used}G has been consumed."
            )

    # ------------------------------------------------------------- pieces

    def find(self, ctx: Ctx) -> Row:
        """Return the volume of the path when the caller may see it, else 404."""
        row = self.cinder.volumes.get(ctx.params["id"])
        if row is None or not ctx.owns(row["project_id"]):
            raise self.cinder.not_found(f"Volume {ctx.params['id']} could not be found.")
        return row

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the volume as its reader sees it at the call's microversion."""
        made = {k: v for k, v in row.items() if k[0] != "_" and k not in ("project_id", "volume_type_id")}
        made["attachments"] = [
            dict(item) if ctx.is_admin else {**item, "host_name": None} for item in row["attachments"]
        ]
        made["metadata"] = dict(row["metadata"])
        made["links"] = self._links(ctx, row)
        made["os-vol-tenant-attr:tenant_id"] = row["project_id"]
        if ctx.is_admin:
            made["os-vol-host-attr:host"] = "storage@lvm#pool"
            made["os-vol-mig-status-attr:migstat"] = made["os-vol-mig-status-attr:name_id"] = None
        for key, since in (("group_id", 13), ("shared_targets", 48), ("consumes_quota", 65)):
            if ctx.version < (3, since):
                made.pop(key)
        if ctx.version >= (3, 63):
            made["volume_type_id"] = row["volume_type_id"]
        return made

    def _visible(self, ctx: Ctx) -> list[Row]:
        everyone = ctx.is_admin and bool(ctx.q_flag("all_tenants", False))
        if everyone:
            wanted = ctx.q("project_id")
            return [row for row in self.cinder.volumes if wanted in (None, row["project_id"])]
        return self.cinder.volumes.where("project_id", ctx.project_id)

    def _page(self, ctx: Ctx, show: Any) -> JsonObject:
        wanted = {k: v for k, v in ctx.request.query if k not in CONTROL}
        unknown = sorted(set(wanted) - FILTERS)
        if unknown and ctx.version >= VALIDATED_SINCE:
            raise self.cinder.bad_request(f"Invalid filters {', '.join(unknown)} are found in query options.")
        name = wanted.get("name")
        rows = self._visible(ctx)
        if name is not None and self.cinder.cloud.settings.name_filter == "real":
            named = self.cinder.volumes.where("name", name)
            if len(named) < len(rows):
                inside = {row["id"] for row in rows}
                rows = [row for row in named if row["id"] in inside]
        rows = [row for row in rows if name_matches(ctx, name, row["name"]) and _passes(row, wanted)]
        rows = sort_rows(ctx, rows[::-1], lambda row, key: row.get(key), "created_at", True)
        size = self.cinder.cloud.settings.pages.volume
        return linked(ctx, "volumes", rows, lambda row: row["id"], show, default=size, maximum=size)

    def _links(self, ctx: Ctx, row: Row) -> list[JsonObject]:
        base = self.cinder.cloud.settings.base_url.rstrip("/")
        path = f"{base}/volume/v3/{row['project_id']}/volumes/{row['id']}"
        return [
            {"rel": "self", "href": path},
            {"rel": "bookmark", "href": path.replace("/v3/", "/")},
        ]

    def _changeable(self, ctx: Ctx, rule: str) -> Row:
        row = self.find(ctx)
        ctx.require(ctx.is_admin or ctx.has_role("member"), rule)
        return row

    def _extend(self, ctx: Ctx, row: Row, arguments: JsonObject) -> Response:
        ctx.require(ctx.is_admin or ctx.has_role("member"), "volume:extend")
        size = ctx.integer(arguments, "new_size", required=True, low=1) or 0
        allowed = ("available", "in-use") if ctx.version >= (3, 42) else ("available",)
        if row["status"] not in allowed:
            raise self.cinder.bad_request(
                f"Invalid volume: Volume {row['id']} status must be '{' or '.join(allowed)}' to extend, currently "
                f"{row['status']}."
            )
        if size <= row["size"]:
            raise self.cinder.bad_request(
                "Invalid input received: New size for extend must be greater than current size. "
                f"(current: {row['size']}, extended: {size})."
            )
        self.check_quota(row["project_id"], size - row["size"], 0)
        before, volume_id, cloud = row["status"], row["id"], self.cinder.cloud
        self.set_status(row, "extending")

        def finish() -> None:
            found = self.cinder.volumes.get(volume_id)
            if found is not None and found["status"] == "extending":
                found["size"] = size
                self.set_status(found, before)

        cloud.later(cloud.settings.durations.volume_extend, finish)
        return nothing(202)

    def _metadata(self, value: JsonObject) -> JsonObject:
        for key, text in value.items():
            if not key or len(key) > 255 or not isinstance(text, str) or len(text) > 255:
                raise self.cinder.bad_request(
                    f"Invalid input for field/attribute metadata. Value: {value}. {text!r} is not valid under "
                    "any of the given schemas"
                )
        return dict(value)

    def _check_image(self, image: Row, size: int) -> None:
        need = int(image.get("min_disk") or 0)
        if size < need:
            raise self.cinder.bad_request(
                f"Invalid input received: Volume size {size}GB cannot be smaller than the image minDisk size {need}GB."
            )

    def _touch(self, row: Row) -> None:
        row["updated_at"] = micros(self.cinder.cloud.now)


def _passes(row: Row, wanted: dict[str, str]) -> bool:
    for key in ("status", "bootable", "availability_zone", "id", "volume_type_id"):
        if key in wanted and str(row.get(key)).lower() != wanted[key].lower():
            return False
    return True
