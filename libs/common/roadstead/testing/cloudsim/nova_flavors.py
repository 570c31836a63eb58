"""Flavors with their extra specs, and the few things every tool asks Nova: zones, hosts, extensions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from .base import Ctx, JsonObject, answer, nothing, route
from .paging import linked, sort_rows
from .wire import Response

if TYPE_CHECKING:
    from .nova import Nova

FLAVORS: dict[str, dict[str, Any]] = {
    "small": {"ram": 2048, "disk": 20, "vcpus": 1},
    "medium": {"ram": 4096, "disk": 40, "vcpus": 2},
    "large": {"ram": 8192, "disk": 80, "vcpus": 4, "extra_specs": {"hw:cpu_policy": "shared"}},
}


def new_flavor(
    flavor_id: str,
    name: str,
    ram: int,
    disk: int,
    vcpus: int,
    extra_specs: dict[str, str] | None = None,
    is_public: bool = True,
    ephemeral: int = 0,
    swap: int = 0,
    description: str | None = None,
) -> JsonObject:
    """A flavor's record: RAM and swap in MiB, disks in GiB."""
    return {
        "id": flavor_id,
        "name": name,
        "ram": ram,
        "disk": disk,
        "vcpus": vcpus,
        "extra_specs": dict(extra_specs or {}),
        "is_public": is_public,
        "ephemeral": ephemeral,
        "swap": swap,
        "description": description,
        "access": [],
    }


class Flavors:
    """Routes of /flavors, /os-availability-zone, /os-hypervisors, /extensions."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud

    def _visible(self, ctx: Ctx, flavor: JsonObject) -> bool:
        return ctx.is_admin or flavor["is_public"] or ctx.project_id in flavor["access"]

    def _rows(self, ctx: Ctx) -> list[JsonObject]:
        rows = [f for f in self.nova.flavors.values() if self._visible(ctx, f)]
        public = ctx.q("is_public")
        if ctx.is_admin and public is not None and public.lower() != "none":
            wanted = public.lower() in ("true", "1", "t", "yes")
            rows = [f for f in rows if f["is_public"] == wanted]
        elif ctx.is_admin and public is None:
            rows = [f for f in rows if f["is_public"]]
        for key, field in (("minRam", "ram"), ("minDisk", "disk")):
            least = ctx.q(key)
            if least is not None:
                if not least.isdigit():
                    raise self.nova.bad_request(f"Invalid {key} filter [{least}]")
                rows = [f for f in rows if f[field] >= int(least)]
        return sort_rows(
            ctx, rows, lambda f, key: f.get("id" if key == "flavorid" else key), "id", descending=False
        )

    @route("GET", "/v2.1/flavors")
    def index(self, ctx: Ctx) -> Response:
        def brief(flavor: JsonObject) -> JsonObject:
            body = {"id": flavor["id"], "name": flavor["name"]}
            body["links"] = self.nova.views.links("flavors", flavor["id"])
            if ctx.version >= (2, 55):
                body["description"] = flavor["description"]
            return body

        size = self.cloud.settings.pages.compute
        return answer(
            linked(ctx, "flavors", self._rows(ctx), lambda f: f["id"], brief, default=size, maximum=size)
        )

    @route("GET", "/v2.1/flavors/detail")
    def detail(self, ctx: Ctx) -> Response:
        size = self.cloud.settings.pages.compute
        rows = self._rows(ctx)
        body = linked(
            ctx,
            "flavors",
            rows,
            lambda f: f["id"],
            lambda f: self.nova.views.flavor(ctx, f),
            default=size,
            maximum=size,
        )
        return answer(body)

    def _flavor(self, ctx: Ctx) -> JsonObject:
        flavor = self.nova.flavors.get(ctx.params["id"])
        if flavor is None or not self._visible(ctx, flavor):
            raise self.nova.not_found(f"Flavor {ctx.params['id']} could not be found.")
        return flavor

    @route("GET", "/v2.1/flavors/{id}")
    def show(self, ctx: Ctx) -> Response:
        return answer({"flavor": self.nova.views.flavor(ctx, self._flavor(ctx))})

    @route("POST", "/v2.1/flavors")
    def create(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-flavor-manage:create")
        body = ctx.body("flavor")
        name = ctx.text(body, "name", required=True) or ""
        flavor_id = ctx.text(body, "id")
        if flavor_id in (None, "auto"):
            flavor_id = self.cloud.ids.uuid()
        if any(f["name"] == name for f in self.nova.flavors.values()):
            raise self.nova.conflict(f"Flavor with name {name} already exists.")
        if flavor_id in self.nova.flavors:
            raise self.nova.conflict(f"Flavor with ID {flavor_id} already exists.")
        flavor = new_flavor(
            flavor_id,
            name,
            ctx.integer(body, "ram", required=True, low=1) or 1,
            ctx.integer(body, "disk", required=True, low=0) or 0,
            ctx.integer(body, "vcpus", required=True, low=1) or 1,
            is_public=ctx.flag(body, "os-flavor-access:is_public", True),
            ephemeral=ctx.integer(body, "OS-FLV-EXT-DATA:ephemeral", 0, low=0) or 0,
            swap=ctx.integer(body, "swap", 0, low=0) or 0,
            description=ctx.text(body, "description"),
        )
        self.nova.flavors[flavor_id] = flavor
        return answer({"flavor": self.nova.views.flavor(ctx, flavor)})

    @route("DELETE", "/v2.1/flavors/{id}")
    def delete(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-flavor-manage:delete")
        del self.nova.flavors[self._flavor(ctx)["id"]]
        return nothing(202)

    @route("GET", "/v2.1/flavors/{id}/os-extra_specs")
    def list_specs(self, ctx: Ctx) -> Response:
        return answer({"extra_specs": dict(self._flavor(ctx)["extra_specs"])})

    @route("POST", "/v2.1/flavors/{id}/os-extra_specs")
    def add_specs(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-flavor-extra-specs:create")
        flavor = self._flavor(ctx)
        given = ctx.body("extra_specs")
        if not all(isinstance(v, (str, int, float)) for v in given.values()):
            raise self.nova.bad_request("Extra specs take texts and numbers.")
        flavor["extra_specs"] |= {key: str(value) for key, value in given.items()}
        return answer({"extra_specs": given})

    @route("DELETE", "/v2.1/flavors/{id}/os-extra_specs/{key}")
    def delete_spec(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-flavor-extra-specs:delete")
        flavor = self._flavor(ctx)
        if flavor["extra_specs"].pop(ctx.params["key"], None) is None:
            raise self.nova.not_found(
                f"Flavor {flavor['id']} has no extra specs with key {ctx.params['key']}."
            )
        return nothing(200)

    @route("GET", "/v2.1/flavors/{id}/os-flavor-access")
    def list_access(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-flavor-access")
        flavor = self._flavor(ctx)
        return answer(
            {"flavor_access": [{"flavor_id": flavor["id"], "tenant_id": t} for t in flavor["access"]]}
        )

    @route("POST", "/v2.1/flavors/{id}/action")
    def change_access(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-flavor-access:add_tenant_access")
        flavor = self._flavor(ctx)
        body = ctx.document()
        tenants = {
            verb: ctx.mapping(body, verb).get("tenant") for verb in ("addTenantAccess", "removeTenantAccess")
        }
        if tenants["addTenantAccess"]:
            flavor["access"] = [*flavor["access"], str(tenants["addTenantAccess"])]
        elif tenants["removeTenantAccess"] in flavor["access"]:
            flavor["access"].remove(tenants["removeTenantAccess"])
        return answer(
            {"flavor_access": [{"flavor_id": flavor["id"], "tenant_id": t} for t in flavor["access"]]}
        )

    # --------------------------------------------------------- around them

    @route("GET", "/v2.1/os-availability-zone")
    def zones(self, ctx: Ctx) -> Response:
        zone = {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}
        return answer({"availabilityZoneInfo": [zone]})

    @route("GET", "/v2.1/os-availability-zone/detail")
    def zones_detail(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-availability-zone:detail")
        return self.zones(ctx)

    @route("GET", "/v2.1/os-hypervisors/detail")
    def hypervisors_detail(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-hypervisors:list-detail")
        rows = [
            {
                "id": self._host_id(host),
                "hypervisor_hostname": host,
                "hypervisor_type": "QEMU",
                "hypervisor_version": 10000000,
                "host_ip": f"192.0.2.{number}",
                "state": "up",
                "status": "enabled",
                "service": {"id": self._host_id(host), "host": host, "disabled_reason": None},
            }
            for number, host in enumerate(self.cloud.settings.compute_hosts, 1)
        ]
        return answer({"hypervisors": rows})

    def _host_id(self, host: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, host))

    @route("GET", "/v2.1/os-hypervisors")
    def hypervisors(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-hypervisors:list")
        rows = [
            {"id": self._host_id(host), "hypervisor_hostname": host, "state": "up", "status": "enabled"}
            for host in self.cloud.settings.compute_hosts
        ]
        return answer({"hypervisors": rows})

    @route("GET", "/v2.1/os-services")
    def services(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-services:list")
        rows = [
            {
                "id": str(number),
                "binary": "nova-compute",
                "host": host,
                "zone": "nova",
                "state": "up",
                "status": "enabled",
            }
            for number, host in enumerate(self.cloud.settings.compute_hosts, 1)
        ]
        return answer({"services": rows})

    @route("GET", "/v2.1/extensions")
    def extensions(self, ctx: Ctx) -> Response:
        return answer({"extensions": []})
