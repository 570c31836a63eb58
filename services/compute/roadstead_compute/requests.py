"""What the compute service adds to its assembly: the inventory of flavors and images, the requests that list them, and a wake."""

from collections.abc import Mapping
from typing import Any

from roadstead.assembly import Assembly
from roadstead.cloud.port import CloudError
from roadstead.cloud.verdicts import safe_text
from roadstead.reconcile.handlers import error_reply
from roadstead.reconcile.offers import not_settled
from roadstead.reconcile.views import StatusView
from roadstead_compute import flavors, images
from roadstead_compute.inventory import ImagesOff, Inventory

SCOPES = ("available", "owned")
STATUSES = ("pending", "creating", "ready", "failed")


def install(assembly: Assembly) -> None:
    """Add them to the service."""
    platform = assembly.platform
    inventory = Inventory(
        platform.cloud,
        platform.keyring,
        platform.clock,
        assembly.offers.regions,
        cache_images=bool(assembly.extras.get("image_cache", True)),
        rhythm=assembly.inventory_rhythm(),
    )
    assembly.extras["inventory"] = inventory
    assembly.keep(inventory.lists, inventory.keeper)

    async def flavor_list(region: str, _project: str, _payload: Mapping[str, Any]) -> dict[str, Any]:
        return _no_region(assembly, region) or await list_flavors(inventory, region)

    async def image_list(region: str, _project: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        return _no_region(assembly, region) or await list_images(inventory, region, payload)

    assembly.api.more["flavor", "list"] = flavor_list
    assembly.api.more["image", "list"] = image_list
    assembly.handlers.on_status.append(lambda view: wake_claimant(assembly, view))


def wake_claimant(assembly: Assembly, view: StatusView) -> None:
    """A volume that waits to go makes the server due that claims it: one that wants it no more lets go, however it came to hold on."""
    claim = view.status.get("claimRef")
    if view.key.kind == "volume" and view.deleting and not view.gone and isinstance(claim, Mapping):
        cause = {"reason": f"the volume {view.key.id} is to go"}
        assembly.handlers.owed.add([("server", str(claim.get("id")))], cause)


def _no_region(assembly: Assembly, region: str) -> dict[str, Any] | None:
    view = assembly.directory.get("region", region)
    if view is None or view.gone:
        return error_reply("REGION_NOT_FOUND", f"there is no region {region}", 404)
    if "openstack" not in view.spec:
        return error_reply("REGION_WRONG_KIND", f"the region {region} has neither flavors nor images", 400)
    return None


async def list_flavors(inventory: Inventory, region: str) -> dict[str, Any]:
    """The flavors that a region offers."""
    try:
        offered = await inventory.list_flavors(region)
    except CloudError as error:
        return error_reply("UNAVAILABLE", safe_text(error.verdict, "compute"), 503)
    if offered is None:
        return not_settled("flavors")
    return {"items": flavors.reply(offered), "next": None}


async def list_images(inventory: Inventory, region: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The images that `organizationId` may see; `scope` available (default) or owned, `status` one of the four."""
    organization, scope, status = (payload.get(k) for k in ("organizationId", "scope", "status"))
    if scope not in (None, *SCOPES) or status not in (None, *STATUSES):
        text = f"scope is one of {', '.join(SCOPES)}, status one of {', '.join(STATUSES)}"
        return error_reply("BAD_FILTER", text, 400)
    if organization is not None and not isinstance(organization, str):
        return error_reply("BAD_FILTER", "organizationId is a text", 400)
    try:
        valid = await inventory.list_images(region)
    except ImagesOff:
        text = "image caching is disabled, so no image can be asked for; an operator must set ROADSTEAD_IMAGE_CACHE"
        return error_reply("IMAGE_CACHE_DISABLED", text, 404)
    except CloudError as error:
        return error_reply("UNAVAILABLE", safe_text(error.verdict, "image"), 503)
    if valid is None:
        return not_settled("images")
    found = images.query(valid, organization=organization, owned=scope == "owned", status=status)
    return {"items": images.reply(found), "next": None}
