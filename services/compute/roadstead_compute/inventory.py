"""What regions offer to servers, in memory: flavors and images, read in each region's own project.

Flavors live an hour and die with the region's configuration or credential.  Images are read again every minute behind the
readers' backs; a failed read keeps what was known.  Passes and requests never wait for Glance or Nova, but for the very first
list request of a region.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Call, Cloud, CloudError, RegionProject, Verdict
from roadstead.reconcile.views import Directory
from roadstead.region import RegionSpec
from roadstead_compute import flavors, images
from roadstead_compute.flavors import Flavor
from roadstead_compute.images import Image

log = structlog.get_logger("roadstead.inventory")

FLAVOR_LIFE = 3600.0
IMAGE_LIFE = 60.0
PAUSE_SHARE = 6
"""Rounds in an image's life: what failed is tried again well before it is over its time."""


@dataclass(frozen=True)
class _FlavorList:
    """due: monotonic seconds.  origin: the configuration and credential that it was read with."""

    flavors: Mapping[str, Flavor]
    due: float
    origin: object


@dataclass(frozen=True)
class _ImageList:
    """raw as Glance answered; `images` is what the Region's `config` makes of it."""

    raw: Sequence[Mapping[str, Any]]
    images: Mapping[str, Image]
    due: float
    config: object


@dataclass
class _Held:
    """One region.  failing: lists whose last read failed, so that a lasting failure is logged once."""

    flavors: _FlavorList | None = None
    images: _ImageList | None = None
    failing: set[str] = field(default_factory=set)
    reading_flavors: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading_images: asyncio.Lock = field(default_factory=asyncio.Lock)


class ImagesOff(Exception):
    """The image cache is switched off, and nothing goes to Glance behind its back (INV-218)."""


class Inventory:
    """One for the service; a pass finds it as extras["inventory"].  Times in seconds."""

    def __init__(
        self,
        cloud: Cloud,
        keyring: Keyring,
        clock: Clock,
        directory: Directory,
        *,
        cache_images: bool = True,
        flavor_life: float = FLAVOR_LIFE,
        image_life: float = IMAGE_LIFE,
    ) -> None:
        self._cloud = cloud
        self._keyring = keyring
        self._clock = clock
        self._directory = directory
        self._cache_images = cache_images
        self._flavor_life = flavor_life
        self._image_life = image_life
        self._held: dict[str, _Held] = {}
        self._stirred = asyncio.Event()

    # ------------------------------------------------------------ from memory

    def loaded(self, region: str) -> bool:
        """Whether the region's lists have been read with its present configuration and credential."""
        return self._flavors(region) is not None and (
            not self._cache_images or self._images(region) is not None
        )

    def flavor(self, region: str, ident: str) -> Flavor | None:
        """The offered flavor, None when there is none of that id or nothing was read yet."""
        return (self._flavors(region) or {}).get(ident)

    def image(self, region: str, ident: str) -> Image | None:
        """The valid image, None when there is none of that id or nothing was read yet; always None with the cache off."""
        return (self._images(region) or {}).get(ident) if self._cache_images else None

    def _flavors(self, region: str) -> Mapping[str, Flavor] | None:
        held = self._of(region).flavors
        return held.flavors if held is not None and held.origin == self._origin(region) else None

    def _images(self, region: str) -> Mapping[str, Image] | None:
        """A changed configuration shows at once, made from what Glance said last."""
        of, config = self._of(region), self._config(region)
        held = of.images
        if held is None or config is None:
            return None
        if held.config != config:
            held = of.images = self._image_list(region, held.raw, held.due, config)
        return held.images

    # ------------------------------------------------------------ lists

    async def list_flavors(self, region: str) -> tuple[Flavor, ...]:
        """All that are offered, in their order.  CloudError when nothing is known and the read fails."""
        if self._flavors(region) is None:
            async with self._of(region).reading_flavors:
                if self._flavors(region) is None:
                    await self._read_flavors(region)
        return tuple((self._flavors(region) or {}).values())

    async def list_images(self, region: str) -> tuple[Image, ...]:
        """All valid ones, oldest first.  ImagesOff, or CloudError when nothing is known and the read fails."""
        if not self._cache_images:
            raise ImagesOff
        if self._images(region) is None:
            async with self._of(region).reading_images:
                if self._images(region) is None:
                    await self._read_images(region)
        return tuple((self._images(region) or {}).values())

    # ------------------------------------------------------------ keeping it fresh

    def stir(self) -> None:
        """A region or its credential moved: look at once."""
        self._stirred.set()

    async def keep_warm(self) -> None:
        """For ever: read what is missing or over its time, behind the readers' backs."""
        while True:
            self._stirred.clear()
            await self.look()
            try:
                async with asyncio.timeout(self._image_life / PAUSE_SHARE):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """One round over all regions, side by side: one that is slow or down holds up no other."""
        regions = [v.key.region for v in self._directory.of_kind("region") if self._origin(v.key.region)]
        await asyncio.gather(*(self._look_at(region) for region in regions))

    async def _look_at(self, region: str) -> None:
        held, now = self._of(region), self._clock.monotonic()
        if self._flavors(region) is None or held.flavors is None or held.flavors.due <= now:
            async with held.reading_flavors:
                await self._tried(region, "flavors", self._read_flavors)
        if self._cache_images and (held.images is None or held.images.due <= now):
            async with held.reading_images:
                await self._tried(region, "images", self._read_images)

    async def _tried(self, region: str, what: str, read: Callable[[str], Awaitable[None]]) -> None:
        failing = self._of(region).failing
        try:
            await read(region)
        except CloudError as error:
            if what not in failing:
                log.warning(f"{what} not read", region=region, error=str(error), text=error.text[:500])
            failing.add(what)
        else:
            failing.discard(what)

    # ------------------------------------------------------------ reads

    async def _read_flavors(self, region: str) -> None:
        """One list request."""
        origin, spec = self._origin(region), self._spec(region)
        if origin is None or spec is None:
            raise CloudError(Verdict.KEY, text="the region's credential is not in the keyring")
        listed = await self._list(region, "compute", "flavor.detail")
        made = {f.id: f for f in flavors.export(listed, spec)}
        self._of(region).flavors = _FlavorList(made, self._clock.monotonic() + self._flavor_life, origin)

    async def _read_images(self, region: str) -> None:
        """One list request a page."""
        config = self._config(region)
        if config is None or self._keyring.region(region) is None:
            raise CloudError(Verdict.KEY, text="the region's credential is not in the keyring")
        listed = await self._list(region, "image", "image.list", query={"visibility": "public"})
        due = self._clock.monotonic() + self._image_life
        self._of(region).images = self._image_list(region, listed, due, config)

    async def _list(self, region: str, service: str, verb: str, **args: Any) -> list[Mapping[str, Any]]:
        answer = await self._cloud.call(Call(RegionProject(region), service, verb, args))
        return list(answer.value)

    def _image_list(
        self, region: str, raw: Sequence[Mapping[str, Any]], due: float, config: Mapping[str, Any]
    ) -> _ImageList:
        made = images.export(raw, RegionSpec.model_validate({"provider": "openstack", "openstack": config}))
        before = self._of(region).images
        if made.unsigned and (before is None or before.config != config):
            log.warning(
                "images left out: the region demands signatures, which are not checked yet",
                region=region,
                images=made.unsigned,
            )
        return _ImageList(raw, {image.id: image for image in made.images}, due, config)

    # ------------------------------------------------------------ of one region

    def _of(self, region: str) -> _Held:
        return self._held.setdefault(region, _Held())

    def _config(self, region: str) -> Mapping[str, Any] | None:
        """The openstack section of the Region's accepted spec."""
        view = self._directory.get("region", region)
        part = view.spec.get("openstack") if view is not None and not view.gone else None
        return part if isinstance(part, Mapping) else None

    def _spec(self, region: str) -> RegionSpec | None:
        config = self._config(region)
        if config is None:
            return None
        return RegionSpec.model_validate({"provider": "openstack", "openstack": config})

    def _origin(self, region: str) -> tuple[object, object] | None:
        credential, config = self._keyring.region(region), self._config(region)
        return (credential, config) if credential is not None and config is not None else None
