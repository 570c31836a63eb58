"""Keystone: scopes and roles, what a domain manager may do, what is answered for what is gone."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Caller, Cloud, Stage, request, stage
from roadstead.testing.cloudsim.caller import Unexpected
from roadstead.testing.cloudsim.policy import KEYSTONE_GRANT_LB_MEMBER

ABSENT = "0" * 32


def token_body(caller: Caller) -> dict[str, Any]:
    response = caller.send("identity", "GET", "/v3/auth/tokens", X_Subject_Token=caller.token)
    found: dict[str, Any] = response.body["token"]
    return found


def role_ids(world: Stage) -> dict[str, str]:
    return {r["name"]: r["id"] for r in world.domain.call("identity", "GET", "/v3/roles")["roles"]}


def grant_path(world: Stage, role: str, user_id: str | None = None) -> str:
    user = user_id or world.user_id
    return f"/v3/projects/{world.project_id}/users/{user}/roles/{role_ids(world).get(role, role)}"


def message(body: Any) -> str:
    return str(body["error"]["message"])


def test_the_role_manager_brings_member_and_reader_into_the_token(world: Stage) -> None:
    names = [role["name"] for role in token_body(world.privileged)["roles"]]
    assert names == ["manager", "member", "reader"]


def test_each_scope_shows_in_its_token(world: Stage) -> None:
    assert token_body(world.principal)["project"]["id"] == world.project_id
    assert token_body(world.domain)["domain"]["id"] == world.domain_id
    user = {"name": "admin", "domain": {"id": "default"}}
    system = Caller.login(world.cloud, user, "admin", {"system": {"all": True}})
    assert token_body(system)["system"] == {"all": True}
    unscoped = Caller.login(world.cloud, user, "admin")
    assert not {"project", "domain", "system", "roles", "catalog"} & set(token_body(unscoped))


def test_the_catalog_names_every_service_at_the_base_url(world: Stage) -> None:
    world.cloud.settings.base_url = "http://cloud.example"
    catalog = world.principal.call("identity", "GET", "/v3/auth/catalog")["catalog"]
    urls = {entry["type"]: entry["endpoints"][0]["url"] for entry in catalog}
    assert urls["compute"] == "http://cloud.example/compute/v2.1"
    assert urls["block-storage"] == f"http://cloud.example/volume/v3/{world.project_id}"
    assert {"identity", "network", "image", "load-balancer", "placement"} <= set(urls)


@pytest.mark.parametrize("scope", [None, {"project": {"id": ABSENT}}, {"domain": {"id": "default"}}])
def test_a_wrong_password_or_a_scope_without_a_role_is_401(world: Stage, scope: Any) -> None:
    password = "wrong" if scope is None else "pw"
    with pytest.raises(Unexpected, match="401"):
        Caller.login(world.cloud, {"id": world.user_id}, password, scope)


def test_a_call_without_a_token_is_401_in_every_service(world: Stage) -> None:
    for path in (
        "/identity/v3/projects",
        "/compute/v2.1/servers",
        "/network/v2.0/networks",
        "/image/v2/images",
    ):
        response = world.cloud.handle(request("GET", path))
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Keystone uri=")


def test_a_token_expires_with_its_lifetime(world: Stage) -> None:
    world.cloud.advance(world.cloud.settings.token_lifetime - 1)
    world.principal.call("compute", "GET", "/v2.1/servers", want=200)
    world.cloud.advance(1)
    world.principal.call("compute", "GET", "/v2.1/servers", want=401)


def test_a_domain_manager_works_in_its_domain_only(world: Stage) -> None:
    project = {"project": {"name": "p", "domain_id": world.domain_id, "tags": ["organization=o"]}}
    made = world.domain.call("identity", "POST", "/v3/projects", project, want=201)["project"]
    assert made["tags"] == ["organization=o"]
    refused = world.domain.call("identity", "POST", "/v3/projects", project, want=409)
    assert message(refused).startswith("Conflict occurred attempting to store project - ")
    elsewhere = {"project": {"name": "p", "domain_id": "default"}}
    world.domain.call("identity", "POST", "/v3/projects", elsewhere, want=403)
    query = f"/v3/projects?name=p&domain_id={world.domain_id}"
    assert len(world.domain.call("identity", "GET", query)["projects"]) == 1
    assert world.domain.call("identity", "GET", "/v3/projects?name=p")["projects"][0]["id"] == made["id"]
    assert world.domain.call("identity", "GET", "/v3/projects?name=P")["projects"] == []
    world.principal.call("identity", "GET", "/v3/projects", want=403)
    user = {"user": {"name": "u", "domain_id": world.domain_id, "password": "x"}}
    world.domain.call("identity", "POST", "/v3/users", user, want=201)
    refused = world.domain.call("identity", "POST", "/v3/users", user, want=409)
    assert message(refused).startswith("Conflict occurred attempting to store user - ")


def test_grants_by_a_domain_manager_end_at_the_managed_roles(world: Stage) -> None:
    for role in ("manager", "member"):
        for _ in range(2):
            world.domain.call("identity", "PUT", grant_path(world, role), want=204)
    world.domain.call("identity", "GET", grant_path(world, "manager"), want=204)
    assert world.domain.send("identity", "HEAD", grant_path(world, "manager")).status == 204
    world.domain.call("identity", "PUT", grant_path(world, "admin"), want=403)
    world.domain.call("identity", "PUT", grant_path(world, ABSENT), want=404)
    world.domain.call("identity", "PUT", grant_path(world, "load-balancer_member"), want=204)
    world.cloud.settings.policy_overrides.remove(KEYSTONE_GRANT_LB_MEMBER)
    world.domain.call("identity", "PUT", grant_path(world, "load-balancer_member"), want=403)
    query = f"/v3/role_assignments?scope.project.id={world.project_id}&user.id={world.user_id}"
    assert len(world.domain.call("identity", "GET", query)["role_assignments"]) == 3


@pytest.mark.parametrize(("kind", "rule"), [("users", "user"), ("projects", "project")])
def test_what_is_gone_is_403_for_a_domain_manager_and_404_for_the_administrator(
    world: Stage, kind: str, rule: str
) -> None:
    for method, verb in (("GET", "get"), ("DELETE", "delete")):
        refused = world.domain.call("identity", method, f"/v3/{kind}/{ABSENT}", want=403)
        assert message(refused) == (
            f"You are not authorized to perform the requested action: identity:{verb}_{rule}."
        )
        world.admin.call("identity", method, f"/v3/{kind}/{ABSENT}", want=404)
    path = f"/v3/projects/{ABSENT}/users/{world.user_id}/roles/{role_ids(world)['member']}"
    refused = world.domain.call("identity", "PUT", path, want=404)
    assert message(refused) == f"Could not find project: {ABSENT}."


def test_a_list_by_name_is_empty_when_gone(world: Stage) -> None:
    world.domain.call("identity", "DELETE", f"/v3/users/{world.user_id}", want=204)
    world.domain.call("identity", "DELETE", f"/v3/projects/{world.project_id}", want=204)
    for kind in ("users", "projects"):
        query = f"/v3/{kind}?name=stage-identity&domain_id={world.domain_id}"
        assert world.domain.call("identity", "GET", query)[kind] == []


@pytest.mark.parametrize("outlives", [True, False])
def test_tokens_outlive_their_owner_outside_keystone(world: Stage, outlives: bool) -> None:
    world.cloud.settings.tokens_outlive_owner = outlives
    world.domain.call("identity", "DELETE", f"/v3/users/{world.user_id}")
    world.domain.call("identity", "DELETE", f"/v3/projects/{world.project_id}")
    want = 200 if outlives else 401
    world.principal.call("compute", "GET", "/v2.1/servers", want=want)
    world.principal.call("network", "GET", "/v2.0/networks", want=want)
    world.principal.call("identity", "GET", "/v3/auth/projects", want=401)


def test_a_password_change_kills_the_tokens_of_its_second() -> None:
    cloud = Cloud()
    cloud.clock.freeze()
    world = stage(cloud)
    user = {"user": {"password": "pw"}}
    world.domain.call("identity", "PATCH", f"/v3/users/{world.user_id}", user, want=200)
    world.principal.call("compute", "GET", "/v2.1/servers", want=401)
    scope = {"project": {"id": world.project_id}}
    at_once = Caller.login(cloud, {"id": world.user_id}, "pw", scope)
    at_once.call("compute", "GET", "/v2.1/servers", want=401)
    cloud.advance(1.1)
    Caller.login(cloud, {"id": world.user_id}, "pw", scope).call("compute", "GET", "/v2.1/servers", want=200)


def test_application_credentials_are_the_users_own_and_confined(world: Stage) -> None:
    path = f"/v3/users/{world.user_id}/application_credentials"
    body = {"application_credential": {"name": "c", "roles": [{"name": "member"}]}}
    made = world.principal.call("identity", "POST", path, body, want=201)["application_credential"]
    refused = world.principal.call("identity", "POST", path, body, want=409)
    assert message(refused).startswith("Conflict occurred attempting to store application_credential - ")
    world.domain.call("identity", "POST", path, body, want=403)
    world.domain.call("identity", "GET", path, want=403)
    listed = world.principal.call("identity", "GET", path)["application_credentials"]
    assert [row["id"] for row in listed] == [made["id"]]
    assert "secret" not in listed[0]
    confined = Caller.credential(world.cloud, made["id"], made["secret"])
    assert confined.project_id == world.project_id
    assert [r["name"] for r in token_body(confined)["roles"]] == ["member", "reader"]
    confined.call("compute", "GET", "/v2.1/servers", want=200)
    confined.call("identity", "POST", path, body, want=403)
    with pytest.raises(Unexpected, match="401"):
        Caller.credential(world.cloud, made["id"], "wrong")
    greedy = {"application_credential": {"name": "g", "roles": [{"name": "admin"}]}}
    world.principal.call("identity", "POST", path, greedy, want=400)


def test_a_withdrawn_role_ends_the_credentials_made_with_it(world: Stage) -> None:
    path = f"/v3/users/{world.user_id}/application_credentials"
    made = world.principal.call("identity", "POST", path, {"application_credential": {"name": "c"}})
    held = made["application_credential"]
    world.domain.call("identity", "DELETE", grant_path(world, "member"), want=204)
    with pytest.raises(Unexpected, match="401"):
        Caller.credential(world.cloud, held["id"], held["secret"])


def test_a_domain_is_deleted_only_when_disabled_and_takes_its_people_along(world: Stage) -> None:
    path = f"/v3/domains/{world.domain_id}"
    world.admin.call("identity", "DELETE", path, want=403)
    world.admin.call("identity", "PATCH", path, {"domain": {"enabled": False}}, want=200)
    with pytest.raises(Unexpected, match="401"):
        Caller.login(world.cloud, {"id": world.user_id}, "pw", {"project": {"id": world.project_id}})
    world.admin.call("identity", "DELETE", path, want=204)
    world.admin.call("identity", "GET", f"/v3/projects/{world.project_id}", want=404)


def test_malformed_bodies_are_400_in_keystones_shape(world: Stage) -> None:
    for body in (b"{", b"[]", b'{"project": []}', b'{"project": {"name": 7}}', b'{"project": {}}'):
        refused = world.domain.send("identity", "POST", "/v3/projects", body)
        assert (refused.status, refused.body["error"]["title"]) == (400, "Bad Request")
