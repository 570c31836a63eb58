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


class Grants:
    """All grants in the order in which they were made, found at once by user and target."""

    def __init__(self) -> None:
        self._all: dict[Grant, None] = {}
        self._at: dict[tuple[str, str, str], dict[Grant, None]] = {}

    def __iter__(self) -> Iterator[Grant]:
        return iter(self._all)

    def __contains__(self, grant: Grant) -> bool:
        return grant in self._all

    def add(self, grant: Grant) -> None:
        """Keep a grant; again is no change."""
        self._all[grant] = None
        self._at.setdefault((grant.user_id, grant.kind, grant.target_id), {})[grant] = None

    def discard(self, grant: Grant) -> None:
        """Forget a grant, if it is there."""
        self._all.pop(grant, None)
        self._at.get((grant.user_id, grant.kind, grant.target_id), {}).pop(grant, None)

    def at(self, user_id: str, kind: str, target_id: str) -> list[Grant]:
        """The grants of a user on one target."""
        return list(self._at.get((user_id, kind, target_id), ()))


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
    grants: Grants = field(default_factory=Grants)
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
                for g in self.grants.at(user_id, kind, target_id)
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
        for grant in [g for g in self.grants if g.user_id == user_id]:
            self.grants.discard(grant)
        self.credentials = {k: c for k, c in self.credentials.items() if c.user_id != user_id}

    def drop_project(self, project_id: str) -> None:
        """Remove a project with grants and application credentials; the services are not told."""
        self.projects.pop(project_id, None)
        self.drop_grants_on("project", project_id)
        self.credentials = {k: c for k, c in self.credentials.items() if c.project_id != project_id}

    def drop_grants_on(self, kind: str, target_id: str) -> None:
        """Remove every grant on a target that is going."""
        for grant in [g for g in self.grants if (g.kind, g.target_id) == (kind, target_id)]:
            self.grants.discard(grant)

    def drop_grant(self, grant: Grant) -> None:
        """Remove a grant; the application credentials of that user and project go with it."""
        self.grants.discard(grant)
        if grant.kind == "project":
            self.credentials = {
                k: c
                for k, c in self.credentials.items()
                if (c.user_id, c.project_id) != (grant.user_id, grant.target_id)
            }
