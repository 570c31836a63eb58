"""Security groups: canonical rules, validation, the decision table, and passes against the simulated cloud."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from services.network.tests.world import (
    GROUP_ID,
    IDENTITY_ID,
    NETWORK_ID,
    REGION_ID,
    TENANT,
    Unfiltered,
    World,
)

from roadstead.reconcile.decision import Code, Done, Retry, Yield
from roadstead.reconcile.kind import Metadata, Resource
from roadstead.subjects import Key
from roadstead.testing.passbench import view
from roadstead_network.securitygroup import KIND
from roadstead_network.securitygroup.canonical import (
    body_of,
    cloud_rule,
    extra,
    key_of,
    missing,
    wanted,
)
from roadstead_network.securitygroup.decide import DESTRUCTIVE, SecurityGroupRule, SecurityGroupVerb, decide
from roadstead_network.securitygroup.model import (
    CloudRule,
    Rule,
    SecurityGroupSeen,
    SecurityGroupSpec,
    SecurityGroupStatus,
)
from roadstead_network.securitygroup.validate import validate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key(REGION_ID, "web", "securitygroup", GROUP_ID)
SSH = {"direction": "ingress", "protocol": "tcp", "port": {"number": 22}}
WEB = {
    "direction": "ingress",
    "protocol": "tcp",
    "port": {"range": {"start": 8000, "end": 8080}},
    "prefix": "10.0.0.0/8",
}
PING = {"direction": "ingress", "protocol": "icmp"}
VRRP = {"direction": "ingress", "protocol": "vrrp"}
OUT = {"direction": "egress", "protocol": "any"}


def rule(raw: dict[str, Any]) -> Rule:
    return Rule.model_validate(raw)


def neutron(**parts: Any) -> dict[str, Any]:
    """A rule as Neutron shows it."""
    bare = dict.fromkeys(
        ("protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id")
    )
    return {"id": "x", "direction": "ingress", "ethertype": "IPv4", **bare, **parts}


IMPLICIT = [neutron(id=f"i{v}", direction="egress", ethertype=f"IPv{v}") for v in (4, 6)]


# ---------------------------------------------------------------- canonical form


@pytest.mark.parametrize(
    ("spec", "raw"),
    [
        (SSH, {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}),
        (SSH, {"protocol": "6", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "0.0.0.0/0"}),
        (
            WEB,
            {
                "protocol": "TCP",
                "port_range_min": 8000,
                "port_range_max": 8080,
                "remote_ip_prefix": "10.0.0.0/8",
            },
        ),
        (VRRP, {"protocol": "112"}),
        (VRRP, {"protocol": "vrrp"}),
        (PING, {"protocol": 1}),
        (OUT, {"direction": "egress", "protocol": "any"}),
        (OUT, {"direction": "egress", "protocol": None, "remote_ip_prefix": "0.0.0.0/0"}),
        (
            {**SSH, "cidr": "10.1.2.3/8"},
            {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "10.0.0.0/8"},
        ),
    ],
)
def test_equal_rules_are_equal_however_they_are_spelled(spec: dict[str, Any], raw: dict[str, Any]) -> None:
    assert cloud_rule(neutron(**raw)).key == key_of(rule(spec))


def test_rules_of_a_sort_we_never_make_equal_nothing() -> None:
    assert cloud_rule(neutron(ethertype="IPv6")).key is None
    assert cloud_rule(neutron(remote_group_id="g")).key is None
    assert cloud_rule(neutron(protocol="sctp")).key not in wanted([rule(r) for r in (SSH, PING, OUT)])


def test_ref_034_neutrons_own_rules_are_never_extra() -> None:
    rules = [cloud_rule(raw) for raw in IMPLICIT]
    assert all(r.implicit for r in rules)
    assert extra(wanted([rule(SSH)]), rules) == ()
    narrowed = [
        neutron(direction="egress", remote_ip_prefix="0.0.0.0/0"),
        neutron(direction="egress", protocol="tcp"),
        neutron(),
    ]
    assert [cloud_rule(raw).implicit for raw in narrowed] == [False, False, False]


def test_a_wanted_egress_of_everything_is_neutrons_own_where_that_is_there() -> None:
    rules = [cloud_rule(raw) for raw in IMPLICIT]
    assert missing(wanted([rule(OUT)]), rules) == ()
    assert missing(wanted([rule(OUT)]), []) == wanted([rule(OUT)])


def test_what_we_write_reads_back_equal() -> None:
    for raw in (SSH, WEB, PING, VRRP, OUT):
        key = key_of(rule(raw))
        back = cloud_rule({"id": "x", **body_of(key, "g", "d")})
        assert back.key == key
        assert not back.implicit


# ---------------------------------------------------------------- validation


def refused(*rules: dict[str, Any], network: str | None = NETWORK_ID) -> list[tuple[str, int]]:
    spec = SecurityGroupSpec.model_validate({"rules": list(rules)})
    problems = validate(spec, Metadata(name="g", networkId=network), None, KEY)
    return [(p.code, p.status) for p in problems]


def test_accepted_rules() -> None:
    assert refused(SSH, WEB, PING, VRRP, OUT) == []


@pytest.mark.parametrize("protocol", ["icmp", "any", "vrrp"])
def test_ref_035_ports_without_tcp_or_udp_are_refused(protocol: str) -> None:
    assert refused({**SSH, "protocol": protocol}) == [("PORT_NOT_ALLOWED", 400)]


@pytest.mark.parametrize(("start", "end"), [(80, 80), (81, 80)])
def test_ref_036_a_range_must_begin_before_it_ends(start: int, end: int) -> None:
    assert refused({**SSH, "port": {"range": {"start": start, "end": end}}}) == [("PORT_RANGE_INVERTED", 400)]


def test_other_refusals() -> None:
    assert refused({**SSH, "port": {}}) == [("PORT_INCOMPLETE", 400)]
    assert refused({**SSH, "port": {"number": 1, "range": {"start": 1, "end": 2}}}) == [
        ("PORT_INCOMPLETE", 400)
    ]
    assert refused({**PING, "prefix": "10.0.0.0"}) == [("PREFIX_INVALID", 400)]
    assert refused({**PING, "cidr": "fd00::/8"}) == [("PREFIX_INVALID", 400)]
    assert refused({**PING, "cidr": "10.0.0.0/8", "prefix": "10.0.0.0/9"}) == [("PREFIX_TWICE", 400)]
    assert refused(PING, network=None) == [("NETWORK_MISSING", 400)]


@pytest.mark.parametrize(
    "bad",
    [
        {"rules": []},
        {"rules": [{**SSH, "direction": "sideways"}]},
        {"rules": [{**SSH, "protocol": "sctp"}]},
        {"rules": [{**SSH, "port": {"number": 0}}]},
        {"rules": [{**SSH, "port": {"range": {"start": 1, "end": 65536}}}]},
    ],
)
def test_what_the_model_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SecurityGroupSpec.model_validate(bad)


# ---------------------------------------------------------------- decisions


def resource(
    *rules: dict[str, Any], deleting: bool = False
) -> Resource[SecurityGroupSpec, SecurityGroupStatus]:
    spec = SecurityGroupSpec.model_validate({"rules": list(rules) or [SSH]})
    return Resource(KEY, Metadata(name="g"), spec, SecurityGroupStatus(), 1, 1, deleting, conditions={})


OWN = tuple(cloud_rule(raw) for raw in IMPLICIT)
HAS_SSH = CloudRule("s", key_of(rule(SSH)))
HAS_PING = CloudRule("p", key_of(rule(PING)))
TABLE = [
    (SecurityGroupRule.FOREIGN, False, SecurityGroupSeen(foreign=True), None),
    (SecurityGroupRule.MISMATCH, False, SecurityGroupSeen(mismatch=True), None),
    (SecurityGroupRule.ABSENT, False, SecurityGroupSeen(), SecurityGroupVerb.CREATE_GROUP),
    (
        SecurityGroupRule.RULE_EXTRA,
        False,
        SecurityGroupSeen("g", (*OWN, HAS_PING)),
        SecurityGroupVerb.DELETE_RULE,
    ),
    (SecurityGroupRule.RULE_MISSING, False, SecurityGroupSeen("g", OWN), SecurityGroupVerb.CREATE_RULE),
    (SecurityGroupRule.REALIZED, False, SecurityGroupSeen("g", (*OWN, HAS_SSH)), None),
    (SecurityGroupRule.NOTHING_OURS, True, SecurityGroupSeen(foreign=True), None),
    (SecurityGroupRule.LEFT, True, SecurityGroupSeen("g", (HAS_PING,)), SecurityGroupVerb.DELETE_GROUP),
    (SecurityGroupRule.REMOVED, True, SecurityGroupSeen(), None),
]


@pytest.mark.parametrize(("rule_id", "deleting", "seen", "verb"), TABLE, ids=[str(row[0]) for row in TABLE])
def test_decision_table(
    rule_id: SecurityGroupRule, deleting: bool, seen: SecurityGroupSeen, verb: SecurityGroupVerb | None
) -> None:
    decision = decide(resource(deleting=deleting), seen, NOW)
    assert (decision.rule, decision.verb) == (rule_id, verb)


def test_the_table_names_every_rule_and_every_verb_has_an_action() -> None:
    assert {row[0] for row in TABLE} == set(SecurityGroupRule)
    assert set(KIND.act) == set(SecurityGroupVerb)


cloud_rules = st.lists(st.sampled_from([*OWN, HAS_SSH, HAS_PING, CloudRule("z", None)]), unique=True).map(
    tuple
)


@given(
    st.builds(SecurityGroupSeen, st.sampled_from([None, "g"]), cloud_rules, st.booleans(), st.booleans()),
    st.booleans(),
)
def test_decide_is_total_and_destroys_only_what_its_rows_allow(
    seen: SecurityGroupSeen, deleting: bool
) -> None:
    decision = decide(resource(deleting=deleting), seen, NOW)
    if decision.verb in DESTRUCTIVE:
        assert seen.group is not None
        assert not seen.foreign
        assert deleting == (decision.verb is SecurityGroupVerb.DELETE_GROUP)
    if decision.verb is SecurityGroupVerb.DELETE_RULE:
        assert any(r not in (*OWN, HAS_SSH) for r in seen.rules)


# ---------------------------------------------------------------- passes


def keys_in(world: World) -> set[Any]:
    state = world.cloud.neutron.state
    (group,) = [g for g in state.groups if g["name"] == f"securitygroup-{GROUP_ID}"]
    rules = [cloud_rule(r) for r in state.rules.where("security_group_id", group["id"])]
    return {r.key for r in rules if not r.implicit}


async def test_group_and_rules_are_made_by_one_write_each(world: World) -> None:
    bench = world.group(SSH, WEB, PING, VRRP)
    assert (await bench.run()).outcome == Done()
    assert world.writes() == ["POST security-groups", *["POST security-group-rules"] * 4]
    assert keys_in(world) == set(wanted([rule(r) for r in (SSH, WEB, PING, VRRP)]))
    assert {c.user_id for c in world.cloud.log.writes()} == {world.region_user}


async def test_ref_032_rules_in_another_order_make_no_rule_call(world: World) -> None:
    await world.group(SSH, WEB, PING, OUT).run()
    world.cloud.log.clear()
    for rules in ((OUT, PING, WEB, SSH), (SSH, SSH, WEB, PING, {**OUT, "prefix": "0.0.0.0/0"})):
        assert (await world.group(*rules).run()).outcome == Done()
    assert world.writes() == []
    assert len(world.calls()) == 2


async def test_ref_033_a_removed_rule_is_the_only_one_deleted(world: World) -> None:
    await world.group(SSH, WEB, PING).run()
    world.cloud.log.clear()
    assert (await world.group(SSH, PING).run()).outcome == Done()
    assert world.writes() == ["DELETE security-group-rules/*"]
    assert keys_in(world) == set(wanted([rule(SSH), rule(PING)]))


async def test_ref_034_the_implicit_egress_rules_stay_and_need_not_be_there(world: World) -> None:
    await world.group(SSH).run()
    state = world.cloud.neutron.state
    (group,) = [g for g in state.groups if g["name"] == f"securitygroup-{GROUP_ID}"]
    own = [r for r in state.rules.where("security_group_id", group["id"]) if r["direction"] == "egress"]
    assert len(own) == 2
    state.rules.remove(own[0]["id"])
    assert (await world.group(SSH).run()).outcome == Done()
    assert (
        len([r for r in state.rules.where("security_group_id", group["id"]) if r["direction"] == "egress"])
        == 1
    )


async def test_a_rule_that_is_there_already_is_as_good(world: World) -> None:
    await world.group(SSH).run()
    answer = {"NeutronError": {"type": "SecurityGroupRuleExists", "message": "Rule id is x.", "detail": ""}}
    world.fail("status", status=409, answer=answer, method="POST", path="security-group-rules")
    assert (await world.group(SSH, PING).run()).outcome == Done()


@pytest.mark.parametrize("kind", ["no_answer_before", "no_answer_after", "status_after"])
@pytest.mark.parametrize("path", ["security-groups$", "security-group-rules$"])
async def test_lost_answers_end_with_one_group_and_the_wanted_rules(
    world: World, path: str, kind: str
) -> None:
    world.fail(kind, method="POST", path=path, status=503)
    bench = world.group(SSH, PING)
    for _ in range(20):
        ending = await bench.run()
        if ending.outcome == Done():
            break
        world.clock.advance(10)
    assert ending.outcome == Done()
    assert keys_in(world) == set(wanted([rule(SSH), rule(PING)]))


async def test_foreign_rules_in_our_group_go_foreign_groups_stay(world: World) -> None:
    await world.group(SSH).run()
    state = world.cloud.neutron.state
    (group,) = [g for g in state.groups if g["name"] == f"securitygroup-{GROUP_ID}"]
    state.add_group(world.cloud.now, world.project, f"securitygroup-{GROUP_ID}-x", "")
    added = dict.fromkeys(
        ("port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id", "remote_address_group_id")
    )
    state.add_rule(
        world.cloud.now,
        group["id"],
        world.project,
        {**added, "direction": "ingress", "ethertype": "IPv6", "protocol": "tcp"},
    )
    world.cloud.log.clear()
    assert (await world.group(SSH).run()).outcome == Done()
    assert world.writes() == ["DELETE security-group-rules/*"]
    bench = world.group(SSH)
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert [g["name"] for g in state.groups if g["name"].startswith("securitygroup-")] == [
        f"securitygroup-{GROUP_ID}-x"
    ]


async def test_a_cloud_that_ignores_filters_misleads_nobody(world: World) -> None:
    state = world.cloud.neutron.state
    name = f"securitygroup-{GROUP_ID}"
    foreign = {
        state.add_group(world.cloud.now, world.project, near, "")["id"]
        for near in (f"{name}-x", name.upper(), f"x{name}")
    }
    bench = world.group(SSH, PING)
    bench.cloud = Unfiltered(world.port)
    assert (await bench.run()).outcome == Done()
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert {g["id"] for g in state.groups if GROUP_ID in g["name"]} == foreign


async def test_two_groups_of_our_name_stop_the_pass(world: World) -> None:
    await world.group(SSH).run()
    world.cloud.neutron.state.add_group(world.cloud.now, world.project, f"securitygroup-{GROUP_ID}", "")
    world.cloud.log.clear()
    ending = await world.group(PING).run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    assert world.writes() == []


async def test_deletion_waits_while_a_port_uses_the_group_and_then_proves_absence(world: World) -> None:
    bench = world.group(SSH)
    await bench.run()
    answer = {"NeutronError": {"type": "SecurityGroupInUse", "message": "in use", "detail": ""}}
    world.fail("status", status=409, answer=answer, method="DELETE", path="security-groups/")
    bench.deleting = True
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.IN_USE
    assert (await bench.run()).outcome == Done()
    assert world.calls()[-1].method == "GET"
    assert (await bench.run()).outcome == Done()


async def test_another_tenants_network_is_not_acted_in(world: World) -> None:
    world.directory.put(
        view("network", NETWORK_ID, REGION_ID, "somebody-else", metadata={"identityId": IDENTITY_ID})
    )
    ending = await world.group(SSH).run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    assert world.calls() == []


async def test_a_network_of_another_identity_is_a_consistency_error(world: World) -> None:
    world.directory.put(view("network", NETWORK_ID, REGION_ID, TENANT, metadata={"identityId": "other"}))
    ending = await world.group(SSH).run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    assert world.calls() == []


def test_the_kind_holds_its_network_and_waits_for_its_identity(world: World) -> None:
    bench = world.group(SSH)
    (network,) = KIND.needs(bench.resource())
    assert (network.kind, network.id, network.provisioned) == ("network", NETWORK_ID, False)
    bench.metadata["identityId"] = IDENTITY_ID
    assert [n.kind for n in KIND.needs(bench.resource())] == ["network", "identity"]
