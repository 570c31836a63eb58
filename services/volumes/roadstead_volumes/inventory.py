"""The inventory of volume classes: Cinder's types of every region, read in the region's own project and kept for an hour.

What was read dies with the region's configuration or credential (INV-183).  A background job keeps it warm, so that a request is
checked from memory.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Call, Cloud, CloudError, RegionProject, Verdict
from roadstead.reconcile.views import Directory
from roadstead.region import RegionSpec
from roadstead_volumes.classes import VolumeClass, export

log = structlog.get_logger("roadstead.volumes")

LIFE = 3600.0
PAUSE = 60.0


@dataclass(frozen=True)
class _Held:
    """until: monotonic seconds.  origin: the configuration and credential that it was read with."""

    classes: tuple[VolumeClass, ...]
    until: float
    origin: object


class VolumeClassInventory:
    """One for the service; a pass finds it as extras["inventory"].  Times in seconds."""

    def __init__(
        self,
        cloud: Cloud,
        keyring: Keyring,
        clock: Clock,
        directory: Directory,
        *,
        life: float = LIFE,
        pause: float = PAUSE,
    ) -> None:
        self._cloud = cloud
        self._keyring = keyring
        self._clock = clock
        self._directory = directory
        self._life = life
        self._pause = pause
        self._held: dict[str, _Held] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._stirred = asyncio.Event()
        self._failing: set[str] = set()

    async def offered(self, region: str, spec: RegionSpec) -> tuple[VolumeClass, ...]:
        """The offered classes; one list request when nothing fresh is held.

        Raises CloudError when that fails: an error is never an empty inventory.
        """
        async with self._reading.setdefault(region, asyncio.Lock()):
            origin = self._origin(region, spec)
            if origin is None:
                raise CloudError(Verdict.KEY, text="the region's credential is not in the keyring")
            held = self._held.get(region)
            if held is not None and held.origin == origin and self._clock.monotonic() < held.until:
                return held.classes
            answer = await self._cloud.call(Call(RegionProject(region), "block-storage", "type.list"))
            classes = export(answer.value, spec)
            self._held[region] = _Held(classes, self._clock.monotonic() + self._life, origin)
            return classes

    def known(self, region: str) -> tuple[VolumeClass, ...] | None:
        """The same from memory, None while nothing of the present configuration and credential was read."""
        held, spec = self._held.get(region), self._spec(region)
        if held is None or spec is None or held.origin != self._origin(region, spec):
            return None
        return held.classes

    def stir(self) -> None:
        """Something moved (a region, a credential): look at once."""
        self._stirred.set()

    async def keep_warm(self) -> None:
        """For ever: read what is missing or over its time."""
        while True:
            self._stirred.clear()
            await self.look()
            try:
                async with asyncio.timeout(self._pause):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """One round over all regions; a region that fails holds up no other and is logged once."""
        for view in self._directory.of_kind("region"):
            region, spec = view.key.region, self._spec(view.key.region)
            if spec is None or self._origin(region, spec) is None:
                continue
            try:
                await self.offered(region, spec)
            except CloudError as error:
                if region not in self._failing:
                    log.warning(
                        "volume classes not read", region=region, error=str(error), text=error.text[:500]
                    )
                self._failing.add(region)
            else:
                self._failing.discard(region)

    def _spec(self, region: str) -> RegionSpec | None:
        view = self._directory.get("region", region)
        return spec_of(view.spec) if view is not None and not view.gone else None

    def _origin(self, region: str, spec: RegionSpec) -> object | None:
        credential = self._keyring.region(region)
        if credential is None or spec.openstack is None:
            return None
        return credential, spec.openstack.model_dump_json()


def spec_of(spec: Mapping[str, Any]) -> RegionSpec | None:
    """The Region's accepted spec; None for a region that is no OpenStack cloud (yet)."""
    if "openstack" not in spec:
        return None
    return RegionSpec.model_validate(spec)
