"""Operations of pools."""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Delete, Insert, Row, Tree, Update, Write
from roadstead_octavia.errors import invalid, not_found, refuse
from roadstead_octavia.operate import Attempt, decided
from roadstead_octavia.provider import models
from roadstead_octavia.resources import below, certificates
from roadstead_octavia.resources.ending import Ending
from roadstead_octavia.resources.limits import room
from roadstead_octavia.resources.listener import wire as listener
from roadstead_octavia.resources.loadbalancer import wire as loadbalancer
from roadstead_octavia.resources.pool import rules
from roadstead_octavia.resources.pool.wire import RESOURCE
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import put_values


async def create(call: Call) -> Answer:
    """201; the pool becomes the default pool of the listener that is named, if one is."""
    return await decided(call, _create)


async def _create(attempt: Attempt) -> Answer:
    call = attempt.call
    values = call.body
    tree, listener_row = await _place(call)
    protocol = values["protocol"]
    if listener_row is not None:
        rules.check_children(listener_row["protocol"])
        rules.check_fit(protocol, listener_row["protocol"])
    rules.check_persistence(protocol, values.get("session_persistence"))
    below.require_provider(call, tree)
    project_id = tree.load_balancer["project_id"]
    quota = await room(call, project_id, pool=1)
    if listener_row is not None and listener_row["default_pool_id"] is not None:
        raise refuse("DuplicatePoolEntry")
    below.require_active(tree)
    await check_new(call, values)
    identifier = call.parts.new_id()
    writes = rules.rows(
        values,
        identifier=identifier,
        load_balancer_id=tree.load_balancer["id"],
        project_id=project_id,
        options=call.options,
    )
    listeners = () if listener_row is None else (listener_row["id"],)
    if listener_row is not None:
        writes.append(Update("listener", {"id": listener_row["id"]}, {"default_pool_id": identifier}))
    held = below.held(tree, listeners=listeners)
    draft = below.change(call, tree, [*writes, *held.writes], project_id=project_id, quota=quota)
    after = call.parts.database.after(tree, draft)
    secrets = await certificates.secrets_of(
        call, certificates.of_row("pool", after.get("pool", identifier) or {})
    )
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.created(identifier, draft, after, models.pool(after, identifier, secrets=secrets))


async def _place(call: Call) -> tuple[Tree, Row | None]:
    """The tree that the pool is to stand in, and the listener that it is to serve; 400, 403, 404."""
    load_balancer_id, listener_id = call.body.get("loadbalancer_id"), call.body.get("listener_id")
    if load_balancer_id is not None:
        tree, _ = await below.found(call, loadbalancer.RESOURCE, load_balancer_id, "pool:post", deleted=True)
        if listener_id is None:
            return tree, None
        row = tree.get("listener", listener_id)
        if row is None or row["provisioning_status"] == below.DELETED:
            await _refuse_foreign(call, listener_id)
            raise not_found(listener.RESOURCE.noun, listener_id)
        return tree, row
    if listener_id is None:
        raise invalid("Must provide at least one of: loadbalancer_id, listener_id")
    return await below.found(call, listener.RESOURCE, listener_id, "pool:post")


async def _refuse_foreign(call: Call, listener_id: str) -> None:
    """400 for a listener that the caller may see but that is another load balancer's."""
    row = await call.parts.database.row("listener", {"id": listener_id})
    if row is not None and call.parts.policy.allows(call, "listener:get_one", row["project_id"]):
        raise invalid(f"Listener {listener_id} is not on the load balancer.")


async def check_new(call: Call, values: Mapping[str, Any]) -> None:
    """400 for TLS settings of a new pool that are wrong, or refer to what cannot be read."""
    rules.check_references(values)
    await _check_material(
        call,
        values.get("tls_container_ref"),
        values.get("ca_tls_container_ref"),
        values.get("crl_container_ref"),
    )
    rules.check_tls(values, call.options)


async def _check_material(
    call: Call, certificate: str | None, authority: str | None, revocations: str | None
) -> None:
    if certificate:
        await certificates.require_certificates(call, [certificate])
    if authority:
        await certificates.require_authority(call, authority, revocations or None)


async def update(call: Call) -> Answer:
    """200 with the pool PENDING_UPDATE, and the listeners that use it."""
    return await decided(call, _update)


async def _update(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row = await below.found(call, RESOURCE, identifier, "pool:put")
    values = put_values(RESOURCE, call.body, call.options)
    persistence = _persistence(tree, row, values)
    rules.check_changed_references(row, values)
    authority = values.get("ca_tls_container_ref", row["ca_tls_certificate_id"])
    revocations = values.get("crl_container_ref", row["crl_container_id"])
    await _check_material(
        call,
        values.get("tls_container_ref"),
        authority,
        revocations,
    )
    rules.check_tls(values, call.options)
    below.require_provider(call, tree)
    below.require_active(tree)
    below.require_settled(RESOURCE.noun, row)
    columns = to_row(RESOURCE, values)
    told = {**columns, **({"session_persistence": persistence} if "session_persistence" in values else {})}
    held = below.held(tree, listeners=models.listeners_of(tree, identifier))
    secrets = await certificates.secrets_of(
        call, certificates.of_row("pool", row), certificates.of_row("pool", columns)
    )
    objects = [
        models.pool(tree, identifier, secrets=secrets),
        models.changed("pool", identifier, told, secrets=secrets),
    ]
    ending = Ending(attempt, RESOURCE, tree, held)
    return await ending.updated(
        row,
        columns,
        objects,
        more=_persistence_writes(tree, identifier, values, persistence),
        tags=values.get("tags"),
    )


def _persistence(tree: Tree, row: Row, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The session persistence that is asked for; one without a type keeps the type that there is.  400."""
    wanted = values.get("session_persistence")
    if wanted is None:
        return None
    stored = _stored_persistence(tree, row["id"])
    if wanted.get("type") is None and stored is not None:
        wanted = {**wanted, "type": stored["type"]}
    rules.check_persistence(row["protocol"], wanted, datagrams="UDP")
    return {**wanted}


def _stored_persistence(tree: Tree, pool_id: str) -> Row | None:
    return next((row for row in tree.of("session_persistence") if row["pool_id"] == pool_id), None)


def _persistence_writes(
    tree: Tree, pool_id: str, values: Mapping[str, Any], wanted: Mapping[str, Any] | None
) -> list[Write]:
    if "session_persistence" not in values:
        return []
    there = _stored_persistence(tree, pool_id) is not None
    if wanted is None:
        return [Delete("session_persistence", {"pool_id": pool_id})] if there else []
    columns = rules.persistence_row(wanted)
    if there:
        return [Update("session_persistence", {"pool_id": pool_id}, columns)]
    return [Insert("session_persistence", {"pool_id": pool_id, **columns})]


async def delete(call: Call) -> Answer:
    """204; the pool goes when the provider has let go of it."""
    return await decided(call, _delete)


async def _delete(attempt: Attempt) -> Answer:
    call, identifier = attempt.call, attempt.call.ids[0]
    tree, row = await below.found(call, RESOURCE, identifier, "pool:delete")
    policy = next((one for one in tree.of("l7policy") if one["redirect_pool_id"] == identifier), None)
    if policy is not None:
        raise refuse("PoolInUseByL7Policy", id=identifier, l7policy_id=policy["id"])
    below.require_provider(call, tree)
    below.require_active(tree)
    below.require_settled(RESOURCE.noun, row)
    held = below.held(tree, listeners=models.listeners_of(tree, identifier))
    secrets = await certificates.secrets_of(call, certificates.of_row("pool", row), deleting=True)
    return await Ending(attempt, RESOURCE, tree, held).deleted(
        row, models.pool(tree, identifier, secrets=secrets)
    )
