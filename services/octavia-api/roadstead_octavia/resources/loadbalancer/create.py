"""Making a load balancer.

Everything that can be refused without the provider is refused first: VIP, flavor, zone, provider, quota and, for a whole tree in one
request, all of its objects.  Then the provider is asked about flavor and zone, the VIP port is made, the provider checks the whole, and
one change writes all rows, takes over the port and hands the operation on.
"""

from dataclasses import replace
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Change, Insert, Operation, Row, Touched, Write
from roadstead_octavia.errors import invalid
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources.limits import room
from roadstead_octavia.resources.listener.rules import addresses
from roadstead_octavia.resources.loadbalancer import graph, rules
from roadstead_octavia.resources.loadbalancer.choice import Choice, chosen, validate
from roadstead_octavia.resources.loadbalancer.lookups import Lookups
from roadstead_octavia.resources.loadbalancer.port import Made, Wanted, vip_port
from roadstead_octavia.resources.loadbalancer.vip import Vip, resolved
from roadstead_octavia.resources.loadbalancer.wire import POST, RESOURCE
from roadstead_octavia.resources.shown import full as shown_full
from roadstead_octavia.wire.columns import new_row
from roadstead_octavia.wire.write import full

NO_PROJECT = (
    "Missing project ID in request where one is required. "
    "An administrator should check the keystone settings in the Octavia configuration."
)


async def create(call: Call) -> Answer:
    """201 with the load balancer and everything below it."""

    async def attempt(state: Attempt) -> Answer:
        return await _created(call, state)

    return await decided(call, attempt)


async def _created(call: Call, state: Attempt) -> Answer:
    body, parts = call.body, call.parts
    project_id = body.get("project_id") or call.caller.project_id
    if not project_id:
        raise invalid(NO_PROJECT)
    parts.policy.enforce(call, "loadbalancer:post", project_id)
    if "vip_sg_ids" in body:
        parts.policy.enforce(call, "loadbalancer:post:vip_sg_ids", project_id)
    vip = await resolved(call, body, Lookups(call))
    choice = await chosen(call, body)
    quota = await room(call, project_id, load_balancer=1)
    rules.require_network_allowed(vip.network_id, choice.zone, call.options)
    vnic_type = rules.vnic_type(choice.flavor, vip.groups)
    await validate(call, choice)
    row = _row(call, project_id, choice)
    plan = await graph.planned(call, _root(row, vip, choice))
    wanted = _wanted(row, vip, vnic_type)
    async with vip_port(call, wanted) as made:
        change = Change(
            load_balancer_id=row["id"],
            version=None,
            writes=(*_writes(row, made, vip, body.get("tags") or ()), *plan.writes, *made.writes),
            project_id=project_id,
            quota={**quota, **plan.quota},
            at=parts.now(),
        )
        after = parts.database.after(None, change)
        plan.check_addresses(addresses(after))
        model = models.new_load_balancer(
            after,
            flavor=choice.flavor,
            zone=choice.zone,
            given=body,
            secrets=await graph.secrets_of(call, after),
        )
        operation = Operation(
            id=parts.new_id(),
            provider=choice.provider,
            method="loadbalancer_create",
            object="loadbalancer",
            verb="create",
            touched=(Touched("load_balancer", row["id"]), *plan.touched),
            arguments=[model],
        )
        await state.conclude(None, replace(change, operation=operation), after=after)
    return Answer(201, full(RESOURCE, shown_full(after)))


def _row(call: Call, project_id: str, choice: Choice) -> Row:
    return {
        **new_row(POST, call.body),
        "id": call.parts.new_id(),
        "project_id": project_id,
        "provider": choice.provider,
        "provisioning_status": "PENDING_CREATE",
        "operating_status": "OFFLINE",
        "topology": choice.flavor.get("loadbalancer_topology", call.options.loadbalancer_topology),
    }


def _root(row: Row, vip: Vip, choice: Choice) -> graph.Root:
    known = (vip.ip_address, *(one.ip_address for one in vip.additional))
    return graph.Root(
        load_balancer_id=row["id"],
        project_id=row["project_id"],
        flavor=choice.flavor,
        addresses=None if None in known else [str(one) for one in known],
        groups=bool(vip.groups),
    )


def _wanted(row: Row, vip: Vip, vnic_type: str) -> Wanted:
    identifier = row["id"]
    return Wanted(
        load_balancer_id=identifier,
        project_id=row["project_id"],
        provider=row["provider"],
        vip={
            "load_balancer_id": identifier,
            "ip_address": vip.ip_address,
            "port_id": vip.port_id,
            "subnet_id": vip.subnet_id,
            "network_id": vip.network_id,
            "qos_policy_id": vip.qos_policy_id,
            "octavia_owned": False,
            "vnic_type": vnic_type,
        },
        additional=[
            {
                "load_balancer_id": identifier,
                "ip_address": one.ip_address,
                "port_id": vip.port_id,
                "subnet_id": one.subnet_id,
                "network_id": one.network_id,
            }
            for one in vip.additional
        ],
        groups=vip.groups,
    )


def _writes(row: Row, made: Made, vip: Vip, tags: Any) -> list[Write]:
    identifier = row["id"]
    return [
        Insert("load_balancer", row),
        Insert("vip", made.vip),
        *(
            Insert("vip_security_group", {"load_balancer_id": identifier, "sg_id": group})
            for group in vip.groups
        ),
        *(Insert("additional_vip", one) for one in made.additional),
        *(Insert("tags", {"resource_id": identifier, "tag": tag}) for tag in tags),
    ]
