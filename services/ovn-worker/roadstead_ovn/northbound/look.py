"""One look around a load balancer: what the region has as far as it depends on it, and the keys to be woken by."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import (
    Facts,
    FloatingIP,
    Network,
    Port,
    RouterPort,
    ServiceMonitor,
    Subnet,
    canonical,
    holds,
)
from roadstead_ovn.northbound.interests import (
    Key,
    address_key,
    monitor_port_key,
    network_key,
    port_key,
    probe_key,
    router_key,
)


class Region(Protocol):
    """Look-ups by id."""

    def network(self, network_id: str) -> Network | None: ...

    def network_of(self, network_id: str, subnet_id: str) -> str:
        """The network's id, by the subnet where it is not given; empty when neither is known."""

    def port(self, port_id: str) -> list[Port]: ...

    def machines(self, network_id: str, address: str) -> list[Port]:
        """Ports with the address on the network."""

    def monitor_ports(self, subnet_id: str) -> list[Port]: ...

    def router_ports_of_network(self, network_id: str) -> list[RouterPort]: ...

    def router_ports_of_router(self, router_id: str) -> list[RouterPort]: ...

    def floating_ips(self, port_id: str) -> list[FloatingIP]: ...

    def probes(self, port_id: str) -> list[ServiceMonitor]: ...


class Subnets:
    """What the databases do not tell: subnets by network; and of ports that they have, ids of those that are gone all the same."""

    def __init__(self) -> None:
        self.absent: set[str] = set()
        self._network: dict[str, str] = {}
        self._of_network: dict[str, dict[str, str]] = defaultdict(dict)

    def remember(self, subnets: Sequence[tuple[str, str, str]]) -> None:
        for subnet, network, cidr in subnets:
            if subnet not in self._network:
                self._network[subnet] = network
                self._of_network[network][subnet] = cidr

    def network_of(self, subnet_id: str) -> str:
        """Empty when it is not known."""
        return self._network.get(subnet_id, "")

    def age(self, network_id: str) -> int:
        """Grows with every subnet of the network that becomes known."""
        return len(self._of_network.get(network_id, ()))

    def holding(self, network_id: str, address: str) -> str:
        for subnet, cidr in self._of_network.get(network_id, {}).items():
            if holds(cidr, address):
                return subnet
        return ""

    def listed(self, ids: Iterable[str]) -> list[Subnet]:
        found = []
        for subnet in sorted(set(ids)):
            network = self._network.get(subnet)
            if network is not None:
                found.append(Subnet(subnet, network, self._of_network[network][subnet]))
        return found


class Look:
    """keys: of everything that the facts depend on, what is not there included."""

    def __init__(self, region: Region, balancer: Balancer) -> None:
        self._region = region
        self.keys: set[Key] = set()
        self._networks: set[str] = set()
        self._ports: dict[str, Port] = {}
        self._floating: list[FloatingIP] = []
        self._monitors: list[ServiceMonitor] = []
        self._router_ports: dict[str, RouterPort] = {}
        for vip in balancer.vips:
            self._networks.add(region.network_of(vip.network_id, vip.subnet_id))
            self._networks.add(region.network_of("", vip.subnet_id))
            self.keys.add(port_key(vip.port_id))
            self._keep(region.port(vip.port_id))
        self._members(balancer)
        self._networks.discard("")
        self._behind_routers()
        self.keys.update(network_key(network) for network in self._networks)

    def _members(self, balancer: Balancer) -> None:
        region = self._region
        for pool in balancer.pools:
            for member in pool.members:
                subnet = balancer.member_subnet(member)
                network = region.network_of("", subnet)
                self._networks.add(network)
                self.keys.add(address_key(network, canonical(member.address)))
                machines = region.machines(network, member.address)
                self._keep(machines)
                if pool.monitor is None:
                    continue
                self.keys.add(monitor_port_key(subnet))
                self._keep(region.monitor_ports(subnet))
                for machine in machines:
                    self.keys.add(probe_key(machine.id))
                    self._monitors += region.probes(machine.id)

    def _keep(self, ports: Iterable[Port]) -> None:
        for port in ports:
            if port.id not in self._ports:
                self._ports[port.id] = port
                self.keys.add(port_key(port.id))
                self._floating += self._region.floating_ips(port.id)

    def _behind_routers(self) -> None:
        region = self._region
        routers = {
            port.router_id for network in self._networks for port in region.router_ports_of_network(network)
        }
        for router in routers:
            self.keys.add(router_key(router))
            for port in region.router_ports_of_router(router):
                self._router_ports[port.id] = port
        self._networks.update(port.network_id for port in self._router_ports.values())
        self._networks.discard("")

    def facts(self) -> Facts:
        networks = [self._region.network(network) for network in sorted(self._networks)]
        return Facts(
            networks=tuple(network for network in networks if network is not None),
            ports=tuple(self._ports.values()),
            router_ports=tuple(self._router_ports.values()),
            floating_ips=tuple(self._floating),
            monitors=tuple(dict.fromkeys(self._monitors)),
        )
