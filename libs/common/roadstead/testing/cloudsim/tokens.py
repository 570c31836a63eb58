"""What a token says: who, in which scope, with which roles."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class Token:
    """An issued token; `scope` is one of project, domain, system, unscoped."""

    id: str
    user_id: str
    user_name: str
    user_domain_id: str
    scope: str
    issued_at: datetime
    expires_at: datetime
    project_id: str | None = None
    project_name: str | None = None
    domain_id: str | None = None
    roles: frozenset[str] = field(default_factory=frozenset)
    methods: tuple[str, ...] = ("password",)
    application_credential_id: str | None = None
    revoked: bool = False

    @property
    def is_admin(self) -> bool:
        """True when the token carries the role admin, in whatever scope."""
        return "admin" in self.roles
