"""What a region offers, as far as a server asks: the part of the inventory that its rules read.

The inventory belongs to the flavor and image code of this service; here stand only the few facts that are compared, so that
the rules stay pure and its shape can change without them.
"""

from dataclasses import dataclass
from typing import Any, Protocol


class Inventory(Protocol):
    """Flavors and images of every region, from memory; never a request to the cloud."""

    def loaded(self, region: str) -> bool:
        """Whether the lists of that region have been read at all."""
        ...

    def flavor(self, region: str, ident: str) -> Any | None:
        """The exported flavor (resources.md section 11), None when it is not offered."""
        ...

    def image(self, region: str, ident: str) -> Any | None:
        """The valid image (resources.md section 10), None when there is none of that id."""
        ...


@dataclass(frozen=True)
class FlavorFacts:
    """disk in GB; 0: as large as the image needs.  architecture "": not told."""

    disk: int
    architecture: str = ""
    baremetal: bool = False
    pinned_only: bool = False


@dataclass(frozen=True)
class ImageFacts:
    """status as the platform words it (`ready` is usable); size in GiB; organization None: for all."""

    status: str
    size: int
    architecture: str = ""
    virtualization: str = ""
    organization: str | None = None


@dataclass(frozen=True)
class Offer:
    """The flavor and the image that a spec names; None: not offered."""

    flavor: FlavorFacts | None
    image: ImageFacts | None


def offer_of(inventory: Inventory | None, region: str, flavor: str, image: str | None) -> Offer | None:
    """The two look-ups; None while the inventory of that region is not loaded."""
    if inventory is None or not inventory.loaded(region):
        return None
    return Offer(
        _flavor_facts(inventory.flavor(region, flavor)),
        _image_facts(inventory.image(region, image)) if image is not None else None,
    )


def _flavor_facts(found: Any | None) -> FlavorFacts | None:
    if found is None:
        return None
    return FlavorFacts(
        int(found.disk), found.architecture or "", bool(found.baremetal), bool(found.pinnedOnly)
    )


def _image_facts(found: Any | None) -> ImageFacts | None:
    if found is None:
        return None
    return ImageFacts(
        found.status,
        int(found.sizeGiB),
        found.architecture or "",
        found.virtualization or "",
        found.organizationID or None,
    )
