"""Floating IPs: allocation from an external network and association with a port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import ApiError, Ctx, JsonObject, answer, nothing, route
from .ids import seconds_z
from .neutron_networks import NOT_FOUND as NETWORK_NOT_FOUND
from .neutron_ports import NOT_FOUND as PORT_NOT_FOUND
from .neutron_state import FLOATING_IP
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

WRITABLE = {"port_id", "fixed_ip_address", "description", "qos_policy_id", "distributed"}
CREATABLE = WRITABLE | {
    "project_id", "tenant_id", "floating_network_id", "floating_ip_address", "subnet_id", "dns_name",
    "dns_domain", "tags",
}  # fmt: skip
NOT_FOUND = ("FloatingIPNotFound", "Floating IP {} could not be found")


class FloatingIps:
    """The collection /v2.0/floatingips."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/floatingips")
    def index(self, ctx: Ctx) -> Response:
        return self.neutron.listing(ctx, "floatingips", self.state.floating_ips, self.show)

    @route("GET", "/v2.0/floatingips/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"floatingip": self.show(ctx, self._find(ctx))})

    @route("POST", "/v2.0/floatingips")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("floatingip")
        checked(ctx, body, CREATABLE)
        self.neutron.require_member(ctx, "create_floatingip")
        project = self.neutron.project_for(ctx, body, "create_floatingip")
        network_id = ctx.text(body, "floating_network_id", required=True)
        network = self.neutron.find(
            ctx, self.state.networks, network_id, NETWORK_NOT_FOUND, self.neutron.visible_network
        )
        address = ctx.text(body, "floating_ip_address")
        ctx.require(
            address is None or ctx.is_admin, "create_floatingip and create_floatingip:floating_ip_address"
        )
        self.neutron.check_quota(
            project, "floatingip", len(self.state.floating_ips.where("project_id", project))
        )
        if not network["router:external"]:
            raise self._bad(f"Network {network_id} is not a valid external network")
        subnets = [
            s for s in self.state.subnets.where("network_id", network["id"])
            if s["ip_version"] == 4 and body.get("subnet_id") in (None, s["id"])
        ]  # fmt: skip
        if not subnets:
            raise self._bad(f"Network {network_id} does not contain any IPv4 subnet")
        floating_id = self.neutron.cloud.ids.uuid()
        wanted: JsonObject = {"ip_address": address} if address else {"subnet_id": subnets[0]["id"]}
        found = self._association(ctx, body, network["id"], project) if body.get("port_id") else None
        now = seconds_z(ctx.now)
        row: Row = {
            "id": floating_id, "tenant_id": project, "project_id": project, "floating_ip_address": "",
            "floating_network_id": network["id"], "router_id": None, "port_id": None,
            "fixed_ip_address": None, "status": "DOWN", "description": ctx.text(body, "description", "") or "",
            "dns_domain": "", "dns_name": "", "port_details": None, "port_forwardings": [],
            "qos_network_policy_id": None, "qos_policy_id": None, "tags": [],
            "created_at": now, "updated_at": now, "revision_number": 0,
        }  # fmt: skip
        port = self.state.add_port(
            ctx.now,
            network["id"],
            "",
            [wanted],
            device_owner=FLOATING_IP,
            device_id=floating_id,
            status="N/A",
        )
        row["floating_ip_address"] = port["fixed_ips"][0]["ip_address"]
        if found is not None:
            try:
                self._refuse_second(row, found)
            except ApiError:
                self.state.drop_port(port)
                raise
        self.state.floating_ips.add(row)
        if found is not None:
            self._join(row, found)
        return answer({"floatingip": self.show(ctx, row)}, 201)

    @route("PUT", "/v2.0/floatingips/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "update_floatingip")
        body = ctx.body("floatingip")
        checked(ctx, body, WRITABLE)
        if body.get("port_id"):
            found = self._association(ctx, body, row["floating_network_id"], row["project_id"])
            self._refuse_second(row, found)
            self._join(row, found)
        elif "port_id" in body or not body:
            # An update that names no port takes the address off its port.
            self.state.disassociate(row)
        if "description" in body:
            self.state.floating_ips.change(row, description=body["description"] or "")
        self.neutron.touch(row)
        return answer({"floatingip": self.show(ctx, row)})

    @route("DELETE", "/v2.0/floatingips/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "delete_floatingip")
        for port in self.state.ports.where("device_id", row["id"]):
            self.state.drop_port(port)
        self.state.floating_ips.remove(row["id"])
        return nothing()

    # ------------------------------------------------------------- pieces

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the floating IP with the details of its port."""
        made = self.neutron.shown(ctx, row)
        port = self.state.ports.get(row["port_id"]) if row["port_id"] else None
        if port is not None:
            keys = (
                "name",
                "network_id",
                "mac_address",
                "admin_state_up",
                "status",
                "device_id",
                "device_owner",
            )
            made["port_details"] = {key: port[key] for key in keys}
        return made

    def _find(self, ctx: Ctx) -> Row:
        return self.neutron.find(ctx, self.state.floating_ips, ctx.params["id"], NOT_FOUND)

    def _changeable(self, ctx: Ctx, rule: str) -> Row:
        row = self._find(ctx)
        self.neutron.require_member(ctx, rule)
        return row

    def _bad(self, text: str) -> Exception:
        return self.neutron.error(400, f"Bad floatingip request: {text}.", "BadRequest")

    def _association(
        self, ctx: Ctx, body: JsonObject, network_id: str, project_id: str
    ) -> tuple[Row, Row, str]:
        """Return (port, router, fixed address) for a request; 404 or 400 when they cannot be joined."""
        port = self.neutron.find(ctx, self.state.ports, body["port_id"], PORT_NOT_FOUND)
        if port["project_id"] != project_id and not ctx.is_admin:
            raise self._bad(
                f"Cannot process floating IP association with Port {port['id']}, since that port is owned by "
                "a different project"
            )
        fixed = [ip for ip in port["fixed_ips"] if ":" not in ip["ip_address"]]
        wanted: Any = body.get("fixed_ip_address")
        if wanted is not None:
            fixed = [ip for ip in fixed if ip["ip_address"] == wanted]
            if not fixed:
                raise self._bad(f"Port {port['id']} does not have fixed ip {wanted}")
        if not fixed:
            raise self._bad(f"Cannot add floating IP to port {port['id']} that has no fixed IPv4 addresses")
        if len(fixed) > 1:
            raise self._bad(
                f"Port {port['id']} has multiple fixed IPv4 addresses.  Must provide a specific IPv4 address "
                "when assigning a floating IP"
            )
        subnet_id, address = fixed[0]["subnet_id"], fixed[0]["ip_address"]
        router = self.state.router_towards(subnet_id, network_id)
        if router is None:
            raise self.neutron.error(
                404,
                f"External network {network_id} is not reachable from subnet {subnet_id}.  Therefore, cannot "
                f"associate Port {port['id']} with a Floating IP.",
                "ExternalGatewayForFloatingIPNotFound",
            )
        return port, router, address

    def _refuse_second(self, row: Row, found: tuple[Row, Row, str]) -> None:
        port, _, fixed = found
        address = row["floating_ip_address"]
        for other in self.state.floating_ips.where("port_id", port["id"]):
            if other["id"] != row["id"] and other["fixed_ip_address"] == fixed:
                raise self.neutron.error(
                    409,
                    f"Cannot associate floating IP {address} ({row['id']}) with port {port['id']} using fixed "
                    f"IP {fixed}, as that fixed IP already has a floating IP on external network "
                    f"{row['floating_network_id']}.",
                    "FloatingIPPortAlreadyAssociated",
                )

    def _join(self, row: Row, found: tuple[Row, Row, str]) -> None:
        port, router, address = found
        self.state.floating_ips.change(
            row, port_id=port["id"], router_id=router["id"], fixed_ip_address=address, status="ACTIVE"
        )
