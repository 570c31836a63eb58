"""Networks: tenant networks, provider attributes, one or more segments, in-use refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import policy
from .base import Ctx, JsonObject, answer, nothing, route
from .ids import seconds_z
from .neutron_state import VLAN_IDS
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

PROVIDER = ("provider:network_type", "provider:physical_network", "provider:segmentation_id")
CREATE_RULES = {
    "provider:network_type": policy.NEUTRON_CREATE_PROVIDER_TYPE,
    "provider:physical_network": policy.NEUTRON_CREATE_PROVIDER_PHYSICAL,
    "provider:segmentation_id": policy.NEUTRON_CREATE_PROVIDER_SEGMENT,
    "segments": policy.NEUTRON_CREATE_SEGMENTS,
}
GET_RULES = {
    "provider:network_type": policy.NEUTRON_GET_PROVIDER_TYPE,
    "provider:physical_network": policy.NEUTRON_GET_PROVIDER_PHYSICAL,
    "provider:segmentation_id": policy.NEUTRON_GET_PROVIDER_SEGMENT,
    "segments": policy.NEUTRON_GET_PROVIDER_SEGMENT,
}
ADMIN_ONLY_WRITES = ("shared", "router:external", "is_default")
WRITABLE = {
    "name", "description", "admin_state_up", "shared", "router:external", "is_default", "mtu",
    "port_security_enabled", "dns_domain", "qos_policy_id",
}  # fmt: skip
CREATABLE = WRITABLE | {
    "project_id", "tenant_id", "availability_zone_hints", "segments", "vlan_transparent", "ha", *PROVIDER,
}  # fmt: skip
NOT_FOUND = ("NetworkNotFound", "Network {} could not be found.")


class Networks:
    """The collection /v2.0/networks."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/networks")
    def index(self, ctx: Ctx) -> Response:
        return self.neutron.listing(
            ctx, "networks", self.state.networks, self.show, self.neutron.visible_network
        )

    @route("GET", "/v2.0/networks/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"network": self.show(ctx, self._find(ctx))})

    @route("POST", "/v2.0/networks")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("network")
        checked(ctx, body, CREATABLE)
        self.neutron.require_member(ctx, "create_network")
        project = self.neutron.project_for(ctx, body, "create_network")
        self._check_rules(ctx, body)
        name = ctx.text(body, "name", "") or ""
        self.neutron.check_quota(project, "network", len(self.state.networks.where("project_id", project)))
        segments = self._segments(ctx, body)
        self.state.default_group(ctx.now, project)
        row = self.make(
            project,
            name,
            segments,
            description=ctx.text(body, "description", "") or "",
            admin_state_up=ctx.flag(body, "admin_state_up", True),
            shared=ctx.flag(body, "shared"),
            external=ctx.flag(body, "router:external"),
            mtu=ctx.integer(body, "mtu", 1500 if body.get("router:external") else 1442, low=68) or 1442,
        )
        row["port_security_enabled"] = ctx.flag(body, "port_security_enabled", True)
        return answer({"network": self.show(ctx, row)}, 201)

    @route("PUT", "/v2.0/networks/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "update_network")
        body = ctx.body("network")
        checked(ctx, body, WRITABLE)
        for key in ADMIN_ONLY_WRITES:
            ctx.require(key not in body or ctx.is_admin, f"update_network and update_network:{key}")
        self.state.networks.change(row, **body)
        self.neutron.touch(row)
        return answer({"network": self.show(ctx, row)})

    @route("DELETE", "/v2.0/networks/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._changeable(ctx, "delete_network")
        used = [p["id"] for p in self.state.ports.where("network_id", row["id"])]
        if used:
            raise self.neutron.error(
                409,
                f"Unable to complete operation on network {row['id']}. There are one or more ports still in "
                f"use on the network, id for these ports is {','.join(sorted(used))}.",
                "NetworkInUse",
            )
        for subnet in self.state.subnets.where("network_id", row["id"]):
            self.state.subnets.remove(subnet["id"])
        self.state.networks.remove(row["id"])
        return nothing()

    # ------------------------------------------------------------- pieces

    def make(
        self,
        project_id: str,
        name: str,
        segments: list[JsonObject],
        *,
        description: str = "",
        admin_state_up: bool = True,
        shared: bool = False,
        external: bool = False,
        mtu: int = 1442,
    ) -> Row:
        """Store a network of these segments."""
        now = seconds_z(self.neutron.cloud.now)
        row: Row = {
            "id": self.neutron.cloud.ids.uuid(), "name": name, "description": description,
            "tenant_id": project_id, "project_id": project_id, "admin_state_up": admin_state_up,
            "mtu": mtu, "status": "ACTIVE", "subnets": [], "shared": shared, "router:external": external,
            "availability_zone_hints": [], "availability_zones": ["nova"], "ipv4_address_scope": None,
            "ipv6_address_scope": None, "port_security_enabled": True, "qos_policy_id": None,
            "dns_domain": "", "l2_adjacency": True, "vlan_transparent": None, "tags": [],
            "created_at": now, "updated_at": now, "revision_number": 1, "_segments": segments,
        }  # fmt: skip
        if external:
            row["is_default"] = False
        return self.state.networks.add(row)

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the network; provider attributes only for callers whose rules show them."""
        made = self.neutron.shown(ctx, row)
        segments = row["_segments"]
        if len(segments) == 1:
            for key in PROVIDER:
                if self._may(ctx, row, GET_RULES[key]):
                    made[key] = segments[0][key]
        elif self._may(ctx, row, GET_RULES["segments"]):
            made["segments"] = [dict(segment) for segment in segments]
        return made

    def _may(self, ctx: Ctx, row: Row, rule: str) -> bool:
        return ctx.may(rule) and ctx.owns(row["project_id"])

    def _find(self, ctx: Ctx) -> Row:
        return self.neutron.find(
            ctx, self.state.networks, ctx.params["id"], NOT_FOUND, self.neutron.visible_network
        )

    def _changeable(self, ctx: Ctx, rule: str) -> Row:
        row = self._find(ctx)
        ctx.require(ctx.owns(row["project_id"]), rule)
        self.neutron.require_member(ctx, rule)
        return row

    def _check_rules(self, ctx: Ctx, body: JsonObject) -> None:
        refused = [rule for key, rule in CREATE_RULES.items() if body.get(key) and not ctx.may(rule)]
        refused += [
            f"create_network:{key}" for key in ADMIN_ONLY_WRITES if body.get(key) and not ctx.is_admin
        ]
        ctx.require(not refused, " and ".join(["create_network", *refused]))

    def _segments(self, ctx: Ctx, body: JsonObject) -> list[JsonObject]:
        given = ctx.objects(body, "segments")
        single = {key: body[key] for key in PROVIDER if body.get(key) is not None}
        if given and single:
            raise self.neutron.error(
                400,
                "Segments and provider values cannot both be set.",
                "SegmentsSetInConjunctionWithProviders",
            )
        if not given and not single:
            return [
                {
                    "provider:network_type": "geneve",
                    "provider:physical_network": None,
                    "provider:segmentation_id": self.state.next_tunnel_id(),
                }
            ]
        made: list[JsonObject] = []
        for item in given or [single]:
            made.append(self._segment(item, made))
        return made

    def _segment(self, item: JsonObject, before: list[JsonObject]) -> JsonObject:
        kind, physical = item.get("provider:network_type"), item.get("provider:physical_network")
        number = item.get("provider:segmentation_id")
        if kind is None:
            raise self._invalid("network_type required")
        if kind not in ("vlan", "flat", "geneve"):
            raise self._invalid(f"network_type value '{kind}' not supported")
        if kind == "geneve":
            if physical is not None:
                raise self._invalid("provider:physical_network specified for geneve network")
            return _row(kind, None, self.state.next_tunnel_id() if number is None else number)
        if physical not in self.neutron.cloud.settings.physical_networks:
            raise self._invalid(f"physical_network '{physical}' unknown for {kind.upper()} provider network")
        if kind == "flat":
            return self._flat(physical, number)
        taken = self.state.vlans_of(physical) | {
            s["provider:segmentation_id"] for s in before if s["provider:physical_network"] == physical
        }
        return self._vlan(physical, number, taken)

    def _flat(self, physical: str, number: Any) -> JsonObject:
        if number is not None:
            raise self._invalid("provider:segmentation_id specified for flat network")
        if self.state.flat_in_use(physical):
            raise self.neutron.error(
                409,
                f"Unable to create the flat network. Physical network {physical} is in use.",
                "FlatNetworkInUse",
            )
        return _row("flat", physical, None)

    def _vlan(self, physical: str, number: Any, taken: set[int]) -> JsonObject:
        if number is None:
            number = next((n for n in VLAN_IDS if n not in taken), None)
            if number is None:
                raise self.neutron.error(
                    503, "Unable to create the network. No tenant network is available for allocation.",
                    "NoNetworkAvailable",
                )  # fmt: skip
        try:
            number = int(number)
        except (TypeError, ValueError):
            raise self._invalid(f"segmentation_id '{number}' is not an integer") from None
        if number not in VLAN_IDS:
            raise self._invalid("segmentation_id out of range (1 through 4094)")
        if number in taken:
            raise self.neutron.error(
                409,
                f"Unable to create the network. The VLAN {number} on physical network {physical} is in use.",
                "VlanIdInUse",
            )
        return _row("vlan", physical, number)

    def _invalid(self, text: str) -> Exception:
        return self.neutron.error(400, f"Invalid input for operation: {text}.", "InvalidInput")


def _row(kind: str, physical: str | None, number: int | None) -> JsonObject:
    return dict(zip(PROVIDER, (kind, physical, number), strict=True))
