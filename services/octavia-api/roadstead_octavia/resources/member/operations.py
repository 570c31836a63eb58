"""Operations of members: one at a time, and the whole set of a pool in one call."""

from collections.abc import Iterable, Mapping
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Insert, Row, Touched, Tree, Update, Write
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources import below
from roadstead_octavia.resources.below import DELETED, DELETING, UPDATING
from roadstead_octavia.resources.ending import Ending
from roadstead_octavia.resources.limits import room
from roadstead_octavia.resources.member import rules
from roadstead_octavia.resources.member.wire import RESOURCE
from roadstead_octavia.resources.pool import wire as pool
from roadstead_octavia.resources.shown import Index
from roadstead_octavia.wire.check import TRUE
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import put_values

Values = Mapping[str, Any]
# What a batch says of a member that is there without changing it.
FIXED = frozenset(("address", "protocol_port", "subnet_id", "project_id", "request_sriov"))


async def create(call: Call) -> Answer:
    """201 with the member PENDING_CREATE."""
    return await decided(call, _create)


async def _create(attempt: Attempt) -> Answer:
    call, values, pool_id = attempt.call, attempt.call.body, attempt.call.ids[0]
    tree, pool_row = await below.found(call, pool.RESOURCE, pool_id, "member:post", deleted=True)
    rules.check_address(values["address"], call.options)
    await check_subnets(call, [values])
    below.require_provider(call, tree)
    quota = await room(call, pool_row["project_id"], member=1)
    rules.check_new(values, tree)
    below.require_active(tree, pool=pool_row)
    rules.check_unique(values, rules.places(_members(tree, pool_id)))
    identifier = call.parts.new_id()
    writes = rules.rows(
        values,
        identifier=identifier,
        pool_id=pool_id,
        project_id=pool_row["project_id"],
        monitored=is_monitored(tree, pool_id),
    )
    held = below.held_with_pool(tree, pool_id)
    draft = below.change(call, tree, [*writes, *held.writes], project_id=pool_row["project_id"], quota=quota)
    after = call.parts.database.after(tree, draft)
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.created(identifier, draft, after, models.member(after, identifier))


def is_monitored(tree: Tree, pool_id: str) -> bool:
    return any(row["pool_id"] == pool_id for row in tree.of("health_monitor"))


def _members(tree: Tree, pool_id: str) -> list[Row]:
    return [
        row
        for row in tree.of("member")
        if row["pool_id"] == pool_id and row["provisioning_status"] != DELETED
    ]


async def check_subnets(call: Call, members: Iterable[Values]) -> None:
    """400 for a subnet that the caller cannot see; each is looked up once."""
    wanted = (values.get("subnet_id") for values in members)
    for subnet in dict.fromkeys(given for given in wanted if given is not None):
        if await call.parts.network.find("subnets", subnet, token=call.caller.token) is None:
            raise refuse("InvalidSubresource", resource="Subnet", id=subnet)


async def _found(call: Call, rule: str) -> tuple[Tree, Row, Row]:
    """The member with its tree and its pool; 404 for another pool's."""
    pool_id, identifier = call.ids
    tree, row = await below.found(call, RESOURCE, identifier, rule)
    pool_row = tree.get("pool", pool_id)
    if row["pool_id"] != pool_id or pool_row is None:
        raise not_found(RESOURCE.noun, identifier)
    return tree, row, pool_row


async def update(call: Call) -> Answer:
    """200 with the member PENDING_UPDATE."""
    return await decided(call, _update)


async def _update(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[1]
    tree, row, pool_row = await _found(call, "member:put")
    values = put_values(RESOURCE, call.body, call.options)
    below.require_provider(call, tree)
    below.require_active(tree, pool=pool_row)
    below.require_settled(RESOURCE.noun, row)
    columns = to_row(RESOURCE, values)
    held = below.held_with_pool(tree, row["pool_id"])
    objects = [models.member(tree, identifier), models.changed("member", identifier, columns)]
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.updated(row, columns, objects, tags=values.get("tags"))


async def delete(call: Call) -> Answer:
    """204; the member goes when the provider has let go of it."""
    return await decided(call, _delete)


async def _delete(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[1]
    tree, row, pool_row = await _found(call, "member:delete")
    below.require_provider(call, tree)
    below.require_active(tree, pool=pool_row)
    below.require_settled(RESOURCE.noun, row)
    held = below.held_with_pool(tree, row["pool_id"])
    return await Ending(attempt, RESOURCE, tree, held).deleted(row, models.member(tree, identifier))


# ---------------------------------------------------------------- the whole set


async def batch(call: Call) -> Answer:
    """202 without a body; members that are not named go, unless `additive_only`."""
    return await decided(call, _batch)


async def _batch(attempt: Attempt) -> Answer:
    call, pool_id = attempt.call, attempt.call.ids[0]
    wanted = call.body["members"]
    additive = any(name == "additive_only" and text.lower() in TRUE for name, text in call.query)
    tree, pool_row = await below.found(call, pool.RESOURCE, pool_id, "member:post", deleted=True)
    project_id = pool_row["project_id"]
    for action in ("put",) if additive else ("put", "delete"):
        call.parts.policy.enforce(call, f"member:{action}", project_id)
    below.require_provider(call, tree)
    below.require_active(tree, pool=pool_row)
    members = _members(tree, pool_id)
    sorted_out = rules.sorted_out(wanted, members, additive=additive, options=call.options)
    if sorted_out.is_empty:
        return Answer(202)
    increase = len(sorted_out.new) - len(sorted_out.dropped)
    quota = await room(call, project_id, member=increase) if increase > 0 else None
    await check_subnets(call, sorted_out.new)
    for values in sorted_out.new:
        rules.check_new(values, tree)
    rules.check_once(sorted_out.new)
    told, writes, touched = _planned(call, tree, pool_row, sorted_out)
    held = below.held_with_pool(tree, pool_id)
    operation = below.operation(
        call, tree, "member", "batch_update", [pool_id, told], [*held.touched, *touched]
    )
    draft = below.change(call, tree, [*held.writes, *writes], project_id=project_id, quota=quota)
    await attempt.conclude(tree, below.asking(draft, operation))
    return Answer(202)


def _planned(
    call: Call, tree: Tree, pool_row: Row, wanted: rules.Batch
) -> tuple[list[models.Model], list[Write], list[Touched]]:
    """What the provider is told (new ones first, then changed, then untouched), what is written, what is held."""
    told: list[models.Model] = []
    writes: list[Write] = []
    touched: list[Touched] = []
    row: Row
    monitored, tags = is_monitored(tree, pool_row["id"]), Index(tree).tags
    for values in wanted.new:
        identifier = call.parts.new_id()
        row = rules.row_of(
            values,
            identifier=identifier,
            pool_id=pool_row["id"],
            project_id=pool_row["project_id"],
            monitored=monitored,
        )
        writes.append(Insert("member", row))
        writes += below.tag_writes(tree, identifier, values.get("tags"), there=())
        told.append(models.batch_member(row, None))
        touched.append(Touched("member", identifier))
    for row, values in wanted.kept:
        columns = to_row(RESOURCE, {name: value for name, value in values.items() if name not in FIXED})
        writes.append(Update("member", {"id": row["id"]}, {**columns, **UPDATING}))
        writes += below.tag_writes(tree, row["id"], values.get("tags"), there=tags.get(row["id"], ()))
        told.append(models.batch_member({**row, **columns}, values))
        touched.append(Touched("member", row["id"]))
    told += [models.batch_member(row, None) for row in wanted.untouched]
    for row in wanted.dropped:
        writes.append(Update("member", {"id": row["id"]}, DELETING))
        touched.append(Touched("member", row["id"], done=DELETED))
    return told, writes, touched
