"""`region configure`: the domain, project and user that one deployment works with in one cloud (behaviour.md 19.1).

First everything is read and judged, then written: a run that must stop has changed nothing (INV-018).  A second run with
the same input finds what the first one made (INV-016).  Runs with an administrator's credentials, once per deployment.
"""

import os
import secrets
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from roadstead.cloud.administration import Administrator
from roadstead.cloud.operations import Operation
from roadstead.cloud.port import Verdict
from roadstead.cloud.sending import NotSent, Unanswered
from roadstead.cloud.verdicts import error_of, verdict

VARIABLES = "ROADSTEAD_CLOUD_"
LEGACY_MEMBER = "_member_"
PREFIX = "unikorn-openstack"
NAMES = ("domain_name", "project_name", "user_name")
HANDED_ON = ("external_network", "flavor", "image")


class ConfigureError(Exception):
    """Why the cloud could not be configured, with the remedy.  `detail` is the cloud's own text, for the log."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True)
class Wanted:
    """Input of configure.  prefix: of the deployment, not of the region; different for deployments in one cloud.

    None is not given: what an earlier run said counts, then the usual.  password: of the provider user; None: made when the user
    is new.  rotate: give an existing user a new one.  remove: external-network, flavor or image of an earlier run to forget.
    """

    mode: Literal["create", "existing"] = "create"
    prefix: str | None = None
    domain_id: str | None = None
    domain_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    rotate: bool = False
    domain_roles: tuple[str, ...] = ("member", "load-balancer_member", "manager")
    project_roles: tuple[str, ...] = ("member", "manager")
    legacy_member_role: bool = False
    create_missing_roles: bool = True
    external_network: str | None = None
    flavor: str | None = None
    image: str | None = None
    remove: tuple[str, ...] = ()

    @property
    def roles(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Role names for the domain and for the project."""
        extra = (LEGACY_MEMBER,) if self.legacy_member_role else ()
        return (*self.domain_roles, *extra), (*self.project_roles, *extra)


@dataclass(frozen=True)
class Configured:
    """What a run ended with.  values: by variable name without prefix; steps: what was changed; warnings: what to see to."""

    values: Mapping[str, str] = field(repr=False)
    steps: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


async def configure(
    admin: Administrator, wanted: Wanted, previous: Mapping[str, str] | None = None
) -> Configured:
    """Make or find domain, project, user and grants; `previous` are values of an earlier run, for what is not given now.

    Raises ConfigureError.
    """
    wanted = with_previous(wanted, previous or {}, admin.auth_url)
    if wanted.mode == "existing":
        return _existing(admin, wanted)
    run = _Run(admin, wanted, dict(previous or {}))
    return await run.create()


def with_previous(wanted: Wanted, previous: Mapping[str, str], auth_url: str) -> Wanted:
    """What is not given as an earlier run had it.  ConfigureError for what is given and removed at once.

    Names stay unless another prefix is given; ids mean something in their own cloud alone.
    """
    both = [n for n in wanted.remove if getattr(wanted, n.replace("-", "_"))]
    if both:
        raise ConfigureError(f"{', '.join(both)} cannot be given and removed at once; say one of the two")
    known = previous.get("PREFIX")
    renamed = wanted.prefix is not None and wanted.prefix != known
    names = {} if renamed else {n: previous.get(n.upper()) for n in NAMES}
    here = previous.get("AUTH_URL") in (None, auth_url)
    ids = {n: previous.get(n.upper()) for n in HANDED_ON if here and n.replace("_", "-") not in wanted.remove}
    if wanted.mode == "existing" and here:
        ids.update({n: previous.get(n.upper()) for n in ("domain_id", "project_id", "user_id")})
        if (wanted.user_id or previous.get("USER_ID")) == previous.get("USER_ID"):
            ids["password"] = previous.get("PASSWORD")
    kept: dict[str, Any] = {n: v for n, v in {**names, **ids}.items() if v and getattr(wanted, n) is None}
    return replace(wanted, prefix=wanted.prefix or known or PREFIX, **kept)


def _existing(admin: Administrator, wanted: Wanted) -> Configured:
    given = {
        "DOMAIN_ID": wanted.domain_id,
        "PROJECT_ID": wanted.project_id,
        "USER_ID": wanted.user_id,
        "PASSWORD": wanted.password,
    }
    missing = [name.lower().replace("_", "-") for name, value in given.items() if not value]
    if missing:
        raise ConfigureError(f"existing mode needs {', '.join(missing)}; supply them or use create mode")
    return Configured(_values(admin, wanted, {name: value for name, value in given.items() if value}))


def _values(admin: Administrator, wanted: Wanted, ids: Mapping[str, str]) -> dict[str, str]:
    optional = {
        "PREFIX": wanted.prefix,
        "REGION_NAME": admin.region_name,
        "DOMAIN_NAME": wanted.domain_name,
        "PROJECT_NAME": wanted.project_name,
        "USER_NAME": wanted.user_name,
        "EXTERNAL_NETWORK": wanted.external_network,
        "FLAVOR": wanted.flavor,
        "IMAGE": wanted.image,
    }
    return {"AUTH_URL": admin.auth_url, **{name: value for name, value in optional.items() if value}, **ids}


@dataclass
class _Run:
    admin: Administrator
    wanted: Wanted
    previous: dict[str, str]
    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    async def create(self) -> Configured:
        wanted = self.wanted
        assert wanted.prefix is not None
        domain_name = wanted.domain_name or wanted.prefix
        project_name = wanted.project_name or f"{wanted.prefix}-provider"
        user_name = wanted.user_name or f"{wanted.prefix}-provider"

        domain = await self._find_domain(domain_name)
        inside = {"domain_id": domain["id"]} if domain else None
        project = await self._find("project", project_name, inside) if inside else None
        user = await self._find("user", user_name, inside) if inside else None
        roles = await self._roles()
        password = await self._password(user, user_name)

        role_ids = await self._make_roles(roles)
        if domain is None:
            domain = await self._make("domain", {"name": domain_name, "enabled": True})
        elif not domain.get("enabled", True):
            await self._identity("PATCH", f"/domains/{domain['id']}", {"domain": {"enabled": True}})
            self.steps.append(f"domain {domain_name} enabled")
        if project is None:
            project = await self._make("project", {"name": project_name, "domain_id": domain["id"]})
        if user is None:
            user = await self._make(
                "user", {"name": user_name, "domain_id": domain["id"], "password": password}
            )
        elif wanted.rotate:
            await self._identity("PATCH", f"/users/{user['id']}", {"user": {"password": password}})
            self.steps.append(f"password of user {user_name} changed")
        await self._grant(f"/domains/{domain['id']}", user["id"], wanted.roles[0], role_ids)
        await self._grant(f"/projects/{project['id']}", user["id"], wanted.roles[1], role_ids)

        ids = {
            "DOMAIN_ID": domain["id"],
            "DOMAIN_NAME": domain["name"],
            "PROJECT_ID": project["id"],
            "PROJECT_NAME": project_name,
            "USER_ID": user["id"],
            "USER_NAME": user_name,
            "PASSWORD": password,
        }
        network = wanted.external_network or await self._external_network()
        if network:
            ids["EXTERNAL_NETWORK"] = network
        return Configured(_values(self.admin, wanted, ids), tuple(self.steps), tuple(self.warnings))

    # ---- reading

    async def _find_domain(self, name: str) -> dict[str, Any] | None:
        if self.wanted.domain_id is None:
            return await self._find("domain", name, {})
        found = await self._identity("GET", f"/domains/{self.wanted.domain_id}", missing_ok=True)
        if found is None:
            raise ConfigureError(
                f"there is no domain {self.wanted.domain_id}; leave the id out to have one made"
            )
        domain: dict[str, Any] = found["domain"]
        return domain

    async def _find(self, noun: str, name: str, inside: Mapping[str, str] | None) -> dict[str, Any] | None:
        body = await self._identity("GET", f"/{noun}s", query={"name": name, **(inside or {})})
        matches = [each for each in body[f"{noun}s"] if each.get("name") == name]
        if len(matches) > 1:
            raise ConfigureError(f"there are {len(matches)} {noun}s named {name}; remove all but one")
        return matches[0] if matches else None

    async def _roles(self) -> dict[str, str]:
        """Ids of the cloud's roles by name; refuses when roles are missing and none may be made."""
        body = await self._identity("GET", "/roles")
        known = {role["name"]: role["id"] for role in body["roles"] if not role.get("domain_id")}
        missing = sorted({*self.wanted.roles[0], *self.wanted.roles[1]} - set(known))
        if missing and not self.wanted.create_missing_roles:
            raise ConfigureError(
                f"the cloud lacks the roles {', '.join(missing)}; make them or allow making them"
            )
        if "manager" in known:
            implied = await self._identity("GET", f"/roles/{known['manager']}/implies")
            names = [each["name"] for each in implied["role_inference"]["implies"]]
            if "member" not in names:
                self.warnings.append(
                    "role manager does not imply member: run `openstack implied role create manager "
                    "--implied-role member`, or nothing inside identities' projects will be permitted"
                )
        return known

    async def _password(self, user: Mapping[str, Any] | None, user_name: str) -> str:
        """The password that the user will have after this run (INV-018)."""
        wanted = self.wanted
        if user is None or wanted.rotate:
            return wanted.password or secrets.token_urlsafe(32)
        password = wanted.password
        if password is None and self.previous.get("USER_ID") == user["id"]:
            password = self.previous.get("PASSWORD")
        if not password:
            raise ConfigureError(
                f"user {user_name} exists and its password is not known; supply it, or ask for a rotation, which ends "
                "every application credential below it"
            )
        if not await self._works(user["id"], password):
            raise ConfigureError(
                f"the password is not the one of user {user_name}; supply the right one or rotate it"
            )
        return password

    async def _works(self, user_id: str, password: str) -> bool:
        person = {"id": user_id, "password": password}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": person}}}}
        return await self._identity("POST", "/auth/tokens", body, refused_ok=True) is not None

    async def _external_network(self) -> str | None:
        query = {"router:external": "true"}
        found = await self._ask("network", "GET", "/networks", None, query)
        networks = sorted(found["networks"], key=lambda each: (each.get("name", ""), each["id"]))
        if not networks:
            self.warnings.append(
                "the cloud has no external network: routers and public addresses will not work"
            )
            return None
        return str(networks[0]["id"])

    # ---- writing

    async def _make_roles(self, known: dict[str, str]) -> dict[str, str]:
        made = dict(known)
        for name in dict.fromkeys((*self.wanted.roles[0], *self.wanted.roles[1])):
            if name not in made:
                made[name] = (await self._make("role", {"name": name}))["id"]
        if "manager" not in known and "manager" in made and "member" in made:
            # Bootstrap makes this implication; a role of our own must not lack it.
            await self._identity("PUT", f"/roles/{made['manager']}/implies/{made['member']}")
        return made

    async def _make(self, noun: str, fields: dict[str, Any]) -> dict[str, Any]:
        body = await self._identity("POST", f"/{noun}s", {noun: fields})
        self.steps.append(f"{noun} {fields['name']} created")
        made: dict[str, Any] = body[noun]
        return made

    async def _grant(self, target: str, user_id: str, names: tuple[str, ...], ids: Mapping[str, str]) -> None:
        for name in dict.fromkeys(names):
            await self._identity("PUT", f"{target}/users/{user_id}/roles/{ids[name]}")

    # ---- requests

    async def _identity(
        self,
        method: str,
        path: str,
        json: Any = None,
        query: Mapping[str, str] | None = None,
        *,
        missing_ok: bool = False,
        refused_ok: bool = False,
    ) -> Any:
        tolerated = {Verdict.GONE} if missing_ok else {Verdict.UNAUTHORIZED} if refused_ok else set()
        return await self._ask("identity", method, path, json, query, tolerated)

    async def _ask(
        self,
        service: str,
        method: str,
        path: str,
        json: Any,
        query: Mapping[str, str] | None,
        tolerated: set[Verdict] | None = None,
    ) -> Any:
        """The answer's body, {} for none; None for a tolerated refusal.  Raises ConfigureError."""
        try:
            raw = await self.admin.request(service, method, path, json, query)
        except (NotSent, Unanswered) as fault:
            raise ConfigureError(
                f"{service} cannot be reached; check the address and the credentials", str(fault)
            ) from None
        if 200 <= raw.status < 300:
            return orjson.loads(raw.body) if raw.body.strip() else {}
        kind, text = error_of(raw.body)
        means = verdict(Operation(service, "configure", method, "/{id}"), raw.status, kind, text)
        if means in (tolerated or set()):
            return None
        if means is Verdict.EXISTS or (means is Verdict.CONFLICT and method == "PUT"):
            return {}
        remedy = (
            "use the credentials of a cloud administrator" if means is Verdict.FORBIDDEN else "see the log"
        )
        raise ConfigureError(
            f"{service} refuses {method} of {path.split('/')[1]} ({means.value}); {remedy}", text
        )


# ---------------------------------------------------------------- variables


def shell_text(values: Mapping[str, str]) -> str:
    """`export NAME=value` lines, quoted for a shell; the file's owner alone should read them."""
    return "".join(
        f"export {VARIABLES}{name}={shlex.quote(value)}\n" for name, value in sorted(values.items())
    )


def read_shell_text(text: str) -> dict[str, str]:
    """The inverse of `shell_text`; lines of other variables are passed over."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.removeprefix("export ").partition("=")
        if sign and name.startswith(VARIABLES):
            found[name.removeprefix(VARIABLES)] = "".join(shlex.split(value))
    return found


def write_file(path: Path, text: str) -> None:
    """Replace the file as a whole; only its owner may read it.  The old content stays when writing fails."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
