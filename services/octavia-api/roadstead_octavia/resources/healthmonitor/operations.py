"""Operations of health monitors."""

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources import below
from roadstead_octavia.resources.ending import Ending
from roadstead_octavia.resources.healthmonitor import rules
from roadstead_octavia.resources.healthmonitor.doubts import tell
from roadstead_octavia.resources.healthmonitor.wire import RESOURCE
from roadstead_octavia.resources.limits import room
from roadstead_octavia.resources.pool import wire as pool
from roadstead_octavia.resources.pool.rules import DATAGRAMS
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import put_values


async def create(call: Call) -> Answer:
    """201 with the monitor PENDING_CREATE."""
    return await decided(call, _create)


async def _create(attempt: Attempt) -> Answer:
    call, values = attempt.call, attempt.call.body
    pool_id = values["pool_id"]
    tree, pool_row = await below.found(call, pool.RESOURCE, pool_id, "healthmonitor:post", deleted=True)
    rules.check_type(values["type"], call.options)
    if values["type"] is not None:
        rules.check_pool(values["type"], values["delay"], pool_row["protocol"], call.options)
    below.require_provider(call, tree)
    project_id = pool_row["project_id"]
    quota = await room(call, project_id, health_monitor=1)
    below.require_active(tree, pool=pool_row)
    rules.check_new(values)
    if any(row["pool_id"] == pool_id for row in tree.of("health_monitor")):
        raise refuse("DuplicateHealthMonitor")
    identifier = call.parts.new_id()
    writes = rules.rows(values, identifier=identifier, pool_id=pool_id, project_id=project_id)
    held = below.held_with_pool(tree, pool_id)
    draft = below.change(call, tree, [*writes, *held.writes], project_id=project_id, quota=quota)
    after = call.parts.database.after(tree, draft)
    ending = Ending(attempt, RESOURCE, tree, held)
    answer = await ending.created(identifier, draft, after, models.health_monitor(after, identifier))
    tell(identifier, after.get("health_monitor", identifier) or {})
    return answer


async def _found(call: Call, rule: str) -> tuple[Tree, Row, Row]:
    """The monitor with its tree and its pool."""
    identifier = call.ids[0]
    tree, row = await below.found(call, RESOURCE, identifier, rule)
    pool_row = tree.get("pool", row["pool_id"])
    if pool_row is None:
        raise not_found(RESOURCE.noun, identifier)
    return tree, row, pool_row


async def update(call: Call) -> Answer:
    """200 with the monitor PENDING_UPDATE."""
    return await decided(call, _update)


async def _update(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row, pool_row = await _found(call, "healthmonitor:put")
    rules.check_changed(row, call.body)
    rules.check_pool(row["type"], call.body.get("delay"), pool_row["protocol"], call.options)
    below.require_provider(call, tree)
    below.require_active(tree, pool=pool_row)
    below.require_settled(RESOURCE.noun, row)
    values = put_values(RESOURCE, call.body, call.options)
    columns = to_row(RESOURCE, values)
    told = dict(columns)
    if pool_row["protocol"] in DATAGRAMS:
        told["type"] = row["type"]  # where it bears on the delay, providers are told it again
    held = below.held_with_pool(tree, row["pool_id"])
    objects = [models.health_monitor(tree, identifier), models.changed("health_monitor", identifier, told)]
    ending = Ending(attempt, RESOURCE, tree, held)
    answer = await ending.updated(row, columns, objects, tags=values.get("tags"))
    if columns.keys() & {"delay", "timeout", "expected_codes"}:
        tell(identifier, {**row, **columns})
    return answer


async def delete(call: Call) -> Answer:
    """204; the monitor goes when the provider has let go of it."""
    return await decided(call, _delete)


async def _delete(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row, pool_row = await _found(call, "healthmonitor:delete")
    below.require_provider(call, tree)
    below.require_active(tree, pool=pool_row)
    below.require_settled(RESOURCE.noun, row)
    held = below.held_with_pool(tree, row["pool_id"])
    return await Ending(attempt, RESOURCE, tree, held).deleted(row, models.health_monitor(tree, identifier))
