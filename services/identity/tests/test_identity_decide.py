"""Every row of the identity's decision table, and what holds for all observations."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.identity.tests.world import IDENTITY_ID, REGION_ID

from roadstead.reconcile.decision import Code, Decision, Done, Park, Retry, Yield
from roadstead.reconcile.kind import Metadata, Resource
from roadstead.subjects import Key
from roadstead_identity.identity import KIND
from roadstead_identity.identity.decide import (
    CREATING,
    DESTRUCTIVE,
    IdentityRule,
    IdentityVerb,
    decide,
    status_of,
)
from roadstead_identity.identity.model import (
    COMPUTE,
    NETWORK,
    UNREAD,
    VOLUMES,
    IdentityLeft,
    IdentitySeen,
    IdentitySpec,
    IdentityStatus,
    Place,
)
from roadstead_identity.identity.validate import validate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key(REGION_ID, "web", "identity", IDENTITY_ID)
PLACE = Place(True, ("member", "load-balancer_member"), "soft-anti-affinity", "ru")
ROLES = {"manager": "r-man", "member": "r-mem", "load-balancer_member": "r-lb"}
GRANTS = frozenset({("ru", "r-man"), ("u", "r-mem"), ("u", "r-lb")})
QUIET: dict[str, tuple[str, ...]] = {COMPUTE: (), NETWORK: (), VOLUMES: ()}
RECORD = {
    "projectID": "p",
    "userID": "u",
    "password": "w",
    "applicationCredentialID": "c",
    "applicationCredentialSecret": "s",
    "cloud": "cloud",
    "cloudConfig": "text",
    "serverGroupID": "g",
    "sshKeyName": "k",
    "sshPrivateKey": "pem",
}
SETTLED = IdentitySeen(PLACE, ROLES, grants=GRANTS, quotas=QUIET)


def resource(
    record: Mapping[str, Any] = RECORD, *, deleting: bool = False
) -> Resource[IdentitySpec, IdentityStatus]:
    return Resource(
        KEY,
        Metadata(name="mine", organizationId="acme"),
        IdentitySpec(),
        IdentityStatus(),
        1,
        1,
        deleting,
        conditions={},
        record=record,
    )


def upto(*fields: str) -> dict[str, str]:
    """The record with the first fields, in order of making, up to and with the named one."""
    names = list(RECORD)
    last = max(names.index(f) for f in fields)
    return {n: RECORD[n] for n in names[: last + 1]}


ONLY_PROJECT = upto("projectID")
WITH_USER = upto("password")
MAKING = [
    (IdentityRule.REGION_UNKNOWN, {}, IdentitySeen(), None, Yield),
    (IdentityRule.REGION_HIDDEN, {}, IdentitySeen(replace(PLACE, visible=False)), None, Park),
    (IdentityRule.ROLE_MISSING, {}, IdentitySeen(PLACE, {"manager": "x", "member": "y"}), None, Retry),
    (IdentityRule.NOT_READ, {}, IdentitySeen(PLACE, ROLES), None, Retry),
    (IdentityRule.PROJECT_FOREIGN, {}, IdentitySeen(PLACE, ROLES, foreign_project=True), None, Retry),
    (
        IdentityRule.PROJECT_ABSENT,
        {},
        IdentitySeen(PLACE, ROLES, project=None),
        IdentityVerb.CREATE_PROJECT,
        None,
    ),
    (
        IdentityRule.PROJECT_FOUND,
        {},
        IdentitySeen(PLACE, ROLES, project="p"),
        IdentityVerb.ADOPT_PROJECT,
        None,
    ),
    (IdentityRule.NOT_READ, ONLY_PROJECT, replace(SETTLED, grants=None), None, Retry),
    (
        IdentityRule.MANAGER_UNGRANTED,
        ONLY_PROJECT,
        replace(SETTLED, grants=frozenset()),
        IdentityVerb.GRANT_MANAGER,
        None,
    ),
    (IdentityRule.NOT_READ, ONLY_PROJECT, replace(SETTLED, quotas=None), None, Retry),
    (
        IdentityRule.QUOTA_COMPUTE,
        ONLY_PROJECT,
        replace(SETTLED, quotas={COMPUTE: ("cores",), NETWORK: ("port",), VOLUMES: ("volumes",)}),
        IdentityVerb.SET_COMPUTE_QUOTA,
        None,
    ),
    (
        IdentityRule.QUOTA_NETWORK,
        ONLY_PROJECT,
        replace(SETTLED, quotas={COMPUTE: (), NETWORK: ("port",), VOLUMES: ("volumes",)}),
        IdentityVerb.SET_NETWORK_QUOTA,
        None,
    ),
    (
        IdentityRule.QUOTA_VOLUMES,
        ONLY_PROJECT,
        replace(SETTLED, quotas={**QUIET, VOLUMES: ("volumes",)}),
        IdentityVerb.SET_VOLUME_QUOTA,
        None,
    ),
    (IdentityRule.NOT_READ, ONLY_PROJECT, SETTLED, None, Retry),
    (IdentityRule.USER_ABSENT, ONLY_PROJECT, replace(SETTLED, user=None), IdentityVerb.CREATE_USER, None),
    (IdentityRule.USER_FOUND, ONLY_PROJECT, replace(SETTLED, user="u"), IdentityVerb.ADOPT_USER, None),
    (IdentityRule.USER_FOUND, upto("userID"), replace(SETTLED, user="u"), IdentityVerb.ADOPT_USER, None),
    (
        IdentityRule.ROLE_UNGRANTED,
        WITH_USER,
        replace(SETTLED, grants=GRANTS - {("u", "r-lb")}),
        IdentityVerb.GRANT_ROLE,
        None,
    ),
    (IdentityRule.NOT_READ, WITH_USER, SETTLED, None, Retry),
    (
        IdentityRule.CREDENTIAL_ABSENT,
        WITH_USER,
        replace(SETTLED, credential=None),
        IdentityVerb.CREATE_CREDENTIAL,
        None,
    ),
    (
        IdentityRule.CREDENTIAL_LOST,
        WITH_USER,
        replace(SETTLED, credential="c"),
        IdentityVerb.DROP_CREDENTIAL,
        None,
    ),
    (
        IdentityRule.CREDENTIAL_GONE,
        RECORD,
        replace(SETTLED, credential=None),
        IdentityVerb.CREATE_CREDENTIAL,
        None,
    ),
    (IdentityRule.CONFIG_ABSENT, upto("applicationCredentialSecret"), SETTLED, IdentityVerb.CONFIGURE, None),
    (IdentityRule.NOT_READ, upto("cloudConfig"), SETTLED, None, Retry),
    (
        IdentityRule.GROUP_ABSENT,
        upto("cloudConfig"),
        replace(SETTLED, server_group=None),
        IdentityVerb.CREATE_GROUP,
        None,
    ),
    (
        IdentityRule.GROUP_FOUND,
        upto("cloudConfig"),
        replace(SETTLED, server_group="g"),
        IdentityVerb.ADOPT_GROUP,
        None,
    ),
    (IdentityRule.NOT_READ, upto("serverGroupID"), SETTLED, None, Retry),
    (
        IdentityRule.KEYPAIR_ABSENT,
        upto("serverGroupID"),
        replace(SETTLED, keypair=None),
        IdentityVerb.CREATE_KEYPAIR,
        None,
    ),
    (
        IdentityRule.KEYPAIR_LOST,
        upto("serverGroupID"),
        replace(SETTLED, keypair="k"),
        IdentityVerb.DROP_KEYPAIR,
        None,
    ),
    (IdentityRule.REALIZED, RECORD, SETTLED, None, Done),
    (IdentityRule.NOT_READ, RECORD, IdentityLeft(), None, Retry),
]
LEFT = IdentityLeft("k", "g", "u", "d", "p")
REMOVING = [
    (IdentityRule.KEYPAIR_LEFT, LEFT, IdentityVerb.DELETE_KEYPAIR),
    (IdentityRule.GROUP_LEFT, replace(LEFT, keypair=None), IdentityVerb.DELETE_GROUP),
    (IdentityRule.USER_LEFT, IdentityLeft(None, None, "u", "d", "p"), IdentityVerb.DELETE_USER),
    (
        IdentityRule.DEFAULT_GROUP_LEFT,
        IdentityLeft(None, None, None, "d", "p"),
        IdentityVerb.DELETE_DEFAULT_GROUP,
    ),
    (IdentityRule.PROJECT_LEFT, IdentityLeft(project="p"), IdentityVerb.DELETE_PROJECT),
    (IdentityRule.REMOVED, IdentityLeft(), None),
    (IdentityRule.NOT_READ, SETTLED, None),
]


@pytest.mark.parametrize(
    ("rule", "record", "seen", "verb", "outcome"),
    MAKING,
    ids=[f"{i:02}-{row[0]}" for i, row in enumerate(MAKING)],
)
def test_making_table(
    rule: IdentityRule, record: Mapping[str, Any], seen: Any, verb: IdentityVerb | None, outcome: type | None
) -> None:
    decision = decide(resource(record), seen, NOW)
    assert (decision.rule, decision.verb) == (rule, verb)
    assert outcome is None or isinstance(decision.outcome, outcome)


@pytest.mark.parametrize(("rule", "left", "verb"), REMOVING, ids=[str(row[0]) for row in REMOVING])
def test_removing_table(rule: IdentityRule, left: Any, verb: IdentityVerb | None) -> None:
    decision = decide(resource(deleting=True), left, NOW)
    assert (decision.rule, decision.verb) == (rule, verb)


def test_the_tables_name_every_rule_and_every_verb_has_an_action() -> None:
    assert {row[0] for row in MAKING} | {row[0] for row in REMOVING} == set(IdentityRule)
    assert set(KIND.act) == set(IdentityVerb)


def test_inv_222_a_role_keystone_lacks_is_named_and_nothing_is_made() -> None:
    decision = decide(resource({}), IdentitySeen(PLACE, {"manager": "x", "member": "y"}, project=None), NOW)
    assert isinstance(decision.outcome, Retry)
    assert decision.outcome.code is Code.NOT_FOUND
    assert "load-balancer_member" in decision.outcome.message


def test_a_project_is_announced_before_it_is_asked_for() -> None:
    decision = decide(resource({}), IdentitySeen(PLACE, ROLES, project=None), NOW)
    assert decision.status == {"projectReady": False}


def test_inv_287_the_status_shows_ids_and_no_secret() -> None:
    shown = status_of(RECORD)
    assert shown == {
        "projectReady": True,
        "projectId": "p",
        "userId": "u",
        "serverGroupId": "g",
        "sshKeyName": "k",
    }


def looks() -> st.SearchStrategy[Any]:
    return st.sampled_from([UNREAD, None, "x"])


observations = st.one_of(
    st.builds(
        IdentitySeen,
        place=st.sampled_from([None, PLACE, replace(PLACE, visible=False)]),
        roles=st.sampled_from([{}, {"manager": "r-man"}, ROLES]),
        project=looks(),
        foreign_project=st.booleans(),
        grants=st.sampled_from([None, frozenset(), frozenset({("ru", "r-man")}), GRANTS]),
        quotas=st.sampled_from([None, QUIET, {**QUIET, VOLUMES: ("volumes",)}]),
        user=looks(),
        credential=looks(),
        server_group=looks(),
        keypair=looks(),
    ),
    st.builds(
        IdentityLeft,
        keypair=st.sampled_from([None, "x"]),
        server_group=st.sampled_from([None, "x"]),
        user=st.sampled_from([None, "x"]),
        default_group=st.sampled_from([None, "x"]),
        project=st.sampled_from([None, "x"]),
    ),
)
records = st.sets(st.sampled_from(sorted(RECORD))).map(lambda names: {n: RECORD[n] for n in names})

DROPS = {
    IdentityVerb.DROP_CREDENTIAL: (IdentityRule.CREDENTIAL_LOST, "applicationCredentialSecret"),
    IdentityVerb.DROP_KEYPAIR: (IdentityRule.KEYPAIR_LOST, "sshPrivateKey"),
}


@given(record=records, seen=observations, deleting=st.booleans())
def test_decide_is_total_and_destroys_only_where_a_row_allows_it(
    record: dict[str, str], seen: Any, deleting: bool
) -> None:
    decision: Decision = decide(resource(record, deleting=deleting), seen, NOW)
    if decision.verb not in DESTRUCTIVE:
        return
    if deleting:
        assert decision.verb not in DROPS
        return
    rule, secret = DROPS[IdentityVerb(str(decision.verb))]
    known = (
        secret in record
        and {"applicationCredentialSecret": "applicationCredentialID", "sshPrivateKey": "sshKeyName"}[secret]
        in record
    )
    assert decision.rule is rule
    assert not known


@given(record=records, seen=observations)
def test_what_was_not_read_is_never_created(record: dict[str, str], seen: Any) -> None:
    decision = decide(resource(record), seen, NOW)
    if decision.verb in CREATING:
        part = {
            IdentityVerb.CREATE_PROJECT: "project",
            IdentityVerb.CREATE_USER: "user",
            IdentityVerb.CREATE_CREDENTIAL: "credential",
            IdentityVerb.CREATE_GROUP: "server_group",
            IdentityVerb.CREATE_KEYPAIR: "keypair",
        }[IdentityVerb(str(decision.verb))]
        assert getattr(seen, part) is None


@given(seen=observations)
def test_ref_011_no_quota_and_no_user_before_the_region_user_manages_the_project(seen: Any) -> None:
    decision = decide(resource(ONLY_PROJECT), seen, NOW)
    if isinstance(seen, IdentitySeen) and not seen.managed:
        assert decision.verb in (None, IdentityVerb.GRANT_MANAGER)


# ---------------------------------------------------------------- validation


def problems(spec: dict[str, Any], **metadata: str) -> list[str]:
    given_metadata = Metadata.model_validate(
        {"name": "mine", "organizationId": "acme", "projectId": "web", **metadata}
    )
    return [p.code for p in validate(IdentitySpec.model_validate(spec), given_metadata, None, KEY)]


def test_specs_that_are_accepted_and_refused() -> None:
    assert problems({}) == []
    assert problems({"provider": "openstack", "tags": [{"name": "a", "value": "b"}]}) == []
    assert problems({"provider": "kubernetes"}) == ["PROVIDER_UNKNOWN"]


@pytest.mark.parametrize("value", ["a,b", "a/b", " a", "x" * 201])
def test_inv_005_ids_that_cannot_be_tags_are_refused(value: str) -> None:
    assert problems({}, organizationId=value) == ["TENANCY_INVALID"]
