"""Settings of the Octavia API beside those that every service has (`ROADSTEAD_OCTAVIA_...`); docs/octavia-settings.md is made from this.

Those that decide what the API answers have the names of octavia.conf and become `Options`.
"""

import dataclasses
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from roadstead.settings import BadSettings, load, setting
from roadstead_octavia.options import CIPHERS, UNLIMITED, Options

PREFIX = "ROADSTEAD_OCTAVIA_"
TLS_VERSIONS = ("SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
QUOTAS = ("load_balancer", "listener", "member", "pool", "health_monitor", "l7policy", "l7rule")

_NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")  # one token of a subject

Texts = Annotated[tuple[str, ...], NoDecode]


def _limit(noun: str) -> Any:
    return setting(
        UNLIMITED, f"{noun} that a project may have when nobody set its quota; -1: no limit.", ge=-1
    )


class OctaviaSettings(BaseSettings):
    """One process of the API."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", env_ignore_empty=True)

    # ---- server
    bind_host: str = setting("127.0.0.1", "Address that the API listens on.")
    bind_port: int = setting(9876, "Port that the API listens on; 0: any free one.", ge=0, le=65535)
    reuse_port: bool = setting(
        False,
        "Several processes on this machine may listen on the same address and port; the kernel spreads connections over them.",
    )
    url_prefix: str = setting(
        "", "Path under which the API is served, for example /load-balancer; taken off before anything else."
    )
    api_base_uri: str | None = setting(
        None, "Links in answers begin with this instead of the request's host."
    )
    trusted_proxies: str = setting(
        "", "Addresses, separated by commas, whose X-Forwarded-Proto and -For are believed; `*`: any."
    )
    max_request_body_size: int = setting(114688, "Larger bodies are refused with 413.", "bytes", ge=1024)
    connections: int = setting(1000, "Connections that clients may hold at the same time.", ge=1, le=65535)
    drain: float = setting(
        20.0, "How long requests in hand may take to end when the process stops.", "s", ge=0
    )
    cors_allowed_origin: Texts = setting(
        (), "Origins, separated by commas, whose scripts may call the API from a browser."
    )
    # ---- identity
    auth_strategy: Literal["keystone", "noauth", "testing"] = setting(
        "keystone",
        "keystone: tokens are checked. For development only: noauth (everybody is administrator, no quotas) and testing (the caller is"
        " what the X-* headers say).",
    )
    auth_url: str | None = setting(None, "Address of the identity service, for example http://host:5000/v3.")
    www_authenticate_uri: str | None = setting(
        None, "Address that a client without a token is pointed to; unset: the same."
    )
    username: str = setting("octavia", "User that tokens are checked with, and that VIP ports are made by.")
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
    identity_timeout: float = setting(
        10.0, "How long the identity service's answer is waited for.", "s", gt=0, le=60
    )
    token_cache_time: float = setting(
        60.0,
        "How long a checked token is believed; a revoked one is refused after this at the latest.",
        "s",
        ge=0,
        le=3600,
    )
    token_cache_size: int = setting(10_000, "Tokens that are remembered.", ge=1)
    service_token_roles: Texts = setting(
        ("service",),
        "Roles of which one makes X-Service-Token a service's, so that the user's own token may have run out.",
    )
    policy_file: Path | None = setting(None, "The operators' policy file; unset: the default rules.")
    enforce_scope: bool = setting(True, "Tokens of the wrong scope are refused.")
    enforce_new_defaults: bool = setting(True, "false: the rules of older releases hold beside the new ones.")
    # ---- other services
    cloud_threads: int = setting(
        16, "Requests to Neutron, and as many to Barbican, at the same time.", ge=1, le=256
    )
    cloud_timeout: float = setting(15.0, "How long an answer of theirs is waited for.", "s", gt=0, le=120)
    neutron_endpoint: str | None = setting(None, "Address of Neutron instead of the catalogue's.")
    barbican_endpoint: str | None = setting(None, "Address of Barbican instead of the catalogue's.")
    # ---- answers
    allow_pagination: bool = setting(True, "false: limit and marker are ignored and there are no links.")
    allow_sorting: bool = setting(True, "false: sort, sort_key and sort_dir are ignored.")
    allow_filtering: bool = setting(True, "false: filters are ignored.")
    allow_field_selection: bool = setting(True, "false: fields is ignored.")
    pagination_max_limit: int | None = setting(
        1000, "Most rows in one answer, and the default; -1: no limit."
    )
    healthcheck_enabled: bool = setting(False, "/healthcheck is answered.")
    healthcheck_refresh_interval: int = setting(
        5, "How long the state of the database is believed there.", "s", ge=0
    )
    healthcheck_backends: Texts = setting((), "What is checked there; octavia_db_check is known.")
    healthcheck_detailed: bool = setting(False, "The answers there say more.")
    enabled_provider_drivers: Annotated[dict[str, str], NoDecode] = setting(
        {"ovn": "Load balancing by Open Virtual Network."},
        "Providers and what they are, as NAME:DESCRIPTION, separated by commas.",
    )
    default_provider_driver: str = setting("ovn", "Provider of a load balancer that names none.")
    allow_tls_terminated_listeners: bool = setting(True, "TERMINATED_HTTPS listeners may be made.")
    allow_ping_health_monitors: bool = setting(True, "PING monitors may be made.")
    allow_prometheus_listeners: bool = setting(True, "PROMETHEUS listeners may be made.")
    udp_connect_min_interval_health_monitor: int = setting(3, "Least delay of a UDP-CONNECT monitor.", "s")
    default_listener_ciphers: str = setting(
        CIPHERS, "Ciphers of a TERMINATED_HTTPS listener that names none."
    )
    default_pool_ciphers: str = setting(CIPHERS, "Ciphers of a pool with TLS that names none.")
    tls_cipher_prohibit_list: str = setting("", "Ciphers that are refused, separated by colons.")
    default_listener_tls_versions: Texts = setting(
        ("TLSv1.2", "TLSv1.3"), "The same for TLS versions of listeners."
    )
    default_pool_tls_versions: Texts = setting(("TLSv1.2", "TLSv1.3"), "The same for TLS versions of pools.")
    minimum_tls_version: Literal["SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"] | None = setting(
        None, "Lower TLS versions are refused."
    )
    default_listener_alpn_protocols: Texts = setting(
        ("h2", "http/1.1", "http/1.0"), "The same for ALPN protocols of listeners."
    )
    default_pool_alpn_protocols: Texts = setting(
        ("h2", "http/1.1", "http/1.0"), "The same for ALPN protocols of pools."
    )
    allow_vip_network_id: bool = setting(True, "vip_network_id may be given.")
    allow_vip_subnet_id: bool = setting(True, "vip_subnet_id may be given.")
    allow_vip_port_id: bool = setting(True, "vip_port_id may be given.")
    valid_vip_networks: Annotated[tuple[str, ...] | None, NoDecode] = setting(
        None, "Networks that VIPs may be in, separated by commas; unset: any."
    )
    denylist_vip_networks: Texts = setting((), "Networks that VIPs may not be in.")
    reserved_ips: Texts = setting(("169.254.169.254",), "Addresses that no member may have.")
    allow_invisible_resource_usage: bool = setting(
        False,
        "Subnets, networks and ports are looked up as the service, so a user may use what they cannot see.",
    )
    default_load_balancer_quota: int = _limit("Load balancers")
    default_listener_quota: int = _limit("Listeners")
    default_member_quota: int = _limit("Members")
    default_pool_quota: int = _limit("Pools")
    default_health_monitor_quota: int = _limit("Health monitors")
    default_l7policy_quota: int = _limit("L7 policies")
    default_l7rule_quota: int = _limit("L7 rules")
    timeout_client_data: int = setting(50000, "Default of listeners.", "ms", ge=0)
    timeout_member_connect: int = setting(5000, "Default of listeners.", "ms", ge=0)
    timeout_member_data: int = setting(50000, "Default of listeners.", "ms", ge=0)
    timeout_tcp_inspect: int = setting(0, "Default of listeners.", "ms", ge=0)
    loadbalancer_topology: Literal["SINGLE", "ACTIVE_STANDBY"] = setting("SINGLE", "Topology that is stored.")
    operation_deadline: float = setting(
        60.0,
        "How long a provider may take for an operation: objects that it has not reported by then are ERROR, with the reason in"
        " `roadstead octavia operations`.",
        "s",
        ge=1,
        le=3600,
    )
    load_balancer_expiry_age: int = setting(
        604_800, "Age after which deleted load balancers are forgotten.", "s", ge=0
    )

    @field_validator(
        "cors_allowed_origin",
        "service_token_roles",
        "healthcheck_backends",
        "default_listener_tls_versions",
        "default_pool_tls_versions",
        "default_listener_alpn_protocols",
        "default_pool_alpn_protocols",
        "valid_vip_networks",
        "denylist_vip_networks",
        "reserved_ips",
        mode="before",
    )
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("enabled_provider_drivers", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [part.partition(":") for part in value.split(",") if part.strip()]
        if not pairs or not all(_NAME.match(name.strip()) for name, _, _ in pairs):
            raise ValueError(
                "give NAME:DESCRIPTION, several separated by commas; names of letters, digits, _ and -"
            )
        return {name.strip(): text.strip() for name, _, text in pairs}

    @field_validator("auth_url", "api_base_uri")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None:
            parts = urlsplit(value)
            if (
                parts.scheme not in ("http", "https")
                or not parts.hostname
                or not value.isprintable()
                or " " in value
            ):
                raise ValueError("give an address that begins with http:// or https:// and a host")
        return value

    @field_validator("url_prefix")
    @classmethod
    def _prefix(cls, value: str) -> str:
        stripped = value.strip("/")
        return f"/{stripped}" if stripped else ""

    @field_validator("pagination_max_limit")
    @classmethod
    def _most(cls, value: int | None) -> int | None:
        return None if value is None or value < 1 else value

    @model_validator(mode="after")
    def _versions(self) -> "OctaviaSettings":
        lowest = self.minimum_tls_version
        for name in ("default_listener_tls_versions", "default_pool_tls_versions"):
            versions = getattr(self, name)
            unknown = [v for v in versions if v not in TLS_VERSIONS]
            if unknown:
                raise ValueError(f"{PREFIX}{name.upper()}: {unknown[0]} is none of {', '.join(TLS_VERSIONS)}")
            low = [v for v in versions if lowest and TLS_VERSIONS.index(v) < TLS_VERSIONS.index(lowest)]
            if low:
                raise ValueError(
                    f"{PREFIX}{name.upper()}: {low[0]} is below {PREFIX}MINIMUM_TLS_VERSION {lowest}"
                )
        if self.default_provider_driver not in self.enabled_provider_drivers:
            raise ValueError(
                f"{PREFIX}DEFAULT_PROVIDER_DRIVER: {self.default_provider_driver} is not among {PREFIX}ENABLED_PROVIDER_DRIVERS"
            )
        return self

    def options(self) -> Options:
        """What operations go by."""
        names = {field.name for field in dataclasses.fields(Options)} - {"default_quotas"}
        values = {name: getattr(self, name) for name in names}
        quotas = {name: getattr(self, f"default_{name}_quota") for name in QUOTAS}
        return Options(**values, default_quotas=quotas)

    def service_password(self) -> str:
        """From the variable, else from the file.  BadSettings when there is none."""
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

    def identity_url(self) -> str:
        """The identity service's address, with its version.  BadSettings when there is none."""
        if not self.auth_url:
            raise BadSettings(
                f"{PREFIX}AUTH_URL: set it to the identity service's address, for example http://host:5000/v3"
            )
        url = self.auth_url.rstrip("/")
        return url if url.endswith("/v3") else f"{url}/v3"


def load_octavia_settings(**given: Any) -> OctaviaSettings:
    """From the environment, `given` ones first.  BadSettings, one line a variable, for what cannot be."""
    return load(OctaviaSettings, **given)
