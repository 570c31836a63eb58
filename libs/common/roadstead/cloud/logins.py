"""From a scope to a login, from a token to the proof that it is the right cloud, from a catalog to an address."""

import re
from collections.abc import Mapping
from typing import Any

from roadstead.cloud.credentials import Keyring, RegionCredential
from roadstead.cloud.port import Principal, PrivilegedPrincipal, RegionDomain, RegionProject, Scope, Verdict
from roadstead.cloud.sending import Access, Login, NotSent

_CATALOG_TYPES: Mapping[str, tuple[str, ...]] = {
    "compute": ("compute",),
    "network": ("network",),
    "block-storage": ("block-storage", "volumev3", "block-store", "volume"),
    "image": ("image",),
    "load-balancer": ("load-balancer",),
    "placement": ("placement",),
    "baremetal": ("baremetal",),
}
# What follows the catalog's address where that does not end in a version already.
_VERSION_SUFFIX: Mapping[str, str] = {
    "network": "/v2.0",
    "image": "/v2",
    "load-balancer": "/v2",
    "baremetal": "/v1",
}
_ENDS_IN_VERSION = re.compile(r"/v\d+(\.\d+)?$")

SCOPE_WORDS: Mapping[type[Any], str] = {
    RegionDomain: "region-domain",
    RegionProject: "region-project",
    Principal: "principal",
    PrivilegedPrincipal: "privileged-principal",
}


def auth_url(endpoint: str) -> str:
    """Keystone's address with its version."""
    plain = endpoint.rstrip("/")
    return plain if plain.endswith("/v3") else f"{plain}/v3"


def region_credential(keyring: Keyring, region: str) -> RegionCredential:
    """The region's service user.  NotSent(KEY) names what is missing (INV-029)."""
    missing = keyring.missing_keys.get(region)
    if missing:
        raise NotSent(
            Verdict.KEY, f"the region's credential lacks {', '.join(missing)}; register the region again"
        )
    found = keyring.region(region)
    if found is None:
        raise NotSent(Verdict.KEY, "no credential of the region is known; register the region")
    return found


def login_of(keyring: Keyring, scope: Scope) -> Login:
    """How the scope logs in now.  NotSent(KEY or CONSISTENCY) when its credential is not whole."""
    region = region_credential(keyring, scope.region)
    url = auth_url(region.endpoint)
    user, password, versions = region.user_id, region.password, (region.version,)
    match scope:
        case RegionDomain():
            return Login(scope.region, versions, url, user, password, domain_id=region.domain_id)
        case RegionProject():
            return Login(scope.region, versions, url, user, password, project_id=region.project_id)
        case PrivilegedPrincipal() | Principal():
            identity = keyring.identity(scope.region, scope.identity)
            if identity is None or not identity.project_id:
                raise NotSent(Verdict.CONSISTENCY, "the identity has no project")
            if isinstance(scope, PrivilegedPrincipal):
                return Login(scope.region, versions, url, user, password, project_id=identity.project_id)
            if not identity.user_id or not identity.password:
                raise NotSent(Verdict.CONSISTENCY, "the identity has no user or no password")
            return Login(
                scope.region,
                (region.version, identity.version),
                url,
                identity.user_id,
                identity.password,
                project_id=identity.project_id,
            )


def foreign_trait(scope: Scope, login: Login, region: RegionCredential, access: Access) -> str | None:
    """What shows that a token is not of the recorded cloud; None when everything fits.

    A wrong cloud answers well, and empty: this is the only moment to notice.
    """
    if access.user_id != login.user_id:
        return "the token is another user's"
    if login.domain_id and access.domain_id != login.domain_id:
        return "the token is of another domain"
    if login.project_id and access.project_id != login.project_id:
        return "the token is of another project"
    in_managed_domain = isinstance(scope, Principal | PrivilegedPrincipal)
    if in_managed_domain and access.project_domain_id not in (None, region.domain_id):
        return "the token's project lies in another domain"
    regions = catalog_regions(access)
    if region.region_name and regions and region.region_name not in regions:
        return f"the catalog does not know the region {region.region_name}"
    return None


def catalog_regions(access: Access) -> set[str]:
    """Keystone's names of the regions in a catalog."""
    return {
        str(endpoint.get("region_id") or endpoint.get("region"))
        for service in access.catalog
        for endpoint in service.get("endpoints", ())
    }


def service_root(url: str) -> str:
    """The address of a service without its version, where it tells which versions there are."""
    return re.sub(r"/v\d+(\.\d+)?(/.*)?$", "", url)


def service_url(service: str, login: Login, region: RegionCredential, access: Access) -> str:
    """The address below which a service's paths start.  NotSent when the catalog does not name one."""
    if service == "identity":
        return login.auth_url
    found = {
        str(endpoint.get("region_id") or endpoint.get("region")): str(endpoint["url"])
        for kind in reversed(_CATALOG_TYPES[service])
        for entry in access.catalog
        if entry.get("type") == kind
        for endpoint in entry.get("endpoints", ())
        if endpoint.get("interface") == "public"
        and (
            not region.region_name
            or region.region_name in (endpoint.get("region_id"), endpoint.get("region"))
        )
    }
    if not found:
        raise NotSent(Verdict.UNAVAILABLE, f"the catalog has no public endpoint of {service}")
    if len(found) > 1:
        raise NotSent(
            Verdict.CONSISTENCY, f"the catalog has several regions: set regionName to one of {sorted(found)}"
        )
    plain = next(iter(found.values())).rstrip("/")
    return plain if _ENDS_IN_VERSION.search(plain) else plain + _VERSION_SUFFIX.get(service, "")
