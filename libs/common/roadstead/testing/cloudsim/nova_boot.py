"""Creating a server: what a request must satisfy, and the way from scheduling to ACTIVE or ERROR."""

from __future__ import annotations

import base64
import binascii
import uuid
from typing import TYPE_CHECKING, Any

from .base import Ctx, JsonObject, Refused
from .nova_state import RUNNING, Attachment, Nic, Server
from .policy import NOVA_PIN_HOST

if TYPE_CHECKING:
    from .nova import Nova

_FIELDS = frozenset(
    {
        "name", "imageRef", "flavorRef", "networks", "metadata", "key_name", "user_data", "security_groups",
        "availability_zone", "block_device_mapping", "block_device_mapping_v2", "config_drive", "min_count", "max_count",
        "return_reservation_id", "adminPass", "personality", "accessIPv4", "accessIPv6", "OS-DCF:diskConfig",
        "description", "tags", "trusted_image_certificates", "host", "hypervisor_hostname", "hostname",
    }
)  # fmt: skip
# Fields that older microversions do not know.
_SINCE = {
    "description": (2, 19), "tags": (2, 52), "trusted_image_certificates": (2, 63), "host": (2, 74),
    "hypervisor_hostname": (2, 74), "hostname": (2, 90),
}  # fmt: skip
VOLUME_CHECKS = 200
"""Looks at a volume being made before a build gives up."""
NO_HOST = "No valid host was found. "


def is_uuid(value: object) -> bool:
    """True for the text of a UUID, with or without dashes."""
    try:
        uuid.UUID(str(value))
    except ValueError:
        return False
    return isinstance(value, str)


class Boot:
    """From the body of POST /servers to a server, and its first boot."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud

    # ------------------------------------------------------------ the call

    def create(self, ctx: Ctx, body: JsonObject, hints: JsonObject) -> Server:
        """Check everything that Nova checks before its 202, then start the build."""
        self._known_fields(ctx, body)
        name = ctx.text(body, "name", required=True) or ""
        host = self._host(ctx, body)  # Nova looks at the permission to pin before it looks anything up
        flavor = self._flavor(ctx, body)
        image_id = self._image(ctx, body, flavor)
        networks = self._networks(ctx, body)
        volumes = self._volumes(ctx, body, image_id)
        metadata = self._metadata(ctx, body)
        key_name = ctx.text(body, "key_name")
        if key_name is not None and (ctx.token.user_id, key_name) not in self.nova.keypairs:
            raise self.nova.bad_request("Invalid key_name provided.")
        self.nova.quotas.check_boot(ctx.project_id, flavor)
        now = self.cloud.now
        server = Server(
            self.cloud.ids.uuid(), name, ctx.project_id, ctx.token.user_id, image_id, dict(flavor), now, now,
            metadata=metadata, key_name=key_name, user_data=self._user_data(ctx, body),
            config_drive=ctx.flag(body, "config_drive"), description=ctx.text(body, "description"),
            hostname=ctx.text(body, "hostname") or _hostname(name), pinned_host=host, zone=self._zone(ctx, body),
            security_groups=self._security_groups(ctx, body), wanted_networks=networks, wanted_volumes=volumes,
            tags=ctx.texts(body, "tags"), group_id=self._group(ctx, hints),
            disk_config=str(body.get("OS-DCF:diskConfig") or "MANUAL"),
        )  # fmt: skip
        if server.group_id is not None:
            self.nova.groups[server.group_id]["members"].append(server.id)
        self.nova.servers[server.id] = server
        self.nova.actions.note(ctx, server, "create")
        self.nova.step(server, self.cloud.settings.durations.server_schedule, self._scheduled)
        return server

    def _known_fields(self, ctx: Ctx, body: JsonObject) -> None:
        allowed = {f for f in _FIELDS if ctx.version >= _SINCE.get(f, (0, 0))}
        ctx.only(body, allowed)
        if ctx.version >= (2, 37) and "networks" not in body:
            raise self.nova.bad_request(
                f"Invalid input for field/attribute server. Value: {body}. 'networks' is a required property"
            )
        for key in ("min_count", "max_count"):
            if (ctx.integer(body, key, 1, low=1) or 1) != 1:
                raise self.nova.bad_request(f"{key} other than 1 is not supported here.")

    def _flavor(self, ctx: Ctx, body: JsonObject) -> JsonObject:
        ref = body.get("flavorRef")
        if ref is None:
            raise self.nova.missing_field("flavorRef")
        flavor_id = str(ref).rstrip("/").rsplit("/", 1)[-1]
        flavor = self.nova.flavors.get(flavor_id)
        if flavor is None:
            raise self.nova.bad_request(f"Flavor {flavor_id} could not be found.")
        return flavor

    def _image(self, ctx: Ctx, body: JsonObject, flavor: JsonObject) -> str:
        """The image to boot from; empty when the root disk is a volume."""
        ref = body.get("imageRef")
        if not ref:
            if not body.get("block_device_mapping_v2") and not body.get("block_device_mapping"):
                raise self.nova.bad_request(
                    "Invalid imageRef provided." if ref is None else "Missing imageRef attribute"
                )
            return ""
        image_id = str(ref).rstrip("/").rsplit("/", 1)[-1]
        if not is_uuid(image_id):
            raise self.nova.invalid_field("imageRef", ref, f"'{ref}' is not a 'uuid'")
        self.usable_image(ctx, image_id, flavor, "Can not find requested image")
        return image_id

    def usable_image(self, ctx: Ctx, image_id: str, flavor: JsonObject, absent: str) -> JsonObject:
        """The image when a server of that flavor can be made from it; 400 with Nova's texts otherwise."""
        image = self.cloud.glance.image_for_boot(image_id, ctx.project_id)
        if image is None:
            raise self.nova.bad_request(absent)
        if image["status"] != "active":
            raise self.nova.bad_request(f"Image {image_id} is not active.")
        if (image.get("min_ram") or 0) > flavor["ram"]:
            raise self.nova.bad_request("Flavor's memory is too small for requested image.")
        if flavor["disk"] and (image.get("min_disk") or 0) > flavor["disk"]:
            raise self.nova.bad_request(
                "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is "
                f"{flavor['disk'] * 2**30} bytes, minimum size is {image['min_disk'] * 2**30} bytes."
            )
        return image

    def _host(self, ctx: Ctx, body: JsonObject) -> str | None:
        """The host the caller pins the server to."""
        zone = str(body.get("availability_zone") or "")
        if ":" in zone:
            if not ctx.is_admin:
                raise self.nova.policy_error("os_compute_api:servers:create:forced_host")
            return self._known_host(zone.split(":")[1])
        pinned = body.get("hypervisor_hostname") or body.get("host")
        if pinned is None:
            return None
        ctx.require(ctx.may(NOVA_PIN_HOST), NOVA_PIN_HOST)
        return self._known_host(str(pinned))

    def _known_host(self, host: str) -> str:
        if host not in self.cloud.settings.compute_hosts:
            raise self.nova.bad_request(f"Compute host {host} could not be found.")
        return host

    def _zone(self, ctx: Ctx, body: JsonObject) -> str:
        zone = (ctx.text(body, "availability_zone") or "nova").split(":")[0]
        if zone != "nova":
            raise self.nova.bad_request("The requested availability zone is not available")
        return zone

    def _networks(self, ctx: Ctx, body: JsonObject) -> list[JsonObject]:
        wanted = body.get("networks")
        if wanted == "none":
            return []
        neutron = self.cloud.neutron
        if wanted is None or wanted == "auto":
            usable = neutron.networks_for_server(ctx.project_id)
            if len(usable) > 1:
                raise self.nova.conflict(
                    "Multiple possible networks found, use a Network ID to be more specific."
                )
            return [{"uuid": n["id"]} for n in usable]
        found: list[JsonObject] = []
        for nic in ctx.objects(body, "networks"):
            if nic.get("port") is not None:
                self._port(ctx, str(nic["port"]))
            elif nic.get("uuid") is not None:
                network = neutron.network(str(nic["uuid"]))
                if network is None or not (ctx.owns(network["project_id"]) or network.get("shared")):
                    raise self.nova.bad_request(f"Network {nic['uuid']} could not be found.")
            else:
                raise self.nova.bad_request("'port' or 'uuid' is a required property of a network")
            found.append(dict(nic))
        return found

    def _port(self, ctx: Ctx, port_id: str) -> None:
        port = self.cloud.neutron.port(port_id)
        if port is None or not ctx.owns(port["project_id"]):
            raise self.nova.bad_request(f"Port id {port_id} could not be found.")
        if port["device_id"]:
            raise self.nova.conflict(f"Port {port_id} is still in use.")
        if not port["fixed_ips"]:
            raise self.nova.bad_request(f"Port {port_id} requires a FixedIP in order to be used.")

    def _volumes(self, ctx: Ctx, body: JsonObject, image_id: str) -> list[JsonObject]:
        """Block devices that become volumes; devices on local disk need nothing."""
        found: list[JsonObject] = []
        for device in ctx.objects(body, "block_device_mapping_v2"):
            source, destination = device.get("source_type"), device.get("destination_type", "volume")
            if destination != "volume":
                continue
            if source == "volume":
                if self.cloud.cinder.volume(str(device.get("uuid"))) is None:
                    raise self.nova.bad_request(
                        f"Block Device Mapping is Invalid: failed to get volume {device.get('uuid')}."
                    )
            elif source == "image":
                if self.cloud.glance.image_for_boot(str(device.get("uuid")), ctx.project_id) is None:
                    raise self.nova.bad_request("Can not find requested image")
                if not device.get("volume_size"):
                    raise self.nova.bad_request("Block Device Mapping is Invalid: volume_size is required.")
            elif source != "blank":
                raise self.nova.bad_request(f"Block Device Mapping is Invalid: source_type {source!r}.")
            found.append(dict(device))
        if not image_id and not any(_boot_index(d) == 0 for d in found):
            raise self.nova.bad_request(
                "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping "
                "combination is not valid."
            )
        return found

    def _metadata(self, ctx: Ctx, body: JsonObject) -> dict[str, str]:
        return self.metadata(ctx, ctx.mapping(body, "metadata"))

    def metadata(self, ctx: Ctx, given: JsonObject) -> dict[str, str]:
        """Metadata of a request: texts of at most 255 characters, as many as the quota has."""
        for key, value in given.items():
            if not isinstance(value, str):
                raise self.nova.invalid_field(key, value, f"{value!r} is not of type 'string'")
            if len(value) > 255 or not 0 < len(key) <= 255:
                raise self.nova.invalid_field(key, value, f"{value!r} is too long")
        self.nova.quotas.check_metadata(ctx.project_id, len(given))
        return dict(given)

    def _user_data(self, ctx: Ctx, body: JsonObject) -> str | None:
        text = ctx.text(body, "user_data", max_length=65535)
        if text is None:
            return None
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self.nova.invalid_field("user_data", text, f"'{text}' is not a 'base64'") from None
        return text

    def _security_groups(self, ctx: Ctx, body: JsonObject) -> list[str]:
        names = [str(g.get("name")) for g in ctx.objects(body, "security_groups")]
        return list(dict.fromkeys(names)) or ["default"]

    def _group(self, ctx: Ctx, hints: JsonObject) -> str | None:
        wanted = hints.get("group")
        if wanted is None:
            return None
        group = self.nova.groups.get(str(wanted))
        if group is None or group["project_id"] != ctx.project_id:
            raise self.nova.bad_request(f"Instance group {wanted} could not be found.")
        self.nova.quotas.check_group_members(ctx.project_id, len(group["members"]))
        return str(wanted)

    # ----------------------------------------------------------- the build

    def _scheduled(self, server: Server) -> None:
        hosts = self.cloud.settings.compute_hosts
        if not hosts:
            self._unbuilt(server, NO_HOST)
            return
        taken = len(self.nova.servers)
        server.host = server.pinned_host or hosts[taken % len(hosts)]
        # Between the scheduler and the host's first step no task is set, although it is BUILD.
        server.task_state = None
        self.nova.step(server, self.cloud.settings.durations.server_network / 2, self._networking)

    def _networking(self, server: Server) -> None:
        server.task_state = "networking"
        self.nova.step(server, self.cloud.settings.durations.server_network / 2, self._block_devices)

    def _block_devices(self, server: Server) -> None:
        server.task_state = "block_device_mapping"
        try:
            self._plug(server)
            self._make_volumes(server)
        except Refused as refused:
            self._aborted(server, refused.message)
            return
        made = any(device.get("made") for device in server.wanted_volumes)
        wait = self.cloud.settings.durations.volume_create if made else 0.0
        self.nova.step(server, wait, lambda now: self._volumes_made(now, VOLUME_CHECKS))

    def _volumes_made(self, server: Server, checks: int) -> None:
        """Attach when every volume is available; wait for one that is still being made."""
        volumes = [self.cloud.cinder.volume(str(device["uuid"])) for device in server.wanted_volumes]
        states = [volume["status"] if volume else "gone" for volume in volumes]
        if "creating" in states or "downloading" in states:
            if checks <= 0:
                self._aborted(server, "Volume did not finish being created even after we waited.")
                return
            wait = max(0.1, self.cloud.settings.durations.volume_create / 4)
            self.nova.step(server, wait, lambda now: self._volumes_made(now, checks - 1))
            return
        try:
            self._attach_volumes(server)
        except Refused as refused:
            self._aborted(server, refused.message)
            return
        self.nova.step(server, self.cloud.settings.durations.server_spawn / 10, self._spawning)

    def _aborted(self, server: Server, reason: str) -> None:
        self._unbuilt(server, f"Build of instance {server.id} aborted: {reason}")

    def _plug(self, server: Server) -> None:
        """Bind the ports that were given, make those that were not."""
        neutron, host = self.cloud.neutron, server.host or ""
        for wanted in server.wanted_networks:
            if wanted.get("port") is not None:
                port = neutron.port(str(wanted["port"]))
                if port is None:
                    raise Refused("not_found", f"Port {wanted['port']} could not be found.")
                if port["device_id"] not in ("", server.id):
                    raise Refused("conflict", f"Port {port['id']} is still in use.")
                neutron.port_bind(port["id"], server.id, host)
                server.nics.append(Nic(port["id"]))
            else:
                made = neutron.port_create_for_server(
                    str(wanted["uuid"]), server.project_id, server.id, host, wanted.get("fixed_ip"),
                    server.security_groups,
                )  # fmt: skip
                server.nics.append(Nic(made["id"], made_by_nova=True))

    def _make_volumes(self, server: Server) -> None:
        """Make the volumes that come from an image or empty; `made` marks them."""
        for device in server.wanted_volumes:
            if device.get("source_type") == "volume":
                continue
            device["uuid"] = self.cloud.cinder.volume_create_for_server(
                server.project_id,
                server.user_id,
                int(device.get("volume_size") or 1),
                image_id=device.get("uuid") if device.get("source_type") == "image" else None,
                volume_type=device.get("volume_type"),
            )
            device["made"] = True

    def _attach_volumes(self, server: Server) -> None:
        cinder = self.cloud.cinder
        for index, device in enumerate(server.wanted_volumes):
            volume_id, boot = str(device["uuid"]), _boot_index(device)
            held = Attachment(
                volume_id,
                cinder.attach_reserve(volume_id, server.id, server.project_id),
                self.cloud.ids.uuid(),
                f"/dev/vd{'a' if boot == 0 else 'bcdefghijklmnopqrstuvwxyz'[index]}",
                delete_on_termination=bool(device.get("delete_on_termination")),
                boot_index=boot,
            )
            cinder.attach_complete(held.attachment_id, held.device, server.host or "")
            held.ready = True
            server.attachments[volume_id] = held

    def _spawning(self, server: Server) -> None:
        server.task_state = "spawning"
        order = self.nova.obey(server, "boot", "spawn")
        fails = order.reason is not None
        seconds = self.cloud.settings.durations.server_spawn + order.seconds
        self.nova.step(server, seconds, lambda now: self._spawned(now, fails))

    def _spawned(self, server: Server, fails: bool) -> None:
        outcome = self.cloud.outcome("server_build", server.name)
        if outcome is not None or fails:
            # Whatever the host's own reason was, this is what Nova tells when no other host is left.
            message = (outcome.message if outcome else "") or (
                "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures "
                f"for instance {server.id}."
            )
            self._unbuilt(
                server, message, outcome.code if outcome else 500, outcome.detail if outcome else ""
            )
            return
        server.vm_state, server.task_state, server.power_state = "active", None, RUNNING
        server.launched_at = self.cloud.now
        self.nova.actions.finish(server)

    def _unbuilt(self, server: Server, message: str, code: int = 500, details: str = "") -> None:
        """A first boot that failed: never launched, no host, its ports free again."""
        for nic in server.nics:
            if nic.made_by_nova:
                self.cloud.neutron.port_delete_for_server(nic.port_id)
            else:
                self.cloud.neutron.port_unbind(nic.port_id)
        server.nics = []
        server.host = None
        self.nova.fail(server, message, code, details)
        self.nova.actions.finish(server, message)


def _boot_index(device: JsonObject) -> int | None:
    value: Any = device.get("boot_index")
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _hostname(name: str) -> str:
    kept = "".join(c if c.isalnum() or c == "-" else "-" for c in name.lower()).strip("-.")
    return kept[:63] or "server"
