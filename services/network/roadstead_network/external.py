"""Inventory of external networks: what routers and floating IPs may hang on (resources.md section 12).

Read in the region's own project, kept for an hour, and thrown away with the region's configuration or credential.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.external import ExternalNetwork, external_of, select, selector_of
from roadstead.cloud.port import Call, Cloud, CloudError, RegionProject, Verdict
from roadstead.region import RegionSpec

LIFE = 3600.0


def reply(networks: Sequence[ExternalNetwork]) -> list[dict[str, str]]:
    """What a list request answers."""
    return [{"id": n.id, "name": n.name} for n in networks]


@dataclass(frozen=True)
class _Held:
    """until: monotonic seconds.  origin: the configuration and credential that it was read with."""

    networks: tuple[ExternalNetwork, ...]
    until: float
    origin: object


class ExternalNetworks:
    """The cache, one for the service.  A pass finds it as extras["inventory"]."""

    def __init__(self, cloud: Cloud, keyring: Keyring, clock: Clock, life: float = LIFE) -> None:
        self._cloud = cloud
        self._keyring = keyring
        self._clock = clock
        self._life = life
        self._held: dict[str, _Held] = {}
        self._reading: dict[str, asyncio.Lock] = {}

    async def selected(self, region: str, spec: RegionSpec) -> tuple[ExternalNetwork, ...]:
        """The selected ones, the first is the one to use.  One list request when nothing fresh is held.

        Raises CloudError when that fails: an error is never an empty inventory.
        """
        return select(await self._all(region, spec), selector_of(spec))

    def forget(self, region: str) -> None:
        """Read anew next time: what was held proved wrong."""
        self._held.pop(region, None)

    async def _all(self, region: str, spec: RegionSpec) -> tuple[ExternalNetwork, ...]:
        async with self._reading.setdefault(region, asyncio.Lock()):
            credential = self._keyring.region(region)
            if credential is None:
                raise CloudError(Verdict.KEY, text="the region's credential is not in the keyring")
            origin = (credential, spec.openstack.model_dump_json() if spec.openstack else None)
            held = self._held.get(region)
            if held is not None and held.origin == origin and self._clock.monotonic() < held.until:
                return held.networks
            self.forget(region)
            query = {"router:external": True}
            answer = await self._cloud.call(
                Call(RegionProject(region), "network", "network.list", {"query": query})
            )
            networks = external_of(answer.value)
            self._held[region] = _Held(networks, self._clock.monotonic() + self._life, origin)
            return networks
