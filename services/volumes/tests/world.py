"""A region with one identity and what a volume needs, and passes over a volume in it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from roadstead.cloud.credentials import Keyring
from roadstead.reconcile.kind import Metadata, Resource
from roadstead.reconcile.offers import Regions
from roadstead.reconcile.views import Directory
from roadstead.region import RegionSpec
from roadstead.subjects import Key
from roadstead.testing.cloudsim.cloud import Cloud as Simulator
from roadstead.testing.cloudsim.faults import Fault, Outcome
from roadstead.testing.cloudsim.keystone_store import Grant
from roadstead.testing.cloudsim.log import Call as Logged
from roadstead.testing.cloudsim.tables import Row
from roadstead.testing.passbench import PassBench, StandingClock, engine, view
from roadstead_volumes.inventory import VolumeClassInventory
from roadstead_volumes.volume import KIND
from roadstead_volumes.volume.model import VolumeSpec, VolumeStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REGION = "11111111-1111-4111-8111-111111111111"
IDENTITY = "22222222-2222-4222-8222-222222222222"
NETWORK = "44444444-4444-4444-8444-444444444444"
VOLUME = "66666666-6666-4666-8666-666666666666"
SERVER = "77777777-7777-4777-8777-777777777777"
OTHER = "88888888-8888-4888-8888-888888888888"
CLASS = "99999999-9999-4999-8999-999999999999"
TENANT = "web"
ENDPOINT = "http://cloud.invalid/identity/v3"


def region_of(*offered: str, metadata: list[dict[str, Any]] | None = None, **openstack: Any) -> RegionSpec:
    """A Region that offers these volume types."""
    section: dict[str, Any] = {"selector": {"ids": list(offered)}}
    if metadata is not None:
        section["metadata"] = metadata
    part = {
        "endpoint": ENDPOINT,
        "serviceAccountSecret": {"name": "x"},
        "blockStorage": {"volumeClasses": section},
        **openstack,
    }
    return RegionSpec.model_validate({"provider": "openstack", "openstack": part})


def spec_of(**changes: Any) -> VolumeSpec:
    base = {"networkID": NETWORK, "volumeClassID": CLASS, "size": "10Gi"}
    return VolumeSpec.model_validate({**base, **changes})


def resource_of(
    spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, *, deleting: bool = False
) -> Resource[VolumeSpec, VolumeStatus]:
    return Resource(
        key=Key(REGION, TENANT, "volume", VOLUME),
        metadata=Metadata(name="data", organizationId="acme", projectId=TENANT),
        spec=spec_of(**(spec or {})),
        status=VolumeStatus.model_validate(status or {}),
        generation=1,
        incarnation=1,
        deleting=deleting,
        conditions={},
    )


@dataclass
class World:
    """The simulated cloud, an identity's project in it, and the service's inventory."""

    clock: StandingClock = field(default_factory=StandingClock)

    def __post_init__(self) -> None:
        self.cloud = Simulator(self.clock)
        self.keyring = Keyring()
        store = self.cloud.keystone.store
        domain = store.new_domain("roadstead")["id"]
        own = store.new_project("provider", domain)["id"]
        self.project: str = store.new_project("tenant", domain)["id"]
        provider: str = store.new_user("provider", domain, "region-word")["id"]
        self.user: str = store.new_user("tenant", domain, "tenant-word")["id"]
        self.secret = {"domain-id": domain, "user-id": provider, "password": "region-word", "project-id": own}
        for user, project, role in (
            (provider, own, "member"),
            (provider, self.project, "manager"),
            (self.user, self.project, "member"),
        ):
            found = store.role_named(role)
            assert found is not None
            store.grants.add(Grant(user, "project", project, found["id"]))
        self.keyring.put_endpoint(REGION, ENDPOINT, None)
        self.keyring.put_region_secret(REGION, self.secret, 1)
        record = {"projectID": self.project, "userID": self.user, "password": "tenant-word"}
        self.keyring.put_identity(REGION, IDENTITY, record, 1)
        self.port = engine(self.cloud, self.keyring, self.clock)
        self.directory = Directory()
        self.directory.put(view("identity", IDENTITY, REGION, TENANT))
        self.put_network()
        self.inventory = VolumeClassInventory(self.port, self.keyring, self.clock, Regions(self.directory))
        self.types = {row["name"]: str(row["id"]) for row in self.cloud.cinder.types}
        self.region = region_of(self.types["standard"])

    def put_network(self, tenant: str = TENANT, identity: str = IDENTITY, version: int = 1) -> None:
        metadata = {"identityId": identity}
        self.directory.put(
            view("network", NETWORK, REGION, tenant, metadata=metadata, resource_version=version)
        )

    def put_region(self, region: RegionSpec, version: int = 1) -> None:
        self.region = region
        spec = region.model_dump(mode="json")
        self.directory.put(view("region", REGION, REGION, "_", spec=spec, resource_version=version))

    def bench(self, **spec: Any) -> PassBench:
        return PassBench(
            KIND,
            Key(REGION, TENANT, "volume", VOLUME),
            {"name": "data", "organizationId": "acme", "projectId": TENANT},
            {"networkID": NETWORK, "volumeClassID": self.types["standard"], "size": "10Gi", **spec},
            self.port,
            self.clock,
            self.keyring,
            region=self.region,
            identity=IDENTITY,
            directory=self.directory,
            extras={"inventory": self.inventory},
        )

    def make(self, name: str, status: str = "available", project: str | None = None) -> Row:
        """A volume of that name in the cloud."""
        cinder = self.cloud.cinder
        kind = cinder.types.get(self.types["standard"])
        assert kind is not None
        row = cinder.volumes_part.make(project or self.project, self.user, 10, kind, name=name)
        self.clock.advance(5)
        self.cloud.settle()
        cinder.volumes_part.set_status(row, status)
        return row

    def volumes(self) -> list[Row]:
        self.cloud.settle()
        return list(self.cloud.cinder.volumes)

    def fail(self, kind: str, **criteria: Any) -> None:
        self.cloud.faults.add(Fault(kind, **criteria))

    def breaks(self, kind: str) -> None:
        """The next change of that kind ends in an error state."""
        self.cloud.faults.add_outcome(Outcome(kind, times=1))

    def calls(self, service: str) -> list[Logged]:
        return [c for c in self.cloud.log if c.service == service]

    def writes(self) -> list[str]:
        return [c.method for c in self.cloud.log.writes(service="volume")]
