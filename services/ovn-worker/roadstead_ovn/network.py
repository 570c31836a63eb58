"""Neutron as the worker needs it: subnets to read, ports to make and remove, floating IPs to have computed anew."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlencode

from roadstead.cloud.sdk.neutron_requests import NetworkRefused, NeutronRequests
from roadstead_ovn.settings import OvnSettings

__all__ = ["Network", "NetworkRefused", "Neutron", "NoNetwork", "network_of"]

AT_ONCE = 40  # ids in one request: addresses may not become too long

Json = Mapping[str, Any]


class Network(Protocol):
    """Objects are dicts under Neutron's own field names.  Everything raises NetworkRefused."""

    async def subnets(self, identifiers: Sequence[str]) -> Sequence[Json]:
        """Those of them that exist: id, network_id, cidr."""

    async def port(self, identifier: str) -> Json | None: ...

    async def ports_named(self, name: str, network_id: str) -> Sequence[Json]: ...

    async def ports_of(self, identifiers: Sequence[str]) -> Sequence[Json]:
        """Those of them that exist: id."""

    async def ports_owned(self, owners: Sequence[str]) -> Sequence[Json]:
        """Ports with one of these device owners: id.  One request; not all of them where the service bounds its answers."""

    async def make_port(self, body: Json) -> Json: ...

    async def remove_port(self, identifier: str) -> None:
        """Missing is fine."""

    async def recompute_floating_ip(self, address: str) -> None:
        """Have the network service write the NAT row of that floating IP again; one that is gone is fine."""

    def close(self) -> None: ...


class Neutron:
    """The real one."""

    def __init__(self, requests: NeutronRequests) -> None:
        self._requests = requests

    def close(self) -> None:
        self._requests.close()

    async def subnets(self, identifiers: Sequence[str]) -> Sequence[Json]:
        found: list[Json] = []
        for begin in range(0, len(identifiers), AT_ONCE):
            some = identifiers[begin : begin + AT_ONCE]
            query = [*(("id", one) for one in some), *(("fields", f) for f in ("id", "network_id", "cidr"))]
            found += _listed(await self._requests.ask("GET", f"/subnets?{urlencode(query)}"), "subnets")
        return found

    async def port(self, identifier: str) -> Json | None:
        try:
            answer = await self._requests.ask("GET", f"/ports/{identifier}")
        except NetworkRefused as error:
            if error.status == 404:
                return None
            raise
        return _object(answer, "port")

    async def ports_named(self, name: str, network_id: str) -> Sequence[Json]:
        query = urlencode({"name": name, "network_id": network_id})
        return _listed(await self._requests.ask("GET", f"/ports?{query}"), "ports")

    async def ports_of(self, identifiers: Sequence[str]) -> Sequence[Json]:
        found: list[Json] = []
        for begin in range(0, len(identifiers), AT_ONCE):
            query = [*(("id", one) for one in identifiers[begin : begin + AT_ONCE]), ("fields", "id")]
            found += _listed(await self._requests.ask("GET", f"/ports?{urlencode(query)}"), "ports")
        return found

    async def ports_owned(self, owners: Sequence[str]) -> Sequence[Json]:
        query = urlencode([*(("device_owner", owner) for owner in owners), ("fields", "id")])
        return _listed(await self._requests.ask("GET", f"/ports?{query}"), "ports")

    async def make_port(self, body: Json) -> Json:
        return _object(await self._requests.ask("POST", "/ports", body={"port": body}), "port")

    async def remove_port(self, identifier: str) -> None:
        try:
            await self._requests.ask("DELETE", f"/ports/{identifier}")
        except NetworkRefused as error:
            if error.status != 404:
                raise

    async def recompute_floating_ip(self, address: str) -> None:
        query = urlencode({"floating_ip_address": address})
        found = _listed(await self._requests.ask("GET", f"/floatingips?{query}"), "floatingips")
        for item in found:
            same = {"floatingip": {"description": item.get("description") or ""}}
            try:
                await self._requests.ask("PUT", f"/floatingips/{item['id']}", body=same)
            except NetworkRefused as error:
                if error.status != 404:
                    raise


class NoNetwork:
    """What stands in for a network service that nobody set up."""

    text = "No network service is set up behind this worker: set ROADSTEAD_OVN_AUTH_URL and ROADSTEAD_OVN_PASSWORD."

    def close(self) -> None:
        return

    async def subnets(self, identifiers: Sequence[str]) -> Sequence[Json]:
        raise NetworkRefused(None, self.text)

    async def port(self, identifier: str) -> Json | None:
        raise NetworkRefused(None, self.text)

    async def ports_named(self, name: str, network_id: str) -> Sequence[Json]:
        raise NetworkRefused(None, self.text)

    async def ports_of(self, identifiers: Sequence[str]) -> Sequence[Json]:
        raise NetworkRefused(None, self.text)

    async def ports_owned(self, owners: Sequence[str]) -> Sequence[Json]:
        raise NetworkRefused(None, self.text)

    async def make_port(self, body: Json) -> Json:
        raise NetworkRefused(None, self.text)

    async def remove_port(self, identifier: str) -> None:
        raise NetworkRefused(None, self.text)

    async def recompute_floating_ip(self, address: str) -> None:
        raise NetworkRefused(None, self.text)


def network_of(settings: OvnSettings) -> Network:
    """Neutron, or what refuses in words when no cloud is set up.  BadSettings."""
    user = settings.service_user()
    if user is None:
        return NoNetwork()
    return Neutron(
        NeutronRequests(user, threads=settings.neutron_threads, endpoint=settings.neutron_endpoint)
    )


def is_passing(error: NetworkRefused) -> bool:
    """Whether it may be otherwise later: no answer, trouble of the service's own, a lock, a limit of requests."""
    return error.status is None or error.status >= 500 or error.status in (401, 408, 409, 423, 429)


def _object(answer: Json, name: str) -> Json:
    value = answer.get(name)
    if not isinstance(value, Mapping):
        raise NetworkRefused(None, f"the network service answered without {name}")
    return value


def _listed(answer: Json, name: str) -> Sequence[Json]:
    value = answer.get(name)
    if not isinstance(value, list):
        raise NetworkRefused(None, f"the network service answered without {name}")
    return value
