"""Subnets: CIDR, gateway, allocation pools, DNS servers and host routes."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

from . import neutron_addressing as addressing
from .base import Ctx, JsonObject, answer, nothing, route
from .ids import seconds_z
from .neutron_addressing import Address, Pool
from .neutron_networks import NOT_FOUND as NETWORK_NOT_FOUND
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

WRITABLE = {
    "name", "description", "enable_dhcp", "gateway_ip", "allocation_pools", "dns_nameservers",
    "host_routes", "service_types", "dns_publish_fixed_ip",
}  # fmt: skip
CREATABLE = WRITABLE | {
    "project_id", "tenant_id", "network_id", "ip_version", "cidr", "ipv6_address_mode", "ipv6_ra_mode",
    "subnetpool_id", "prefixlen", "use_default_subnetpool", "segment_id",
}  # fmt: skip
NOT_FOUND = ("SubnetNotFound", "Subnet {} could not be found.")


class Subnets:
    """The collection /v2.0/subnets."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/subnets")
    def index(self, ctx: Ctx) -> Response:
        return self.neutron.listing(
            ctx, "subnets", self.state.subnets, self.show, self.neutron.visible_subnet
        )

    @route("GET", "/v2.0/subnets/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"subnet": self.show(ctx, self._find(ctx))})

    @route("POST", "/v2.0/subnets")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("subnet")
        checked(ctx, body, CREATABLE)
        network_id = ctx.text(body, "network_id", required=True)
        network = self.neutron.find(
            ctx, self.state.networks, network_id, NETWORK_NOT_FOUND, self.neutron.visible_network
        )
        self.neutron.require_member(ctx, "create_subnet")
        ctx.require(ctx.owns(network["project_id"]), "create_subnet")
        if body.get("cidr") is None:
            raise self.neutron.error(
                400,
                "Bad subnets request: a subnetpool must be specified in the absence of a cidr.",
                "BadRequest",
            )
        version = ctx.integer(body, "ip_version", 4)
        if version not in (4, 6):
            raise self.neutron.invalid_field("ip_version", version, f"'{version}' is not in [4, 6]")
        project = network["project_id"]
        self.neutron.check_quota(project, "subnet", len(self.state.subnets.where("project_id", project)))
        row = self.make(
            network,
            ctx.text(body, "name", "") or "",
            body["cidr"],
            version,
            pools=body.get("allocation_pools"),
            gateway=body.get("gateway_ip", "") if "gateway_ip" in body else "",
            description=ctx.text(body, "description", "") or "",
            enable_dhcp=ctx.flag(body, "enable_dhcp", True),
        )
        row["dns_nameservers"] = self._servers(body.get("dns_nameservers"))
        row["host_routes"] = self._routes(body.get("host_routes"))
        return answer({"subnet": self.show(ctx, row)}, 201)

    @route("PUT", "/v2.0/subnets/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "update_subnet")
        body = ctx.body("subnet")
        checked(ctx, body, WRITABLE)
        changes: JsonObject = dict(body)
        if "dns_nameservers" in body:
            changes["dns_nameservers"] = self._servers(body["dns_nameservers"])
        if "host_routes" in body:
            changes["host_routes"] = self._routes(body["host_routes"])
        pools = [Pool(ip_address(p["start"]), ip_address(p["end"])) for p in row["allocation_pools"]]
        if "allocation_pools" in body:
            pools = addressing.check_pools(body["allocation_pools"], ip_network(row["cidr"]))
            changes["allocation_pools"] = [pool.as_json() for pool in pools]
        if "gateway_ip" in body and body["gateway_ip"] != row["gateway_ip"]:
            self._check_gateway_change(row, body["gateway_ip"], pools)
        self.state.subnets.change(row, **changes)
        self.neutron.touch(row)
        return answer({"subnet": self.show(ctx, row)})

    @route("DELETE", "/v2.0/subnets/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "delete_subnet")
        if self.state.taken(row["id"]):
            raise self.neutron.error(
                409,
                f"Unable to complete operation on subnet {row['id']}: One or more ports have an IP allocation "
                "from this subnet.",
                "SubnetInUse",
            )
        self.state.subnets.remove(row["id"])
        network = self.state.networks.get(row["network_id"])
        if network is not None:
            network["subnets"].remove(row["id"])
        return nothing()

    # ------------------------------------------------------------- pieces

    def make(
        self,
        network: Row,
        name: str,
        cidr: Any,
        version: int,
        *,
        pools: Any = None,
        gateway: str | None = "",
        description: str = "",
        enable_dhcp: bool = True,
    ) -> Row:
        """Store a subnet; `gateway` "" means the first host, None means none. Raises AddressError."""
        net = addressing.parse_network(cidr, version)
        addressing.check_no_overlap(net, self.state.cidrs_of(network["id"]), network["id"])
        door: Address | None = addressing.first_host(net)
        if gateway is None:
            door = None
        elif gateway:
            door = addressing.parse_address(gateway, "gateway_ip")
        if pools is None:
            made = addressing.default_pools(net, door)
        else:
            made = addressing.check_pools(pools, net)
            addressing.check_gateway(door, made)
        now = seconds_z(self.neutron.cloud.now)
        row: Row = {
            "id": self.neutron.cloud.ids.uuid(), "name": name, "description": description,
            "tenant_id": network["project_id"], "project_id": network["project_id"],
            "network_id": network["id"], "ip_version": version, "cidr": str(net),
            "gateway_ip": str(door) if door else None, "enable_dhcp": enable_dhcp,
            "allocation_pools": [pool.as_json() for pool in made], "dns_nameservers": [],
            "host_routes": [], "ipv6_address_mode": None, "ipv6_ra_mode": None, "subnetpool_id": None,
            "segment_id": None, "service_types": [], "dns_publish_fixed_ip": False, "tags": [],
            "created_at": now, "updated_at": now, "revision_number": 0,
        }  # fmt: skip
        network["subnets"].append(row["id"])
        return self.state.subnets.add(row)

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the subnet as replies show it."""
        return self.neutron.shown(ctx, row)

    def _find(self, ctx: Ctx) -> Row:
        return self.neutron.find(
            ctx, self.state.subnets, ctx.params["id"], NOT_FOUND, self.neutron.visible_subnet
        )

    def _changeable(self, ctx: Ctx, rule: str) -> Row:
        row = self._find(ctx)
        ctx.require(ctx.owns(row["project_id"]), rule)
        self.neutron.require_member(ctx, rule)
        return row

    def _check_gateway_change(self, row: Row, gateway: Any, pools: list[Pool]) -> None:
        port_id = self.state.taken(row["id"]).get(row["gateway_ip"] or "")
        if port_id is not None:
            raise self.neutron.error(
                409,
                f"Current gateway ip {row['gateway_ip']} already in use by port {port_id}. Unable to update.",
                "GatewayIpInUse",
            )
        if gateway is not None:
            addressing.check_gateway(addressing.parse_address(gateway, "gateway_ip"), pools)

    def _servers(self, value: Any) -> list[str]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.neutron.invalid_field("dns_nameservers", value, f"'{value}' is not a list")
        servers = [str(addressing.parse_address(item, "dns_nameservers")) for item in value]
        if len(set(servers)) != len(servers):
            raise self.neutron.invalid_field(
                "dns_nameservers", value, f"Duplicate items in the list: {value}"
            )
        return servers

    def _routes(self, value: Any) -> list[JsonObject]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.neutron.invalid_field("host_routes", value, f"'{value}' is not a list")
        made = []
        for item in value:
            if not isinstance(item, dict) or set(item) != {"destination", "nexthop"}:
                raise self.neutron.invalid_field(
                    "host_routes", value, f"Invalid data format for hostroute: '{item}'"
                )
            try:
                destination = str(ip_network(str(item["destination"])))
            except ValueError:
                text = f"'{item['destination']}' is not a valid CIDR"
                raise self.neutron.invalid_field("host_routes", value, text) from None
            made.append(
                {
                    "destination": destination,
                    "nexthop": str(addressing.parse_address(item["nexthop"], "host_routes")),
                }
            )
        return made
