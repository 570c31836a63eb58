"""Whether ports that trees and the database name are there in the network service.

A database that came back from a backup, or that was empty for a while, may name ports that the network service has no more: a port for
probes is then made again, and of a VIP's port it is told.  What is asked costs one request for many ports.
"""

from collections.abc import Collection, Iterable

import structlog

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import MONITOR_PORT_PREFIX, Facts
from roadstead_ovn.network import Network

log = structlog.get_logger("roadstead.ovn.ports")


def monitored_subnets(balancer: Balancer) -> frozenset[str]:
    """Subnets with members of monitored pools: for as long as the tree says so their ports for probes are needed, whatever the database has."""
    pools = (pool for pool in balancer.pools if pool.monitor is not None)
    return frozenset(balancer.member_subnet(member) for pool in pools for member in pool.members) - {""}


def probe_ports(facts: Facts, subnets: Collection[str]) -> dict[str, set[str]]:
    """By subnet, ids of all ports for probes that the database has."""
    names = {MONITOR_PORT_PREFIX + subnet: subnet for subnet in subnets}
    found: dict[str, set[str]] = {}
    for port in facts.ports:
        if port.name in names:
            found.setdefault(names[port.name], set()).add(port.id)
    return found


def vip_ports(balancer: Balancer) -> set[str]:
    return {vip.port_id for vip in balancer.vips} - {""}


async def gone(network: Network, ports: Iterable[str], known: Collection[str] = ()) -> frozenset[str]:
    """Those that are not there.  known: some that are.  NetworkRefused.

    A port is in the network service before it is in the database, and its id is never used again: what was read of the database before
    this and is not there now is gone for good.
    """
    asked = sorted(set(ports).difference(known))
    if not asked:
        return frozenset()
    there = {str(port["id"]) for port in await network.ports_of(asked)}
    return frozenset(asked) - there


def tell_lost(balancer: Balancer, lost: Collection[str]) -> None:
    """Of ports of its VIPs that are gone: they cannot be made again under the id that the API has."""
    for port in sorted(vip_ports(balancer).intersection(lost)):
        log.warning(
            "the network service has no port of this VIP any more: its address may be given to others; make the load balancer anew",
            load_balancer=balancer.id,
            port=port,
        )
