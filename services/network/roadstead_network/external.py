"""Inventory of external networks: what routers and floating IPs may hang on (resources.md section 12).

Read in the region's own project when somebody asks, kept for an hour, and thrown away with the region's configuration or credential.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.external import ExternalNetwork, external_of, is_external, select, selector_of
from roadstead.cloud.inventory import Offered, Reading, Rhythm
from roadstead.cloud.port import Cloud
from roadstead.region import RegionSpec

Selected = tuple[ExternalNetwork, ...]


def reply(networks: Sequence[ExternalNetwork]) -> list[dict[str, str]]:
    """What a list request answers."""
    return [{"id": n.id, "name": n.name} for n in networks]


def _selected(raw: Sequence[Mapping[str, Any]], spec: RegionSpec) -> Selected:
    return select(external_of(raw), selector_of(spec))


READING: Reading[Selected] = Reading(
    "external networks",
    "network",
    "network.list",
    _selected,
    args={"query": {"router:external": True}},
    counts=is_external,
)


class ExternalNetworks:
    """One for the service.  A pass finds it as extras["inventory"]."""

    def __init__(self, cloud: Cloud, keyring: Keyring, clock: Clock, rhythm: Rhythm | None = None) -> None:
        self._networks = Offered(cloud, keyring, clock, READING, rhythm)

    async def selected(self, region: str, spec: RegionSpec) -> Selected | None:
        """The selected ones, the first is the one to use.  One list request when nothing fresh is held, or when none passes the
        selector and the list is not fresh.

        None while Neutron lists none at all and that is not believed yet.  CloudError when the read fails: an error is never an
        empty inventory.
        """
        return await self._networks.get(region, spec, lambda networks: not networks)

    def forget(self, region: str) -> None:
        """Read anew next time: what was held proved wrong."""
        self._networks.forget(region)
