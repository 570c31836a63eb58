"""Volume classes: the block storage types that a region offers (resources.md section 8, behaviour.md section 13.3).

Pure.  A type is offered when it is public and the Region's selector lists it, and only then; what is told of it beside its name
comes from the Region alone, never from Cinder's extra specs.  Tenants can neither make nor delete classes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadstead.quantity import whole_gib
from roadstead.reconcile.kind import Problem
from roadstead.region import RegionSpec, VolumeClasses, VolumeClassMetadata


@dataclass(frozen=True)
class VolumeClass:
    """One offered class.

    media: hdd, ssd, nvme or "".  max_iops, max_throughput (MiB/s): caps, not guarantees.  min_size, max_size: whole GiB, None
    for no bound.  supported_flavors: flavor ids that may use it, None for all.
    """

    id: str
    name: str
    description: str = ""
    media: str = ""
    max_iops: int | None = None
    max_throughput: int | None = None
    encrypted: bool = False
    min_size: int | None = None
    max_size: int | None = None
    supported_flavors: tuple[str, ...] | None = None


def export(types: Iterable[Mapping[str, Any]], region: RegionSpec) -> tuple[VolumeClass, ...]:
    """The offered ones of Cinder's types, by name.  No section, selector or ids: none (INV-169, INV-170, INV-171)."""
    section = region.openstack.blockStorage.volumeClasses if region.openstack is not None else None
    selected = set(_selected(section))
    described = {m.id: m for m in (section.metadata if section is not None else None) or ()}
    offered = (
        _enriched(kind, described.get(str(kind["id"])))
        for kind in types
        if _is_public(kind) and str(kind["id"]) in selected
    )
    return tuple(sorted((c for c in offered if c is not None), key=lambda c: (c.name, c.id)))


def _selected(section: VolumeClasses | None) -> Sequence[str]:
    if section is None or section.selector is None:
        return ()
    return section.selector.ids or ()


def _is_public(kind: Mapping[str, Any]) -> bool:
    return kind.get("is_public") is True or kind.get("os-volume-type-access:is_public") is True


def _enriched(kind: Mapping[str, Any], about: VolumeClassMetadata | None) -> VolumeClass | None:
    """None when a bound cannot be read: without its bound the class must not be offered."""
    ident, name = str(kind["id"]), str(kind.get("name") or "")
    description = str(kind.get("description") or "")
    if about is None:
        return VolumeClass(ident, name, description)
    try:
        low, high = (None if size is None else whole_gib(size) for size in (about.minSize, about.maxSize))
    except ValueError:
        return None
    flavors = about.supportedFlavors.selector if about.supportedFlavors is not None else None
    return VolumeClass(
        ident,
        name,
        description,
        media=about.media,
        max_iops=about.performance.maxIOPS if about.performance is not None else None,
        max_throughput=about.performance.maxThroughputMiBps if about.performance is not None else None,
        encrypted=about.encrypted,
        min_size=low,
        max_size=high,
        supported_flavors=tuple(flavors.ids) if flavors is not None and flavors.ids else None,
    )


def problems(classes: Iterable[VolumeClass], ident: str, gib: int) -> list[Problem]:
    """What the offered classes have against a volume of that class and size."""
    offered = next((c for c in classes if c.id == ident), None)
    if offered is None:
        text = f"the region does not offer the volume class {ident}; choose another"
        return [Problem("NOT_OFFERED", "spec.volumeClassID", text)]
    if offered.min_size is not None and gib < offered.min_size:
        text = f"a volume of the class {offered.name} has at least {offered.min_size} GiB, not {gib}"
        return [Problem("SIZE_OUT_OF_BOUNDS", "spec.size", text)]
    if offered.max_size is not None and gib > offered.max_size:
        text = f"a volume of the class {offered.name} has at most {offered.max_size} GiB, not {gib}"
        return [Problem("SIZE_OUT_OF_BOUNDS", "spec.size", text)]
    return []


def reply(classes: Iterable[VolumeClass]) -> list[dict[str, Any]]:
    """What a list request answers; what is not configured is left out."""
    return [_neutral(c) for c in classes]


def _neutral(c: VolumeClass) -> dict[str, Any]:
    caps = {"maxIOPS": c.max_iops, "maxThroughputMiBps": c.max_throughput}
    document: dict[str, Any] = {
        "id": c.id,
        "name": c.name,
        "description": c.description or None,
        "media": c.media or None,
        "performance": {k: v for k, v in caps.items() if v is not None} or None,
        "encrypted": c.encrypted,
        "minSize": f"{c.min_size}Gi" if c.min_size is not None else None,
        "maxSize": f"{c.max_size}Gi" if c.max_size is not None else None,
        "supportedFlavors": list(c.supported_flavors) if c.supported_flavors is not None else None,
    }
    return {k: v for k, v in document.items() if v is not None}
