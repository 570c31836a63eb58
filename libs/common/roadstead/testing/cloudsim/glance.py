"""The simulated Glance: images, their visibility, properties, data, import and the snapshots of Nova.

Data of an import is never fetched: the import ends after `image_import`, well or (outcome
image_import) back in `queued` with the failed store named, as the real service leaves it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .base import TITLES, ApiError, Ctx, JsonObject, Service, answer, nothing, route
from .glance_rules import (
    BASE_FIELDS,
    CREATE_FIELDS,
    IMAGE_SEEDS,
    READ_ONLY,
    check_formats,
    check_property,
    parse_patch,
    refuse_uri,
)  # fmt: skip
from .ids import seconds_z
from .paging import glance_page, name_matches, sort_rows
from .policy import GLANCE_PUBLICIZE
from .seeds import admin_project_id
from .tables import Row, Table
from .wire import Response

if TYPE_CHECKING:
    from .cloud import Cloud

STORE = "local"
IMPORTED_SIZE = 1 << 20
CONTROL = {"limit", "marker", "sort", "sort_key", "sort_dir", "visibility", "tag", "name", "member_status"}
PATCH_TYPES = ("application/openstack-images-v2.1-json-patch", "application/openstack-images-v2.0-json-patch")


class Glance(Service):
    """Images of the simulated cloud."""

    name = "image"
    prefix = "image"

    def __init__(self, cloud: Cloud) -> None:
        self.images = Table("owner", "name", "visibility")
        self._made = 0
        super().__init__(cloud)

    def seed(self) -> None:
        owner = admin_project_id(self.cloud)
        for name, properties in IMAGE_SEEDS.items():
            row = self._make(owner, name, visibility="public", min_disk=1, properties=properties)
            self._fill(row, IMPORTED_SIZE, hashlib.md5(name.encode()).hexdigest())

    # -------------------------------------------------------------- errors

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        title = kind or TITLES.get(status, "Error")
        body = {"message": f"{message}<br /><br />\n\n\n", "code": f"{status} {title}", "title": title}
        return ApiError(status, body)

    def policy_error(self, rule: str) -> ApiError:
        return self.error(403, f"You are not authorized to complete {rule} action.")

    def no_image(self, image_id: str) -> ApiError:
        """The 404 of an image that is not there or not visible."""
        return self.error(404, f"No image found with ID {image_id}")

    # --------------------------------------------------------------- lists

    @route("GET", "/v2/images")
    def index(self, ctx: Ctx) -> Response:
        rows = [row for row in self._candidates(ctx) if self._passes(ctx, row)]
        rows = sort_rows(ctx, rows[::-1], lambda row, key: row.get(key), "created_at", True)
        return answer(glance_page(ctx, rows, lambda row: row["id"], self.show))

    def _candidates(self, ctx: Ctx) -> list[Row]:
        wanted = ctx.q("visibility")
        if wanted == "all":
            wanted = None
        if wanted is not None:
            rows = self.images.where("visibility", wanted)
            if wanted in ("public", "community"):
                return rows
            return [row for row in rows if ctx.owns(row["owner"])]
        if ctx.is_admin:
            return list(self.images)
        own = self.images.where("owner", ctx.project_id)
        foreign = [r for r in self.images.where("visibility", "public") if r["owner"] != ctx.project_id]
        return sorted([*own, *foreign], key=lambda row: row["_order"]) if foreign else own

    def _passes(self, ctx: Ctx, row: Row) -> bool:
        name = ctx.q("name")
        if name is not None and name.startswith("in:"):
            if row["name"] not in [part.strip('"') for part in name[3:].split(",")]:
                return False
        elif not name_matches(ctx, name, row["name"]):
            return False
        if not set(ctx.q_all("tag")) <= set(row["tags"]):
            return False
        if row["os_hidden"] and ctx.q("os_hidden") is None:
            return False
        for key, value in ctx.request.query:
            if key in CONTROL:
                continue
            if key in ("size_min", "size_max"):
                if not value.isdigit():
                    raise self.bad_request(f"Filter '{key}' contains invalid value '{value}', it is no size.")
                size = row["size"] or 0
                if (size < int(value)) if key == "size_min" else (size > int(value)):
                    return False
            elif not _equal(row.get(key, row["_properties"].get(key)), value):
                return False
        return True

    # ------------------------------------------------------------- one row

    @route("POST", "/v2/images")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.json()
        if not isinstance(body, dict):
            raise self.bad_request("Request body must be a JSON object.")
        ctx.require(ctx.is_admin or ctx.has_role("member"), "add_image")
        for key in body:
            if key in READ_ONLY:
                raise self.error(403, f"Attribute '{key}' is read-only.")
        visibility = ctx.text(body, "visibility", "shared") or "shared"
        self._check_visibility(ctx, visibility)
        problem = check_formats(body) or check_property(
            {key: value for key, value in body.items() if key not in CREATE_FIELDS}
        )
        if problem:
            raise self.bad_request(problem)
        image_id = ctx.text(body, "id")
        if image_id in self.images:
            raise self.conflict(f"Image ID {image_id} already exists!")
        owner = ctx.text(body, "owner", ctx.project_id) or ctx.project_id
        ctx.require(owner == ctx.project_id or ctx.is_admin, "add_image")
        row = self._make(
            owner, ctx.text(body, "name"), visibility=visibility, image_id=image_id,
            properties={key: value for key, value in body.items() if key not in CREATE_FIELDS},
            min_disk=ctx.integer(body, "min_disk", 0, low=0) or 0, min_ram=ctx.integer(body, "min_ram", 0, low=0) or 0,
            disk_format=ctx.text(body, "disk_format"), container_format=ctx.text(body, "container_format"),
            protected=ctx.flag(body, "protected"), os_hidden=ctx.flag(body, "os_hidden"), tags=ctx.texts(body, "tags"),
        )  # fmt: skip
        made = answer(self.show(row), 201)
        made.headers["Location"] = f"{self.cloud.settings.base_url}/image/v2/images/{row['id']}"
        made.headers["OpenStack-image-import-methods"] = "glance-direct,web-download"
        return made

    @route("GET", "/v2/images/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer(self.show(self._find(ctx)))

    @route("PATCH", "/v2/images/{id}")
    def patch(self, ctx: Ctx) -> Response:
        if ctx.request.headers.get("content-type", "").split(";")[0] not in PATCH_TYPES:
            raise self.error(415, "The content type of the request is not supported.")
        row = self._changeable(ctx, "modify_image")
        changes, problem = parse_patch(ctx.json(), row, row["_properties"])
        if problem is not None:
            raise self.error(problem[0], problem[1])
        if changes.get("visibility") not in (None, row["visibility"]):
            self._check_visibility(ctx, changes["visibility"])
        for key, value in changes.items():
            if key in BASE_FIELDS:
                self.images.change(row, **{key: value})
            elif value is None:
                row["_properties"].pop(key, None)
            else:
                row["_properties"][key] = value
        self._touch(row)
        return answer(self.show(row))

    @route("DELETE", "/v2/images/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self.images.get(ctx.params["id"])
        if row is None or not self._sees(ctx, row):
            raise self.error(404, f"Failed to find image {ctx.params['id']} to delete")
        self._require_owner(ctx, row, "delete_image")
        if row["protected"]:
            raise self.error(403, f"Image {row['id']} is protected and cannot be deleted.")
        if row["_held"]:
            raise self.conflict(
                f"Image {row['id']} could not be deleted because it is in use: The image cannot be deleted "
                "because it is in use through the backend store outside of Glance."
            )
        self.images.remove(row["id"])
        return nothing()

    @route("PUT", "/v2/images/{id}/file")
    def upload(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "upload_image")
        if row["status"] != "queued":
            raise self.conflict(f"Image status transition from {row['status']} to saving is not allowed")
        if row["disk_format"] is None or row["container_format"] is None:
            raise self.bad_request(
                "Properties disk_format, container_format must be set prior to saving data."
            )
        row["_data"] = ctx.request.body
        self._fill(row, len(ctx.request.body), hashlib.md5(ctx.request.body).hexdigest())
        return nothing()

    @route("GET", "/v2/images/{id}/file")
    def download(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        if row["status"] == "deactivated" and not ctx.is_admin:
            raise self.error(
                403, "The requested image has been deactivated. Image data download is forbidden."
            )
        if row["status"] != "active":
            return nothing()
        made = answer(row["_data"])
        made.headers["Content-Type"] = "application/octet-stream"
        return made

    @route("POST", "/v2/images/{id}/import")
    def start_import(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "modify_image")
        body = ctx.json()
        method = body.get("method") if isinstance(body, dict) else None
        if not isinstance(method, dict) or method.get("name") not in ("web-download", "glance-direct"):
            raise self.bad_request("Unknown import method name.")
        if row["status"] != "queued":
            raise self.conflict("Image needs to be in 'queued' state to use 'web-download' method")
        uri = str(method.get("uri", ""))
        if method["name"] == "web-download" and self.cloud.settings.image_import_filter and refuse_uri(uri):
            raise self.bad_request(f"URI for web-download does not pass filtering: {uri}")
        self._begin_import(row)
        return nothing(202)

    @route("POST", "/v2/images/{id}/actions/{verb}")
    def act(self, ctx: Ctx) -> Response:
        row, verb = self._find(ctx), ctx.params["verb"]
        if verb not in ("deactivate", "reactivate"):
            raise self.error(404, "The resource could not be found.")
        self._require_owner(ctx, row, verb)
        allowed = ("active", "deactivated")
        if row["status"] not in allowed:
            raise self.error(403, f"Not allowed to {verb} image in status '{row['status']}'")
        row["status"] = "deactivated" if verb == "deactivate" else "active"
        self._touch(row)
        return nothing()

    @route("PUT", "/v2/images/{id}/tags/{tag}")
    def add_tag(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "modify_image")
        row["tags"] = sorted({*row["tags"], ctx.params["tag"]})
        return nothing()

    @route("DELETE", "/v2/images/{id}/tags/{tag}")
    def remove_tag(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "modify_image")
        if ctx.params["tag"] not in row["tags"]:
            raise self.error(404, "The resource could not be found.")
        row["tags"] = [tag for tag in row["tags"] if tag != ctx.params["tag"]]
        return nothing()

    # -------------------------------------------------- for other services

    def image(self, image_id: str) -> Row | None:
        """Return the raw image whatever its visibility; custom properties under `_properties`."""
        return self.images.get(image_id)

    def image_for_boot(self, image_id: str, project_id: str) -> Row | None:
        """Return the raw image when a server of the project may use it."""
        row = self.images.get(image_id)
        if row is None or not (row["owner"] == project_id or row["visibility"] in ("public", "community")):
            return None
        return row

    def snapshot_create(
        self,
        name: str,
        project_id: str,
        user_id: str,
        properties: Mapping[str, Any],
        min_disk: int,
        base: Row | str | None = None,
    ) -> str:
        """Make the image of a server snapshot, status queued; the base image's properties come along."""
        origin = self.images.get(base) if isinstance(base, str) else base
        merged = {**(origin["_properties"] if origin else {}), **properties, "user_id": user_id}
        row = self._make(
            project_id, name, visibility="private", min_disk=min_disk, properties=merged,
            disk_format=(origin or {}).get("disk_format") or "raw",
            container_format=(origin or {}).get("container_format") or "bare",
        )  # fmt: skip
        return str(row["id"])

    def snapshot_finish(self, image_id: str, size: int, error: bool = False) -> None:
        """End a snapshot: the image is active, or gone on an error."""
        row = self.images.get(image_id)
        if row is None:
            return
        if error:
            self.images.remove(image_id)
        else:
            self._fill(row, size, hashlib.md5(image_id.encode()).hexdigest())

    # ------------------------------------------------------------- pieces

    def show(self, row: Row) -> JsonObject:
        """Return the image in its flat shape, custom properties among the others."""
        made = {key: value for key, value in row.items() if key[0] != "_"}
        made.update(row["_properties"])
        made["self"] = f"/v2/images/{row['id']}"
        made["file"] = f"/v2/images/{row['id']}/file"
        made["schema"] = "/v2/schemas/image"
        return made

    def _make(
        self,
        owner: str,
        name: str | None,
        *,
        visibility: str,
        properties: Mapping[str, Any],
        image_id: str | None = None,
        min_disk: int = 0,
        min_ram: int = 0,
        disk_format: str | None = "raw",
        container_format: str | None = "bare",
        protected: bool = False,
        os_hidden: bool = False,
        tags: Any = (),
    ) -> Row:
        now = seconds_z(self.cloud.now)
        row: Row = {
            "id": image_id or self.cloud.ids.uuid(), "name": name, "status": "queued", "visibility": visibility,
            "owner": owner, "protected": protected, "os_hidden": os_hidden, "min_disk": min_disk,
            "min_ram": min_ram, "disk_format": disk_format, "container_format": container_format, "size": None,
            "virtual_size": None, "checksum": None, "os_hash_algo": None, "os_hash_value": None,
            "tags": sorted(set(tags)), "created_at": now, "updated_at": now,
            "_properties": {k: v for k, v in properties.items() if v is not None}, "_data": b"", "_held": False,
            "_tried": False, "_order": self._made,
        }  # fmt: skip
        self._made += 1
        return self.images.add(row)

    def _fill(self, row: Row, size: int, checksum: str) -> None:
        row.update(
            status="active", size=size, checksum=checksum, os_hash_algo="sha512",
            os_hash_value=hashlib.sha512(checksum.encode()).hexdigest(),
            virtual_size=size if row["disk_format"] == "raw" else None,
        )  # fmt: skip
        self._touch(row)

    def _begin_import(self, row: Row) -> None:
        image_id, again = row["id"], row["_tried"]
        row["status"], row["_tried"] = "importing", True
        row["_properties"].update({"os_glance_importing_to_stores": STORE, "os_glance_failed_import": ""})
        self._touch(row)

        def finish() -> None:
            found = self.images.get(image_id)
            if found is None or found["status"] != "importing":
                return
            # A second attempt into the same image fails for good: the store holds data of the first.
            if again or self.cloud.outcome("image_import", found["name"] or ""):
                found["status"] = "queued"
                found["_properties"].update(
                    {"os_glance_importing_to_stores": "", "os_glance_failed_import": STORE}
                )
            else:
                self._fill(found, IMPORTED_SIZE, hashlib.md5(image_id.encode()).hexdigest())
                found["_properties"]["os_glance_importing_to_stores"] = ""
            self._touch(found)

        self.cloud.later(self.cloud.settings.durations.image_import, finish)

    def _touch(self, row: Row) -> None:
        row["updated_at"] = seconds_z(self.cloud.now)

    def _sees(self, ctx: Ctx, row: Row) -> bool:
        return ctx.owns(row["owner"]) or row["visibility"] in ("public", "community")

    def _find(self, ctx: Ctx) -> Row:
        row = self.images.get(ctx.params["id"])
        if row is None or not self._sees(ctx, row):
            raise self.no_image(ctx.params["id"])
        return row

    def _require_owner(self, ctx: Ctx, row: Row, rule: str) -> None:
        ctx.require(ctx.is_admin or (ctx.owns(row["owner"]) and ctx.has_role("member")), rule)

    def _changeable(self, ctx: Ctx, rule: str) -> Row:
        row = self._find(ctx)
        self._require_owner(ctx, row, rule)
        return row

    def _check_visibility(self, ctx: Ctx, visibility: str) -> None:
        if visibility not in ("public", "private", "shared", "community"):
            raise self.bad_request(
                f"Failed validating 'enum' for visibility: '{visibility}' is not one of "
                "['community', 'public', 'private', 'shared']"
            )
        ctx.require(visibility != "public" or ctx.may(GLANCE_PUBLICIZE), GLANCE_PUBLICIZE)

    # ---------------------------------------------------------------- rest

    def dump(self) -> dict[str, list[JsonObject]]:
        return {
            "images": [
                {"id": i["id"], "name": i["name"] or "", "project_id": i["owner"]} for i in self.images
            ]
        }

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        """`set` base fields or properties, `delete`, `hold` and `release` (in use at the backend)."""
        row = self.images.get(object_id)
        if row is None:
            raise KeyError(object_id)
        if verb == "set":
            for key, value in values.items():
                if key in row:
                    self.images.change(row, **{key: value})
                else:
                    row["_properties"][key] = value
        elif verb == "delete":
            self.images.remove(object_id)
        elif verb in ("hold", "release"):
            row["_held"] = verb == "hold"
        else:
            raise ValueError(f"image knows no foreign change {verb!r}; use set, delete, hold or release")
        return self.show(row)

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        base = f"{self.cloud.settings.base_url.rstrip('/')}/image/v2/"
        rows = [
            {
                "id": f"v2.{minor}",
                "status": "CURRENT" if minor == 17 else "SUPPORTED",
                "links": [{"rel": "self", "href": base}],
            }
            for minor in (17, 16, 15, 9, 7, 6, 5, 4, 3, 2, 1, 0)
        ]
        return answer({"versions": rows}, 300)

    @route("GET", "/versions", auth=False)
    def versions_ok(self, ctx: Ctx) -> Response:
        return answer(self.versions(ctx).body)

    @route("GET", "/v2/info/import")
    def import_info(self, ctx: Ctx) -> Response:
        value = ["glance-direct", "web-download"]
        return answer(
            {"import-methods": {"description": "Import methods available.", "type": "array", "value": value}}
        )

    @route("GET", "/v2/info/stores")
    def stores(self, ctx: Ctx) -> Response:
        return answer({"stores": [{"id": STORE, "default": "true"}]})

    @route("GET", "/v2/schemas/image")
    def schema(self, ctx: Ctx) -> Response:
        properties: JsonObject = {key: {"type": "string"} for key in sorted(BASE_FIELDS)}
        return answer({"name": "image", "properties": properties, "additionalProperties": {"type": "string"}})


def _equal(have: Any, value: str) -> bool:
    if isinstance(have, bool):
        return value.lower() == str(have).lower()
    return have is not None and str(have) == value
