"""The inventory of volume classes: Cinder's types of every region, as its configuration offers them (INV-182, INV-183)."""

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.inventory import Keeper, Offered, Reading, Rhythm
from roadstead.cloud.port import Cloud
from roadstead.reconcile.offers import Regions
from roadstead.region import RegionSpec
from roadstead_volumes.classes import VolumeClass, export

Classes = tuple[VolumeClass, ...]
TYPES: Reading[Classes] = Reading("volume types", "block-storage", "type.list", export)


class VolumeClassInventory:
    """One for the service; a pass finds it as extras["inventory"]."""

    def __init__(
        self, cloud: Cloud, keyring: Keyring, clock: Clock, regions: Regions, rhythm: Rhythm | None = None
    ) -> None:
        self._regions = regions
        self.types = Offered(cloud, keyring, clock, TYPES, rhythm)
        self.keeper = Keeper((self.types,), regions.clouds, rhythm)

    async def offered(self, region: str, spec: RegionSpec, wanted: str | None = None) -> Classes | None:
        """The offered classes; one list request when nothing fresh is held, or when it lacks the `wanted` one and is not fresh.

        None while Cinder lists no type at all and that is not believed yet.  CloudError when the read fails.
        """
        return await self.types.get(
            region, spec, lambda classes: wanted is not None and all(c.id != wanted for c in classes)
        )

    def known(self, region: str) -> Classes | None:
        """The same from memory, None while nothing of the present configuration and credential is known."""
        return self.types.known(region, self._regions.spec(region))
