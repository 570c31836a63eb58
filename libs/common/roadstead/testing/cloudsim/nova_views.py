"""What Nova shows of a server, by microversion, scope and switch."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from .base import Ctx, JsonObject
from .ids import micros, seconds_z
from .nova_state import Server

if TYPE_CHECKING:
    from .nova import Nova

_PROGRESS = frozenset({"ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"})
_FAULTY = frozenset({"ERROR", "DELETED"})


class Views:
    """Bodies of servers and flavors."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud

    def links(self, *path: str) -> list[JsonObject]:
        base = f"{self.cloud.settings.base_url}/compute"
        tail = "/".join(path)
        return [
            {"rel": "self", "href": f"{base}/v2.1/{tail}"},
            {"rel": "bookmark", "href": f"{base}/{tail}"},
        ]

    def bookmark(self, *path: str) -> list[JsonObject]:
        return self.links(*path)[1:]

    def brief(self, server: Server) -> JsonObject:
        """The row of GET /servers."""
        return {"id": server.id, "name": server.name, "links": self.links("servers", server.id)}

    def full(self, ctx: Ctx, server: Server, *, listed: bool = False) -> JsonObject:
        """The body of GET /servers/{id} and, with `listed`, the row of GET /servers/detail."""
        settings = self.cloud.settings
        version, status, admin = ctx.version, server.status, ctx.is_admin
        host_id = server.host and hashlib.sha224((server.project_id + server.host).encode()).hexdigest()
        body: JsonObject = {
            "id": server.id,
            "name": server.name,
            "status": status,
            "tenant_id": server.project_id,
            "user_id": server.user_id,
            "metadata": dict(server.metadata),
            "hostId": host_id or "",
            "image": self._image(server),
            "flavor": self._flavor(ctx, server.flavor),
            "created": seconds_z(server.created),
            "updated": seconds_z(server.updated),
            "addresses": self.addresses(server),
            "accessIPv4": "",
            "accessIPv6": "",
            "links": self.links("servers", server.id),
            "OS-DCF:diskConfig": server.disk_config,
            "OS-EXT-AZ:availability_zone": server.zone if server.host else "",
            "config_drive": "True" if server.config_drive else "",
            "key_name": server.key_name,
            "OS-SRV-USG:launched_at": micros(server.launched_at) if server.launched_at else None,
            "OS-SRV-USG:terminated_at": micros(server.terminated_at) if server.terminated_at else None,
            "OS-EXT-STS:task_state": server.task_state,
            "OS-EXT-STS:vm_state": server.vm_state,
            "OS-EXT-STS:power_state": server.power_state,
            "os-extended-volumes:volumes_attached": [
                {"id": a.volume_id}
                | ({"delete_on_termination": a.delete_on_termination} if version >= (2, 3) else {})
                for a in server.attachments.values()
            ],
        }
        groups = self._security_groups(server)
        if groups:
            body["security_groups"] = [{"name": name} for name in groups]
        if status in _PROGRESS:
            body["progress"] = 100 if status == "ACTIVE" else 0
        self._versioned(version, server, body, listed)
        if admin:
            self._for_admin(version, server, body)
        if settings.hide_task_state and not admin:
            del body["OS-EXT-STS:task_state"]
        if settings.hide_launched_at and not admin:
            del body["OS-SRV-USG:launched_at"]
        due = status in _FAULTY or settings.stale_fault
        if server.fault is not None and due and (not listed or settings.list_shows_fault):
            shown = dict(server.fault)
            if not admin:
                shown.pop("details", None)
            body["fault"] = shown
        return body

    def _versioned(self, version: tuple[int, int], server: Server, body: JsonObject, listed: bool) -> None:
        if version >= (2, 9):
            body["locked"] = server.locked
        if version >= (2, 19):
            body["description"] = server.description
        if version >= (2, 26):
            body["tags"] = list(server.tags)
        if version >= (2, 63):
            body["trusted_image_certificates"] = None
        if version >= (2, 71) and not listed:
            body["server_groups"] = [server.group_id] if server.group_id else []
        if version >= (2, 73):
            body["locked_reason"] = server.locked_reason
        if version >= (2, 90):
            body["OS-EXT-SRV-ATTR:hostname"] = server.hostname
        if version >= (2, 96):
            body["pinned_availability_zone"] = server.zone or None

    def _for_admin(self, version: tuple[int, int], server: Server, body: JsonObject) -> None:
        body["OS-EXT-SRV-ATTR:host"] = server.host
        body["OS-EXT-SRV-ATTR:hypervisor_hostname"] = server.host
        body["OS-EXT-SRV-ATTR:instance_name"] = f"instance-{server.id[:8]}"
        if version >= (2, 3):
            body["OS-EXT-SRV-ATTR:hostname"] = server.hostname
            body["OS-EXT-SRV-ATTR:reservation_id"] = f"r-{server.id[-8:]}"
            body["OS-EXT-SRV-ATTR:launch_index"] = 0
            body["OS-EXT-SRV-ATTR:kernel_id"] = ""
            body["OS-EXT-SRV-ATTR:ramdisk_id"] = ""
            body["OS-EXT-SRV-ATTR:root_device_name"] = "/dev/vda" if server.host else None
            body["OS-EXT-SRV-ATTR:user_data"] = server.user_data
        if version >= (2, 16):
            body["host_status"] = "UP" if server.host else ""

    def _image(self, server: Server) -> JsonObject | str:
        if not server.image_id:
            return ""
        return {"id": server.image_id, "links": self.bookmark("images", server.image_id)}

    def _flavor(self, ctx: Ctx, flavor: JsonObject) -> JsonObject:
        if ctx.version < (2, 47):
            return {"id": flavor["id"], "links": self.bookmark("flavors", flavor["id"])}
        return {
            "vcpus": flavor["vcpus"],
            "ram": flavor["ram"],
            "disk": flavor["disk"],
            "ephemeral": flavor["ephemeral"],
            "swap": flavor["swap"],
            "original_name": flavor["name"],
            "extra_specs": dict(flavor["extra_specs"]),
        }

    def _security_groups(self, server: Server) -> list[str]:
        names: dict[str, None] = {}
        for nic in server.nics:
            names |= dict.fromkeys(self.cloud.neutron.port_security_groups(nic.port_id))
        return list(names) or server.security_groups

    def addresses(self, server: Server) -> dict[str, list[JsonObject]]:
        """By network name: fixed addresses and the floating ones that lead to them."""
        neutron = self.cloud.neutron
        found: dict[str, list[JsonObject]] = {}
        for nic in server.nics:
            port = neutron.port(nic.port_id)
            network = neutron.network(port["network_id"]) if port else None
            if port is None or network is None or port["device_id"] != server.id:
                continue
            rows = found.setdefault(network["name"], [])
            floating = neutron.floating_of(nic.port_id)
            for fixed in port["fixed_ips"]:
                address = fixed["ip_address"]
                rows.append(_address(address, "fixed", port["mac_address"]))
                rows += [_address(f, "floating", port["mac_address"]) for a, f in floating if a == address]
        return found

    def flavor(self, ctx: Ctx, flavor: JsonObject) -> JsonObject:
        """The body of a flavor."""
        body: JsonObject = {
            "id": flavor["id"],
            "name": flavor["name"],
            "ram": flavor["ram"],
            "disk": flavor["disk"],
            "vcpus": flavor["vcpus"],
            "swap": flavor["swap"] if ctx.version >= (2, 75) or flavor["swap"] else "",
            "rxtx_factor": 1.0,
            "OS-FLV-EXT-DATA:ephemeral": flavor["ephemeral"],
            "OS-FLV-DISABLED:disabled": False,
            "os-flavor-access:is_public": flavor["is_public"],
            "links": self.links("flavors", flavor["id"]),
        }
        if ctx.version >= (2, 55):
            body["description"] = flavor["description"]
        if ctx.version >= (2, 61):
            body["extra_specs"] = dict(flavor["extra_specs"])
        return body


def _address(address: str, kind: str, mac: str) -> JsonObject:
    return {
        "version": 6 if ":" in address else 4,
        "addr": address,
        "OS-EXT-IPS:type": kind,
        "OS-EXT-IPS-MAC:mac_addr": mac,
    }
