"""One read of everything that a server's pass decides from.

A settled server costs at most five list requests (network, security groups, port, floating IPs, server) and one for each of
its volumes, all as the principal.  Nothing is written, nothing failed is taken for absence, and every name is compared in full.
"""

import contextlib
import ipaddress
from collections.abc import Mapping
from typing import Any

from roadstead.cloud import names
from roadstead.cloud.lookup import one
from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.kind import Problem
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.views import StatusView
from roadstead_compute.server.model import ServerSpec, ServerStatus
from roadstead_compute.server.offer import offer_of
from roadstead_compute.server.seen import (
    AddressSeen,
    Pair,
    PortSeen,
    Seen,
    ServerSeen,
    VolumeSeen,
    uuid_or_none,
)
from roadstead_compute.server.validate import check_groups, check_inventory, group_network

ServerPass = Pass[ServerSpec, ServerStatus, Seen]
DEFAULT_ATTEMPTS = 3
REMOVED = ("DELETED", "SOFT_DELETED")


async def observe(p: ServerPass) -> Seen:
    """The observation of this pass; a deletion leaves out what it does not need.

    In the project of another tenant nothing is looked at or made, so there is nothing to delete either.
    """
    if _foreign(p):
        if p.resource.deleting:
            return Seen()
        raise CloudError(Verdict.CONSISTENCY, text="the identity or network belongs to another tenant")
    network: str | None = None
    groups: tuple[str | None, ...] = ()
    if not p.resource.deleting:
        network = await _network(p)
        groups = await _groups(p)
    port = await _port(p)
    addresses = await _addresses(p, port)
    server, taken = await _server(p, port)
    volumes = [await _volume(p, ident, server) for ident in _volume_ids(p)]
    return Seen(
        server=server,
        port=port,
        addresses=addresses,
        network_id=network,
        groups=groups,
        taken=taken,
        refusals=_refusals(p, server),
        misplaced=_misplaced(p),
        volumes=tuple(volumes),
        attempts=int(p.extras.get("create_attempts", DEFAULT_ATTEMPTS)),
    )


def _foreign(p: ServerPass) -> bool:
    """Whether identity or network, however their ids became known, are another tenant's."""
    key = p.resource.key
    views = (p.target("identity", p.identity_id or ""), p.target("network", p.resource.spec.nic.id))
    return any(v is not None and (v.key.region, v.key.project) != (key.region, key.project) for v in views)


# ---------------------------------------------------------------- network side


async def _network(p: ServerPass) -> str | None:
    name = names.network_name(p.resource.spec.nic.id)
    found = await p.find(p.principal, "network", "network.list", name)
    return str(found["id"]) if found is not None else None


async def _groups(p: ServerPass) -> tuple[str | None, ...]:
    """Cloud ids of the spec's groups in its order: one list for all of them."""
    wanted = [names.security_group_name(g.id) for g in p.resource.spec.securityGroups]
    if not wanted:
        return ()
    listed = await p.get(p.principal, "network", "securitygroup.list", query={"name": wanted})
    found = [one(listed, name) for name in wanted]
    return tuple(str(f["id"]) if f is not None else None for f in found)


async def _port(p: ServerPass) -> PortSeen | None:
    found = await p.find(p.principal, "network", "port.list", names.port_name(p.resource.key.id))
    return port_seen(found) if found is not None else None


def port_seen(found: Mapping[str, Any]) -> PortSeen:
    """A port of Neutron in canonical form."""
    fixed = [str(ip["ip_address"]) for ip in found.get("fixed_ips") or ()]
    mac = str(found.get("mac_address") or "").lower()
    return PortSeen(
        id=str(found["id"]),
        network_id=str(found.get("network_id") or ""),
        address=next((ip for ip in fixed if ":" not in ip), None),
        groups=frozenset(str(g) for g in found.get("security_groups") or ()),
        pairs=frozenset(_pair(pair, mac) for pair in found.get("allowed_address_pairs") or ()),
        device_id=str(found.get("device_id") or ""),
        mac=mac,
    )


def _pair(pair: Mapping[str, Any], own: str) -> Pair:
    """Neutron answers a pair without MAC with the port's own (OC-35)."""
    text = str(pair.get("ip_address") or "")
    with contextlib.suppress(ValueError):  # what is no range equals nothing that we want
        text = str(ipaddress.ip_network(text, strict=False))
    mac = str(pair.get("mac_address") or "").lower()
    return text, None if mac in ("", own) else mac


async def _addresses(p: ServerPass, port: PortSeen | None) -> tuple[AddressSeen, ...]:
    """Floating IPs on the port; a deletion also finds those that were made for it and lost it."""
    found: dict[str, Mapping[str, Any]] = {}
    if port is not None:
        on_port = await p.get(p.principal, "network", "floatingip.list", query={"port_id": port.id})
        found = {str(f["id"]): f for f in on_port if f.get("port_id") == port.id}
    if p.resource.deleting:
        found |= {str(f["id"]): f for f in await loose_addresses(p)}
    return tuple(AddressSeen(i, str(f["floating_ip_address"])) for i, f in sorted(found.items()))


async def loose_addresses(p: ServerPass) -> list[Mapping[str, Any]]:
    """Floating IPs that bear our mark and hang on no port: one list request."""
    mark = names.port_name(p.resource.key.id)
    listed = await p.get(p.principal, "network", "floatingip.list", query={"description": mark})
    return [f for f in listed if f.get("description") == mark and not f.get("port_id")]


# ---------------------------------------------------------------- server


async def _server(p: ServerPass, port: PortSeen | None) -> tuple[ServerSeen | None, bool]:
    """Our server, and whether a stranger uses our port.

    The name narrows the list, the metadata decides.  Where the list has none of ours but the port is in use, the user of the
    port is looked at by its id: a server that was renamed in the cloud is still ours (OC-24).  So is the one that an earlier pass
    noted; where it bears our name and the list lacks it all the same, one of the two answers is wrong (CloudError UNAVAILABLE).
    """
    ours = names.bears_server(p.resource.key.id)
    name = names.server_name(p.resource.metadata.name)
    found = await p.find(p.principal, "compute", "server.detail", name, ours)
    if found is not None:
        p.note("server", found["id"])
        return server_seen(found), False
    asked = port.device_id if port is not None else ""
    user = await _by_id(p, asked) if asked else None
    if user is not None:
        return (server_seen(user), False) if ours(user) else (None, True)
    held = p.remembered.get("server")
    noted = await _by_id(p, str(held)) if held and held != asked else None
    if noted is None or not ours(noted) or str(noted.get("status") or "").upper() in REMOVED:
        return None, False
    if noted.get("name") == name:
        raise CloudError(Verdict.UNAVAILABLE, text=f"compute lists no server {held} and yet has it")
    return server_seen(noted), False


async def _by_id(p: ServerPass, ident: str) -> Mapping[str, Any] | None:
    """None: the cloud says that it is gone."""
    try:
        found: Mapping[str, Any] = await p.get(p.principal, "compute", "server.get", id=ident)
    except CloudError as error:
        if error.verdict is Verdict.GONE:
            return None
        raise
    return found


def server_seen(found: Mapping[str, Any]) -> ServerSeen:
    """A server of Nova; a field that the cloud hides is unknown, not empty."""
    image = found.get("image")
    launched = "OS-SRV-USG:launched_at"
    return ServerSeen(
        id=str(found["id"]),
        status=str(found.get("status") or "").upper(),
        task=found.get("OS-EXT-STS:task_state") or None,
        launched=bool(found[launched]) if launched in found else None,
        image=uuid_or_none(image.get("id") if isinstance(image, Mapping) else image),
    )


def _refusals(p: ServerPass, server: ServerSeen | None) -> tuple[Problem, ...] | None:
    """What the inventory has against a first create."""
    if server is not None or p.resource.deleting or p.resource.ever_provisioned:
        return ()
    spec = p.resource.spec
    image = spec.image.id if spec.image is not None else None
    offer = offer_of(p.extras.get("inventory"), p.region_id, spec.flavorID, image)
    if offer is None:
        return None
    return tuple(check_inventory(spec, None, offer, p.resource.metadata.organizationId))


def _misplaced(p: ServerPass) -> tuple[Problem, ...]:
    if p.resource.deleting:
        return ()
    spec = p.resource.spec
    views = {g.id: p.target("securitygroup", g.id) for g in spec.securityGroups}
    return tuple(check_groups(spec, {i: group_network(v) for i, v in views.items() if v is not None}))


# ---------------------------------------------------------------- volumes


def _volume_ids(p: ServerPass) -> list[str]:
    """Volumes that the spec, a row or a claim ties to this server, each once."""
    claimed = (v.key.id for v in p.directory.of_kind("volume") if _claims(v, p.resource.key.id))
    wanted = (v.id for v in p.resource.spec.volumes)
    rows = (r.id for r in p.resource.status.volumes)
    return list(dict.fromkeys([*wanted, *rows, *sorted(claimed)]))


def _claims(view: StatusView, server: str) -> bool:
    """Whether its owner says that this server claims it."""
    claim = view.status.get("claimRef")
    return isinstance(claim, Mapping) and claim.get("kind") == "Server" and claim.get("id") == server


async def _volume(p: ServerPass, ident: str, server: ServerSeen | None) -> VolumeSeen:
    """One list request, and none for a volume that cannot be attached yet anyway; one read more where a list lacks what we noted."""
    view = p.target("volume", ident)
    row = any(r.id == ident for r in p.resource.status.volumes)
    if view is not None and not _same_owner(p, view):
        return VolumeSeen(ident, exists=False)
    claimed = view is not None and _claims(view, p.resource.key.id)
    seen = VolumeSeen(
        ident,
        ready=view is not None and view.provisioned,
        claimed=claimed,
        exists=view is None or not view.gone,
    )
    if not (seen.ready or claimed or row):
        return seen
    name, noted = names.volume_name(ident), f"volume {ident}"
    found = await p.find(p.principal, "block-storage", "volume.detail", name)
    if found is None:
        held = p.remembered.get(noted)
        await p.not_contradicted(
            p.principal, "block-storage", "volume.get", held, lambda volume: volume.get("name") == name
        )
    else:
        p.note(noted, found["id"])
    return with_cinder(seen, found, server)


def with_cinder(seen: VolumeSeen, found: Mapping[str, Any] | None, server: ServerSeen | None) -> VolumeSeen:
    """The volume with what Cinder says of it."""
    if found is None:
        return seen
    attachments = found.get("attachments") or ()
    devices = [a.get("device") for a in attachments if server is not None and a.get("server_id") == server.id]
    return VolumeSeen(
        seen.id,
        ready=seen.ready,
        claimed=seen.claimed,
        exists=seen.exists,
        cloud_id=str(found["id"]),
        status=str(found.get("status") or ""),
        servers=frozenset(str(a["server_id"]) for a in attachments if a.get("server_id")),
        device=(devices[0] or None) if devices else None,
    )


def _same_owner(p: ServerPass, view: StatusView) -> bool:
    """Naming a volume of another project or identity is naming none (K2)."""
    if (view.key.region, view.key.project) != (p.resource.key.region, p.resource.key.project):
        return False
    return view.metadata.get("identityId") in (None, p.identity_id)
