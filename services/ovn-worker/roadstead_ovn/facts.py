"""What the network service and OVN have, as far as a load balancer depends on it; plain values, looked up by id.

A `Facts` may hold the whole region or only what one load balancer needs: what is not in it counts as not there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import ip_address, ip_interface, ip_network

MONITOR_PORT_PREFIX = "ovn-lb-hm-"


@dataclass(frozen=True)
class Network:
    """One that has a logical switch.  is_provider: it is mapped to a physical network."""

    id: str
    is_provider: bool = False


@dataclass(frozen=True)
class Subnet:
    id: str
    network_id: str
    cidr: str


@dataclass(frozen=True)
class Port:
    """fixed_ips: pairs of subnet id and address."""

    id: str
    network_id: str
    name: str
    device_owner: str
    device_id: str
    project_id: str
    fixed_ips: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RouterPort:
    """networks: as OVN has them, addresses with their prefix length.  is_gateway: it has a gateway chassis, or leads outside."""

    id: str
    router_id: str
    network_id: str
    networks: tuple[str, ...]
    is_gateway: bool = False


@dataclass(frozen=True)
class FloatingIP:
    """port_id and fixed_address: what it leads to; an empty address stands for whatever the port has."""

    address: str
    port_id: str
    fixed_address: str = ""


@dataclass(frozen=True)
class ServiceMonitor:
    """A row of the Southbound table of that name.  status: online, offline, error, or empty before the first probe."""

    logical_port: str
    address: str
    port: int
    protocol: str
    status: str


@dataclass(frozen=True)
class Facts:
    """Order within the tuples means nothing."""

    networks: tuple[Network, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    ports: tuple[Port, ...] = ()
    router_ports: tuple[RouterPort, ...] = ()
    floating_ips: tuple[FloatingIP, ...] = ()
    monitors: tuple[ServiceMonitor, ...] = ()

    @cached_property
    def network(self) -> Mapping[str, Network]:
        return {network.id: network for network in self.networks}

    @cached_property
    def subnet(self) -> Mapping[str, Subnet]:
        return {subnet.id: subnet for subnet in self.subnets}

    @cached_property
    def port(self) -> Mapping[str, Port]:
        return {port.id: port for port in self.ports}

    @cached_property
    def _by_address(self) -> Mapping[tuple[str, str], Port]:
        found: dict[tuple[str, str], Port] = {}
        for port in sorted(self.ports, key=lambda x: x.id, reverse=True):  # the lowest id wins
            for _, address in port.fixed_ips:
                found[port.network_id, canonical(address)] = port
        return found

    @cached_property
    def _monitor_ports(self) -> Mapping[str, tuple[Port, str]]:
        found = {}
        for port in sorted(self.ports, key=lambda x: x.id, reverse=True):
            if port.name.startswith(MONITOR_PORT_PREFIX):
                for subnet_id, address in port.fixed_ips:
                    if port.name == MONITOR_PORT_PREFIX + subnet_id:
                        found[subnet_id] = (port, canonical(address))
        return found

    @cached_property
    def _router_ports_by_network(self) -> Mapping[str, tuple[RouterPort, ...]]:
        return _grouped((port.network_id, port) for port in self.router_ports)

    @cached_property
    def _router_ports_by_router(self) -> Mapping[str, tuple[RouterPort, ...]]:
        return _grouped((port.router_id, port) for port in self.router_ports)

    @cached_property
    def _floating(self) -> Mapping[str, tuple[FloatingIP, ...]]:
        found: dict[str, list[FloatingIP]] = {}
        for item in self.floating_ips:
            found.setdefault(item.port_id, []).append(item)
        return {port: tuple(sorted(items, key=lambda x: x.address)) for port, items in found.items()}

    @cached_property
    def _monitor(self) -> Mapping[tuple[str, str, int, str], str]:
        return {(m.logical_port, canonical(m.address), m.port, m.protocol): m.status for m in self.monitors}

    def network_of(self, network_id: str, subnet_id: str) -> str:
        """The network's id, looked up by the subnet where it is not given; empty when neither is known."""
        subnet = self.subnet.get(subnet_id)
        return network_id or (subnet.network_id if subnet else "")

    def machine(self, subnet_id: str, address: str) -> Port | None:
        """The port that has the address on the subnet's network."""
        subnet = self.subnet.get(subnet_id)
        return None if subnet is None else self._by_address.get((subnet.network_id, canonical(address)))

    def monitor_port(self, subnet_id: str) -> tuple[Port, str] | None:
        """The port that probes come from on that subnet, and its address there."""
        return self._monitor_ports.get(subnet_id)

    def floating(self, port_id: str, address: str) -> str | None:
        """The floating IP that leads to that address of the port; the lowest, should there be several."""
        for item in self._floating.get(port_id, ()):
            if not item.fixed_address or canonical(item.fixed_address) == canonical(address):
                return item.address
        return None

    def probe(self, logical_port: str, address: str, port: int, protocol: str) -> str | None:
        """The status of the probe of that backend; None when OVN makes none."""
        return self._monitor.get((logical_port, canonical(address), port, protocol))

    def routers_of(self, subnet_id: str) -> tuple[str, ...]:
        """Ids of the routers with an interface (no gateway) in the subnet, sorted."""
        subnet = self.subnet.get(subnet_id)
        if subnet is None:
            return ()
        wanted = _network_of(subnet.cidr)
        ports = self._router_ports_by_network.get(subnet.network_id, ())
        return tuple(
            sorted(
                {
                    port.router_id
                    for port in ports
                    if not port.is_gateway and any(_network_of(text) == wanted for text in port.networks)
                }
            )
        )

    def networks_of(self, router_id: str, version: int) -> tuple[str, ...]:
        """Ids of the networks that the router joins with that IP version, gateways left out, sorted."""
        ports = self._router_ports_by_router.get(router_id, ())
        return tuple(
            sorted(
                {
                    port.network_id
                    for port in ports
                    if not port.is_gateway and port.networks and version_of(port.networks[0]) == version
                }
            )
        )


def _grouped(pairs: Iterable[tuple[str, RouterPort]]) -> dict[str, tuple[RouterPort, ...]]:
    found: dict[str, list[RouterPort]] = {}
    for key, port in pairs:
        found.setdefault(key, []).append(port)
    return {key: tuple(ports) for key, ports in found.items()}


@lru_cache(65536)
def canonical(address: str) -> str:
    """One spelling for every address; a text that is no address stays as it is."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address


@lru_cache(65536)
def version_of(text: str) -> int:
    """4 or 6, of an address with or without a prefix length; 0 for what is neither."""
    try:
        return ip_interface(text).version
    except ValueError:
        return 0


def _network_of(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        return text


def holds(cidr: str, address: str) -> bool:
    """Whether the address lies in the network; False for what cannot be read."""
    try:
        return ip_address(address) in ip_network(cidr, strict=False)
    except ValueError:
        return False
