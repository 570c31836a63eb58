"""Every request the product makes to OpenStack, in one table.

An operation is named (service, verb) and says how it travels.  `{project_id}` is filled from the scope's token, the
other braces from the call's arguments (quoted).  `listing` and `envelope` say where the answer's payload lies.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """One request.  creates, destructive: guarded by the lease; neither is ever re-sent by a library.

    listing: key of the list in each page (the pager runs); envelope: key of the single object; both None: raw body.
    unversioned: the path lies below the service's root, where its versions are told, not below its version.
    """

    service: str
    verb: str
    method: str
    path: str
    listing: str | None = None
    envelope: str | None = None
    creates: bool = False
    destructive: bool = False
    unversioned: bool = False

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def succeeds(self, status: int) -> bool:
        """Whether that status means done; some services tell their versions as "multiple choices"."""
        return 200 <= status < 300 or (self.unversioned and status == 300)


def _rest(
    service: str, noun: str, path: str, plural: str, single: str, *, put: bool = False
) -> list[Operation]:
    update = [Operation(service, f"{noun}.update", "PUT", f"{path}/{{id}}", envelope=single)] if put else []
    return [
        Operation(service, f"{noun}.list", "GET", path, listing=plural),
        Operation(service, f"{noun}.get", "GET", f"{path}/{{id}}", envelope=single),
        Operation(service, f"{noun}.create", "POST", path, envelope=single, creates=True),
        Operation(service, f"{noun}.delete", "DELETE", f"{path}/{{id}}", destructive=True),
        *update,
    ]


_TABLE: list[Operation] = [
    # identity; every path below /v3
    *_rest("identity", "project", "/projects", "projects", "project"),
    *_rest("identity", "user", "/users", "users", "user"),
    Operation("identity", "user.password", "PATCH", "/users/{id}", envelope="user"),
    Operation("identity", "role.list", "GET", "/roles", listing="roles"),
    Operation("identity", "grant.list", "GET", "/role_assignments", listing="role_assignments"),
    Operation("identity", "grant.put", "PUT", "/projects/{project}/users/{user}/roles/{role}"),
    *_rest(
        "identity",
        "credential",
        "/users/{user}/application_credentials",
        "application_credentials",
        "application_credential",
    ),
    # compute; microversion 2.90
    *_rest("compute", "server", "/servers", "servers", "server"),
    Operation("compute", "server.detail", "GET", "/servers/detail", listing="servers"),
    Operation(
        "compute", "server.rebuild", "POST", "/servers/{id}/action", envelope="server", destructive=True
    ),
    Operation("compute", "server.action", "POST", "/servers/{id}/action"),
    Operation(
        "compute",
        "attachment.list",
        "GET",
        "/servers/{server}/os-volume_attachments",
        listing="volumeAttachments",
    ),
    Operation(
        "compute",
        "attachment.get",
        "GET",
        "/servers/{server}/os-volume_attachments/{volume}",
        envelope="volumeAttachment",
    ),
    Operation(
        "compute",
        "attachment.create",
        "POST",
        "/servers/{server}/os-volume_attachments",
        envelope="volumeAttachment",
        creates=True,
    ),
    Operation(
        "compute",
        "attachment.delete",
        "DELETE",
        "/servers/{server}/os-volume_attachments/{volume}",
        destructive=True,
    ),
    *_rest("compute", "servergroup", "/os-server-groups", "server_groups", "server_group"),
    *_rest("compute", "keypair", "/os-keypairs", "keypairs", "keypair"),
    Operation("compute", "flavor.detail", "GET", "/flavors/detail", listing="flavors"),
    Operation("compute", "quota.get", "GET", "/os-quota-sets/{project_id}", envelope="quota_set"),
    Operation("compute", "quota.put", "PUT", "/os-quota-sets/{project_id}", envelope="quota_set"),
    # network; every path below /v2.0
    *_rest("network", "network", "/networks", "networks", "network", put=True),
    *_rest("network", "subnet", "/subnets", "subnets", "subnet", put=True),
    *_rest("network", "router", "/routers", "routers", "router", put=True),
    Operation("network", "router.add_interface", "PUT", "/routers/{id}/add_router_interface", creates=True),
    Operation(
        "network", "router.remove_interface", "PUT", "/routers/{id}/remove_router_interface", destructive=True
    ),
    *_rest("network", "port", "/ports", "ports", "port", put=True),
    *_rest("network", "floatingip", "/floatingips", "floatingips", "floatingip", put=True),
    *_rest("network", "securitygroup", "/security-groups", "security_groups", "security_group", put=True),
    *_rest("network", "rule", "/security-group-rules", "security_group_rules", "security_group_rule"),
    Operation("network", "quota.get", "GET", "/quotas/{project_id}", envelope="quota"),
    Operation("network", "quota.put", "PUT", "/quotas/{project_id}", envelope="quota"),
    # block-storage; the endpoint of the catalog already names the project or not, see sdk.py
    *_rest("block-storage", "volume", "/volumes", "volumes", "volume"),
    Operation("block-storage", "volume.detail", "GET", "/volumes/detail", listing="volumes"),
    Operation("block-storage", "type.list", "GET", "/types", listing="volume_types"),
    Operation("block-storage", "quota.get", "GET", "/os-quota-sets/{project_id}", envelope="quota_set"),
    Operation("block-storage", "quota.put", "PUT", "/os-quota-sets/{project_id}", envelope="quota_set"),
    # image; below /v2
    Operation("image", "image.list", "GET", "/images", listing="images"),
    Operation("image", "image.get", "GET", "/images/{id}"),
    # load-balancer; below /v2
    *_rest(
        "load-balancer", "loadbalancer", "/lbaas/loadbalancers", "loadbalancers", "loadbalancer", put=True
    ),
    Operation(
        "load-balancer", "loadbalancer.status", "GET", "/lbaas/loadbalancers/{id}/status", envelope="statuses"
    ),
    *_rest("load-balancer", "listener", "/lbaas/listeners", "listeners", "listener", put=True),
    *_rest("load-balancer", "pool", "/lbaas/pools", "pools", "pool", put=True),
    Operation("load-balancer", "member.list", "GET", "/lbaas/pools/{pool}/members", listing="members"),
    Operation("load-balancer", "member.batch", "PUT", "/lbaas/pools/{pool}/members"),
    *_rest(
        "load-balancer", "healthmonitor", "/lbaas/healthmonitors", "healthmonitors", "healthmonitor", put=True
    ),
    # what `region check` asks besides, and a look at whether a cloud answers at all
    Operation("compute", "version", "GET", "/"),
    *(
        Operation(service, "versions", "GET", "/", listing="versions", unversioned=True)
        for service in ("compute", "network", "block-storage", "image", "load-balancer", "placement")
    ),
    Operation("load-balancer", "provider.list", "GET", "/lbaas/providers", listing="providers"),
    Operation("placement", "provider.list", "GET", "/resource_providers", listing="resource_providers"),
    Operation("baremetal", "node.list", "GET", "/nodes", listing="nodes"),
    Operation("image", "image.create", "POST", "/images", creates=True),
    Operation("image", "image.delete", "DELETE", "/images/{id}", destructive=True),
]

OPERATIONS: dict[tuple[str, str], Operation] = {(op.service, op.verb): op for op in _TABLE}


def operation(service: str, verb: str) -> Operation:
    """The entry; KeyError when the table lacks it, which is a programming error."""
    return OPERATIONS[service, verb]
