"""What the volumes service adds to its assembly: the inventory of classes, the request that lists it, and claims of volumes."""

from collections.abc import Mapping
from typing import Any

from roadstead.assembly import Assembly
from roadstead.cloud.port import CloudError
from roadstead.cloud.verdicts import safe_text
from roadstead.reconcile.handlers import error_reply
from roadstead.reconcile.offers import not_settled
from roadstead_volumes.classes import reply
from roadstead_volumes.inventory import VolumeClassInventory
from roadstead_volumes.volume import claims
from roadstead_volumes.volume.claims import Claim, Claiming


def install(assembly: Assembly) -> None:
    """Add them to the service."""
    platform = assembly.platform
    inventory = VolumeClassInventory(
        platform.cloud,
        platform.keyring,
        platform.clock,
        assembly.offers.regions,
        assembly.inventory_rhythm(),
    )
    assembly.extras["inventory"] = inventory
    assembly.keep((inventory.types,), inventory.keeper)

    async def listing(region: str, _project: str, _payload: Mapping[str, Any]) -> dict[str, Any]:
        return await list_classes(assembly, inventory, region)

    async def claim(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return await change_claim(assembly, payload, take=True)

    async def release(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return await change_claim(assembly, payload, take=False)

    assembly.api.more["volumeclass", "list"] = listing
    assembly.handlers.more["claim"] = claim
    assembly.handlers.more["release"] = release


async def list_classes(assembly: Assembly, inventory: VolumeClassInventory, region: str) -> dict[str, Any]:
    """The classes that a region offers."""
    view = assembly.directory.get("region", region)
    if view is None or view.gone:
        return error_reply("REGION_NOT_FOUND", f"there is no region {region}", 404)
    spec = assembly.offers.regions.spec(region)
    if spec is None or spec.openstack is None:
        return error_reply("REGION_WRONG_KIND", f"the region {region} has no volume classes", 400)
    try:
        classes = await inventory.offered(region, spec)
    except CloudError as error:
        return error_reply("UNAVAILABLE", safe_text(error.verdict, "block-storage"), 503)
    if classes is None:
        return not_settled("volume types")
    return {"items": reply(classes), "next": None}


REFUSALS: Mapping[Claiming, tuple[str, str, int]] = {
    Claiming.UNKNOWN: ("NOT_FOUND", "there is no such volume", 404),
    Claiming.DELETING: ("DELETING", "the volume is being deleted", 409),
    Claiming.HELD_BY_OTHER: ("CONFLICT", "the volume is claimed by another server", 409),
}


async def change_claim(assembly: Assembly, payload: Mapping[str, Any], *, take: bool) -> Mapping[str, Any]:
    """`{"volumeId", "claimant": {"kind": "Server", "id"}}`: compare-and-set of the volume's claim; asking twice is as good."""
    ident = payload.get("volumeId")
    claimant = Claim.read(payload.get("claimant"))
    if not isinstance(ident, str) or claimant is None:
        return error_reply(
            "BAD_REQUEST", "the request needs volumeId and a claimant of kind Server with an id", 400
        )
    row = await assembly.platform.store.get("volume", ident)
    if row is None:
        return error_reply(*REFUSALS[Claiming.UNKNOWN])
    rule = claims.take if take else claims.release
    change = await assembly.platform.store.change(row.key, lambda r, now: rule(r, now, claimant))
    assembly.handlers.on_outbox()
    assembly.handlers.nudge()
    refusal = REFUSALS.get(change.result)
    return error_reply(*refusal) if refusal is not None else {"ok": True}
