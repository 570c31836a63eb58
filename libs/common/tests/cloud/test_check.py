"""`region check` against simulated clouds that hide or refuse one thing each."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from roadstead.clock import SystemClock
from roadstead.cloud.check import Finding, Severity, check
from roadstead.cloud.checks.findings import OVERRIDES, Checkup
from roadstead.cloud.checks.region import clock as clock_check
from roadstead.cloud.configure import Wanted, configure
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import Call, Principal, RegionDomain, RegionProject, Scope
from roadstead.cloud.settings import CloudSettings
from roadstead.region import OpenStack
from roadstead.testing.cloudsim import Cloud, Fault, SimSettings, policy
from roadstead.testing.direct import DirectAdministrator, DirectSender

REGION, IDENTITY = "r1", "i1"
PHYSICAL = {"providerNetworks": {"physicalNetwork": "physnet1"}}


def spec_of(**parts: Any) -> OpenStack:
    given: dict[str, Any] = {
        "endpoint": "http://cloud.invalid/identity/v3",
        "serviceAccountSecret": {"name": "s"},
        "loadBalancer": {"algorithm": "SOURCE_IP_PORT"},
        "network": PHYSICAL,
    }
    return OpenStack.model_validate({**given, **parts})


@dataclass
class Place:
    sim: Cloud
    keyring: Keyring
    engine: CloudEngine

    async def ask(self, scope: Scope, service: str, verb: str, **args: Any) -> Any:
        return (await self.engine.call(Call(scope, service, verb, args))).value

    async def identity(self) -> None:
        domain = RegionDomain(REGION)
        region = self.keyring.region(REGION)
        assert region is not None
        roles = {role["name"]: role["id"] for role in await self.ask(domain, "identity", "role.list")}
        body: dict[str, Any] = {"name": "unikorn-identity-i1", "domain_id": region.domain_id}
        project = await self.ask(domain, "identity", "project.create", json={"project": body})
        user = await self.ask(domain, "identity", "user.create", json={"user": {**body, "password": "pw"}})
        for person, names in ((region.user_id, ["manager"]), (user["id"], ["member"])):
            for name in names:
                args = {"project": project["id"], "user": person, "role": roles[name]}
                await self.ask(domain, "identity", "grant.put", **args)
        record = {"projectID": project["id"], "userID": user["id"], "password": "pw"}
        self.keyring.put_identity(REGION, IDENTITY, record, 1)

    async def check(self, deep: bool = False, **parts: Any) -> dict[str, Finding]:
        return {each.code: each for each in await check(self.engine, REGION, spec_of(**parts), deep=deep)}


@pytest.fixture
async def place() -> Place:
    sim = Cloud(settings=SimSettings(), seed=5)
    sim.settings.durations.scale(0)
    found = (await configure(DirectAdministrator(sim), Wanted())).values
    keyring = Keyring()
    keyring.put_endpoint(REGION, found["AUTH_URL"], "RegionOne")
    secret = {
        "domain-id": found["DOMAIN_ID"],
        "user-id": found["USER_ID"],
        "password": found["PASSWORD"],
        "project-id": found["PROJECT_ID"],
    }
    keyring.put_region_secret(REGION, secret, 1)
    clock = SystemClock()
    bounds = CloudSettings(throttle_repeats=0)
    return Place(sim, keyring, CloudEngine(DirectSender(sim, clock), keyring, clock, bounds))


def faults_of(found: dict[str, Finding]) -> set[str]:
    return {code for code, finding in found.items() if finding.severity is not Severity.INFO}


async def test_a_fitting_region_has_no_fault(place: Place) -> None:
    assert faults_of(await place.check(deep=True)) == set()


async def test_without_an_identity_the_rest_is_told_as_not_checked(place: Place) -> None:
    found = await place.check()
    assert found["IDENTITY_NOT_CHECKED"].severity is Severity.INFO
    assert faults_of(found) == set()


async def test_stock_policies_miss_every_override(place: Place) -> None:
    place.sim.settings.change({"policy": "stock"})
    found = await place.check(deep=True)
    assert faults_of(found) == {
        "POLICY_ROLE_GRANT",
        "POLICY_COMPUTE_QUOTA",
        "POLICY_NETWORK_QUOTA",
        "POLICY_VOLUME_QUOTA",
        "POLICY_VLAN_CREATE",
        "POLICY_VLAN_READ",
        "POLICY_PINNED_CREATE",
        "POLICY_PUBLIC_IMAGE",
    }
    for code in faults_of(found):
        assert OVERRIDES[code].rule in found[code].remedy


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({policy.KEYSTONE_GRANT_LB_MEMBER}, "POLICY_ROLE_GRANT"),
        ({policy.NOVA_QUOTA_UPDATE}, "POLICY_COMPUTE_QUOTA"),
        ({policy.NEUTRON_QUOTA_UPDATE}, "POLICY_NETWORK_QUOTA"),
        ({policy.CINDER_QUOTA_UPDATE}, "POLICY_VOLUME_QUOTA"),
        ({policy.NEUTRON_CREATE_SEGMENTS}, "POLICY_VLAN_CREATE"),
        ({policy.NEUTRON_GET_PROVIDER_TYPE}, "POLICY_VLAN_READ"),
        ({policy.NEUTRON_GET_PROVIDER_SEGMENT}, "POLICY_VLAN_READ"),
        ({policy.NOVA_PIN_HOST}, "POLICY_PINNED_CREATE"),
        ({policy.GLANCE_PUBLICIZE}, "POLICY_PUBLIC_IMAGE"),
    ],
)
async def test_each_missing_override_is_told_by_name(place: Place, rules: set[str], code: str) -> None:
    place.sim.settings.policy_overrides -= rules
    assert faults_of(await place.check(deep=True)) == {code}


async def test_an_override_is_an_error_only_where_the_region_needs_it(place: Place) -> None:
    place.sim.settings.policy_overrides -= {policy.NOVA_PIN_HOST, policy.NEUTRON_CREATE_SEGMENTS}
    plain = await place.check(deep=True, network={})
    assert plain["POLICY_PINNED_CREATE"].severity is Severity.WARNING
    assert "POLICY_VLAN_CREATE" not in plain
    pinned = {"flavors": {"metadata": [{"id": "f", "pinnedOnly": True}]}}
    needing = await place.check(deep=True, compute=pinned)
    assert needing["POLICY_PINNED_CREATE"].severity is Severity.ERROR
    assert needing["POLICY_VLAN_CREATE"].severity is Severity.ERROR


async def test_a_check_leaves_everything_as_it_was(place: Place) -> None:
    await place.identity()
    state = {service.name: service.dump() for service in place.sim.services}
    quotas = await place.ask(Principal(REGION, IDENTITY), "compute", "quota.get")
    await place.check()
    await place.check(deep=True)
    place.sim.rest()
    after = {service.name: service.dump() for service in place.sim.services}
    for name, kinds in state.items():
        for kind, rows in kinds.items():
            own = [row for row in after[name][kind] if row["name"] != "default"]
            assert own == [row for row in rows if row["name"] != "default"], (name, kind)
    assert await place.ask(Principal(REGION, IDENTITY), "compute", "quota.get") == quotas
    assert set(place.keyring.records) == {(REGION, IDENTITY)}


async def test_a_probe_that_cannot_be_removed_is_named(place: Place) -> None:
    place.sim.faults.add(Fault("status", service="identity", method="DELETE", status=503, times=None))
    found = await place.check(deep=True)
    assert "roadstead-check-" in found["PROBE_LEFT_OVER"].message


async def _server(place: Place) -> None:
    inventory = RegionProject(REGION)
    image = next(i for i in await place.ask(inventory, "image", "image.list") if i["status"] == "active")
    flavor = (await place.ask(inventory, "compute", "flavor.detail"))[0]
    server = {"name": "web", "imageRef": image["id"], "flavorRef": flavor["id"], "networks": "none"}
    await place.ask(Principal(REGION, IDENTITY), "compute", "server.create", json={"server": server})


@pytest.mark.parametrize(
    ("switch", "code"), [("hide_task_state", "TASK_STATE_HIDDEN"), ("hide_launched_at", "LAUNCHED_AT_HIDDEN")]
)
async def test_inv_288_inv_289_hidden_fields_of_servers_fail_by_name(
    place: Place, switch: str, code: str
) -> None:
    await place.identity()
    assert "SERVER_FIELDS_NOT_CHECKED" in await place.check()
    await _server(place)
    assert faults_of(await place.check()) == set()
    place.sim.settings.change({switch: True})
    found = await place.check()
    assert faults_of(found) == {code}
    assert found[code].severity is Severity.ERROR


@pytest.mark.parametrize(
    ("providers", "algorithm", "severity"),
    [
        (("ovn",), "ROUND_ROBIN", Severity.ERROR),
        (("ovn", "amphora"), "ROUND_ROBIN", Severity.WARNING),
        (("ovn", "amphora"), "SOURCE_IP_PORT", None),
        (("amphora",), "ROUND_ROBIN", None),
    ],
)
async def test_the_algorithm_fits_the_provider(
    place: Place, providers: tuple[str, ...], algorithm: str, severity: Severity | None
) -> None:
    place.sim.settings.lb_providers = providers
    found = await place.check(loadBalancer={"algorithm": algorithm})
    assert (found["LB_ALGORITHM"].severity if "LB_ALGORITHM" in found else None) == severity


async def test_an_old_nova_is_told(place: Place) -> None:
    place.sim.settings.compute_max = "2.88"
    assert faults_of(await place.check()) == {"NOVA_VERSION", "INVENTORY_NOT_CHECKED"}


async def test_roles_and_external_networks_are_looked_for(place: Place) -> None:
    found = await place.check(
        identity={"clusterRoles": ["member", "no-such"]},
        network={"externalNetworks": {"selector": {"ids": ["none"]}}},
    )
    assert faults_of(found) == {"ROLE_MISSING", "EXTERNAL_NETWORK_MISSING"}
    assert "no-such" in found["ROLE_MISSING"].message


@pytest.mark.parametrize(
    ("seconds", "severity"),
    [(0, None), (3, None), (-30, Severity.WARNING), (30, Severity.WARNING), (90, Severity.ERROR)],
)
async def test_clocks_are_compared(place: Place, seconds: int, severity: Severity | None) -> None:
    place.engine._journal.skews[REGION] = timedelta(seconds=seconds).total_seconds()
    run = Checkup(place.engine, REGION, spec_of())
    clock_check(run)
    assert [each.severity for each in run.findings] == ([] if severity is None else [severity])


async def test_a_login_that_fails_is_the_only_finding(place: Place) -> None:
    secret = {"domain-id": "d", "user-id": "u", "password": "p", "project-id": "q"}
    place.keyring.put_region_secret(REGION, secret, 2)
    found = await place.check()
    assert set(found) == {"DOMAIN_LOGIN"}
    assert found["DOMAIN_LOGIN"].severity is Severity.ERROR


@pytest.mark.parametrize("service", ["compute", "network", "volume", "load-balancer", "image"])
async def test_a_failing_service_never_stops_the_check(place: Place, service: str) -> None:
    await place.identity()
    place.sim.faults.add(Fault("status", service=service, status=503, times=None))
    for deep in (False, True):
        found = await place.check(deep=deep)
        assert all(finding.message and finding.remedy for finding in found.values())
        if service != "image" or deep:
            assert any(code.endswith("_NOT_CHECKED") for code in faults_of(found)), found


def test_findings_carry_no_words_of_the_cloud() -> None:
    words: Callable[[Finding], str] = lambda each: each.message + each.remedy  # noqa: E731 - the annotation is the point
    for override in OVERRIDES.values():
        assert override.purpose
        assert "\n" not in words(Finding(override.code, Severity.INFO, override.purpose, override.check))
