"""Ports: addresses, security groups, address pairs, and their life with a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import neutron_addressing as addressing
from .base import Ctx, JsonObject, Refused, answer, nothing, route
from .neutron_networks import NOT_FOUND as NETWORK_NOT_FOUND
from .neutron_state import FLOATING_IP, ROUTER_OWNERS
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

ADMIN_ONLY = (
    "binding:host_id", "binding:profile", "binding:vif_type", "binding:vif_details", "resource_request",
)  # fmt: skip
WRITABLE = {
    "name", "description", "admin_state_up", "security_groups", "allowed_address_pairs", "fixed_ips",
    "device_id", "device_owner", "port_security_enabled", "binding:vnic_type", "binding:host_id",
    "binding:profile", "dns_name", "dns_domain", "extra_dhcp_opts", "qos_policy_id", "mac_address",
    "numa_affinity_policy",
}  # fmt: skip
CREATABLE = WRITABLE | {"project_id", "tenant_id", "network_id", "propagate_uplink_status", "tags"}
NOT_FOUND = ("PortNotFound", "Port {} could not be found.")
GROUP_NOT_FOUND = ("SecurityGroupNotFound", "Security group {} does not exist")


class Ports:
    """The collection /v2.0/ports."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/ports")
    def index(self, ctx: Ctx) -> Response:
        return self.neutron.listing(ctx, "ports", self.state.ports, self.show)

    @route("GET", "/v2.0/ports/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"port": self.show(ctx, self._find(ctx))})

    @route("POST", "/v2.0/ports")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("port")
        checked(ctx, body, CREATABLE)
        network_id = ctx.text(body, "network_id", required=True)
        network = self.neutron.find(
            ctx, self.state.networks, network_id, NETWORK_NOT_FOUND, self.neutron.visible_network
        )
        self.neutron.require_member(ctx, "create_port")
        project = self.neutron.project_for(ctx, body, "create_port")
        # An external network that is not shared lends its addresses to routers and floating IPs only.
        usable = ctx.owns(network["project_id"]) or network["shared"]
        ctx.require(usable, "create_port")
        self._check_admin_fields(ctx, body, "create_port")
        default = self.state.default_group(ctx.now, project)
        self.neutron.check_quota(project, "port", len(self.state.ports.where("project_id", project)))
        secured = ctx.flag(body, "port_security_enabled", network["port_security_enabled"])
        if body.get("security_groups") is not None:
            groups = self._groups(ctx, body)
        else:
            groups = [default["id"]] if default is not None and secured else []
        pairs = self._pairs(body.get("allowed_address_pairs"))
        mac = ctx.text(body, "mac_address")
        row = self.state.add_port(
            ctx.now, network["id"], project, body.get("fixed_ips"), mac_address=mac,
            name=ctx.text(body, "name", "") or "", description=ctx.text(body, "description", "") or "",
            admin_state_up=ctx.flag(body, "admin_state_up", True), security_groups=groups,
            port_security_enabled=secured, device_id=ctx.text(body, "device_id", "") or "",
            device_owner=ctx.text(body, "device_owner", "") or "",
            dns_name=ctx.text(body, "dns_name", "") or "",
        )  # fmt: skip
        row["allowed_address_pairs"] = [{"mac_address": row["mac_address"], **pair} for pair in pairs]
        row["binding:vnic_type"] = ctx.text(body, "binding:vnic_type", "normal")
        if body.get("binding:host_id"):
            row["binding:host_id"] = body["binding:host_id"]
        return answer({"port": self.show(ctx, row)}, 201)

    @route("PUT", "/v2.0/ports/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "update_port")
        body = ctx.body("port")
        checked(ctx, body, WRITABLE)
        self._check_admin_fields(ctx, body, "update_port")
        groups = self._groups(ctx, body) if "security_groups" in body else None
        pairs = self._pairs(body["allowed_address_pairs"]) if "allowed_address_pairs" in body else None
        if "fixed_ips" in body:
            self._move(row, body["fixed_ips"])
        changes = {
            key: value
            for key, value in body.items()
            if key not in ("fixed_ips", "security_groups", "allowed_address_pairs")
        }
        self.state.ports.change(row, **changes)
        if groups is not None:
            self.state.set_groups(row, groups)
        if pairs is not None:
            row["allowed_address_pairs"] = [{"mac_address": row["mac_address"], **pair} for pair in pairs]
        self.neutron.touch(row)
        return answer({"port": self.show(ctx, row)})

    @route("DELETE", "/v2.0/ports/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "delete_port")
        owner = row["device_owner"]
        table = self.state.floating_ips if owner == FLOATING_IP else self.state.routers
        if owner in ROUTER_OWNERS and row["device_id"] in table:
            raise self.neutron.error(
                409,
                f"Port {row['id']} cannot be deleted directly via the port API: has device owner {owner}.",
                "ServicePortInUse",
            )
        self.state.drop_port(row)
        return nothing()

    # -------------------------------------------------- life with a server

    def bind(self, port: Row, server_id: str, host: str) -> None:
        """Give the port to a server on a host; ACTIVE after `port_up`."""
        self.state.ports.change(port, device_id=server_id, device_owner="compute:nova")
        port["binding:host_id"], port["binding:vif_type"] = host, "ovs"
        self.neutron.touch(port)
        port_id = port["id"]

        def up() -> None:
            found = self.state.ports.get(port_id)
            if found is not None and found["device_id"] == server_id and found["admin_state_up"]:
                found["status"] = "ACTIVE"
                self.neutron.touch(found)

        self.neutron.cloud.later(self.neutron.cloud.settings.durations.port_up, up)

    def unbind(self, port: Row) -> None:
        """Take the port from its server: DOWN, without device and host."""
        self.state.ports.change(port, device_id="", device_owner="")
        port["binding:host_id"], port["binding:vif_type"] = "", "unbound"
        port["status"] = "DOWN"
        self.neutron.touch(port)

    def groups_for_server(self, project_id: str, wanted: Iterable[str]) -> list[str]:
        """Return group ids for names or ids a server names; the default group for none of them."""
        found: list[str] = []
        default = self.state.default_group(self.neutron.cloud.now, project_id)
        for word in wanted:
            matches = [
                g["id"]
                for g in self.state.groups.where("project_id", project_id)
                if word in (g["id"], g["name"])
            ]
            if not matches:
                raise Refused("not_found", f"Security group {word} not found.")
            if len(matches) > 1 and word not in matches:
                raise Refused(
                    "conflict",
                    f"Multiple security groups found matching '{word}'. Use an ID to be more specific.",
                )
            found.append(word if word in matches else matches[0])
        if found or default is None:
            return found
        return [default["id"]]

    # ------------------------------------------------------------- pieces

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the port; binding details are the administrator's."""
        return self.neutron.shown(ctx, row, ADMIN_ONLY)

    def _find(self, ctx: Ctx) -> Row:
        return self.neutron.find(ctx, self.state.ports, ctx.params["id"], NOT_FOUND)

    def _changeable(self, ctx: Ctx, rule: str) -> Row:
        row = self._find(ctx)
        self.neutron.require_member(ctx, rule)
        return row

    def _check_admin_fields(self, ctx: Ctx, body: JsonObject, rule: str) -> None:
        for key in ("binding:host_id", "binding:profile"):
            ctx.require(not body.get(key) or ctx.is_admin, f"{rule} and {rule}:{key}")

    def _groups(self, ctx: Ctx, body: JsonObject) -> list[str]:
        wanted = ctx.texts(body, "security_groups")
        for group_id in wanted:
            self.neutron.find(ctx, self.state.groups, group_id, GROUP_NOT_FOUND)
        return list(dict.fromkeys(wanted))

    def _pairs(self, value: Any) -> list[JsonObject]:
        """Return address pairs without duplicates; the port's own MAC is filled in later."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.neutron.invalid_field("allowed_address_pairs", value, f"'{value}' is not a list")
        made: list[JsonObject] = []
        for item in value:
            address = item.get("ip_address") if isinstance(item, dict) else None
            if address is None:
                raise self.neutron.error(
                    400, "AllowedAddressPair must contain ip_address", "AllowedAddressPairsMissingIP"
                )
            if "/" in str(address):
                address = str(addressing.parse_network(address, 6 if ":" in str(address) else 4))
            else:
                address = str(addressing.parse_address(address, "allowed_address_pairs"))
            pair = {"ip_address": address}
            if item.get("mac_address"):
                pair["mac_address"] = item["mac_address"]
            if pair in made:
                raise self.neutron.error(
                    400, "Request contains duplicate address pair: "
                    f"mac_address {item.get('mac_address')} ip_address {address}.",
                    "DuplicateAddressPairInRequest",
                )  # fmt: skip
            made.append(pair)
        return made

    def _move(self, row: Row, requested: Any) -> None:
        wanted = requested if isinstance(requested, list) else []
        kept = [ip for ip in row["fixed_ips"] if any(_same(ip, item) for item in wanted)]
        fresh = [item for item in wanted if not any(_same(ip, item) for ip in row["fixed_ips"])]
        made = self.state.allocate(row["network_id"], fresh, row["id"])
        self.state.release(ip for ip in row["fixed_ips"] if ip not in kept)
        row["fixed_ips"] = kept + made


def _same(have: Row, wanted: Any) -> bool:
    """True when a fixed IP of a port satisfies an entry of the request."""
    return isinstance(wanted, dict) and all(have.get(key) == value for key, value in wanted.items())
