"""Operations of amphorae: machines of the amphora provider, which only an import brings.  That provider is told what to do by request."""

from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Change, Operation, Row, Touched, Update
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.resources import generic
from roadstead_octavia.resources.amphora.wire import RESOURCE

DELETABLE = ("ERROR", "DELETED", "READY")
FAILS_OVER = ("ACTIVE", "ERROR")
PROVIDER = "amphora"
COUNTERS = ("active_connections", "bytes_in", "bytes_out", "request_errors", "total_connections")


async def _found(call: Call) -> Row:
    row = await call.parts.database.row("amphora", {"id": call.ids[0]})
    if row is None or row["status"] == "DELETED":
        raise not_found(RESOURCE.noun, call.ids[0])
    return row


def _authorize(call: Call, action: str) -> None:
    call.parts.policy.enforce(call, f"amphora:{action}", call.caller.project_id)


async def _tell(call: Call, method: str) -> None:
    await call.parts.provider.ask(PROVIDER, method, [{"amphora_id": call.ids[0]}])


async def show(call: Call) -> Answer:
    """200 with one amphora."""
    return await generic.show(call, RESOURCE)


async def delete(call: Call) -> Answer:
    """204; only of a machine that serves nobody."""
    row = await _found(call)
    _authorize(call, "delete")
    if row["status"] not in DELETABLE or row["load_balancer_id"] is not None:
        raise refuse("ImmutableObject", resource="amphora", id=call.ids[0])
    await call.parts.database.write([Update("amphora", {"id": call.ids[0]}, {"status": "PENDING_DELETE"})])
    await _tell(call, "delete_amphora")
    return Answer(204)


async def config(call: Call) -> Answer:
    """202; the machine reads its agent's settings again."""
    await _found(call)
    _authorize(call, "put_config")
    await _tell(call, "update_amphora_agent_config")
    return Answer(202)


async def failover(call: Call) -> Answer:
    """202; the machine is replaced.  Its load balancer is PENDING_UPDATE until then."""
    row = await _found(call)
    _authorize(call, "put_failover")
    owner = row["load_balancer_id"]
    tree = await call.parts.database.tree(owner) if owner else None
    if tree is not None:
        state = tree.load_balancer["provisioning_status"]
        if state not in FAILS_OVER:
            raise refuse("ImmutableObject", resource="Load Balancer", id=owner)
        pending = Update("load_balancer", {"id": owner}, {"provisioning_status": "PENDING_UPDATE"})
        # The row of the operation sees to it that the load balancer does not stay so.
        operation = Operation(
            id=call.parts.new_id(),
            provider=PROVIDER,
            method="failover_amphora",
            object="amphora",
            verb="failover",
            touched=(Touched("load_balancer", owner),),
            arguments=[{"amphora_id": call.ids[0]}],
            deadline=call.options.operation_deadline,
        )
        change = Change(owner, tree.version, (pending,), operation, revises=False)
        await call.parts.database.commit(change, call.options)
    await _tell(call, "failover_amphora")
    return Answer(202)


async def stats(call: Call) -> Answer:
    """200 with the counters of each listener that the machine serves."""
    rows = await call.parts.database.rows("listener_statistics", {"amphora_id": call.ids[0]})
    _authorize(call, "get_stats")
    amphora = await call.parts.database.row("amphora", {"id": call.ids[0]}) if rows else None
    if amphora is None:
        raise not_found("Amphora stats for", call.ids[0])
    return Answer(200, {"amphora_stats": [_counters(row, amphora) for row in rows]})


def _counters(row: Row, amphora: Row) -> dict[str, Any]:
    counters = {name: row[name] for name in COUNTERS}
    return {
        **counters,
        "id": row["amphora_id"],
        "listener_id": row["listener_id"],
        "loadbalancer_id": amphora["load_balancer_id"],
    }
