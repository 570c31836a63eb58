"""Reading what an identity has in the cloud, as far as it can be read yet.

`look` fills in every part that nobody read and that has become readable: the project's quotas once the region's user
manages it, the user's belongings once the user holds its roles.  So a first pass goes through all steps without reading
anything twice.  A settled identity costs six requests: roles, grants, three
quota sets, its application credential.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from roadstead.cloud.credentials import Keyring, RegionCredential
from roadstead.cloud.lookup import one
from roadstead.cloud.names import KEYPAIR_NAME, identity_name, project_tags
from roadstead.cloud.port import CloudError, Principal, PrivilegedPrincipal, Scope, Verdict
from roadstead.reconcile.passing import Pass
from roadstead_identity.identity.model import (
    UNLIMITED,
    UNREAD,
    IdentityLeft,
    IdentitySeen,
    IdentitySpec,
    IdentityStatus,
    Place,
)
from roadstead_identity.region.visible import visible_to

IdentityPass = Pass[IdentitySpec, IdentityStatus, IdentitySeen | IdentityLeft]


async def observe(p: IdentityPass) -> IdentitySeen | IdentityLeft:
    """Everything the decision needs, from reads of this pass.  CloudError(WRONG_CLOUD) before any of them."""
    check_domain(p)
    if p.resource.deleting:
        return await _left(p)
    place = _place(p)
    if place is None or not place.visible:
        return IdentitySeen(place)
    roles = await p.get(p.region_domain, "identity", "role.list")
    seen = IdentitySeen(place, {str(role["name"]): str(role["id"]) for role in roles})
    return seen if seen.missing_roles() else await look(p, seen)


async def look(p: IdentityPass, seen: IdentitySeen) -> IdentitySeen:
    """The observation with all parts read that were not read yet and can be now."""
    record = p.resource.record
    if not record.get("projectID") and seen.project is UNREAD:
        seen = await _look_for_project(p, seen)
    project = record.get("projectID") or (seen.project if isinstance(seen.project, str) else None)
    if project and seen.grants is None:
        seen = replace(seen, grants=await grants_on(p, project))
    if record.get("projectID") and seen.managed and seen.quotas is None:
        seen = replace(seen, quotas={service: await quota_gaps(p, service) for service in UNLIMITED})
    if project and not record.get("userID") and seen.user is UNREAD:
        seen = replace(seen, user=await find_user(p))
    if _acts_as_user(record, seen):
        seen = await _look_for_belongings(p, seen)
    return seen


def check_domain(p: IdentityPass) -> None:
    """The region's credential is of the domain in which the region's identities are.

    CloudError(WRONG_CLOUD) otherwise: another domain's service user is served well, and would see none of what is there.
    """
    region = p.directory.get("region", p.region_id)
    recorded = region.status.get("domainId") if region is not None else None
    keyring: Keyring = p.extras["keyring"]
    held = keyring.region(p.region_id)
    if recorded and held is not None and held.domain_id != recorded:
        raise CloudError(
            Verdict.WRONG_CLOUD, text=f"the credential is of the domain {held.domain_id}, not {recorded}"
        )


def credential_of(p: IdentityPass) -> RegionCredential:
    """The region's own credential.  CloudError(KEY) while it is not there."""
    keyring: Keyring = p.extras["keyring"]
    held = keyring.region(p.region_id)
    if held is None:
        raise CloudError(Verdict.KEY, text="the region's credential is not in the keyring")
    return held


def own_user(p: IdentityPass) -> Principal:
    """The identity's own user in its project."""
    return Principal(p.region_id, p.resource.key.id)


def managing(p: IdentityPass) -> PrivilegedPrincipal:
    """The region's user in the identity's project."""
    return PrivilegedPrincipal(p.region_id, p.resource.key.id)


def name_of(p: IdentityPass) -> str:
    """The one name of project, user, application credential and server group."""
    return identity_name(p.resource.key.id)


def tags_of(p: IdentityPass) -> list[str]:
    """Whose project it is.  CloudError(CONSISTENCY) without an organization."""
    organization = p.resource.metadata.organizationId
    if not organization:
        raise CloudError(Verdict.CONSISTENCY, text="the identity names no organization")
    return project_tags(organization, p.resource.key.project)


# ---------------------------------------------------------------- single look-ups


async def list_projects(p: IdentityPass) -> list[dict[str, Any]]:
    """Projects of the identity's name in the managed domain: none or one, names are unique there."""
    query = {"name": name_of(p), "domain_id": credential_of(p).domain_id}
    found: list[dict[str, Any]] = await p.get(p.region_domain, "identity", "project.list", query=query)
    return [project for project in found if project.get("domain_id") == query["domain_id"]]


async def find_user(p: IdentityPass) -> str | None:
    """The id of the user of the identity's name in the managed domain."""
    domain = credential_of(p).domain_id
    found = await p.find(
        p.region_domain,
        "identity",
        "user.list",
        name_of(p),
        lambda user: user.get("domain_id") == domain,
        domain_id=domain,
    )
    return str(found["id"]) if found else None


async def grants_on(p: IdentityPass, project: str) -> frozenset[tuple[str, str]]:
    """Direct grants to users on the project, by one list."""
    listed = await p.get(p.region_domain, "identity", "grant.list", query={"scope.project.id": project})
    return frozenset(
        (str(entry["user"]["id"]), str(entry["role"]["id"]))
        for entry in listed
        if "user" in entry and entry.get("scope", {}).get("project", {}).get("id") == project
    )


async def quota_gaps(p: IdentityPass, service: str) -> tuple[str, ...]:
    """The keys to write, or none when all are unlimited; keys that this cloud does not know are left out."""
    held: Mapping[str, Any] = await p.get(managing(p), service, "quota.get")
    known = tuple(key for key in UNLIMITED[service] if key in held)
    return known if any(held[key] != -1 for key in known) else ()


async def find_credential(p: IdentityPass) -> str | None:
    """The id of the application credential of the identity's name; its own user alone may list it."""
    user = str(p.resource.record["userID"])
    listed = await p.get(own_user(p), "identity", "credential.list", user=user)
    found = one(listed, name_of(p))
    return str(found["id"]) if found else None


async def recorded_credential(p: IdentityPass, ident: str) -> str | None:
    """The application credential of the record while the cloud has it; asked for by id, so that no list can hide it."""
    try:
        await p.get(
            own_user(p), "identity", "credential.get", user=str(p.resource.record["userID"]), id=ident
        )
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise
        return None
    return ident


async def find_group(p: IdentityPass, scope: Scope) -> str | None:
    """The id of the server group of the identity's name."""
    found = one(await p.get(scope, "compute", "servergroup.list"), name_of(p))
    return str(found["id"]) if found else None


async def find_keypair(p: IdentityPass) -> str | None:
    """The key pair's name when the identity's own user has it."""
    listed = await p.get(own_user(p), "compute", "keypair.list")
    found = one((entry.get("keypair", entry) for entry in listed), KEYPAIR_NAME)
    return str(found["name"]) if found else None


# ---------------------------------------------------------------- making


def _place(p: IdentityPass) -> Place | None:
    region = p.region
    if region is None or region.openstack is None:
        return None
    part = region.openstack
    return Place(
        visible=visible_to(region, p.resource.metadata.organizationId),
        cluster_roles=tuple(dict.fromkeys(part.identity.roles)),
        policy=part.compute.serverGroupPolicy,
        region_user=credential_of(p).user_id,
    )


async def _look_for_project(p: IdentityPass, seen: IdentitySeen) -> IdentitySeen:
    found = one(await list_projects(p), name_of(p))
    if found is None:
        return replace(seen, project=None)
    if not set(tags_of(p)) <= set(found.get("tags") or ()):
        return replace(seen, foreign_project=True)
    return replace(seen, project=str(found["id"]))


def _acts_as_user(record: Mapping[str, Any], seen: IdentitySeen) -> bool:
    if seen.place is None or seen.grants is None or not (record.get("userID") and record.get("password")):
        return False
    return not seen.ungranted(str(record["userID"]), seen.place.cluster_roles)


async def _look_for_belongings(p: IdentityPass, seen: IdentitySeen) -> IdentitySeen:
    """What the record lacks; of what it has only the application credential, which its owner may delete at any time."""
    record = p.resource.record
    if seen.credential is UNREAD:
        recorded = record.get("applicationCredentialSecret") and record.get("applicationCredentialID")
        found = await recorded_credential(p, str(recorded)) if recorded else await find_credential(p)
        seen = replace(seen, credential=found)
    if seen.server_group is UNREAD and not record.get("serverGroupID"):
        seen = replace(seen, server_group=await find_group(p, own_user(p)))
    if seen.keypair is UNREAD and not record.get("sshPrivateKey"):
        seen = replace(seen, keypair=await find_keypair(p))
    return seen


# ---------------------------------------------------------------- removing


async def _left(p: IdentityPass) -> IdentityLeft:
    """What is still there.  No request at all when a project was never asked for (REF-001).

    Project and user are asked for by list, because Keystone answers 403 for what is gone; and a working token proves
    nothing, because services go on taking the tokens of users and projects that are gone.
    """
    record = p.resource.record
    recorded = record.get("projectID")
    if not recorded and p.resource.status.projectReady is None:
        return IdentityLeft()
    project = await find_own_project(p)
    user = await find_user(p)
    if user is None:
        await p.not_contradicted(p.region_domain, "identity", "user.get", record.get("userID"))
    left = IdentityLeft(user=user, project=project)
    if project is None or project != recorded:
        return left
    return await _left_inside(p, left, project)


async def find_own_project(p: IdentityPass) -> str | None:
    """The project's id while it is there: by the recorded id, or where none was recorded by our tags."""
    found = one(await list_projects(p), name_of(p))
    if found is None:
        await p.not_contradicted(
            p.region_domain, "identity", "project.get", p.resource.record.get("projectID")
        )
        return None
    recorded = p.resource.record.get("projectID")
    ours = found["id"] == recorded if recorded else set(tags_of(p)) <= set(found.get("tags") or ())
    return str(found["id"]) if ours else None


async def _left_inside(p: IdentityPass, left: IdentityLeft, project: str) -> IdentityLeft:
    """What lies in the project; what only its own user could reach is out of reach once that user is locked out."""
    managed = await _managed(p, project)
    inside: Scope | None = managing(p) if managed else None
    record = p.resource.record
    if left.user is not None and left.user == record.get("userID") and record.get("password"):
        try:
            keypair = await find_keypair(p)
            if keypair is None:
                await p.not_contradicted(own_user(p), "compute", "keypair.get", record.get("sshKeyName"))
            left = replace(left, keypair=keypair)
            inside = own_user(p)
        except CloudError as error:
            if error.verdict is not Verdict.UNAUTHORIZED:
                raise
    if inside is not None:
        group = await find_group(p, inside)
        if group is None:
            await p.not_contradicted(inside, "compute", "servergroup.get", record.get("serverGroupID"))
        left = replace(left, server_group=group)
    if managed:
        left = replace(left, default_group=await find_default_group(p, project))
    return left


async def _managed(p: IdentityPass, project: str) -> bool:
    """Whether the region's user holds manager there, in which case it can act inside."""
    roles = {
        str(role["name"]): str(role["id"]) for role in await p.get(p.region_domain, "identity", "role.list")
    }
    user = credential_of(p).user_id
    return (user, roles.get("manager", "")) in await grants_on(p, project)


async def find_default_group(p: IdentityPass, project: str) -> str | None:
    """The security group that Neutron makes by itself at the first look, so at the latest now."""
    found = await p.find(
        managing(p),
        "network",
        "securitygroup.list",
        "default",
        lambda group: group.get("project_id") == project,
        project_id=project,
    )
    return str(found["id"]) if found else None
