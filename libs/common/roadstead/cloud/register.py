"""`region register`: the Region's spec and the request that hands over its credential (behaviour.md 19.2).

Only documents are made here; the command line sends them.  The same input gives the same documents, so registering again
is an update (INV-016).
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from roadstead.cloud.credentials import REGION_KEYS
from roadstead.cloud.logins import auth_url
from roadstead.region import RegionSpec

DEFAULT_ROLES = ("member", "load-balancer_member")
NAMESPACE = "roadstead"
SELECTIONS: Mapping[str, tuple[str, ...]] = {
    "only-organization": ("security", "organizations"),
    "volume-class": ("openstack", "blockStorage", "volumeClasses", "selector", "ids"),
    "algorithm": ("openstack", "loadBalancer", "algorithm"),
    "flavor": ("openstack", "compute", "flavors", "selector", "ids"),
    "external-network": ("openstack", "network", "externalNetworks", "selector", "ids"),
}
"""What `register` can put into a Region, and take out of it, by the name of the option."""
KEPT_METADATA = ("description", "tags", "annotations", "organizationId")
_KEY_VARIABLES = {
    "domain-id": "DOMAIN_ID",
    "user-id": "USER_ID",
    "password": "PASSWORD",
    "project-id": "PROJECT_ID",
}


@dataclass(frozen=True)
class Registered:
    """region_id; envelope: the spec message; credential: body of the credential request, None when it is only named.

    variables: for tests and scripts.
    """

    region_id: str
    envelope: dict[str, Any]
    credential: dict[str, Any] | None = field(repr=False)
    variables: dict[str, str] = field(default_factory=dict)


def region_id_of(endpoint: str, name: str) -> str:
    """The id a region gets when none is given: the same for the same cloud and display name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{auth_url(endpoint)}#{name}"))


def secret_of(values: Mapping[str, str]) -> dict[str, str]:
    """The four keys of a region's credential from configure's values.  ValueError names those that are missing."""
    secret = {key: values.get(variable, "") for key, variable in _KEY_VARIABLES.items()}
    missing = [key for key in REGION_KEYS if not secret[key]]
    if missing:
        raise ValueError(
            f"the credential lacks {', '.join(missing)}; run `roadstead region configure` or supply them"
        )
    return secret


def register(
    *,
    name: str,
    namespace: str | None = None,
    endpoint: str | None = None,
    region_id: str | None = None,
    region_name: str | None = None,
    secret_name: str | None = None,
    create_secret: bool = False,
    values: Mapping[str, str] | None = None,
    organizations: tuple[str, ...] = (),
    volume_classes: tuple[str, ...] = (),
    algorithm: str | None = None,
    flavor: str | None = None,
    external_network: str | None = None,
    held: Mapping[str, Any] | None = None,
    remove: Collection[str] = (),
) -> Registered:
    """Build what registers a region.  Without create_secret the credential is only named, never carried (INV-017).

    values: configure's, needed for create_secret.  held: the Region's document where it is registered already; what is not given
    stays as it is there, whoever put it there.  remove: names of SELECTIONS to take out.  ValueError, with the remedy, for input
    that cannot be.
    """
    given = {
        "only-organization": [{"id": each} for each in organizations],
        "volume-class": list(volume_classes),
        "algorithm": algorithm,
        "flavor": [flavor] if flavor else [],
        "external-network": [external_network] if external_network else [],
    }
    both = sorted(name for name in remove if given[name])
    if both:
        raise ValueError(f"{', '.join(both)} cannot be given and removed at once; say one of the two")
    spec: dict[str, Any] = deepcopy(dict(held["spec"])) if held else {"provider": "openstack"}
    openstack: dict[str, Any] = spec.get("openstack") or {}
    spec["openstack"] = openstack
    endpoint = endpoint or openstack.get("endpoint")
    if not endpoint:
        raise ValueError("the auth URL is needed; supply it")
    ident = region_id or region_id_of(endpoint, name)
    openstack["endpoint"] = auth_url(endpoint)
    secret = openstack.get("serviceAccountSecret") or {}
    openstack["serviceAccountSecret"] = {
        "namespace": namespace or secret.get("namespace") or NAMESPACE,
        "name": secret_name or secret.get("name") or f"{name}-credential",
    }
    if not (openstack.get("identity") or {}).get("clusterRoles"):
        _put(spec, ("openstack", "identity", "clusterRoles"), list(DEFAULT_ROLES))
    if region_name:
        openstack["regionName"] = region_name
    for word, path in SELECTIONS.items():
        if given[word]:
            _put(spec, path, given[word])
        elif word in remove:
            _take_out(spec, path)
    RegionSpec.model_validate(spec)
    credential = None
    if create_secret:
        credential = {"region": ident, "secret": secret_of(values or {})}
    about = {k: v for k, v in (held or {}).get("metadata", {}).items() if k in KEPT_METADATA}
    return Registered(
        ident,
        {"metadata": {**about, "id": ident, "name": name, "regionId": ident}, "spec": spec},
        credential,
        {"ROADSTEAD_REGION": ident, "ROADSTEAD_PROVIDER": "openstack"},
    )


def _put(spec: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *parents, last = path
    for name in parents:
        spec[name] = spec.get(name) or {}
        spec = spec[name]
    spec[last] = value


def _take_out(spec: dict[str, Any], path: Sequence[str]) -> None:
    """Remove it, and what holds nothing any more."""
    first, *rest = path
    if rest and isinstance(spec.get(first), dict):
        _take_out(spec[first], rest)
    if not rest or not spec.get(first):
        spec.pop(first, None)
