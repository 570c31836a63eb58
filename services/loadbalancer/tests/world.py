"""A region with one identity and one network, and passes over a load balancer in it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from roadstead.cloud.credentials import Keyring
from roadstead.reconcile.kind import Metadata, Resource
from roadstead.reconcile.views import Directory
from roadstead.region import RegionSpec
from roadstead.subjects import Key
from roadstead.testing.cloudsim.caller import Caller
from roadstead.testing.cloudsim.cloud import Cloud as Simulator
from roadstead.testing.cloudsim.faults import Fault, Outcome
from roadstead.testing.cloudsim.keystone_store import Grant
from roadstead.testing.cloudsim.log import Call as Logged
from roadstead.testing.cloudsim.tables import Row
from roadstead.testing.passbench import PassBench, StandingClock, engine, view
from roadstead_loadbalancer.loadbalancer import KIND
from roadstead_loadbalancer.loadbalancer.model import LoadBalancerSpec, LoadBalancerStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REGION = "11111111-1111-4111-8111-111111111111"
IDENTITY = "22222222-2222-4222-8222-222222222222"
NETWORK = "44444444-4444-4444-8444-444444444444"
BALANCER = "66666666-6666-4666-8666-666666666666"
OTHER = "88888888-8888-4888-8888-888888888888"
TENANT = "web"
ENDPOINT = "http://cloud.invalid/identity/v3"
PREFIX = "192.168.10.0/24"
NAME = f"lb-{BALANCER}"

WEB: dict[str, Any] = {
    "name": "web",
    "protocol": "tcp",
    "port": 80,
    "pool": {
        "members": [{"address": "192.168.10.200", "port": 8080}, {"address": "192.168.10.201", "port": 8080}],
        "healthCheck": {"intervalSeconds": 10, "timeoutSeconds": 5, "unhealthyThreshold": 3},
    },
}
DNS: dict[str, Any] = {"name": "dns", "protocol": "udp", "port": 53, "pool": {"healthCheck": {}}}


def spec_of(**changes: Any) -> LoadBalancerSpec:
    return LoadBalancerSpec.model_validate({"listeners": [WEB, DNS], **changes})


def resource_of(
    spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, *, deleting: bool = False
) -> Resource[LoadBalancerSpec, LoadBalancerStatus]:
    return Resource(
        key=Key(REGION, TENANT, "loadbalancer", BALANCER),
        metadata=Metadata(name="front", organizationId="acme", projectId=TENANT, networkId=NETWORK),
        spec=spec_of(**(spec or {})),
        status=LoadBalancerStatus.model_validate(status or {}),
        generation=1,
        incarnation=1,
        deleting=deleting,
        conditions={},
    )


@dataclass
class World:
    """The simulated cloud with the identity's project and network in it; `provider` is the one that Octavia takes by default."""

    provider: str = "ovn"
    algorithm: str = "SOURCE_IP_PORT"
    clock: StandingClock = field(default_factory=StandingClock)

    def __post_init__(self) -> None:
        self.cloud = Simulator(self.clock)
        self.cloud.settings.lb_default_provider = self.provider
        self.keyring = Keyring()
        store = self.cloud.keystone.store
        domain = store.new_domain("roadstead")["id"]
        own = store.new_project("provider", domain)["id"]
        self.project: str = store.new_project("tenant", domain)["id"]
        provider: str = store.new_user("provider", domain, "region-word")["id"]
        self.user: str = store.new_user("tenant", domain, "tenant-word")["id"]
        for user, project, role in (
            (provider, own, "member"),
            (provider, self.project, "manager"),
            (self.user, self.project, "member"),
            (self.user, self.project, "load-balancer_member"),
        ):
            found = store.role_named(role)
            assert found is not None
            store.grants.add(Grant(user, "project", project, found["id"]))
        secret = {"domain-id": domain, "user-id": provider, "password": "region-word", "project-id": own}
        self.keyring.put_endpoint(REGION, ENDPOINT, None)
        self.keyring.put_region_secret(REGION, secret, 1)
        record = {"projectID": self.project, "userID": self.user, "password": "tenant-word"}
        self.keyring.put_identity(REGION, IDENTITY, record, 1)
        self.port = engine(self.cloud, self.keyring, self.clock)
        scope = {"project": {"id": self.project}}
        self.manager = Caller.login(self.cloud, {"id": provider}, "region-word", scope)
        self.tenant = Caller.login(self.cloud, {"id": self.user}, "tenant-word", scope)
        self.subnet = self._network()
        self.directory = Directory()
        self.directory.put(view("identity", IDENTITY, REGION, TENANT))
        self.put_network()
        self.cloud.log.clear()

    def _network(self) -> str:
        def call(method: str, path: str, body: Any = None) -> Any:
            return self.manager.call("network", method, f"/v2.0{path}", body)

        name = f"network-{NETWORK}"
        network = call("POST", "/networks", {"network": {"name": name}})["network"]
        wish = {"name": name, "network_id": network["id"], "ip_version": 4, "cidr": PREFIX}
        subnet = call("POST", "/subnets", {"subnet": wish})["subnet"]
        listed = call("GET", "/networks")["networks"]
        external = next(n["id"] for n in listed if n["router:external"])
        gateway = {"name": name, "external_gateway_info": {"network_id": external}}
        router = call("POST", "/routers", {"router": gateway})["router"]
        call("PUT", f"/routers/{router['id']}/add_router_interface", {"subnet_id": subnet["id"]})
        return str(subnet["id"])

    def put_network(self, *, tenant: str = TENANT, identity: str = IDENTITY, version: int = 1) -> None:
        found = view(
            "network",
            NETWORK,
            REGION,
            tenant,
            metadata={"identityId": identity},
            spec={"prefix": PREFIX},
            status={"openstack": {"subnetID": self.subnet}},
            resource_version=version,
        )
        self.directory.put(found)

    def bench(self, *, ident: str = BALANCER, **spec: Any) -> PassBench:
        part = {
            "endpoint": ENDPOINT,
            "serviceAccountSecret": {"name": "x"},
            "loadBalancer": {"algorithm": self.algorithm},
        }
        return PassBench(
            KIND,
            Key(REGION, TENANT, "loadbalancer", ident),
            {"name": "front", "organizationId": "acme", "projectId": TENANT, "networkId": NETWORK},
            {"listeners": [WEB, DNS], **spec},
            self.port,
            self.clock,
            self.keyring,
            region=RegionSpec.model_validate({"provider": "openstack", "openstack": part}),
            identity=IDENTITY,
            directory=self.directory,
        )

    # ------------------------------------------------------------ what a test looks at

    def rest(self) -> None:
        """Let everything in the cloud come to its end."""
        self.clock.advance(30)
        self.cloud.settle()

    def balancers(self) -> list[Row]:
        self.cloud.settle()
        return list(self.cloud.octavia.state.lbs)

    @property
    def balancer(self) -> Row:
        (found,) = self.balancers()
        return found

    def parts(self, kind: str) -> list[Row]:
        """listeners, pools, members or monitors."""
        self.cloud.settle()
        return list(getattr(self.cloud.octavia.state, kind))

    def addresses(self) -> list[Row]:
        return list(self.cloud.neutron.state.floating_ips)

    def vip_ports(self) -> list[Row]:
        self.cloud.settle()
        return [p for p in self.cloud.neutron.state.ports if p["device_owner"] in ("ovn-lb:vip", "Octavia")]

    def calls(self, service: str | None = None) -> list[Logged]:
        return [c for c in self.cloud.log if service is None or c.service == service]

    def writes(self) -> list[str]:
        """`METHOD noun` of everything that may change something."""
        return [f"{c.method} {_noun(c.path)}" for c in self.cloud.log.writes()]

    def fail(self, kind: str, **criteria: Any) -> None:
        self.cloud.faults.add(Fault(kind, **criteria))

    def breaks(self, kind: str) -> None:
        """The next change of that kind ends in ERROR."""
        self.cloud.faults.add_outcome(Outcome(kind, times=1))


def _noun(path: str) -> str:
    return next(part for part in reversed(path.split("/")) if len(part) != 36)
