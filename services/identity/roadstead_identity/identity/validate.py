"""What an Identity's spec must fulfil."""

from roadstead.reconcile.kind import Metadata, Problem, Resource
from roadstead.subjects import Key
from roadstead_identity.identity.model import IdentitySpec, IdentityStatus

PROVIDER = "openstack"


def validate(
    spec: IdentitySpec, metadata: Metadata, stored: Resource[IdentitySpec, IdentityStatus] | None, _key: Key
) -> list[Problem]:
    """Every reason to refuse the spec.  Organization and project become tags of the Keystone project, so their ids must fit in."""
    problems: list[Problem] = []
    if spec.provider != PROVIDER:
        text = f"provider {spec.provider!r} is not offered; only {PROVIDER!r} is"
        problems.append(Problem("PROVIDER_UNKNOWN", "spec.provider", text))
    for name in ("organizationId", "projectId"):
        value = getattr(metadata, name)
        if value and (len(value) > 200 or set(value) & set("/,") or value != value.strip()):
            text = f"metadata.{name} must be an id of at most 200 characters without comma, slash or outer blanks"
            problems.append(Problem("TENANCY_INVALID", f"metadata.{name}", text, 400))
    if stored is not None and spec.provider != stored.spec.provider:
        problems.append(Problem("PROVIDER_IMMUTABLE", "spec.provider", "spec.provider cannot be changed"))
    return problems
