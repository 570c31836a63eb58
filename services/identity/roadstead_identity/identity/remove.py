"""The verbs that take an identity away.  Missing is done; user and project are proved absent by a list of their own."""

from dataclasses import replace
from enum import StrEnum
from typing import Any

from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Go, Step, Stop, Yield
from roadstead.reconcile.kind import Action
from roadstead_identity.identity.decide import IdentityVerb
from roadstead_identity.identity.model import IdentityLeft
from roadstead_identity.identity.observe import IdentityPass, find_own_project, find_user, managing, own_user

GROUP_NOT_OURS_TO_REMOVE = (Verdict.FORBIDDEN, Verdict.CONFLICT)


def _left(p: IdentityPass) -> IdentityLeft:
    assert isinstance(p.seen, IdentityLeft)
    return p.seen


async def _delete(p: IdentityPass, scope: Any, service: str, verb: str, **args: Any) -> None:
    try:
        await p.write(scope, service, verb, **args)
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise


async def delete_keypair(p: IdentityPass) -> Step:
    await _delete(p, own_user(p), "compute", "keypair.delete", id=_left(p).keypair)
    return Go(replace(_left(p), keypair=None))


async def delete_group(p: IdentityPass) -> Step:
    """As the identity's own user, or as the region's where that one is gone or locked out."""
    left = _left(p)
    try:
        await _delete(p, own_user(p), "compute", "servergroup.delete", id=left.server_group)
    except CloudError as error:
        if error.verdict not in (Verdict.UNAUTHORIZED, Verdict.KEY):
            raise
        await _delete(p, managing(p), "compute", "servergroup.delete", id=left.server_group)
    return Go(replace(left, server_group=None))


async def delete_user(p: IdentityPass) -> Step:
    """Its grants, and its application credentials, go with it."""
    return await _delete_person(p, "user.delete", "user")


async def delete_project(p: IdentityPass) -> Step:
    return await _delete_person(p, "project.delete", "project")


async def _delete_person(p: IdentityPass, verb: str, part: str) -> Step:
    """Delete, then look: 403 is Keystone's answer for what is gone, and only a list tells the two apart."""
    find = find_user if part == "user" else find_own_project
    refused: CloudError | None = None
    try:
        await _delete(p, p.region_domain, "identity", verb, id=getattr(_left(p), part))
    except CloudError as error:
        if error.verdict is not Verdict.FORBIDDEN:
            raise
        refused = error
    there = await find(p)
    if there is None:
        return Go(replace(_left(p), **{part: None}))
    if refused is not None:
        raise refused
    return Stop(Yield(Code.BUSY, f"the {part} was deleted and is still listed; looking again"))


async def delete_default_group(p: IdentityPass) -> Step:
    """Neutron's own group outlives its project, so it goes first.

    Stock Neutron lets only a cloud administrator remove it (409, measured); then it stays behind, and ends nothing.
    """
    try:
        await _delete(p, managing(p), "network", "securitygroup.delete", id=_left(p).default_group)
    except CloudError as error:
        if error.verdict is Verdict.IN_USE:
            text = "ports in the project still use its default security group; they must go first"
            return Stop(Yield(Code.IN_USE, text))
        if error.verdict not in GROUP_NOT_OURS_TO_REMOVE:
            raise
    return Go(replace(_left(p), default_group=None))


REMOVING: dict[StrEnum, Action] = {
    IdentityVerb.DELETE_KEYPAIR: delete_keypair,
    IdentityVerb.DELETE_GROUP: delete_group,
    IdentityVerb.DELETE_USER: delete_user,
    IdentityVerb.DELETE_DEFAULT_GROUP: delete_default_group,
    IdentityVerb.DELETE_PROJECT: delete_project,
}
