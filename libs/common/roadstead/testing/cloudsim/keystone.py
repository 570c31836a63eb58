"""Simulated Keystone v3: the service, its policies and its seed content.

Records live in keystone_store.py; tokens and application credentials in keystone_auth.py,
projects, users and domains in keystone_people.py, roles and grants in keystone_roles.py.
A missing target is 403 for everybody but the cloud administrator: the policy is checked
against an empty target, as the real service does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .base import TITLES, ApiError, Ctx, JsonObject, Service, answer, route
from .keystone_auth import Authentication
from .keystone_people import People
from .keystone_roles import Roles
from .keystone_store import ROLE_NAMES, Grant, KeystoneStore
from .tokens import Token
from .wire import Response

if TYPE_CHECKING:
    from .cloud import Cloud

TOKENS_KEPT = 50_000


class Keystone(Service):
    """Identity: who may do what, and the catalog of everything else."""

    name = "identity"
    prefix = "identity"

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.store = KeystoneStore(cloud.ids)
        self.tokens: dict[str, Token] = {}
        self.include(Authentication(self))
        self.include(People(self))
        self.include(Roles(self))

    def seed(self) -> None:
        """Domain Default, project and user admin, the usual roles."""
        store = self.store
        store.new_domain("Default", "default", description="The default domain")
        for name in ROLE_NAMES:
            store.new_role(name)
        project = store.new_project("admin", "default", description="Bootstrap project")
        user = store.new_user("admin", "default", self.cloud.settings.admin_password)
        admin = store.role_named("admin")
        assert admin is not None
        for kind, target in (("project", project["id"]), ("system", "all"), ("domain", "default")):
            store.grants.add(Grant(user["id"], kind, target, admin["id"]))

    # -------------------------------------------------------------- tokens

    def token_of(self, token_id: str | None) -> Token | None:
        """The token if it is good by itself: known, not expired, not revoked."""
        token = self.tokens.get(token_id) if token_id else None
        if token is None or token.revoked or token.expires_at <= self.cloud.now:
            return None
        secret = self.store.secrets.get(token.user_id)
        if secret is not None and secret.changed_at is not None and not token.application_credential_id:
            # Revocation counts in whole seconds: a token of the very second of the change is dead.
            if self.cloud.settings.password_change_kills_same_second:
                if token.issued_at.replace(microsecond=0) <= secret.changed_at.replace(microsecond=0):
                    return None
            elif token.issued_at < secret.changed_at:
                return None
        return token

    def token_for(self, service: Service, token_id: str | None) -> Token | None:
        """The token as `service` judges it: only Keystone looks whether its owner still exists."""
        token = self.token_of(token_id)
        if token is None or (service is not self and self.cloud.settings.tokens_outlive_owner):
            return token
        user = self.store.users.get(token.user_id)
        if user is None or not user["enabled"]:
            return None
        if token.project_id is not None:
            project = self.store.projects.get(token.project_id)
            if project is None or not project["enabled"]:
                return None
        return token

    def issue(self, token: Token) -> Token:
        """Keep a token; the expired ones go when there are many."""
        if len(self.tokens) >= TOKENS_KEPT:
            now = self.cloud.now
            self.tokens = {k: t for k, t in self.tokens.items() if t.expires_at > now}
        self.tokens[token.id] = token
        return token

    def lifetime(self) -> timedelta:
        return timedelta(seconds=self.cloud.settings.token_lifetime)

    # ---------------------------------------------------------- for others

    def project(self, project_id: str) -> JsonObject | None:
        return self.store.projects.get(project_id)

    @property
    def admin_project_id(self) -> str:
        """The project that owns what the cloud itself has: the external network, the images."""
        project = self.store.named(self.store.projects, "admin", "default")
        return str(project["id"]) if project else ""

    def user(self, user_id: str) -> JsonObject | None:
        return self.store.users.get(user_id)

    # -------------------------------------------------------------- policy

    def manages(self, ctx: Ctx, domain_id: str | None) -> bool:
        """Administrator, or manager of that domain by a domain-scoped token."""
        token = ctx.token
        return token.is_admin or (
            domain_id is not None and token.domain_id == domain_id and "manager" in token.roles
        )

    def reads(self, ctx: Ctx, domain_id: str | None) -> bool:
        """Administrator, or reader of that domain by a domain-scoped token."""
        token = ctx.token
        return token.is_admin or (
            domain_id is not None and token.domain_id == domain_id and "reader" in token.roles
        )

    def target(
        self, ctx: Ctx, table: dict[str, JsonObject], kind: str, object_id: str, rule: str
    ) -> JsonObject:
        """The record, or 404 for the administrator and 403 for everybody else."""
        record = table.get(object_id)
        if record is None:
            if ctx.is_admin:
                raise self.not_found(f"Could not find {kind}: {object_id}.")
            raise self.policy_error(rule)
        return record

    def link(self, *path: str) -> str:
        return f"{self.cloud.settings.base_url}/identity/v3/{'/'.join(path)}"

    def show(self, collection: str, record: JsonObject) -> JsonObject:
        return record | {"links": {"self": self.link(collection, record["id"])}}

    def listing(self, ctx: Ctx, collection: str, rows: Sequence[JsonObject]) -> Response:
        """A list body; Keystone names no pages here, `links.next` is null."""
        links = {"next": None, "self": self.link(collection), "previous": None}
        return answer({collection: [self.show(collection, row) for row in rows], "links": links})

    # -------------------------------------------------------------- errors

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        return ApiError(
            status,
            {"error": {"code": status, "message": message, "title": kind or TITLES.get(status, "Error")}},
        )

    def policy_error(self, rule: str) -> ApiError:
        return self.error(403, f"You are not authorized to perform the requested action: {rule}.")

    def malformed_body(self) -> ApiError:
        return self.bad_request(
            "Expecting to find valid JSON in request body. The server could not comply with the request "
            "since it is either malformed or otherwise incorrect. The client is assumed to be in error."
        )

    def missing_field(self, key: str) -> ApiError:
        return self.bad_request(
            f"Expecting to find {key} in request body. The server could not comply with the request since "
            "it is either malformed or otherwise incorrect. The client is assumed to be in error."
        )

    def invalid_field(self, key: str, value: Any, reason: str) -> ApiError:
        return self.bad_request(f"Invalid input for field '{key}': {reason}")

    def stored_twice(self, kind: str, details: str) -> ApiError:
        """The 409 for a name that is taken."""
        return self.conflict(f"Conflict occurred attempting to store {kind} - {details}.")

    # ----------------------------------------------------------- documents

    def _version(self) -> JsonObject:
        return {
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "links": [{"rel": "self", "href": f"{self.cloud.settings.base_url}/identity/v3/"}],
            "media-types": [
                {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}
            ],
        }

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        return answer({"versions": {"values": [self._version()]}}, 300)

    @route("GET", "/v3", auth=False)
    def version(self, ctx: Ctx) -> Response:
        return answer({"version": self._version()})

    # ------------------------------------------------------------- catalog

    def catalog(self, project_id: str | None) -> list[JsonObject]:
        """The catalog of a scoped token; Cinder's endpoint bears the project id."""
        base = self.cloud.settings.base_url
        volume = f"{base}/volume/v3" + (f"/{project_id}" if project_id else "")
        entries = (
            ("keystone", "identity", f"{base}/identity"),
            ("nova", "compute", f"{base}/compute/v2.1"),
            ("neutron", "network", f"{base}/network"),
            ("glance", "image", f"{base}/image"),
            ("cinder", "block-storage", volume),
            ("cinderv3", "volumev3", volume),
            ("octavia", "load-balancer", f"{base}/load-balancer"),
            ("placement", "placement", f"{base}/placement"),
        )
        region = self.cloud.settings.region_name
        elsewhere = self.cloud.settings.endpoints
        return [
            {
                "id": f"{service}-service",
                "type": kind,
                "name": service,
                "endpoints": [
                    {
                        "id": f"{service}-{interface}",
                        "interface": interface,
                        "region": region,
                        "region_id": region,
                        "url": elsewhere.get(kind, url),
                    }
                    for interface in ("public", "internal", "admin")
                ],
            }
            for service, kind, url in entries
        ]

    @route("GET", "/v3/auth/catalog")
    def show_catalog(self, ctx: Ctx) -> Response:
        if ctx.token.scope == "unscoped":
            raise self.policy_error("identity:get_auth_catalog")
        return answer(
            {"catalog": self.catalog(ctx.token.project_id), "links": {"self": self.link("auth", "catalog")}}
        )

    @route("GET", "/v3/services")
    def list_services(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:list_services")
        rows = [
            {"id": s["id"], "type": s["type"], "name": s["name"], "enabled": True} for s in self.catalog(None)
        ]
        return self.listing(ctx, "services", rows)

    @route("GET", "/v3/endpoints")
    def list_endpoints(self, ctx: Ctx) -> Response:
        ctx.require(ctx.is_admin, "identity:list_endpoints")
        rows = [
            endpoint | {"service_id": service["id"], "enabled": True}
            for service in self.catalog(None)
            for endpoint in service["endpoints"]
        ]
        return self.listing(ctx, "endpoints", rows)

    @route("GET", "/v3/regions")
    def list_regions(self, ctx: Ctx) -> Response:
        region = {"id": self.cloud.settings.region_name, "description": "", "parent_region_id": None}
        return self.listing(ctx, "regions", [region])

    @route("GET", "/v3/groups")
    def list_groups(self, ctx: Ctx) -> Response:
        ctx.require(self.reads(ctx, ctx.token.domain_id), "identity:list_groups")
        return self.listing(ctx, "groups", [])

    # ------------------------------------------------------- for the admin

    def dump(self) -> dict[str, list[JsonObject]]:
        store = self.store
        return {
            "domains": [_brief(d) for d in store.domains.values()],
            "projects": [_brief(p) for p in store.projects.values()],
            "users": [_brief(u) for u in store.users.values()],
            "application_credentials": [
                {"id": c.id, "name": c.name, "project_id": c.project_id} for c in store.credentials.values()
            ],
        }

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        """Verbs: delete_project, delete_user, disable_project, disable_user, set_password, drop_roles."""
        store = self.store
        if verb in ("delete_project", "disable_project"):
            record = store.projects[object_id]
            if verb == "delete_project":
                store.drop_project(object_id)
            else:
                record["enabled"] = False
            return _brief(record)
        if verb in ("delete_user", "disable_user", "set_password", "drop_roles"):
            record = store.users[object_id]
            if verb == "delete_user":
                store.drop_user(object_id)
            elif verb == "disable_user":
                record["enabled"] = False
            elif verb == "set_password":
                store.secrets[object_id].password = str(values["password"])
                store.secrets[object_id].changed_at = self.cloud.now
            else:
                for grant in [g for g in store.grants if g.user_id == object_id]:
                    store.drop_grant(grant)
            return _brief(record)
        return super().foreign(verb, object_id, values)


def _brief(record: JsonObject) -> JsonObject:
    return {"id": record["id"], "name": record["name"], "project_id": record.get("domain_id")}
