"""What is plugged into a server: volume attachments and interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import ApiError, Ctx, JsonObject, Refused, answer, nothing, route
from .nova_state import Attachment, Nic, Server
from .wire import Response

if TYPE_CHECKING:
    from .nova import Nova

_LETTERS = "bcdefghijklmnopqrstuvwxyz"


class Volumes:
    """Routes of os-volume_attachments and os-interface."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud

    def _show(self, ctx: Ctx, server: Server, held: Attachment, *, created: bool = False) -> JsonObject:
        body: JsonObject = {"serverId": server.id, "volumeId": held.volume_id, "device": held.device}
        if created or ctx.version < (2, 89):
            body["id"] = held.volume_id
        if ctx.version >= (2, 70):
            body["tag"] = held.tag
        if ctx.version >= (2, 79):
            body["delete_on_termination"] = held.delete_on_termination
        if ctx.version >= (2, 89) and not created:
            body["attachment_id"], body["bdm_uuid"] = held.attachment_id, held.bdm_id
        return body

    @route("GET", "/v2.1/servers/{id}/os-volume_attachments")
    def list_attachments(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        return answer(
            {"volumeAttachments": [self._show(ctx, server, a) for a in server.attachments.values()]}
        )

    @route("GET", "/v2.1/servers/{id}/os-volume_attachments/{volume_id}")
    def show_attachment(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        return answer(
            {"volumeAttachment": self._show(ctx, server, self._held(server, ctx.params["volume_id"]))}
        )

    def _held(self, server: Server, volume_id: str) -> Attachment:
        held = server.attachments.get(volume_id)
        if held is None:
            raise self.nova.not_found(f"Instance {server.id} is not attached to volume {volume_id}")
        return held

    @route("POST", "/v2.1/servers/{id}/os-volume_attachments")
    def attach(self, ctx: Ctx) -> Response:
        """200 at once with the device; the volume is in-use a little later."""
        server = self.nova.own_server(ctx)
        body = ctx.body("volumeAttachment")
        volume_id = ctx.text(body, "volumeId", required=True) or ""
        volume = self.cloud.cinder.volume(volume_id)
        if volume is None or not ctx.owns(
            volume.get("os-vol-tenant-attr:tenant_id") or volume.get("project_id")
        ):
            raise self.nova.not_found(f"Volume {volume_id} could not be found.")
        self.nova.check(ctx, server, "attach_volume")
        holder = next((s.id for s in self.nova.servers.values() if volume_id in s.attachments), None)
        if holder is not None:
            raise self.nova.bad_request(
                f"Invalid volume: volume {volume_id} is already attached to instances: {holder}"
            )
        try:
            attachment_id = self.cloud.cinder.attach_reserve(volume_id, server.id, server.project_id)
        except Refused as refused:
            raise self._refused(refused) from None
        device = ctx.text(body, "device") or self._free_device(server)
        held = Attachment(
            volume_id, attachment_id, self.cloud.ids.uuid(), device, ctx.text(body, "tag"),
            ctx.flag(body, "delete_on_termination"),
        )  # fmt: skip
        server.attachments[volume_id] = held
        self.nova.actions.note(ctx, server, "attach_volume")
        server_id, name = server.id, volume.get("name") or ""
        # Not a step of the server: attaching goes on beside whatever else the server does.
        self.cloud.later(
            self.cloud.settings.durations.volume_attach,
            lambda: self._attached(server_id, attachment_id, name),
        )
        return answer({"volumeAttachment": self._show(ctx, server, held, created=True)})

    def _attached(self, server_id: str, attachment_id: str, name: str) -> None:
        server = self.nova.servers.get(server_id)
        held = (
            next((a for a in server.attachments.values() if a.attachment_id == attachment_id), None)
            if server
            else None
        )
        if server is None or held is None:
            return
        if self.cloud.outcome("volume_attach", name) is not None:
            # The host could not: Nova drops its row and Cinder's, the volume is available again.
            del server.attachments[held.volume_id]
            self.cloud.cinder.attach_cancel(attachment_id)
            self.nova.actions.finish(server, "attach failed")
            return
        held.ready = True
        self.cloud.cinder.attach_complete(attachment_id, held.device, server.host or "")
        self.nova.actions.finish(server)

    def _free_device(self, server: Server) -> str:
        taken = {a.device for a in server.attachments.values()}
        return next((f"/dev/vd{c}" for c in _LETTERS if f"/dev/vd{c}" not in taken), "/dev/vdaa")

    @route("DELETE", "/v2.1/servers/{id}/os-volume_attachments/{volume_id}")
    def detach(self, ctx: Ctx) -> Response:
        """202; a second request while the first runs is 400, as Cinder words it."""
        server = self.nova.own_server(ctx)
        volume_id = ctx.params["volume_id"]
        held = self._held(server, volume_id)
        self.nova.check(ctx, server, "detach_volume")
        if held.boot_index == 0:
            raise self.nova.bad_request("Cannot detach a root device volume")
        try:
            self.cloud.cinder.detach_begin(volume_id, server.id)
        except Refused as refused:
            raise self._refused(refused) from None
        self.nova.actions.note(ctx, server, "detach_volume")
        server_id = server.id
        self.cloud.later(
            self.cloud.settings.durations.volume_detach, lambda: self._detached(server_id, volume_id)
        )
        return nothing(202)

    def _detached(self, server_id: str, volume_id: str) -> None:
        server = self.nova.servers.get(server_id)
        if server is not None:
            self.finish_detach(server, volume_id)

    def finish_detach(self, server: Server, volume_id: str) -> None:
        """Nova's row and Cinder's go together."""
        if server.attachments.pop(volume_id, None) is not None:
            self.cloud.cinder.detach_complete(volume_id, server.id)

    def _refused(self, refused: Refused) -> ApiError:
        status = {"not_found": 404, "quota": 403, "conflict": 400}.get(refused.reason, 400)
        text = refused.message
        if status == 400 and not text.startswith("Invalid volume"):
            text = f"Invalid volume: {text}"
        return self.nova.error(status, text)

    # ----------------------------------------------------------- interfaces

    def _interface(self, nic: Nic) -> JsonObject | None:
        port = self.cloud.neutron.port(nic.port_id)
        if port is None:
            return None
        return {
            "port_id": port["id"],
            "net_id": port["network_id"],
            "mac_addr": port["mac_address"],
            "port_state": port["status"],
            "fixed_ips": [dict(f) for f in port["fixed_ips"]],
        }

    @route("GET", "/v2.1/servers/{id}/os-interface")
    def list_interfaces(self, ctx: Ctx) -> Response:
        rows = [self._interface(nic) for nic in self.nova.own_server(ctx).nics]
        return answer({"interfaceAttachments": [row for row in rows if row is not None]})

    @route("POST", "/v2.1/servers/{id}/os-interface")
    def attach_interface(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        body = ctx.body("interfaceAttachment")
        self.nova.check(ctx, server, "attach_interface")
        neutron, host = self.cloud.neutron, server.host or ""
        if body.get("port_id") is not None:
            port = neutron.port(str(body["port_id"]))
            if port is None or not ctx.owns(port["project_id"]):
                raise self.nova.not_found(f"Port {body['port_id']} could not be found.")
            if port["device_id"]:
                raise self.nova.bad_request(f"Port {port['id']} is still in use.")
            neutron.port_bind(port["id"], server.id, host)
            nic = Nic(port["id"])
        else:
            try:
                made = neutron.port_create_for_server(
                    str(body.get("net_id")), server.project_id, server.id, host, None, server.security_groups
                )
            except Refused as refused:
                raise self.nova.error(403 if refused.reason == "quota" else 400, refused.message) from None
            nic = Nic(made["id"], made_by_nova=True)
        server.nics.append(nic)
        return answer({"interfaceAttachment": self._interface(nic)})

    @route("DELETE", "/v2.1/servers/{id}/os-interface/{port_id}")
    def detach_interface(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        nic = next((n for n in server.nics if n.port_id == ctx.params["port_id"]), None)
        if nic is None:
            raise self.nova.not_found(f"Port {ctx.params['port_id']} is not attached to instance {server.id}")
        self.nova.check(ctx, server, "detach_interface")
        server.nics.remove(nic)
        if nic.made_by_nova:
            self.cloud.neutron.port_delete_for_server(nic.port_id)
        else:
            self.cloud.neutron.port_unbind(nic.port_id)
        return nothing(202)
