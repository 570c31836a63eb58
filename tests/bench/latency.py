"""How long an idle platform takes from a message to the first request that the cloud receives for it.

Services run as processes of their own; both ends are told by clocks of one machine: before publishing here, on arrival there.
"""

import asyncio
import random
import time
from datetime import datetime
from math import inf
from typing import Any

from roadstead.subjects import Key

from .figures import Figure, of_times
from .ground import BenchFailed, Ground, services_as_processes

GROUP = "latency with idle services"
NETWORK = {"prefix": "192.168.0.0/24", "dnsNameservers": ["192.0.2.53"]}
QUIET = (0.05, 0.15)  # seconds between two samples, at random so that no timer of the platform keeps step


def rules(port: int) -> dict[str, Any]:
    """The spec of a security group."""
    return {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": port}}]}


async def measure(g: Ground, samples: int) -> list[Figure]:
    """Registers the region when it is not yet there; leaves a settled identity and network behind."""
    async with services_as_processes(g):
        await g.register()
        identity, network = g.key("identity"), g.key("network")
        async with g.following() as told:
            await g.publish(identity, g.envelope(identity, "tenant", {}))
            await told.provisioned(identity)
            await g.publish(network, g.envelope(network, "net", NETWORK, identityId=identity.id))
            await told.provisioned(network)
        groups = [g.key("securitygroup") for _ in range(samples)]
        fresh = [await _first_request(g, key, network, 22, 1) for key in groups]
        edits = [await _first_request(g, key, network, 443, 2) for key in groups]
        fewer = range(max(5, samples // 4))
        waits = [await _after_status(g, network_first=False) for _ in fewer]
        early = [await _after_status(g, network_first=True) for _ in fewer]
    return [
        of_times(GROUP, "spec of a new security group to first request", fresh, aim=(20.0, 60.0)),
        of_times(GROUP, "edit of a security group to first request", edits, aim=(20.0, 60.0)),
        of_times(GROUP, "STATUS of an identity to its network's first request", waits, aim=(50.0, inf)),
        of_times(GROUP, "the same, the network published before the identity", early, aim=(50.0, inf)),
    ]


async def _first_request(g: Ground, key: Key, network: Key, port: int, generation: int) -> float:
    """Seconds from publishing a spec to the first request it causes."""
    await asyncio.sleep(random.uniform(*QUIET))
    since = g.cloud_sequence()
    async with g.following([key]) as told:
        body = g.envelope(key, f"group-{key.id[:8]}", rules(port), networkId=network.id)
        began = time.time()
        await g.publish(key, body)
        await told.provisioned(key, generation)
    return _arrival(g, since) - began


async def _after_status(g: Ground, *, network_first: bool) -> float:
    """Seconds from the STATUS that says an identity is ready to the first request for the network that waits for it.

    network_first: the network comes before the identity, and waits for what nobody knows yet.
    """
    identity, network = g.key("identity"), g.key("network")
    wanted = [
        (identity, g.envelope(identity, "tenant", {})),
        (network, g.envelope(network, "net", NETWORK, identityId=identity.id)),
    ]
    await asyncio.sleep(random.uniform(*QUIET))
    async with g.following([identity, network]) as told:
        since = g.cloud_sequence()
        for key, body in reversed(wanted) if network_first else wanted:
            await g.publish(key, body)
            await asyncio.sleep(0.2 if network_first else 0.0)
        ready = await told.provisioned(identity)
        await told.provisioned(network)
    return _arrival(g, since, after=ready) - ready


def _arrival(g: Ground, since: int, after: float = 0.0) -> float:
    """When the first call after both arrived."""
    for call in g.cloud_calls(since):
        moment = datetime.fromisoformat(call["at"]).timestamp()
        if moment >= after:
            return moment
    raise BenchFailed("the cloud was asked nothing")
