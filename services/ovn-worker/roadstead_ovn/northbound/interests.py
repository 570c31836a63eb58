"""Who is to be woken by what: load balancers by the facts that they depend on, and wakes that wait to be taken.

A fact is named by a key: a network, a router, a port, an address on a network, a subnet's port for probes, a machine's probes, or the
rows themselves. Keys come from the last look at the facts; of a load balancer that has not been looked at, from its rows.
"""

import asyncio
from collections.abc import Iterable, Sequence

from roadstead_ovn.northbound.port import Source, Wake

Key = tuple[str, ...]
MANY = 5_000  # wakes of one source for more load balancers than this are one for all


def network_key(network_id: str) -> Key:
    return "network", network_id


def router_key(router_id: str) -> Key:
    return "router", router_id


def port_key(port_id: str) -> Key:
    return "port", port_id


def address_key(network_id: str, address: str) -> Key:
    return "address", network_id, address


def monitor_port_key(subnet_id: str) -> Key:
    return "monitor port", subnet_id


def probe_key(port_id: str) -> Key:
    return "probe", port_id


class Interests:
    """Load balancers by key, and back."""

    def __init__(self) -> None:
        self._keys: dict[str, frozenset[Key]] = {}
        self._interested: dict[Key, set[str]] = {}
        self._seen: set[str] = set()

    def look(self, load_balancer_id: str, keys: frozenset[Key]) -> None:
        """It has just looked at these."""
        self._seen.add(load_balancer_id)
        self._set(load_balancer_id, keys)

    def guess(self, load_balancer_id: str, keys: frozenset[Key]) -> None:
        """Its rows name these; what it looked at counts for more."""
        if load_balancer_id not in self._seen:
            self._set(load_balancer_id, keys)

    def has_looked(self, load_balancer_id: str) -> bool:
        return load_balancer_id in self._seen

    def forget(self, load_balancer_id: str) -> None:
        self._seen.discard(load_balancer_id)
        self._set(load_balancer_id, frozenset())

    def of(self, keys: Iterable[Key]) -> set[str]:
        found: set[str] = set()
        for key in keys:
            found |= self._interested.get(key, set())
        return found

    def _set(self, load_balancer_id: str, keys: frozenset[Key]) -> None:
        old = self._keys.get(load_balancer_id, frozenset())
        for key in old - keys:
            interested = self._interested[key]
            interested.discard(load_balancer_id)
            if not interested:
                del self._interested[key]
        for key in keys - old:
            self._interested.setdefault(key, set()).add(load_balancer_id)
        if keys:
            self._keys[load_balancer_id] = keys
        else:
            self._keys.pop(load_balancer_id, None)


class Wakes:
    """Wakes that nobody has taken yet, one for each source."""

    def __init__(self) -> None:
        self._waiting: dict[Source, set[str] | None] = {}
        self._event = asyncio.Event()

    def add(self, source: Source, ids: Iterable[str] | None) -> None:
        """ids: None for all."""
        known = self._waiting.get(source, set())
        if ids is None or known is None:
            self._waiting[source] = None
        else:
            known.update(ids)
            if not known:
                return
            self._waiting[source] = known if len(known) <= MANY else None
        self._event.set()

    async def take(self) -> Sequence[Wake]:
        await self._event.wait()
        self._event.clear()
        waiting, self._waiting = self._waiting, {}
        return [Wake(s, None if ids is None else frozenset(ids)) for s, ids in waiting.items()]
