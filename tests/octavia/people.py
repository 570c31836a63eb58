"""Who is in the simulated cloud: the service's own user, two projects that do not know each other, an administrator, networks of each."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SERVICE_PASSWORD = "service-word"
PASSWORD = "user-word"


@dataclass
class Home:
    """A project with one user and one network.  subnet has room for thousands of addresses."""

    name: str
    project: str = ""
    user: str = ""
    network: str = ""
    subnet: str = ""
    subnet6: str = ""
    tokens: dict[str, str] = field(default_factory=dict)


class People:
    """Talks to Keystone and Neutron over HTTP.

    auth_url: Keystone's, with its version.  address: of a path that begins with the service's name, as /network/v2.0/ports.
    """

    def __init__(self, auth_url: Callable[[], str], address: Callable[[str], str]) -> None:
        self._auth_url = auth_url
        self._address = address
        self.red = Home("red")
        self.blue = Home("blue")
        self._admin_token = ""

    def settle(self) -> None:
        """Make all of them."""
        self._admin_token = self.token("admin", "admin", "admin")
        service = self._project("service")
        octavia = self._user("octavia", SERVICE_PASSWORD)
        for role in ("admin", "service"):
            self._grant(service, octavia, role)
        for number, home in enumerate((self.red, self.blue)):
            self.move_in(home, number)

    def move_in(self, home: Home, number: int, *, quiet: bool = False) -> None:
        """Project, user and, unless quiet, networks of a home; `number` keeps addresses apart."""
        home.project = self._project(home.name)
        home.user = self._user(home.name, PASSWORD)
        self._grant(home.project, home.user, "member")
        if quiet:
            return
        wanted = {"network": {"name": home.name, "project_id": home.project}}
        home.network = self.admin("POST", "/network/v2.0/networks", wanted)["network"]["id"]
        home.subnet = self._subnet(home, 4, f"10.{number}.0.0/16")
        home.subnet6 = self._subnet(home, 6, f"2001:db8:{number}::/64")

    # ------------------------------------------------------------ calls

    def token(self, user: str, password: str, project: str) -> str:
        identity = {
            "methods": ["password"],
            "password": {"user": {"name": user, "domain": {"id": "default"}, "password": password}},
        }
        scope = {"project": {"name": project, "domain": {"id": "default"}}}
        body = {"auth": {"identity": identity, "scope": scope}}
        request = urllib.request.Request(
            f"{self._auth_url()}/auth/tokens",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.headers["X-Subject-Token"])

    def token_of(self, home: Home) -> str:
        return self.token(home.name, PASSWORD, home.name)

    @property
    def admin_token(self) -> str:
        return self._admin_token

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """As the administrator; RuntimeError with the answer for a refusal."""
        return self.ask(method, path, body, {"X-Auth-Token": self._admin_token})

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """What is answered; RuntimeError with the answer for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address(path), data, headers or {}, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from None
        return json.loads(text) if text else None

    # ------------------------------------------------------------ makers

    def _project(self, name: str) -> str:
        wanted = {"project": {"name": name, "domain_id": "default"}}
        return str(self.admin("POST", "/identity/v3/projects", wanted)["project"]["id"])

    def _user(self, name: str, password: str) -> str:
        wanted = {"user": {"name": name, "domain_id": "default", "password": password}}
        return str(self.admin("POST", "/identity/v3/users", wanted)["user"]["id"])

    def _grant(self, project: str, user: str, role: str) -> None:
        found = self.admin("GET", f"/identity/v3/roles?name={role}")["roles"][0]["id"]
        self.admin("PUT", f"/identity/v3/projects/{project}/users/{user}/roles/{found}")

    def _subnet(self, home: Home, version: int, cidr: str) -> str:
        wanted = {
            "name": f"{home.name}-{version}",
            "network_id": home.network,
            "project_id": home.project,
            "ip_version": version,
            "cidr": cidr,
        }
        return str(self.admin("POST", "/network/v2.0/subnets", {"subnet": wanted})["subnet"]["id"])
