"""Images: which of Glance's are valid, and what they say (behaviour.md section 15.1, resources.md section 10).

Pure.  An image that lacks a required property or bears a wrong one is left out; nothing is guessed.  Signatures are not checked
yet: where the region demands them, images that no organization owns are left out altogether.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roadstead.region import RegionSpec

GIB = 1 << 30
DEFAULT_ARCHITECTURE = "x86_64"
STATUSES: Mapping[str, str] = {
    "queued": "pending",
    "saving": "creating",
    "importing": "creating",
    "uploading": "creating",
    "active": "ready",
    "killed": "failed",
    "deleted": "failed",
    "pending_delete": "failed",
    "deactivated": "failed",
}
VIRTUALIZATIONS = ("any", "baremetal", "virtualized")
GPU_VENDORS = ("AMD", "NVIDIA")
FAILED_IMPORT = "os_glance_failed_import"

_OS = "unikorn:os:"
_PACKAGE = "unikorn:package:"
_TAG = "unikorn:tag:"
_VERSION = re.compile(r"v\d+\.\d+\.\d+", re.ASCII)
_MODELS = re.compile(r"[\w.+-]+(?: [\w.+-]+)*(?:,[\w.+-]+(?: [\w.+-]+)*)*")
_REQUIRED = (f"{_OS}kernel", f"{_OS}family", f"{_OS}distro", f"{_OS}version", "unikorn:virtualization")
_VERSIONED = (f"{_PACKAGE}kubernetes", f"{_PACKAGE}slurmd")


@dataclass(frozen=True)
class Os:
    kernel: str
    family: str
    distro: str
    version: str
    variant: str | None = None
    codename: str | None = None


@dataclass(frozen=True)
class ImageGpu:
    vendor: str
    models: tuple[str, ...]
    driver: str


@dataclass(frozen=True)
class Image:
    """One valid image.  status: pending, creating, ready or failed.  organizationID None: for all.  identityID only on the
    snapshot of a server.  created and modified as Glance tells them."""

    id: str
    name: str
    created: str
    modified: str
    status: str
    architecture: str
    sizeGiB: int
    virtualization: str
    os: Os
    packages: Mapping[str, str] = field(default_factory=dict)
    gpu: ImageGpu | None = None
    organizationID: str | None = None
    identityID: str | None = None
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Exported:
    """images by creation time.  invalid: how many bear wrong properties.  unsigned: how many were left out because the region
    demands signatures."""

    images: tuple[Image, ...]
    invalid: int = 0
    unsigned: int = 0


def export(listed: Iterable[Mapping[str, Any]], region: RegionSpec) -> Exported:
    """The valid ones of Glance's public images."""
    part = region.openstack
    if part is None:
        return Exported(())
    selector = part.image.selector
    signed_only = selector is not None and selector.signingKey is not None
    public = [found for found in listed if found.get("visibility") == "public"]
    valid = [found for found in public if is_valid(found)]
    made = [convert(found, part.defaultArchitecture) for found in valid]
    kept = [image for image in made if image.organizationID is not None or not signed_only]
    ordered = tuple(sorted(kept, key=lambda image: (image.created, image.id)))
    return Exported(ordered, len(public) - len(valid), len(made) - len(kept))


# ---------------------------------------------------------------- validity


def is_valid(found: Mapping[str, Any]) -> bool:
    """Whether its properties fulfil the schema (INV-209)."""
    if any(not _text(found, name) for name in _REQUIRED):
        return False
    texts = (f"{_OS}variant", f"{_OS}codename", "unikorn:digest")
    if any(name in found and not isinstance(found[name], str) for name in texts):
        return False
    if any(name.startswith(_TAG) and not isinstance(value, str) for name, value in found.items()):
        return False
    return (
        found[f"{_OS}kernel"] == "linux"
        and found["unikorn:virtualization"] in VIRTUALIZATIONS
        and all(name not in found or _is_version(found[name]) for name in _VERSIONED)
        and _gpu_is_valid(found)
    )


def _text(found: Mapping[str, Any], name: str) -> str | None:
    """A text that says something, else None."""
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def _is_version(value: Any) -> bool:
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None


def _gpu_is_valid(found: Mapping[str, Any]) -> bool:
    vendor = found.get("unikorn:gpu_vendor")
    if vendor is None:
        return True
    models = _text(found, "unikorn:gpu_models")
    return (
        vendor in GPU_VENDORS
        and models is not None
        and _MODELS.fullmatch(models) is not None
        and _text(found, "unikorn:gpu_driver_version") is not None
    )


# ---------------------------------------------------------------- conversion


def convert(found: Mapping[str, Any], default_architecture: str | None) -> Image:
    """A valid image of Glance in neutral words."""
    return Image(
        id=str(found["id"]),
        name=str(found.get("name") or ""),
        created=str(found.get("created_at") or ""),
        modified=str(found.get("updated_at") or ""),
        status=_status(found),
        architecture=_text(found, "architecture") or default_architecture or DEFAULT_ARCHITECTURE,
        sizeGiB=_size(found),
        virtualization=str(found["unikorn:virtualization"]),
        os=Os(
            kernel=str(found[f"{_OS}kernel"]),
            family=str(found[f"{_OS}family"]),
            distro=str(found[f"{_OS}distro"]),
            version=str(found[f"{_OS}version"]),
            variant=_text(found, f"{_OS}variant"),
            codename=_text(found, f"{_OS}codename"),
        ),
        packages=_packages(found),
        gpu=_gpu(found),
        organizationID=_text(found, "unikorn:organization:id"),
        identityID=_text(found, "unikorn:identity_id"),
        tags=_below(found, _TAG) or None,
    )


def _status(found: Mapping[str, Any]) -> str:
    """A failed import leaves the image queued for ever, with the store that failed in a property of its own."""
    if found.get("status") == "queued" and found.get(FAILED_IMPORT):
        return "failed"
    return STATUSES.get(str(found.get("status")), "failed")


def _size(found: Mapping[str, Any]) -> int:
    least = int(found.get("min_disk") or 0)
    return least if least > 0 else -(-int(found.get("virtual_size") or 0) // GIB)


def _packages(found: Mapping[str, Any]) -> dict[str, str]:
    packages = _below(found, _PACKAGE)
    legacy = _text(found, "unikorn:kubernetes_version")
    if legacy is not None:
        packages.setdefault("kubernetes", legacy)
    return packages


def _below(found: Mapping[str, Any], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in found.items()
        if name.startswith(prefix) and len(name) > len(prefix) and isinstance(value, str)
    }


def _gpu(found: Mapping[str, Any]) -> ImageGpu | None:
    vendor = _text(found, "unikorn:gpu_vendor")
    if vendor is None:
        return None
    models = tuple(str(found["unikorn:gpu_models"]).split(","))
    return ImageGpu(vendor, models, str(found["unikorn:gpu_driver_version"]))


# ---------------------------------------------------------------- replies


def query(
    images: Iterable[Image], *, organization: str | None, owned: bool = False, status: str | None = None
) -> list[Image]:
    """Those that an organization may see, by name: its own and, unless `owned`, those of nobody.

    organization None: a caller with global read, who sees all.
    """

    def seen(image: Image) -> bool:
        if status is not None and image.status != status:
            return False
        if organization is None:
            return image.organizationID is not None or not owned
        return image.organizationID == organization or (image.organizationID is None and not owned)

    return sorted((image for image in images if seen(image)), key=lambda image: (image.name, image.id))


def reply(images: Iterable[Image]) -> list[dict[str, Any]]:
    """What a list request answers; what an image does not say is left out."""
    return [_neutral(image) for image in images]


def _neutral(image: Image) -> dict[str, Any]:
    os = image.os
    gpu = image.gpu
    document: dict[str, Any] = {
        "id": image.id,
        "name": image.name,
        "created": image.created,
        "modified": image.modified,
        "status": image.status,
        "architecture": image.architecture,
        "sizeGiB": image.sizeGiB,
        "virtualization": image.virtualization,
        "os": _told(
            kernel=os.kernel,
            family=os.family,
            distro=os.distro,
            version=os.version,
            variant=os.variant,
            codename=os.codename,
        ),
        "packages": dict(image.packages) or None,
        "gpu": {"vendor": gpu.vendor, "models": list(gpu.models), "driver": gpu.driver} if gpu else None,
        "organizationId": image.organizationID,
        "identityId": image.identityID,
        "tags": dict(image.tags) if image.tags is not None else None,
    }
    return _told(**document)


def _told(**fields: Any) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if v is not None}
