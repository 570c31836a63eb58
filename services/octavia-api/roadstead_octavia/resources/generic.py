"""Listing and showing, the same for every resource.

Lists: whether the caller may see everybody's rows, else their own project's.  Shows: the object first, then the policy, so that an unknown
id is 404 for everybody; what only administrators manage asks the policy first, in the name of the caller's own project.
"""

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Filter, Page, Row
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.http.paging import NOTHING, Asked, Nothing, asked, links_of, page_of
from roadstead_octavia.wire.describe import Resource
from roadstead_octavia.wire.write import many, one

NIL = "00000000-0000-0000-0000-000000000000"

# Tables whose rows belong to a row above: the column, the table, its noun.
NESTED = {"member": ("pool_id", "pool", "Pool"), "l7rule": ("l7policy_id", "l7policy", "L7Policy")}
# Nobody's rows: the caller's own project is what the policy is asked about.
SHARED = frozenset(("flavor", "flavor_profile", "availability_zone", "availability_zone_profile"))
PLACEHOLDERS = SHARED


async def list_(call: Call, resource: Resource) -> Answer:
    """200 with one page."""
    ask = asked(call.query, call.options)
    rows, project_id = [], None
    parent = await _parent(call, resource)
    if parent is not None:
        call.parts.policy.enforce(call, f"{resource.rule}:get_all", parent["project_id"])
        project_id = ask.project_id
    elif resource.table in SHARED or resource.table == "amphora":
        call.parts.policy.enforce(call, f"{resource.rule}:get_all", call.caller.project_id)
        project_id = ask.project_id if resource.table == "amphora" else None
    else:
        project_id = visible(call, resource, ask.project_id)
    page = page_of(
        resource,
        ask,
        call.query,
        call.options,
        project_id=project_id,
        parent={NESTED[resource.table][0]: call.ids[0]} if parent is not None else None,
    )
    if not isinstance(page, Nothing):
        rows = list(await call.parts.database.page(page))
    return listing(call, resource, ask, rows)


def visible(call: Call, resource: Resource, project_id: str | None) -> str | None:
    """Whose rows the caller may list: None for everybody's.  ApiError PolicyForbidden."""
    policy = call.parts.policy
    if policy.allows(call, f"{resource.rule}:get_all-global", project_id):
        return project_id
    narrowed = project_id if project_id is not None else call.caller.project_id
    if narrowed is None:
        raise refuse("PolicyForbidden")
    policy.enforce(call, f"{resource.rule}:get_all", narrowed)
    return narrowed


def listing(call: Call, resource: Resource, ask: Asked, rows: list[Row]) -> Answer:
    """The answer that shows these rows, with links."""
    links = links_of(resource, ask, call.query, rows, call.url, call.options)
    body = many(resource, rows, links, ask.fields or None)
    if links is None:
        body[resource.links] = None  # what clients see where paging is switched off
    return Answer(200, body)


async def show(call: Call, resource: Resource) -> Answer:
    """200 with one object."""
    identifier = call.ids[-1]
    if resource.table in SHARED:
        call.parts.policy.enforce(call, f"{resource.rule}:get_one", call.caller.project_id)
    row = await found(call, resource, identifier)
    if resource.table == "amphora":
        call.parts.policy.enforce(call, f"{resource.rule}:get_one", call.caller.project_id)
    elif resource.table not in SHARED:
        call.parts.policy.enforce(call, f"{resource.rule}:get_one", row["project_id"])
    fields = asked(call.query, call.options).fields
    return Answer(200, one(resource, row, fields or None))


async def found(call: Call, resource: Resource, identifier: str) -> Row:
    """The shown row of that id; ApiError NotFound, also for what is deleted or another parent's."""
    key = "name" if resource.table == "availability_zone" else "id"
    nested = NESTED.get(resource.table)
    rows = await call.parts.database.page(
        Page(
            table=resource.table,
            project_id=None,
            parent={nested[0]: call.ids[0]} if nested else {},
            filters=(Filter(key, (identifier,)),),
            sort=((key, False),),
            limit=1,
        )
    )
    if not rows or (resource.table in PLACEHOLDERS and identifier == NIL):
        raise not_found(resource.noun, identifier)
    return rows[0]


async def _parent(call: Call, resource: Resource) -> Row | None:
    """The row above that the path names; None for resources that have none."""
    nested = NESTED.get(resource.table)
    if nested is None:
        return None
    row = await call.parts.database.row(nested[1], {"id": call.ids[0]})
    if row is None:
        raise not_found(nested[2], call.ids[0])
    return row


__all__ = ["NOTHING", "found", "list_", "listing", "show", "visible"]
