"""Reading a security group: one list by its name, which brings its rules along."""

from roadstead.cloud.names import security_group_name
from roadstead.reconcile.passing import Pass
from roadstead_network.securitygroup.canonical import cloud_rule
from roadstead_network.securitygroup.model import (
    SecurityGroupSeen,
    SecurityGroupSpec,
    SecurityGroupStatus,
)
from roadstead_network.tenancy import is_foreign, project_of

SecurityGroupPass = Pass[SecurityGroupSpec, SecurityGroupStatus, SecurityGroupSeen]


async def observe(p: SecurityGroupPass) -> SecurityGroupSeen:
    """One request, and none for what is another tenant's."""
    network = p.resource.metadata.networkId
    if p.identity_id and is_foreign(p, "identity", p.identity_id):
        return SecurityGroupSeen(foreign=True)
    if not p.resource.deleting and network:
        if is_foreign(p, "network", network):
            return SecurityGroupSeen(foreign=True)
        view = p.target("network", network)
        if view is not None and view.metadata.get("identityId") not in (None, p.identity_id):
            return SecurityGroupSeen(mismatch=True)
    return await find(p)


async def find(p: SecurityGroupPass) -> SecurityGroupSeen:
    """The group of exactly our name in our project."""
    project = project_of(p)
    found = await p.find(
        p.privileged,
        "network",
        "securitygroup.list",
        security_group_name(p.resource.key.id),
        lambda group: group.get("project_id") == project,
        project_id=project,
    )
    if found is None:
        return SecurityGroupSeen()
    rules = found.get("security_group_rules")
    if rules is None:
        query = {"security_group_id": found["id"]}
        listed = await p.get(p.privileged, "network", "rule.list", query=query)
        rules = [rule for rule in listed if rule.get("security_group_id") == found["id"]]
    return SecurityGroupSeen(str(found["id"]), tuple(cloud_rule(rule) for rule in rules))
