"""`region register`: the Region's spec and the request that hands over its credential (behaviour.md 19.2).

Only documents are made here; the command line sends them.  The same input gives the same documents, so registering again
is an update (INV-016).
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roadstead.cloud.credentials import REGION_KEYS
from roadstead.cloud.logins import auth_url
from roadstead.region import RegionSpec

DEFAULT_ROLES = ("member", "load-balancer_member")
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
    namespace: str,
    endpoint: str,
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
) -> Registered:
    """Build what registers a region.  Without create_secret the credential is only named, never carried (INV-017).

    values: configure's, needed for create_secret.  ValueError, with the remedy, for input that cannot be.
    """
    if not namespace or not endpoint:
        raise ValueError("namespace and auth URL are needed; supply both")
    ident = region_id or region_id_of(endpoint, name)
    openstack: dict[str, Any] = {
        "endpoint": auth_url(endpoint),
        "serviceAccountSecret": {"namespace": namespace, "name": secret_name or f"{name}-credential"},
        "identity": {"clusterRoles": list(DEFAULT_ROLES)},
    }
    if region_name:
        openstack["regionName"] = region_name
    if algorithm:
        openstack["loadBalancer"] = {"algorithm": algorithm}
    if volume_classes:
        openstack["blockStorage"] = {"volumeClasses": {"selector": {"ids": list(volume_classes)}}}
    if flavor:
        openstack["compute"] = {"flavors": {"selector": {"ids": [flavor]}}}
    if external_network:
        openstack["network"] = {"externalNetworks": {"selector": {"ids": [external_network]}}}
    spec: dict[str, Any] = {"provider": "openstack", "openstack": openstack}
    if organizations:
        spec["security"] = {"organizations": [{"id": each} for each in organizations]}
    RegionSpec.model_validate(spec)
    credential = None
    if create_secret:
        credential = {"region": ident, "secret": secret_of(values or {})}
    return Registered(
        ident,
        {"metadata": {"id": ident, "name": name, "regionId": ident}, "spec": spec},
        credential,
        {"ROADSTEAD_REGION": ident, "ROADSTEAD_PROVIDER": "openstack"},
    )
