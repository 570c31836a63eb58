"""A caller of the cloud without a network: one token, one scope, answers as values.

`stage` makes the four scopes in which a region's services work, the way registration
does: a domain, a region user that manages it, one project with a user of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import JsonObject
from .cloud import Cloud
from .wire import Response, request

VERSIONS = {"compute": "compute 2.90", "volume": "volume 3.59", "placement": "placement 1.22"}


class Unexpected(AssertionError):
    """An answer with another status than the caller allowed."""


class Caller:
    """Calls with one token; paths are the service's own (`/v2.1/servers`)."""

    def __init__(self, cloud: Cloud, token: str, user_id: str, project_id: str | None = None) -> None:
        self.cloud = cloud
        self.token = token
        self.user_id = user_id
        self.project_id = project_id

    @classmethod
    def login(cls, cloud: Cloud, user: JsonObject, password: str, scope: JsonObject | None = None) -> Caller:
        """Authenticate by password; `user` and `scope` as in Keystone's request."""
        auth: JsonObject = {
            "identity": {"methods": ["password"], "password": {"user": user | {"password": password}}}
        }
        return cls._issue(cloud, auth if scope is None else auth | {"scope": scope})

    @classmethod
    def credential(cls, cloud: Cloud, credential_id: str, secret: str) -> Caller:
        """Authenticate by an application credential."""
        given = {"id": credential_id, "secret": secret}
        return cls._issue(
            cloud, {"identity": {"methods": ["application_credential"], "application_credential": given}}
        )

    @classmethod
    def _issue(cls, cloud: Cloud, auth: JsonObject) -> Caller:
        response = cloud.handle(request("POST", "/identity/v3/auth/tokens", {"auth": auth}))
        if response.status != 201:
            raise Unexpected(f"authentication was answered {response.status} {response.body}")
        body = response.body["token"]
        return cls(
            cloud, response.headers["X-Subject-Token"], body["user"]["id"], body.get("project", {}).get("id")
        )

    @classmethod
    def admin(cls, cloud: Cloud) -> Caller:
        """The cloud administrator on the project admin."""
        user = {"name": "admin", "domain": {"id": "default"}}
        return cls.login(
            cloud,
            user,
            cloud.settings.admin_password,
            {"project": {"name": "admin", "domain": {"id": "default"}}},
        )

    def send(
        self,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        version: str | None = None,
        **headers: str,
    ) -> Response:
        """One call; `version` is a bare microversion, header names use underscores."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if service in VERSIONS:
            given["openstack-api-version"] = f"{service} {version}" if version else VERSIONS[service]
        return self.cloud.handle(request(method, f"/{service}{path}", body, self.token, given))

    def call(
        self, service: str, method: str, path: str, body: Any = None, want: int | None = None, **more: Any
    ) -> Any:
        """The answer's body; raises `Unexpected` for a status that is not `want` (default: any below 400)."""
        response = self.send(service, method, path, body, **more)
        if response.no_answer or (response.status >= 400 if want is None else response.status != want):
            raise Unexpected(f"{method} /{service}{path} was answered {response.status} {response.body}")
        return response.body


@dataclass
class Stage:
    """The four scopes of a region with one identity, and the administrator."""

    cloud: Cloud
    admin: Caller
    domain: Caller
    """Region user on the managed domain."""
    region: Caller
    """Region user on the region's own project."""
    principal: Caller
    """The identity's user on the identity's project."""
    privileged: Caller
    """Region user on the identity's project."""
    domain_id: str
    project_id: str
    user_id: str
    region_user_id: str
    region_project_id: str

    def image_ids(self) -> list[str]:
        """The two public images of the seed content that carry the properties, by name."""
        rows = self.principal.call("image", "GET", "/v2/images?sort_key=name&sort_dir=asc")["images"]
        return [row["id"] for row in rows if row["name"] in ("debian-12", "ubuntu-24.04")]

    def flavor_id(self, name: str = "small") -> str:
        """The flavor of that name."""
        rows = self.principal.call("compute", "GET", "/v2.1/flavors")["flavors"]
        return str(next(row["id"] for row in rows if row["name"] == name))

    def boot(self, name: str = "web", **more: Any) -> str:
        """Ask for a server as the principal (`more` goes into the body); returns its id."""
        body = {
            "name": name,
            "imageRef": self.image_ids()[0],
            "flavorRef": self.flavor_id(),
            "networks": "none",
        }
        made = self.principal.call("compute", "POST", "/v2.1/servers", {"server": body | more}, want=202)
        return str(made["server"]["id"])

    def settled(self, name: str = "web", **more: Any) -> str:
        """A server whose first boot has ended; needs a clock that the test moves."""
        server_id = self.boot(name, **more)
        self.cloud.rest()
        return server_id

    def server(self, server_id: str) -> JsonObject:
        """The server as the principal reads it."""
        found: JsonObject = self.principal.call("compute", "GET", f"/v2.1/servers/{server_id}")["server"]
        return found

    def state(self, server_id: str) -> tuple[str, str | None]:
        """Status and task of a server."""
        found = self.server(server_id)
        return found["status"], found["OS-EXT-STS:task_state"]

    def act(self, server_id: str, action: JsonObject, want: int = 202) -> Any:
        """One action on a server as the principal; returns the answer's body."""
        return self.principal.call("compute", "POST", f"/v2.1/servers/{server_id}/action", action, want=want)

    def network(self, name: str = "net", cidr: str = "10.0.0.0/24") -> tuple[str, str]:
        """A tenant network with one subnet, made by the privileged principal; returns both ids."""
        call = self.privileged.call
        network_id = call("network", "POST", "/v2.0/networks", {"network": {"name": name}})["network"]["id"]
        subnet = {"name": name, "network_id": network_id, "ip_version": 4, "cidr": cidr}
        return network_id, call("network", "POST", "/v2.0/subnets", {"subnet": subnet})["subnet"]["id"]

    def port(self, network_id: str, **more: Any) -> JsonObject:
        """A port of the principal on that network."""
        body = {"port": {"network_id": network_id} | more}
        found: JsonObject = self.principal.call("network", "POST", "/v2.0/ports", body)["port"]
        return found

    def volume(self, name: str = "data", size: int = 1) -> str:
        """A volume of the principal that is available; needs a clock that the test moves."""
        body = {"volume": {"name": name, "size": size}}
        made = self.principal.call("volume", "POST", f"/v3/{self.project_id}/volumes", body)
        self.cloud.rest()
        return str(made["volume"]["id"])


def stage(cloud: Cloud, name: str = "stage", password: str = "pw") -> Stage:
    """Make domain, region user and one identity, and log all of them in."""
    admin = Caller.admin(cloud)

    def make(caller: Caller, kind: str, body: JsonObject) -> str:
        return str(caller.call("identity", "POST", f"/v3/{kind}s", {kind: body})[kind]["id"])

    def grant(caller: Caller, target: str, user: str, *names: str) -> None:
        for role in names:
            caller.call("identity", "PUT", f"/v3/{target}/users/{user}/roles/{roles[role]}", want=204)

    roles = {r["name"]: r["id"] for r in admin.call("identity", "GET", "/v3/roles")["roles"]}
    domain_id = make(admin, "domain", {"name": name})
    region_project = make(admin, "project", {"name": f"{name}-provider", "domain_id": domain_id})
    region_user = make(
        admin, "user", {"name": f"{name}-provider", "domain_id": domain_id, "password": password}
    )
    grant(admin, f"domains/{domain_id}", region_user, "member", "load-balancer_member", "manager")
    grant(admin, f"projects/{region_project}", region_user, "member", "manager")
    domain = Caller.login(cloud, {"id": region_user}, password, {"domain": {"id": domain_id}})
    project = make(domain, "project", {"name": f"{name}-identity", "domain_id": domain_id})
    user = make(domain, "user", {"name": f"{name}-identity", "domain_id": domain_id, "password": password})
    grant(domain, f"projects/{project}", region_user, "manager")
    grant(domain, f"projects/{project}", user, "member")
    grant(admin, f"projects/{project}", user, "load-balancer_member")
    return Stage(
        cloud,
        admin,
        domain,
        Caller.login(cloud, {"id": region_user}, password, {"project": {"id": region_project}}),
        Caller.login(cloud, {"id": user}, password, {"project": {"id": project}}),
        Caller.login(cloud, {"id": region_user}, password, {"project": {"id": project}}),
        domain_id,
        project,
        user,
        region_user,
        region_project,
    )
