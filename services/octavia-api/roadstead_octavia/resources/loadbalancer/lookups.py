"""What a request asks the network about the objects it names.

Look-ups run with the caller's token, so an object that is not theirs is one that does not exist; only what the request did not name itself
(a port's subnet, a network's subnets) is read in the service's name.  Each object is read once a request.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from roadstead_octavia.call import Call
from roadstead_octavia.errors import ApiError, invalid, refuse

Found = Mapping[str, Any]

NOUNS = {
    "ports": "Port",
    "networks": "Network",
    "subnets": "Subnet",
    "qos_policies": "qos_policy",
    "security_groups": "Security Group",
}


def absent(kind: str, identifier: str) -> ApiError:
    """400 for an object of the network that does not exist (for this caller)."""
    return refuse("InvalidSubresource", resource=NOUNS[kind], id=identifier)


class Lookups:
    def __init__(self, call: Call) -> None:
        self._network = call.parts.network
        self._token = call.caller.token
        self._seen: dict[tuple[str, str], Found] = {}

    async def named(self, kind: str, identifier: str) -> Found:
        """An object that the request names; ApiError 400 when the caller has no such object."""
        found = await self._find(kind, identifier, as_service=False)
        if found is None:
            raise absent(kind, identifier)
        return found

    async def subnet(self, identifier: str, *, as_service: bool) -> Found:
        """A subnet of a VIP; ApiError 400 in the words that these have."""
        found = await self._find("subnets", identifier, as_service=as_service)
        if found is None:
            raise invalid(f"Subnet {identifier} not found")
        return found

    async def free_addresses(self, network_id: str) -> Mapping[str, int]:
        return await self._network.availability(network_id)

    async def require_qos(self) -> None:
        """ApiError 400 in a cloud without QoS policies."""
        if not await self._network.has_qos():
            raise invalid("VIP QoS policy is not allowed in this deployment.")

    async def require_groups(self, identifiers: Iterable[str]) -> None:
        """ApiError 400 for the first security group that does not exist."""
        for identifier in identifiers:
            await self.named("security_groups", identifier)

    async def _find(self, kind: str, identifier: str, *, as_service: bool) -> Found | None:
        key = (kind, identifier)
        if key not in self._seen:
            token = None if as_service else self._token
            found = await self._network.find(kind, identifier, token=token, as_service=as_service)
            if found is None:
                return None
            self._seen[key] = found
        return self._seen[key]
