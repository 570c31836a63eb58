"""One registered region on a simulated cloud, with an identity in it; requests are counted at the cloud."""

from dataclasses import dataclass, field
from typing import Any

from roadstead.cloud.credentials import Keyring
from roadstead.region import RegionSpec
from roadstead.subjects import Key
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.faults import Fault
from roadstead.testing.cloudsim.keystone_store import Grant
from roadstead.testing.cloudsim.log import Call
from roadstead.testing.passbench import PassBench, StandingClock, engine
from roadstead_identity.identity import KIND as IDENTITY
from roadstead_identity.region import KIND as REGION

REGION_ID = "11111111-1111-4111-8111-111111111111"
IDENTITY_ID = "22222222-2222-4222-8222-222222222222"
ORGANIZATION, PROJECT = "acme", "web"
PASSWORD = "region-secret"  # the region's own
METADATA = {"name": "mine", "organizationId": ORGANIZATION, "projectId": PROJECT}
REGION_SPEC: dict[str, Any] = {
    "provider": "openstack",
    "openstack": {
        "endpoint": "http://cloud.invalid/identity/v3",
        "serviceAccountSecret": {"name": "credentials"},
    },
}


@dataclass
class World:
    """A simulated cloud with one region's service user registered in its own domain."""

    clock: StandingClock = field(default_factory=StandingClock)
    region: dict[str, Any] = field(default_factory=lambda: dict(REGION_SPEC))
    prefix: str = "roadstead"

    def __post_init__(self) -> None:
        self.cloud = Cloud(self.clock)
        self.keyring = Keyring()
        self.secret = self.register(self.prefix)
        self.keyring.put_endpoint(REGION_ID, "http://cloud.invalid/identity/v3", None)
        self.keyring.put_region_secret(REGION_ID, self.secret, 1)
        self.port = engine(self.cloud, self.keyring, self.clock)

    def register(self, prefix: str) -> dict[str, str]:
        """Domain, project and user with their roles; the secret's four keys."""
        store = self.cloud.keystone.store
        domain = store.new_domain(prefix)["id"]
        project = store.new_project(f"{prefix}-provider", domain)["id"]
        user = store.new_user(f"{prefix}-provider", domain, PASSWORD)["id"]
        for kind, target, names in (
            ("domain", domain, ("member", "load-balancer_member", "manager")),
            ("project", project, ("member", "manager")),
        ):
            for name in names:
                role = store.role_named(name)
                assert role is not None
                store.grants.add(Grant(user, kind, target, role["id"]))
        return {"domain-id": domain, "user-id": user, "password": PASSWORD, "project-id": project}

    def region_bench(self) -> PassBench:
        key = Key(REGION_ID, "_", "region", REGION_ID)
        return PassBench(REGION, key, {"name": "north"}, self.region, self.port, self.clock, self.keyring)

    def identity_bench(self, ident: str = IDENTITY_ID) -> PassBench:
        return PassBench(
            IDENTITY,
            Key(REGION_ID, PROJECT, "identity", ident),
            dict(METADATA),
            {"provider": "openstack"},
            self.port,
            self.clock,
            self.keyring,
            region=RegionSpec.model_validate(self.region),
        )

    def fail(self, kind: str, **criteria: Any) -> Fault:
        """Put one fault in force."""
        fault = Fault(kind, **criteria)
        self.cloud.faults.add(fault)
        return fault

    def calls(self) -> list[Call]:
        """Requests without logins."""
        return [c for c in self.cloud.log if not c.path.endswith("/auth/tokens")]

    def writes(self) -> list[str]:
        """`METHOD path`, ids replaced, of everything that may change something."""
        return [f"{c.method} {_template(c.path)}" for c in self.cloud.log.writes()]

    def named(self, ident: str = IDENTITY_ID) -> dict[str, list[dict[str, Any]]]:
        """Keystone's objects of the identity's name."""
        store = self.cloud.keystone.store
        name = f"unikorn-identity-{ident}"
        return {
            "projects": [p for p in store.projects.values() if p["name"] == name],
            "users": [u for u in store.users.values() if u["name"] == name],
        }


def _template(path: str) -> str:
    parts = path.strip("/").split("/")
    return "/".join("*" if len(p) >= 32 or p == "unikorn-openstack-provider" else p for p in parts)
