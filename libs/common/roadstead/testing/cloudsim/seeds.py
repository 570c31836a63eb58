"""Who owns what a fresh cloud has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cloud import Cloud


def admin_project_id(cloud: Cloud) -> str:
    """Return the id of the cloud administrator's project."""
    store = cloud.keystone.store
    project = store.named(store.projects, "admin", "default")
    return str(project["id"]) if project is not None else ""
