"""Roles, what they imply, and grants on projects, domains and the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, answer, nothing, route
from .keystone_store import IMPLIED, Grant
from .policy import KEYSTONE_GRANT_LB_MEMBER
from .wire import Response

if TYPE_CHECKING:
    from .keystone import Keystone

DOMAIN_MANAGED = frozenset({"manager", "member", "reader"})


class Roles:
    """Routes of /v3/roles, of grants and of /v3/role_assignments."""

    def __init__(self, keystone: Keystone) -> None:
        self.keystone = keystone
        self.cloud = keystone.cloud

    # --------------------------------------------------------------- roles

    def _sees_roles(self, ctx: Ctx, rule: str) -> None:
        ctx.require(ctx.is_admin or (ctx.token.domain_id is not None and ctx.has_role("manager")), rule)

    @route("GET", "/v3/roles")
    def list_roles(self, ctx: Ctx) -> Response:
        self._sees_roles(ctx, "identity:list_roles")
        name = ctx.q("name")
        rows = [r for r in self.keystone.store.roles.values() if name in (None, r["name"])]
        return self.keystone.listing(ctx, "roles", rows)

    @route("POST", "/v3/roles")
    def create_role(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:create_role")
        name = ctx.text(ctx.body("role"), "name", required=True) or ""
        if self.keystone.store.role_named(name):
            raise self.keystone.stored_twice("role", f"Duplicate entry found with name {name}")
        return answer({"role": self.keystone.show("roles", self.keystone.store.new_role(name))}, 201)

    def _role(self, ctx: Ctx, role_id: str) -> JsonObject:
        role = self.keystone.store.roles.get(role_id)
        if role is None:
            raise ctx.service.not_found(f"Could not find role: {role_id}.")
        return role

    @route("GET", "/v3/roles/{id}")
    def show_role(self, ctx: Ctx) -> Response:
        self._sees_roles(ctx, "identity:get_role")
        return answer({"role": self.keystone.show("roles", self._role(ctx, ctx.params["id"]))})

    @route("DELETE", "/v3/roles/{id}")
    def delete_role(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:delete_role")
        role = self._role(ctx, ctx.params["id"])
        store = self.keystone.store
        for grant in [g for g in store.grants if g.role_id == role["id"]]:
            store.drop_grant(grant)
        del store.roles[role["id"]]
        return nothing()

    @route("GET", "/v3/roles/{id}/implies")
    def implied(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:list_implied_roles")
        return answer({"role_inference": self._inference(self._role(ctx, ctx.params["id"]))})

    @route("GET", "/v3/role_inferences")
    def inferences(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:list_role_inference_rules")
        rows = [self._inference(r) for r in self.keystone.store.roles.values() if r["name"] in IMPLIED]
        return answer({"role_inferences": rows, "links": {"self": self.keystone.link("role_inferences")}})

    def _inference(self, role: JsonObject) -> JsonObject:
        follow = self.keystone.store.role_named(IMPLIED.get(role["name"], ""))
        return {
            "prior_role": {"id": role["id"], "name": role["name"]},
            "implies": [{"id": follow["id"], "name": follow["name"]}] if follow else [],
        }

    # -------------------------------------------------------------- grants

    def _target(self, ctx: Ctx, kind: str, rule: str) -> str | None:
        """The target's domain; 404 for a missing target (the grant policies look it up first)."""
        store = self.keystone.store
        target = ctx.params["target"]
        table = store.projects if kind == "project" else store.domains
        record = table.get(target)
        if record is None:
            raise ctx.service.not_found(f"Could not find {kind}: {target}.")
        domain = record["domain_id"] if kind == "project" else record["id"]
        return str(domain)

    def _grant(self, ctx: Ctx, kind: str, rule: str, *, write: bool) -> tuple[Grant, JsonObject]:
        """The grant of the path after the policy: domain managers handle their domain and three roles."""
        store = self.keystone.store
        domain_id = self._target(ctx, kind, rule)
        role = self._role(ctx, ctx.params["role"])
        user = store.users.get(ctx.params["user"])
        if user is None:
            raise ctx.service.not_found(f"Could not find user: {ctx.params['user']}.")
        if not ctx.is_admin:
            own = self.keystone.manages(ctx, domain_id) and user["domain_id"] == ctx.token.domain_id
            ctx.require(own and (not write or self._managed(role["name"])), rule)
        return Grant(user["id"], kind, ctx.params["target"], role["id"]), role

    def _managed(self, role_name: str) -> bool:
        if role_name == "load-balancer_member":
            return KEYSTONE_GRANT_LB_MEMBER in self.cloud.settings.policy_overrides
        return role_name in DOMAIN_MANAGED

    def _put(self, ctx: Ctx, kind: str) -> Response:
        grant, _ = self._grant(ctx, kind, "identity:create_grant", write=True)
        self.keystone.store.grants.add(grant)
        return nothing()

    def _check(self, ctx: Ctx, kind: str) -> Response:
        grant, role = self._grant(ctx, kind, "identity:check_grant", write=False)
        if grant not in self.keystone.store.grants:
            raise ctx.service.not_found(f"Could not find role assignment with role: {role['id']}.")
        return nothing()

    def _delete(self, ctx: Ctx, kind: str) -> Response:
        grant, role = self._grant(ctx, kind, "identity:revoke_grant", write=True)
        if grant not in self.keystone.store.grants:
            raise ctx.service.not_found(f"Could not find role assignment with role: {role['id']}.")
        self.keystone.store.drop_grant(grant)
        return nothing()

    def _list(self, ctx: Ctx, kind: str) -> Response:
        domain_id = self._target(ctx, kind, "identity:list_grants")
        ctx.require(self.keystone.reads(ctx, domain_id), "identity:list_grants")
        store = self.keystone.store
        held = store.grants.at(ctx.params["user"], kind, ctx.params["target"])
        return self.keystone.listing(ctx, "roles", [store.roles[g.role_id] for g in held])

    @route("PUT", "/v3/projects/{target}/users/{user}/roles/{role}")
    def put_project(self, ctx: Ctx) -> Response:
        return self._put(ctx, "project")

    @route("GET", "/v3/projects/{target}/users/{user}/roles/{role}")
    def check_project(self, ctx: Ctx) -> Response:
        return self._check(ctx, "project")

    @route("DELETE", "/v3/projects/{target}/users/{user}/roles/{role}")
    def delete_project(self, ctx: Ctx) -> Response:
        return self._delete(ctx, "project")

    @route("GET", "/v3/projects/{target}/users/{user}/roles")
    def list_project(self, ctx: Ctx) -> Response:
        return self._list(ctx, "project")

    @route("PUT", "/v3/domains/{target}/users/{user}/roles/{role}")
    def put_domain(self, ctx: Ctx) -> Response:
        return self._put(ctx, "domain")

    @route("GET", "/v3/domains/{target}/users/{user}/roles/{role}")
    def check_domain(self, ctx: Ctx) -> Response:
        return self._check(ctx, "domain")

    @route("DELETE", "/v3/domains/{target}/users/{user}/roles/{role}")
    def delete_domain(self, ctx: Ctx) -> Response:
        return self._delete(ctx, "domain")

    @route("GET", "/v3/domains/{target}/users/{user}/roles")
    def list_domain(self, ctx: Ctx) -> Response:
        return self._list(ctx, "domain")

    def _system(self, ctx: Ctx, rule: str) -> Grant:
        ctx.require(ctx.is_admin, rule)
        role = self._role(ctx, ctx.params["role"])
        user = self.keystone.target(ctx, self.keystone.store.users, "user", ctx.params["user"], rule)
        return Grant(user["id"], "system", "all", role["id"])

    @route("PUT", "/v3/system/users/{user}/roles/{role}")
    def put_system(self, ctx: Ctx) -> Response:
        self.keystone.store.grants.add(self._system(ctx, "identity:create_system_grant_for_user"))
        return nothing()

    @route("DELETE", "/v3/system/users/{user}/roles/{role}")
    def delete_system(self, ctx: Ctx) -> Response:
        grant = self._system(ctx, "identity:revoke_system_grant_for_user")
        if grant not in self.keystone.store.grants:
            raise ctx.service.not_found(f"Could not find role assignment with role: {grant.role_id}.")
        self.keystone.store.drop_grant(grant)
        return nothing()

    # --------------------------------------------------------- assignments

    @route("GET", "/v3/role_assignments")
    def assignments(self, ctx: Ctx) -> Response:
        """Without `effective` only direct grants; a domain's caller sees its own domain."""
        token = ctx.token
        ctx.require(
            ctx.is_admin or (token.domain_id is not None and ctx.has_role("reader")),
            "identity:list_role_assignments",
        )
        named = "include_names" in dict(ctx.request.query) and ctx.q("include_names") not in (
            "0",
            "false",
            "False",
        )
        effective = "effective" in dict(ctx.request.query) and ctx.q("effective") not in (
            "0",
            "false",
            "False",
        )
        rows = [
            self._assignment(grant, role_id, named)
            for grant in self.keystone.store.grants
            if self._wanted(ctx, grant) and (ctx.is_admin or self._domain_of(grant) == token.domain_id)
            for role_id in self._role_ids(grant, effective)
            if ctx.q("role.id") in (None, role_id)
        ]
        links = {"next": None, "self": self.keystone.link("role_assignments"), "previous": None}
        return answer({"role_assignments": rows, "links": links})

    def _wanted(self, ctx: Ctx, grant: Grant) -> bool:
        for query, kind in (
            ("scope.project.id", "project"),
            ("scope.domain.id", "domain"),
            ("scope.system", "system"),
        ):
            value = ctx.q(query)
            if value is not None and (grant.kind != kind or (kind != "system" and grant.target_id != value)):
                return False
        return ctx.q("user.id") in (None, grant.user_id)

    def _domain_of(self, grant: Grant) -> str | None:
        if grant.kind == "domain":
            return grant.target_id
        project = self.keystone.store.projects.get(grant.target_id)
        return str(project["domain_id"]) if project else None

    def _role_ids(self, grant: Grant, effective: bool) -> list[str]:
        store = self.keystone.store
        if not effective:
            return [grant.role_id]
        names = store.with_implied({store.roles[grant.role_id]["name"]})
        return [r["id"] for r in store.roles.values() if r["name"] in names]

    def _assignment(self, grant: Grant, role_id: str, named: bool) -> JsonObject:
        store = self.keystone.store
        role: JsonObject = {"id": role_id}
        user: JsonObject = {"id": grant.user_id}
        target: JsonObject = {"id": grant.target_id}
        if named:
            role["name"] = store.roles[role_id]["name"]
            held = store.users[grant.user_id]
            user |= {"name": held["name"], "domain": self._named_domain(held["domain_id"])}
            if grant.kind == "project":
                project = store.projects[grant.target_id]
                target |= {"name": project["name"], "domain": self._named_domain(project["domain_id"])}
            elif grant.kind == "domain":
                target = self._named_domain(grant.target_id)
        scope = {"system": {"all": True}} if grant.kind == "system" else {grant.kind: target}
        path = ("system",) if grant.kind == "system" else (f"{grant.kind}s", grant.target_id)
        link = self.keystone.link(*path, "users", grant.user_id, "roles", role_id)
        return {"role": role, "user": user, "scope": scope, "links": {"assignment": link}}

    def _named_domain(self, domain_id: str) -> JsonObject:
        domain = self.keystone.store.domains.get(domain_id)
        return {"id": domain_id, "name": domain["name"] if domain else domain_id}
