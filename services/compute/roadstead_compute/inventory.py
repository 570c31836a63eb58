"""What regions offer to servers, in memory: flavors and images, read in each region's own project.

Flavors live an hour and die with the region's configuration or credential.  Images are read again every minute behind the
readers' backs; what a changed configuration makes of them shows at once.  Passes and requests never wait for Glance or Nova, but
for the very first list request of a region.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import structlog

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.inventory import Keeper, Offered, Reading, Rhythm
from roadstead.cloud.port import Cloud
from roadstead.reconcile.offers import Regions
from roadstead.region import RegionSpec
from roadstead_compute import flavors, images
from roadstead_compute.flavors import Flavor
from roadstead_compute.images import Image

T = TypeVar("T")

log = structlog.get_logger("roadstead.inventory")


class ImagesOff(Exception):
    """The image cache is switched off, and nothing goes to Glance behind its back (INV-218)."""


def _flavors(raw: Sequence[Mapping[str, Any]], spec: RegionSpec) -> Mapping[str, Flavor]:
    return {f.id: f for f in flavors.export(raw, spec)}


def _images(raw: Sequence[Mapping[str, Any]], spec: RegionSpec) -> "_Images":
    exported = images.export(raw, spec)
    return _Images({image.id: image for image in exported.images}, exported.unsigned)


@dataclass(frozen=True)
class _Images:
    """unsigned: how many are left out because the region demands signatures."""

    by_id: Mapping[str, Image]
    unsigned: int


FLAVORS = Reading("flavors", "compute", "flavor.detail", _flavors)
IMAGES = Reading(
    "images",
    "image",
    "image.list",
    _images,
    args={"query": {"visibility": "public"}},
    outlives_config=True,
)


class Inventory:
    """One for the service; a pass finds it as extras["inventory"].  In `rhythm` the pause is the life of an image list."""

    def __init__(
        self,
        cloud: Cloud,
        keyring: Keyring,
        clock: Clock,
        regions: Regions,
        *,
        cache_images: bool = True,
        rhythm: Rhythm | None = None,
    ) -> None:
        rhythm = rhythm or Rhythm()
        self._regions = regions
        self._cache_images = cache_images
        self.flavors = Offered(cloud, keyring, clock, FLAVORS, rhythm)
        self.images = Offered(cloud, keyring, clock, IMAGES, replace(rhythm, life=rhythm.pause))
        self.lists: tuple[Offered[Any], ...] = (
            (self.flavors, self.images) if cache_images else (self.flavors,)
        )
        self.keeper = Keeper(self.lists, regions.clouds, rhythm)
        self.images.on_change.append(self._tell_unsigned)

    # ------------------------------------------------------------ from memory

    def loaded(self, region: str) -> bool:
        """Whether the region's lists have been read with its present configuration and credential."""
        spec = self._regions.spec(region)
        return all(x.known(region, spec) is not None for x in self.lists)

    def flavor(self, region: str, ident: str) -> Flavor | None:
        """The offered flavor, None when there is none of that id or nothing was read yet."""
        found = (self.flavors.known(region, self._regions.spec(region)) or {}).get(ident)
        if found is None:
            self.flavors.lacking(region)
        return found

    def image(self, region: str, ident: str) -> Image | None:
        """The valid image, None when there is none of that id or nothing was read yet; always None with the cache off."""
        if not self._cache_images:
            return None
        found = self.images.known(region, self._regions.spec(region))
        return found.by_id.get(ident) if found is not None else None

    def _tell_unsigned(self, region: str) -> None:
        found = self.images.known(region, self._regions.spec(region))
        if found is not None and found.unsigned:
            text = "images left out: the region demands signatures, which are not checked yet"
            log.warning(text, region=region, images=found.unsigned)

    # ------------------------------------------------------------ lists

    async def list_flavors(self, region: str) -> tuple[Flavor, ...] | None:
        """All that are offered, in their order.  None while the cloud lists none and that is not believed yet; CloudError when
        nothing is known and the read fails."""
        found = await self._listed(self.flavors, region)
        return None if found is None else tuple(found.values())

    async def list_images(self, region: str) -> tuple[Image, ...] | None:
        """All valid ones, oldest first; else as for flavors.  ImagesOff with the cache off."""
        if not self._cache_images:
            raise ImagesOff
        found = await self._listed(self.images, region)
        return None if found is None else tuple(found.by_id.values())

    async def _listed(self, offered: Offered[T], region: str) -> T | None:
        spec = self._regions.spec(region)
        found = offered.known(region, spec)
        return found if found is not None else await offered.get(region, spec)
