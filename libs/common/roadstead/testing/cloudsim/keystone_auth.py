"""Tokens and application credentials of the simulated Keystone.

Methods: password, token, application_credential. Scopes: project, domain, system, none
(the user's default project when it has a role there).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .base import ApiError, Ctx, JsonObject, answer, nothing, route
from .ids import micros_z
from .keystone_store import ApplicationCredential
from .tokens import Token
from .wire import Response

if TYPE_CHECKING:
    from .keystone import Keystone


@dataclass
class _Proof:
    """Who authenticated, and by what."""

    user: JsonObject
    methods: tuple[str, ...]
    credential: ApplicationCredential | None = None
    token: Token | None = None


class Authentication:
    """Routes of /v3/auth and of application credentials."""

    def __init__(self, keystone: Keystone) -> None:
        self.keystone = keystone
        self.cloud = keystone.cloud

    # --------------------------------------------------------------- issue

    @route("POST", "/v3/auth/tokens", auth=False)
    def issue(self, ctx: Ctx) -> Response:
        auth = ctx.body("auth")
        proof = self._prove(ctx, ctx.mapping(auth, "identity"))
        token = self._scoped(ctx, proof, auth.get("scope"))
        self.keystone.issue(token)
        body = self._body(token, catalog=ctx.q("nocatalog") is None)
        return answer({"token": body}, 201, X_Subject_Token=token.id, Vary="X-Auth-Token")

    def _prove(self, ctx: Ctx, identity: JsonObject) -> _Proof:
        methods = tuple(ctx.texts(identity, "methods"))
        if not methods:
            raise ctx.service.missing_field("identity.methods")
        proof: _Proof | None = None
        for method in methods:
            given = ctx.mapping(identity, method)
            if method == "password":
                proof = self._by_password(ctx, given, methods)
            elif method == "token":
                proof = self._by_token(ctx, given)
            elif method == "application_credential":
                proof = self._by_credential(ctx, given)
            else:
                raise ctx.service.error(
                    401, f"Attempted to authenticate with an unsupported method {method}."
                )
        assert proof is not None
        return proof

    def _by_password(self, ctx: Ctx, given: JsonObject, methods: tuple[str, ...]) -> _Proof:
        wanted = ctx.mapping(given, "user")
        user = self._user(wanted)
        secret = self.keystone.store.secrets.get(user["id"]) if user else None
        if (
            user is None
            or secret is None
            or secret.password is None
            or secret.password != wanted.get("password")
        ):
            raise ctx.service.unauthorized()
        self._usable(user)
        return _Proof(user, ("password",))

    def _user(self, wanted: JsonObject) -> JsonObject | None:
        store = self.keystone.store
        if "id" in wanted:
            return store.users.get(str(wanted["id"]))
        domain = self._domain(wanted.get("domain"))
        return store.named(store.users, str(wanted.get("name")), domain["id"]) if domain else None

    def _domain(self, wanted: object) -> JsonObject | None:
        store = self.keystone.store
        if not isinstance(wanted, dict):
            return None
        if "id" in wanted:
            return store.domains.get(str(wanted["id"]))
        return store.named(store.domains, str(wanted.get("name")), None)

    def _by_token(self, ctx: Ctx, given: JsonObject) -> _Proof:
        token = self.keystone.token_for(self.keystone, str(given.get("id")))
        if token is None:
            raise ctx.service.unauthorized()
        if token.application_credential_id is not None:
            raise ctx.service.error(401, "The request you have made requires authentication.")
        user = self.keystone.store.users[token.user_id]
        return _Proof(user, tuple(dict.fromkeys((*token.methods, "token"))), token=token)

    def _by_credential(self, ctx: Ctx, given: JsonObject) -> _Proof:
        store = self.keystone.store
        found: ApplicationCredential | None
        if "id" in given:
            found = store.credentials.get(str(given["id"]))
        else:
            owner = self._user(ctx.mapping(given, "user"))
            name = given.get("name")
            found = next(
                (
                    c
                    for c in store.credentials.values()
                    if owner and c.user_id == owner["id"] and c.name == name
                ),
                None,
            )
        if found is None or found.secret != given.get("secret"):
            raise ctx.service.unauthorized()
        if found.expires_at is not None and found.expires_at <= ctx.now:
            raise ctx.service.unauthorized()
        user = store.users[found.user_id]
        self._usable(user)
        return _Proof(user, ("application_credential",), credential=found)

    def _usable(self, user: JsonObject) -> None:
        domain = self.keystone.store.domains.get(user["domain_id"])
        if not user["enabled"] or domain is None or not domain["enabled"]:
            raise self.keystone.unauthorized()

    # --------------------------------------------------------------- scope

    def _scoped(self, ctx: Ctx, proof: _Proof, scope: object) -> Token:
        user = proof.user
        token = Token(
            "gAAAAAB" + self.cloud.ids.hex() + self.cloud.ids.hex() + self.cloud.ids.hex(),
            user["id"],
            user["name"],
            user["domain_id"],
            "unscoped",
            ctx.now,
            ctx.now + self.keystone.lifetime(),
            methods=proof.methods,
        )
        if proof.token is not None:
            # A token got by a token ends with the first one.
            token.expires_at = proof.token.expires_at
        if proof.credential is not None:
            if scope is not None:
                raise self._credential_scope(ctx)
            token.application_credential_id = proof.credential.id
            return self._on_project(token, proof.credential.project_id, proof.credential)
        if scope is None:
            default = user.get("default_project_id")
            if default and self.keystone.store.role_names(user["id"], "project", default):
                return self._on_project(token, default)
            return token
        if scope == "unscoped" or (isinstance(scope, dict) and "unscoped" in scope):
            return token
        if not isinstance(scope, dict):
            raise ctx.service.invalid_field("scope", scope, "it is not of type 'object'")
        if "project" in scope:
            return self._on_project(token, self._project_id(ctx, scope["project"]))
        if "domain" in scope:
            return self._on_domain(token, scope["domain"])
        if "system" in scope:
            return self._on_system(token)
        raise ctx.service.missing_field("scope.project, scope.domain or scope.system")

    def _credential_scope(self, ctx: Ctx) -> ApiError:
        return ctx.service.error(
            401,
            "Application credentials cannot request a scope. The request you have made requires authentication.",
        )

    def _project_id(self, ctx: Ctx, wanted: object) -> str:
        store = self.keystone.store
        if not isinstance(wanted, dict):
            raise ctx.service.missing_field("scope.project")
        if "id" in wanted:
            return str(wanted["id"])
        domain = self._domain(wanted.get("domain"))
        project = store.named(store.projects, str(wanted.get("name")), domain["id"]) if domain else None
        if project is None:
            raise ctx.service.unauthorized()
        return str(project["id"])

    def _on_project(
        self, token: Token, project_id: str, credential: ApplicationCredential | None = None
    ) -> Token:
        store = self.keystone.store
        project = store.projects.get(project_id)
        if project is None or not project["enabled"]:
            raise self.keystone.unauthorized()
        domain = store.domains.get(project["domain_id"])
        roles = store.role_names(token.user_id, "project", project_id)
        if credential is not None:
            named = {store.roles[r]["name"] for r in credential.role_ids if r in store.roles}
            roles &= store.with_implied(named)
        if not roles or domain is None or not domain["enabled"]:
            raise self.keystone.unauthorized()
        token.scope, token.project_id, token.project_name = "project", project_id, project["name"]
        token.roles = frozenset(roles)
        return token

    def _on_domain(self, token: Token, wanted: object) -> Token:
        domain = self._domain(wanted)
        roles = self.keystone.store.role_names(token.user_id, "domain", domain["id"]) if domain else set()
        if domain is None or not domain["enabled"] or not roles:
            raise self.keystone.unauthorized()
        token.scope, token.domain_id, token.roles = "domain", domain["id"], frozenset(roles)
        return token

    def _on_system(self, token: Token) -> Token:
        roles = self.keystone.store.role_names(token.user_id, "system", "all")
        if not roles:
            raise self.keystone.unauthorized()
        token.scope, token.roles = "system", frozenset(roles)
        return token

    # ---------------------------------------------------------------- show

    def _body(self, token: Token, catalog: bool) -> JsonObject:
        store = self.keystone.store
        user = store.users[token.user_id]
        body: JsonObject = {
            "methods": list(token.methods),
            "user": {
                "id": user["id"],
                "name": user["name"],
                "domain": self._domain_brief(user["domain_id"]),
                "password_expires_at": None,
            },
            "audit_ids": [token.id[7:29]],
            "expires_at": micros_z(token.expires_at),
            "issued_at": micros_z(token.issued_at),
        }
        if token.scope == "unscoped":
            return body
        ids = {role["name"]: role["id"] for role in store.roles.values()}
        body["roles"] = [{"id": ids[name], "name": name} for name in sorted(token.roles) if name in ids]
        if token.project_id is not None:
            project = store.projects[token.project_id]
            body["is_domain"] = False
            body["project"] = {
                "id": project["id"],
                "name": project["name"],
                "domain": self._domain_brief(project["domain_id"]),
            }
        elif token.domain_id is not None:
            body["domain"] = self._domain_brief(token.domain_id)
        else:
            body["system"] = {"all": True}
        if token.application_credential_id is not None:
            held = store.credentials[token.application_credential_id]
            body["application_credential"] = {
                "id": held.id,
                "name": held.name,
                "restricted": not held.unrestricted,
            }
        if catalog:
            body["catalog"] = self.keystone.catalog(token.project_id)
        return body

    def _domain_brief(self, domain_id: str) -> JsonObject:
        domain = self.keystone.store.domains.get(domain_id)
        return {"id": domain_id, "name": domain["name"] if domain else domain_id}

    def _subject(self, ctx: Ctx) -> Token:
        token = self.keystone.token_for(self.keystone, ctx.request.headers.get("x-subject-token"))
        if token is None or (
            token.application_credential_id is not None
            and token.application_credential_id not in self.keystone.store.credentials
        ):
            raise ctx.service.not_found("Could not find token.")
        if token.user_id != ctx.token.user_id and not ctx.is_admin and not ctx.has_role("service"):
            raise ctx.service.policy_error("identity:validate_token")
        return token

    @route("GET", "/v3/auth/tokens")
    def validate(self, ctx: Ctx) -> Response:
        token = self._subject(ctx)
        body = self._body(token, catalog=ctx.q("nocatalog") is None)
        return answer({"token": body}, X_Subject_Token=token.id)

    @route("DELETE", "/v3/auth/tokens")
    def revoke(self, ctx: Ctx) -> Response:
        self._subject(ctx).revoked = True
        return nothing()

    @route("GET", "/v3/auth/projects")
    def own_projects(self, ctx: Ctx) -> Response:
        rows = list(self.keystone.store.projects_of(ctx.token.user_id))
        return self.keystone.listing(ctx, "projects", rows)

    @route("GET", "/v3/auth/domains")
    def own_domains(self, ctx: Ctx) -> Response:
        store = self.keystone.store
        user_id = ctx.token.user_id
        ids = dict.fromkeys(g.target_id for g in store.grants if g.user_id == user_id and g.kind == "domain")
        rows = [store.domains[i] for i in ids if i in store.domains and store.domains[i]["enabled"]]
        return self.keystone.listing(ctx, "domains", rows)

    @route("GET", "/v3/auth/system")
    def own_system(self, ctx: Ctx) -> Response:
        has = bool(self.keystone.store.role_names(ctx.token.user_id, "system", "all"))
        return answer(
            {
                "system": [{"all": True}] if has else [],
                "links": {"self": self.keystone.link("auth", "system")},
            }
        )

    # -------------------------------------------- application credentials

    def _own(self, ctx: Ctx, rule: str, *, write: bool = False) -> JsonObject:
        """The user of the path, who must be the caller; a confined credential may not make others."""
        user_id = ctx.params["user_id"]
        if ctx.token.user_id != user_id and not (ctx.is_admin and not write):
            raise ctx.service.policy_error(rule)
        if write and ctx.token.application_credential_id is not None:
            held = self.keystone.store.credentials.get(ctx.token.application_credential_id)
            if held is None or not held.unrestricted:
                raise ctx.service.error(
                    403,
                    "Using method 'application_credential' is not allowed for managing additional "
                    "application credentials.",
                )
        user = self.keystone.store.users.get(user_id)
        if user is None:
            raise ctx.service.not_found(f"Could not find user: {user_id}.")
        return user

    def _credential_body(self, held: ApplicationCredential) -> JsonObject:
        store = self.keystone.store
        return {
            "id": held.id,
            "name": held.name,
            "description": held.description,
            "user_id": held.user_id,
            "project_id": held.project_id,
            "system": None,
            "expires_at": micros_z(held.expires_at) if held.expires_at else None,
            "unrestricted": held.unrestricted,
            "roles": [
                {k: store.roles[r][k] for k in ("id", "name", "domain_id", "description", "options")}
                for r in held.role_ids
                if r in store.roles
            ],
            "links": {"self": self.keystone.link("users", held.user_id, "application_credentials", held.id)},
        }

    @route("POST", "/v3/users/{user_id}/application_credentials")
    def create_credential(self, ctx: Ctx) -> Response:
        user = self._own(ctx, "identity:create_application_credential", write=True)
        body = ctx.body("application_credential")
        name = ctx.text(body, "name", required=True) or ""
        if ctx.token.project_id is None:
            raise ctx.service.policy_error("identity:create_application_credential")
        store = self.keystone.store
        if any(c.user_id == user["id"] and c.name == name for c in store.credentials.values()):
            raise self.keystone.stored_twice(
                "application_credential", f"Duplicate entry found with name {name}"
            )
        made = ApplicationCredential(
            self.cloud.ids.hex(),
            name,
            user["id"],
            ctx.token.project_id,
            self._credential_roles(ctx, body),
            str(body.get("secret") or self.cloud.ids.hex() + self.cloud.ids.hex()),
            ctx.text(body, "description"),
            self._expiry(ctx, body),
            ctx.flag(body, "unrestricted"),
        )
        store.credentials[made.id] = made
        return answer({"application_credential": self._credential_body(made) | {"secret": made.secret}}, 201)

    def _credential_roles(self, ctx: Ctx, body: JsonObject) -> tuple[str, ...]:
        store = self.keystone.store
        wanted = ctx.objects(body, "roles")
        if not wanted:
            return tuple(r["id"] for r in store.roles.values() if r["name"] in ctx.token.roles)
        found: list[str] = []
        for given in wanted:
            role = store.roles.get(str(given.get("id"))) or store.role_named(str(given.get("name")))
            if role is None:
                raise ctx.service.not_found(f"Could not find role: {given.get('id') or given.get('name')}.")
            if role["name"] not in ctx.token.roles:
                raise ctx.service.bad_request(
                    f"Invalid application credential: Could not find role assignment with role: {role['id']}, "
                    f"user or group: {ctx.token.user_id}, project, domain, or system: {ctx.token.project_id}."
                )
            found.append(role["id"])
        return tuple(found)

    def _expiry(self, ctx: Ctx, body: JsonObject) -> datetime | None:
        text = ctx.text(body, "expires_at")
        if text is None:
            return None
        try:
            at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            raise ctx.service.invalid_field("expires_at", text, f"'{text}' is no time") from None
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    @route("GET", "/v3/users/{user_id}/application_credentials")
    def list_credentials(self, ctx: Ctx) -> Response:
        user = self._own(ctx, "identity:list_application_credentials")
        name = ctx.q("name")
        rows = [
            self._credential_body(c)
            for c in self.keystone.store.credentials.values()
            if c.user_id == user["id"] and (name is None or c.name == name)
        ]
        links = {
            "next": None,
            "previous": None,
            "self": self.keystone.link("users", user["id"], "application_credentials"),
        }
        return answer({"application_credentials": rows, "links": links})

    def _credential(self, ctx: Ctx) -> ApplicationCredential:
        held = self.keystone.store.credentials.get(ctx.params["id"])
        if held is None or held.user_id != ctx.params["user_id"]:
            raise ctx.service.not_found(f"Could not find Application Credential: {ctx.params['id']}.")
        return held

    @route("GET", "/v3/users/{user_id}/application_credentials/{id}")
    def show_credential(self, ctx: Ctx) -> Response:
        self._own(ctx, "identity:get_application_credential")
        return answer({"application_credential": self._credential_body(self._credential(ctx))})

    @route("DELETE", "/v3/users/{user_id}/application_credentials/{id}")
    def delete_credential(self, ctx: Ctx) -> Response:
        if not ctx.is_admin:
            self._own(ctx, "identity:delete_application_credential", write=True)
        del self.keystone.store.credentials[self._credential(ctx).id]
        return nothing()
