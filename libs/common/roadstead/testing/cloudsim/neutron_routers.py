"""Routers: the external gateway, interfaces to subnets and what forbids taking them away."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from .base import Ctx, JsonObject, answer, nothing, route
from .ids import seconds_z
from .neutron_networks import NOT_FOUND as NETWORK_NOT_FOUND
from .neutron_ports import NOT_FOUND as PORT_NOT_FOUND
from .neutron_state import ROUTER_GATEWAY, ROUTER_INTERFACE
from .neutron_subnets import NOT_FOUND as SUBNET_NOT_FOUND
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

ADMIN_ONLY = ("distributed", "ha")
WRITABLE = {"name", "description", "admin_state_up", "external_gateway_info", "routes", "distributed", "ha"}
CREATABLE = WRITABLE | {
    "project_id", "tenant_id", "availability_zone_hints", "flavor_id", "enable_ndp_proxy", "tags",
}  # fmt: skip
NOT_FOUND = ("RouterNotFound", "Router {} could not be found")


class Routers:
    """The collection /v2.0/routers and its interface actions."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/routers")
    def index(self, ctx: Ctx) -> Response:
        return self.neutron.listing(ctx, "routers", self.state.routers, self.show)

    @route("GET", "/v2.0/routers/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"router": self.show(ctx, self._find(ctx))})

    @route("POST", "/v2.0/routers")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("router")
        checked(ctx, body, CREATABLE)
        self.neutron.require_member(ctx, "create_router")
        project = self.neutron.project_for(ctx, body, "create_router")
        for key in ADMIN_ONLY:
            ctx.require(key not in body or ctx.is_admin, f"create_router and create_router:{key}")
        self.neutron.check_quota(project, "router", len(self.state.routers.where("project_id", project)))
        now = seconds_z(ctx.now)
        row: Row = {
            "id": self.neutron.cloud.ids.uuid(), "name": ctx.text(body, "name", "") or "",
            "description": ctx.text(body, "description", "") or "", "tenant_id": project,
            "project_id": project, "admin_state_up": ctx.flag(body, "admin_state_up", True),
            "status": "ACTIVE", "external_gateway_info": None, "external_gateways": [],
            "availability_zone_hints": [], "availability_zones": ["nova"], "routes": [], "flavor_id": None,
            "enable_ndp_proxy": None, "distributed": False, "ha": False, "tags": [],
            "created_at": now, "updated_at": now, "revision_number": 1,
        }  # fmt: skip
        gateway = ctx.mapping(body, "external_gateway_info")
        if gateway:
            self._connect(ctx, row, gateway)
        self.state.routers.add(row)
        return answer({"router": self.show(ctx, row)}, 201)

    @route("PUT", "/v2.0/routers/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "update_router")
        body = ctx.body("router")
        checked(ctx, body, WRITABLE)
        for key in ADMIN_ONLY:
            ctx.require(key not in body or ctx.is_admin, f"update_router and update_router:{key}")
        if "external_gateway_info" in body:
            self._regate(ctx, row, ctx.mapping(body, "external_gateway_info"))
        changes = {key: value for key, value in body.items() if key != "external_gateway_info"}
        self.state.routers.change(row, **changes)
        self.neutron.touch(row)
        return answer({"router": self.show(ctx, row)})

    @route("DELETE", "/v2.0/routers/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "delete_router")
        ports = self.state.interfaces(row["id"])
        if ports:
            attached = ", ".join(port["id"] for port in ports)
            raise self.neutron.error(
                409, f"Router {row['id']} has ports still attached: {attached}", "RouterInUse"
            )
        self._disconnect(row)
        self.state.routers.remove(row["id"])
        return nothing()

    @route("PUT", "/v2.0/routers/{id}/add_router_interface")
    def add_interface(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "add_router_interface")
        body = self._interface_body(ctx)
        if body.get("port_id"):
            port, subnet = self._interface_port(ctx, row, str(body["port_id"]))
        else:
            subnet = self.neutron.find(
                ctx, self.state.subnets, body["subnet_id"], SUBNET_NOT_FOUND, self.neutron.visible_subnet
            )
            if subnet["gateway_ip"] is None:
                raise self._bad("Subnet for router interface must have a gateway IP")
            self._refuse_overlap(row, subnet)
            port = self.state.add_port(
                ctx.now, subnet["network_id"], row["project_id"],
                [{"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}], status="ACTIVE",
            )  # fmt: skip
        self.state.ports.change(port, device_id=row["id"], device_owner=ROUTER_INTERFACE)
        port["status"] = "ACTIVE"
        self.neutron.touch(row)
        return answer(_interface(row, port, subnet["id"]))

    @route("PUT", "/v2.0/routers/{id}/remove_router_interface")
    def remove_interface(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "remove_router_interface")
        body = self._interface_body(ctx)
        port = self._attached(row, body)
        subnet_id = body.get("subnet_id") or port["fixed_ips"][0]["subnet_id"]
        if self._carries_floating_ip(row, port):
            raise self.neutron.error(
                409,
                f"Router interface for subnet {subnet_id} on router {row['id']} cannot be deleted, as it is "
                "required by one or more floating IPs.",
                "RouterInterfaceInUseByFloatingIP",
            )
        self.state.drop_port(port)
        self.neutron.touch(row)
        return answer(_interface(row, port, subnet_id))

    # ------------------------------------------------------------- pieces

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the router as replies show it."""
        return self.neutron.shown(ctx, row, ADMIN_ONLY)

    def _find(self, ctx: Ctx) -> Row:
        return self.neutron.find(ctx, self.state.routers, ctx.params["id"], NOT_FOUND)

    def _changeable(self, ctx: Ctx, rule: str) -> Row:
        row = self._find(ctx)
        self.neutron.require_member(ctx, rule)
        return row

    def _bad(self, text: str) -> Exception:
        return self.neutron.error(400, f"Bad router request: {text}.", "BadRequest")

    def _interface_body(self, ctx: Ctx) -> JsonObject:
        body = ctx.json()
        if not isinstance(body, dict) or not (body.get("subnet_id") or body.get("port_id")):
            raise self._bad("Either subnet_id or port_id must be specified")
        return body

    def _interface_port(self, ctx: Ctx, router: Row, port_id: str) -> tuple[Row, Row]:
        port = self.neutron.find(ctx, self.state.ports, port_id, PORT_NOT_FOUND)
        if port["device_id"]:
            raise self.neutron.error(
                409,
                f"Unable to complete operation on port {port_id} for network {port['network_id']}. Port "
                f"already has an attached device {port['device_id']}.",
                "PortInUse",
            )
        if not port["fixed_ips"]:
            raise self._bad("Router port must have at least one fixed IP")
        subnet = self.state.subnets.get(port["fixed_ips"][0]["subnet_id"])
        assert subnet is not None  # a subnet with an allocation cannot be deleted
        self._refuse_overlap(router, subnet)
        return port, subnet

    def _refuse_overlap(self, router: Row, subnet: Row) -> None:
        new = ip_network(subnet["cidr"])
        for port in self.state.ports.where("device_id", router["id"]):
            for item in port["fixed_ips"]:
                other = self.state.subnets.get(item["subnet_id"])
                if other is None:
                    continue
                have = ip_network(other["cidr"])
                if have.version == new.version and (have[0] in new or new[0] in have):
                    raise self._bad(
                        f"Cidr {subnet['cidr']} of subnet {subnet['id']} overlaps with cidr {other['cidr']} of "
                        f"subnet {other['id']}"
                    )

    def _attached(self, router: Row, body: JsonObject) -> Row:
        for port in self.state.interfaces(router["id"]):
            subnets = [item["subnet_id"] for item in port["fixed_ips"]]
            if body.get("port_id") in (None, port["id"]) and (
                body.get("subnet_id") is None or body["subnet_id"] in subnets
            ):
                return port
        if body.get("subnet_id"):
            raise self.neutron.error(
                404,
                f"Router {router['id']} has no interface on subnet {body['subnet_id']}",
                "RouterInterfaceNotFoundForSubnet",
            )
        raise self.neutron.error(
            404,
            f"Router {router['id']} does not have an interface with id {body['port_id']}",
            "RouterInterfaceNotFound",
        )

    def _carries_floating_ip(self, router: Row, port: Row) -> bool:
        subnets = {item["subnet_id"] for item in port["fixed_ips"]}
        for floating in self.state.floating_ips.where("router_id", router["id"]):
            inner = self.state.ports.get(floating["port_id"])
            if inner and any(
                item["ip_address"] == floating["fixed_ip_address"] and item["subnet_id"] in subnets
                for item in inner["fixed_ips"]
            ):
                return True
        return False

    def _connect(self, ctx: Ctx, row: Row, gateway: JsonObject) -> None:
        network_id = gateway.get("network_id")
        if network_id is None:
            raise self.neutron.invalid_field("external_gateway_info", gateway, "network_id is missing")
        network = self.neutron.find(
            ctx, self.state.networks, network_id, NETWORK_NOT_FOUND, self.neutron.visible_network
        )
        if not network["router:external"]:
            raise self._bad(f"Network {network_id} is not an external network")
        wanted: Any = gateway.get("external_fixed_ips") or None
        port = self.state.add_port(
            ctx.now, network["id"], "", wanted, device_owner=ROUTER_GATEWAY, device_id=row["id"],
            status="ACTIVE", port_security_enabled=False,
        )  # fmt: skip
        info = {
            "network_id": network["id"],
            "external_fixed_ips": [dict(item) for item in port["fixed_ips"]],
            "enable_snat": bool(gateway.get("enable_snat", True)),
            "qos_policy_id": None,
        }
        row["external_gateway_info"], row["external_gateways"] = info, [info]

    def _disconnect(self, row: Row) -> None:
        for port in self.state.ports.where("device_id", row["id"]):
            if port["device_owner"] == ROUTER_GATEWAY:
                self.state.drop_port(port)
        row["external_gateway_info"], row["external_gateways"] = None, []

    def _regate(self, ctx: Ctx, row: Row, gateway: JsonObject) -> None:
        have = row["external_gateway_info"]
        if have and gateway and have["network_id"] == gateway.get("network_id"):
            if "enable_snat" in gateway:
                have["enable_snat"] = bool(gateway["enable_snat"])
            return
        if have and self.state.floating_ips.where("router_id", row["id"]):
            raise self.neutron.error(
                409,
                f"Gateway cannot be updated for router {row['id']}, since a gateway to external network "
                f"{have['network_id']} is required by one or more floating IPs.",
                "RouterExternalGatewayInUseByFloatingIp",
            )
        self._disconnect(row)
        if gateway:
            self._connect(ctx, row, gateway)


def _interface(router: Row, port: Row, subnet_id: str) -> JsonObject:
    return {
        "id": router["id"], "tenant_id": router["project_id"], "project_id": router["project_id"],
        "port_id": port["id"], "network_id": port["network_id"], "subnet_id": subnet_id,
        "subnet_ids": [item["subnet_id"] for item in port["fixed_ips"]],
    }  # fmt: skip
