"""Operations of L7 policies."""

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.errors import not_found
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources import below
from roadstead_octavia.resources.ending import Ending
from roadstead_octavia.resources.l7policy import rules
from roadstead_octavia.resources.l7policy.wire import RESOURCE
from roadstead_octavia.resources.limits import room
from roadstead_octavia.resources.listener import wire as listener
from roadstead_octavia.resources.pool import rules as pool_rules
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import put_values


async def create(call: Call) -> Answer:
    """201 with the policy PENDING_CREATE; those behind it move on by one."""
    return await decided(call, _create)


async def _create(attempt: Attempt) -> Answer:
    call, body = attempt.call, attempt.call.body
    tree, listener_row = await below.found(call, listener.RESOURCE, body["listener_id"], "l7policy:post")
    pool_rules.check_children(listener_row["protocol"])
    check_redirect(tree, listener_row["protocol"], body.get("redirect_pool_id"))
    below.require_provider(call, tree)
    project_id = listener_row["project_id"]
    quota = await room(call, project_id, l7policy=1)
    values = rules.settled(body, creating=True)
    below.require_active(tree)
    identifier, policies = call.parts.new_id(), _policies(tree, listener_row["id"])
    order = rules.inserted([row["id"] for row in policies], identifier, body["position"])
    held = below.held(tree, listeners=[listener_row["id"]])
    writes = [
        *held.writes,
        *rules.position_writes(policies, order, besides=identifier),
        *rules.rows(
            values,
            identifier=identifier,
            listener_id=listener_row["id"],
            project_id=project_id,
            position=order.index(identifier) + 1,
        ),
    ]
    draft = below.change(call, tree, writes, project_id=project_id, quota=quota)
    after = call.parts.database.after(tree, draft)
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.created(identifier, draft, after, models.l7policy(after, identifier))


def check_redirect(tree: Tree, protocol: str, pool_id: str | None) -> None:
    """400, 404 or 409 for a pool that a policy on a listener of the protocol cannot send to."""
    if pool_id is not None:
        pool_rules.check_fit(below.pool_of(tree, pool_id)["protocol"], protocol)


def _policies(tree: Tree, listener_id: str) -> list[Row]:
    """Of the listener, in order of position."""
    return sorted(
        (row for row in tree.of("l7policy") if row["listener_id"] == listener_id),
        key=lambda row: int(row["position"]),
    )


async def _found(call: Call, rule: str) -> tuple[Tree, Row, Row]:
    """The policy with its tree and its listener."""
    identifier = call.ids[0]
    tree, row = await below.found(call, RESOURCE, identifier, rule)
    listener_row = tree.get("listener", row["listener_id"])
    if listener_row is None:
        raise not_found(RESOURCE.noun, identifier)
    return tree, row, listener_row


async def update(call: Call) -> Answer:
    """200 with the policy PENDING_UPDATE."""
    return await decided(call, _update)


async def _update(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row, listener_row = await _found(call, "l7policy:put")
    rules.check_given(call.body)
    values = rules.settled(put_values(RESOURCE, call.body, call.options), creating=False)
    check_redirect(tree, listener_row["protocol"], values.get("redirect_pool_id"))
    below.require_provider(call, tree)
    below.require_active(tree)
    below.require_settled(RESOURCE.noun, row)
    told = to_row(RESOURCE, values)
    policies = _policies(tree, listener_row["id"])
    columns, moves = dict(told), []
    if told.get("position") is not None:
        order = rules.inserted([one["id"] for one in policies], identifier, told["position"])
        columns["position"] = order.index(identifier) + 1
        moves = rules.position_writes(policies, order, besides=identifier)
    held = below.held(tree, listeners=[listener_row["id"]])
    objects = [models.l7policy(tree, identifier), models.changed("l7policy", identifier, told)]
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.updated(row, columns, objects, more=moves, tags=values.get("tags"))


async def delete(call: Call) -> Answer:
    """204; the policy goes when the provider has let go of it."""
    return await decided(call, _delete)


async def _delete(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row, listener_row = await _found(call, "l7policy:delete")
    below.require_provider(call, tree)
    below.require_active(tree)
    below.require_settled(RESOURCE.noun, row)
    held = below.held(tree, listeners=[listener_row["id"]])
    return await Ending(attempt, RESOURCE, tree, held).deleted(row, models.l7policy(tree, identifier))
