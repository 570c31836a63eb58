"""Small read-only corners of Neutron, tags of every resource, and the seeded external network."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

from .base import Ctx, JsonObject, answer, nothing, route
from .neutron_addressing import Pool, usable_range
from .neutron_fips import NOT_FOUND as FLOATING_IP_NOT_FOUND
from .neutron_networks import NOT_FOUND as NETWORK_NOT_FOUND
from .neutron_networks import Networks
from .neutron_ports import GROUP_NOT_FOUND
from .neutron_ports import NOT_FOUND as PORT_NOT_FOUND
from .neutron_qos import EXTENSION as QOS
from .neutron_routers import NOT_FOUND as ROUTER_NOT_FOUND
from .neutron_subnets import NOT_FOUND as SUBNET_NOT_FOUND
from .neutron_subnets import Subnets
from .seeds import admin_project_id
from .tables import Row, Table
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

EXTENSIONS = (
    "address-scope", "allowed-address-pairs", "availability_zone", "binding", "dns-integration",
    "ext-gw-mode", "external-net", "extra_dhcp_opt", "extraroute", "filter-validation",
    "fip-port-details", "floatingip-pools", "multi-provider", "net-mtu", "net-mtu-writable",
    "network-ip-availability", "network_availability_zone", "pagination", "port-security",
    "project-id", "provider", "quota-check-limit", "quota_details", "quotas", "router",
    "router_availability_zone", "security-group", "shared-security-groups", "sorting",
    "standard-attr-description", "standard-attr-revisions", "standard-attr-tag",
    "standard-attr-timestamp", "stateful-security-group", "subnet_allocation",
)  # fmt: skip
EXTERNAL_CIDR = "203.0.113.0/24"


def seed_external_network(neutron: Neutron) -> None:
    """Make the network `external` with its subnet, owned by the cloud administrator's project."""
    project = admin_project_id(neutron.cloud)
    networks, subnets = Networks(neutron), Subnets(neutron)
    segment = {
        "provider:network_type": "flat",
        "provider:physical_network": "external",
        "provider:segmentation_id": None,
    }
    network = networks.make(project, "external", [segment], external=True, mtu=1500)
    subnets.make(
        network, "external", EXTERNAL_CIDR, 4, gateway="203.0.113.1", enable_dhcp=False,
        pools=[{"start": "203.0.113.10", "end": "203.0.113.250"}],
    )  # fmt: skip


class Misc:
    """Extensions, availability zones, agents, address use, tags."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/extensions", auth=False)
    def extensions(self, ctx: Ctx) -> Response:
        return answer({"extensions": [_extension(alias) for alias in self._aliases()]})

    @route("GET", "/v2.0/extensions/{alias}", auth=False)
    def extension(self, ctx: Ctx) -> Response:
        alias = ctx.params["alias"]
        if alias not in self._aliases():
            raise self.neutron.error(404, f"Extension with alias {alias} does not exist", "HTTPNotFound")
        return answer({"extension": _extension(alias)})

    @route("GET", "/v2.0/availability_zones")
    def zones(self, ctx: Ctx) -> Response:
        rows = [{"name": "nova", "resource": kind, "state": "available"} for kind in ("network", "router")]
        return answer({"availability_zones": rows})

    @route("GET", "/v2.0/agents")
    def agents(self, ctx: Ctx) -> Response:
        if not ctx.is_admin:
            return answer({"agents": []})
        rows = [
            {
                "id": f"agent-{host}", "agent_type": "OVN Controller agent", "binary": "ovn-controller",
                "host": host, "alive": True, "admin_state_up": True, "availability_zone": "",
            }
            for host in self.neutron.cloud.settings.compute_hosts
        ]  # fmt: skip
        return answer({"agents": rows})

    @route("GET", "/v2.0/network-ip-availabilities")
    def availabilities(self, ctx: Ctx) -> Response:
        rows = [self._availability(n) for n in self.state.networks if self.neutron.visible_network(ctx, n)]
        return answer({"network_ip_availabilities": rows})

    @route("GET", "/v2.0/network-ip-availabilities/{id}")
    def availability(self, ctx: Ctx) -> Response:
        row = self.neutron.find(
            ctx, self.state.networks, ctx.params["id"], NETWORK_NOT_FOUND, self.neutron.visible_network
        )
        return answer({"network_ip_availability": self._availability(row)})

    @route("GET", "/v2.0/{kind}/{id}/tags")
    def tags(self, ctx: Ctx) -> Response:
        return answer({"tags": self._tagged(ctx)["tags"]})

    @route("PUT", "/v2.0/{kind}/{id}/tags")
    def replace_tags(self, ctx: Ctx) -> Response:
        row = self._tagged(ctx)
        self.neutron.require_member(ctx, f"update_{ctx.params['kind']}:tags")
        value = ctx.json()
        tags: Any = value.get("tags") if isinstance(value, dict) else None
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise self.neutron.invalid_field("tags", tags, f"'{tags}' is not a list of strings")
        row["tags"] = sorted(set(tags))
        return answer({"tags": row["tags"]})

    @route("DELETE", "/v2.0/{kind}/{id}/tags")
    def delete_tags(self, ctx: Ctx) -> Response:
        row = self._tagged(ctx)
        self.neutron.require_member(ctx, f"delete_{ctx.params['kind']}:tags")
        row["tags"] = []
        return nothing()

    def _aliases(self) -> tuple[str, ...]:
        return (*EXTENSIONS, QOS) if self.neutron.cloud.settings.qos_policies else EXTENSIONS

    def _tagged(self, ctx: Ctx) -> Row:
        kinds: dict[str, tuple[Table, tuple[str, str]]] = {
            "networks": (self.state.networks, NETWORK_NOT_FOUND),
            "subnets": (self.state.subnets, SUBNET_NOT_FOUND),
            "ports": (self.state.ports, PORT_NOT_FOUND),
            "routers": (self.state.routers, ROUTER_NOT_FOUND),
            "floatingips": (self.state.floating_ips, FLOATING_IP_NOT_FOUND),
            "security-groups": (self.state.groups, GROUP_NOT_FOUND),
        }
        found = kinds.get(ctx.params["kind"])
        if found is None:
            raise self.neutron.error(404, "The resource could not be found.")
        return self.neutron.find(ctx, found[0], ctx.params["id"], found[1])

    def _availability(self, network: Row) -> JsonObject:
        rows = []
        for subnet in self.state.subnets.where("network_id", network["id"]):
            pools = [Pool(ip_address(p["start"]), ip_address(p["end"])) for p in subnet["allocation_pools"]]
            total = sum(p.size() for p in pools) or usable_range(ip_network(subnet["cidr"])).size()
            rows.append(
                {
                    "subnet_id": subnet["id"], "subnet_name": subnet["name"], "cidr": subnet["cidr"],
                    "ip_version": subnet["ip_version"], "total_ips": total,
                    "used_ips": len(self.state.taken(subnet["id"])),
                }
            )  # fmt: skip
        return {
            "network_id": network["id"], "network_name": network["name"],
            "tenant_id": network["project_id"], "project_id": network["project_id"],
            "total_ips": sum(r["total_ips"] for r in rows), "used_ips": sum(r["used_ips"] for r in rows),
            "subnet_ip_availability": rows,
        }  # fmt: skip


def _extension(alias: str) -> JsonObject:
    return {
        "alias": alias, "name": alias.replace("-", " ").title(), "description": alias, "links": [],
        "updated": "2020-01-01T00:00:00-00:00",
    }  # fmt: skip
