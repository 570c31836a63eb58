"""What is refused about a server's spec, all at once (resources.md section 5).

`validate` holds the rules that need nothing but the spec and what was stored; `check_inventory` and `check_groups` those that
need what the region offers or what others own: a request is refused by them, a spec that came over the bus is parked by its
first pass.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from roadstead.reconcile.kind import Metadata, Problem, Resource
from roadstead.reconcile.views import Directory, StatusView
from roadstead.subjects import Key
from roadstead_compute.server.model import ServerSpec, ServerStatus
from roadstead_compute.server.offer import Offer, offer_of

USER_DATA_LIMIT = 65535  # of the base64 text, as Nova counts

Stored = Resource[ServerSpec, ServerStatus]


def validate(spec: ServerSpec, metadata: Metadata, stored: Stored | None, key: Key) -> list[Problem]:
    """Every static problem; `stored` is the accepted server, whose fixed parts must stay as they are."""
    found = [*_shape(spec, metadata), *_injection(spec), *_not_yet(spec), *_user_data(spec, stored)]
    return found + (_immutable(spec, metadata, stored) if stored is not None else [])


def _shape(spec: ServerSpec, metadata: Metadata) -> list[Problem]:
    found = []
    if metadata.name != metadata.name.strip() or not metadata.name.isprintable():
        found.append(
            Problem("NAME_INVALID", "metadata.name", "a name has no blanks at its ends and no control signs")
        )
    if spec.image is None:
        found.append(Problem("IMAGE_MISSING", "spec.image", "spec.image is required; set image.id"))
    if len(spec.networks) != 1:
        found.append(Problem("ONE_NETWORK", "spec.networks", "a server has exactly one network"))
    if metadata.networkId is not None and metadata.networkId != spec.nic.id:
        text = "metadata.networkId must be the network of the spec, or be left out"
        found.append(Problem("NETWORK_MISMATCH", "metadata.networkId", text))
    found += _repeated([g.id for g in spec.securityGroups], "spec.securityGroups", "security group")
    found += _repeated([v.id for v in spec.volumes], "spec.volumes", "volume")
    pairs = [(p.cidr, p.macAddress) for p in spec.nic.allowedAddressPairs]
    found += _repeated(pairs, "spec.networks[0].allowedAddressPairs", "address pair")
    return found


def _repeated(items: list[Any], field: str, noun: str) -> list[Problem]:
    if len(set(items)) == len(items):
        return []
    return [Problem("REPEATED", field, f"the same {noun} is named more than once; name it once")]


def _injection(spec: ServerSpec) -> list[Problem]:
    field = "spec.sshInjection"
    authority = spec.sshCertificateAuthorityID is not None
    found = []
    if spec.injection == "ca" and not authority:
        text = "sshInjection ca needs sshCertificateAuthorityID"
        found.append(Problem("SSH_CA_MISSING", field, text))
    if spec.injection != "ca" and authority:
        text = f"sshInjection {spec.injection} takes no sshCertificateAuthorityID; leave one of them out"
        found.append(Problem("SSH_CA_UNUSED", field, text))
    if spec.infrastructureRef is not None and spec.injection == "identityKeypair":
        text = "a server pinned by infrastructureRef cannot use identityKeypair; choose ca or none"
        found.append(Problem("SSH_PINNED_KEYPAIR", field, text))
    return found


def _not_yet(spec: ServerSpec) -> list[Problem]:
    found = []
    for name in ("infrastructureRef", "sshCertificateAuthorityID"):
        if getattr(spec, name) is not None:
            found.append(Problem("NOT_OFFERED", f"spec.{name}", f"{name} is not offered yet; leave it out"))
    return found


def _user_data(spec: ServerSpec, stored: Stored | None) -> list[Problem]:
    """Bytes that were accepted once are not judged again (REF-046)."""
    data = spec.userData
    if data is None or (stored is not None and stored.spec.userData == data):
        return []
    if len(data) > USER_DATA_LIMIT:
        text = f"userData has {len(data)} characters of base64, the limit is {USER_DATA_LIMIT}"
        return [Problem("USERDATA_INVALID", "spec.userData", text)]
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return [Problem("USERDATA_INVALID", "spec.userData", "userData must be base64")]
    return []


def _immutable(spec: ServerSpec, metadata: Metadata, stored: Stored) -> list[Problem]:
    old = stored.spec
    fixed = (
        ("NAME_IMMUTABLE", "metadata.name", metadata.name, stored.metadata.name),
        ("FLAVOR_IMMUTABLE", "spec.flavorID", spec.flavorID, old.flavorID),
        ("NETWORK_IMMUTABLE", "spec.networks[0].id", spec.nic.id, old.nic.id),
        ("SSH_IMMUTABLE", "spec.sshInjection", spec.injection, old.injection),
        (
            "SSH_IMMUTABLE",
            "spec.sshCertificateAuthorityID",
            spec.sshCertificateAuthorityID,
            old.sshCertificateAuthorityID,
        ),
        ("PIN_IMMUTABLE", "spec.infrastructureRef", spec.infrastructureRef, old.infrastructureRef),
    )
    return [
        Problem(code, field, f"{field} cannot be changed; make another server instead")
        for code, field, new, before in fixed
        if new != before
    ]


# ---------------------------------------------------------------- what the region offers


def at_apply(
    key: Key,
    metadata: Metadata,
    spec: ServerSpec,
    stored: Stored | None,
    directory: Directory,
    extras: Mapping[str, Any],
) -> list[Problem]:
    """What a request is refused by beside `validate`; while the inventory is not loaded its rules are left to the first pass."""
    groups = ((g.id, directory.get("securitygroup", g.id)) for g in spec.securityGroups)
    found = check_groups(spec, {ident: group_network(view) for ident, view in groups if view is not None})
    image = spec.image.id if spec.image is not None else None
    offer = offer_of(extras.get("inventory"), key.region, spec.flavorID, image)
    if offer is None:
        return found
    old = stored.spec if stored is not None else None
    return found + check_inventory(spec, old, offer, metadata.organizationId)


def group_network(view: StatusView) -> str | None:
    """The network of a security group, as its owner tells it."""
    found = view.metadata.get("networkId") or view.spec.get("networkID")
    return str(found) if found else None


def check_inventory(
    spec: ServerSpec, old: ServerSpec | None, offer: Offer, organization: str | None
) -> list[Problem]:
    """Flavor and image against what is offered.

    `old` is the stored spec of an update: then only a changed image is checked, and a flavor that was withdrawn since skips
    the rules that need it (REF-044).
    """
    if old is not None and old.image == spec.image:
        return []
    found: list[Problem] = []
    flavor, image = offer.flavor, offer.image
    if flavor is None and old is None:
        text = f"the region does not offer the flavor {spec.flavorID}; choose another"
        found.append(Problem("FLAVOR_GONE", "spec.flavorID", text))
    if flavor is not None and flavor.pinned_only and spec.infrastructureRef is None:
        text = "the flavor is for pinned servers only; set infrastructureRef or choose another flavor"
        found.append(Problem("FLAVOR_PINNED", "spec.flavorID", text))
    if spec.image is None:
        return found
    if image is None or image.organization not in (None, organization):
        text = f"the image {spec.image.id} does not exist; choose another"
        found.append(Problem("IMAGE_NOT_FOUND", "spec.image.id", text, 404))
        return found
    return found + _image_problems(offer)


def _image_problems(offer: Offer) -> list[Problem]:
    flavor, image = offer.flavor, offer.image
    assert image is not None
    field = "spec.image.id"
    found = []
    if image.status != "ready":
        found.append(
            Problem("IMAGE_NOT_READY", field, f"the image is {image.status}, not ready; choose another")
        )
    if image.virtualization not in ("", "any", "baremetal", "virtualized"):
        text = "the image does not say in a known way where it can run; choose another"
        found.append(Problem("IMAGE_VIRT_UNKNOWN", field, text))
    if flavor is None:
        return found
    if image.architecture and flavor.architecture and image.architecture != flavor.architecture:
        text = f"the image is for {image.architecture}, the flavor for {flavor.architecture}; choose others"
        found.append(Problem("IMAGE_ARCH", field, text))
    if flavor.disk and flavor.disk < image.size:
        text = f"the image needs {image.size} GiB, the flavor has a disk of {flavor.disk} GB; choose others"
        found.append(Problem("IMAGE_DISK", field, text))
    if image.virtualization == ("virtualized" if flavor.baremetal else "baremetal"):
        text = "the image is bare metal and the flavor is not, or the other way round; choose others"
        found.append(Problem("IMAGE_VIRT", field, text))
    return found


def check_groups(spec: ServerSpec, networks: Mapping[str, str | None]) -> list[Problem]:
    """Security groups of another network (REF-039).  `networks`: group id -> its network id, as far as known."""
    strangers: Iterable[str] = (
        g.id for g in spec.securityGroups if networks.get(g.id) not in (None, spec.nic.id)
    )
    return [
        Problem("GROUP_NETWORK", "spec.securityGroups", f"the security group {g} belongs to another network")
        for g in strangers
    ]
