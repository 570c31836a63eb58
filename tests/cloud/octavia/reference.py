"""The Octavia API in the reference cloud: its real Keystone and Neutron, beside the cloud's own Octavia.

The service gets a region of its own in the catalog, in which the other services are the cloud's: nobody who uses the cloud meanwhile
sees a difference.  All that these tests make bears their own names, and is removed before they begin and when they end.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from roadstead.testing.servers import PostgresServer
from tests.octavia.ground import Service
from tests.octavia.people import People

REGION = "RoadsteadOctavia"
SHARED = ("identity", "network", "compute", "image")
WITHIN = 60.0
INTERFACES = ("public", "internal")


class ReferenceCloud:
    """What its clouds.yaml says, and the addresses of its catalog."""

    def __init__(self, clouds: Path) -> None:
        entry: Mapping[str, Any] = yaml.safe_load(clouds.read_text())["clouds"]["roadstead-admin"]
        self.clouds = clouds
        self.region = str(entry["region_name"])
        self.auth_url = str(entry["auth"]["auth_url"])
        self.password = str(entry["auth"]["password"])
        self.people = CloudPeople(self)

    def endpoints(self, region: str) -> list[dict[str, Any]]:
        return list(
            self.people.admin("GET", f"/identity/v3/endpoints?region_id={region}&interface=public")[
                "endpoints"
            ]
        )

    def services(self) -> dict[str, str]:
        """Id by type."""
        found = self.people.admin("GET", "/identity/v3/services")["services"]
        return {one["type"]: one["id"] for one in found}

    def address_of(self, kind: str) -> str:
        """The cloud's own service of that type."""
        if kind == "identity":
            return self.auth_url.removesuffix("/v3")
        service = self.services()[kind]
        (found,) = [one["url"] for one in self.endpoints(self.region) if one["service_id"] == service]
        return str(found)

    def name_region(self, region: str, load_balancer: str) -> None:
        """A region in which only load balancing is another service."""
        self.forget_region(region)
        self.people.admin("POST", "/identity/v3/regions", {"region": {"id": region}})
        services = self.services()
        addresses = {kind: self.address_of(kind) for kind in SHARED} | {"load-balancer": load_balancer}
        for kind, url in addresses.items():
            for interface in INTERFACES:
                wanted = {
                    "service_id": services[kind],
                    "interface": interface,
                    "region_id": region,
                    "url": f"{url}/v3" if kind == "identity" else url,
                }
                self.people.admin("POST", "/identity/v3/endpoints", {"endpoint": wanted})

    def forget_region(self, region: str) -> None:
        found = self.people.admin("GET", f"/identity/v3/endpoints?region_id={region}")["endpoints"]
        for one in found:
            self.people.admin("DELETE", f"/identity/v3/endpoints/{one['id']}")
        with suppress(RuntimeError):  # there is none
            self.people.admin("DELETE", f"/identity/v3/regions/{region}")


class CloudPeople(People):
    """The two projects and their users in the real Keystone; the service's own user is there already."""

    def __init__(self, cloud: ReferenceCloud, *names: str) -> None:
        super().__init__(lambda: cloud.auth_url, self._where)
        for home, name in zip((self.red, self.blue), names, strict=False):
            home.name = name
        self._cloud = cloud
        self._roots: dict[str, str] = {"identity": cloud.auth_url.removesuffix("/v3")}

    def _where(self, path: str) -> str:
        service, _, rest = path.lstrip("/").partition("/")
        if service not in self._roots:
            self._roots[service] = self._cloud.address_of(service)
        return f"{self._roots[service]}/{rest}"

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        if not self._admin_token:
            self.log_in()
        return super().admin(method, path, body)

    def log_in(self) -> None:
        """With a token that lives as long as a whole run."""
        self._admin_token = self.token("admin", self._cloud.password, "admin")

    def settle(self) -> None:
        self.log_in()
        self.leave()
        for number, home in enumerate((self.red, self.blue)):
            self.move_in(home, number)

    def leave(self) -> None:
        """Both projects with all that is in them, by name: those of a run that was killed too."""
        for home in (self.red, self.blue):
            for project in self.admin("GET", f"/identity/v3/projects?name={home.name}&domain_id=default")[
                "projects"
            ]:
                self._empty(project["id"])
                self.admin("DELETE", f"/identity/v3/projects/{project['id']}")
            for user in self.admin("GET", f"/identity/v3/users?name={home.name}&domain_id=default")["users"]:
                self.admin("DELETE", f"/identity/v3/users/{user['id']}")

    def _empty(self, project: str) -> None:
        """Load balancers of the cloud's own Octavia, then what of Neutron is in the project, in the order in which it can go."""
        self._no_load_balancers(f"/load-balancer/v2/lbaas/loadbalancers?project_id={project}")
        for kind in ("floatingips", "ports", "subnets", "networks", "security-groups"):
            rows = self.admin("GET", f"/network/v2.0/{kind}?project_id={project}")[kind.replace("-", "_")]
            for row in rows:
                self.admin("DELETE", f"/network/v2.0/{kind}/{row['id']}")

    def _no_load_balancers(self, path: str) -> None:
        """RuntimeError when they do not go."""
        ends = time.monotonic() + WITHIN
        while rows := self.admin("GET", path)["loadbalancers"]:
            if time.monotonic() > ends:
                raise RuntimeError(f"{len(rows)} load balancers do not go: {rows[0]['provisioning_status']}")
            for row in rows:
                if not row["provisioning_status"].startswith("PENDING"):
                    where = f"/load-balancer/v2/lbaas/loadbalancers/{row['id']}?cascade=true"
                    with suppress(RuntimeError):  # something of it has only now begun to change
                        self.admin("DELETE", where)
            time.sleep(0.5)


class ReferenceService(Service):
    """The API in the reference cloud."""

    region = REGION
    people: "CloudPeople"

    def __init__(
        self, cloud: ReferenceCloud, folder: Path, postgres: PostgresServer, database: str, **settings: Any
    ) -> None:
        super().__init__(folder, postgres, database, region_name=cloud.region, token_cache_time=2, **settings)
        self.cloud = cloud
        self.people = cloud.people
        self.admin_password = self.service_password = cloud.password

    @property
    def auth_url(self) -> str:
        return self.cloud.auth_url

    def enter_cloud(self) -> None:
        self.people.settle()

    def name_service(self) -> None:
        self.cloud.name_region(self.region, self.url)

    def leave_cloud(self) -> None:
        self.cloud.people.log_in()
        self.cloud.forget_region(self.region)
        self.cloud.people.leave()
