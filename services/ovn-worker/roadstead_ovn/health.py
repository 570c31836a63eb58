"""How members, pools, listeners and a load balancer stand: one pure function over what is stored and what OVN's probes found.

Nothing here remembers an event: the same facts give the same statuses, whichever of them changed last, and a probe that several load
balancers share counts for each of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from roadstead_ovn.balancer import Balancer, Listener, Member, Pool
from roadstead_ovn.facts import Facts

# Octavia's protocols that OVN balances, and OVN's names for them.
PROTOCOLS = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}
PROBED = frozenset({"tcp", "udp"})  # OVN makes no probes for others
DOWN = frozenset({"offline", "error"})  # OVN sends nothing to such a backend


class Standing(StrEnum):
    """Octavia's operating statuses."""

    ONLINE = "ONLINE"
    DEGRADED = "DEGRADED"
    ERROR = "ERROR"
    OFFLINE = "OFFLINE"
    NO_MONITOR = "NO_MONITOR"


@dataclass(frozen=True)
class Health:
    """Operating statuses by id."""

    load_balancer: Standing
    listeners: Mapping[str, Standing] = field(default_factory=dict)
    pools: Mapping[str, Standing] = field(default_factory=dict)
    members: Mapping[str, Standing] = field(default_factory=dict)
    monitors: Mapping[str, Standing] = field(default_factory=dict)


def health_of(balancer: Balancer, facts: Facts) -> Health:
    """The statuses of everything that shall be there."""
    members = {
        m.id: member_standing(balancer, pool, m, facts) for pool in balancer.pools for m in pool.members
    }
    served = {listener.pool_id for listener in balancer.listeners}
    pools = {
        pool.id: _pool(balancer, pool, [members[m.id] for m in pool.members], pool.id in served)
        for pool in balancer.pools
    }
    listeners = {listener.id: _listener(listener, pools) for listener in balancer.listeners}
    monitors = {
        pool.monitor.id: _monitor(balancer, pool, facts)
        for pool in balancer.pools
        if pool.monitor is not None
    }
    return Health(_whole(balancer, listeners, facts), listeners, pools, members, monitors)


def lacking(balancer: Balancer, facts: Facts) -> frozenset[str]:
    """Networks of VIPs that have no logical switch."""
    networks = {facts.network_of(vip.network_id, vip.subnet_id) for vip in balancer.vips}
    return frozenset(network for network in networks if network not in facts.network)


def _whole(balancer: Balancer, listeners: Mapping[str, Standing], facts: Facts) -> Standing:
    if lacking(balancer, facts):
        return Standing.ERROR
    return _worst(listeners.values()) if balancer.enabled else Standing.OFFLINE


def member_standing(balancer: Balancer, pool: Pool, member: Member, facts: Facts) -> Standing:
    """OFFLINE when switched off; without probes NO_MONITOR; else what the probe says, ONLINE before the first one.

    A monitored member whose address no port has is in ERROR: nothing can be probed, and nobody would answer.
    """
    if not member.enabled:
        return Standing.OFFLINE
    protocol = PROTOCOLS.get(pool.protocol, "")
    if pool.monitor is None or protocol not in PROBED:
        return Standing.NO_MONITOR
    machine = facts.machine(balancer.member_subnet(member), member.address)
    if machine is None:
        return Standing.ERROR
    status = facts.probe(machine.id, member.address, member.port, protocol)
    return Standing.ERROR if status in DOWN else Standing.ONLINE


def _pool(balancer: Balancer, pool: Pool, members: list[Standing], is_served: bool) -> Standing:
    if not pool.enabled:
        return Standing.OFFLINE
    if not members:
        return _empty_pool(balancer, pool, is_served)
    if all(standing is Standing.ERROR for standing in members):
        return Standing.ERROR
    return Standing.DEGRADED if Standing.ERROR in members else Standing.ONLINE


def _empty_pool(balancer: Balancer, pool: Pool, is_served: bool) -> Standing:
    """A pool that is new and empty is ONLINE once a listener uses it; one that was emptied is OFFLINE.

    Which of the two it is, is in the stored statuses: OFFLINE is kept, and given where members or monitor are changing.
    """
    provisioning, operating = balancer.statuses.get(pool.id, ("", ""))
    if provisioning == "PENDING_CREATE":
        return Standing.ONLINE if is_served else Standing.OFFLINE
    monitor = balancer.statuses.get(pool.monitor.id, ("", ""))[0] if pool.monitor else ""
    if balancer.vanishing.get(pool.id) or monitor.startswith("PENDING_"):
        return Standing.OFFLINE
    return Standing.ONLINE if operating == Standing.ONLINE else Standing.OFFLINE


def _listener(listener: Listener, pools: Mapping[str, Standing]) -> Standing:
    if not listener.enabled:
        return Standing.OFFLINE
    return _worst(pools[key] for key in [listener.pool_id] if key is not None)


def _worst(standings: Iterable[Standing]) -> Standing:
    """Parts that are OFFLINE are so because someone wants it, and harm nobody else."""
    found = set(standings)
    return next((s for s in (Standing.ERROR, Standing.DEGRADED) if s in found), Standing.ONLINE)


def _monitor(balancer: Balancer, pool: Pool, facts: Facts) -> Standing:
    """ERROR while a port that its probes must come from is missing."""
    monitor = pool.monitor
    if monitor is None or not monitor.enabled:
        return Standing.OFFLINE
    missing = any(facts.monitor_port(subnet) is None for subnet in probe_subnets(balancer, pool, facts))
    return Standing.ERROR if missing else Standing.ONLINE


def probe_subnets(balancer: Balancer, pool: Pool, facts: Facts) -> frozenset[str]:
    """Subnets that need a port for probes: those of monitored, enabled members that some port has the address of."""
    if pool.monitor is None:
        return frozenset()
    subnets = ((balancer.member_subnet(m), m.address) for m in pool.members if m.enabled)
    return frozenset(subnet for subnet, address in subnets if facts.machine(subnet, address) is not None)


def records(health: Health, balancer: Balancer) -> dict[str, list[dict[str, Any]]]:
    """The body of a status message about everything: operating statuses alone."""

    def listed(standings: Mapping[str, Standing]) -> list[dict[str, Any]]:
        return [{"id": key, "operating_status": value.value} for key, value in sorted(standings.items())]

    named = {
        "members": listed(health.members),
        "healthmonitors": listed(health.monitors),
        "pools": listed(health.pools),
        "listeners": listed(health.listeners),
        "loadbalancers": listed({balancer.id: health.load_balancer}),
    }
    return {kind: found for kind, found in named.items() if found}
