"""A region with one identity, one network and what a server needs, and passes over a server in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import Call, Principal, PrivilegedPrincipal, RegionDomain, RegionProject, Scope
from roadstead.reconcile.decision import Done
from roadstead.reconcile.drive import Ending, Memory
from roadstead.reconcile.kind import Resource
from roadstead.reconcile.status import merged
from roadstead.region import RegionSpec
from roadstead.subjects import Key
from roadstead.testing.cloudsim.caller import Caller
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.faults import Fault, Outcome
from roadstead.testing.cloudsim.log import Call as Logged
from roadstead.testing.passbench import NoRequests, PassBench, StandingClock, engine, view
from roadstead_compute.server import KIND
from roadstead_compute.server.model import server_id

REGION = "11111111-1111-4111-8111-111111111111"
IDENTITY = "99999999-9999-4999-8999-999999999999"
NETWORK = "22222222-2222-4222-8222-222222222222"
GROUP = "55555555-5555-4555-8555-555555555555"
VOLUME = "66666666-6666-4666-8666-666666666666"
PROJECT = "proj"
ENDPOINT = "http://cloud.invalid/identity/v3"


@dataclass
class Flavor:
    disk: int = 50
    architecture: str = "x86_64"
    baremetal: bool = False
    pinnedOnly: bool = False


@dataclass
class Image:
    status: str = "ready"
    sizeGiB: int = 1
    architecture: str = "x86_64"
    virtualization: str = "any"
    organizationID: str | None = None


@dataclass
class Offered:
    """An inventory in which every id is offered unless a test says otherwise."""

    ready: bool = True
    flavors: dict[str, Any] = field(default_factory=dict)
    images: dict[str, Any] = field(default_factory=dict)

    def loaded(self, region: str) -> bool:
        return self.ready

    def flavor(self, region: str, ident: str) -> Any:
        return self.flavors.get(ident, Flavor())

    def image(self, region: str, ident: str) -> Any:
        return self.images.get(ident, Image())


@dataclass
class Bench(PassBench):
    """Passes that remember what the loop does: creates without an answer, what was made, whether it was ever provisioned."""

    ever: bool = False
    made: dict[str, int] = field(default_factory=dict)

    def memory(self) -> Memory:
        return replace(super().memory(), ever=self.ever, made=self.made)

    def resource(self) -> Resource[Any, Any]:
        return replace(super().resource(), ever_provisioned=self.ever)

    async def run(self) -> Ending:
        open_before = self.asked
        ending = await super().run()
        self.asked = (*open_before, *self.asked)
        for write in self.writes:
            if write["creates"] and (not write["answered"] or write["outcome"] == "ok"):
                self.made[write["act"]] = self.made.get(write["act"], 0) + 1
        self.ever = self.ever or (isinstance(ending.outcome, Done) and not self.deleting)
        return ending


class Scene:
    """Everything of one test; `bench` runs the passes."""

    def __init__(self) -> None:
        self.clock = StandingClock()
        self.cloud = Cloud(self.clock)
        self.keyring = Keyring()
        self.engine: CloudEngine = engine(self.cloud, self.keyring, self.clock)
        self.inventory = Offered()
        self.claims: dict[str, str] = {}
        self.principal = Principal(REGION, IDENTITY)
        self.manager = PrivilegedPrincipal(REGION, IDENTITY)
        self.bench: Bench
        self.project_id = ""

    # ------------------------------------------------------------ set-up

    async def call(self, scope: Scope, service: str, verb: str, **args: Any) -> Any:
        return (await self.engine.call(Call(scope, service, verb, args))).value

    async def open(self) -> None:
        """What region and identity leave behind: users, grants, key pair, network with router, group, images."""
        self._register()
        region = RegionDomain(REGION)
        roles = {r["name"]: r["id"] for r in await self.call(region, "identity", "role.list")}
        secret = self.keyring.region(REGION)
        assert secret is not None
        project = await self.call(
            region,
            "identity",
            "project.create",
            json={"project": {"name": "identity", "domain_id": secret.domain_id}},
        )
        user = await self.call(
            region,
            "identity",
            "user.create",
            json={"user": {"name": "identity", "domain_id": secret.domain_id, "password": "pw"}},
        )
        self.project_id = project["id"]
        for who, role in (
            (secret.user_id, "manager"),
            (user["id"], "member"),
            (user["id"], "load-balancer_member"),
        ):
            await self.call(
                region, "identity", "grant.put", project=self.project_id, user=who, role=roles[role]
            )
        record = {"projectID": self.project_id, "userID": user["id"], "password": "pw"}
        self.keyring.put_identity(REGION, IDENTITY, record, 1)
        self.clock.advance(2)
        await self.call(
            self.principal,
            "compute",
            "keypair.create",
            json={"keypair": {"name": "unikorn-openstack-provider", "type": "ssh", "public_key": PUBLIC_KEY}},
        )
        await self._network()
        self.images = {
            i["name"]: i["id"] for i in await self.call(RegionProject(REGION), "image", "image.list")
        }
        self.flavors = {
            f["name"]: f["id"] for f in await self.call(RegionProject(REGION), "compute", "flavor.detail")
        }
        self.bench = self._bench()
        self.forget()

    def _register(self) -> None:
        admin = Caller.admin(self.cloud)
        domain = self._admin(admin, "POST", "/v3/domains", {"domain": {"name": "roadstead"}})["domain"]
        home = self._admin(
            admin, "POST", "/v3/projects", {"project": {"name": "provider", "domain_id": domain["id"]}}
        )["project"]
        user = self._admin(
            admin,
            "POST",
            "/v3/users",
            {"user": {"name": "provider", "domain_id": domain["id"], "password": "pw"}},
        )["user"]
        roles = {r["name"]: r["id"] for r in self._admin(admin, "GET", "/v3/roles")["roles"]}
        for role in ("member", "load-balancer_member", "manager"):
            self._admin(admin, "PUT", f"/v3/domains/{domain['id']}/users/{user['id']}/roles/{roles[role]}")
        for role in ("member", "manager"):
            self._admin(admin, "PUT", f"/v3/projects/{home['id']}/users/{user['id']}/roles/{roles[role]}")
        self.keyring.put_endpoint(REGION, ENDPOINT, None)
        self.keyring.put_region_secret(
            REGION,
            {"domain-id": domain["id"], "user-id": user["id"], "password": "pw", "project-id": home["id"]},
            1,
        )

    def _admin(self, admin: Caller, method: str, path: str, body: Any = None) -> Any:
        return admin.call("identity", method, path, body)

    async def _network(self) -> None:
        name = f"network-{NETWORK}"
        m = self.manager
        network = await self.call(m, "network", "network.create", json={"network": {"name": name}})
        wish = {"name": name, "network_id": network["id"], "ip_version": 4, "cidr": "192.0.2.0/24"}
        subnet = await self.call(m, "network", "subnet.create", json={"subnet": wish})
        listed = await self.call(
            RegionProject(REGION), "network", "network.list", query={"router:external": True}
        )
        gateway = {"external_gateway_info": {"network_id": listed[0]["id"]}}
        router = await self.call(m, "network", "router.create", json={"router": {"name": name, **gateway}})
        await self.call(
            m, "network", "router.add_interface", id=router["id"], json={"subnet_id": subnet["id"]}
        )
        await self.group(GROUP)

    async def group(self, ident: str) -> str:
        body = {"security_group": {"name": f"securitygroup-{ident}"}}
        made = await self.call(self.manager, "network", "securitygroup.create", json=body)
        return str(made["id"])

    def _bench(self) -> Bench:
        spec = {
            "flavorID": self.flavors["small"],
            "image": {"id": self.images["ubuntu-24.04"]},
            "networks": [{"id": NETWORK}],
            "securityGroups": [{"id": GROUP}],
        }
        return Bench(
            kind=KIND,
            key=Key(REGION, PROJECT, "server", server_id(NETWORK, "web-1")),
            metadata={"name": "web-1", "organizationId": "org", "projectId": PROJECT},
            spec=spec,
            cloud=self.engine,
            clock=self.clock,
            keyring=self.keyring,
            region=RegionSpec.model_validate(
                {
                    "provider": "openstack",
                    "openstack": {"endpoint": ENDPOINT, "serviceAccountSecret": {"name": "x"}},
                }
            ),
            identity=IDENTITY,
            requests=self._owner_of_volumes(),
            extras={"inventory": self.inventory},
        )

    def _owner_of_volumes(self) -> NoRequests:
        requests = NoRequests()

        def claim(ask: Mapping[str, Any]) -> Mapping[str, Any]:
            held = self.claims.setdefault(ask["volumeId"], ask["claimant"]["id"])
            return {"ok": True} if held == ask["claimant"]["id"] else {"error": {"code": "CONFLICT"}}

        def release(ask: Mapping[str, Any]) -> Mapping[str, Any]:
            if self.claims.get(ask["volumeId"]) != ask["claimant"]["id"]:
                return {"error": {"code": "CONFLICT"}}
            del self.claims[ask["volumeId"]]
            return {"ok": True}

        requests.replies = {"rpc.volumes.claim": claim, "rpc.volumes.release": release}
        return requests

    async def volume(self, ident: str = VOLUME, project: str = PROJECT, name: str | None = None) -> str:
        """A provisioned volume: in the cloud and in the directory."""
        body = {"volume": {"name": name or f"volume-{ident}", "size": 1, "volume_type": "standard"}}
        made = await self.call(self.principal, "block-storage", "volume.create", json=body)
        self.bench.directory.put(view("volume", ident, REGION, project))
        self.clock.advance(5)
        return str(made["id"])

    # ------------------------------------------------------------ what a test asks

    async def run(self) -> Ending:
        return await self.bench.run()

    async def settled(self) -> Ending:
        """Passes and cloud time until a pass is done, then the cloud at rest and the log empty."""
        ending = await self.bench.until_settled()
        assert isinstance(ending.outcome, Done), ending
        self.clock.advance(30)
        self.forget()
        return ending

    def sweep(self, facts: Mapping[str, Any]) -> None:
        """The monitor's facts reach the owner."""
        assert KIND.project is not None
        changes = KIND.project(self.bench.resource(), facts, self.clock.now())
        self.bench.status = merged(self.bench.status, changes, self.clock.now())

    def sweep_state(self, state: str, launched: str | None = None, power: int = 1) -> None:
        image = self.bench.spec["image"]["id"]
        self.sweep(
            {"present": True, "status": state, "powerState": power, "launchedAt": launched, "image": image}
        )

    def forget(self) -> None:
        """Empty the cloud's log."""
        self.cloud.settle()
        self.cloud.log.clear()

    def reads(self) -> list[Logged]:
        return list(self.cloud.log.calls(method="GET"))

    def writes(self, service: str | None = None) -> list[Logged]:
        return self.cloud.log.writes(service=service)

    def creates(self) -> list[Logged]:
        return self.cloud.log.calls(service="compute", method="POST", path=r"/servers$")

    def fault(self, kind: str, **criteria: Any) -> None:
        self.cloud.faults.add(Fault(kind, **criteria))

    def fails(self, kind: str, times: int | None = 1) -> None:
        self.cloud.faults.add_outcome(Outcome(kind, times=times))

    def servers(self) -> list[Any]:
        self.cloud.settle()
        return list(self.cloud.nova.servers.values())

    @property
    def server(self) -> Any:
        (found,) = self.servers()
        return found

    def count(self, kind: str) -> int:
        return int(self.cloud.dump()["network"][kind]["count"])

    def conditions(self) -> dict[str, tuple[str, str]]:
        return {c["type"]: (c["status"], c["reason"]) for c in self.bench.status.get("conditions", ())}


PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGmA4RWeYmQXzEDGbZ1n0Q1nLj6Q3l5cX3c5h1d5pQb1 test"


@pytest.fixture
async def scene() -> Scene:
    made = Scene()
    await made.open()
    return made
