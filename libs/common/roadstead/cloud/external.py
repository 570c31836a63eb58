"""External networks: which of Neutron's networks routers and public addresses may hang on (resources.md section 12).

Pure.  Every service that makes a router or a floating IP selects here, so that all of them use the same network.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadstead.region import ExternalNetworkSelector, RegionSpec


@dataclass(frozen=True)
class ExternalNetwork:
    """One Neutron network with router:external, in the order in which Neutron lists them."""

    id: str
    name: str
    tags: frozenset[str] = frozenset()


def is_external(network: Mapping[str, Any]) -> bool:
    """Whether Neutron says so, whatever the filter did."""
    return network.get("router:external") is True


def external_of(listed: Iterable[Mapping[str, Any]]) -> tuple[ExternalNetwork, ...]:
    """The external ones of Neutron's networks."""
    return tuple(
        ExternalNetwork(str(n["id"]), str(n.get("name") or ""), frozenset(n.get("tags") or ()))
        for n in listed
        if is_external(n)
    )


def select(
    networks: Sequence[ExternalNetwork], selector: ExternalNetworkSelector | None
) -> tuple[ExternalNetwork, ...]:
    """Those that the Region selects: id in the list, and all tags carried; no selector takes every one."""
    if selector is None:
        return tuple(networks)
    wanted = set(selector.tags or ())
    return tuple(n for n in networks if (not selector.ids or n.id in selector.ids) and wanted <= n.tags)


def selector_of(region: RegionSpec | None) -> ExternalNetworkSelector | None:
    """The Region's selector, None where it has none."""
    part = region.openstack.network.externalNetworks if region is not None and region.openstack else None
    return part.selector if part is not None else None


def first_external(listed: Iterable[Mapping[str, Any]], region: RegionSpec | None) -> str | None:
    """The id of the one to use, the first that the Region selects; None when it selects none."""
    selected = select(external_of(listed), selector_of(region))
    return selected[0].id if selected else None
