"""Keystone's records: domains, projects, users, roles, grants and application credentials.

Records are dicts in the wire's names; what the wire does not show (password, time of the
last password change) stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from .base import JsonObject
from .ids import Ids

ROLE_NAMES = (
    "admin", "manager", "member", "reader", "service", "load-balancer_member", "load-balancer_observer",
    "load-balancer_admin",
)  # fmt: skip
IMPLIED = {"admin": "manager", "manager": "member", "member": "reader"}


@dataclass(frozen=True, slots=True)
class Grant:
    """A role of a user on a target; `kind` is project, domain or system (target id "all")."""

    user_id: str
    kind: str
    target_id: str
    role_id: str


@dataclass
class Secret:
    """What authenticates a user, and since when its tokens are good."""

    password: str | None
    changed_at: datetime | None = None
    """None for a password that was set when the user was made."""


@dataclass
class ApplicationCredential:
    """A credential of one user, confined to one project and some roles."""

    id: str
    name: str
    user_id: str
    project_id: str
    role_ids: tuple[str, ...]
    secret: str
    description: str | None = None
    expires_at: datetime | None = None
    unrestricted: bool = False


@dataclass
class KeystoneStore:
    """All of Keystone's state, with the look-ups that calls make often."""

    ids: Ids
    domains: dict[str, JsonObject] = field(default_factory=dict)
    projects: dict[str, JsonObject] = field(default_factory=dict)
    users: dict[str, JsonObject] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    roles: dict[str, JsonObject] = field(default_factory=dict)
    grants: dict[Grant, None] = field(default_factory=dict)
    credentials: dict[str, ApplicationCredential] = field(default_factory=dict)

    def named(self, table: dict[str, JsonObject], name: str, domain_id: str | None) -> JsonObject | None:
        """The record of that name in that domain (None: the first of that name)."""
        for record in table.values():
            if record["name"] == name and (domain_id is None or record.get("domain_id") == domain_id):
                return record
        return None

    def role_named(self, name: str) -> JsonObject | None:
        return self.named(self.roles, name, None)

    def new_domain(self, name: str, domain_id: str | None = None, **fields: object) -> JsonObject:
        record: JsonObject = {
            "id": domain_id or self.ids.hex(), "name": name, "description": "", "enabled": True, "tags": [],
            "options": {},
        } | fields  # fmt: skip
        self.domains[record["id"]] = record
        return record

    def new_project(self, name: str, domain_id: str, **fields: object) -> JsonObject:
        record: JsonObject = {
            "id": self.ids.hex(), "name": name, "domain_id": domain_id, "description": "", "enabled": True,
            "parent_id": domain_id, "is_domain": False, "tags": [], "options": {},
        } | fields  # fmt: skip
        self.projects[record["id"]] = record
        return record

    def new_user(self, name: str, domain_id: str, password: str | None, **fields: object) -> JsonObject:
        record: JsonObject = {
            "id": self.ids.hex(), "name": name, "domain_id": domain_id, "enabled": True,
            "password_expires_at": None, "options": {},
        } | fields  # fmt: skip
        self.users[record["id"]] = record
        self.secrets[record["id"]] = Secret(password)
        return record

    def new_role(self, name: str) -> JsonObject:
        record: JsonObject = {
            "id": self.ids.hex(), "name": name, "domain_id": None, "description": None, "options": {},
        }  # fmt: skip
        self.roles[record["id"]] = record
        return record

    def grants_of(self, user_id: str, kind: str, target_id: str) -> list[Grant]:
        return [
            g for g in self.grants if g.user_id == user_id and g.kind == kind and g.target_id == target_id
        ]

    def with_implied(self, names: set[str]) -> set[str]:
        """The role names with everything that they imply."""
        full = set(names)
        for name in names:
            follow = IMPLIED.get(name)
            while follow is not None and follow not in full:
                full.add(follow)
                follow = IMPLIED.get(follow)
        return full

    def role_names(self, user_id: str, kind: str, target_id: str) -> set[str]:
        """Effective role names of a user on a target."""
        return self.with_implied(
            {
                self.roles[g.role_id]["name"]
                for g in self.grants_of(user_id, kind, target_id)
                if g.role_id in self.roles
            }
        )

    def projects_of(self, user_id: str) -> Iterator[JsonObject]:
        """Enabled projects on which the user has a role, in the order of the grants."""
        seen: set[str] = set()
        for grant in self.grants:
            if grant.user_id == user_id and grant.kind == "project" and grant.target_id not in seen:
                seen.add(grant.target_id)
                project = self.projects.get(grant.target_id)
                if project is not None and project["enabled"]:
                    yield project

    def drop_user(self, user_id: str) -> None:
        """Remove a user with grants and application credentials."""
        self.users.pop(user_id, None)
        self.secrets.pop(user_id, None)
        self.grants = {g: None for g in self.grants if g.user_id != user_id}
        self.credentials = {k: c for k, c in self.credentials.items() if c.user_id != user_id}

    def drop_project(self, project_id: str) -> None:
        """Remove a project with grants and application credentials; the services are not told."""
        self.projects.pop(project_id, None)
        self.grants = {g: None for g in self.grants if (g.kind, g.target_id) != ("project", project_id)}
        self.credentials = {k: c for k, c in self.credentials.items() if c.project_id != project_id}

    def drop_grant(self, grant: Grant) -> None:
        """Remove a grant; the application credentials of that user and project go with it."""
        self.grants.pop(grant, None)
        if grant.kind == "project":
            self.credentials = {
                k: c
                for k, c in self.credentials.items()
                if (c.user_id, c.project_id) != (grant.user_id, grant.target_id)
            }
