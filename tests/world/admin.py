"""The simulated cloud's administrator, called in process: for set-up and for changes by somebody else."""

from typing import Any

import orjson

from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.wire import Request


class Admin:
    """Speaks to the simulator with an administrator's token."""

    def __init__(
        self, cloud: Cloud, *, user: str = "admin", password: str = "admin", project: str = "admin"
    ) -> None:
        self.cloud = cloud
        body = {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {"user": {"name": user, "password": password, "domain": {"id": "default"}}},
                },
                "scope": {"project": {"name": project, "domain": {"id": "default"}}},
            }
        }
        answer = cloud.handle(
            Request(
                "POST",
                "/identity/v3/auth/tokens",
                [],
                {"content-type": "application/json"},
                orjson.dumps(body),
            )
        )
        assert answer.status == 201, answer
        self.token = answer.headers["X-Subject-Token"]
        self.project: str = answer.body["token"]["project"]["id"]

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The JSON of a 2xx answer; AssertionError with the answer otherwise."""
        headers = {
            "x-auth-token": self.token,
            "content-type": "application/json",
            "openstack-api-version": "compute 2.90",
        }
        raw = b"" if body is None else orjson.dumps(body)
        answer = self.cloud.handle(Request(method, path, list(query.items()), headers, raw))
        assert 200 <= answer.status < 300, (method, path, answer)
        return answer.body

    def tries(self, method: str, path: str, body: Any = None) -> int:
        """The status of a call that may be refused."""
        headers = {
            "x-auth-token": self.token,
            "content-type": "application/json",
            "openstack-api-version": "compute 2.90",
        }
        raw = b"" if body is None else orjson.dumps(body)
        return self.cloud.handle(Request(method, path, [], headers, raw)).status

    def configure(self, prefix: str = "roadstead") -> dict[str, str]:
        """Domain, project, user and grants of one deployment; the region's four secret keys."""
        domain = self.call("POST", "/identity/v3/domains", {"domain": {"name": prefix}})["domain"]
        project = self.call(
            "POST",
            "/identity/v3/projects",
            {"project": {"name": f"{prefix}-provider", "domain_id": domain["id"]}},
        )["project"]
        secret = f"password-of-{prefix}"
        user = self.call(
            "POST",
            "/identity/v3/users",
            {"user": {"name": f"{prefix}-provider", "domain_id": domain["id"], "password": secret}},
        )["user"]
        roles = {r["name"]: r["id"] for r in self.call("GET", "/identity/v3/roles")["roles"]}
        for role in ("member", "load-balancer_member", "manager"):
            self.call("PUT", f"/identity/v3/domains/{domain['id']}/users/{user['id']}/roles/{roles[role]}")
        for role in ("member", "manager"):
            self.call("PUT", f"/identity/v3/projects/{project['id']}/users/{user['id']}/roles/{roles[role]}")
        return {
            "domain-id": domain["id"],
            "user-id": user["id"],
            "password": secret,
            "project-id": project["id"],
        }

    def objects(self) -> set[tuple[str, str]]:
        """(kind, id) of everything in the cloud, for leak checks."""
        dump = self.call("GET", "/admin/dump")
        return {
            (kind, str(item["id"]))
            for kinds in dump.values()
            if isinstance(kinds, dict)
            for kind, listed in kinds.items()
            for item in listed["objects"]
        }
