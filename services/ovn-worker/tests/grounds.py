"""Two grounds for the same tests of the port to the Northbound database: the model, and a real server."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

from tests.conformance_ovn import laying
from tests.conformance_ovn.server import Client, Ovn

from roadstead_ovn.northbound.model import ModelNorthbound
from roadstead_ovn.northbound.ovsdb import OvsdbNorthbound, Server, Servers
from roadstead_ovn.northbound.port import Northbound
from roadstead_ovn.northbound.wire import Bounds

SUBNETS = (
    ("sub-a", "net-a", "192.0.2.0/24"),
    ("sub-b", "net-b", "198.51.100.0/24"),
    ("sub-6", "net-a", "2001:db8::/64"),
)


class Ground(Protocol):
    @property
    def northbound(self) -> Northbound:
        """What is tested."""

    def transact(self, *operations: Mapping[str, Any]) -> list[Any]:
        """What somebody else writes to the Northbound database."""

    def probe(self, *operations: Mapping[str, Any]) -> list[Any]:
        """The same to the Southbound database."""

    def select(self, table: str) -> list[dict[str, Any]]:
        """Rows as they are in the database, with `_uuid`."""

    async def reconnect(self) -> None:
        """The connection breaks and comes back."""


class ModelGround:
    def __init__(self) -> None:
        self.northbound: ModelNorthbound = ModelNorthbound()

    def transact(self, *operations: Mapping[str, Any]) -> list[Any]:
        return self.northbound.transact(*operations)

    probe = transact

    def select(self, table: str) -> list[dict[str, Any]]:
        tables = self.northbound.tables()
        return [{"_uuid": handle, **row} for handle, row in tables[table].items()]

    async def reconnect(self) -> None:
        self.northbound.cut()
        self.northbound.mend()


class RealGround:
    def __init__(self, ovn: Ovn, northbound: OvsdbNorthbound) -> None:
        self.northbound: OvsdbNorthbound = northbound
        self._ovn = ovn
        self.nb, self.sb = Client(ovn.nb, "OVN_Northbound"), Client(ovn.sb, "OVN_Southbound")

    def transact(self, *operations: Mapping[str, Any]) -> list[Any]:
        return self.nb.transact(*operations)

    def probe(self, *operations: Mapping[str, Any]) -> list[Any]:
        return self.sb.transact(*operations)

    def select(self, table: str) -> list[dict[str, Any]]:
        return (self.sb if table == "Service_Monitor" else self.nb).select(table)

    async def reconnect(self) -> None:
        self._ovn.run("stop", "nb", "--hard")
        self._ovn.run("start", "nb")
        self.nb = Client(self._ovn.nb, "OVN_Northbound")


def servers(ovn: Ovn) -> Servers:
    bounds = Bounds(first_retry=0.05, longest_retry=0.5)
    return Servers(Server((f"unix:{ovn.nb}",)), Server((f"unix:{ovn.sb}",)), bounds)


@asynccontextmanager
async def real_ground(ovn: Ovn) -> AsyncIterator[RealGround]:
    """On an emptied database."""
    client = Client(ovn.nb, "OVN_Northbound")
    client.transact(
        *(
            {"op": "delete", "table": t, "where": []}
            for t in ("Load_Balancer", "Logical_Switch", "Logical_Router")
        )
    )
    client.close()
    northbound = OvsdbNorthbound(servers(ovn))
    await northbound.start()
    try:
        await northbound.ready()
        yield RealGround(ovn, northbound)
    finally:
        await northbound.close()


def world() -> Iterator[list[dict[str, Any]]]:
    """Transactions: the networks of `shapes.facts`, a router between them, machines, and the VIP's port."""
    yield laying.network("net-a")
    yield laying.network("net-b")
    yield laying.router("r1")
    yield from laying.interface("rp-a", "net-a", "r1", "192.0.2.1/24", number=1)
    yield from laying.interface("rp-b", "net-b", "r1", "198.51.100.1/24", number=2)
    vip = laying.PortLaid("vip", "net-a", ("192.0.2.5/24",), "ovn-lb-vip-lb", "ovn-lb:vip", "lb-lb")
    yield laying.switch_port(vip, 3)
    machines = {"net-a": ("192.0.2.10/24", "192.0.2.11/24"), "net-b": ("198.51.100.10/24",)}
    for network, ips in machines.items():
        for number, ip in enumerate(ips, 10):
            port = laying.PortLaid(f"vm-{ip.split('/')[0]}", network, (ip,))
            yield laying.switch_port(port, number)
