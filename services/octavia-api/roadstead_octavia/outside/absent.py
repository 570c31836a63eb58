"""What stands in for a cloud that nobody set up: a process for development answers, and whatever needs the cloud is refused in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from roadstead_octavia.db.port import Row
from roadstead_octavia.errors import refuse
from roadstead_octavia.outside.network import NetworkRefused

TEXT = (
    "No cloud is set up behind this service: set ROADSTEAD_OCTAVIA_AUTH_URL and ROADSTEAD_OCTAVIA_PASSWORD."
)


class NoNetwork:
    """Nothing is found and no port can be made."""

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any] | None:
        return None

    async def has_qos(self) -> bool:
        return False

    async def availability(self, network_id: str) -> Mapping[str, int]:
        return {}

    async def make_vip_port(
        self,
        load_balancer_id: str,
        project_id: str,
        vip: Row,
        additional: Sequence[Row],
        groups: Sequence[str],
    ) -> tuple[Row, Sequence[Row]]:
        raise NetworkRefused(503, TEXT)

    async def remove_vip_port(self, load_balancer_id: str, port_id: str | None) -> None:
        return


class NoKeys:
    """No reference can be read."""

    async def grant(self, reference: str, token: str | None) -> None:
        raise refuse("CertificateRetrieval", ref=reference)

    async def unreadable(self, references: Sequence[str], token: str | None) -> Sequence[str]:
        return list(references)

    async def secret(self, reference: str, token: str | None) -> str | None:
        return None

    async def bundles(
        self, tls: str | None, sni: Sequence[str], token: str | None
    ) -> tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]]:
        return None, []
