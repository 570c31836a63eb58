"""One region, one identity, and networks in it, on a simulated cloud; requests are counted at the cloud."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Answer, Call, Cloud
from roadstead.reconcile.kind import Kind
from roadstead.reconcile.views import Directory
from roadstead.region import RegionSpec
from roadstead.subjects import Key
from roadstead.testing.cloudsim.cloud import Cloud as Simulator
from roadstead.testing.cloudsim.faults import Fault
from roadstead.testing.cloudsim.keystone_store import Grant
from roadstead.testing.cloudsim.log import Call as Logged
from roadstead.testing.passbench import MemoryBook, PassBench, StandingClock, engine, view
from roadstead_network.external import ExternalNetworks
from roadstead_network.network import KIND as NETWORK
from roadstead_network.securitygroup import KIND as GROUP

REGION_ID = "11111111-1111-4111-8111-111111111111"
IDENTITY_ID = "22222222-2222-4222-8222-222222222222"
NETWORK_ID = "44444444-4444-4444-8444-444444444444"
GROUP_ID = "55555555-5555-4555-8555-555555555555"
OTHER_ID = "66666666-6666-4666-8666-666666666666"
TENANT = "web"
SPEC: dict[str, Any] = {"prefix": "192.168.10.0/24", "dnsNameservers": ["9.9.9.9"]}
PHYSICAL = {"physicalNetwork": "physnet1", "vlan": {"segments": [{"startId": 100, "endId": 101}]}}


@dataclass
class World:
    """`provider`: the region's providerNetworks section."""

    provider: Mapping[str, Any] | None = None
    clock: StandingClock = field(default_factory=StandingClock)
    documents: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cloud = Simulator(self.clock)
        self.keyring = Keyring()
        store = self.cloud.keystone.store
        domain = store.new_domain("roadstead")["id"]
        own = store.new_project("provider", domain)["id"]
        self.project: str = store.new_project("tenant", domain)["id"]
        self.region_user: str = store.new_user("provider", domain, "region-word")["id"]
        self.user: str = store.new_user("tenant", domain, "tenant-word")["id"]
        self.grant(self.region_user, own, "member")
        self.grant(self.region_user, own, "manager")
        self.grant(self.region_user, self.project, "manager")
        self.grant(self.user, self.project, "member")
        secret = {
            "domain-id": domain,
            "user-id": self.region_user,
            "password": "region-word",
            "project-id": own,
        }
        self.keyring.put_endpoint(REGION_ID, "http://cloud.invalid/identity/v3", None)
        self.keyring.put_region_secret(REGION_ID, secret, 1)
        record = {"projectID": self.project, "userID": self.user, "password": "tenant-word"}
        self.keyring.put_identity(REGION_ID, IDENTITY_ID, record, 1)
        self.port = engine(self.cloud, self.keyring, self.clock)
        self.inventory = ExternalNetworks(self.port, self.keyring, self.clock)
        self.directory = Directory()
        self.directory.put(self.identity_view(TENANT))

    def grant(self, user: str, project: str, role: str) -> None:
        store = self.cloud.keystone.store
        found = store.role_named(role)
        assert found is not None
        store.grants.add(Grant(user, "project", project, found["id"]))

    def identity_view(self, tenant: str, version: int = 1) -> Any:
        status = {"projectReady": True, "projectId": self.project}
        return view("identity", IDENTITY_ID, REGION_ID, tenant, status=status, resource_version=version)

    def region(self) -> RegionSpec:
        part: dict[str, Any] = {
            "endpoint": "http://cloud.invalid/identity/v3",
            "serviceAccountSecret": {"name": "c"},
        }
        if self.provider is not None:
            part["network"] = {"providerNetworks": dict(self.provider)}
        return RegionSpec.model_validate({"provider": "openstack", "openstack": part})

    def bench(
        self, kind: Kind[Any, Any, Any], ident: str, spec: dict[str, Any], **metadata: str
    ) -> PassBench:
        return PassBench(
            kind,
            Key(REGION_ID, TENANT, kind.name, ident),
            {"name": "mine", "organizationId": "acme", "projectId": TENANT, **metadata},
            dict(spec),
            self.port,
            self.clock,
            self.keyring,
            region=self.region(),
            identity=IDENTITY_ID,
            directory=self.directory,
            book=MemoryBook(documents=self.documents),
            extras={"inventory": self.inventory},
        )

    def network(self, ident: str = NETWORK_ID, **spec: Any) -> PassBench:
        return self.bench(NETWORK, ident, {**SPEC, **spec}, identityId=IDENTITY_ID)

    def group(self, *rules: dict[str, Any]) -> PassBench:
        return self.bench(GROUP, GROUP_ID, {"rules": list(rules)}, networkId=NETWORK_ID)

    def fail(self, kind: str, **criteria: Any) -> Fault:
        """Put one fault in force."""
        fault = Fault(kind, **criteria)
        self.cloud.faults.add(fault)
        return fault

    def calls(self) -> list[Logged]:
        """Requests without logins."""
        return [c for c in self.cloud.log if not c.path.endswith("/auth/tokens")]

    def writes(self) -> list[str]:
        """`METHOD path` below /network/v2.0, ids replaced, of everything that may change something."""
        return [f"{c.method} {_template(c.path)}" for c in self.cloud.log.writes()]

    def ours(self) -> dict[str, list[str]]:
        """Names of what the tenant's project holds in Neutron."""
        dump = self.cloud.neutron.dump()
        return {
            kind: sorted(row["name"] for row in rows if row["project_id"] == self.project)
            for kind, rows in dump.items()
        }

    def taken(self) -> list[int]:
        """VLAN ids in the table."""
        return [entry["id"] for entry in self.documents.get(f"vlan.{REGION_ID}", {}).get("allocations", ())]


def _template(path: str) -> str:
    return "/".join(
        "*" if len(part) == 36 else part for part in path.removeprefix("/network/v2.0/").split("/")
    )


@dataclass
class Unfiltered:
    """A port whose cloud ignores every filter of a list."""

    port: Cloud

    async def call(self, call: Call) -> Answer:
        if call.verb.endswith(".list") and "query" in call.args:
            call = replace(call, args={**call.args, "query": {}})
        return await self.port.call(call)
