"""Which deployment a command talks to, and on whose behalf.

A context comes from a file: the local stack's own, or an entry of `~/.config/roadstead/contexts.yaml`.  Region, project and
organization of the context are defaults that options and variables of the environment replace.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from roadstead.cli.failures import UserError
from roadstead.cli.stack.home import find_home

VARIABLE = "ROADSTEAD_CONTEXT"
CONTEXTS_FILE = "ROADSTEAD_CONTEXTS"
LOCAL = "local"
_SPELLED = {
    "natsUrl": "nats_url",
    "nkeySeedFile": "nkey_seed_file",
    "inboxPrefix": "inbox_prefix",
    "caFile": "ca_file",
    "databaseUrl": "database_url",
    "sealKeyFile": "seal_key_file",
    "octaviaUrl": "octavia_url",
    "region": "region",
    "project": "project",
    "organization": "organization",
}


@dataclass(frozen=True)
class Context:
    """nats_url: several addresses are separated by commas.  Database and sealing keys are known to operators only."""

    name: str
    nats_url: str = "nats://127.0.0.1:4222"
    nkey_seed_file: str | None = None
    inbox_prefix: str = "_INBOX"
    ca_file: str | None = None
    database_url: str | None = None
    seal_key_file: str | None = None
    octavia_url: str | None = None
    region: str | None = None
    project: str | None = None
    organization: str | None = None

    def need_region(self) -> str:
        if not self.region:
            raise UserError(
                "no region is chosen: give --region ID, or set ROADSTEAD_REGION (`roadstead region list`)", 2
            )
        return self.region

    def checked(self) -> "Context":
        """The same with the region's id in lower case.  UserError when that is none."""
        if self.region and not is_uuid(self.region):
            raise UserError(f"the region {self.region} is no id; `roadstead region list` shows the ids", 2)
        return replace(self, region=self.region.lower()) if self.region else self

    def need_project(self) -> str:
        if not self.project:
            raise UserError("no project is chosen: give --project ID, or set ROADSTEAD_PROJECT", 2)
        return self.project

    def need_database(self) -> str:
        if not self.database_url:
            raise UserError(
                f"the context {self.name} names no database: set databaseUrl in it, or ROADSTEAD_DATABASE_URL",
                2,
            )
        return self.database_url


@dataclass(frozen=True)
class Choice:
    """What was given on the command line; None: not given."""

    context: str | None = None
    region: str | None = None
    project: str | None = None
    organization: str | None = None


def contexts_file() -> Path:
    if given := os.environ.get(CONTEXTS_FILE):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "roadstead" / "contexts.yaml"


def load_context(choice: Choice, environment: Mapping[str, str] = os.environ) -> Context:
    """The context in effect.  UserError when the named one is not there or its file cannot be read."""
    wanted = choice.context or environment.get(VARIABLE)
    context = _of_environment(_named(wanted, environment), environment)
    given = {"region": choice.region, "project": choice.project, "organization": choice.organization}
    return replace(context, **{name: value for name, value in given.items() if value})


def is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def write_context(path: Path, context: Context) -> None:
    """The file that `load_context` reads, replaced as a whole."""
    values = {wire: getattr(context, name) for wire, name in _SPELLED.items()}
    text = yaml.safe_dump({"name": context.name, **{k: v for k, v in values.items() if v}}, sort_keys=False)
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def _named(wanted: str | None, environment: Mapping[str, str]) -> Context:
    local = find_home().context
    if wanted and (wanted.endswith((".yaml", ".yml")) or "/" in wanted):
        return _of_file(Path(wanted).expanduser())
    if wanted in (None, LOCAL) and local.exists():
        return _of_file(local)
    listed = _listed()
    if wanted is None:
        current = listed.get("current")
        if not current:
            return Context("environment")
        wanted = str(current)
    contexts = listed.get("contexts") or {}
    if wanted not in contexts:
        known = ", ".join(sorted(contexts)) or "none"
        remedy = "start it with `roadstead up`" if wanted == LOCAL else f"known in {contexts_file()}: {known}"
        raise UserError(f"there is no context {wanted}; {remedy}", 2)
    return _of_mapping(wanted, contexts[wanted], contexts_file())


def _listed() -> Mapping[str, Any]:
    path = contexts_file()
    return _read(path) if path.exists() else {}


def _of_file(path: Path) -> Context:
    data = _read(path)
    return _of_mapping(str(data.get("name") or path.stem), data, path)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", 2) from None
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not YAML: {error}", 2) from None
    if not isinstance(data, dict):
        raise UserError(f"{path} must hold a mapping; see `roadstead --help`", 2)
    return data


def _of_mapping(name: str, data: Any, path: Path) -> Context:
    if not isinstance(data, dict):
        raise UserError(f"the context {name} in {path} must be a mapping", 2)
    unknown = sorted(set(data) - set(_SPELLED) - {"name"})
    if unknown:
        raise UserError(f"the context {name} in {path} has unknown fields: {', '.join(unknown)}", 2)
    wrong = [key for key, value in data.items() if not isinstance(value, str)]
    if wrong:
        raise UserError(f"the context {name} in {path}: {', '.join(wrong)} must be text", 2)
    return Context(name, **{_SPELLED[key]: value for key, value in data.items() if key in _SPELLED})


def _of_environment(context: Context, environment: Mapping[str, str]) -> Context:
    """ROADSTEAD_REGION, ... over the context; addresses only where no file gave one."""
    always = ("region", "project", "organization")
    bare = context.name == "environment"
    found: dict[str, str] = {}
    for part in fields(Context):
        value = environment.get(f"ROADSTEAD_{part.name.upper()}")
        if value and part.name != "name" and (bare or part.name in always):
            found[part.name] = value
    if bare and (seed := environment.get("ROADSTEAD_NATS_NKEY_SEED_FILE")):
        found["nkey_seed_file"] = seed
    if bare and (prefix := environment.get("ROADSTEAD_NATS_INBOX_PREFIX")):
        found["inbox_prefix"] = prefix
    return replace(context, **found)
