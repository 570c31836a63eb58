"""What a Region's spec must fulfil (resources.md section 1); every problem at once."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from roadstead.quantity import whole_gib, whole_mib
from roadstead.reconcile.kind import Metadata, Problem, Resource
from roadstead.region import OpenStack, RegionSpec, Segment, VolumeClassMetadata
from roadstead.subjects import NO_PROJECT, Key
from roadstead_identity.region.model import RegionStatus

PROVIDER = "openstack"
GROUP_POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
ALGORITHMS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")

_PEM = re.compile(r"\s*-----BEGIN PUBLIC KEY-----.+-----END PUBLIC KEY-----\s*", re.DOTALL)


def validate(
    spec: RegionSpec, _metadata: Metadata, stored: Resource[RegionSpec, RegionStatus] | None, key: Key
) -> list[Problem]:
    """Every reason to refuse the spec."""
    problems = list(_place(key))
    if stored is not None and spec.provider != stored.spec.provider:
        problems.append(Problem("PROVIDER_IMMUTABLE", "spec.provider", "spec.provider cannot be changed"))
    if spec.provider != PROVIDER:
        text = f"provider {spec.provider!r} is not offered; only {PROVIDER!r} is"
        problems.append(Problem("PROVIDER_UNKNOWN", "spec.provider", text))
    elif spec.openstack is None:
        text = "a region of provider openstack needs the section spec.openstack"
        problems.append(Problem("OPENSTACK_MISSING", "spec.openstack", text))
    if spec.openstack is not None:
        problems += _openstack(spec.openstack)
    return problems


def _place(key: Key) -> Iterator[Problem]:
    if key.region != key.id or key.project != NO_PROJECT:
        subject = f"spec.{key.id}.{NO_PROJECT}.region.{key.id}"
        yield Problem("REGION_SUBJECT", "id", f"a region is published on its own subject, {subject}", 400)


def _openstack(part: OpenStack) -> Iterator[Problem]:
    yield from _endpoint(part.endpoint)
    if not part.serviceAccountSecret.name:
        field = "spec.openstack.serviceAccountSecret.name"
        yield Problem(
            "SECRET_NAME_MISSING", field, f"{field} must name the secret with the region's credentials"
        )
    yield from _roles(part.identity.clusterRoles)
    yield from _compute(part)
    yield from _signing_key(part)
    yield from _networks(part)
    yield from _volume_classes(part)
    if part.loadBalancer.algorithm not in ALGORITHMS:
        field = "spec.openstack.loadBalancer.algorithm"
        yield Problem("ALGORITHM_UNKNOWN", field, f"{field} must be one of {', '.join(ALGORITHMS)}")


def _endpoint(url: str) -> Iterator[Problem]:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        good = good and parts.username is None and not parts.query and not parts.fragment
    except ValueError:
        good = False
    if not good:
        text = "spec.openstack.endpoint must be Keystone's URL, such as https://cloud.example.org:5000"
        yield Problem("ENDPOINT_INVALID", "spec.openstack.endpoint", text)


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _roles(roles: Sequence[str] | None) -> Iterator[Problem]:
    field = "spec.openstack.identity.clusterRoles"
    names = list(roles or ())
    if any(not name.strip() for name in names):
        yield Problem("ROLE_EMPTY", field, f"{field} holds an empty name")
    for name in _repeated(names):
        yield Problem("ROLE_REPEATED", field, f"{field} names {name!r} more than once")


def _compute(part: OpenStack) -> Iterator[Problem]:
    if part.compute.serverGroupPolicy not in GROUP_POLICIES:
        field = "spec.openstack.compute.serverGroupPolicy"
        yield Problem("GROUP_POLICY_UNKNOWN", field, f"{field} must be one of {', '.join(GROUP_POLICIES)}")
    flavors = (part.compute.flavors.metadata if part.compute.flavors else None) or []
    field = "spec.openstack.compute.flavors.metadata"
    for ident in _repeated(flavor.id for flavor in flavors):
        yield Problem("FLAVOR_REPEATED", field, f"{field} describes the flavor {ident!r} more than once")
    for flavor in flavors:
        for name, value in (
            ("memory", flavor.memory),
            ("gpu.memory", flavor.gpu.memory if flavor.gpu else None),
        ):
            if value is None:
                continue
            try:
                whole_mib(value)
            except ValueError:
                text = (
                    f"{name} of the flavor {flavor.id!r} must be a quantity of a MiB at least, such as 16Gi"
                )
                yield Problem("FLAVOR_MEMORY", f"{field}.{name}", text)


def _signing_key(part: OpenStack) -> Iterator[Problem]:
    pem = part.image.selector.signingKey if part.image.selector else None
    if pem is None:
        return
    try:
        good = _PEM.fullmatch(pem) is not None
        good = good and isinstance(load_pem_public_key(pem.strip().encode()), EllipticCurvePublicKey)
    except (ValueError, UnsupportedAlgorithm):
        good = False
    if not good:
        field = "spec.openstack.image.selector.signingKey"
        yield Problem(
            "SIGNING_KEY", field, f"{field} must be an ECDSA key in PEM, with the header BEGIN PUBLIC KEY"
        )


def _networks(part: OpenStack) -> Iterator[Problem]:
    provider = part.network.providerNetworks
    if provider is None:
        return
    if not provider.physicalNetwork.strip():
        field = "spec.openstack.network.providerNetworks.physicalNetwork"
        yield Problem("PHYSICAL_NETWORK_MISSING", field, f"{field} must name a physical network of the cloud")
    yield from _segments((provider.vlan.segments if provider.vlan else None) or [])


def _segments(segments: Sequence[Segment]) -> Iterator[Problem]:
    """An inverted range is refused: clamping it would widen it to everything (behaviour.md section 17)."""
    field = "spec.openstack.network.providerNetworks.vlan.segments"
    for segment in segments:
        if segment.endId < segment.startId:
            text = f"the VLAN range {segment.startId}-{segment.endId} ends before it begins"
            yield Problem("VLAN_INVERTED", field, text)
    good = sorted((s.startId, s.endId) for s in segments if s.endId >= s.startId)
    for before, after in pairwise(good):
        if after[0] <= before[1]:
            text = f"the VLAN ranges {before[0]}-{before[1]} and {after[0]}-{after[1]} overlap"
            yield Problem("VLAN_OVERLAP", field, text)


def _volume_classes(part: OpenStack) -> Iterator[Problem]:
    classes = part.blockStorage.volumeClasses
    described = (classes.metadata if classes else None) or []
    field = "spec.openstack.blockStorage.volumeClasses.metadata"
    for ident in _repeated(item.id for item in described):
        yield Problem("VOLUME_CLASS_REPEATED", field, f"{field} describes the class {ident!r} more than once")
    for item in described:
        yield from _bounds(item, field)


def _bounds(item: VolumeClassMetadata, field: str) -> Iterator[Problem]:
    """Each bound a positive whole number of GiB, and the largest not below the smallest (INV-177, INV-178)."""
    found: dict[str, int] = {}
    for name, value in (("minSize", item.minSize), ("maxSize", item.maxSize)):
        if value is None:
            continue
        try:
            found[name] = whole_gib(value)
        except ValueError as error:
            yield Problem("VOLUME_BOUND", f"{field}.{name}", f"{name} of the class {item.id!r}: {error}")
    if len(found) == 2 and found["maxSize"] < found["minSize"]:
        text = f"maxSize of the class {item.id!r} is below its minSize"
        yield Problem("VOLUME_BOUNDS_INVERTED", f"{field}.maxSize", text)
