"""What a Volume's spec must fulfil (resources.md section 6), and what its class says at apply."""

from collections.abc import Iterator, Mapping
from typing import Any

from roadstead.quantity import whole_gib
from roadstead.reconcile.kind import Metadata, Problem, Resource
from roadstead.reconcile.views import Directory
from roadstead.subjects import Key
from roadstead_volumes.classes import problems
from roadstead_volumes.volume.model import VolumeSpec, VolumeStatus

LARGEST = (1 << 31) - 1  # GiB; Cinder takes no larger number
Stored = Resource[VolumeSpec, VolumeStatus]


def validate(spec: VolumeSpec, metadata: Metadata, stored: Stored | None, _key: Key) -> list[Problem]:
    """Every reason to refuse the spec."""
    found = [*_size(spec)]
    if metadata.networkId is not None and metadata.networkId != spec.networkID:
        text = "metadata.networkId must be the network of the spec, or be left out"
        found.append(Problem("NETWORK_MISMATCH", "metadata.networkId", text))
    if (spec.model_extra or {}).get("claimRef") is not None:
        text = "spec.claimRef cannot be set; a volume is claimed by naming it in a server's spec.volumes"
        found.append(Problem("CLAIM_NOT_WRITABLE", "spec.claimRef", text))
    if stored is not None:
        found += _immutable(spec, stored.spec)
    return found


def _size(spec: VolumeSpec) -> Iterator[Problem]:
    try:
        gib = whole_gib(spec.size)
    except ValueError as error:
        yield Problem("SIZE_INVALID", "spec.size", f"spec.size: {error}")
        return
    if gib > LARGEST:
        yield Problem("SIZE_INVALID", "spec.size", f"spec.size: {gib} GiB is more than {LARGEST} GiB")


def _immutable(spec: VolumeSpec, old: VolumeSpec) -> Iterator[Problem]:
    """Sizes are compared as numbers: another spelling of the same size is no change."""
    fixed = (
        ("NETWORK_IMMUTABLE", "networkID", spec.networkID == old.networkID),
        ("CLASS_IMMUTABLE", "volumeClassID", spec.volumeClassID == old.volumeClassID),
        ("SIZE_IMMUTABLE", "size", _same_size(spec.size, old.size)),
    )
    for code, field, same in fixed:
        if not same:
            text = f"spec.{field} cannot be changed; make another volume instead"
            yield Problem(code, f"spec.{field}", text)


def _same_size(new: str | int, old: str | int) -> bool:
    try:
        return whole_gib(new) == whole_gib(old)
    except ValueError:
        return True  # what is wrong with it is said once, by `_size`


def at_apply(
    key: Key,
    _metadata: Metadata,
    spec: VolumeSpec,
    stored: Stored | None,
    _directory: Directory,
    extras: Mapping[str, Any],
) -> list[Problem]:
    """A first spec must name an offered class; while no class is known the first pass will tell."""
    inventory = extras.get("inventory")
    if stored is not None or inventory is None:
        return []
    classes = inventory.known(key.region)
    return [] if classes is None else problems(classes, spec.volumeClassID, whole_gib(spec.size))
