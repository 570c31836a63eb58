"""What can only be told by making things: in a project of the check's own, removed whatever was found."""

import secrets
from collections.abc import Mapping
from typing import Any

from roadstead.cloud.checks.findings import Checkup, Severity
from roadstead.cloud.checks.project import look_inside
from roadstead.cloud.names import project_tags
from roadstead.cloud.port import CloudError, PrivilegedPrincipal, RegionDomain, RegionProject, Verdict


async def look_deep(run: Checkup) -> None:
    """Make a project and a user as an identity has them, look inside, and remove them, whatever was found."""
    ident = f"check-{secrets.token_hex(4)}"
    name = f"roadstead-{ident}"
    domain = RegionDomain(run.region)
    region = run.cloud.keyring.region(run.region)
    if region is None:
        return
    record: dict[str, Any] = {}
    try:
        roles = {role["name"]: role["id"] for role in await run.ask(domain, "identity", "role.list")}
        project = {"name": name, "domain_id": region.domain_id, "tags": project_tags("check", "check")}
        record["projectID"] = (
            await run.ask(domain, "identity", "project.create", json={"project": project})
        )["id"]
        args = {"project": record["projectID"], "user": region.user_id, "role": roles["manager"]}
        await run.ask(domain, "identity", "grant.put", **args)
        password = secrets.token_urlsafe(24)
        user = {"name": name, "domain_id": region.domain_id, "password": password}
        record["userID"] = (await run.ask(domain, "identity", "user.create", json={"user": user}))["id"]
        record["password"] = password
        args = {"project": record["projectID"], "user": record["userID"], "role": roles["member"]}
        await run.ask(domain, "identity", "grant.put", **args)
        run.cloud.keyring.put_identity(run.region, ident, record, 1)
        await _look_around(run, ident)
    except (CloudError, KeyError) as error:
        fault = (
            error
            if isinstance(error, CloudError)
            else CloudError(Verdict.CONSISTENCY, text=f"no role {error}")
        )
        run.failed("PROBE", "the rights inside an identity's project", fault)
    finally:
        await _remove_probe(run, ident, name, record)


async def _look_around(run: Checkup, ident: str) -> None:
    scope = PrivilegedPrincipal(run.region, ident)
    network = None
    if run.spec.network.providerNetworks is not None:
        network = await run.ask(
            scope, "network", "network.create", json={"network": {"name": f"roadstead-{ident}"}}
        )
    try:
        await look_inside(run, ident)
    finally:
        if network is not None:
            await run.ask(scope, "network", "network.delete", id=network["id"])
    body = {
        "name": f"roadstead-{ident}",
        "visibility": "public",
        "disk_format": "raw",
        "container_format": "bare",
    }
    inventory = RegionProject(run.region)
    image = await run.permits(
        "POLICY_PUBLIC_IMAGE", True, lambda: run.ask(inventory, "image", "image.create", json=body)
    )
    if image is not None:
        await run.ask(inventory, "image", "image.delete", id=image["id"])


async def _remove_probe(run: Checkup, ident: str, name: str, record: Mapping[str, Any]) -> None:
    domain = RegionDomain(run.region)
    try:
        if run.cloud.keyring.identity(run.region, ident) is not None:
            await _remove_default_group(run, PrivilegedPrincipal(run.region, ident), name)
        for noun, key in (("user", "userID"), ("project", "projectID")):
            if record.get(key):
                await run.ask(domain, "identity", f"{noun}.delete", id=record[key])
    except CloudError:
        run.add(
            "PROBE_LEFT_OVER",
            Severity.WARNING,
            f"project and user {name} could not be removed",
            "remove them by hand",
        )
    finally:
        run.cloud.keyring.drop_identity(run.region, ident)


async def _remove_default_group(run: Checkup, scope: PrivilegedPrincipal, name: str) -> None:
    """Neutron makes a group with a project's first network, and nobody removes it with the project."""
    if run.spec.network.providerNetworks is None:
        return  # nothing of the network was touched, and looking for the group would make it
    try:
        for group in await run.ask(scope, "network", "securitygroup.list"):
            await run.ask(scope, "network", "securitygroup.delete", id=group["id"])
    except CloudError:
        run.add(
            "DEFAULT_GROUP_LEFT_OVER",
            Severity.INFO,
            f"the security group default of project {name} stays: the cloud lets only administrators remove it",
            "remove it as an administrator when it bothers",
        )
