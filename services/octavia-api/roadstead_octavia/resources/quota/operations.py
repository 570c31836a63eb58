"""Operations of quotas.  A limit that a project's row does not have is the deployment's default."""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Insert, Row, Update
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.http.paging import Nothing, asked, page_of
from roadstead_octavia.resources.generic import listing, visible
from roadstead_octavia.resources.quota.wire import RESOURCE
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import put_values
from roadstead_octavia.wire.write import one

LONGEST_PROJECT_ID = 36


def effective(row: Row | None, project_id: str, defaults: Mapping[str, int]) -> dict[str, Any]:
    """The limits in force."""
    held = row or {}
    limits = {name: default if held.get(name) is None else held[name] for name, default in defaults.items()}
    return {**held, **limits, "project_id": project_id}


async def list_(call: Call) -> Answer:
    """200 with one page of the projects that have a row, as they are stored."""
    ask = asked(call.query, call.options)
    project_id = visible(call, RESOURCE, ask.project_id)
    page = page_of(RESOURCE, ask, call.query, call.options, project_id=project_id)
    rows = [] if isinstance(page, Nothing) else list(await call.parts.database.page(page))
    return listing(call, RESOURCE, ask, rows)


async def show(call: Call) -> Answer:
    """200 for any project."""
    project_id = call.ids[0]
    call.parts.policy.enforce(call, "quota:get_one", project_id)
    row = await call.parts.database.row("quotas", {"project_id": project_id})
    return Answer(200, one(RESOURCE, effective(row, project_id, call.options.default_quotas)))


async def default(call: Call) -> Answer:
    """200 with the deployment's defaults."""
    project_id = call.ids[0]
    call.parts.policy.enforce(call, "quota:get_defaults", project_id)
    return Answer(200, one(RESOURCE, effective(None, project_id, call.options.default_quotas)))


async def update(call: Call) -> Answer:
    """202 with the limits in force; null gives a limit back to the default.  A project's first row keeps the defaults of its day."""
    project_id, database, defaults = call.ids[0], call.parts.database, call.options.default_quotas
    call.parts.policy.enforce(call, "quota:put", project_id)
    values = _limits(call)
    if len(project_id) > LONGEST_PROJECT_ID:
        reason = f"Value should have a maximum character requirement of {LONGEST_PROJECT_ID}"
        raise refuse("InvalidInput", field="project_id", value=project_id, reason=reason)
    row = await database.row("quotas", {"project_id": project_id})
    after = {name: values.get(name, (row or {}).get(name)) for name in defaults}
    limits = {name: defaults[name] if limit is None else limit for name, limit in after.items()}
    await _store(call, project_id, row, limits)
    return Answer(202, one(RESOURCE, {"project_id": project_id, **limits}))


async def _store(call: Call, project_id: str, row: Row | None, limits: Mapping[str, int]) -> None:
    write = Update("quotas", {"project_id": project_id}, limits)
    if row is None:
        await call.parts.database.write([Insert("quotas", {"project_id": project_id, **limits})])
    elif any(row[name] != limit for name, limit in limits.items()):
        await call.parts.database.write([write])


def _limits(call: Call) -> dict[str, Any]:
    """Columns; where both spellings of a name came, the older one wins."""
    values = put_values(RESOURCE, call.body, call.options)
    columns = to_row(RESOURCE, values)
    for older, column in (("loadbalancer", "load_balancer"), ("healthmonitor", "health_monitor")):
        if older in values:
            columns[column] = values[older]
    return columns


async def delete(call: Call) -> Answer:
    """202; the project is back at the defaults."""
    project_id, database = call.ids[0], call.parts.database
    call.parts.policy.enforce(call, "quota:delete", project_id)
    row = await database.row("quotas", {"project_id": project_id})
    if row is None:
        raise not_found("Quotas", project_id)
    await _store(call, project_id, row, call.options.default_quotas)
    return Answer(202)
