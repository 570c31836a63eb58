"""Load balancers: nested create, VIP, status tree, update and cascade delete."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from . import octavia_providers as providers
from .base import ApiError, Ctx, JsonObject, Refused, answer, nothing
from .ids import plain
from .octavia_routes import lbaas
from .octavia_state import ACTIVE, CREATING, ERROR
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .octavia import Octavia

WRITABLE = {"name", "description", "admin_state_up", "tags", "vip_qos_policy_id", "vip_sg_ids"}
CREATABLE = WRITABLE | {
    "vip_address", "vip_port_id", "vip_subnet_id", "vip_network_id", "additional_vips", "project_id",
    "tenant_id", "listeners", "pools", "provider", "flavor_id", "availability_zone",
}  # fmt: skip
RESOURCE = "Load Balancer"


class LoadBalancers:
    """The collection /lbaas/loadbalancers."""

    def __init__(self, octavia: Octavia) -> None:
        self.octavia = octavia
        self.state = octavia.state

    @lbaas("GET", "/loadbalancers")
    def index(self, ctx: Ctx) -> Response:
        return self.octavia.listing(ctx, "loadbalancers", self.state.lbs, self.show)

    @lbaas("GET", "/loadbalancers/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"loadbalancer": self.show(self._find(ctx))})

    @lbaas("POST", "/loadbalancers")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("loadbalancer")
        checked(ctx, body, CREATABLE)
        self.octavia.require_member(ctx)
        project = ctx.text(body, "project_id", ctx.project_id) or ctx.project_id
        ctx.require(ctx.owns(project), "os_load-balancer_api:loadbalancer:post")
        settings = self.octavia.cloud.settings
        provider = ctx.text(body, "provider", settings.lb_default_provider) or settings.lb_default_provider
        if provider not in settings.lb_providers:
            raise self.octavia.bad_request(f"Provider '{provider}' is not enabled.")
        listeners, pools = ctx.objects(body, "listeners"), ctx.objects(body, "pools")
        vip = self._vip(ctx, body)
        self.octavia.check_quota(project, "load_balancer", self.state.lbs, 1, RESOURCE)
        lb = self._new(ctx, body, project, provider)
        self._take_vip(lb, vip)
        try:
            self._build_tree(ctx, lb, listeners, pools)
        except ApiError:
            # The database forgets the load balancer, but nobody takes the VIP port away again.
            for part in self.state.parts_of(lb["id"]):
                self.state.forget(part)
            self.state.lbs.remove(lb["id"])
            if lb["_owns_port"] and not settings.refused_lb_leaves_vip_port:
                self.octavia.cloud.neutron.port_delete_for_server(lb["vip_port_id"])
            raise
        self.state.begin_build(lb)
        return answer({"loadbalancer": self.show(lb, full=True)}, 201)

    @lbaas("PUT", "/loadbalancers/{id}")
    def update(self, ctx: Ctx) -> Response:
        lb = self._find(ctx)
        self.octavia.require_member(ctx)
        body = ctx.body("loadbalancer")
        checked(ctx, body, WRITABLE)
        if lb["provisioning_status"] != ACTIVE:
            raise self._invalid_state(lb)
        self.state.lbs.change(lb, **{key: value for key, value in body.items() if value is not None})
        self.state.begin_change(lb)
        return answer({"loadbalancer": self.show(lb)})

    @lbaas("DELETE", "/loadbalancers/{id}")
    def delete(self, ctx: Ctx) -> Response:
        lb = self._find(ctx)
        self.octavia.require_member(ctx)
        cascade = bool(ctx.q_flag("cascade", False))
        children = self.state.listeners.where("_lb", lb["id"]) or self.state.pools.where("_lb", lb["id"])
        if children and not cascade:
            raise self.octavia.invalid(f"Cannot delete Load Balancer {lb['id']} - it has children")
        if lb["provisioning_status"] not in (ACTIVE, ERROR):
            raise self._invalid_state(lb)
        self.state.begin_delete(lb)
        return nothing()

    @lbaas("PUT", "/loadbalancers/{id}/failover")
    def failover(self, ctx: Ctx) -> Response:
        lb = self._find(ctx)
        ctx.require(ctx.is_admin, "os_load-balancer_api:loadbalancer:put_failover")
        if lb["provider"] == "ovn":
            self.octavia.refuse("ovn", "OVN provider does not support loadbalancer failover")
        if lb["provisioning_status"] not in (ACTIVE, ERROR):
            raise self._invalid_state(lb)
        self.state.begin_change(lb)
        return nothing(202)

    @lbaas("GET", "/loadbalancers/{id}/status")
    @lbaas("GET", "/loadbalancers/{id}/statuses")
    def status(self, ctx: Ctx) -> Response:
        lb = self._find(ctx)
        rows = [self._listener_status(row) for row in self.state.listeners.where("_lb", lb["id"])]
        return answer({"statuses": {"loadbalancer": {**_brief(lb), "listeners": rows}}})

    @lbaas("GET", "/loadbalancers/{id}/stats")
    def stats(self, ctx: Ctx) -> Response:
        self._find(ctx)
        keys = ("bytes_in", "bytes_out", "active_connections", "total_connections", "request_errors")
        return answer({"stats": dict.fromkeys(keys, 0)})

    # ---------------------------------------------------------------- VIP

    def _vip(self, ctx: Ctx, body: JsonObject) -> JsonObject:
        """Return port, subnet and address of the requested VIP; 400 when they do not fit."""
        neutron = self.octavia.cloud.neutron
        address = ctx.text(body, "vip_address")
        if body.get("vip_port_id"):
            port = neutron.port(str(body["vip_port_id"]))
            if port is None or not ctx.owns(port["project_id"]):
                raise self.octavia.bad_request(f"Port {body['vip_port_id']} not found.")
            if port["device_id"]:
                raise self.octavia.invalid(f"Port {port['id']} is already used by another service.")
            fixed = next(iter(port["fixed_ips"]), None)
            if fixed is None:
                raise self.octavia.invalid("VIP port's subnet could not be determined. Please specify either a "
                                           "VIP subnet or address.")  # fmt: skip
            return {
                "port": port,
                "subnet": neutron.subnet(fixed["subnet_id"]),
                "address": fixed["ip_address"],
            }
        subnet = None
        if body.get("vip_subnet_id"):
            subnet = neutron.subnet(str(body["vip_subnet_id"]))
            if subnet is None or not neutron.visible_subnet(ctx, subnet):
                raise self.octavia.bad_request(f"Subnet {body['vip_subnet_id']} not found.")
        elif body.get("vip_network_id"):
            subnet = self._subnet_of_network(ctx, str(body["vip_network_id"]), address)
        if subnet is None:
            raise self.octavia.invalid("VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.")
        return {"port": None, "subnet": subnet, "address": address}

    def _subnet_of_network(self, ctx: Ctx, network_id: str, address: str | None) -> Row:
        neutron = self.octavia.cloud.neutron
        network = neutron.network(network_id)
        if network is None or not neutron.visible_network(ctx, network):
            raise self.octavia.bad_request(f"Network {network_id} not found.")
        subnets = neutron.state.subnets.where("network_id", network_id)
        if address is not None:
            subnets = [s for s in subnets if ip_address(address) in ip_network(s["cidr"])]
            if not subnets:
                raise self.octavia.invalid(
                    "Supplied network does not contain a subnet for VIP address specified."
                )
        if not subnets:
            raise self.octavia.invalid("Supplied network does not contain a subnet.")
        return next((s for s in subnets if s["ip_version"] == 4), subnets[0])

    def _take_vip(self, lb: Row, vip: JsonObject) -> None:
        neutron, subnet, port = self.octavia.cloud.neutron, vip["subnet"], vip["port"]
        if port is None:
            mark = providers.vip_port(lb["provider"], lb["id"])
            try:
                port = neutron.vip_port_create(
                    subnet["id"], vip["address"], lb["project_id"], mark.name, mark.owner, f"lb-{lb['id']}"
                )
            except Refused as refusal:
                self.state.lbs.remove(lb["id"])
                raise self._vip_refused(lb["provider"], refusal) from None
            lb["_owns_port"] = True
        lb["vip_address"] = port["fixed_ips"][0]["ip_address"]
        lb["vip_subnet_id"], lb["vip_network_id"] = subnet["id"], subnet["network_id"]
        self.state.lbs.change(lb, vip_port_id=port["id"])

    def _vip_refused(self, provider: str, refusal: Refused) -> ApiError:
        if refusal.reason in ("conflict", "quota"):
            return self.octavia.error(409, f"The VIP IP address is already in use: {refusal.message}")
        return self.octavia.error(500, f"Provider '{provider}' reports error: {refusal.message}")

    # --------------------------------------------------------------- tree

    def _new(self, ctx: Ctx, body: JsonObject, project: str, provider: str) -> Row:
        row: Row = {
            "id": self.octavia.cloud.ids.uuid(), "name": ctx.text(body, "name", "") or "",
            "description": ctx.text(body, "description", "") or "", "provisioning_status": CREATING,
            "operating_status": "OFFLINE", "admin_state_up": ctx.flag(body, "admin_state_up", True),
            "project_id": project, "created_at": plain(ctx.now), "updated_at": None, "vip_address": None,
            "vip_port_id": None, "vip_subnet_id": None, "vip_network_id": None, "vip_sg_ids": [],
            "additional_vips": [], "provider": provider, "flavor_id": None, "vip_qos_policy_id": None,
            "tags": ctx.texts(body, "tags"), "availability_zone": None, "vip_vnic_type": "normal",
            "_owns_port": False,
        }  # fmt: skip
        return self.state.lbs.add(row)

    def _build_tree(self, ctx: Ctx, lb: Row, listeners: list[JsonObject], pools: list[JsonObject]) -> None:
        pools, referenced = self._lift_pools(listeners, pools)
        names = [pool.get("name") for pool in pools]
        if len(set(names)) != len(names):
            raise self.octavia.invalid(
                "Pool names must be unique when creating a fully populated loadbalancer."
            )
        for name in referenced:
            if name not in names:
                raise self.octavia.invalid(f"Pool '{name}' was referenced but no full definition was found.")
        self.octavia.check_quota(lb["project_id"], "pool", self.state.pools, len(pools), "Pool")
        ids: dict[str, str] = {}
        for pool in pools:
            for key in ("protocol", "lb_algorithm"):
                if key not in pool:
                    raise self.octavia.invalid(
                        f"Pool definition for '{pool.get('name')}' missing required attribute: {key}"
                    )
            ids[str(pool["name"])] = self.octavia.pools_part.make_nested(ctx, lb, pool)["id"]
        self.octavia.check_quota(
            lb["project_id"], "listener", self.state.listeners, len(listeners), "Listener"
        )
        for listener in listeners:
            default = listener.get("default_pool")
            pool_id = ids[str(default["name"])] if default else None
            self.octavia.listeners_part.make(ctx, lb, listener, pool_id)
        self.octavia.refuse(lb["provider"], providers.refuse_tree(lb["provider"], listeners, pools))

    def _lift_pools(
        self, listeners: list[JsonObject], pools: list[JsonObject]
    ) -> tuple[list[JsonObject], list[str]]:
        """Return (all full pool definitions, names of pools that listeners only refer to)."""
        lifted, referenced = list(pools), []
        for listener in listeners:
            default = listener.get("default_pool")
            if not default:
                continue
            if not default.get("name"):
                raise self.octavia.invalid(
                    "Pools must be named when creating a fully populated loadbalancer."
                )
            if set(default) - {"name"}:
                lifted.append(default)
            else:
                referenced.append(str(default["name"]))
        return lifted, referenced

    # ------------------------------------------------------------- shapes

    def show(self, lb: Row, full: bool = False) -> JsonObject:
        """Return the load balancer; with `full` its parts are spelled out, else only their ids."""
        made = self.octavia.shown(lb)
        listeners = self.state.listeners.where("_lb", lb["id"])
        pools = self.state.pools.where("_lb", lb["id"])
        if full:
            made["listeners"] = [self.octavia.listeners_part.show(row) for row in listeners]
            made["pools"] = [self.octavia.pools_part.show_full(row) for row in pools]
        else:
            made["listeners"] = [{"id": row["id"]} for row in listeners]
            made["pools"] = [{"id": row["id"]} for row in pools]
        return made

    def _listener_status(self, listener: Row) -> JsonObject:
        pool = self.state.pools.get(listener["default_pool_id"])
        return {**_brief(listener), "pools": [self._pool_status(pool)] if pool else []}

    def _pool_status(self, pool: Row) -> JsonObject:
        made: JsonObject = _brief(pool)
        monitor = self.state.monitor_of(pool["id"])
        if monitor is not None:
            made["health_monitor"] = {**_brief(monitor), "type": monitor["type"]}
        made["members"] = [
            {**_brief(row), "address": row["address"], "protocol_port": row["protocol_port"]}
            for row in self.state.members.where("_pool", pool["id"])
        ]
        return made

    def _find(self, ctx: Ctx) -> Row:
        return self.octavia.find(ctx, self.state.lbs, ctx.params["id"], RESOURCE)

    def _invalid_state(self, lb: Row) -> ApiError:
        return self.octavia.error(
            409, f"Invalid state {lb['provisioning_status']} of loadbalancer resource {lb['id']}"
        )


def _brief(row: Row) -> JsonObject:
    return {key: row[key] for key in ("id", "name", "operating_status", "provisioning_status")}
