"""The region kind: what is refused, what is decided, and what a pass asks of the cloud."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from services.identity.tests.world import REGION_ID, REGION_SPEC, World

from roadstead.cloud.port import Verdict
from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead.reconcile.kind import Metadata, Resource
from roadstead.region import RegionSpec
from roadstead.subjects import Key
from roadstead_identity.region.decide import RegionRule, decide
from roadstead_identity.region.model import RegionSeen, RegionStatus
from roadstead_identity.region.validate import validate
from roadstead_identity.region.visible import check_region, visible_to

KEY = Key(REGION_ID, "_", "region", REGION_ID)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = RegionSeen(
    held=True,
    roles=frozenset({"manager", "member", "load-balancer_member"}),
    microversions=((2, 1), (2, 104)),
)


def spec_with(**openstack: Any) -> RegionSpec:
    return RegionSpec.model_validate({**REGION_SPEC, "openstack": {**REGION_SPEC["openstack"], **openstack}})


def resource(spec: RegionSpec | None = None, *, deleting: bool = False) -> Resource[RegionSpec, RegionStatus]:
    return Resource(
        KEY, Metadata(name="north"), spec or spec_with(), RegionStatus(), 1, 1, deleting, conditions={}
    )


def codes(
    spec: RegionSpec, stored: Resource[RegionSpec, RegionStatus] | None = None, key: Key = KEY
) -> list[str]:
    return [p.code for p in validate(spec, Metadata(name="north"), stored, key)]


# ---------------------------------------------------------------- validation


def test_the_smallest_region_is_accepted() -> None:
    assert codes(spec_with()) == []


@pytest.mark.parametrize(
    ("section", "code"),
    [
        ({"endpoint": "cloud.example.org:5000"}, "ENDPOINT_INVALID"),
        ({"endpoint": "http://user:word@cloud"}, "ENDPOINT_INVALID"),
        ({"endpoint": "http://cloud:99999"}, "ENDPOINT_INVALID"),
        ({"serviceAccountSecret": {"name": ""}}, "SECRET_NAME_MISSING"),
        ({"identity": {"clusterRoles": ["member", "member"]}}, "ROLE_REPEATED"),
        ({"identity": {"clusterRoles": [" "]}}, "ROLE_EMPTY"),
        ({"compute": {"serverGroupPolicy": "close"}}, "GROUP_POLICY_UNKNOWN"),
        ({"compute": {"flavors": {"metadata": [{"id": "a"}, {"id": "a"}]}}}, "FLAVOR_REPEATED"),
        ({"compute": {"flavors": {"metadata": [{"id": "a", "memory": "much"}]}}}, "FLAVOR_MEMORY"),
        ({"network": {"providerNetworks": {"physicalNetwork": " "}}}, "PHYSICAL_NETWORK_MISSING"),
        ({"loadBalancer": {"algorithm": "BEST"}}, "ALGORITHM_UNKNOWN"),
        ({"image": {"selector": {"signingKey": "no key"}}}, "SIGNING_KEY"),
    ],
)
def test_a_wrong_section_is_refused_by_name(section: dict[str, Any], code: str) -> None:
    assert codes(spec_with(**section)) == [code]


def test_every_problem_is_told_at_once() -> None:
    spec = spec_with(endpoint="nowhere", loadBalancer={"algorithm": "BEST"})
    assert codes(spec) == ["ENDPOINT_INVALID", "ALGORITHM_UNKNOWN"]


def test_only_openstack_is_offered_and_needs_its_section() -> None:
    assert codes(RegionSpec(provider="openstack")) == ["OPENSTACK_MISSING"]
    assert codes(RegionSpec(provider="kubernetes")) == ["PROVIDER_UNKNOWN"]


def test_the_provider_cannot_be_changed() -> None:
    stored = resource(RegionSpec.model_validate({**REGION_SPEC, "provider": "simulated"}))
    assert codes(spec_with(), stored) == ["PROVIDER_IMMUTABLE"]


def test_a_region_stands_on_its_own_subject() -> None:
    assert codes(spec_with(), key=replace(KEY, project="web")) == ["REGION_SUBJECT"]
    assert codes(spec_with(), key=replace(KEY, region=str(KEY.id).replace("1", "2"))) == ["REGION_SUBJECT"]


def pem(key: Any) -> str:
    text: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text.decode()


def test_the_signing_key_must_be_ecdsa() -> None:
    good = pem(ec.generate_private_key(ec.SECP256R1()))
    assert codes(spec_with(image={"selector": {"signingKey": good}})) == []
    assert codes(
        spec_with(image={"selector": {"signingKey": pem(ed25519.Ed25519PrivateKey.generate())}})
    ) == ["SIGNING_KEY"]
    cut = good.replace(good.splitlines()[1], "")
    assert codes(spec_with(image={"selector": {"signingKey": cut}})) == ["SIGNING_KEY"]


def segments(*pairs: tuple[int, int]) -> RegionSpec:
    listed = [{"startId": a, "endId": b} for a, b in pairs]
    return spec_with(network={"providerNetworks": {"physicalNetwork": "phys", "vlan": {"segments": listed}}})


def test_vlan_segments_must_run_upwards_and_apart() -> None:
    assert codes(segments((1, 100), (101, 101), (200, 4094))) == []
    assert codes(segments((100, 50))) == ["VLAN_INVERTED"]
    assert codes(segments((200, 300), (100, 200))) == ["VLAN_OVERLAP"]
    assert codes(segments((1, 100), (1, 100))) == ["VLAN_OVERLAP"]


def classes(**bounds: Any) -> RegionSpec:
    return spec_with(blockStorage={"volumeClasses": {"metadata": [{"id": "fast", **bounds}]}})


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"minSize": "10Gi"},
        {"maxSize": "1Ti"},
        {"minSize": "10Gi", "maxSize": "10Gi"},
        {"minSize": "1Gi", "maxSize": "2Ti"},
    ],
)
def test_inv_177_volume_bounds_alone_or_in_order_are_accepted(bounds: dict[str, str]) -> None:
    assert codes(classes(**bounds)) == []


@pytest.mark.parametrize("bound", ["0", "0Gi", "-1Gi", "1.5Gi", "10G", 10, "ten", "1Gi1"])
@pytest.mark.parametrize("name", ["minSize", "maxSize"])
def test_inv_178_a_bound_that_is_no_positive_whole_gib_is_refused(name: str, bound: str | int) -> None:
    assert codes(classes(**{name: bound})) == ["VOLUME_BOUND"]


def test_inv_178_a_maximum_below_the_minimum_is_refused() -> None:
    assert codes(classes(minSize="10Gi", maxSize="9Gi")) == ["VOLUME_BOUNDS_INVERTED"]


def test_a_class_is_described_once() -> None:
    spec = spec_with(blockStorage={"volumeClasses": {"metadata": [{"id": "a"}, {"id": "a"}]}})
    assert codes(spec) == ["VOLUME_CLASS_REPEATED"]


# ---------------------------------------------------------------- who may see it


def test_ref_067_a_region_of_other_organizations_does_not_exist() -> None:
    restricted = spec_with()
    restricted = restricted.model_copy(
        update={
            "security": RegionSpec.model_validate(
                {**REGION_SPEC, "security": {"organizations": [{"id": "acme"}]}}
            ).security
        }
    )
    assert visible_to(restricted, "acme")
    assert not visible_to(restricted, "other")
    assert visible_to(restricted, "other", global_read=True)
    assert visible_to(spec_with(), "other")
    assert [p.status for p in check_region(Metadata(organizationId="other"), restricted)] == [404]
    assert check_region(Metadata(organizationId="other"), None) == check_region(
        Metadata(organizationId="other"), restricted
    )
    assert check_region(Metadata(organizationId="acme"), restricted) == []


# ---------------------------------------------------------------- decisions

TABLE = [
    (RegionRule.DELETED, resource(deleting=True), RegionSeen(), Done, Code.NONE),
    (RegionRule.WRONG_KIND, resource(RegionSpec(provider="openstack")), GOOD, Park, Code.NOT_OFFERED),
    (RegionRule.KEY_MISSING, resource(), RegionSeen(missing=("password", "user-id")), Retry, Code.KEY),
    (RegionRule.NO_CREDENTIALS, resource(), RegionSeen(), Yield, Code.WAITING),
    (
        RegionRule.OTHER_DOMAIN,
        replace(resource(), status=RegionStatus(domainId="right")),
        replace(GOOD, domain="wrong"),
        Retry,
        Code.WRONG_CLOUD,
    ),
    (RegionRule.NO_ANSWER, resource(), RegionSeen(held=True, silent=True), Retry, Code.UNAVAILABLE),
    (
        RegionRule.NOT_READ,
        resource(),
        RegionSeen(held=True, failed=Retry(Code.FORBIDDEN, "no")),
        Retry,
        Code.FORBIDDEN,
    ),
    (RegionRule.NOT_READ, resource(), RegionSeen(held=True), Retry, Code.UNKNOWN),
    (RegionRule.ROLE_MISSING, resource(), replace(GOOD, roles=frozenset({"member"})), Retry, Code.NOT_FOUND),
    (
        RegionRule.MICROVERSION,
        resource(),
        replace(GOOD, microversions=((2, 1), (2, 89))),
        Retry,
        Code.NOT_OFFERED,
    ),
    (RegionRule.USABLE, resource(), GOOD, Done, Code.NONE),
]


@pytest.mark.parametrize(
    ("rule", "what", "seen", "outcome", "code"), TABLE, ids=[str(row[0]) for row in TABLE]
)
def test_decision_table(
    rule: RegionRule, what: Resource[RegionSpec, RegionStatus], seen: RegionSeen, outcome: type, code: Code
) -> None:
    decision = decide(what, seen, NOW)
    assert decision.rule is rule
    assert isinstance(decision.outcome, outcome)
    assert getattr(decision.outcome, "code", Code.NONE) is code


def test_the_table_names_every_rule() -> None:
    assert {row[0] for row in TABLE} == set(RegionRule)


def test_inv_029_the_missing_keys_are_named() -> None:
    decision = decide(resource(), RegionSeen(missing=("password", "user-id")), NOW)
    assert "password, user-id" in decision.why


def test_a_missing_role_is_named() -> None:
    spec = spec_with(identity={"clusterRoles": ["member", "wizard"]})
    assert "named wizard;" in decide(resource(spec), GOOD, NOW).why


def test_versions_are_compared_as_numbers() -> None:
    assert decide(resource(), replace(GOOD, microversions=((2, 1), (2, 100))), NOW).rule is RegionRule.USABLE
    assert (
        decide(resource(), replace(GOOD, microversions=((2, 91), (2, 100))), NOW).rule
        is RegionRule.MICROVERSION
    )


# ---------------------------------------------------------------- passes


async def test_a_registered_region_becomes_usable_by_two_reads(world: World) -> None:
    bench = world.region_bench()
    ending = await bench.run()
    assert ending.outcome == Done()
    assert [(c.method, c.path, c.scope) for c in world.calls()] == [
        ("GET", "/identity/v3/roles", "domain"),
        ("GET", "/compute/v2.1/", "project"),
    ]
    assert bench.status["name"] == f"openstack.{REGION_ID}"
    assert bench.status["features"] == {"physicalNetworks": False}
    assert bench.status["checks"]["computeMicroversion"]["pinned"] == "2.90"


async def test_physical_networks_are_a_feature_where_configured(world: World) -> None:
    world.region = spec_with(network={"providerNetworks": {"physicalNetwork": "physnet1"}}).model_dump()
    bench = world.region_bench()
    await bench.run()
    assert bench.status["features"] == {"physicalNetworks": True}


@pytest.mark.parametrize("key", ["domain-id", "user-id", "password", "project-id"])
async def test_inv_029_a_secret_without_a_key_is_a_key_error_without_calls(world: World, key: str) -> None:
    world.keyring.put_region_secret(REGION_ID, {**world.secret, key: ""}, 2)
    ending = await world.region_bench().run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.KEY
    assert key in ending.outcome.message
    assert world.calls() == []


async def test_a_region_without_credentials_waits_for_them(world: World) -> None:
    world.keyring._secrets.clear()
    ending = await world.region_bench().run()
    assert isinstance(ending.outcome, Yield)
    world.keyring.put_region_secret(REGION_ID, world.secret, 2)
    assert (await world.region_bench().run()).outcome == Done()


async def test_inv_027_a_new_password_is_used_without_a_restart(world: World) -> None:
    assert (await world.region_bench().run()).outcome == Done()
    user = world.secret["user-id"]
    world.cloud.keystone.foreign("set_password", user, {"password": "next"})
    world.clock.advance(30)
    ending = await world.region_bench().run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.FORBIDDEN
    world.keyring.put_region_secret(REGION_ID, {**world.secret, "password": "next"}, 2)
    assert (await world.region_bench().run()).outcome == Done()


async def test_inv_026_a_new_endpoint_is_judged_by_the_pass_that_takes_it(world: World) -> None:
    assert (await world.region_bench().run()).outcome == Done()
    world.region = spec_with(endpoint="http://cloud.invalid/nowhere/v3").model_dump()
    ending = await world.region_bench().run()
    assert isinstance(ending.outcome, Retry)
    held = world.keyring.region(REGION_ID)
    assert held is not None
    assert held.endpoint == "http://cloud.invalid/nowhere/v3"


async def test_credentials_of_another_cloud_are_a_condition(world: World) -> None:
    other = world.register("other")
    world.keyring.put_region_secret(REGION_ID, {**world.secret, "domain-id": other["domain-id"]}, 2)
    ending = await world.region_bench().run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code in (Code.FORBIDDEN, Code.WRONG_CLOUD)


async def test_a_version_document_that_makes_no_sense_is_a_consistency_error(world: World) -> None:
    world.fail("status", service="compute", path=r"/v2\.1/?$", status=200, answer={"version": {"id": "v2.1"}})
    ending = await world.region_bench().run()
    assert ending.error is not None
    assert ending.error.verdict is Verdict.CONSISTENCY


async def test_a_region_that_goes_asks_nothing(world: World) -> None:
    bench = world.region_bench()
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert world.calls() == []


def test_the_domain_that_was_proved_first_is_the_region_s() -> None:
    seen = replace(GOOD, domain="right")
    first = decide(resource(), seen, NOW)
    assert first.status["domainId"] == "right"
    settled = replace(resource(), status=RegionStatus(domainId="right"))
    assert isinstance(decide(settled, seen, NOW).outcome, Done)
