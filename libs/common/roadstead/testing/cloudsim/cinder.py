"""The simulated Cinder: versions, errors, and what Nova asks of it.

The volumes themselves are in cinder_volumes, types, quotas and attachment rows in cinder_misc.
Paths may carry the project id or leave it out, as in the real service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import ApiError, Ctx, JsonObject, Refused, Service, answer, route
from .cinder_misc import Misc
from .cinder_volumes import Volumes
from .ids import micros
from .tables import Row, Table
from .wire import Response

if TYPE_CHECKING:
    from .cloud import Cloud

MINIMUM = (3, 0)
CINDER_KINDS = {
    400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
    409: "conflictingRequest", 413: "overLimit", 415: "badMediaType", 501: "notImplemented",
    503: "serviceUnavailable",
}  # fmt: skip
SEED_TYPES = ("standard", "fast")


class Cinder(Service):
    """Volumes, volume types, attachments and quotas of the simulated cloud."""

    name = "volume"
    prefix = "volume"
    version_key = "volume"

    def __init__(self, cloud: Cloud) -> None:
        self.volumes = Table("project_id", "name")
        self.types = Table("name")
        self.quotas: dict[str, dict[str, int]] = {}
        self._attachment_volume: dict[str, str] = {}
        super().__init__(cloud)
        self.volumes_part = Volumes(self)
        self.misc_part = Misc(self)
        self.include(self.volumes_part)
        self.include(self.misc_part)

    def seed(self) -> None:
        for name in SEED_TYPES:
            self.misc_part.make_type(name, extra_specs={"volume_backend_name": name})

    # ------------------------------------------------------- microversions

    def prepare(self, ctx: Ctx) -> None:
        ctx.version = self._negotiate(ctx.request.headers.get("openstack-api-version", ""))

    def decorate(self, ctx: Ctx, response: Response) -> None:
        if ctx.version != (0, 0):
            response.headers["OpenStack-API-Version"] = f"volume {ctx.version[0]}.{ctx.version[1]}"
            response.headers["Vary"] = "OpenStack-API-Version"

    def _negotiate(self, header: str) -> tuple[int, int]:
        maximum = _pair(self.cloud.settings.volume_max)
        wanted = ""
        for part in header.split(","):
            word, _, value = part.strip().partition(" ")
            if word in ("volume", "block-storage"):
                wanted = value.strip()
        if not wanted:
            return MINIMUM
        if wanted == "latest":
            return maximum
        major, _, minor = wanted.partition(".")
        if not (major.isdigit() and minor.isdigit()):
            raise self.bad_request(
                f"API Version String {wanted} is of invalid format. Must be of format MajorNum.MinorNum."
            )
        version = (int(major), int(minor))
        if not MINIMUM <= version <= maximum:
            raise self.error(
                406,
                f"Version {wanted} is not supported by the API. Minimum is 3.0 and maximum is "
                f"{maximum[0]}.{maximum[1]}.",
            )
        return version

    # -------------------------------------------------------------- errors

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        word = kind or CINDER_KINDS.get(status, "computeFault")
        return ApiError(status, {word: {"code": status, "message": message}})

    def over_quota(self, message: str) -> ApiError:
        """The 413 of an exceeded quota, which asks to retry at once."""
        body = {"overLimit": {"code": 413, "message": message, "retryAfter": "0"}}
        return ApiError(413, body, {"Retry-After": "0"})

    # -------------------------------------------------- for other services

    def volume(self, volume_id: str) -> Row | None:
        """Return the raw volume."""
        return self.volumes.get(volume_id)

    def attach_reserve(self, volume_id: str, server_id: str, project_id: str) -> str:
        """Reserve a volume for a server and return the attachment id; Refused with Cinder's text."""
        volume = self.volumes.get(volume_id)
        if volume is None or volume["project_id"] != project_id:
            raise Refused("not_found", f"Volume {volume_id} could not be found.")
        if "error" in volume["status"]:
            raise Refused(
                "invalid",
                "Invalid volume: Volume attachments can not be created if the volume is in an error state. The "
                f"Volume {volume_id} currently has a status of: {volume['status']} ",
            )
        holders = [row["server_id"] for row in [*volume["attachments"], *volume["_reserved"]]]
        if holders and (server_id in holders or not volume["multiattach"]):
            raise Refused(
                "invalid",
                f"Invalid volume: volume {volume_id} is already attached to instances: {', '.join(holders)}",
            )
        if not holders and volume["status"] not in ("available", "downloading"):
            raise Refused(
                "invalid",
                f"Invalid volume: Volume {volume_id} status must be available or in-use or downloading to "
                f"reserve, but the current status is {volume['status']}.",
            )
        attachment_id = self.cloud.ids.uuid()
        volume["_reserved"].append({"attachment_id": attachment_id, "server_id": server_id})
        self._attachment_volume[attachment_id] = volume_id
        if not volume["attachments"]:
            self.volumes_part.set_status(volume, "reserved")
        return attachment_id

    def attach_complete(self, attachment_id: str, device: str, host: str) -> None:
        """Turn a reservation into an attachment row; silent when the volume is gone."""
        volume = self._of_attachment(attachment_id)
        if volume is None:
            return
        reserved = next(r for r in volume["_reserved"] if r["attachment_id"] == attachment_id)
        volume["_reserved"].remove(reserved)
        volume["attachments"].append(
            {
                "id": volume["id"], "attachment_id": attachment_id, "volume_id": volume["id"],
                "server_id": reserved["server_id"], "host_name": host, "device": device,
                "attached_at": micros(self.cloud.now),
            }
        )  # fmt: skip
        self.volumes_part.set_status(volume, "in-use")

    def attach_cancel(self, attachment_id: str) -> None:
        """Give a reservation back; silent when it is gone."""
        volume = self._of_attachment(attachment_id)
        if volume is not None:
            volume["_reserved"] = [r for r in volume["_reserved"] if r["attachment_id"] != attachment_id]
            self._rest_status(volume)
        self._attachment_volume.pop(attachment_id, None)

    def detach_begin(self, volume_id: str, server_id: str) -> None:
        """Start taking a volume off a server; Refused with Cinder's text."""
        volume = self.volumes.get(volume_id)
        if volume is None:
            raise Refused("not_found", f"Volume {volume_id} could not be found.")
        attached = any(row["server_id"] == server_id for row in volume["attachments"])
        if not attached or volume["status"] != "in-use":
            raise Refused(
                "invalid",
                "Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. Volume status "
                "must be 'in-use' and attach_status must be 'attached' to detach.",
            )
        self.volumes_part.set_status(volume, "detaching")

    def detach_complete(self, volume_id: str, server_id: str) -> None:
        """End a detach: the row goes, the volume is free again; silent when it is gone."""
        volume = self.volumes.get(volume_id)
        if volume is None:
            return
        for row in volume["attachments"]:
            if row["server_id"] == server_id:
                self._attachment_volume.pop(row["attachment_id"], None)
        volume["attachments"] = [r for r in volume["attachments"] if r["server_id"] != server_id]
        volume["_reserved"] = [r for r in volume["_reserved"] if r["server_id"] != server_id]
        self._rest_status(volume)

    def volume_create_for_server(
        self,
        project_id: str,
        user_id: str,
        size: int,
        image_id: str | None = None,
        volume_type: str | None = None,
        name: str = "",
    ) -> str:
        """Make a volume on behalf of Nova and return its id; Refused on quota or unknown type."""
        try:
            kind = self.misc_part.type_for(volume_type)
            self.volumes_part.check_quota(project_id, size)
        except ApiError as error:
            message = next(iter(error.body.values()))["message"]
            raise Refused("quota" if error.status == 413 else "not_found", message) from None
        volume = self.volumes_part.make(project_id, user_id, size, kind, name=name, image_id=image_id)
        return str(volume["id"])

    def volume_delete_for_server(self, volume_id: str) -> None:
        """Remove a volume that goes with its server; silent when it is gone."""
        volume = self.volumes.get(volume_id)
        if volume is not None:
            self.volumes_part.begin_delete(volume)

    def _of_attachment(self, attachment_id: str) -> Row | None:
        return self.volumes.get(self._attachment_volume.get(attachment_id))

    def _rest_status(self, volume: Row) -> None:
        if volume["attachments"]:
            self.volumes_part.set_status(volume, "in-use")
        elif volume["_reserved"]:
            self.volumes_part.set_status(volume, "reserved")
        else:
            self.volumes_part.set_status(volume, "available")

    # ---------------------------------------------------------------- rest

    def dump(self) -> dict[str, list[JsonObject]]:
        return {
            "volumes": [
                {"id": v["id"], "name": v["name"] or "", "project_id": v["project_id"]} for v in self.volumes
            ]
        }

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        """`set` raw fields, `rename`, `delete` behind the client's back, `detach` from every server."""
        volume = self.volumes.get(object_id)
        if volume is None:
            raise KeyError(object_id)
        if verb == "set":
            self.volumes.change(volume, **values)
        elif verb == "rename":
            self.volumes.change(volume, name=values["name"])
        elif verb == "delete":
            self.volumes.remove(object_id)
        elif verb == "detach":
            for server in {row["server_id"] for row in volume["attachments"]}:
                self.detach_complete(object_id, server)
        else:
            raise ValueError(f"volume knows no foreign change {verb!r}; use set, rename, delete or detach")
        return {key: value for key, value in volume.items() if not key.startswith("_")}

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        return answer({"versions": [self._version_document()]}, 300)

    @route("GET", "/v3", auth=False)
    def version(self, ctx: Ctx) -> Response:
        return answer({"versions": [self._version_document()]})

    def _version_document(self) -> JsonObject:
        base: Any = self.cloud.settings.base_url.rstrip("/")
        return {
            "id": "v3.0", "status": "CURRENT", "version": self.cloud.settings.volume_max,
            "min_version": "3.0", "updated": "2026-04-01T00:00:00Z",
            "links": [{"rel": "self", "href": f"{base}/volume/v3/"}],
            "media-types": [
                {"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}
            ],
        }  # fmt: skip


def _pair(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)
