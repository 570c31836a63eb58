"""Settings of the OVN worker beside those that every service has (`ROADSTEAD_OVN_...`); docs/ovn-settings.md is made from this."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from roadstead.cloud.sdk.service_user import ServiceUser
from roadstead.settings import BadSettings, load, setting

PREFIX = "ROADSTEAD_OVN_"

Texts = Annotated[tuple[str, ...], NoDecode]
_CONNECTION = re.compile(r"^((tcp|ssl):(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}|unix:/\S+)$")
_HTTP = re.compile(r"^https?://(\[[0-9a-fA-F:.]+\]|[^/:\s?#@]+)(:\d{1,5})?(/[^\s?#]*)?$")
_NOT_EMPTY = ("NB_CONNECTION", "SB_CONNECTION")


def _tls(what: str, database: str, also: str = "") -> Any:
    return setting(None, f"{what} for `ssl:` connections to the {database} database{also}.")


class OvnSettings(BaseSettings):
    """One process of the worker."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", env_ignore_empty=True)

    provider_name: str = setting(
        "ovn",
        "Name of the provider that this worker is, as load balancers have it.",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
    )
    # ---- databases of OVN
    nb_connection: Texts = setting(
        ("tcp:127.0.0.1:6641",),
        "Members of the Northbound database's cluster, separated by commas: tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH.",
    )
    sb_connection: Texts = setting(("tcp:127.0.0.1:6642",), "The same of the Southbound database.")
    nb_private_key: Path | None = _tls("Private key", "Northbound")
    nb_certificate: Path | None = _tls("Certificate", "Northbound")
    nb_ca_cert: Path | None = _tls("Certificates that the server's is checked with,", "Northbound")
    sb_private_key: Path | None = _tls("Private key", "Southbound", "; unset: the Northbound one's")
    sb_certificate: Path | None = _tls("Certificate", "Southbound", "; unset: the Northbound one's")
    sb_ca_cert: Path | None = _tls(
        "Certificates that the server's is checked with,", "Southbound", "; unset: the Northbound one's"
    )
    ovsdb_timeout: float = setting(
        10.0, "How long the answer to a transaction is waited for.", "s", gt=0, le=120
    )
    ovsdb_probe_interval: int = setting(
        5000, "How often a silent connection is tested; 0: never.", "ms", ge=0, le=600_000
    )
    # ---- network service
    auth_url: str | None = setting(
        None,
        "Address of the identity service, for example http://host:5000/v3; unset: there is no network service, and whatever needs one is refused.",
    )
    username: str = setting("octavia", "User that Neutron is asked as; ports are made by it.")
    password: SecretStr | None = setting(None, "Its password.")
    password_file: Path | None = setting(None, "File that holds the password instead.")
    user_domain_name: str = setting("Default", "Domain of this user.")
    project_name: str = setting("service", "Project that this user acts in.")
    project_domain_name: str = setting("Default", "Domain of this project.")
    region_name: str | None = setting(None, "Region whose endpoints are used.")
    interface: Literal["public", "internal", "admin"] = setting(
        "internal", "Which endpoints of the catalogue are used."
    )
    ca_file: Path | None = setting(None, "Certificates that other services' certificates are checked with.")
    neutron_endpoint: str | None = setting(None, "Address of Neutron instead of the catalogue's.")
    neutron_threads: int = setting(16, "Requests to Neutron at the same time.", ge=1, le=256)
    neutron_timeout: float = setting(8.0, "How long its answer is waited for.", "s", gt=0, le=60)
    # ---- rhythm and bounds
    passes: int = setting(32, "Load balancers that one process works on at the same time.", ge=1, le=1024)
    lease: float = setting(
        15.0, "After this a load balancer whose worker is gone goes to another one.", "s", ge=3, le=300
    )
    poll: float = setting(
        1.0,
        "How often work that became due by itself or at another worker is looked for.",
        "s",
        ge=0.05,
        le=60,
    )
    sync_every: float = setting(
        300.0,
        "How often everything is compared with the database and put right; one of all workers does it.",
        "s",
        ge=5,
        le=86_400,
    )
    spread: float = setting(
        20.0, "After a loss all load balancers fall due within this time, not at once.", "s", ge=0, le=3600
    )
    drain: float = setting(
        10.0, "How long work in hand may take to end when the process stops.", "s", ge=0, le=300
    )

    @field_validator("nb_connection", "sb_connection", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("nb_connection", "sb_connection")
    @classmethod
    def _connections(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or not all(_CONNECTION.match(one) for one in value):
            raise ValueError("give tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH, several separated by commas")
        return value

    @field_validator("auth_url", "neutron_endpoint")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and not _HTTP.match(value):
            raise ValueError("give an address such as http://HOST:PORT or https://HOST:PORT/PATH")
        return value

    def service_user(self) -> ServiceUser | None:
        """None when no cloud is set up.  BadSettings when its password is missing."""
        if not self.auth_url:
            return None
        url = self.auth_url.rstrip("/")
        return ServiceUser(
            auth_url=url if url.endswith("/v3") else f"{url}/v3",
            username=self.username,
            password=self._password(),
            project_name=self.project_name,
            user_domain_name=self.user_domain_name,
            project_domain_name=self.project_domain_name,
            region_name=self.region_name,
            interface=self.interface,
            verify=str(self.ca_file) if self.ca_file else True,
            timeout=self.neutron_timeout,
        )

    def _password(self) -> str:
        if self.password is not None:
            return self.password.get_secret_value()
        if self.password_file is None:
            raise BadSettings(f"no password: set {PREFIX}PASSWORD or {PREFIX}PASSWORD_FILE")
        try:
            return self.password_file.read_text().strip()
        except OSError as error:
            raise BadSettings(
                f"{PREFIX}PASSWORD_FILE: {self.password_file} cannot be read: {error.strerror}"
            ) from None


def load_ovn_settings(**given: Any) -> OvnSettings:
    """From the environment, `given` ones first.  BadSettings, one line a variable, for what cannot be."""
    for name in _NOT_EMPTY:
        # An empty variable is elsewhere as good as none; here it would be a database on this machine that nobody meant.
        if name.lower() not in given and os.environ.get(f"{PREFIX}{name}", "unset").strip() == "":
            raise BadSettings(f"{PREFIX}{name}: is empty; give tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH")
    return load(OvnSettings, **given)
