"""Reading a load balancer: by exact names, as the principal, and nothing of another tenant's.

A settled one costs five list requests (load balancer, floating IPs, listeners, pools, monitors) and one for each pool's members;
one on which the cloud works costs the first alone.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from roadstead.clock import parse_time
from roadstead.cloud.names import loadbalancer_name, loadbalancer_prefix
from roadstead.cloud.port import CloudError, Verdict
from roadstead.cloud.vip import STRAY_AGE, VIP_OWNERS, balancer_of, made_at
from roadstead.reconcile.passing import Pass
from roadstead_loadbalancer.loadbalancer.model import LoadBalancerSpec, LoadBalancerStatus
from roadstead_loadbalancer.loadbalancer.seen import PENDING, AddressSeen, BalancerSeen, Seen, Strays
from roadstead_loadbalancer.loadbalancer.tree import (
    Tree,
    seen_listener,
    seen_monitor,
    seen_pool,
    status_of,
)

LoadBalancerPass = Pass[LoadBalancerSpec, LoadBalancerStatus, Seen]

SERVICE = "load-balancer"
BEFORE, AFTER = timedelta(seconds=60), timedelta(seconds=120)
"""Around the pass that asked: when the port of its create was made, on a clock that may differ from ours."""


async def observe(p: LoadBalancerPass) -> Seen:
    """The observation of this pass."""
    network = p.target("network", p.resource.metadata.networkId or "")
    identity = p.target("identity", p.identity_id or "")
    here = (p.region_id, p.resource.key.project)
    if any(v is not None and (v.key.region, v.key.project) != here for v in (network, identity)):
        return Seen(foreign=True)
    if p.resource.deleting:
        return await _going(p)
    if network is not None and network.metadata.get("identityId") not in (None, p.identity_id):
        return Seen(mismatch=True)
    balancer = await find(p)
    resting = balancer is not None and balancer.status == "ACTIVE"
    part = (
        p.region.openstack.loadBalancer if p.region is not None and p.region.openstack is not None else None
    )
    return Seen(
        balancer=balancer,
        subnet=subnet_of(p),
        prefix=network.spec.get("prefix") if network is not None else None,
        algorithm=part.algorithm if part is not None else Seen.algorithm,
        addresses=await on_port(p, balancer) if resting else (),
        tree=await _tree(p, balancer.id) if balancer is not None and resting else Tree(),
        strays=await _left_over(p, balancer),
    )


async def _going(p: LoadBalancerPass) -> Seen:
    """Addresses on the port and those that lost it; the status tree shows what a cascade must not meet."""
    balancer = await find(p)
    if balancer is not None and balancer.moving:
        return Seen(balancer=balancer)
    found = {a.id: a for a in (*await on_port(p, balancer), *await loose(p))}
    addresses = tuple(found[ident] for ident in sorted(found))
    if balancer is None:
        return Seen(addresses=addresses, strays=await _left_over(p, balancer))
    tree = await p.get(p.principal, SERVICE, "loadbalancer.status", id=balancer.id)
    return Seen(balancer=balancer, addresses=addresses, restless=restless(tree))


async def find(p: LoadBalancerPass) -> BalancerSeen | None:
    """The load balancer of exactly our name: one list request, and a read by id where the list lacks what we noted.

    One that was renamed in the cloud is still ours by the mark in its description (OC-24): asked for where there has been one.
    """
    name = loadbalancer_name(p.resource.key.id)
    found = await p.find(p.principal, SERVICE, "loadbalancer.list", name)
    if found is None:
        await p.not_contradicted(
            p.principal,
            SERVICE,
            "loadbalancer.get",
            p.remembered.get("loadbalancer"),
            lambda balancer: balancer.get("name") == name and status_of(balancer) != "DELETED",
        )
        found = await _renamed(p, name) if p.resource.status.vipAddress is not None else None
    if found is None:
        return None
    p.note("loadbalancer", found["id"])
    return balancer_seen(found)


async def _renamed(p: LoadBalancerPass, mark: str) -> dict[str, Any] | None:
    """The one whose description is our mark, whatever its name.  Two are a consistency error; one of our name, which the list by
    name lacked, makes one of the two lists wrong."""
    listed = await p.get(p.principal, SERVICE, "loadbalancer.list", query={"description": mark})
    found = [b for b in listed if b.get("description") == mark and status_of(b) != "DELETED"]
    if len(found) > 1:
        raise CloudError(Verdict.CONSISTENCY, text=f"{len(found)} load balancers bear the mark {mark}")
    if found and found[0].get("name") == mark:
        raise CloudError(Verdict.UNAVAILABLE, text=f"load-balancer lists no {mark} by name and yet has it")
    return dict(found[0]) if found else None


def balancer_seen(found: Mapping[str, Any]) -> BalancerSeen:
    return BalancerSeen(
        str(found["id"]), status_of(found), found.get("vip_address") or None, found.get("vip_port_id") or None
    )


def restless(node: Any) -> tuple[str, ...]:
    """Statuses below a status tree that are still PENDING; a cascade that meets one strands it for ever, measured on Octavia 19."""
    if isinstance(node, Mapping):
        own = (status_of(node),) if status_of(node) in PENDING else ()
        return (*own, *(s for value in node.values() for s in restless(value)))
    if isinstance(node, list):
        return tuple(s for value in node for s in restless(value))
    return ()


# ---------------------------------------------------------------- parts


async def _tree(p: LoadBalancerPass, ident: str) -> Tree:
    """Lists are narrowed by us: Octavia cannot be asked for a prefix.  What lacks our prefix is nobody's business (INV-279)."""
    prefix = loadbalancer_prefix(p.resource.key.id)

    def ours(found: Mapping[str, Any]) -> bool:
        return str(found.get("name") or "").startswith(prefix)

    def of_balancer(found: Mapping[str, Any]) -> bool:
        return any(balancer.get("id") == ident for balancer in found.get("loadbalancers") or ())

    listeners = await p.get(p.principal, SERVICE, "listener.list")
    pools = await p.get(p.principal, SERVICE, "pool.list", query={"loadbalancer_id": ident})
    kept = [pool for pool in pools if of_balancer(pool) and ours(pool)]
    seen_pools = [
        seen_pool(pool, await p.get(p.principal, SERVICE, "member.list", pool=pool["id"])) for pool in kept
    ]
    pool_ids = {pool["id"] for pool in pools if of_balancer(pool)}
    monitors = await p.get(p.principal, SERVICE, "healthmonitor.list")
    return Tree(
        tuple(seen_listener(x) for x in listeners if of_balancer(x) and ours(x)),
        tuple(seen_pools),
        tuple(
            seen_monitor(x)
            for x in monitors
            if ours(x) and any(pool.get("id") in pool_ids for pool in x.get("pools") or ())
        ),
    )


# ---------------------------------------------------------------- addresses


async def on_port(p: LoadBalancerPass, balancer: BalancerSeen | None) -> tuple[AddressSeen, ...]:
    """Floating IPs on the VIP port; none while there is no port."""
    if balancer is None or balancer.port is None:
        return ()
    listed = await p.get(p.principal, "network", "floatingip.list", query={"port_id": balancer.port})
    return tuple(address_seen(f) for f in listed if f.get("port_id") == balancer.port)


async def loose(p: LoadBalancerPass) -> tuple[AddressSeen, ...]:
    """Floating IPs that bear our mark and hang on no port: one list request."""
    mark = loadbalancer_name(p.resource.key.id)
    listed = await p.get(p.principal, "network", "floatingip.list", query={"description": mark})
    return tuple(address_seen(f) for f in listed if f.get("description") == mark and not f.get("port_id"))


def address_seen(found: Mapping[str, Any]) -> AddressSeen:
    return AddressSeen(str(found["id"]), str(found["floating_ip_address"]))


# ---------------------------------------------------------------- left-over VIP ports


def subnet_of(p: LoadBalancerPass) -> str | None:
    """The network's subnet in the cloud, as its owner tells it."""
    network = p.target("network", p.resource.metadata.networkId or "")
    openstack: Mapping[str, Any] = (network.status.get("openstack") if network is not None else None) or {}
    found = openstack.get("subnetID")
    return str(found) if found else None


async def _left_over(p: LoadBalancerPass, balancer: BalancerSeen | None) -> Strays:
    """Looked for only after a refusal of ours, and before anything is asked anew: no create of ours is under way then."""
    refused = p.resource.status.refused
    if balancer is not None or refused is None:
        return Strays()
    return await stray_ports(p, parse_time(refused.at))


async def stray_ports(p: LoadBalancerPass, asked: datetime | None) -> Strays:
    """VIP ports that a refused create of ours left behind.

    They are in our project and in our network's subnet; Octavia knows no load balancer of theirs, though none can be in the making
    any more; and they hold the address that we asked for, or were made when we `asked`.  Several load balancers may have been refused
    at that time: their ports cannot be told apart, none of them will ever be used, and whoever looks removes them all.  One list
    request for each owner word of Octavia's providers, and a read a candidate.
    """
    subnet, requested = subnet_of(p), p.resource.spec.requestedVIPAddress
    found: dict[str, datetime] = {}
    for owner in VIP_OWNERS if subnet is not None else ():
        for port in await p.get(p.principal, "network", "port.list", query={"device_owner": owner}):
            made_for, born = balancer_of(port), made_at(port)
            fixed = [ip for ip in port.get("fixed_ips") or () if ip.get("subnet_id") == subnet]
            if port.get("device_owner") != owner or made_for is None or born is None or not fixed:
                continue
            ours = fixed[0].get("ip_address") == requested if requested else _made_then(born, asked)
            if ours and await _is_unknown(p, made_for):
                found[str(port["id"])] = born
    old = tuple(ident for ident, time in found.items() if p.now - time >= STRAY_AGE)
    return Strays(old, young=len(old) < len(found))


def _made_then(born: datetime, asked: datetime | None) -> bool:
    return asked is not None and asked - BEFORE <= born <= asked + AFTER


async def _is_unknown(p: LoadBalancerPass, balancer: str) -> bool:
    """Whether Octavia says that it has no load balancer of that id; one that is another project's is known."""
    try:
        await p.get(p.principal, SERVICE, "loadbalancer.get", id=balancer)
    except CloudError as error:
        if error.verdict in (Verdict.GONE, Verdict.FORBIDDEN):
            return error.verdict is Verdict.GONE
        raise
    return False
