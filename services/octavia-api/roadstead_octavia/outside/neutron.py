"""Neutron over HTTP: look-ups in the caller's name, VIP ports in the service's.

How requests are sent, and what becomes of one that is not answered, is `roadstead.cloud.sdk.neutron_requests`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from roadstead.cloud.sdk.neutron_requests import NetworkRefused, NeutronRequests
from roadstead.cloud.sdk.service_user import ServiceUser
from roadstead.cloud.vip import VIP_OWNERS
from roadstead_octavia.db.port import Row
from roadstead_octavia.settings import OctaviaSettings

log = structlog.get_logger("roadstead.octavia.neutron")

OWNER = "Octavia"
# Where each kind is, and the root object of its answer.
_PLACES = {
    "subnets": ("subnets", "subnet"),
    "ports": ("ports", "port"),
    "networks": ("networks", "network"),
    "qos_policies": ("qos/policies", "policy"),
    "security_groups": ("security-groups", "security_group"),
}
# Kinds that a deployment may let users use without seeing them.
_MAY_BE_INVISIBLE = frozenset(("subnets", "networks", "ports"))

Body = Mapping[str, Any]


def make_network(user: ServiceUser, settings: OctaviaSettings) -> "Neutron":
    return Neutron(
        user,
        threads=settings.cloud_threads,
        endpoint=settings.neutron_endpoint,
        invisible=settings.allow_invisible_resource_usage,
    )


class Neutron:
    """The `Network` of operations.  endpoint: instead of the catalogue's.  invisible: look-ups are the service's."""

    def __init__(
        self, user: ServiceUser, *, threads: int = 16, endpoint: str | None = None, invisible: bool = False
    ) -> None:
        self._invisible = invisible
        self._requests = NeutronRequests(user, threads=threads, endpoint=endpoint)
        self._qos: bool | None = None

    def close(self) -> None:
        self._requests.close()

    # ------------------------------------------------------------ look-ups

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any] | None:
        """The object; None whatever the reason is that it cannot be read."""
        path, root = _PLACES[kind]
        as_service = as_service or token is None or (self._invisible and kind in _MAY_BE_INVISIBLE)
        try:
            answer = await self._requests.ask(
                "GET", f"/{path}/{identifier}", token=None if as_service else token
            )
        except NetworkRefused as error:
            log.info("not found in the network", kind=kind, id=identifier, reason=error.text)
            return None
        found = answer.get(root)
        if not isinstance(found, Mapping):
            return None
        return _port(found) if kind == "ports" else found

    async def has_qos(self) -> bool:
        """Asked once; a cloud that cannot be asked has none for now."""
        if self._qos is None:
            try:
                await self._requests.ask("GET", "/extensions/qos")
            except NetworkRefused as error:
                if error.status == 404:
                    self._qos = False
                return False
            self._qos = True
        return self._qos

    async def availability(self, network_id: str) -> Mapping[str, int]:
        try:
            answer = await self._requests.ask("GET", f"/network-ip-availabilities/{network_id}")
        except NetworkRefused as error:
            log.warning("free addresses are not known", network=network_id, reason=error.text)
            return {}
        rows = (answer.get("network_ip_availability") or {}).get("subnet_ip_availability") or ()
        return {row["subnet_id"]: row["total_ips"] - row["used_ips"] for row in rows}

    # ------------------------------------------------------------ VIP ports

    async def make_vip_port(
        self,
        load_balancer_id: str,
        project_id: str,
        vip: Row,
        additional: Sequence[Row],
        groups: Sequence[str],
    ) -> tuple[Row, Sequence[Row]]:
        """A new port, or the one that the user brought when it has the wanted address.  NetworkRefused."""
        if vip["port_id"]:
            answer = await self._requests.ask("GET", f"/ports/{vip['port_id']}")
            port = answer["port"]
            if not _fits(port, vip):
                owner = port.get("device_owner") or port.get("project_id")
                raise NetworkRefused(
                    400, f"VIP port {port['id']} of {owner} does not have the address that was asked for."
                )
        else:
            answer = await self._requests.ask(
                "POST", "/ports", body=wanted_port(load_balancer_id, project_id, vip, additional, groups)
            )
            port = answer["port"]
        return _placed(vip, port), [_placed(one, port) for one in additional]

    async def remove_vip_port(self, load_balancer_id: str, port_id: str | None) -> None:
        """NetworkRefused when it could not be removed."""
        identifiers = [port_id] if port_id is not None else await self._ports_of(load_balancer_id)
        for identifier in identifiers:
            try:
                await self._requests.ask("DELETE", f"/ports/{identifier}")
            except NetworkRefused as error:
                if error.status != 404:
                    raise

    async def _ports_of(self, load_balancer_id: str) -> list[str]:
        """Ports with the mark of that load balancer that it or a provider made."""
        answer = await self._requests.ask(
            "GET", f"/ports?device_id=lb-{load_balancer_id}&fields=id&fields=device_owner"
        )
        return [port["id"] for port in answer.get("ports") or () if port.get("device_owner") in VIP_OWNERS]


def wanted_port(
    load_balancer_id: str, project_id: str, vip: Row, additional: Sequence[Row], groups: Sequence[str]
) -> dict[str, Any]:
    """The body that makes a VIP port."""
    port: dict[str, Any] = {
        "name": f"octavia-lb-{load_balancer_id}",
        "network_id": vip["network_id"],
        "admin_state_up": False,
        "device_id": f"lb-{load_balancer_id}",
        "device_owner": OWNER,
        "project_id": project_id,
        "fixed_ips": [_fixed(one) for one in (vip, *additional) if one["subnet_id"]],
    }
    if groups:
        port["security_groups"] = list(groups)
    return {"port": port}


def _fixed(row: Row) -> dict[str, Any]:
    address = {"ip_address": row["ip_address"]} if row["ip_address"] else {}
    return {"subnet_id": row["subnet_id"], **address}


def _fits(port: Body, vip: Row) -> bool:
    """Whether the port has the address, or any in the subnet where none was asked for."""
    for ip in port.get("fixed_ips") or ():
        if vip["ip_address"] in (None, ip["ip_address"]) and vip["subnet_id"] in (None, ip["subnet_id"]):
            return True
    return False


def _placed(row: Row, port: Body) -> Row:
    """The row with what the port has in its subnet."""
    fixed = port.get("fixed_ips") or ()
    ip: Body = next((one for one in fixed if row["subnet_id"] in (None, one["subnet_id"])), {})
    return {
        **row,
        "port_id": port["id"],
        "network_id": port["network_id"],
        "subnet_id": ip.get("subnet_id", row["subnet_id"]),
        "ip_address": ip.get("ip_address", row["ip_address"]),
    }


def _port(found: Body) -> Body:
    return {
        **found,
        "security_group_ids": found.get("security_groups") or [],
        "vnic_type": found.get("binding:vnic_type") or "normal",
    }
