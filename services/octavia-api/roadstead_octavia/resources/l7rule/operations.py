"""Operations of L7 rules."""

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources import below
from roadstead_octavia.resources.ending import Ending
from roadstead_octavia.resources.l7policy import wire as l7policy
from roadstead_octavia.resources.l7policy.rules import MOST_RULES
from roadstead_octavia.resources.l7rule import rules
from roadstead_octavia.resources.l7rule.wire import RESOURCE
from roadstead_octavia.resources.limits import room
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import put_values


async def create(call: Call) -> Answer:
    """201 with the rule PENDING_CREATE."""
    return await decided(call, _create)


async def _create(attempt: Attempt) -> Answer:
    call, values, policy_id = attempt.call, attempt.call.body, attempt.call.ids[0]
    tree, policy = await below.found(call, l7policy.RESOURCE, policy_id, "l7rule:post")
    rules.check(values)
    if sum(row["l7policy_id"] == policy_id for row in tree.of("l7rule")) >= MOST_RULES:
        raise refuse("TooManyL7RulesOnL7Policy", id=policy_id)
    below.require_provider(call, tree)
    project_id = policy["project_id"]
    quota = await room(call, project_id, l7rule=1)
    below.require_active(tree, policy=policy)
    identifier = call.parts.new_id()
    held = _held(tree, policy)
    writes = [
        *held.writes,
        *rules.rows(values, identifier=identifier, policy_id=policy_id, project_id=project_id),
    ]
    draft = below.change(call, tree, writes, project_id=project_id, quota=quota)
    after = call.parts.database.after(tree, draft)
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.created(identifier, draft, after, models.l7rule(after, identifier))


def _held(tree: Tree, policy: Row) -> below.Held:
    return below.held(tree, listeners=[policy["listener_id"]], policy=policy["id"])


async def _found(call: Call, rule: str) -> tuple[Tree, Row, Row]:
    """The rule with its tree and its policy; 404 for another policy's."""
    policy_id, identifier = call.ids
    tree, row = await below.found(call, RESOURCE, identifier, rule)
    policy = tree.get("l7policy", policy_id)
    if row["l7policy_id"] != policy_id or policy is None:
        raise not_found(RESOURCE.noun, identifier)
    return tree, row, policy


async def update(call: Call) -> Answer:
    """200 with the rule PENDING_UPDATE."""
    return await decided(call, _update)


async def _update(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[1]
    tree, row, policy = await _found(call, "l7rule:put")
    values = put_values(RESOURCE, call.body, call.options)
    merged = rules.without_key({**row, **values})
    rules.check(merged)
    below.require_provider(call, tree)
    below.require_active(tree, policy=policy)
    below.require_settled(RESOURCE.noun, row)
    columns = to_row(RESOURCE, rules.without_key(values))
    held = _held(tree, policy)
    objects = [models.l7rule(tree, identifier), models.changed("l7rule", identifier, columns)]
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.updated(row, columns, objects, tags=values.get("tags"))


async def delete(call: Call) -> Answer:
    """204; the rule goes when the provider has let go of it."""
    return await decided(call, _delete)


async def _delete(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[1]
    tree, row, policy = await _found(call, "l7rule:delete")
    below.require_provider(call, tree)
    below.require_active(tree, policy=policy)
    below.require_settled(RESOURCE.noun, row)
    held = _held(tree, policy)
    return await Ending(attempt, RESOURCE, tree, held).deleted(row, models.l7rule(tree, identifier))
