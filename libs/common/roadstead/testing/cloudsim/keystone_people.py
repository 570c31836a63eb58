"""Domains, projects and users of the simulated Keystone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, answer, nothing, route
from .wire import Response

if TYPE_CHECKING:
    from .keystone import Keystone


class People:
    """Routes of /v3/domains, /v3/projects and /v3/users."""

    def __init__(self, keystone: Keystone) -> None:
        self.keystone = keystone
        self.cloud = keystone.cloud

    # ------------------------------------------------------------- domains

    def _domain(self, ctx: Ctx, rule: str) -> JsonObject:
        return self.keystone.target(ctx, self.keystone.store.domains, "domain", ctx.params["id"], rule)

    @route("GET", "/v3/domains")
    def list_domains(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin or self.keystone.reads(ctx, ctx.token.domain_id), "identity:list_domains")
        rows = [
            d
            for d in self.keystone.store.domains.values()
            if (ctx.is_admin or d["id"] == ctx.token.domain_id)
            and ctx.q("name") in (None, d["name"])
            and ctx.q_flag("enabled") in (None, d["enabled"])
        ]
        return self.keystone.listing(ctx, "domains", rows)

    @route("POST", "/v3/domains")
    def create_domain(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:create_domain")
        body = ctx.body("domain")
        name = ctx.text(body, "name", required=True, max_length=64) or ""
        if self.keystone.store.named(self.keystone.store.domains, name, None):
            raise self.keystone.stored_twice("domain", f"Duplicate entry found with name {name}")
        made = self.keystone.store.new_domain(
            name, description=ctx.text(body, "description", ""), enabled=ctx.flag(body, "enabled", True)
        )
        return answer({"domain": self.keystone.show("domains", made)}, 201)

    @route("GET", "/v3/domains/{id}")
    def show_domain(self, ctx: Ctx) -> Response:
        token = ctx.token
        own = token.domain_id or (self.keystone.store.projects.get(token.project_id or "") or {}).get(
            "domain_id"
        )
        if not ctx.is_admin and own != ctx.params["id"]:
            raise ctx.service.policy_error("identity:get_domain")
        return answer({"domain": self.keystone.show("domains", self._domain(ctx, "identity:get_domain"))})

    @route("PATCH", "/v3/domains/{id}")
    def update_domain(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:update_domain")
        record = self._domain(ctx, "identity:update_domain")
        body = ctx.body("domain")
        record["name"] = ctx.text(body, "name", record["name"])
        record["description"] = ctx.text(body, "description", record["description"])
        record["enabled"] = ctx.flag(body, "enabled", record["enabled"])
        return answer({"domain": self.keystone.show("domains", record)})

    @route("DELETE", "/v3/domains/{id}")
    def delete_domain(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:delete_domain")
        record = self._domain(ctx, "identity:delete_domain")
        if record["enabled"]:
            raise ctx.service.error(
                403, "You are not authorized to perform the requested action: cannot delete a domain that is "
                "enabled, please disable it first."
            )  # fmt: skip
        store = self.keystone.store
        for project in [p for p in store.projects.values() if p["domain_id"] == record["id"]]:
            store.drop_project(project["id"])
        for user in [u for u in store.users.values() if u["domain_id"] == record["id"]]:
            store.drop_user(user["id"])
        store.drop_grants_on("domain", record["id"])
        del store.domains[record["id"]]
        return nothing()

    # ------------------------------------------------------------ projects

    def _project(self, ctx: Ctx, rule: str) -> JsonObject:
        return self.keystone.target(ctx, self.keystone.store.projects, "project", ctx.params["id"], rule)

    def _managed_project(self, ctx: Ctx, rule: str) -> JsonObject:
        record = self._project(ctx, rule)
        ctx.require(self.keystone.manages(ctx, record["domain_id"]), rule)
        return record

    @route("GET", "/v3/projects")
    def list_projects(self, ctx: Ctx) -> Response:
        domain_id = ctx.q("domain_id") or ctx.token.domain_id
        ctx.require(self.keystone.reads(ctx, domain_id), "identity:list_projects")
        name, tags = ctx.q("name"), set((ctx.q("tags") or "").split(",")) - {""}
        rows = [
            p
            for p in self.keystone.store.projects.values()
            if domain_id in (None, p["domain_id"])
            and name in (None, p["name"])
            and ctx.q_flag("enabled") in (None, p["enabled"])
            and ctx.q("parent_id") in (None, p["parent_id"])
            and tags <= set(p["tags"])
        ]
        return self.keystone.listing(ctx, "projects", [] if ctx.q_flag("is_domain") else rows)

    @route("POST", "/v3/projects")
    def create_project(self, ctx: Ctx) -> Response:
        body = ctx.body("project")
        name = ctx.text(body, "name", required=True, max_length=64) or ""
        domain_id = ctx.text(body, "domain_id") or ctx.token.domain_id or self._home_domain(ctx)
        ctx.require(self.keystone.manages(ctx, domain_id), "identity:create_project")
        if domain_id not in self.keystone.store.domains:
            raise ctx.service.not_found(f"Could not find domain: {domain_id}.")
        self._free_project_name(name, domain_id)
        made = self.keystone.store.new_project(
            name,
            domain_id,
            description=ctx.text(body, "description", ""),
            enabled=ctx.flag(body, "enabled", True),
            parent_id=ctx.text(body, "parent_id") or domain_id,
            tags=ctx.texts(body, "tags"),
        )
        return answer({"project": self.keystone.show("projects", made)}, 201)

    def _home_domain(self, ctx: Ctx) -> str:
        project = self.keystone.store.projects.get(ctx.token.project_id or "")
        return str(project["domain_id"]) if project else "default"

    def _free_project_name(self, name: str, domain_id: str) -> None:
        if self.keystone.store.named(self.keystone.store.projects, name, domain_id):
            raise self.keystone.stored_twice(
                "project",
                "it is not permitted to have two projects with either the same name or same id in the same "
                f"domain: name is {name}, project id ",
            )

    @route("GET", "/v3/projects/{id}")
    def show_project(self, ctx: Ctx) -> Response:
        record = self._project(ctx, "identity:get_project")
        allowed = self.keystone.reads(ctx, record["domain_id"]) or ctx.token.project_id == record["id"]
        ctx.require(allowed, "identity:get_project")
        return answer({"project": self.keystone.show("projects", record)})

    @route("PATCH", "/v3/projects/{id}")
    def update_project(self, ctx: Ctx) -> Response:
        record = self._managed_project(ctx, "identity:update_project")
        body = ctx.body("project")
        name = ctx.text(body, "name", record["name"]) or ""
        if name != record["name"]:
            self._free_project_name(name, record["domain_id"])
        record["name"] = name
        record["description"] = ctx.text(body, "description", record["description"])
        record["enabled"] = ctx.flag(body, "enabled", record["enabled"])
        record["tags"] = ctx.texts(body, "tags", record["tags"])
        return answer({"project": self.keystone.show("projects", record)})

    @route("DELETE", "/v3/projects/{id}")
    def delete_project(self, ctx: Ctx) -> Response:
        record = self._managed_project(ctx, "identity:delete_project")
        self.keystone.store.drop_project(record["id"])
        return nothing()

    @route("GET", "/v3/projects/{id}/tags")
    def list_tags(self, ctx: Ctx) -> Response:
        record = self._project(ctx, "identity:list_project_tags")
        allowed = self.keystone.reads(ctx, record["domain_id"]) or ctx.token.project_id == record["id"]
        ctx.require(allowed, "identity:list_project_tags")
        return answer(
            {"tags": record["tags"], "links": {"self": self.keystone.link("projects", record["id"], "tags")}}
        )

    @route("PUT", "/v3/projects/{id}/tags")
    def replace_tags(self, ctx: Ctx) -> Response:
        record = self._managed_project(ctx, "identity:update_project_tags")
        record["tags"] = ctx.texts(ctx.document(), "tags")
        return answer({"tags": record["tags"]})

    @route("PUT", "/v3/projects/{id}/tags/{tag}")
    def add_tag(self, ctx: Ctx) -> Response:
        record = self._managed_project(ctx, "identity:create_project_tag")
        if ctx.params["tag"] not in record["tags"]:
            record["tags"] = [*record["tags"], ctx.params["tag"]]
        return nothing(201)

    # --------------------------------------------------------------- users

    def _user(self, ctx: Ctx, rule: str) -> JsonObject:
        return self.keystone.target(ctx, self.keystone.store.users, "user", ctx.params["id"], rule)

    def _managed_user(self, ctx: Ctx, rule: str) -> JsonObject:
        record = self._user(ctx, rule)
        ctx.require(self.keystone.manages(ctx, record["domain_id"]), rule)
        return record

    @route("GET", "/v3/users")
    def list_users(self, ctx: Ctx) -> Response:
        domain_id = ctx.q("domain_id") or ctx.token.domain_id
        ctx.require(self.keystone.reads(ctx, domain_id), "identity:list_users")
        name = ctx.q("name")
        rows = [
            u
            for u in self.keystone.store.users.values()
            if domain_id in (None, u["domain_id"])
            and name in (None, u["name"])
            and ctx.q_flag("enabled") in (None, u["enabled"])
        ]
        return self.keystone.listing(ctx, "users", rows)

    @route("POST", "/v3/users")
    def create_user(self, ctx: Ctx) -> Response:
        body = ctx.body("user")
        name = ctx.text(body, "name", required=True) or ""
        domain_id = ctx.text(body, "domain_id") or ctx.token.domain_id or self._home_domain(ctx)
        ctx.require(self.keystone.manages(ctx, domain_id), "identity:create_user")
        store = self.keystone.store
        if domain_id not in store.domains:
            raise ctx.service.not_found(f"Could not find domain: {domain_id}.")
        self._free_user_name(name, domain_id)
        extra = {
            k: body[k] for k in ("default_project_id", "description", "email") if body.get(k) is not None
        }
        made = store.new_user(
            name, domain_id, ctx.text(body, "password"), enabled=ctx.flag(body, "enabled", True), **extra
        )
        return answer({"user": self.keystone.show("users", made)}, 201)

    def _free_user_name(self, name: str, domain_id: str) -> None:
        if self.keystone.store.named(self.keystone.store.users, name, domain_id):
            raise self.keystone.stored_twice(
                "user", f"Duplicate entry found with name {name} at domain ID {domain_id}"
            )

    @route("GET", "/v3/users/{id}")
    def show_user(self, ctx: Ctx) -> Response:
        record = self._user(ctx, "identity:get_user")
        allowed = self.keystone.reads(ctx, record["domain_id"]) or ctx.token.user_id == record["id"]
        ctx.require(allowed, "identity:get_user")
        return answer({"user": self.keystone.show("users", record)})

    @route("PATCH", "/v3/users/{id}")
    def update_user(self, ctx: Ctx) -> Response:
        record = self._managed_user(ctx, "identity:update_user")
        body = ctx.body("user")
        name = ctx.text(body, "name", record["name"]) or ""
        if name != record["name"]:
            self._free_user_name(name, record["domain_id"])
        record["name"] = name
        record["enabled"] = ctx.flag(body, "enabled", record["enabled"])
        for key in ("default_project_id", "description", "email"):
            if body.get(key) is not None:
                record[key] = body[key]
        password = ctx.text(body, "password")
        if password is not None:
            self._set_password(record["id"], password)
        return answer({"user": self.keystone.show("users", record)})

    def _set_password(self, user_id: str, password: str) -> None:
        secret = self.keystone.store.secrets[user_id]
        secret.password, secret.changed_at = password, self.cloud.now

    @route("POST", "/v3/users/{id}/password", auth=False)
    def change_own_password(self, ctx: Ctx) -> Response:
        body = ctx.body("user")
        secret = self.keystone.store.secrets.get(ctx.params["id"])
        if secret is None or secret.password is None or secret.password != body.get("original_password"):
            raise ctx.service.unauthorized()
        self._set_password(ctx.params["id"], ctx.text(body, "password", required=True) or "")
        return nothing()

    @route("DELETE", "/v3/users/{id}")
    def delete_user(self, ctx: Ctx) -> Response:
        record = self._managed_user(ctx, "identity:delete_user")
        self.keystone.store.drop_user(record["id"])
        return nothing()

    @route("GET", "/v3/users/{id}/projects")
    def user_projects(self, ctx: Ctx) -> Response:
        record = self._user(ctx, "identity:list_user_projects")
        allowed = self.keystone.reads(ctx, record["domain_id"]) or ctx.token.user_id == record["id"]
        ctx.require(allowed, "identity:list_user_projects")
        return self.keystone.listing(ctx, "projects", list(self.keystone.store.projects_of(record["id"])))

    @route("GET", "/v3/users/{id}/groups")
    def user_groups(self, ctx: Ctx) -> Response:
        self._user(ctx, "identity:list_groups_for_user")
        return self.keystone.listing(ctx, "groups", [])
