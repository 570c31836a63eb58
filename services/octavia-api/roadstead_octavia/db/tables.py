"""The tables as they are after the newest migration: the original's, under its names, and two of our own.

Texts use the "C" collation, so that the database orders ids as Python does.  Times are UTC without a zone.  Beside the original's columns
`load_balancer` has `version` (rises with every write to any row of its tree) and `revision` (rises when the provider's wish changes).
What deleting a row takes along is written in the foreign keys and, for tags (which have none), in `FAMILIES`.
"""

from functools import cache
from typing import Any

from sqlalchemy import Column, Double, Index, Integer, MetaData, UniqueConstraint, text

from roadstead_octavia.db.columns import (
    Maker,
    bigint,
    flag,
    integer,
    json,
    key,
    named,
    needed,
    plain_text,
    statuses,
    time,
    times,
    varchar,
)
from roadstead_octavia.db.tables_amphora import amphora_tables

NIL = "00000000-0000-0000-0000-000000000000"
SCHEMA = "octavia"

LOOKUPS: dict[str, tuple[str, ...]] = {
    "algorithm": ("LEAST_CONNECTIONS", "ROUND_ROBIN", "SOURCE_IP", "SOURCE_IP_PORT"),
    "amphora_roles": ("BACKUP", "MASTER", "STANDALONE"),
    "client_authentication_mode": ("MANDATORY", "NONE", "OPTIONAL"),
    "health_monitor_type": ("HTTP", "HTTPS", "PING", "SCTP", "TCP", "TLS-HELLO", "UDP-CONNECT"),
    "l7policy_action": ("REDIRECT_PREFIX", "REDIRECT_TO_POOL", "REDIRECT_TO_URL", "REJECT"),
    "l7rule_compare_type": ("CONTAINS", "ENDS_WITH", "EQUAL_TO", "REGEX", "STARTS_WITH"),
    "l7rule_type": (
        *("COOKIE", "FILE_TYPE", "HEADER", "HOST_NAME", "PATH"),
        *("SSL_CONN_HAS_CERT", "SSL_DN_FIELD", "SSL_VERIFY_RESULT"),
    ),
    "lb_topology": ("ACTIVE_STANDBY", "SINGLE"),
    "operating_status": ("DEGRADED", "DRAINING", "ERROR", "NO_MONITOR", "OFFLINE", "ONLINE"),
    "protocol": (
        *("HTTP", "HTTPS", "PROMETHEUS", "PROXY", "PROXYV2", "SCTP", "TCP", "TERMINATED_HTTPS", "UDP"),
    ),
    "provisioning_status": (
        *("ACTIVE", "ALLOCATED", "BOOTING", "DELETED", "ERROR", "FAILOVER_STOPPED"),
        *("PENDING_CREATE", "PENDING_DELETE", "PENDING_UPDATE", "READY"),
    ),
    "session_persistence_type": ("APP_COOKIE", "HTTP_COOKIE", "SOURCE_IP"),
    "vrrp_auth_method": ("AH", "PASS"),
}

# Rows that stand for what a deleted load balancer once had; no list shows them.
PLACEHOLDERS: dict[str, dict[str, Any]] = {
    "flavor_profile": {
        "id": NIL,
        "name": "DELETED-PLACEHOLDER",
        "provider_name": "DELETED",
        "flavor_data": "{}",
    },
    "flavor": {
        "id": NIL,
        "name": "DELETED-PLACEHOLDER",
        "description": "Placeholder for DELETED LBs with DELETED flavors",
        "enabled": False,
        "flavor_profile_id": NIL,
    },
    "availability_zone_profile": {
        "id": NIL,
        "name": "DELETED-PLACEHOLDER",
        "provider_name": "DELETED",
        "availability_zone_data": "{}",
    },
    "availability_zone": {
        "name": NIL,
        "description": "Placeholder for DELETED LBs with DELETED availability zones",
        "enabled": False,
        "availability_zone_profile_id": NIL,
    },
}

# Resources with tags, and the tables whose rows go with one of theirs: table -> (child, the child's column that names its parent).
FAMILIES: dict[str, tuple[tuple[str, str], ...]] = {
    "load_balancer": (("listener", "load_balancer_id"), ("pool", "load_balancer_id")),
    "listener": (("l7policy", "listener_id"),),
    "pool": (("member", "pool_id"), ("health_monitor", "pool_id")),
    "l7policy": (("l7rule", "l7policy_id"),),
    "member": (),
    "health_monitor": (),
    "l7rule": (),
}


@cache
def tables_of(schema: str | None) -> MetaData:
    """All tables in that schema (None: unqualified), in an order in which each comes after those it refers to."""
    m = Maker(schema)
    for name in LOOKUPS:
        about = () if name == "client_authentication_mode" else (varchar("description", 255),)
        m.table(name, key("name", 10 if name == "client_authentication_mode" else 255), *about)
    _choices(m)
    _load_balancer(m)
    _pool(m)
    _listener(m)
    _l7(m)
    amphora_tables(m)
    _own(m)
    return m.made


def _choices(m: Maker) -> None:
    m.table(
        "flavor_profile",
        key(),
        varchar("name", 255),
        needed("provider_name", 255),
        needed("flavor_data", 4096),
    )
    m.table(
        "flavor",
        key(),
        *named(),
        flag("enabled"),
        needed("flavor_profile_id", 36),
        m.to("fk_flavor_flavor_profile_id", "flavor_profile_id", "flavor_profile.id"),
        UniqueConstraint("name", name="uq_flavor_name"),
        Index("ix_flavor_profile", "flavor_profile_id"),
    )
    m.table(
        "availability_zone_profile",
        key(),
        varchar("name", 255),
        needed("provider_name", 255),
        needed("availability_zone_data", 4096),
    )
    m.table(
        "availability_zone",
        key("name", 255),
        varchar("description", 255),
        flag("enabled"),
        needed("availability_zone_profile_id", 36),
        m.to("fk_az_az_profile_id", "availability_zone_profile_id", "availability_zone_profile.id"),
        Index("ix_availability_zone_profile", "availability_zone_profile_id"),
    )
    kinds = ("health_monitor", "listener", "load_balancer", "member", "pool", "l7policy", "l7rule")
    limits = (integer(f"{prefix}{kind}") for prefix in ("", "in_use_") for kind in kinds)
    m.table("quotas", key("project_id"), *limits)
    m.table(
        "tags",
        key("resource_id"),
        key("tag", 255),
        Index("ix_tags_tag", "tag"),
    )


def _load_balancer(m: Maker) -> None:
    m.table(
        "load_balancer",
        key(),
        varchar("project_id", 36),
        *named(),
        *statuses(),
        varchar("topology", 36),
        flag("enabled"),
        varchar("server_group_id", 36),
        varchar("provider", 64),
        varchar("flavor_id", 36),
        varchar("availability_zone", 255),
        *times(),
        bigint("version", server_default=text("1")),
        bigint("revision", server_default=text("1")),
        *m.states("load_balancer"),
        m.to("fk_lb_topology_name", "topology", "lb_topology.name"),
        m.to("fk_lb_flavor_id", "flavor_id", "flavor.id"),
        m.to("fk_load_balancer_availability_zone_name", "availability_zone", "availability_zone.name"),
        Index("ix_load_balancer_flavor", "flavor_id"),
        Index("ix_load_balancer_availability_zone", "availability_zone"),
        Index(
            "ix_load_balancer_deleted",
            "updated_at",
            postgresql_where=text("provisioning_status = 'DELETED'"),
        ),
        *_listed("load_balancer"),
    )
    m.table(
        "vip",
        key("load_balancer_id"),
        varchar("ip_address", 64),
        *(varchar(name, 36) for name in ("port_id", "subnet_id", "network_id", "qos_policy_id")),
        flag("octavia_owned", nullable=True),
        varchar("vnic_type", 64),
        m.to("fk_vip_load_balancer_id", "load_balancer_id", "load_balancer.id", "CASCADE"),
        Index("ix_vip_port", "port_id"),
    )
    m.table(
        "vip_security_group",
        key("load_balancer_id"),
        key("sg_id", 64),
        m.to("fk_vip_sg_vip_lb_id", "load_balancer_id", "vip.load_balancer_id", "CASCADE"),
    )
    m.table(
        "additional_vip",
        key("load_balancer_id"),
        varchar("ip_address", 64),
        varchar("port_id", 36),
        key("subnet_id"),
        varchar("network_id", 36),
        m.to("fk_add_vip_load_balancer_id", "load_balancer_id", "load_balancer.id", "CASCADE"),
        Index("ix_additional_vip_load_balancer_id", "load_balancer_id"),
    )


def _listed(table: str) -> tuple[Index, ...]:
    """The order of lists, of all projects and of one."""
    order = text("created_at NULLS FIRST")
    return (
        Index(f"ix_{table}_order", order, "id"),
        Index(f"ix_{table}_project", "project_id", order, "id"),
    )


def _pool(m: Maker) -> None:
    m.table(
        "pool",
        key(),
        varchar("project_id", 36),
        *named(),
        needed("protocol", 16),
        needed("lb_algorithm", 255),
        *statuses(),
        flag("enabled"),
        varchar("load_balancer_id", 36),
        *(varchar(name, 255) for name in ("tls_certificate_id", "ca_tls_certificate_id", "crl_container_id")),
        flag("tls_enabled", default=False),
        varchar("tls_ciphers", 2048),
        plain_text("tls_versions"),
        plain_text("alpn_protocols"),
        *times(),
        m.to("fk_pool_protocol_name", "protocol", "protocol.name"),
        m.to("fk_pool_algorithm_name", "lb_algorithm", "algorithm.name"),
        *m.states("pool"),
        m.to("fk_pool_load_balancer_id", "load_balancer_id", "load_balancer.id", "CASCADE"),
        Index("ix_pool_load_balancer", "load_balancer_id"),
        *_listed("pool"),
    )
    m.table(
        "session_persistence",
        key("pool_id"),
        needed("type", 36),
        varchar("cookie_name", 255),
        integer("persistence_timeout"),
        varchar("persistence_granularity", 64),
        m.to("fk_session_persistence_pool_id", "pool_id", "pool.id", "CASCADE"),
        m.to("fk_session_persistence_session_persistence_type_name", "type", "session_persistence_type.name"),
    )
    m.table(
        "member",
        key(),
        varchar("project_id", 36),
        varchar("name", 255),
        needed("pool_id", 36),
        varchar("subnet_id", 36),
        needed("ip_address", 64),
        integer("protocol_port", nullable=False),
        integer("weight"),
        flag("backup"),
        varchar("monitor_address", 64),
        integer("monitor_port"),
        *statuses(),
        flag("enabled"),
        varchar("vnic_type", 64),
        *times(),
        m.to("fk_member_pool_id", "pool_id", "pool.id", "CASCADE"),
        *m.states("member"),
        UniqueConstraint(
            "pool_id", "ip_address", "protocol_port", name="uq_member_pool_id_address_protocol_port"
        ),
        *_listed("member"),
    )
    m.table(
        "health_monitor",
        key(),
        varchar("project_id", 36),
        varchar("name", 255),
        needed("type", 36),
        needed("pool_id", 36),
        *(integer(n, nullable=False) for n in ("delay", "timeout", "fall_threshold", "rise_threshold")),
        varchar("http_method", 16),
        varchar("url_path", 2048),
        varchar("expected_codes", 64),
        flag("enabled"),
        *statuses(),
        Column("http_version", Double),
        varchar("domain_name", 255),
        *times(),
        m.to("fk_health_monitor_health_monitor_type_name", "type", "health_monitor_type.name"),
        m.to("fk_health_monitor_pool_id", "pool_id", "pool.id", "CASCADE"),
        *m.states("health_monitor"),
        UniqueConstraint("pool_id", name="uq_health_monitor_pool"),
        *_listed("health_monitor"),
    )


def _listener(m: Maker) -> None:
    waits = ("timeout_client_data", "timeout_member_connect", "timeout_member_data", "timeout_tcp_inspect")
    m.table(
        "listener",
        key(),
        varchar("project_id", 36),
        *named(),
        needed("protocol", 16),
        integer("protocol_port", nullable=False),
        integer("connection_limit"),
        varchar("load_balancer_id", 36),
        varchar("tls_certificate_id", 255),
        varchar("default_pool_id", 36),
        *statuses(),
        flag("enabled"),
        integer("peer_port"),
        json("insert_headers"),
        *(integer(name) for name in waits),
        varchar("client_ca_tls_certificate_id", 255),
        needed("client_authentication", 10, server_default=text("'NONE'")),
        varchar("client_crl_container_id", 255),
        varchar("tls_ciphers", 2048),
        plain_text("tls_versions"),
        plain_text("alpn_protocols"),
        integer("hsts_max_age"),
        flag("hsts_include_subdomains", nullable=True),
        flag("hsts_preload", nullable=True),
        *times(),
        m.to("fk_listener_protocol_name", "protocol", "protocol.name"),
        m.to("fk_listener_load_balancer_id", "load_balancer_id", "load_balancer.id", "CASCADE"),
        m.to("fk_listener_pool_id", "default_pool_id", "pool.id", "SET NULL"),
        *m.states("listener"),
        m.to(
            "fk_listener_client_authentication_mode_name",
            "client_authentication",
            "client_authentication_mode.name",
        ),
        UniqueConstraint(
            "load_balancer_id", "protocol", "protocol_port", name="uq_listener_load_balancer_id_protocol_port"
        ),
        Index("ix_listener_default_pool", "default_pool_id"),
        *_listed("listener"),
    )
    m.table(
        "listener_cidr",
        key("listener_id"),
        key("cidr", 64),
        m.to("fk_listener_cidr_listener_id", "listener_id", "listener.id", "CASCADE"),
    )
    m.table(
        "sni",
        key("listener_id"),
        key("tls_container_id", 255),  # the original's column holds 128 characters, its API takes 255
        integer("position"),
        m.to("fk_sni_listener_id", "listener_id", "listener.id", "CASCADE"),
    )
    counters = ("bytes_in", "bytes_out", "total_connections", "request_errors")
    m.table(
        "listener_statistics",
        key("listener_id"),
        key("amphora_id"),
        *(bigint(name) for name in counters[:2]),
        integer("active_connections", nullable=False),
        *(bigint(name) for name in counters[2:]),
    )


def _l7(m: Maker) -> None:
    m.table(
        "l7policy",
        key(),
        varchar("project_id", 36),
        *named(),
        needed("listener_id", 36),
        needed("action", 36),
        varchar("redirect_pool_id", 36),
        varchar("redirect_url", 255),
        varchar("redirect_prefix", 255),
        integer("redirect_http_code"),
        integer("position", nullable=False),
        flag("enabled"),
        *statuses(),
        *times(),
        m.to("fk_l7policy_listener_id", "listener_id", "listener.id", "CASCADE"),
        m.to("fk_l7policy_l7policy_action_name", "action", "l7policy_action.name"),
        m.to("fk_l7policy_pool_id", "redirect_pool_id", "pool.id", "SET NULL"),
        *m.states("l7policy"),
        Index("ix_l7policy_listener", "listener_id"),
        Index("ix_l7policy_redirect_pool", "redirect_pool_id"),
        *_listed("l7policy"),
    )
    m.table(
        "l7rule",
        key(),
        varchar("project_id", 36),
        needed("l7policy_id", 36),
        needed("type", 36),
        needed("compare_type", 36),
        varchar("key", 255),
        needed("value", 255),
        flag("invert", default=False),
        flag("enabled"),
        *statuses(),
        *times(),
        m.to("fk_l7rule_l7policy_id", "l7policy_id", "l7policy.id", "CASCADE"),
        m.to("fk_l7rule_l7rule_type_name", "type", "l7rule_type.name"),
        m.to("fk_l7rule_l7rule_compare_type_name", "compare_type", "l7rule_compare_type.name"),
        *m.states("l7rule"),
        Index("ix_l7rule_policy", "l7policy_id"),
        *_listed("l7rule"),
    )


def _own(m: Maker) -> None:
    """operation: what a provider was asked and what came of it.  vip_port_claim: who makes the VIP port of a load balancer that has no
    row yet; whoever deletes the claim (the creation, or the sweep that removes the port) owns what becomes of the port."""
    m.table(
        "operation",
        key(),
        needed("load_balancer_id", 36),
        bigint("revision"),
        needed("provider", 64),
        needed("method", 64),
        needed("object", 32),
        needed("verb", 32),
        json("touched", nullable=False),
        json("arguments", nullable=False),
        needed("state", 16, server_default=text("'SENT'")),
        plain_text("reason"),
        time("created_at", nullable=False),
        time("ended_at"),
        time("deadline", nullable=False),
        time("next_send_at"),
        Column("sends", Integer, nullable=False, server_default=text("1")),
        m.to("fk_operation_load_balancer_id", "load_balancer_id", "load_balancer.id", "CASCADE"),
        Index("ix_operation_load_balancer", "load_balancer_id", "created_at"),
        Index("ix_operation_due", "next_send_at", postgresql_where=text("next_send_at IS NOT NULL")),
        Index("ix_operation_ended", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
    )
    m.table(
        "vip_port_claim",
        key("load_balancer_id"),
        varchar("project_id", 36),
        needed("provider", 64),
        needed("maker", 16),
        varchar("port_id", 36),
        time("created_at", nullable=False),
        time("deadline", nullable=False),
        time("removing_since"),
        Index("ix_vip_port_claim_deadline", "deadline"),
    )
