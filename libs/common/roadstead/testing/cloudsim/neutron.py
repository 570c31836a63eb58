"""The simulated Neutron: error shape, lists and visibility; the resources live in its parts.

A caller sees the rows of its project (an administrator all of them), plus shared and external
networks. What it may not see is 404; what it sees but may not change is 403.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .base import ApiError, Ctx, JsonObject, Refused, Service, answer, route
from .ids import seconds_z
from .neutron_addressing import AddressError
from .neutron_fips import FloatingIps
from .neutron_foreign import change_by_somebody_else
from .neutron_groups import Groups
from .neutron_listing import select
from .neutron_misc import Misc, seed_external_network
from .neutron_networks import Networks
from .neutron_ports import Ports
from .neutron_qos import QosPolicies
from .neutron_quotas import Quotas
from .neutron_routers import Routers
from .neutron_rules import RuleError
from .neutron_state import NetworkState
from .neutron_subnets import Subnets
from .tables import Row, Table
from .wire import Response

if TYPE_CHECKING:
    from .cloud import Cloud

KINDS = {
    400: "HTTPBadRequest", 403: "PolicyNotAuthorized", 404: "HTTPNotFound", 405: "HTTPMethodNotAllowed",
    409: "Conflict", 501: "HTTPNotImplemented", 503: "ServiceUnavailable",
}  # fmt: skip


class Neutron(Service):
    """Networks, addresses, routers and security groups of the simulated cloud."""

    name = "network"
    prefix = "network"

    def __init__(self, cloud: Cloud) -> None:
        self.state = NetworkState(cloud.ids)
        super().__init__(cloud)
        self.ports_part = Ports(self)
        for part in (
            Networks(self), Subnets(self), self.ports_part, Routers(self), FloatingIps(self), Groups(self),
            QosPolicies(self), Quotas(self), Misc(self),
        ):  # fmt: skip
            self.include(part)

    def seed(self) -> None:
        seed_external_network(self)

    def dispatch(self, ctx: Ctx, path: str) -> Response:
        try:
            return super().dispatch(ctx, path)
        except AddressError as error:
            raise self.error(error.status, error.message, error.kind) from None
        except RuleError as error:
            raise self.error(400, error.message, error.kind) from None

    # -------------------------------------------------------------- errors

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        word = kind or KINDS.get(status, "HTTPInternalServerError")
        return ApiError(status, {"NeutronError": {"type": word, "message": message, "detail": ""}})

    def policy_error(self, rule: str) -> ApiError:
        """`rule` may name several rules joined by " and "."""
        names = [f"rule:{name}" for name in rule.split(" and ")]
        text = names[0] if len(names) == 1 else f"({' and '.join(names)})"
        return self.error(403, f"{text} is disallowed by policy")

    def malformed_body(self) -> ApiError:
        return self.error(400, "Malformed request body: Invalid JSON.", "MalformedRequestBody")

    def missing_root(self, root: str) -> ApiError:
        return self.error(400, f"Unable to find '{root}' in request body")

    def missing_field(self, key: str) -> ApiError:
        return self.error(400, f"Failed to parse request. Required attribute '{key}' not specified")

    def invalid_field(self, key: str, value: Any, reason: str) -> ApiError:
        return self.error(400, f"Invalid input for {key}. Reason: {reason}.")

    def unknown_fields(self, names: Iterable[str]) -> ApiError:
        listed = ", ".join(f"'{name}'" for name in names)
        return self.error(400, f"Unrecognized attribute(s) {listed}")

    # ---------------------------------------------------------- visibility

    def visible_network(self, ctx: Ctx, row: Row) -> bool:
        """True when the caller may read the network."""
        return ctx.owns(row["project_id"]) or row["shared"] or row["router:external"]

    def visible_subnet(self, ctx: Ctx, row: Row) -> bool:
        """True when the caller may read the subnet."""
        network = self.state.networks.get(row["network_id"])
        return ctx.owns(row["project_id"]) or bool(network and network["shared"])

    def visible_own(self, ctx: Ctx, row: Row) -> bool:
        """True when the row is the caller's."""
        return ctx.owns(row["project_id"])

    def find(
        self,
        ctx: Ctx,
        table: Table,
        row_id: Any,
        error: tuple[str, str],
        visible: Callable[[Ctx, Row], bool] | None = None,
    ) -> Row:
        """Return a row the caller sees; else 404 of the kind and text in `error`."""
        row = table.get(row_id)
        if row is None or not (visible or self.visible_own)(ctx, row):
            raise self.error(404, error[1].format(row_id), error[0])
        return row

    def require_member(self, ctx: Ctx, rule: str) -> None:
        """Refuse callers that may only read."""
        ctx.require(ctx.is_admin or ctx.has_role("member"), rule)

    def project_for(self, ctx: Ctx, body: JsonObject, rule: str) -> str:
        """Return the project of a new object; only an administrator may name another one."""
        wanted = str(body.get("project_id") or body.get("tenant_id") or ctx.project_id)
        ctx.require(wanted == ctx.project_id or ctx.is_admin, rule)
        return wanted

    # ------------------------------------------------------ shapes of rows

    def listing(
        self,
        ctx: Ctx,
        plural: str,
        table: Table,
        show: Callable[[Ctx, Row], JsonObject],
        visible: Callable[[Ctx, Row], bool] | None = None,
    ) -> Response:
        """Answer a list: visible rows that pass the query's filters, one page of them."""
        return answer(select(ctx, plural, table, show, visible or self.visible_own))

    def shown(self, ctx: Ctx, row: Row, admin_only: Iterable[str] = ()) -> JsonObject:
        """Return the row as a reply shows it: without hidden keys, cut to the query's `fields`."""
        made = {key: value for key, value in row.items() if key[0] != "_"}
        if not ctx.is_admin:
            for key in admin_only:
                made.pop(key, None)
        return made

    def touch(self, row: Row) -> None:
        """Note a change in revision and time."""
        row["revision_number"] += 1
        row["updated_at"] = seconds_z(self.cloud.now)

    def check_quota(self, project_id: str, resource: str, used: int, more: int = 1) -> None:
        """Refuse (409 OverQuota) when `more` objects exceed the project's limit; -1 is no limit."""
        limit = self.limit(project_id, resource)
        if 0 <= limit < used + more:
            raise self.error(409, f"Quota exceeded for resources: ['{resource}'].", "OverQuota")

    def limit(self, project_id: str, resource: str) -> int:
        """Return the project's limit of a resource."""
        own = self.state.quotas.get(project_id, {})
        return own.get(resource, self.cloud.settings.quota_network.get(resource, -1))

    # -------------------------------------------------- for other services

    def port(self, port_id: str) -> Row | None:
        """Return the raw port."""
        return self.state.ports.get(port_id)

    def network(self, network_id: str) -> Row | None:
        """Return the raw network."""
        return self.state.networks.get(network_id)

    def subnet(self, subnet_id: str) -> Row | None:
        """Return the raw subnet."""
        return self.state.subnets.get(subnet_id)

    def ports_of(self, device_id: str) -> list[Row]:
        """Return the raw ports of a device."""
        return self.state.ports.where("device_id", device_id) if device_id else []

    def networks_for_server(self, project_id: str) -> list[Row]:
        """Return the networks a server gets when it names none: the project's own and shared ones."""
        own = self.state.networks.where("project_id", project_id)
        return [n for n in own if not n["router:external"]] + [
            n for n in self.state.networks if n["shared"] and n["project_id"] != project_id
        ]

    def port_create_for_server(
        self,
        network_id: str,
        project_id: str,
        server_id: str,
        host: str,
        fixed_ip: str | None = None,
        security_groups: Iterable[str] = (),
    ) -> Row:
        """Make and bind a port on behalf of Nova; Refused when Neutron would refuse it."""
        network = self.state.networks.get(network_id)
        if network is None:
            raise Refused("not_found", f"Network {network_id} could not be found.")
        try:
            self.check_quota(project_id, "port", len(self.state.ports.where("project_id", project_id)))
        except ApiError as error:
            raise Refused("quota", error.body["NeutronError"]["message"]) from None
        groups = self.ports_part.groups_for_server(project_id, security_groups)
        wanted = [{"ip_address": fixed_ip}] if fixed_ip else None
        try:
            port = self.state.add_port(
                self.cloud.now, network_id, project_id, wanted, security_groups=groups, _by_server=True
            )
        except AddressError as error:
            raise Refused("conflict" if error.status == 409 else "invalid", error.message) from None
        self.ports_part.bind(port, server_id, host)
        return port

    def port_bind(self, port_id: str, server_id: str, host: str, security_groups: Iterable[str] = ()) -> None:
        """Give a port to a server; it turns ACTIVE after `port_up`."""
        port = self.state.ports.get(port_id)
        if port is None:
            raise Refused("not_found", f"Port {port_id} could not be found.")
        names = list(security_groups)
        if names:
            self.state.set_groups(port, self.ports_part.groups_for_server(port["project_id"], names))
        self.ports_part.bind(port, server_id, host)

    def port_unbind(self, port_id: str) -> None:
        """Take a port from its server: DOWN, no device, no host; silent when it is gone."""
        port = self.state.ports.get(port_id)
        if port is not None:
            self.ports_part.unbind(port)

    def port_delete_for_server(self, port_id: str) -> None:
        """Remove a port that Nova made; silent when it is gone."""
        port = self.state.ports.get(port_id)
        if port is not None:
            self.state.drop_port(port)

    def port_security_groups(self, port_id: str) -> list[str]:
        """Return the names of a port's security groups."""
        port = self.state.ports.get(port_id)
        found = [self.state.groups.get(group) for group in port["security_groups"]] if port else []
        return [group["name"] for group in found if group is not None]

    def floating_of(self, port_id: str) -> list[tuple[str, str]]:
        """Return (fixed address, floating address) of every floating IP on the port."""
        rows = self.state.floating_ips.where("port_id", port_id)
        return [(row["fixed_ip_address"], row["floating_ip_address"]) for row in rows]

    def vip_port_create(
        self, subnet_id: str, address: str | None, project_id: str, name: str, owner: str, device_id: str
    ) -> Row:
        """Make the VIP port of a load balancer; Refused when Neutron would refuse it."""
        subnet = self.state.subnets.get(subnet_id)
        if subnet is None:
            raise Refused("not_found", f"Subnet {subnet_id} could not be found.")
        try:
            self.check_quota(project_id, "port", len(self.state.ports.where("project_id", project_id)))
        except ApiError as error:
            raise Refused("quota", error.body["NeutronError"]["message"]) from None
        wanted: JsonObject = {"subnet_id": subnet_id}
        if address:
            wanted["ip_address"] = address
        try:
            return self.state.add_port(
                self.cloud.now, subnet["network_id"], project_id, [wanted],
                name=name, device_owner=owner, device_id=device_id, admin_state_up=owner == "ovn-lb:vip",
            )  # fmt: skip
        except AddressError as error:
            raise Refused("conflict" if error.status == 409 else "invalid", error.message) from None

    # ---------------------------------------------------------------- rest

    def dump(self) -> dict[str, list[JsonObject]]:
        state = self.state
        tables = {
            "networks": state.networks, "subnets": state.subnets, "ports": state.ports,
            "routers": state.routers, "floating_ips": state.floating_ips, "security_groups": state.groups,
        }  # fmt: skip
        return {
            kind: [
                {
                    "id": row["id"],
                    "name": row.get("name", row.get("floating_ip_address", "")),
                    "project_id": row["project_id"],
                }
                for row in table
            ]
            for kind, table in tables.items()
        }

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        return change_by_somebody_else(self, verb, object_id, values)

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        base = f"{self.cloud.settings.base_url.rstrip('/')}/network/v2.0/"
        document = {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": base}]}
        return answer({"versions": [document]})

    @route("GET", "/v2.0", auth=False)
    def version(self, ctx: Ctx) -> Response:
        base = f"{self.cloud.settings.base_url.rstrip('/')}/network/v2.0"
        names = ("networks", "subnets", "ports", "routers", "floatingips", "security-groups", "extensions")
        return answer(
            {
                "resources": [
                    {
                        "name": name.rstrip("s"),
                        "collection": name,
                        "links": [{"rel": "self", "href": f"{base}/{name}"}],
                    }
                    for name in names
                ]
            }
        )
