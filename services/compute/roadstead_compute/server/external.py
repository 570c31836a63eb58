"""The external network that public addresses come from: the first that the region selects (resources.md section 12)."""

from collections.abc import Iterable, Mapping
from typing import Any

from roadstead.region import ExternalNetworkSelector, RegionSpec


def first_external(listed: Iterable[Mapping[str, Any]], region: RegionSpec | None) -> str | None:
    """Its id in the cloud, None when the region selects none: ids name it, tags must all be there, an empty list
    selects as none does."""
    selector = _selector(region)
    return next((str(n["id"]) for n in listed if n.get("router:external") and _selected(n, selector)), None)


def _selector(region: RegionSpec | None) -> ExternalNetworkSelector:
    part = region.openstack.network.externalNetworks if region is not None and region.openstack else None
    return (part.selector if part is not None else None) or ExternalNetworkSelector()


def _selected(network: Mapping[str, Any], selector: ExternalNetworkSelector) -> bool:
    if selector.ids and network["id"] not in selector.ids:
        return False
    return set(selector.tags or ()) <= set(network.get("tags") or ())
