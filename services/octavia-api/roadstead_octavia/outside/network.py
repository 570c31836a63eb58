"""Neutron as operations see it.

Look-ups run with the caller's token unless `as_service`; whatever goes wrong in one is `None`, as the original has it: a user learns
nothing about what is not theirs.  The executor on openstacksdk is `outside/neutron.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from roadstead.cloud.sdk.neutron_requests import NetworkRefused
from roadstead_octavia.db.port import Row

__all__ = ["Network", "NetworkRefused"]


class Network(Protocol):
    """kind: subnets, ports, networks, qos_policies, security_groups.

    Objects are plain dicts with Neutron's own field names: a subnet has id, network_id, cidr, ip_version, gateway_ip; a port id,
    network_id, device_id, device_owner, project_id, fixed_ips [{subnet_id, ip_address}], security_group_ids, qos_policy_id; a
    network id, subnets (ids), and so on.
    """

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any] | None:
        """The object, or None."""

    async def has_qos(self) -> bool:
        """Whether the cloud has QoS policies."""

    async def availability(self, network_id: str) -> Mapping[str, int]:
        """Free addresses by subnet id (network-ip-availability, service credentials)."""

    async def make_vip_port(
        self,
        load_balancer_id: str,
        project_id: str,
        vip: Row,
        additional: Sequence[Row],
        groups: Sequence[str],
    ) -> tuple[Row, Sequence[Row]]:
        """Make (or read, when vip.port_id is given) the VIP port: the vip row with ip_address, port_id, network_id, subnet_id filled
        in, and the additional rows likewise.  NetworkRefused."""

    async def remove_vip_port(self, load_balancer_id: str, port_id: str | None) -> None:
        """Remove the port of that load balancer that we made (found by its key when the id is not known); missing is fine."""
