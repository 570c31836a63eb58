"""The same contract against real services: registration, check, and the answers that the verdict table stands on.

Needs a running cloud with the policies of deploy/cloud; its clouds.yaml is found by ROADSTEAD_CLOUD_HOME, else in the
repository's .run/cloud.  Everything is made in a domain of the test's own and removed again.
"""

import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roadstead.clock import SystemClock
from roadstead.cloud.check import Finding, Severity, check
from roadstead.cloud.configure import ConfigureError, Wanted, configure
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine, RequestNote
from roadstead.cloud.lookup import one
from roadstead.cloud.port import (
    Call,
    CloudError,
    Principal,
    PrivilegedPrincipal,
    RegionDomain,
    RegionProject,
    Scope,
    Verdict,
)
from roadstead.cloud.register import register, secret_of
from roadstead.cloud.sdk import SdkAdministrator, SdkSender
from roadstead.cloud.settings import CloudSettings
from roadstead.region import NetworkPart, OpenStack, RegionSpec

pytestmark = [pytest.mark.cloud, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[4]
HOME = Path(os.environ.get("ROADSTEAD_CLOUD_HOME", ROOT / ".run/cloud"))
NAME = "roadstead-admin"
REGION, IDENTITY = "r1", "i1"
DOMAIN = RegionDomain(REGION)
INVENTORY = RegionProject(REGION)
PRINCIPAL = Principal(REGION, IDENTITY)
PRIVILEGED = PrivilegedPrincipal(REGION, IDENTITY)


@dataclass
class Real:
    admin: SdkAdministrator
    wanted: Wanted
    values: dict[str, str]
    engine: CloudEngine
    spec: OpenStack
    notes: list[RequestNote]

    async def ask(self, scope: Scope, service: str, verb: str, **args: Any) -> Any:
        return (await self.engine.call(Call(scope, service, verb, args))).value

    async def verdict(self, scope: Scope, service: str, verb: str, **args: Any) -> Verdict:
        with pytest.raises(CloudError) as caught:
            await self.engine.call(Call(scope, service, verb, args))
        return caught.value.verdict


@pytest.fixture
async def real(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Real]:
    clouds = HOME / "etc/clouds.yaml"
    if not clouds.exists():
        pytest.skip(f"no cloud at {HOME}: start one with `make cloud`")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    admin = SdkAdministrator(NAME)
    wanted = Wanted(prefix=f"contract-{uuid.uuid4().hex[:8]}")
    values = dict((await configure(admin, wanted)).values)
    made = register(
        name="contract",
        namespace="test",
        endpoint=values["AUTH_URL"],
        region_name=values.get("REGION_NAME"),
        algorithm="SOURCE_IP_PORT",
    )
    spec = RegionSpec.model_validate(made.envelope["spec"]).openstack
    assert spec is not None
    keyring = Keyring()
    keyring.put_endpoint(REGION, spec.endpoint, spec.regionName)
    keyring.put_region_secret(REGION, secret_of(values), 1)
    settings = CloudSettings(page_limit=2)
    sender = SdkSender(settings)
    notes: list[RequestNote] = []
    engine = CloudEngine(sender, keyring, SystemClock(), settings, on_request=notes.append)
    found = Real(admin, wanted, values, engine, spec, notes)
    try:
        await _identity(found)
        yield found
    finally:
        await _remove(found)
        await sender.close()


async def _identity(real: Real) -> None:
    roles = {role["name"]: role["id"] for role in await real.ask(DOMAIN, "identity", "role.list")}
    body: dict[str, Any] = {"name": "unikorn-identity-i1", "domain_id": real.values["DOMAIN_ID"]}
    project = await real.ask(DOMAIN, "identity", "project.create", json={"project": body})
    args = {"project": project["id"], "user": real.values["USER_ID"], "role": roles["manager"]}
    await real.ask(DOMAIN, "identity", "grant.put", **args)
    password = str(uuid.uuid4())
    user = await real.ask(DOMAIN, "identity", "user.create", json={"user": {**body, "password": password}})
    for role in ("member", "load-balancer_member"):
        args = {"project": project["id"], "user": user["id"], "role": roles[role]}
        await real.ask(DOMAIN, "identity", "grant.put", **args)
    record = {"projectID": project["id"], "userID": user["id"], "password": password}
    real.engine.keyring.put_identity(REGION, IDENTITY, record, 1)


async def _remove(real: Real) -> None:
    """Everything of the test's projects, then its domain, as the administrator."""
    if real.engine.keyring.identity(REGION, IDENTITY) is not None:
        for volume in await real.ask(PRINCIPAL, "block-storage", "volume.list"):
            await real.ask(PRINCIPAL, "block-storage", "volume.delete", id=volume["id"])
        for key in await real.ask(PRINCIPAL, "compute", "keypair.list"):
            await real.ask(PRINCIPAL, "compute", "keypair.delete", id=key["name"])
        for noun in ("port", "network"):
            access = await real.engine.access(PRIVILEGED)
            query = {"project_id": access.project_id}
            for row in await real.ask(PRIVILEGED, "network", f"{noun}.list", query=query):
                await real.ask(PRIVILEGED, "network", f"{noun}.delete", id=row["id"])
    domain = real.values["DOMAIN_ID"]
    projects = await real.ask(DOMAIN, "identity", "project.list")
    for project in projects:
        groups = await real.admin.request(
            "network", "GET", "/security-groups", query={"project_id": project["id"]}
        )
        assert groups.status == 200
        for group in _json(groups)["security_groups"]:
            await real.admin.request("network", "DELETE", f"/security-groups/{group['id']}")
    off = await real.admin.request("identity", "PATCH", f"/domains/{domain}", {"domain": {"enabled": False}})
    gone = await real.admin.request("identity", "DELETE", f"/domains/{domain}")
    assert (off.status, gone.status) == (200, 204)


def _json(raw: Any) -> Any:
    import orjson

    return orjson.loads(raw.body)


async def test_inv_015_inv_016_inv_018_registration_on_a_real_cloud(real: Real) -> None:
    again = await configure(real.admin, real.wanted, previous=real.values)
    assert dict(again.values) == real.values
    assert again.steps == ()
    with pytest.raises(ConfigureError, match="rotation"):
        await configure(real.admin, real.wanted)
    with pytest.raises(ConfigureError, match="not the one"):
        await configure(real.admin, Wanted(prefix=real.wanted.prefix, password="wrong"))


async def test_check_finds_no_fault_in_the_reference_cloud(real: Real) -> None:
    spec = real.spec.model_copy(deep=True)
    spec.network = NetworkPart.model_validate({"providerNetworks": {"physicalNetwork": "physnet1"}})
    found = await check(real.engine, REGION, spec, deep=True)
    faults = [each for each in found if each.severity is not Severity.INFO]
    assert faults == [], faults
    assert [each.code for each in found if each.code != "DEFAULT_GROUP_LEFT_OVER"] == [
        "SERVER_FIELDS_NOT_CHECKED"
    ]
    names = {project["name"] for project in await real.ask(DOMAIN, "identity", "project.list")}
    assert not [name for name in names if name.startswith("roadstead-check")]


async def test_check_inside_an_identity_changes_no_quota(real: Real) -> None:
    quotas = {
        service: await real.ask(PRIVILEGED, service, "quota.get")
        for service in ("compute", "network", "block-storage")
    }
    found: list[Finding] = await check(real.engine, REGION, real.spec)
    assert [each for each in found if each.severity is not Severity.INFO] == []
    for service, before in quotas.items():
        assert await real.ask(PRIVILEGED, service, "quota.get") == before


async def test_real_lists_are_whole_with_pages_of_two(real: Real) -> None:
    names = [f"page-{n}" for n in range(5)]
    for name in names:
        await real.ask(PRIVILEGED, "network", "network.create", json={"network": {"name": name}})
        await real.ask(
            PRINCIPAL, "block-storage", "volume.create", json={"volume": {"name": name, "size": 1}}
        )
    networks = await real.engine.call(Call(PRIVILEGED, "network", "network.list"))
    assert sorted(each["name"] for each in networks.value if each["name"] in names) == names
    assert networks.requests >= 3
    volumes = await real.engine.call(Call(PRINCIPAL, "block-storage", "volume.detail"))
    assert sorted(each["name"] for each in volumes.value) == names
    assert volumes.requests >= 3
    for service, verb in (
        ("image", "image.list"), ("compute", "flavor.detail"), ("block-storage", "type.list"),
        ("load-balancer", "loadbalancer.list"),
    ):  # fmt: skip
        rows = (await real.engine.call(Call(INVENTORY, service, verb))).value
        assert len({row["id"] for row in rows}) == len(rows)
    shouted = await real.ask(PRIVILEGED, "network", "network.list", query={"name": "PAGE-1"})
    assert one(shouted, "PAGE-1") is None


async def test_real_refusals_get_their_verdict(real: Real) -> None:
    missing = str(uuid.uuid4())
    for service, verb in (
        ("compute", "server.get"), ("compute", "server.delete"), ("network", "port.get"), ("network", "network.delete"),
        ("block-storage", "volume.get"), ("block-storage", "volume.delete"), ("image", "image.get"),
        ("load-balancer", "loadbalancer.get"), ("load-balancer", "pool.delete"),
    ):  # fmt: skip
        assert await real.verdict(PRINCIPAL, service, verb, id=missing) is Verdict.GONE, (service, verb)
    assert await real.verdict(DOMAIN, "identity", "user.delete", id=uuid.uuid4().hex) is Verdict.FORBIDDEN
    body = {"project": {"name": "unikorn-identity-i1", "domain_id": real.values["DOMAIN_ID"]}}
    assert await real.verdict(DOMAIN, "identity", "project.create", json=body) is Verdict.EXISTS
    assert await real.verdict(PRINCIPAL, "compute", "server.create", json={"server": {}}) is Verdict.REFUSED

    network = await real.ask(PRIVILEGED, "network", "network.create", json={"network": {"name": "n"}})
    port = {"port": {"network_id": network["id"]}}
    await real.ask(PRINCIPAL, "network", "port.create", json=port)
    assert await real.verdict(PRIVILEGED, "network", "network.delete", id=network["id"]) is Verdict.IN_USE
    assert (
        await real.verdict(PRINCIPAL, "network", "port.create", json={"port": {"network_id": missing}})
        is Verdict.GONE
    )

    for service, envelope, key, verb, wanted in (
        ("network", "quota", "port", "port.create", port),
        ("compute", "quota_set", "server_groups", "servergroup.create",
         {"server_group": {"name": "g", "policy": "soft-anti-affinity"}}),
        ("block-storage", "quota_set", "volumes", "volume.create", {"volume": {"name": "v", "size": 1}}),
    ):  # fmt: skip
        limit = 1 if service == "network" else 0
        await real.ask(PRIVILEGED, service, "quota.put", json={envelope: {key: limit}})
        assert await real.verdict(PRINCIPAL, service, verb, json=wanted) is Verdict.QUOTA, service
        assert (
            await real.verdict(PRINCIPAL, service, "quota.put", json={envelope: {key: 9}})
            is Verdict.FORBIDDEN
        )
    assert {note.region for note in real.notes} == {REGION}
