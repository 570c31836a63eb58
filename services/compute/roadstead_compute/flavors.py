"""Flavors: Nova's, enriched from the Region (behaviour.md section 16, resources.md section 11).

Pure.  Nova's list decides what there is; the Region's metadata only overrides and adds, and does so before the selector looks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from roadstead.quantity import whole_mib
from roadstead.region import FlavorMetadata, OpenStack, RegionSpec


@dataclass(frozen=True)
class GpuFacts:
    """physical: cards; logical: GPUs that can be scheduled, each with `memory` MiB where that is told."""

    vendor: str
    model: str
    physical: int
    logical: int
    memory: int | None = None


@dataclass(frozen=True)
class Flavor:
    """One offered flavor.  memory in MiB, disk in GB (0: as large as the image needs)."""

    id: str
    name: str
    architecture: str
    cpus: int
    memory: int
    disk: int
    cpuFamily: str | None = None
    gpu: GpuFacts | None = None
    baremetal: bool = False
    pinnedOnly: bool = False


def export(listed: Iterable[Mapping[str, Any]], region: RegionSpec) -> tuple[Flavor, ...]:
    """The offered ones of Nova's flavors, by logical GPUs, then CPUs, then memory.

    Overrides, then public ones only, then the selector; an absent or empty selector takes every public one.
    """
    part = region.openstack
    if part is None:
        return ()
    section = part.compute.flavors
    about = {m.id: m for m in (section.metadata if section is not None else None) or ()}
    selector = section.selector if section is not None else None
    selected = set((selector.ids if selector is not None else None) or ())
    made = (
        _enriched(found, about.get(str(found["id"])), part)
        for found in listed
        if found.get("os-flavor-access:is_public") is True
    )
    kept = (f for f in made if f is not None and (not selected or f.id in selected))
    return tuple(sorted(kept, key=_order))


def _order(flavor: Flavor) -> tuple[int, int, int, str, str]:
    gpus = flavor.gpu.logical if flavor.gpu is not None else 0
    return gpus, flavor.cpus, flavor.memory, flavor.name, flavor.id


def _enriched(found: Mapping[str, Any], about: FlavorMetadata | None, part: OpenStack) -> Flavor | None:
    """None where an override cannot be read: such a flavor would be offered with wrong figures."""
    try:
        memory = int(found["ram"]) if about is None or about.memory is None else whole_mib(about.memory)
        gpu = _gpu(about)
    except ValueError:
        return None
    cpu = about.cpu if about is not None else None
    return Flavor(
        id=str(found["id"]),
        name=str(found.get("name") or ""),
        architecture=(cpu.architecture if cpu else None) or part.defaultArchitecture,
        cpus=(cpu.count if cpu else None) or int(found["vcpus"]),
        memory=memory,
        disk=int(found.get("disk") or 0),
        cpuFamily=cpu.family if cpu else None,
        gpu=gpu,
        baremetal=about.baremetal if about is not None else False,
        pinnedOnly=about.pinnedOnly if about is not None else False,
    )


def _gpu(about: FlavorMetadata | None) -> GpuFacts | None:
    gpu = about.gpu if about is not None else None
    if gpu is None:
        return None
    memory = whole_mib(gpu.memory) if gpu.memory is not None else None
    return GpuFacts(gpu.vendor, gpu.model, gpu.physicalCount, gpu.logicalCount, memory)


def reply(flavors: Iterable[Flavor]) -> list[dict[str, Any]]:
    """What a list request answers; what is not told is left out."""
    return [_neutral(f) for f in flavors]


def _neutral(f: Flavor) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": f.id,
        "name": f.name,
        "architecture": f.architecture,
        "cpus": f.cpus,
        "cpuFamily": f.cpuFamily,
        "memory": f"{f.memory}Mi",
        "disk": f.disk,
        "gpu": _neutral_gpu(f.gpu) if f.gpu is not None else None,
        "baremetal": f.baremetal,
        "pinnedOnly": f.pinnedOnly,
    }
    return {k: v for k, v in document.items() if v is not None}


def _neutral_gpu(gpu: GpuFacts) -> dict[str, Any]:
    document: dict[str, Any] = {
        "vendor": gpu.vendor,
        "model": gpu.model,
        "physicalCount": gpu.physical,
        "logicalCount": gpu.logical,
        "memory": f"{gpu.memory}Mi" if gpu.memory is not None else None,
    }
    return {k: v for k, v in document.items() if v is not None}
