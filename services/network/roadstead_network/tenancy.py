"""In whose project a pass works.  An identity of another tenant is never acted in, however its id became known."""

from typing import Any

from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.passing import Pass


def is_foreign(p: Pass[Any, Any, Any], kind: str, ident: str) -> bool:
    """The named resource belongs to another tenant; False while nothing is known of it."""
    view = p.target(kind, ident)
    return view is not None and (view.key.project, view.key.region) != (p.resource.key.project, p.region_id)


def project_of(p: Pass[Any, Any, Any]) -> str:
    """Keystone's id of the identity's project.  CloudError(CONSISTENCY) while it is not known or not this tenant's."""
    identity = p.identity_id
    if not identity:
        raise CloudError(Verdict.CONSISTENCY, text="the resource has no identity")
    if is_foreign(p, "identity", identity):
        raise CloudError(Verdict.CONSISTENCY, text="the identity belongs to another tenant")
    view = p.target("identity", identity)
    project = view.status.get("projectId") if view is not None else None
    if not project:
        raise CloudError(Verdict.CONSISTENCY, text="the identity's project is not known")
    return str(project)
