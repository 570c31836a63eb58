"""Who may do what: oslo.policy with the original's rule names, so that operators' policy files work unchanged."""

from typing import Any, Protocol


class Policy(Protocol):
    def allows(self, call: Any, rule: str, project_id: str | None) -> bool:
        """Whether the caller may; rule without its prefix, e.g. `loadbalancer:post`; project_id: the owner of the object."""

    def enforce(self, call: Any, rule: str, project_id: str | None) -> None:
        """ApiError PolicyForbidden unless the caller may."""
