"""The options that decide what the API answers, under the names that operators know from octavia.conf.

`OctaviaSettings` (settings.py) reads them from the environment (`ROADSTEAD_OCTAVIA_<NAME>`); a test or the adapter replaces
single ones with `dataclasses.replace`.  Times in seconds unless the name says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

CIPHERS = ":".join(
    (
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-CHACHA20-POLY1305",
        "DHE-RSA-AES128-GCM-SHA256",
        "DHE-RSA-AES256-GCM-SHA384",
        "DHE-RSA-CHACHA20-POLY1305",
    )
)
UNLIMITED = -1


@dataclass(frozen=True)
class Options:
    """One value per option; defaults are the original's but for the providers."""

    # [api_settings]
    auth_strategy: str = "keystone"  # keystone, noauth (everybody is admin, quotas are not applied), testing
    allow_pagination: bool = True
    allow_sorting: bool = True
    allow_filtering: bool = True
    allow_field_selection: bool = True
    pagination_max_limit: int | None = 1000  # None: no limit
    api_base_uri: str | None = None
    allow_tls_terminated_listeners: bool = True
    allow_ping_health_monitors: bool = True
    allow_prometheus_listeners: bool = True
    enabled_provider_drivers: Mapping[str, str] = field(
        default_factory=lambda: {"ovn": "Load balancing by Open Virtual Network."}
    )
    default_provider_driver: str = "ovn"
    udp_connect_min_interval_health_monitor: int = 3
    healthcheck_enabled: bool = False
    healthcheck_refresh_interval: int = 5
    default_listener_ciphers: str = CIPHERS
    default_pool_ciphers: str = CIPHERS
    tls_cipher_prohibit_list: str = ""
    default_listener_tls_versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    default_pool_tls_versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    minimum_tls_version: str | None = None
    default_listener_alpn_protocols: tuple[str, ...] = ("h2", "http/1.1", "http/1.0")
    default_pool_alpn_protocols: tuple[str, ...] = ("h2", "http/1.1", "http/1.0")
    # [oslo_middleware]
    max_request_body_size: int = 114688
    # [healthcheck]
    healthcheck_backends: tuple[str, ...] = ()
    healthcheck_detailed: bool = False
    # [networking]
    allow_vip_network_id: bool = True
    allow_vip_subnet_id: bool = True
    allow_vip_port_id: bool = True
    valid_vip_networks: tuple[str, ...] | None = None
    denylist_vip_networks: tuple[str, ...] = ()
    reserved_ips: tuple[str, ...] = ("169.254.169.254",)
    allow_invisible_resource_usage: bool = False
    # [quotas]: by the name of the quota column
    default_quotas: Mapping[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("load_balancer", "listener", "member", "pool", "health_monitor", "l7policy", "l7rule"), UNLIMITED
        )
    )
    # [haproxy_amphora], milliseconds
    timeout_client_data: int = 50000
    timeout_member_connect: int = 5000
    timeout_member_data: int = 50000
    timeout_tcp_inspect: int = 0
    # [controller_worker]
    loadbalancer_topology: str = "SINGLE"
    operation_deadline: float = 60.0  # what a provider has not reported by then is ERROR
    # [oslo_policy]
    enforce_scope: bool = True
    enforce_new_defaults: bool = True
