"""Values that the tests of servers start from: a wanted server, and a settled observation of it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from roadstead.reconcile.decision import Decision
from roadstead.reconcile.kind import Metadata, Resource
from roadstead.reconcile.status import conditions_of, merged
from roadstead.subjects import Key
from roadstead_compute.server.decide import decide
from roadstead_compute.server.model import ServerSpec, ServerStatus, server_id
from roadstead_compute.server.seen import AddressSeen, PortSeen, Seen, ServerSeen, VolumeSeen

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Build:
    """Builders; every argument is a change to the settled case."""

    region = "11111111-1111-4111-8111-111111111111"
    project = "proj"
    network = "22222222-2222-4222-8222-222222222222"
    image = "33333333-3333-4333-8333-333333333333"
    other_image = "44444444-4444-4444-8444-444444444444"
    group = "55555555-5555-4555-8555-555555555555"
    volume_id = "66666666-6666-4666-8666-666666666666"
    name = "web-1"
    id = server_id(network, name)
    now = NOW

    def spec(self, **changes: Any) -> ServerSpec:
        base: dict[str, Any] = {
            "flavorID": "f-1",
            "image": {"id": self.image},
            "networks": [{"id": self.network}],
            "securityGroups": [{"id": self.group}],
        }
        return ServerSpec.model_validate({**base, **changes})

    def metadata(self, **changes: Any) -> Metadata:
        return Metadata.model_validate(
            {"name": self.name, "organizationId": "org", "projectId": self.project, **changes}
        )

    def key(self) -> Key:
        return Key(self.region, self.project, "server", self.id)

    def resource(
        self,
        spec: dict[str, Any] | None = None,
        status: dict[str, Any] | None = None,
        *,
        deleting: bool = False,
        ever: bool = False,
        generation: int = 1,
    ) -> Resource[ServerSpec, ServerStatus]:
        """status: changes as decisions give them, stamps of Healthy and Active among them."""
        document = merged({}, status or {}, NOW)
        conditions = conditions_of(document)
        document.pop("conditions", None)
        return Resource(
            key=self.key(),
            metadata=self.metadata(),
            spec=self.spec(**(spec or {})),
            status=ServerStatus.model_validate(document),
            generation=generation,
            incarnation=1,
            deleting=deleting,
            conditions=conditions,
            ever_provisioned=ever,
        )

    def server(self, **changes: Any) -> ServerSeen:
        return replace(ServerSeen("nova-1", "ACTIVE", None, True, self.image), **changes)

    def port(self, **changes: Any) -> PortSeen:
        base = PortSeen(
            "port-1",
            "neutron-net",
            "192.0.2.10",
            frozenset({"neutron-group"}),
            frozenset(),
            "nova-1",
            "fa:16:3e:00:00:01",
        )
        return replace(base, **changes)

    def seen(self, **changes: Any) -> Seen:
        base = Seen(
            server=self.server(),
            port=self.port(),
            network_id="neutron-net",
            groups=("neutron-group",),
        )
        return replace(base, **changes)

    def absent(self, **changes: Any) -> Seen:
        """Nothing of the server is there yet; network and groups are."""
        return self.seen(**{"server": None, "port": None, **changes})

    def address(self, number: int = 1) -> AddressSeen:
        return AddressSeen(f"fip-{number}", f"198.51.100.{number}")

    def volume(self, **changes: Any) -> VolumeSeen:
        base = VolumeSeen(self.volume_id, ready=True, claimed=True, cloud_id="cinder-1", status="available")
        return replace(base, **changes)

    def attached(self, **changes: Any) -> VolumeSeen:
        return self.volume(
            **{"status": "in-use", "servers": frozenset({"nova-1"}), "device": "/dev/vdb", **changes}
        )

    def decide(self, resource: Resource[ServerSpec, ServerStatus], seen: Seen) -> Decision:
        return decide(resource, seen, NOW)


@pytest.fixture(scope="session")
def build() -> Build:
    return Build()
