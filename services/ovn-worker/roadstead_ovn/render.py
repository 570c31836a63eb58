"""What a load balancer wants of the Northbound database: a pure function of its tree and the network's facts.

One row for each protocol in use, in the layout of the original provider, so that either can go on from the other's rows.  Protocols that
OVN cannot balance are not rendered; `check` refuses them before they are stored.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from roadstead_ovn.balancer import Balancer, Listener, Member, Pool, Vip
from roadstead_ovn.facts import Facts, canonical, version_of
from roadstead_ovn.health import PROTOCOLS, Health, Standing, health_of, lacking, probe_subnets
from roadstead_ovn.rows import (
    ADDRESSES,
    DISABLED,
    FOUR_TUPLE,
    REVISION,
    Freedom,
    HealthCheckRow,
    LoadBalancerRow,
    SwitchPort,
    Wanted,
)

# A VIP port with one of these owners serves something else as well: its addresses are not ours to take.
_BOUND_ELSEWHERE = ("compute:", "network:", "baremetal:", "trunk:")


def render(balancer: Balancer | None, facts: Facts) -> Wanted:
    """Everything that is wanted; nothing when the load balancer is to go."""
    if balancer is None:
        return Wanted()
    health = health_of(balancer, facts)
    rows = [_Row(balancer, facts, health, protocol, n) for n, protocol in _protocols(balancer)]
    return Wanted(
        rows=tuple(row.row(rows) for row in rows),
        switch_ports={vip.port_id: SwitchPort(()) for vip in balancer.vips if _is_free(facts, vip.port_id)},
        monitor_subnets=frozenset(s for pool in balancer.pools for s in probe_subnets(balancer, pool, facts)),
        centralised=_centralised(balancer, facts),
        lacking=lacking(balancer, facts),
    )


def _protocols(balancer: Balancer) -> Iterable[tuple[int, str | None]]:
    spelled = [*(x.protocol for x in balancer.listeners), *(x.protocol for x in balancer.pools)]
    used = {PROTOCOLS.get(name) for name in spelled}
    found = [name for name in PROTOCOLS.values() if name in used]
    return enumerate(found or [None])


def _is_free(facts: Facts, port_id: str) -> bool:
    """A switch answers for the addresses of a port with the port's own MAC: clients of that network would talk to nobody."""
    port = facts.port.get(port_id)
    return port is not None and not port.device_owner.startswith(_BOUND_ELSEWHERE)


def _centralised(balancer: Balancer, facts: Facts) -> frozenset[str]:
    if not any(facts.floating(vip.port_id, vip.address) for vip in balancer.vips):
        return frozenset()
    found = set()
    for pool in balancer.pools:
        for member in pool.members:
            machine = facts.machine(balancer.member_subnet(member), member.address)
            floating = facts.floating(machine.id, member.address) if machine else None
            if floating:
                found.add(floating)
    return frozenset(found)


class _Row:
    """One row while it is made.  number: 0 for the first of the load balancer's rows."""

    def __init__(
        self, balancer: Balancer, facts: Facts, health: Health, protocol: str | None, number: int
    ) -> None:
        self._balancer, self._facts, self._health = balancer, facts, health
        self._protocol, self._is_first = protocol, number == 0
        self._pools = [
            pool for pool in balancer.pools if protocol and PROTOCOLS.get(pool.protocol) == protocol
        ]
        self._pool = {pool.id: pool for pool in self._pools}
        self._listeners = sorted(
            (x for x in balancer.listeners if protocol and PROTOCOLS.get(x.protocol) == protocol),
            key=lambda x: (x.port, x.id),
        )
        self._floating = {
            vip.address: address
            for vip in balancer.vips
            if vip.port_id and (address := facts.floating(vip.port_id, vip.address))
        }

        self._vip_networks = [facts.network_of(vip.network_id, vip.subnet_id) for vip in balancer.vips]
        subnets = [facts.subnet.get(balancer.member_subnet(member)) for member in self._members()]
        self._member_networks = [subnet.network_id for subnet in subnets if subnet is not None]
        self.counts = self._network_counts()
        self.routers = self._found_routers()
        by_router = self._networks_by_router()
        self.switches = frozenset(_switch(network) for network in (*self.counts, *by_router))

    def row(self, rows: Sequence["_Row"]) -> LoadBalancerRow:
        """rows: all of the load balancer's."""
        chosen = {_fields(pool) for pool in self._pools}
        affinities = {str(pool.affinity) for pool in self._pools if pool.affinity is not None}
        return LoadBalancerRow(
            name=self._balancer.id,
            protocol=self._protocol,
            vips=self._vips(),
            external_ids=self._external_ids(),
            options={"affinity_timeout": max(affinities, key=int)} if affinities else {},
            selection_fields=ADDRESSES if chosen == {ADDRESSES} else FOUR_TUPLE,
            ip_port_mappings=self._mappings(),
            health_checks=tuple(self._health_checks()),
            switches=self.switches,
            routers=frozenset(f"neutron-{router}" for router in self.routers),
            freedom=Freedom(
                selection_fields=frozenset(chosen) if chosen else None,
                affinity=frozenset(affinities),
                switches=frozenset(switch for row in rows for switch in row.switches),
                routers=frozenset(f"neutron-{router}" for row in rows for router in row.routers),
                counts=self._free_counts(rows),
            ),
        )

    # ---------------------------------------------------------- where it hangs

    def _network_counts(self) -> Mapping[str, int]:
        """Networks whose switch carries the row by itself, and how many VIPs and members stand for each."""
        vips = self._vip_networks if self._is_first else self._vip_networks[:1]
        counts = Counter([*vips, *self._member_networks])
        return {network: counts[network] for network in sorted(counts) if self._hangs(network)}

    def _hangs(self, network_id: str) -> bool:
        network = self._facts.network.get(network_id)
        return network is not None and not network.is_provider

    def _free_counts(self, rows: Sequence["_Row"]) -> dict[str, frozenset[int]]:
        """A row that was copied counts each network of its model once, whatever stood for it there."""
        vips, members = Counter(self._vip_networks), Counter(self._member_networks)
        copied = {network for row in rows if row is not self for network in row.counts}
        return {
            _switch(n): frozenset(
                {members[n] + vips[n], members[n] + 1 if n in copied or n in vips else 0} - {0}
            )
            for n in copied | set(self.counts)
        }

    def _found_routers(self) -> tuple[str, ...]:
        behind = sorted({self._balancer.member_subnet(m) for m in self._members()})
        subnets = [self._balancer.vip.subnet_id, *behind]
        found: dict[str, None] = {}
        for subnet in subnets:
            found.update(dict.fromkeys(self._facts.routers_of(subnet)))
        return tuple(found)

    def _networks_by_router(self) -> list[str]:
        version = version_of(self._balancer.vip.address)
        return [
            network
            for router in self.routers
            for network in self._facts.networks_of(router, version)
            if network in self._facts.network
        ]

    def _members(self) -> list[Member]:
        return [member for pool in self._pools for member in pool.members]

    # ---------------------------------------------------------- columns

    def _external_ids(self) -> dict[str, str]:
        balancer = self._balancer
        ids = {
            "enabled": str(balancer.enabled),
            "neutron:vip": balancer.vip.address,
            "neutron:vip_port_id": balancer.vip.port_id,
            REVISION: str(balancer.revision),
        }
        if balancer.additional:
            ids["neutron:additional_vips"] = ",".join(vip.address for vip in balancer.additional)
            ids["neutron:additional_vip_port_ids"] = ",".join(vip.port_id for vip in balancer.additional)
        if balancer.vip.address in self._floating:
            ids["neutron:vip_fip"] = self._floating[balancer.vip.address]
        further = [self._floating[v.address] for v in balancer.additional if v.address in self._floating]
        if further:
            ids["neutron:additional_vip_fips"] = ",".join(further)
        if self.counts:
            ids["ls_refs"] = json.dumps({_switch(network): count for network, count in self.counts.items()})
        if self.routers:
            ids["lr_ref"] = ",".join(f"neutron-{router}" for router in self.routers)
        for listener in self._listeners:
            target = f"pool_{listener.pool_id}" if listener.pool_id else ""
            ids[_key("listener", listener.id, listener.enabled)] = f"{listener.port}:{target}"
        for pool in self._pools:
            ids[_key("pool", pool.id, pool.enabled)] = ",".join(self._member_text(m) for m in pool.members)
        statuses = {member.id: self._health.members[member.id].value for member in self._members()}
        if statuses:
            ids["neutron:member_status"] = json.dumps(statuses)
        monitors = [pool.monitor.id for pool in self._pools if pool.monitor for _ in balancer.vips]
        if monitors:
            ids["octavia:healthmonitors"] = json.dumps(monitors)
        return ids

    def _member_text(self, member: Member) -> str:
        subnet = self._balancer.member_subnet(member)
        return f"member_{member.id}_{canonical(member.address)}:{member.port}_{subnet}"

    def _vips(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if not self._balancer.enabled:
            return found
        for listener in self._listeners:
            pool = self._pool.get(listener.pool_id or "")
            if not listener.enabled or pool is None or not pool.enabled:
                continue
            for address in self._addresses():
                if servers := self._servers(pool, version_of(address)):
                    found[_endpoint(address, listener.port)] = ",".join(servers)
        return dict(sorted(found.items()))

    def _addresses(self) -> list[str]:
        """VIPs and the floating IPs on them."""
        return [address for vip in self._balancer.vips for address in self._faces(vip)]

    def _faces(self, vip: Vip) -> list[str]:
        floating = self._floating.get(vip.address)
        return [canonical(vip.address), *([canonical(floating)] if floating else [])]

    def _servers(self, pool: Pool, version: int) -> list[str]:
        # A member in ERROR stays: OVN leaves it out by its own probes, and takes it back by itself.
        return [
            _endpoint(canonical(member.address), member.port)
            for member in pool.members
            if self._health.members[member.id] is not Standing.OFFLINE
            and version_of(member.address) == version != 0
        ]

    def _mappings(self) -> dict[str, str]:
        """Where each monitored member's probes go to and come from.

        Two networks with one address share a key; the lowest subnet has it, so that it does not change from pass to pass.
        """
        found: dict[str, tuple[str, str]] = {}
        for pool in self._pools:
            for member in pool.members:
                if pool.monitor is None or not member.enabled:
                    continue
                subnet = self._balancer.member_subnet(member)
                machine = self._facts.machine(subnet, member.address)
                source = self._facts.monitor_port(subnet)
                if machine is None or source is None:
                    continue
                key, text = _bracketed(canonical(member.address)), f"{machine.id}:{_bracketed(source[1])}"
                found[key] = min(found.get(key, (subnet, text)), (subnet, text))
        return {key: text for key, (_, text) in sorted(found.items())}

    def _health_checks(self) -> Iterable[HealthCheckRow]:
        for pool in self._pools:
            if (monitor := pool.monitor) is None:
                continue
            options = {
                "interval": str(monitor.delay),
                "timeout": str(monitor.timeout),
                "success_count": str(monitor.rise),
                "failure_count": str(monitor.fall),
            }
            users: list[Listener] = [x for x in self._listeners if x.pool_id == pool.id]
            for address in self._addresses():
                ids = {
                    "octavia:healthmonitor": monitor.id,
                    "octavia:pool_id": pool.id,
                    "octavia:vip": address,
                }
                for vip in [_endpoint(address, user.port) for user in users] or [""]:
                    yield HealthCheckRow(vip, options, ids)


def _fields(pool: Pool) -> tuple[str, ...]:
    return ADDRESSES if pool.algorithm == "SOURCE_IP" else FOUR_TUPLE


def _key(kind: str, identifier: str, is_enabled: bool) -> str:
    return f"{kind}_{identifier}" + ("" if is_enabled else DISABLED)


def _switch(network: str) -> str:
    return f"neutron-{network}"


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _endpoint(address: str, port: int) -> str:
    return f"{_bracketed(address)}:{port}"
