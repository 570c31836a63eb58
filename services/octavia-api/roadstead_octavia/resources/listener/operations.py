"""Operations of listeners."""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Row, Tree
from roadstead_octavia.errors import not_found
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources import below, certificates
from roadstead_octavia.resources.below import DELETED
from roadstead_octavia.resources.ending import Ending
from roadstead_octavia.resources.limits import room
from roadstead_octavia.resources.listener import rules
from roadstead_octavia.resources.listener.wire import RESOURCE
from roadstead_octavia.resources.loadbalancer import wire as loadbalancer
from roadstead_octavia.resources.pool import rules as pool_rules
from roadstead_octavia.wire import trees
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import put_values

Values = Mapping[str, Any]


async def create(call: Call) -> Answer:
    """201 with the listener PENDING_CREATE."""
    return await decided(call, _create)


async def _create(attempt: Attempt) -> Answer:
    call, values = attempt.call, attempt.call.body
    tree, load_balancer = await below.found(
        call, loadbalancer.RESOURCE, values["loadbalancer_id"], "listener:post", deleted=True
    )
    rules.check_protocol(values)
    below.require_provider(call, tree)
    project_id = load_balancer["project_id"]
    quota = await room(call, project_id, listener=1)
    check_default_pool(tree, values["protocol"], values.get("default_pool_id"))
    below.require_active(tree)
    await check_new(call, values)
    rules.check_place(
        values,
        listeners=tree.of("listener"),
        vips=rules.addresses(tree),
        groups=bool(tree.of("vip_security_group")),
        options=call.options,
    )
    identifier = call.parts.new_id()
    writes = rules.rows(
        values,
        identifier=identifier,
        load_balancer_id=load_balancer["id"],
        project_id=project_id,
        peer=rules.peer_port(tree.of("listener")),
        options=call.options,
    )
    held = below.held(tree)
    draft = below.change(call, tree, [*writes, *held.writes], project_id=project_id, quota=quota)
    after = call.parts.database.after(tree, draft)
    sni = values.get("sni_container_refs") or ()
    secrets = await certificates.secrets_of(call, *certificates.of_listener(after, identifier, sni))
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.created(
        identifier, draft, after, models.listener(after, identifier, secrets=secrets, new=True)
    )


def check_default_pool(tree: Tree, protocol: str, pool_id: str | None) -> None:
    """400, 404 or 409 for a default pool that a listener of the protocol cannot have."""
    if pool_id is None:
        return
    pool_rules.check_children(protocol)
    pool_rules.check_fit(below.pool_of(tree, pool_id)["protocol"], protocol)


async def check_new(call: Call, values: Values) -> None:
    """400 for what a new listener says of itself that is wrong, or refers to what cannot be read."""
    rules.check_new(values, call.options)
    await _check_material(
        call,
        values,
        values.get("client_ca_tls_container_ref"),
        values.get("client_crl_container_ref"),
    )


async def _check_material(call: Call, values: Values, authority: str | None, revocations: str | None) -> None:
    references = [*(values.get("sni_container_refs") or ()), values.get("default_tls_container_ref")]
    await certificates.require_certificates(call, [one for one in references if one])
    rules.check_revocations(revocations, authority)
    if authority:
        await certificates.require_authority(call, authority, revocations or None)


async def update(call: Call) -> Answer:
    """200 with the listener PENDING_UPDATE."""
    return await decided(call, _update)


async def _update(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row = await below.found(call, RESOURCE, identifier, "listener:put")
    body = call.body
    rules.check_changed(row, body)
    authority = body.get("client_ca_tls_container_ref") or row["client_ca_tls_certificate_id"]
    revocations = body.get("client_crl_container_ref") or row["client_crl_container_id"]
    await _check_material(call, body, authority, revocations)
    values = put_values(RESOURCE, body, call.options)
    rules.check_rest(
        row,
        body,
        values,
        vips=rules.addresses(tree),
        groups=bool(tree.of("vip_security_group")),
        options=call.options,
    )
    check_default_pool(tree, row["protocol"], values.get("default_pool_id"))
    below.require_provider(call, tree)
    below.require_active(tree)
    below.require_settled(RESOURCE.noun, row)
    columns = to_row(RESOURCE, values)
    relations: dict[str, Any] = {
        name: values[name] for name in ("allowed_cidrs", "sni_container_refs") if name in values
    }
    held = below.held(tree)
    secrets = await certificates.secrets_of(
        call,
        certificates.of_row("listener", columns, sni=values.get("sni_container_refs") or ()),
        *certificates.of_listener(tree, identifier),
    )
    objects = [
        models.listener(tree, identifier, secrets=secrets),
        models.changed("listener", identifier, {**columns, **relations}, secrets=secrets),
    ]
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.updated(
        row, columns, objects, more=_part_writes(tree, identifier, values), tags=values.get("tags")
    )


def _part_writes(tree: Tree, identifier: str, values: Values) -> list[Any]:
    """The rows of other tables that an update of the listener changes."""
    own, writes = {"listener_id": identifier}, []
    for name, table, column, more in (
        ("sni_container_refs", "sni", "tls_container_id", {"position": None}),
        ("allowed_cidrs", "listener_cidr", "cidr", {}),
    ):
        if name in values:
            there = [row[column] for row in tree.of(table) if row["listener_id"] == identifier]
            writes += below.row_writes(table, own, column, there, values[name] or (), **more)
    return writes


async def delete(call: Call) -> Answer:
    """204; the listener goes when the provider has let go of it."""
    return await decided(call, _delete)


async def _delete(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row = await below.found(call, RESOURCE, identifier, "listener:delete")
    below.require_provider(call, tree)
    below.require_active(tree)
    below.require_settled(RESOURCE.noun, row)
    held = below.held(tree)
    secrets = await certificates.secrets_of(call, *certificates.of_listener(tree, identifier), deleting=True)
    return await Ending(attempt, RESOURCE, tree, held).deleted(
        row, models.listener(tree, identifier, secrets=secrets)
    )


async def stats(call: Call) -> Answer:
    """200 with what providers counted; zeros where nobody reported."""
    identifier = call.ids[0]
    row: Row | None = await call.parts.database.row("listener", {"id": identifier})
    if row is None or row["provisioning_status"] == DELETED:
        raise not_found(RESOURCE.noun, identifier)
    call.parts.policy.enforce(call, "listener:get_stats", row["project_id"])
    return Answer(200, trees.stats(await call.parts.database.statistics([identifier])))
