"""What an identity's pass does next: nine steps of making, six of removing, each looked up before it is taken."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from roadstead.reconcile.decision import Code, Decision, do, done, park, retry, wait
from roadstead.reconcile.kind import Resource
from roadstead_identity.identity.model import (
    COMPUTE,
    NETWORK,
    UNREAD,
    VOLUMES,
    IdentityLeft,
    IdentitySeen,
    IdentitySpec,
    IdentityStatus,
)
from roadstead_identity.region.visible import UNKNOWN_REGION

IdentityResource = Resource[IdentitySpec, IdentityStatus]


class IdentityRule(StrEnum):
    """Rules of an identity's pass (behaviour.md sections 4.1 and 4.2, in order)."""

    REGION_UNKNOWN = "4.1-region"
    REGION_HIDDEN = "4.1-region-hidden"
    ROLE_MISSING = "4.1-role"
    NOT_READ = "4.1-unread"
    PROJECT_FOREIGN = "4.1-1-foreign"
    PROJECT_ABSENT = "4.1-1"
    PROJECT_FOUND = "4.1-1-adopt"
    MANAGER_UNGRANTED = "4.1-2"
    QUOTA_COMPUTE = "4.1-3-compute"
    QUOTA_NETWORK = "4.1-3-network"
    QUOTA_VOLUMES = "4.1-3-block-storage"
    USER_ABSENT = "4.1-4"
    USER_FOUND = "4.1-4-adopt"
    ROLE_UNGRANTED = "4.1-5"
    CREDENTIAL_ABSENT = "4.1-6"
    CREDENTIAL_LOST = "4.1-6-lost"
    CREDENTIAL_GONE = "4.1-6-gone"
    CONFIG_ABSENT = "4.1-7"
    GROUP_ABSENT = "4.1-8"
    GROUP_FOUND = "4.1-8-adopt"
    KEYPAIR_ABSENT = "4.1-9"
    KEYPAIR_LOST = "4.1-9-lost"
    REALIZED = "4.1-done"
    KEYPAIR_LEFT = "4.2-keypair"
    GROUP_LEFT = "4.2-server-group"
    USER_LEFT = "4.2-user"
    DEFAULT_GROUP_LEFT = "4.2-default-group"
    PROJECT_LEFT = "4.2-project"
    REMOVED = "4.2-done"


class IdentityVerb(StrEnum):
    """Each is one write to the cloud, or (adopt, configure) one to the record."""

    CREATE_PROJECT = "create_project"
    ADOPT_PROJECT = "adopt_project"
    GRANT_MANAGER = "grant_manager"
    SET_COMPUTE_QUOTA = "set_compute_quota"
    SET_NETWORK_QUOTA = "set_network_quota"
    SET_VOLUME_QUOTA = "set_volume_quota"
    CREATE_USER = "create_user"
    ADOPT_USER = "adopt_user"
    GRANT_ROLE = "grant_role"
    CREATE_CREDENTIAL = "create_credential"
    DROP_CREDENTIAL = "drop_credential"
    CONFIGURE = "configure"
    CREATE_GROUP = "create_group"
    ADOPT_GROUP = "adopt_group"
    CREATE_KEYPAIR = "create_keypair"
    DROP_KEYPAIR = "drop_keypair"
    DELETE_KEYPAIR = "delete_keypair"
    DELETE_GROUP = "delete_group"
    DELETE_USER = "delete_user"
    DELETE_DEFAULT_GROUP = "delete_default_group"
    DELETE_PROJECT = "delete_project"


CREATING = frozenset(
    {
        IdentityVerb.CREATE_PROJECT,
        IdentityVerb.CREATE_USER,
        IdentityVerb.CREATE_CREDENTIAL,
        IdentityVerb.CREATE_GROUP,
        IdentityVerb.CREATE_KEYPAIR,
    }
)
DESTRUCTIVE = frozenset(
    {
        IdentityVerb.DROP_CREDENTIAL,
        IdentityVerb.DROP_KEYPAIR,
        IdentityVerb.DELETE_KEYPAIR,
        IdentityVerb.DELETE_GROUP,
        IdentityVerb.DELETE_USER,
        IdentityVerb.DELETE_DEFAULT_GROUP,
        IdentityVerb.DELETE_PROJECT,
    }
)
QUOTA_STEPS = (
    (COMPUTE, IdentityRule.QUOTA_COMPUTE, IdentityVerb.SET_COMPUTE_QUOTA),
    (NETWORK, IdentityRule.QUOTA_NETWORK, IdentityVerb.SET_NETWORK_QUOTA),
    (VOLUMES, IdentityRule.QUOTA_VOLUMES, IdentityVerb.SET_VOLUME_QUOTA),
)


def decide(resource: IdentityResource, seen: IdentitySeen | IdentityLeft, _now: datetime) -> Decision:
    """Total: a deleting resource goes by what is left of it, any other by the steps of making."""
    if resource.deleting:
        return _removing(seen) if isinstance(seen, IdentityLeft) else _unread()
    return _making(resource, seen) if isinstance(seen, IdentitySeen) else _unread()


def status_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """What readers may know of the record: ids, never a secret."""
    return {
        "projectReady": bool(record.get("projectID")),
        "projectId": record.get("projectID"),
        "userId": record.get("userID"),
        "serverGroupId": record.get("serverGroupID"),
        "sshKeyName": record.get("sshKeyName"),
    }


def _making(resource: IdentityResource, seen: IdentitySeen) -> Decision:
    """Steps 1 to 9; a step whose record field is set was taken before and is not taken again (REF-008)."""
    record = resource.record
    if seen.place is None:
        return wait(IdentityRule.REGION_UNKNOWN, Code.WAITING, "the region is not known yet")
    if not seen.place.visible:
        return park(IdentityRule.REGION_HIDDEN, Code.NOT_FOUND, UNKNOWN_REGION)
    absent = seen.missing_roles()
    if absent:
        text = f"the cloud has no role named {', '.join(absent)}; an operator must create it or change the region"
        return retry(IdentityRule.ROLE_MISSING, Code.NOT_FOUND, text)
    if not record.get("projectID"):
        return _project(seen)
    if seen.grants is None:
        return _unread()
    if not seen.managed:
        return do(IdentityRule.MANAGER_UNGRANTED, IdentityVerb.GRANT_MANAGER)
    if seen.quotas is None:
        return _unread()
    for service, rule, verb in QUOTA_STEPS:
        if seen.quotas.get(service):
            return do(rule, verb)
    if not (record.get("userID") and record.get("password")):
        return _user(seen)
    if seen.ungranted(str(record["userID"]), seen.place.cluster_roles):
        return do(IdentityRule.ROLE_UNGRANTED, IdentityVerb.GRANT_ROLE)
    return _belongings(record, seen)


def _project(seen: IdentitySeen) -> Decision:
    if seen.foreign_project:
        text = "a project of this identity's name exists without its tags; an operator must look at it"
        return retry(IdentityRule.PROJECT_FOREIGN, Code.CONSISTENCY, text)
    if seen.project is UNREAD:
        return _unread()
    if seen.project is None:
        # The mark leaves before the request does, so that a lost answer cannot hide the project from a deletion.
        return do(IdentityRule.PROJECT_ABSENT, IdentityVerb.CREATE_PROJECT, projectReady=False)
    return do(IdentityRule.PROJECT_FOUND, IdentityVerb.ADOPT_PROJECT)


def _user(seen: IdentitySeen) -> Decision:
    if seen.user is UNREAD:
        return _unread()
    if seen.user is None:
        return do(IdentityRule.USER_ABSENT, IdentityVerb.CREATE_USER)
    return do(
        IdentityRule.USER_FOUND, IdentityVerb.ADOPT_USER, "its password is not known, so it gets a new one"
    )


def _belongings(record: Mapping[str, Any], seen: IdentitySeen) -> Decision:
    """Steps 6 to 9: what the identity's own user has.  A secret that was lost cannot be read back: made anew."""
    if not (record.get("applicationCredentialID") and record.get("applicationCredentialSecret")):
        if seen.credential is UNREAD:
            return _unread()
        if seen.credential is not None:
            return do(IdentityRule.CREDENTIAL_LOST, IdentityVerb.DROP_CREDENTIAL, "its secret is not known")
        return do(IdentityRule.CREDENTIAL_ABSENT, IdentityVerb.CREATE_CREDENTIAL)
    if seen.credential is None:
        return do(
            IdentityRule.CREDENTIAL_GONE, IdentityVerb.CREATE_CREDENTIAL, "somebody deleted it in the cloud"
        )
    if not (record.get("cloud") and record.get("cloudConfig")):
        return do(IdentityRule.CONFIG_ABSENT, IdentityVerb.CONFIGURE)
    if not record.get("serverGroupID"):
        if seen.server_group is UNREAD:
            return _unread()
        if seen.server_group is not None:
            return do(IdentityRule.GROUP_FOUND, IdentityVerb.ADOPT_GROUP)
        return do(IdentityRule.GROUP_ABSENT, IdentityVerb.CREATE_GROUP)
    if not (record.get("sshKeyName") and record.get("sshPrivateKey")):
        if seen.keypair is UNREAD:
            return _unread()
        if seen.keypair is not None:
            return do(IdentityRule.KEYPAIR_LOST, IdentityVerb.DROP_KEYPAIR, "its private key is not known")
        return do(IdentityRule.KEYPAIR_ABSENT, IdentityVerb.CREATE_KEYPAIR)
    return done(IdentityRule.REALIZED, **status_of(record))


def _removing(left: IdentityLeft) -> Decision:
    """Key pair and server group before their owner, the project last: Nova does not clean up after a project."""
    if left.keypair is not None:
        return do(IdentityRule.KEYPAIR_LEFT, IdentityVerb.DELETE_KEYPAIR)
    if left.server_group is not None:
        return do(IdentityRule.GROUP_LEFT, IdentityVerb.DELETE_GROUP)
    if left.user is not None:
        return do(IdentityRule.USER_LEFT, IdentityVerb.DELETE_USER)
    if left.default_group is not None:
        return do(IdentityRule.DEFAULT_GROUP_LEFT, IdentityVerb.DELETE_DEFAULT_GROUP)
    if left.project is not None:
        return do(IdentityRule.PROJECT_LEFT, IdentityVerb.DELETE_PROJECT)
    return done(IdentityRule.REMOVED)


def _unread() -> Decision:
    """What nobody looked at allows neither a create nor a delete."""
    return retry(
        IdentityRule.NOT_READ, Code.UNKNOWN, "a part of the identity could not be read; looking again"
    )
