"""Operations of load balancers."""

from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Change, Operation, Touched, Tree, Update, Write
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources import below
from roadstead_octavia.resources.loadbalancer import rules
from roadstead_octavia.resources.loadbalancer.create import create as create
from roadstead_octavia.resources.loadbalancer.lookups import Lookups
from roadstead_octavia.resources.loadbalancer.wire import RESOURCE
from roadstead_octavia.resources.shown import shown
from roadstead_octavia.wire import trees
from roadstead_octavia.wire.check import TRUE
from roadstead_octavia.wire.columns import to_row, to_vip
from roadstead_octavia.wire.read import put_values
from roadstead_octavia.wire.write import one


async def _existing(call: Call, action: str) -> Tree:
    """The tree that the path names, if the caller may do this to it."""
    identifier = call.ids[0]
    tree = rules.existing(await call.parts.database.tree(identifier), identifier)
    call.parts.policy.enforce(call, f"loadbalancer:{action}", tree.load_balancer["project_id"])
    return tree


async def update(call: Call) -> Answer:
    """200 with the load balancer as it will be."""

    async def attempt(state: Attempt) -> Answer:
        tree = await _existing(call, "put")
        row = tree.load_balancer
        values = put_values(RESOURCE, call.body, call.options)
        await _require_vip_allowed(call, tree)
        below.require_provider(call, tree)
        rules.require_status(row, ("ACTIVE",))
        old = models.load_balancer(tree)
        changed = {**to_row(RESOURCE, values), **_vip_values(values)}
        arguments = [old, models.changed("load_balancer", row["id"], changed)]
        change = Change(
            load_balancer_id=row["id"],
            version=tree.version,
            writes=tuple(_updates(tree, values)),
            operation=below.operation(
                call, tree, "loadbalancer", "update", arguments, [Touched("load_balancer", row["id"])]
            ),
            at=call.parts.now(),
        )
        after = await state.conclude(tree, change)
        return Answer(200, one(RESOURCE, shown(after, "load_balancer", row["id"])))

    return await decided(call, attempt, load_balancer_id=call.ids[0])


async def _require_vip_allowed(call: Call, tree: Tree) -> None:
    """What a PUT says of the VIP's QoS policy and security groups; ApiError 400, 403."""
    body, lookups, row = call.body, Lookups(call), tree.load_balancer
    vip = next(iter(tree.of("vip")), {})
    groups = body.get("vip_sg_ids")
    if "vip_sg_ids" in body:
        call.parts.policy.enforce(call, "loadbalancer:put:vip_sg_ids", row["project_id"])
    if "vip_qos_policy_id" in body:
        await lookups.require_qos()
        wanted = body["vip_qos_policy_id"]
        if wanted is not None and wanted != vip.get("qos_policy_id"):
            await lookups.named("qos_policies", wanted)
    if groups:
        await lookups.require_groups(groups)
        rules.require_groups_fit(vip)


def _vip_values(values: dict[str, Any]) -> dict[str, Any]:
    """What a PUT changes of the VIP, in the words of providers."""
    names = ("vip_qos_policy_id", "vip_sg_ids")
    return {name: values[name] for name in names if name in values}


def _updates(tree: Tree, values: dict[str, Any]) -> list[Write]:
    identifier = tree.load_balancer["id"]
    writes: list[Write] = [
        Update(
            "load_balancer",
            {"id": identifier},
            {**to_row(RESOURCE, values), "provisioning_status": "PENDING_UPDATE"},
        )
    ]
    if vip := to_vip(RESOURCE, values):
        writes.append(Update("vip", {"load_balancer_id": identifier}, vip))
    if "vip_sg_ids" in values:
        there = [group["sg_id"] for group in tree.of("vip_security_group")]
        writes += below.row_writes(
            "vip_security_group", {"load_balancer_id": identifier}, "sg_id", there, values["vip_sg_ids"]
        )
    return writes + below.tag_writes(tree, identifier, values.get("tags"))


async def delete(call: Call) -> Answer:
    """204; with `cascade` everything below goes too."""
    cascade = _cascade(call)

    async def attempt(state: Attempt) -> Answer:
        tree = await _existing(call, "delete")
        row = tree.load_balancer
        below.require_provider(call, tree)
        if not cascade:
            rules.require_childless(tree)
        rules.require_status(row, rules.DELETABLE)
        arguments = [models.load_balancer(tree), cascade]
        operation = below.operation(
            call,
            tree,
            "loadbalancer",
            "delete",
            arguments,
            [Touched("load_balancer", row["id"], done="DELETED")],
        )
        await state.conclude(tree, _marked(call, tree, "PENDING_DELETE", operation))
        return Answer(204)

    return await decided(call, attempt, load_balancer_id=call.ids[0])


def _cascade(call: Call) -> bool:
    """Clients write the word in any case; what is no word for true counts as false."""
    said = [value for name, value in call.query if name == "cascade"]
    return bool(said) and said[-1].strip().lower() in TRUE


async def failover(call: Call) -> Answer:
    """202 without a body."""

    async def attempt(state: Attempt) -> Answer:
        tree = await _existing(call, "put_failover")
        row = tree.load_balancer
        below.require_provider(call, tree)
        rules.require_status(row, rules.DELETABLE)
        operation = below.operation(
            call, tree, "loadbalancer", "failover", [row["id"]], [Touched("load_balancer", row["id"])]
        )
        await state.conclude(tree, _marked(call, tree, "PENDING_UPDATE", operation))
        return Answer(202)

    return await decided(call, attempt, load_balancer_id=call.ids[0])


def _marked(call: Call, tree: Tree, status: str, operation: Operation) -> Change:
    """The load balancer alone in that status."""
    row = tree.load_balancer
    return Change(
        load_balancer_id=row["id"],
        version=tree.version,
        writes=(Update("load_balancer", {"id": row["id"]}, {"provisioning_status": status}),),
        operation=operation,
        at=call.parts.now(),
    )


async def statuses(call: Call) -> Answer:
    """200 with the statuses of the whole tree."""
    return Answer(200, trees.statuses(await _existing(call, "get_status")))


status = statuses


async def stats(call: Call) -> Answer:
    """200 with the sums over all listeners."""
    tree = await _existing(call, "get_stats")
    listeners = [row["id"] for row in tree.of("listener")]
    sums = await call.parts.database.statistics(listeners) if listeners else {}
    return Answer(200, trees.stats(sums))
