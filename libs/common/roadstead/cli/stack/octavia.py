"""The Octavia API in a local stack: its programs, its user in the simulated cloud, its place in that cloud's catalog.

Every other service asks the catalog, so the region's load balancers go through this API instead of the simulated one.
"""

import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from roadstead.cli.failures import UserError
from roadstead.cli.regions import administrator
from roadstead.cli.stack.home import Home
from roadstead.cli.stack.parts import Child, Part
from roadstead.cloud.administration import Administrator
from roadstead.cloud.sending import NotSent, Unanswered


class Octavia(StrEnum):
    """Who carries out what the API is asked for."""

    NOOP = "noop"
    OVN = "ovn"


API, NOOP = "octavia-api", "octavia-noop"
API_PORT = 9876
SCHEMA = "octavia"
MODULE = "roadstead_octavia"
USER, PROJECT, ROLES = "octavia", "service", ("admin", "service")

Health = Callable[[], int]
Environment = Callable[[int], Mapping[str, str]]


class OctaviaParts:
    """The API and its provider.  environment: settings of every service, by health port; auth_url: the simulated Keystone's."""

    schemas: tuple[str, ...] = (SCHEMA,)

    def __init__(self, home: Home, port: int, auth_url: str) -> None:
        self.home = home
        self.port = port
        self.auth_url = auth_url

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ground(self) -> Sequence[Part]:
        """What is to run before anything else."""
        return ()

    @property
    def simulator_arguments(self) -> list[str]:
        """What the simulated cloud is told: that its catalog names the API."""
        return ["--endpoint", f"load-balancer={self.url}"]

    def children(self, health: Health, environment: Environment) -> list[Child]:
        """API and provider, not started.  health: gives a free port."""
        port = health()
        api = Child(
            API,
            [sys.executable, "-m", MODULE],
            self.home.log(API),
            environment={**environment(port), **self._api_settings()},
            health=port,
            address=self.url,
        )
        return [api, *self.providers(health, environment)]

    def providers(self, health: Health, environment: Environment) -> list[Child]:
        """The noop provider: what is asked for becomes ACTIVE, and VIP ports are the simulated network's, made by the API."""
        return [
            Child(
                NOOP,
                [sys.executable, "-m", f"{MODULE}.provider.noop"],
                self.home.log(NOOP),
                environment={**environment(0), "ROADSTEAD_NOOP_REFUSE": "create_vip_port:NotImplemented"},
            )
        ]

    def drivers(self) -> tuple[str, str]:
        """Name and description of the provider."""
        return "noop", "Agrees to everything and moves no packet."

    def _api_settings(self) -> dict[str, str]:
        name, text = self.drivers()
        return {
            "ROADSTEAD_OCTAVIA_BIND_PORT": str(self.port),
            "ROADSTEAD_OCTAVIA_AUTH_STRATEGY": "keystone",
            "ROADSTEAD_OCTAVIA_AUTH_URL": self.auth_url,
            "ROADSTEAD_OCTAVIA_USERNAME": USER,
            "ROADSTEAD_OCTAVIA_PROJECT_NAME": PROJECT,
            "ROADSTEAD_OCTAVIA_PASSWORD_FILE": str(self.home.octavia_password),
            "ROADSTEAD_OCTAVIA_ENABLED_PROVIDER_DRIVERS": f"{name}:{text}",
            "ROADSTEAD_OCTAVIA_DEFAULT_PROVIDER_DRIVER": name,
        }

    async def prepare(self, clouds_yaml: Path) -> None:
        """The API's user in the running cloud, with the password of our file.  The same again changes nothing that is seen."""
        await settle_user(administrator("sim", None, clouds_yaml), _password(self.home.octavia_password))


def _password(path: Path) -> str:
    """Of the file, which is made for its owner alone."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(24) + "\n")
    return path.read_text().strip()


async def settle_user(admin: Administrator, password: str) -> None:
    """Project, user, password and roles are there.  UserError when the cloud refuses."""
    project = await _found_or_made(admin, "project", PROJECT, {})
    user = await _found_or_made(admin, "user", USER, {"password": password})
    # A wiped password file is told to a cloud that still knows the user.
    await _asked(admin, "PATCH", f"/users/{user}", {"user": {"password": password}})
    for role in ROLES:
        ident = await _found_or_made(admin, "role", role, {})
        await _asked(admin, "PUT", f"/projects/{project}/users/{user}/roles/{ident}")


async def _found_or_made(admin: Administrator, noun: str, name: str, more: Mapping[str, str]) -> str:
    inside = {} if noun == "role" else {"domain_id": "default"}
    body = await _asked(admin, "GET", f"/{noun}s", query={"name": name, **inside})
    found = [each for each in body[f"{noun}s"] if each["name"] == name]
    if found:
        return str(found[0]["id"])
    made = await _asked(admin, "POST", f"/{noun}s", {noun: {"name": name, **inside, **more}})
    return str(made[noun]["id"])


async def _asked(
    admin: Administrator, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None
) -> Any:
    try:
        answer = await admin.request("identity", method, path, body, query)
    except (NotSent, Unanswered) as error:
        raise UserError(f"the cloud does not answer {method} {path}: {error}") from None
    if answer.status >= 400:
        raise UserError(
            f"the cloud refused {method} {path} with {answer.status}: {answer.body.decode(errors='replace')}; "
            "`roadstead down --wipe` begins anew"
        )
    return orjson.loads(answer.body) if answer.body else None
