"""The verbs that make an identity.  Each is one write to the cloud, saved in the record at once."""

from dataclasses import replace
from enum import StrEnum
from typing import Any

from roadstead.cloud.names import KEYPAIR_NAME
from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Go, Step, Stop, Yield
from roadstead.reconcile.kind import Action
from roadstead_identity.identity.decide import IdentityVerb, status_of
from roadstead_identity.identity.material import client_config, new_keypair, new_password
from roadstead_identity.identity.model import (
    CLOUD,
    COMPUTE,
    MANAGER,
    NETWORK,
    UNLIMITED,
    UNREAD,
    VOLUMES,
    IdentitySeen,
    Place,
)
from roadstead_identity.identity.observe import (
    IdentityPass,
    credential_of,
    find_user,
    look,
    managing,
    name_of,
    own_user,
    tags_of,
)

NEXT_SECOND = 1.1
"""Tokens of the second in which a password changed stay refused, so the user is left alone until the next one."""

ENVELOPES = {COMPUTE: "quota_set", NETWORK: "quota", VOLUMES: "quota_set"}


def _seen(p: IdentityPass) -> IdentitySeen:
    assert isinstance(p.seen, IdentitySeen)
    return p.seen


def _place(p: IdentityPass) -> Place:
    place = _seen(p).place
    assert place is not None
    return place


async def _save(p: IdentityPass, seen: IdentitySeen, **fields: Any) -> Go:
    """Store the fields, then go on with whatever became readable by it."""
    record = await p.save_record(**fields)
    return Go(await look(p, seen), status_of(record))


async def create_project(p: IdentityPass) -> Step:
    """Project with the tags that accounting reads; a lost answer is adopted by its unique name."""
    body = {
        "name": name_of(p),
        "domain_id": credential_of(p).domain_id,
        "description": "Holds the resources of one service principal; managed by the region service.",
        "tags": tags_of(p),
        "enabled": True,
    }
    try:
        made = await p.write(p.region_domain, "identity", "project.create", json={"project": body})
    except CloudError as error:
        if error.verdict is not Verdict.EXISTS:
            raise
        seen = await look(p, replace(_seen(p), project=UNREAD))
        if seen.project is None:
            raise
        return Go(seen)
    project = str(made.value["id"])
    return await _save(p, replace(_seen(p), project=project, grants=frozenset()), projectID=project)


async def adopt_project(p: IdentityPass) -> Step:
    """Note the id of the project that an earlier request made."""
    project = _seen(p).project
    assert isinstance(project, str)
    return await _save(p, _seen(p), projectID=project)


async def grant_manager(p: IdentityPass) -> Step:
    """The region's user gets manager on the project, without which it cannot act inside."""
    return await _grant(p, _place(p).region_user, MANAGER)


async def grant_role(p: IdentityPass) -> Step:
    """The identity's user gets the first cluster role that it lacks."""
    user = str(p.resource.record["userID"])
    return await _grant(p, user, _seen(p).ungranted(user, _place(p).cluster_roles)[0])


async def _grant(p: IdentityPass, user: str, role_name: str) -> Step:
    seen = _seen(p)
    role = seen.roles[role_name]
    project = str(p.resource.record["projectID"])
    try:
        await p.write(p.region_domain, "identity", "grant.put", project=project, user=user, role=role)
    except CloudError as error:
        if error.verdict is not Verdict.EXISTS:
            raise
    seen = replace(seen, grants=(seen.grants or frozenset()) | {(user, role)})
    return Go(await look(p, seen))


async def set_compute_quota(p: IdentityPass) -> Step:
    return await _set_quota(p, COMPUTE)


async def set_network_quota(p: IdentityPass) -> Step:
    return await _set_quota(p, NETWORK)


async def set_volume_quota(p: IdentityPass) -> Step:
    return await _set_quota(p, VOLUMES)


async def _set_quota(p: IdentityPass, service: str) -> Step:
    """All known keys of the service to unlimited, in one request."""
    seen = _seen(p)
    gaps = dict(seen.quotas or {})
    body = dict.fromkeys(gaps.get(service, UNLIMITED[service]), -1)
    await p.write(managing(p), service, "quota.put", json={ENVELOPES[service]: body})
    return Go(replace(seen, quotas={**gaps, service: ()}))


async def create_user(p: IdentityPass) -> Step:
    """The identity's own user; nothing can belong to it yet, so nothing of it is looked for."""
    password = new_password()
    body = {
        "name": name_of(p),
        "domain_id": credential_of(p).domain_id,
        "password": password,
        "default_project_id": p.resource.record["projectID"],
        "enabled": True,
    }
    try:
        made = await p.write(p.region_domain, "identity", "user.create", json={"user": body})
    except CloudError as error:
        if error.verdict is not Verdict.EXISTS:
            raise
        found = await find_user(p)
        if found is None:
            raise
        return Go(replace(_seen(p), user=found))
    user = str(made.value["id"])
    seen = replace(_seen(p), user=user, credential=None, keypair=None)
    return await _save(p, seen, userID=user, password=password)


async def adopt_user(p: IdentityPass) -> Step:
    """A user of an earlier request, whose password was lost with the answer, gets a new one."""
    user = _seen(p).user
    assert isinstance(user, str)
    password = new_password()
    await p.write(
        p.region_domain, "identity", "user.password", id=user, json={"user": {"password": password}}
    )
    record = await p.save_record(userID=user, password=password)
    waiting = Yield(
        Code.SETTLING, "the user has a new password, which counts from the next second on", NEXT_SECOND
    )
    return Stop(waiting, status_of(record))


async def create_credential(p: IdentityPass) -> Step:
    """The application credential with exactly the cluster roles; its secret is told only once."""
    body = {
        "name": name_of(p),
        "description": "Lifecycle management of the resources of one service principal.",
        "roles": [{"id": _seen(p).roles[name]} for name in _place(p).cluster_roles],
    }
    user = str(p.resource.record["userID"])
    try:
        made = await p.write(
            own_user(p), "identity", "credential.create", user=user, json={"application_credential": body}
        )
    except CloudError as error:
        if error.verdict is not Verdict.EXISTS:
            raise
        seen = await look(p, replace(_seen(p), credential=UNREAD))
        if seen.credential is None:
            raise
        return Go(seen)
    return await _save(
        p,
        replace(_seen(p), credential=str(made.value["id"])),
        applicationCredentialID=made.value["id"],
        applicationCredentialSecret=made.value["secret"],
        cloudConfig=None,  # one that was written earlier carries the secret of a credential that is gone
    )


async def drop_credential(p: IdentityPass) -> Step:
    """Remove the application credential whose secret is lost."""
    found = _seen(p).credential
    user = str(p.resource.record["userID"])
    await _gone(p.write(own_user(p), "identity", "credential.delete", user=user, id=found))
    return Go(replace(_seen(p), credential=None))


async def configure(p: IdentityPass) -> Step:
    """The client configuration, from what the record holds; no request to the cloud."""
    assert p.region is not None
    assert p.region.openstack is not None
    record = p.resource.record
    config = client_config(
        p.region.openstack.endpoint,
        p.region.openstack.regionName,
        str(record["applicationCredentialID"]),
        str(record["applicationCredentialSecret"]),
    )
    return await _save(p, _seen(p), cloud=CLOUD, cloudConfig=config)


async def create_group(p: IdentityPass) -> Step:
    """The server group; Nova allows several of one name, so only the look-up before keeps it to one."""
    body = {"name": name_of(p), "policy": _place(p).policy}
    made = await p.write(own_user(p), "compute", "servergroup.create", json={"server_group": body})
    group = str(made.value["id"])
    return await _save(p, replace(_seen(p), server_group=group), serverGroupID=group)


async def adopt_group(p: IdentityPass) -> Step:
    """Note the id of the server group that an earlier request made."""
    return await _save(p, _seen(p), serverGroupID=_seen(p).server_group)


async def create_keypair(p: IdentityPass) -> Step:
    """A key pair made here; Nova learns the public part only."""
    public, private = new_keypair()
    body = {"name": KEYPAIR_NAME, "public_key": public, "type": "ssh"}
    try:
        await p.write(own_user(p), "compute", "keypair.create", json={"keypair": body})
    except CloudError as error:
        if error.verdict is not Verdict.EXISTS:
            raise
        seen = await look(p, replace(_seen(p), keypair=UNREAD))
        if seen.keypair is None:
            raise
        return Go(seen)
    seen = replace(_seen(p), keypair=KEYPAIR_NAME)
    return await _save(p, seen, sshKeyName=KEYPAIR_NAME, sshPrivateKey=private)


async def drop_keypair(p: IdentityPass) -> Step:
    """Remove the key pair whose private key is lost."""
    await _gone(p.write(own_user(p), "compute", "keypair.delete", id=KEYPAIR_NAME))
    return Go(replace(_seen(p), keypair=None))


async def _gone(writing: Any) -> None:
    """Await a delete; what is gone already is as good."""
    try:
        await writing
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise


MAKING: dict[StrEnum, Action] = {
    IdentityVerb.CREATE_PROJECT: create_project,
    IdentityVerb.ADOPT_PROJECT: adopt_project,
    IdentityVerb.GRANT_MANAGER: grant_manager,
    IdentityVerb.SET_COMPUTE_QUOTA: set_compute_quota,
    IdentityVerb.SET_NETWORK_QUOTA: set_network_quota,
    IdentityVerb.SET_VOLUME_QUOTA: set_volume_quota,
    IdentityVerb.CREATE_USER: create_user,
    IdentityVerb.ADOPT_USER: adopt_user,
    IdentityVerb.GRANT_ROLE: grant_role,
    IdentityVerb.CREATE_CREDENTIAL: create_credential,
    IdentityVerb.DROP_CREDENTIAL: drop_credential,
    IdentityVerb.CONFIGURE: configure,
    IdentityVerb.CREATE_GROUP: create_group,
    IdentityVerb.ADOPT_GROUP: adopt_group,
    IdentityVerb.CREATE_KEYPAIR: create_keypair,
    IdentityVerb.DROP_KEYPAIR: drop_keypair,
}
