"""Pools: groups of members with one way of spreading traffic."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from roadstead_octavia.resources.healthmonitor import wire as healthmonitor
from roadstead_octavia.resources.member import wire as member
from roadstead_octavia.wire.describe import KEEP, NO_COLUMN, Body, Field, Kind, Resource, named
from roadstead_octavia.wire.kinds import (
    address,
    admin_state,
    array,
    boolean,
    choice,
    integer,
    nested,
    project,
    tags,
    tenant,
    text,
    uuid,
)
from roadstead_octavia.wire.values import column, commas, ids, only, text_of
from roadstead_octavia.wire.write import whole, wholes

ALPN = ("h2", "http/1.1", "http/1.0")
PERSISTENCE_TYPES = ("APP_COOKIE", "HTTP_COOKIE", "SOURCE_IP")
COOKIE_NAME = r"^[^\s,;\\]+$"
PROTOCOLS = ("HTTP", "HTTPS", "PROXY", "PROXYV2", "SCTP", "TCP", "UDP")
ALGORITHMS = ("LEAST_CONNECTIONS", "ROUND_ROBIN", "SOURCE_IP", "SOURCE_IP_PORT")

PERSISTENCE_POST = Body(
    "SessionPersistencePost",
    {
        "type": choice(*PERSISTENCE_TYPES, required=True),
        "cookie_name": text(pattern=COOKIE_NAME, default=None),
        "persistence_timeout": integer(default=None),
        "persistence_granularity": address(default=None),
    },
)

PERSISTENCE_PUT = Body(
    "SessionPersistencePut",
    {
        "type": choice(*PERSISTENCE_TYPES),
        "cookie_name": text(pattern=COOKIE_NAME, default=None),
        "persistence_timeout": integer(default=None),
        "persistence_granularity": address(default=None),
    },
)

SINGLE = Body(
    "PoolSingle",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(default=True),
        "protocol": choice(*PROTOCOLS, nullable=False),
        "lb_algorithm": choice(*ALGORITHMS, nullable=False),
        "session_persistence": nested(PERSISTENCE_POST, column=NO_COLUMN),
        "healthmonitor": nested(healthmonitor.SINGLE, column=NO_COLUMN),
        "members": array(member.SINGLE, column=NO_COLUMN, on_null=KEEP),
        "tags": tags(),
        "tls_container_ref": text(column="tls_certificate_id"),
        "ca_tls_container_ref": text(column="ca_tls_certificate_id"),
        "crl_container_ref": text(column="crl_container_id"),
        "tls_enabled": boolean(default=False),
        "tls_ciphers": text(2048),
        "tls_versions": array(text(32)),
        "alpn_protocols": array(Field(Kind.ALPN, choices=ALPN)),
    },
)

POST = Body(
    "PoolPost",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(default=True),
        "listener_id": uuid(column=NO_COLUMN),
        "loadbalancer_id": uuid(column="load_balancer_id"),
        "protocol": choice(*PROTOCOLS, required=True, nullable=False),
        "lb_algorithm": choice(*ALGORITHMS, required=True, nullable=False),
        "session_persistence": nested(PERSISTENCE_POST, column=NO_COLUMN),
        "project_id": project(),
        "healthmonitor": nested(healthmonitor.SINGLE, column=NO_COLUMN, only_empty=True),
        "members": array(member.SINGLE, column=NO_COLUMN, only_empty=True, on_null=KEEP),
        "tags": tags(),
        "tls_container_ref": text(column="tls_certificate_id"),
        "ca_tls_container_ref": text(column="ca_tls_certificate_id"),
        "crl_container_ref": text(column="crl_container_id"),
        "tls_enabled": boolean(default=False),
        "tls_ciphers": text(2048),
        "tls_versions": array(text(32)),
        "alpn_protocols": array(Field(Kind.ALPN, choices=ALPN)),
        "tenant_id": tenant(),
    },
)

PUT = Body(
    "PoolPut",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(),
        "lb_algorithm": choice(*ALGORITHMS, nullable=False),
        "session_persistence": nested(PERSISTENCE_PUT, column=NO_COLUMN),
        "tags": tags(),
        "tls_container_ref": text(column="tls_certificate_id"),
        "ca_tls_container_ref": text(column="ca_tls_certificate_id"),
        "crl_container_ref": text(column="crl_container_id"),
        "tls_enabled": boolean(nullable=False),
        "tls_ciphers": text(2048, on_null=attrgetter("default_pool_ciphers")),
        "tls_versions": array(text(32), on_null=lambda options: list(options.default_pool_tls_versions)),
        "alpn_protocols": array(Field(Kind.ALPN, choices=ALPN)),
    },
)

KEYS = named(
    "alpn_protocols",
    "ca_tls_certificate_id",
    "created_at",
    "crl_container_id",
    "description",
    "enabled",
    "id",
    "lb_algorithm",
    "load_balancer_id",
    "name",
    "operating_status",
    "project_id",
    "protocol",
    "provisioning_status",
    "tls_certificate_id",
    "tls_ciphers",
    "tls_enabled",
    "tls_versions",
    "updated_at",
    admin_state_up="enabled",
    ca_tls_container_ref="ca_tls_certificate_id",
    crl_container_ref="crl_container_id",
    healthmonitor_id="health_monitor.id",
    tls_container_ref="tls_certificate_id",
)


def _persistence(row: Mapping[str, Any]) -> dict[str, Any] | None:
    stored = row["session_persistence"]
    return stored and {name: stored[name] for name in PERSISTENCE_POST.fields}


RESOURCE = Resource(
    noun="Pool",
    table="pool",
    rule="pool",
    one="pool",
    many="pools",
    links="pools_links",
    argument="pool_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "name": text_of("name"),
        "description": text_of("description"),
        "provisioning_status": column("provisioning_status"),
        "operating_status": column("operating_status"),
        "admin_state_up": column("enabled"),
        "protocol": column("protocol"),
        "lb_algorithm": column("lb_algorithm"),
        "session_persistence": _persistence,
        "project_id": column("project_id"),
        "loadbalancers": only("load_balancer_id"),
        "listeners": ids("listeners"),
        "created_at": column("created_at"),
        "updated_at": column("updated_at"),
        "healthmonitor_id": column("health_monitor_id"),
        "members": ids("members"),
        "tags": column("tags"),
        "tls_container_ref": column("tls_certificate_id"),
        "ca_tls_container_ref": column("ca_tls_certificate_id"),
        "crl_container_ref": column("crl_container_id"),
        "tls_enabled": column("tls_enabled"),
        "tls_ciphers": column("tls_ciphers"),
        "tls_versions": commas("tls_versions"),
        "alpn_protocols": commas("alpn_protocols"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(
        (
            "enabled",
            "tls_enabled",
        )
    ),
    full={
        "members": wholes("members", member.RESOURCE),
        "healthmonitor": whole("health_monitor", healthmonitor.RESOURCE),
        "healthmonitor_id": None,
        "loadbalancers": None,
    },
    tagged=True,
    optional=frozenset(("healthmonitor_id",)),
)
