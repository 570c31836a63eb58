"""What a security group's pass does next: the group, then its rules, one write at a time."""

from datetime import datetime
from enum import StrEnum

from roadstead.reconcile.decision import Code, Decision, do, done, retry
from roadstead.reconcile.kind import Resource
from roadstead_network.securitygroup.canonical import extra, missing, wanted
from roadstead_network.securitygroup.model import SecurityGroupSeen, SecurityGroupSpec, SecurityGroupStatus


class SecurityGroupRule(StrEnum):
    """Rules of a security group's pass (behaviour.md section 18, in order)."""

    FOREIGN = "18-foreign"
    MISMATCH = "18-identity"
    ABSENT = "18-create"
    RULE_EXTRA = "18-extra"
    RULE_MISSING = "18-missing"
    REALIZED = "18-done"
    NOTHING_OURS = "18-delete-foreign"
    LEFT = "18-delete"
    REMOVED = "18-deleted"


class SecurityGroupVerb(StrEnum):
    """Each is one write to the cloud."""

    CREATE_GROUP = "create_group"
    DELETE_RULE = "delete_rule"
    CREATE_RULE = "create_rule"
    DELETE_GROUP = "delete_group"


# A rule is no creating verb: Neutron refuses a second equal one, so that it may be asked for again at once.
CREATING = frozenset({SecurityGroupVerb.CREATE_GROUP})
DESTRUCTIVE = frozenset({SecurityGroupVerb.DELETE_RULE, SecurityGroupVerb.DELETE_GROUP})


def decide(
    resource: Resource[SecurityGroupSpec, SecurityGroupStatus], seen: SecurityGroupSeen, _now: datetime
) -> Decision:
    """Total over every observation."""
    if resource.deleting:
        if seen.foreign:
            return done(SecurityGroupRule.NOTHING_OURS)
        if seen.group is not None:
            return do(SecurityGroupRule.LEFT, SecurityGroupVerb.DELETE_GROUP)
        return done(SecurityGroupRule.REMOVED)
    if seen.foreign:
        text = "network or identity belong to another project; name those of this project"
        return retry(SecurityGroupRule.FOREIGN, Code.CONSISTENCY, text)
    if seen.mismatch:
        text = "the network belongs to another identity than the security group; name the network's identity or none"
        return retry(SecurityGroupRule.MISMATCH, Code.CONSISTENCY, text)
    if seen.group is None:
        return do(SecurityGroupRule.ABSENT, SecurityGroupVerb.CREATE_GROUP)
    keys = wanted(resource.spec.rules)
    if extra(keys, seen.rules):
        return do(SecurityGroupRule.RULE_EXTRA, SecurityGroupVerb.DELETE_RULE)
    if missing(keys, seen.rules):
        return do(SecurityGroupRule.RULE_MISSING, SecurityGroupVerb.CREATE_RULE)
    return done(SecurityGroupRule.REALIZED)
