"""What the network service adds to its assembly: the inventory of external networks, and the request that lists it."""

from collections.abc import Mapping
from typing import Any

from roadstead.assembly import Assembly
from roadstead.cloud.port import CloudError
from roadstead.cloud.verdicts import safe_text
from roadstead.reconcile.handlers import error_reply
from roadstead.reconcile.offers import not_settled
from roadstead.region import RegionSpec
from roadstead_network.external import ExternalNetworks, reply


def install(assembly: Assembly) -> None:
    """Add them to the service."""
    platform = assembly.platform
    inventory = ExternalNetworks(
        platform.cloud, platform.keyring, platform.clock, assembly.inventory_rhythm()
    )
    assembly.extras["inventory"] = inventory

    async def listing(region: str, _project: str, _payload: Mapping[str, Any]) -> dict[str, Any]:
        view = assembly.directory.get("region", region)
        if view is None or view.gone:
            return error_reply("REGION_NOT_FOUND", f"there is no region {region}", 404)
        try:
            networks = await inventory.selected(region, RegionSpec.model_validate(view.spec))
        except CloudError as error:
            return error_reply("UNAVAILABLE", safe_text(error.verdict, "network"), 503)
        if networks is None:
            return not_settled("external networks")
        return {"items": reply(networks), "next": None}

    assembly.api.more["externalnetwork", "list"] = listing
