"""What can be told inside an identity's project.

Probes of a permission change nothing: they write what they read, repeat a grant, or ask for something that must fail
behind the permission (a physical network, an image that is none).
"""

from collections.abc import Awaitable, Callable
from typing import Any

from roadstead.cloud.checks.findings import OVERRIDES, Checkup, Severity
from roadstead.cloud.port import CloudError, Principal, PrivilegedPrincipal, RegionDomain, Scope

NOWHERE = "roadstead-check-none"
NO_ID = "00000000-0000-4000-8000-000000000000"


async def look_inside(run: Checkup, identity: str) -> None:
    """Every right that the region's user needs inside an identity's project, and what the identity's user sees there."""
    privileged = PrivilegedPrincipal(run.region, identity)
    try:
        access = await run.cloud.access(privileged)
    except CloudError as error:
        run.failed("PRIVILEGED_LOGIN", "the service user inside an identity's project", error)
        return
    if "member" not in access.roles:
        run.add(
            "MANAGER_IMPLIES_MEMBER",
            Severity.ERROR,
            "role manager does not imply member: the service user may do nothing inside identities' projects",
            "run `openstack implied role create manager --implied-role member`",
        )
    await _grant(run, identity)
    await _quotas(run, privileged)
    await _vlan(run, privileged, access.project_id)
    await _pinned(run, privileged)
    await _placement(run, privileged)
    await _bare_metal(run, privileged)
    await _hidden_fields(run, Principal(run.region, identity))


async def _grant(run: Checkup, identity: str) -> None:
    """Grants are the same when repeated: an identity has its roles already."""
    held = run.cloud.keyring.identity(run.region, identity)
    if held is None or held.user_id is None:
        return
    domain = RegionDomain(run.region)
    roles = {role["name"]: role["id"] for role in await run.ask(domain, "identity", "role.list")}
    for name in run.spec.identity.roles:
        if name in roles:
            args = {"project": held.project_id, "user": held.user_id, "role": roles[name]}
            await run.permits("POLICY_ROLE_GRANT", True, _probe(run, domain, "identity", "grant.put", **args))


def _probe(run: Checkup, scope: Scope, service: str, verb: str, **args: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: run.ask(scope, service, verb, **args)


async def _quotas(run: Checkup, scope: Scope) -> None:
    """Write the limit that was read."""
    for service, code, envelope, key in (
        ("compute", "POLICY_COMPUTE_QUOTA", "quota_set", "instances"),
        ("network", "POLICY_NETWORK_QUOTA", "quota", "network"),
        ("block-storage", "POLICY_VOLUME_QUOTA", "quota_set", "volumes"),
    ):
        try:
            limit = (await run.ask(scope, service, "quota.get"))[key]
        except CloudError as error:
            run.failed(code, OVERRIDES[code].purpose, error)
            continue
        await run.permits(code, True, _probe(run, scope, service, "quota.put", json={envelope: {key: limit}}))


async def _vlan(run: Checkup, scope: Scope, project_id: str | None) -> None:
    """A physical network that is none is refused only after the permission was looked at."""
    if run.spec.network.providerNetworks is None:
        return
    segment = {
        "provider:network_type": "vlan",
        "provider:physical_network": NOWHERE,
        "provider:segmentation_id": 4094,
    }
    body = {"network": {"name": NOWHERE, "segments": [segment]}}
    made = await run.permits(
        "POLICY_VLAN_CREATE", True, _probe(run, scope, "network", "network.create", json=body), True
    )
    if made is not None:
        await run.ask(scope, "network", "network.delete", id=made["id"])
    try:
        own = await run.ask(scope, "network", "network.list", query={"project_id": project_id})
    except CloudError as error:
        run.failed("POLICY_VLAN_READ", OVERRIDES["POLICY_VLAN_READ"].purpose, error)
        return
    if not own:
        run.note(
            "POLICY_VLAN_READ_NOT_CHECKED",
            "whether VLAN ids can be read",
            "make a network, or ask for --deep",
        )
    elif any("provider:segmentation_id" not in each or "provider:network_type" not in each for each in own):
        run.missing("POLICY_VLAN_READ", True)


async def _pinned(run: Checkup, scope: Scope) -> None:
    """An image that is none is refused only after the permission was looked at."""
    if not run.flavors:
        return
    compute = run.spec.compute
    metadata = (compute.flavors.metadata if compute.flavors else None) or []
    server = {
        "name": NOWHERE,
        "imageRef": NO_ID,
        "flavorRef": run.flavors[0]["id"],
        "networks": "none",
        "hypervisor_hostname": NOWHERE,
    }
    made = await run.permits(
        "POLICY_PINNED_CREATE",
        any(each.pinnedOnly for each in metadata) or bool(compute.placementPreflight),
        _probe(run, scope, "compute", "server.create", json={"server": server}),
        True,
    )
    if made is not None:
        await run.ask(scope, "compute", "server.delete", id=made["id"])


async def _placement(run: Checkup, scope: Scope) -> None:
    preflight = run.spec.compute.placementPreflight
    if preflight is not None and preflight.enabled:
        await run.permits("POLICY_PLACEMENT", True, _probe(run, scope, "placement", "provider.list"))


async def _bare_metal(run: Checkup, scope: Scope) -> None:
    metadata = (run.spec.compute.flavors.metadata if run.spec.compute.flavors else None) or []
    if not any(each.baremetal for each in metadata):
        return
    nodes = await run.permits("POLICY_BAREMETAL", True, _probe(run, scope, "baremetal", "node.list"))
    if nodes == []:
        # A refusal looks exactly like a cloud without nodes.
        run.missing("POLICY_BAREMETAL", True)


async def _hidden_fields(run: Checkup, scope: Scope) -> None:
    """INV-289: without task_state a foreign task is not seen, without launched_at no server is ever provisioned."""
    try:
        servers = await run.ask(scope, "compute", "server.detail")
    except CloudError as error:
        run.failed("SERVER_FIELDS", "which fields of servers are visible", error)
        return
    if not servers:
        run.note(
            "SERVER_FIELDS_NOT_CHECKED",
            "which fields of servers are visible",
            "make a server and check again",
        )
    for name, code in (
        ("OS-EXT-STS:task_state", "TASK_STATE_HIDDEN"),
        ("OS-SRV-USG:launched_at", "LAUNCHED_AT_HIDDEN"),
    ):
        if any(name not in each for each in servers):
            run.add(
                code,
                Severity.ERROR,
                f"the cloud hides the field {name.partition(':')[2]} of servers",
                "let Nova's policy show the extended status and usage of servers to project members",
            )
