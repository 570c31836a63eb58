"""The verbs of a security group; each is one write to the cloud."""

from dataclasses import replace
from enum import StrEnum

from roadstead.cloud.names import security_group_name
from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Go, Step, Stop, Yield
from roadstead.reconcile.kind import Action
from roadstead_network.securitygroup.canonical import body_of, cloud_rule, extra, missing, wanted
from roadstead_network.securitygroup.decide import SecurityGroupVerb
from roadstead_network.securitygroup.model import DESCRIPTION, CloudRule, SecurityGroupSeen
from roadstead_network.securitygroup.observe import SecurityGroupPass, find


def _seen(p: SecurityGroupPass) -> SecurityGroupSeen:
    assert p.seen is not None
    return p.seen


async def create_group(p: SecurityGroupPass) -> Step:
    """Neutron answers with the rules that it adds by itself."""
    body = {"name": security_group_name(p.resource.key.id), "description": DESCRIPTION}
    made = await p.write(p.privileged, "network", "securitygroup.create", json={"security_group": body})
    rules = made.value.get("security_group_rules") or ()
    return Go(SecurityGroupSeen(str(made.value["id"]), tuple(cloud_rule(rule) for rule in rules)))


async def delete_rule(p: SecurityGroupPass) -> Step:
    """The first rule that is not wanted."""
    seen = _seen(p)
    rule = extra(wanted(p.resource.spec.rules), seen.rules)[0]
    try:
        await p.write(p.privileged, "network", "rule.delete", id=rule.id)
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise
    return Go(replace(seen, rules=tuple(other for other in seen.rules if other.id != rule.id)))


async def create_rule(p: SecurityGroupPass) -> Step:
    """The first rule that is missing; one that is there already is as good."""
    seen = _seen(p)
    assert seen.group is not None
    key = missing(wanted(p.resource.spec.rules), seen.rules)[0]
    body = body_of(key, seen.group, DESCRIPTION)
    ident = ""
    try:
        made = await p.write(p.privileged, "network", "rule.create", json={"security_group_rule": body})
        ident = str(made.value["id"])
    except CloudError as error:
        if error.verdict is not Verdict.EXISTS:
            raise
    return Go(replace(seen, rules=(*seen.rules, CloudRule(ident, key))))


async def delete_group(p: SecurityGroupPass) -> Step:
    """Delete, then look.  While a port uses it the pass ends as a wait."""
    try:
        await p.write(p.privileged, "network", "securitygroup.delete", id=_seen(p).group)
    except CloudError as error:
        if error.verdict is Verdict.IN_USE:
            return Stop(
                Yield(Code.IN_USE, "ports still use the security group; it is deleted once they are gone")
            )
        if error.verdict is not Verdict.GONE:
            raise
    left = await find(p)
    if left.group is not None:
        return Stop(Yield(Code.BUSY, "the security group was deleted and is still listed; looking again"))
    return Go(left)


ACTIONS: dict[StrEnum, Action] = {
    SecurityGroupVerb.CREATE_GROUP: create_group,
    SecurityGroupVerb.DELETE_RULE: delete_rule,
    SecurityGroupVerb.CREATE_RULE: create_rule,
    SecurityGroupVerb.DELETE_GROUP: delete_group,
}
