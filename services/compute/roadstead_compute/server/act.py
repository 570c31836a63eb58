"""The verbs of a server: one write each.

What an answer means is decided by the verdict table and the loop; here stand only the answers to which behaviour.md gives a
meaning of their own: what is gone is deleted, a rebuild that is refused because the server is busy waits silently, one whose
image is gone parks.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from roadstead.cloud import names
from roadstead.cloud.external import first_external
from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Go, Park, Retry, Step, Stop, Yield
from roadstead.reconcile.kind import Action
from roadstead_compute.server import act_volumes, texts
from roadstead_compute.server.observe import ServerPass, loose_addresses, port_seen
from roadstead_compute.server.rules import Verb
from roadstead_compute.server.seen import AddressSeen, PortSeen, Seen, ServerSeen

log = structlog.get_logger("roadstead.server")

LOOK_AGAIN = Yield(Code.BUSY, texts.LOOKING_AGAIN)


def _seen(p: ServerPass) -> Seen:
    assert p.seen is not None, "a verb runs after an observation"
    return p.seen


# ---------------------------------------------------------------- port


def _port_wishes(p: ServerPass, seen: Seen) -> dict[str, Any]:
    """Groups and pairs as Neutron takes them; an empty list of groups means none, not the project's default one."""
    pairs: list[dict[str, str]] = []
    for pair in p.resource.spec.nic.allowedAddressPairs:
        mac = {"mac_address": pair.macAddress} if pair.macAddress else {}
        pairs.append({"ip_address": pair.cidr, **mac})
    return {"security_groups": [g for g in seen.groups if g is not None], "allowed_address_pairs": pairs}


async def create_port(p: ServerPass) -> Step:
    """POST port with the one name that the look-up uses."""
    seen = _seen(p)
    port = {
        "name": names.port_name(p.resource.key.id),
        "network_id": seen.network_id,
        **_port_wishes(p, seen),
    }
    answer = await p.write(p.principal, "network", "port.create", json={"port": port})
    made = port_seen(answer.value)
    return Go(replace(seen, port=made), {"privateIP": made.address})


async def update_port(p: ServerPass) -> Step:
    """PUT groups and pairs together."""
    seen = _seen(p)
    answer = await p.write(
        p.principal, "network", "port.update", id=_port(seen).id, json={"port": _port_wishes(p, seen)}
    )
    return Go(replace(seen, port=port_seen(answer.value)))


async def delete_port(p: ServerPass) -> Step:
    """DELETE port; see `_delete` for a 404."""
    seen = _seen(p)
    if await _delete(p, "network", "port.delete", _port(seen).id):
        return Stop(LOOK_AGAIN)
    return Go(replace(seen, port=None))


def _port(seen: Seen) -> PortSeen:
    assert seen.port is not None
    return seen.port


# ---------------------------------------------------------------- floating IP


async def create_address(p: ServerPass) -> Step:
    """Put an address of ours that hangs on nothing back on the port, else POST a new one with the port.

    Up to two list requests beside the write.  The mark in the description is how a lost one is found again.
    """
    seen = _seen(p)
    port = _port(seen)
    loose = await loose_addresses(p)
    if loose:
        answer = await p.write(
            p.principal,
            "network",
            "floatingip.update",
            id=str(loose[0]["id"]),
            json={"floatingip": {"port_id": port.id}},
        )
    else:
        listed = await p.get(p.region_project, "network", "network.list", query={"router:external": True})
        external = first_external(listed, p.region)
        if external is None:
            return Stop(Retry(Code.NOT_OFFERED, texts.NO_EXTERNAL_NETWORK))
        wish = {
            "floating_network_id": external,
            "port_id": port.id,
            "description": names.port_name(p.resource.key.id),
        }
        answer = await p.write(p.principal, "network", "floatingip.create", json={"floatingip": wish})
    made = AddressSeen(str(answer.value["id"]), str(answer.value["floating_ip_address"]))
    return Go(replace(seen, addresses=(*seen.addresses, made)), {"publicIP": made.address})


async def delete_address(p: ServerPass) -> Step:
    """DELETE one floating IP; see `_delete` for a 404."""
    seen = _seen(p)
    first, *others = seen.addresses
    if await _delete(p, "network", "floatingip.delete", first.id):
        return Stop(LOOK_AGAIN)
    return Go(replace(seen, addresses=tuple(others)), {"publicIP": None})


# ---------------------------------------------------------------- server


async def create_server(p: ServerPass) -> Step:
    """POST server with our metadata in it; the answer tells nothing but the id, so the stamp is a fixed one."""
    seen, spec = _seen(p), p.resource.spec
    assert spec.image is not None
    answer = await p.write(
        p.principal, "compute", "server.create", json={"server": server_body(p, _port(seen).id)}
    )
    p.note("server", answer.value["id"])
    made = ServerSeen(str(answer.value["id"]), "BUILD", "scheduling", False, spec.image.id)
    return Go(replace(seen, server=made), texts.CREATED)


def server_body(p: ServerPass, port: str) -> dict[str, Any]:
    """The server as Nova takes it: key name only for identityKeypair, user data as it was given (INV-047 to INV-049)."""
    spec, metadata = p.resource.spec, p.resource.metadata
    assert spec.image is not None
    body: dict[str, Any] = {
        "name": names.server_name(metadata.name),
        "imageRef": spec.image.id,
        "flavorRef": spec.flavorID,
        "networks": [{"port": port}],
        "metadata": names.server_metadata(
            [*(spec.tags or ()), *(metadata.tags or ())],
            server_id=p.resource.key.id,
            region_id=p.region_id,
            organization_id=metadata.organizationId or "",
            project_id=p.resource.key.project,
        ),
    }
    if spec.injection == "identityKeypair":
        body["key_name"] = names.KEYPAIR_NAME
    if spec.userData:
        body["user_data"] = spec.userData
    return body


async def rebuild(p: ServerPass) -> Step:
    """POST the rebuild, with the image id alone: Nova keeps key and user data (behaviour.md section 9.3).

    Accepted: wait, with the fixed stamp.  409: wait, silently.  The image is gone: park.  All else is an error that is tried
    again; what the cloud said goes to the log only.
    """
    seen, image = _seen(p), p.resource.spec.image
    assert seen.server is not None
    assert image is not None
    try:
        await p.write(
            p.principal,
            "compute",
            "server.rebuild",
            id=seen.server.id,
            json={"rebuild": {"imageRef": image.id}},
        )
    except CloudError as error:
        if error.verdict in (Verdict.BUSY, Verdict.CONFLICT):
            log.info("rebuild refused, the server is busy", server=p.resource.key.id, image=image.id)
            return Stop(Yield(Code.BUSY, texts.REBUILD_REFUSED_NOW))
        if error.verdict is not Verdict.LEASE_LOST:
            log.warning("rebuild rejected", server=p.resource.key.id, status=error.status, body=error.text)
        if error.verdict is Verdict.IMAGE_NOT_FOUND:
            return Stop(Park(Code.REBUILD_IMAGE_NOT_FOUND, texts.REBUILD_IMAGE_NOT_FOUND))
        raise
    log.info("rebuild accepted", server=p.resource.key.id, image=image.id)
    return Stop(Yield(Code.BUSY, texts.REBUILDING), texts.ACCEPTED)


async def delete_server(p: ServerPass) -> Step:
    """DELETE server; it is gone when a later list shows it no more."""
    seen = _seen(p)
    assert seen.server is not None
    if await _delete(p, "compute", "server.delete", seen.server.id):
        return Stop(LOOK_AGAIN)
    return Go(replace(seen, server=replace(seen.server, task="deleting")))


async def _delete(p: ServerPass, service: str, verb: str, ident: str) -> bool:
    """Whether the cloud called it gone: success, but absence is proved by a complete list alone, so the caller looks again."""
    try:
        await p.write(p.principal, service, verb, id=ident)
    except CloudError as error:
        if error.verdict is Verdict.GONE:
            return True
        raise
    return False


ACTIONS: Mapping[Any, Action] = {
    Verb.CREATE_PORT: create_port,
    Verb.UPDATE_PORT: update_port,
    Verb.DELETE_PORT: delete_port,
    Verb.CREATE_ADDRESS: create_address,
    Verb.DELETE_ADDRESS: delete_address,
    Verb.CREATE_SERVER: create_server,
    Verb.REBUILD: rebuild,
    Verb.DELETE_SERVER: delete_server,
    Verb.CLAIM: act_volumes.claim,
    Verb.ATTACH: act_volumes.attach,
    Verb.DETACH: act_volumes.detach,
    Verb.RELEASE: act_volumes.release,
}
