"""What a check can find, and the permissions that a cloud's operator has to widen for the region's user.

Rules, check strings and what happens without them were measured on a real cloud.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import Call, CloudError, Scope, Verdict
from roadstead.cloud.verdicts import safe_text
from roadstead.region import OpenStack


class Severity(StrEnum):
    """error: something the region is set up for cannot work; warning: it may; info: could not be told."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Finding:
    """One thing found, in words of our own, with what to do about it."""

    code: str
    severity: Severity
    message: str
    remedy: str


@dataclass(frozen=True)
class Override:
    """A permission that stock policies keep for the cloud administrator (row of the measured table)."""

    code: str
    service: str
    rule: str
    check: str
    purpose: str


MANAGER = "role:manager and project_id:%(project_id)s"
OVERRIDES: Mapping[str, Override] = {
    each.code: each
    for each in (
        Override(
            "POLICY_ROLE_GRANT", "Keystone", "domain_managed_target_role",
            "'load-balancer_member':%(target.role.name)s", "give identities the role load-balancer_member",
        ),
        Override(
            "POLICY_COMPUTE_QUOTA", "Nova", "os_compute_api:os-quota-sets:update", "rule:project_manager_api",
            "lift the compute quotas of an identity",
        ),
        Override("POLICY_NETWORK_QUOTA", "Neutron", "update_quota", MANAGER, "lift the network quotas of an identity"),
        Override(
            "POLICY_VOLUME_QUOTA", "Cinder", "volume_extension:quotas:update", MANAGER,
            "lift the volume quotas of an identity",
        ),
        Override("POLICY_VLAN_CREATE", "Neutron", "create_network:segments", MANAGER, "make VLAN provider networks"),
        Override(
            "POLICY_VLAN_READ", "Neutron", "get_network:provider:network_type and get_network:provider:segmentation_id",
            MANAGER, "read the VLAN id of a network back; without it the field is silently absent",
        ),
        Override(
            "POLICY_PINNED_CREATE", "Nova", "compute:servers:create:requested_destination", "rule:project_manager_api",
            "place a server on a named host",
        ),
        Override("POLICY_PUBLIC_IMAGE", "Glance", "publicize_image", MANAGER, "publish images"),
        Override(
            "POLICY_PLACEMENT", "Placement", "placement:resource_providers:list", "role:manager",
            "look for a free host before a pinned create",
        ),
        Override(
            "POLICY_BAREMETAL", "Ironic", "baremetal:node:list_all", "role:manager",
            "follow the build of bare metal servers; without it the list is silently empty",
        ),
    )
}  # fmt: skip


@dataclass
class Checkup:
    """One check of one region: what is looked into and what has been found so far."""

    cloud: CloudEngine
    region: str
    spec: OpenStack
    findings: list[Finding] = field(default_factory=list)
    flavors: list[Mapping[str, Any]] = field(default_factory=list)

    # ---- words

    def add(self, code: str, severity: Severity, message: str, remedy: str) -> None:
        if code not in {each.code for each in self.findings}:
            self.findings.append(Finding(code, severity, message, remedy))

    def note(self, code: str, what: str, remedy: str) -> None:
        self.add(code, Severity.INFO, f"not checked: {what}", remedy)

    def missing(self, code: str, needed: bool) -> None:
        override = OVERRIDES[code]
        self.add(
            code,
            Severity.ERROR if needed else Severity.WARNING,
            f"the cloud's policy does not let the region's user {override.purpose}",
            f"in {override.service}'s policy file add to the rule {override.rule}: or {override.check}",
        )

    def failed(self, code: str, what: str, error: CloudError) -> None:
        service = error.call.service if error.call else ""
        self.add(
            f"{code}_NOT_CHECKED",
            Severity.WARNING,
            f"not checked: {what}: {safe_text(error.verdict, service)}",
            "mend that and check again; the log has the cloud's own words",
        )

    # ---- requests

    async def ask(self, scope: Scope, service: str, verb: str, **args: Any) -> Any:
        return (await self.cloud.call(Call(scope, service, verb, args))).value

    async def permits(
        self,
        code: str,
        needed: bool,
        probe: Callable[[], Awaitable[Any]],
        refused_means_permitted: bool = False,
    ) -> Any:
        """Run a probe of an override; FORBIDDEN is the finding.  Returns what the probe made, None for a refusal."""
        try:
            return await probe()
        except CloudError as error:
            if error.verdict is Verdict.FORBIDDEN:
                self.missing(code, needed)
            elif not (
                refused_means_permitted and error.verdict in (Verdict.REFUSED, Verdict.GONE, Verdict.CONFLICT)
            ):
                self.failed(code, OVERRIDES[code].purpose, error)
            return None
