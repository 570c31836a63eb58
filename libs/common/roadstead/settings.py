"""Every setting of a service, from the environment (`ROADSTEAD_...`).  `docs/settings.md` is generated from this table.

Unset means the default; a value that cannot be is one line that names the variable.
"""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from roadstead.clock import OF_CLOUDS, Durations
from roadstead.seal import keys_from_file

PREFIX = "ROADSTEAD_"
Model = TypeVar("Model", bound=BaseSettings)
NOVA_NEWEST = 92


class BadSettings(ValueError):
    """Settings that cannot be; the text has one line a variable, each with its remedy."""


def setting(default: Any, description: str, unit: str = "", **more: Any) -> Any:
    """A field with what the documentation says of it; more: bounds."""
    extra: dict[str, Any] | None = {"unit": unit} if unit else None
    return Field(default=default, description=description, json_schema_extra=extra, **more)


class Settings(BaseSettings):
    """One process's settings."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", env_ignore_empty=True)

    # ---- bus
    nats_url: Annotated[list[str], NoDecode] = setting(
        ["nats://127.0.0.1:4222"],
        "Addresses of the broker, separated by commas; nats:// or tls://, user and password may stand in them.",
    )
    nats_nkey_seed: SecretStr | None = setting(None, "Seed of the nkey that this service logs in with.")
    nats_nkey_seed_file: Path | None = setting(None, "File that holds that seed instead.")
    nats_ca_file: Path | None = setting(None, "Certificates that the broker's certificate is checked with.")
    nats_inbox_prefix: str | None = setting(
        None,
        "Subject prefix of this service's replies; unset: _INBOX_ and the service's name.",
        pattern=r"^[A-Za-z0-9_.-]{1,64}$",
    )
    nats_replicas: int = setting(1, "Copies of each stream that a cluster keeps.", ge=1, le=5)
    publish_patience: float = setting(
        15.0, "How long one message is tried to be published.", "s", ge=1, le=120
    )
    request_timeout: float = setting(
        5.0, "How long another service's answer is waited for.", "s", gt=0, le=60
    )
    in_hand: int = setting(64, "Messages of one consumer that are handled at the same time.", ge=1, le=256)
    # ---- database
    database_url: SecretStr = setting(
        SecretStr("postgresql://127.0.0.1:5432/roadstead"), "Address of the PostgreSQL database."
    )
    database_schema: str | None = setting(
        None, "Schema of this service; unset: the service's name.", pattern=r"^[a-z][a-z0-9_]{0,47}$"
    )
    database_role: str | None = setting(None, "Role that each connection takes on; unset: the login's own.")
    database_pool: int = setting(8, "Connections to the database.", ge=1, le=100)
    database_patience: float = setting(15.0, "How long a lost database is waited for.", "s", gt=0, le=300)
    # ---- secrets
    seal_keys: Annotated[list[SecretStr], NoDecode] = setting(
        [], "Sealing keys, separated by commas, the one that seals first; each urlsafe base64 of 32 bytes."
    )
    seal_key_file: Path | None = setting(None, "File with the sealing keys instead, one a line.")
    # ---- the loop
    pace: float = setting(
        1.0,
        "Scales the rhythms of the loop together (sweeps, retries, leases), not the times that depend on a cloud.",
        gt=0,
        le=10,
    )
    max_passes: int = setting(64, "Passes that one process runs at the same time.", ge=1, le=1024)
    create_attempts: int = setting(
        3, "Times a server whose build fails is created before it is given up.", ge=1, le=20
    )
    sweep_shards: int = setting(
        32,
        "Shares of the projects that the monitor's replicas divide among them; the same for all of them.",
        ge=1,
        le=256,
    )
    image_cache: bool = setting(True, "Keep each region's image list in memory between requests.")
    # ---- clouds
    call_deadline: float = setting(
        60.0, "How long one request to a cloud may take, all of it.", "s", gt=0, le=600
    )
    settling: float = setting(
        65.0,
        "How long after a create whose answer was not seen its absence proves nothing; longer than a call may take.",
        "s",
        gt=0,
        le=3600,
    )
    second_look: float = setting(
        2.0, "After what was there is found absent: how long until a second look counts.", "s", gt=0, le=600
    )
    threads_per_region: int = setting(8, "Requests to one region at the same time.", ge=1, le=128)
    nova_microversion: str = setting(
        "2.90", "Compute API microversion; above 2.92 is refused: a key pair could not be made from nothing."
    )
    # ---- telemetry
    health_port: int = setting(0, "Port of /healthz, /readyz and /metrics; 0: none.", ge=0, le=65535)
    health_host: str = setting("127.0.0.1", "Address that this port is bound to.")
    log_level: Literal["debug", "info", "warning", "error"] = setting("info", "Least level that is logged.")
    log_format: Literal["json", "console"] = setting("json", "One JSON object a line, or lines for people.")
    otlp_endpoint: str | None = setting(
        None, "Base address of an OTLP/HTTP receiver of traces, for example http://collector:4318."
    )
    trace_file: Path | None = setting(None, "File that traces are appended to, OTLP-JSON, one batch a line.")
    replica: str = setting("", "Name of this process among its replicas; unset: host name and process id.")

    @field_validator("nats_url", "seal_keys", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return (
            [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        )

    @field_validator("nats_url")
    @classmethod
    def _addresses(cls, value: list[str]) -> list[str]:
        if not value or not all(re.match(r"^(nats|tls)://[^/\s]+$", url) for url in value):
            raise ValueError("give nats://HOST:PORT, several separated by commas")
        return value

    @field_validator("nova_microversion")
    @classmethod
    def _microversion(cls, value: str) -> str:
        match = re.fullmatch(r"2\.(\d+)", value)
        if match is None or int(match[1]) > NOVA_NEWEST:
            raise ValueError(f"set a version from 2.1 to 2.{NOVA_NEWEST}, for example 2.90")
        return value

    @field_validator("replica")
    @classmethod
    def _named(cls, value: str) -> str:
        return value or f"{socket.gethostname()}-{os.getpid()}"

    @model_validator(mode="after")
    def _settles_after_the_call(self) -> Self:
        if self.settling <= self.call_deadline:
            raise ValueError(
                f"{PREFIX}SETTLING ({self.settling:g} s) must be longer than {PREFIX}CALL_DEADLINE ({self.call_deadline:g} s): "
                "a request that may still be on its way would be made again"
            )
        return self

    def durations(self) -> Durations:
        """Every waiting time of the loop."""
        return replace(
            Durations().paced(self.pace), **{name: float(getattr(self, name)) for name in OF_CLOUDS}
        )

    def sealing_keys(self) -> list[str]:
        """From the variable, else from the file.  BadSettings when there is none."""
        if self.seal_keys:
            return [key.get_secret_value() for key in self.seal_keys]
        if self.seal_key_file is None:
            raise BadSettings(
                f"no sealing key: set {PREFIX}SEAL_KEYS or {PREFIX}SEAL_KEY_FILE (a key is urlsafe base64 of 32 bytes)"
            )
        return keys_from_file(_readable(self.seal_key_file, "SEAL_KEY_FILE"))

    def nkey_seed(self) -> str | None:
        """The seed of this service's nkey, None where the broker wants none."""
        if self.nats_nkey_seed is not None:
            return self.nats_nkey_seed.get_secret_value()
        if self.nats_nkey_seed_file is None:
            return None
        return _readable(self.nats_nkey_seed_file, "NATS_NKEY_SEED_FILE").read_text().strip()


def _readable(path: Path, name: str) -> Path:
    try:
        path.open("rb").close()
    except OSError as error:
        raise BadSettings(f"{PREFIX}{name}: {path} cannot be read: {error.strerror}") from None
    return path


def load_settings(**given: Any) -> Settings:
    """Settings from the environment, `given` ones first.  BadSettings for what cannot be."""
    return load(Settings, **given)


def load(model: type[Model], **given: Any) -> Model:
    """The same for the settings that one service has beside these."""
    prefix = model.model_config.get("env_prefix", "")
    try:
        return model(**given)
    except ValidationError as error:
        lines = []
        for item in error.errors(include_input=False, include_url=False):
            name = f"{prefix}{str(item['loc'][0]).upper()}: " if item["loc"] else ""
            lines.append(f"{name}{item['msg'].removeprefix('Value error, ')}")
        raise BadSettings("\n".join(lines)) from None


def table(model: type[BaseSettings] = Settings) -> list[Mapping[str, str]]:
    """One entry a setting: variable, default, unit, description; for the documentation."""
    prefix = model.model_config.get("env_prefix", "")
    rows: list[Mapping[str, str]] = []
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        rows.append(
            {
                "variable": prefix + name.upper(),
                "default": _shown(field.default),
                "unit": str(extra.get("unit", "")),
                "description": field.description or "",
            }
        )
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, list | tuple):
        return ",".join(_shown(v) for v in value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{_shown(v)}" for name, v in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
