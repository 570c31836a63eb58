"""Passes of an identity against the simulated cloud: what is asked, by whom, and what survives lost answers."""

import json
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from services.identity.tests.world import IDENTITY_ID, REGION_ID, World

from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead.testing.passbench import PassBench
from roadstead_identity.identity import KIND

OTHER_ID = "33333333-3333-4333-8333-333333333333"
NAME = f"unikorn-identity-{IDENTITY_ID}"
CREATES = [
    "POST identity/v3/projects",
    "PUT identity/v3/projects/*/users/*/roles/*",
    "PUT compute/v2.1/os-quota-sets/*",
    "PUT network/v2.0/quotas/*",
    "PUT volume/v3/*/os-quota-sets/*",
    "POST identity/v3/users",
    "PUT identity/v3/projects/*/users/*/roles/*",
    "PUT identity/v3/projects/*/users/*/roles/*",
    "POST identity/v3/users/*/application_credentials",
    "POST compute/v2.1/os-server-groups",
    "POST compute/v2.1/os-keypairs",
]


async def settled(world: World, ident: str = IDENTITY_ID) -> PassBench:
    bench = world.identity_bench(ident)
    assert (await bench.until_settled()).outcome == Done()
    return bench


def inside(world: World) -> dict[str, list[dict[str, Any]]]:
    """What Nova holds of all projects."""
    dump = world.cloud.nova.dump()
    return {kind: dump[kind] for kind in ("server_groups", "keypairs")}


def grants_of(world: World, user: str, project: str) -> set[str]:
    return world.cloud.keystone.store.role_names(user, "project", project) if user else set()


# ---------------------------------------------------------------- making


async def test_inv_030_ref_011_one_pass_makes_everything_in_order(world: World) -> None:
    bench = world.identity_bench()
    ending = await bench.run()
    assert ending.outcome == Done()
    assert world.writes() == CREATES
    domain = [c for c in world.cloud.log.writes() if c.service == "identity" and c.scope == "domain"]
    assert {c.path.split("/")[3] for c in domain} == {"projects", "users"}


async def test_inv_001_the_domain_token_touches_nothing_but_people_and_roles(world: World) -> None:
    bench = await settled(world)
    bench.deleting = True
    await bench.until_settled()
    by_domain = [c for c in world.calls() if c.scope == "domain"]
    assert {c.service for c in by_domain} == {"identity"}
    assert {c.path.split("/")[3] for c in by_domain} <= {"roles", "role_assignments", "projects", "users"}
    assert {c.domain_id for c in by_domain} == {world.secret["domain-id"]}


async def test_inv_002_inv_003_inv_020_work_is_done_in_the_identitys_own_project(world: World) -> None:
    first, second = await settled(world), await settled(world, OTHER_ID)
    projects = {first.book.record["projectID"], second.book.record["projectID"]}
    assert len(projects) == 2
    workload = [c for c in world.calls() if c.service != "identity"]
    assert {c.project_id for c in workload} == projects
    groups = {g["project_id"]: g["name"] for g in inside(world)["server_groups"]}
    assert groups == {
        first.book.record["projectID"]: NAME,
        second.book.record["projectID"]: f"unikorn-identity-{OTHER_ID}",
    }


async def test_inv_004_two_deployments_live_in_two_domains(world: World) -> None:
    await settled(world)
    other = world.register("other")
    world.keyring.put_region_secret(REGION_ID, other, 2)
    world.keyring.drop_identity(REGION_ID, IDENTITY_ID)
    world.cloud.log.clear()
    second = world.identity_bench()
    assert (await second.run()).outcome == Done()
    assert world.writes() == CREATES  # the first deployment's objects of the same name were not seen
    found = world.named()
    assert {p["domain_id"] for p in found["projects"]} == {world.secret["domain-id"], other["domain-id"]}
    assert {u["domain_id"] for u in found["users"]} == {world.secret["domain-id"], other["domain-id"]}


async def test_inv_005_inv_129_the_project_bears_the_name_and_its_owner(world: World) -> None:
    bench = await settled(world)
    (project,) = world.named()["projects"]
    assert project["tags"] == ["organization=acme", "project=web"]
    (user,) = world.named()["users"]
    assert user["default_project_id"] == project["id"]
    assert {c.name for c in world.cloud.keystone.store.credentials.values()} == {NAME}
    assert [g["name"] for g in inside(world)["server_groups"]] == [NAME]
    assert bench.status["projectId"] == project["id"]


async def test_inv_010_the_record_holds_what_cannot_be_derived(world: World) -> None:
    record = (await settled(world)).book.record
    assert set(record) == {
        "projectID",
        "userID",
        "password",
        "applicationCredentialID",
        "applicationCredentialSecret",
        "cloud",
        "cloudConfig",
        "serverGroupID",
        "sshKeyName",
        "sshPrivateKey",
    }


async def test_inv_287_no_secret_leaves_the_record(world: World) -> None:
    bench = await settled(world)
    shown = json.dumps(bench.status) + json.dumps([dict(w) for w in bench.writes], default=str)
    for name in ("password", "applicationCredentialSecret", "sshPrivateKey", "cloudConfig"):
        assert bench.book.record[name] not in shown


async def test_inv_130_inv_305_one_local_key_whose_public_part_is_in_nova(world: World) -> None:
    record = (await settled(world)).book.record
    assert record["sshKeyName"] == "unikorn-openstack-provider"
    key = load_ssh_private_key(record["sshPrivateKey"].encode(), None)
    assert isinstance(key, Ed25519PrivateKey)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    (sent,) = world.cloud.log.calls(method="POST", path="os-keypairs$")
    assert sent.body["keypair"]["public_key"] == public
    assert [k["name"] for k in inside(world)["keypairs"]] == ["unikorn-openstack-provider"]


@pytest.mark.parametrize("policy", [None, "anti-affinity"])
async def test_inv_306_one_server_group_with_the_regions_policy(world: World, policy: str | None) -> None:
    if policy:
        world.region["openstack"] = {**world.region["openstack"], "compute": {"serverGroupPolicy": policy}}
    await settled(world)
    (sent,) = world.cloud.log.calls(method="POST", path="os-server-groups$")
    assert sent.body["server_group"]["policy"] == (policy or "soft-anti-affinity")
    assert sent.user_name == NAME


async def test_the_client_configuration_signs_in_by_application_credential(world: World) -> None:
    record = (await settled(world)).book.record
    entry = yaml.safe_load(record["cloudConfig"])["clouds"]["cloud"]
    assert entry["auth_type"] == "v3applicationcredential"
    assert entry["auth"]["application_credential_id"] == record["applicationCredentialID"]
    assert entry["auth"]["application_credential_secret"] == record["applicationCredentialSecret"]


async def test_inv_220_default_roles(world: World) -> None:
    record = (await settled(world)).book.record
    assert "manager" in grants_of(world, world.secret["user-id"], record["projectID"])
    store = world.cloud.keystone.store
    held = {store.roles[g.role_id]["name"] for g in store.grants if g.user_id == record["userID"]}
    assert held == {"member", "load-balancer_member"}


async def test_inv_221_configured_roles_go_to_user_and_application_credential(world: World) -> None:
    world.region["openstack"] = {**world.region["openstack"], "identity": {"clusterRoles": ["reader"]}}
    record = (await settled(world)).book.record
    store = world.cloud.keystone.store
    held = {store.roles[g.role_id]["name"] for g in store.grants if g.user_id == record["userID"]}
    assert held == {"reader"}
    (sent,) = world.cloud.log.calls(method="POST", path="application_credentials$")
    reader = store.role_named("reader")
    assert reader is not None
    assert sent.body["application_credential"]["roles"] == [{"id": reader["id"]}]


async def test_inv_222_an_unknown_role_is_named_and_nothing_is_made(world: World) -> None:
    world.region["openstack"] = {**world.region["openstack"], "identity": {"clusterRoles": ["wizard"]}}
    ending = await world.identity_bench().run()
    assert isinstance(ending.outcome, Retry)
    assert "wizard" in ending.outcome.message
    assert world.writes() == []


async def test_inv_223_all_managed_quotas_are_unlimited(world: World) -> None:
    await settled(world)
    sent = {c.service: c.body for c in world.cloud.log.calls(method="PUT", path="quota")}
    assert sent["compute"]["quota_set"] == dict.fromkeys(
        ("instances", "cores", "ram", "key_pairs", "metadata_items", "server_groups", "server_group_members"),
        -1,
    )
    assert set(sent["network"]["quota"].values()) == {-1}
    assert "trunk" not in sent["network"]["quota"]
    assert "rbac_policy" in sent["network"]["quota"]
    assert set(sent["volume"]["quota_set"]) == {
        "volumes",
        "gigabytes",
        "snapshots",
        "backups",
        "backup_gigabytes",
        "per_volume_gigabytes",
        "groups",
    }


async def test_ref_067_an_identity_in_a_region_of_others_parks_without_calls(world: World) -> None:
    world.region["security"] = {"organizations": [{"id": "other"}]}
    ending = await world.identity_bench().run()
    assert isinstance(ending.outcome, Park)
    assert ending.outcome.message == "the region does not exist"
    assert world.calls() == []


async def test_two_quiet_passes_read_six_times_and_write_nothing(world: World) -> None:
    bench = await settled(world)
    for _ in range(2):
        world.cloud.log.clear()
        world.clock.advance(10)
        assert (await bench.run()).outcome == Done()
        assert world.writes() == []
        assert len(world.calls()) == 6


async def test_a_quota_and_a_grant_that_somebody_changed_are_set_again(world: World) -> None:
    bench = await settled(world)
    record = bench.book.record
    store = world.cloud.keystone.store
    member = store.role_named("member")
    assert member is not None
    store.drop_grant(
        next(g for g in store.grants if g.user_id == record["userID"] and g.role_id == member["id"])
    )
    world.cloud.neutron.state.quotas[record["projectID"]]["port"] = 3
    world.cloud.log.clear()
    assert (await bench.run()).outcome == Done()
    # Keystone drops the application credentials of a user who loses a role on the project.
    assert world.writes() == [
        "PUT network/v2.0/quotas/*",
        "PUT identity/v3/projects/*/users/*/roles/*",
        "POST identity/v3/users/*/application_credentials",
    ]
    assert bench.book.record["applicationCredentialSecret"] != record["applicationCredentialSecret"]
    assert bench.book.record["applicationCredentialSecret"] in bench.book.record["cloudConfig"]


async def test_oc_32_an_application_credential_that_somebody_deleted_is_made_anew_in_one_pass(
    world: World,
) -> None:
    bench = await settled(world)
    before = dict(bench.book.record)
    del world.cloud.keystone.store.credentials[before["applicationCredentialID"]]
    world.cloud.log.clear()
    world.clock.advance(10)
    assert (await bench.run()).outcome == Done()
    assert world.writes() == ["POST identity/v3/users/*/application_credentials"]
    after = bench.book.record
    assert after["applicationCredentialID"] in world.cloud.keystone.store.credentials
    assert after["applicationCredentialSecret"] in after["cloudConfig"]
    assert before["applicationCredentialSecret"] not in after["cloudConfig"]


# ---------------------------------------------------------------- failures on the way


@pytest.mark.parametrize("step", range(len(CREATES)))
async def test_ref_008_a_refused_step_is_repeated_alone(world: World, step: int) -> None:
    """Each write in turn is answered 403 once: the next pass goes on there and makes nothing twice."""
    world.fail("status", method=CREATES[step].split()[0], skip=_skip(step), status=403, path=_path(step))
    bench = world.identity_bench()
    assert isinstance((await bench.run()).outcome, Retry)
    world.clock.advance(10)
    assert (await bench.run()).outcome == Done()
    assert sorted(world.writes()) == sorted([*CREATES, CREATES[step]])


@pytest.mark.parametrize("kind", ["no_answer_before", "no_answer_after", "status_after"])
@pytest.mark.parametrize("step", range(len(CREATES)))
async def test_lost_answers_end_with_one_object_each(world: World, step: int, kind: str) -> None:
    """Each write in turn is cut before or after its effect, or answered 503 after it."""
    world.fail(kind, method=CREATES[step].split()[0], skip=_skip(step), status=503, path=_path(step))
    bench = world.identity_bench()
    for _ in range(20):
        ending = await bench.run()
        if ending.outcome == Done():
            break
        world.clock.advance(10)
    assert ending.outcome == Done()
    assert {kind: len(found) for kind, found in world.named().items()} == {"projects": 1, "users": 1}
    assert {kind: len(found) for kind, found in inside(world).items()} == {"server_groups": 1, "keypairs": 1}
    assert len(world.cloud.keystone.store.credentials) == 1
    # What the record says works: the password signs in, the credential is the one that is there.
    (credential,) = world.cloud.keystone.store.credentials.values()
    assert credential.id == bench.book.record["applicationCredentialID"]


def _path(step: int) -> str:
    return "/" + CREATES[step].split()[1].replace("*", "[^/]+").replace(".", r"\.") + "$"


def _skip(step: int) -> int:
    return sum(1 for earlier in CREATES[:step] if earlier == CREATES[step])


async def test_a_found_user_gets_a_new_password_and_is_left_alone_for_a_second(world: World) -> None:
    world.fail("no_answer_after", method="POST", path="/v3/users$")
    bench = world.identity_bench()
    assert isinstance((await bench.run()).outcome, Retry)
    world.clock.advance(10)
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.after is not None
    assert 1.0 < ending.outcome.after < 2.0
    assert world.writes()[-1] == "PATCH identity/v3/users/*"
    world.clock.advance(ending.outcome.after)
    assert (await bench.run()).outcome == Done()


async def test_nothing_is_asked_anew_while_a_creates_fate_is_open(world: World) -> None:
    world.fail("no_answer_before", method="POST", path="/v3/projects$")
    bench = world.identity_bench()
    await bench.run()
    asked = bench.asked
    world.cloud.log.clear()
    bench.asked = asked
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.SETTLING
    assert world.writes() == []


async def test_a_project_of_our_name_without_our_tags_is_left_alone(world: World) -> None:
    store = world.cloud.keystone.store
    foreign = store.new_project(NAME, world.secret["domain-id"])
    bench = world.identity_bench()
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert store.projects[foreign["id"]] == foreign
    assert world.writes() == []


async def test_a_deletion_after_a_lost_create_leaves_a_foreign_project_alone(world: World) -> None:
    world.fail("no_answer_before", method="POST", path="/v3/projects$")
    bench = world.identity_bench()
    await bench.run()
    store = world.cloud.keystone.store
    foreign = store.new_project(NAME, world.secret["domain-id"])
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert store.projects[foreign["id"]] == foreign


async def test_a_project_that_took_the_name_of_ours_is_left_alone(world: World) -> None:
    bench = await settled(world)
    store = world.cloud.keystone.store
    world.cloud.keystone.foreign("delete_project", bench.book.record["projectID"], {})
    foreign = store.new_project(NAME, world.secret["domain-id"], tags=["organization=acme", "project=web"])
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert store.projects[foreign["id"]] == foreign


async def test_near_misses_are_left_alone(world: World) -> None:
    store = world.cloud.keystone.store
    domain = world.secret["domain-id"]
    others = [store.new_project(name, domain)["id"] for name in (f"{NAME}-x", NAME.upper(), f"x{NAME}")]
    bench = await settled(world)
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert set(others) <= set(store.projects)


async def test_the_whole_life_with_pages_of_two_and_fuzzy_filters(world: World) -> None:
    world.cloud.settings.name_filter = "fuzzy"
    world.cloud.settings.pages.compute = 2
    world.cloud.settings.pages.network = 2
    bench = await settled(world)
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.named() == {"projects": [], "users": []}


# ---------------------------------------------------------------- removing


async def test_inv_308_the_order_of_removal(world: World) -> None:
    bench = await settled(world)
    world.cloud.log.clear()
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.writes() == [
        "DELETE compute/v2.1/os-keypairs/*",
        "DELETE compute/v2.1/os-server-groups/*",
        "DELETE identity/v3/users/*",
        "DELETE network/v2.0/security-groups/*",
        "DELETE identity/v3/projects/*",
    ]
    assert inside(world) == {"server_groups": [], "keypairs": []}
    assert world.named() == {"projects": [], "users": []}


async def test_ref_001_an_identity_that_never_asked_for_a_project_goes_without_calls(world: World) -> None:
    bench = world.identity_bench()
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert world.calls() == []


@pytest.mark.parametrize("kind", ["no_answer_after", "no_answer_before"])
async def test_a_project_whose_answer_was_lost_is_found_by_the_deletion(world: World, kind: str) -> None:
    world.fail(kind, method="POST", path="/v3/projects$")
    bench = world.identity_bench()
    await bench.run()
    assert bench.status["projectReady"] is False
    bench.deleting = True
    ending = await bench.until_settled()
    assert ending.outcome == Done()
    assert world.named() == {"projects": [], "users": []}


@pytest.mark.parametrize("step", range(len(CREATES)))
async def test_ref_010_a_half_made_identity_leaves_nothing(world: World, step: int) -> None:
    world.fail(
        "status", method=CREATES[step].split()[0], skip=_skip(step), status=403, path=_path(step), times=None
    )
    bench = world.identity_bench()
    assert isinstance((await bench.run()).outcome, Retry)
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.named() == {"projects": [], "users": []}
    assert inside(world) == {"server_groups": [], "keypairs": []}


@pytest.mark.parametrize("gone", ["delete_user", "delete_project"])
async def test_ref_009_what_somebody_removed_by_hand_is_done(world: World, gone: str) -> None:
    bench = await settled(world)
    record = bench.book.record
    world.cloud.keystone.foreign(gone, record["userID" if gone == "delete_user" else "projectID"], {})
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.named() == {"projects": [], "users": []}


@pytest.mark.parametrize("path", ["os-keypairs/", "os-server-groups/", "/users/", "/projects/"])
@pytest.mark.parametrize("kind", ["no_answer_before", "no_answer_after", "status_after"])
async def test_ref_009_a_deletion_whose_answer_was_lost_ends(world: World, path: str, kind: str) -> None:
    bench = await settled(world)
    world.fail(kind, method="DELETE", path=path, status=503)
    bench.deleting = True
    assert isinstance((await bench.run()).outcome, Retry)
    world.clock.advance(20)
    assert (await bench.until_settled()).outcome == Done()
    assert world.named() == {"projects": [], "users": []}
    assert inside(world) == {"server_groups": [], "keypairs": []}


async def test_a_user_that_was_locked_out_does_not_hold_up_the_deletion(world: World) -> None:
    bench = await settled(world)
    world.cloud.keystone.foreign("set_password", bench.book.record["userID"], {"password": "other"})
    world.clock.advance(60)
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert world.named() == {"projects": [], "users": []}
    assert inside(world)["server_groups"] == []


@pytest.mark.parametrize("path", ["/users/", "/projects/"])
async def test_ref_009_a_refusal_for_what_is_gone_is_told_from_others_by_a_list(
    world: World, path: str
) -> None:
    bench = await settled(world)
    world.fail("status_after", method="DELETE", path=path, status=403)
    bench.deleting = True
    assert (await bench.run()).outcome == Done()
    assert world.named() == {"projects": [], "users": []}


async def test_a_refusal_of_keystone_that_is_no_absence_stays_an_error(world: World) -> None:
    bench = await settled(world)
    world.fail("status", method="DELETE", path="/projects/", status=403)
    bench.deleting = True
    ending = await bench.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.FORBIDDEN
    assert len(world.named()["projects"]) == 1


async def test_an_empty_list_that_is_wrong_removes_nothing(world: World) -> None:
    bench = await settled(world)
    world.fail("status", service="identity", method="GET", path="/projects", status=503)
    bench.deleting = True
    assert isinstance((await bench.run()).outcome, Retry)
    assert world.writes() == CREATES


async def test_the_default_group_goes_where_the_cloud_allows_it(world: World) -> None:
    """A cloud that keeps it for its administrators answers 409; the deletion ends either way."""
    bench = await settled(world)
    world.fail("status", method="DELETE", path="security-groups/", status=204)
    bench.deleting = True
    assert (await bench.until_settled()).outcome == Done()
    assert len(world.cloud.log.calls(method="DELETE", path="security-groups/")) == 1


async def test_ports_in_the_default_group_are_waited_for(world: World) -> None:
    bench = await settled(world)
    answer = {"NeutronError": {"type": "SecurityGroupInUse", "message": "in use", "detail": ""}}
    world.fail("status", method="DELETE", path="security-groups/", status=409, answer=answer)
    bench.deleting = True
    ending = await bench.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.IN_USE
    assert len(world.named()["projects"]) == 1


def test_the_kind_waits_for_its_region(world: World) -> None:
    (need,) = KIND.needs(world.identity_bench().resource())
    assert (need.kind, need.id, need.provisioned) == ("region", REGION_ID, True)
    assert KIND.publishes_record
