"""Listeners: where traffic comes in."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from roadstead_octavia.resources.l7policy import wire as l7policy
from roadstead_octavia.resources.pool import wire as pool
from roadstead_octavia.wire.describe import KEEP, NO_COLUMN, Body, Field, Kind, Resource, named
from roadstead_octavia.wire.kinds import (
    admin_state,
    array,
    boolean,
    choice,
    integer,
    mapping,
    nested,
    project,
    tags,
    tenant,
    text,
    uuid,
)
from roadstead_octavia.wire.values import column, commas, filled, ids, only, text_of
from roadstead_octavia.wire.write import wholes

ALPN = ("h2", "http/1.1", "http/1.0")
PROTOCOLS = ("HTTP", "HTTPS", "PROMETHEUS", "SCTP", "TCP", "TERMINATED_HTTPS", "UDP")
PORT = 65535
TIMEOUT = 2073600000
CLIENT_AUTHENTICATION = ("MANDATORY", "NONE", "OPTIONAL")

SINGLE = Body(
    "ListenerSingle",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(default=True),
        "protocol": choice(*PROTOCOLS, required=True),
        "protocol_port": integer(1, PORT, required=True),
        "connection_limit": integer(-1, default=-1, on_null=KEEP),
        "default_tls_container_ref": text(column="tls_certificate_id"),
        "sni_container_refs": array(text(), column=NO_COLUMN, unique=True),
        "default_pool_id": uuid(),
        "default_pool": nested(pool.SINGLE, column=NO_COLUMN),
        "l7policies": array(l7policy.SINGLE, default=[], column=NO_COLUMN, on_null=KEEP),
        "insert_headers": mapping(text()),
        "timeout_client_data": integer(0, TIMEOUT),
        "timeout_member_connect": integer(0, TIMEOUT),
        "timeout_member_data": integer(0, TIMEOUT),
        "timeout_tcp_inspect": integer(0, TIMEOUT),
        "tags": tags(),
        "client_ca_tls_container_ref": text(column="client_ca_tls_certificate_id"),
        "client_authentication": choice(*CLIENT_AUTHENTICATION, default="NONE", on_null=KEEP),
        "client_crl_container_ref": text(column="client_crl_container_id"),
        "allowed_cidrs": array(Field(Kind.CIDR), column=NO_COLUMN, unique=True),
        "tls_ciphers": text(2048),
        "tls_versions": array(text(32)),
        "alpn_protocols": array(Field(Kind.ALPN, choices=ALPN)),
        "hsts_max_age": integer(),
        "hsts_include_subdomains": boolean(default=False),
        "hsts_preload": boolean(default=False),
    },
)

POST = Body(
    "ListenerPost",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(default=True),
        "protocol": choice(*PROTOCOLS, required=True),
        "protocol_port": integer(1, PORT, required=True),
        "connection_limit": integer(-1, default=-1, on_null=KEEP),
        "default_tls_container_ref": text(column="tls_certificate_id"),
        "sni_container_refs": array(text(), column=NO_COLUMN, unique=True),
        "project_id": project(),
        "default_pool_id": uuid(),
        "default_pool": nested(pool.SINGLE, column=NO_COLUMN, only_empty=True),
        "l7policies": array(l7policy.SINGLE, default=[], column=NO_COLUMN, only_empty=True, on_null=KEEP),
        "insert_headers": mapping(text()),
        "loadbalancer_id": uuid(required=True, column="load_balancer_id"),
        "timeout_client_data": integer(0, TIMEOUT),
        "timeout_member_connect": integer(0, TIMEOUT),
        "timeout_member_data": integer(0, TIMEOUT),
        "timeout_tcp_inspect": integer(0, TIMEOUT),
        "tags": tags(),
        "client_ca_tls_container_ref": text(column="client_ca_tls_certificate_id"),
        "client_authentication": choice(*CLIENT_AUTHENTICATION, default="NONE", on_null=KEEP),
        "client_crl_container_ref": text(column="client_crl_container_id"),
        "allowed_cidrs": array(Field(Kind.CIDR), column=NO_COLUMN, unique=True),
        "tls_ciphers": text(2048),
        "tls_versions": array(text(32)),
        "alpn_protocols": array(Field(Kind.ALPN, choices=ALPN)),
        "hsts_max_age": integer(0),
        "hsts_include_subdomains": boolean(default=False),
        "hsts_preload": boolean(default=False),
        "tenant_id": tenant(),
    },
)

PUT = Body(
    "ListenerPut",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(),
        "connection_limit": integer(-1, on_null=-1),
        "default_tls_container_ref": text(column="tls_certificate_id"),
        "sni_container_refs": array(text(), column=NO_COLUMN, unique=True, on_null=lambda _: []),
        "default_pool_id": uuid(),
        "insert_headers": mapping(text()),
        "timeout_client_data": integer(0, TIMEOUT, on_null=attrgetter("timeout_client_data")),
        "timeout_member_connect": integer(0, TIMEOUT, on_null=attrgetter("timeout_member_connect")),
        "timeout_member_data": integer(0, TIMEOUT, on_null=attrgetter("timeout_member_data")),
        "timeout_tcp_inspect": integer(0, TIMEOUT, on_null=attrgetter("timeout_tcp_inspect")),
        "tags": tags(),
        "client_ca_tls_container_ref": text(column="client_ca_tls_certificate_id"),
        "client_authentication": choice(*CLIENT_AUTHENTICATION, on_null="NONE"),
        "client_crl_container_ref": text(column="client_crl_container_id"),
        "allowed_cidrs": array(Field(Kind.CIDR), column=NO_COLUMN, unique=True),
        "tls_ciphers": text(2048, on_null=attrgetter("default_listener_ciphers")),
        "tls_versions": array(text(32), on_null=lambda options: list(options.default_listener_tls_versions)),
        "alpn_protocols": array(
            Field(Kind.ALPN, choices=ALPN),
            on_null=lambda options: list(options.default_listener_alpn_protocols),
        ),
        "hsts_max_age": integer(0),
        "hsts_include_subdomains": boolean(on_null=False),
        "hsts_preload": boolean(on_null=False),
    },
)

KEYS = named(
    "alpn_protocols",
    "client_authentication",
    "client_ca_tls_certificate_id",
    "client_crl_container_id",
    "connection_limit",
    "created_at",
    "default_pool_id",
    "description",
    "enabled",
    "hsts_include_subdomains",
    "hsts_max_age",
    "hsts_preload",
    "id",
    "insert_headers",
    "load_balancer_id",
    "name",
    "operating_status",
    "peer_port",
    "project_id",
    "protocol",
    "protocol_port",
    "provisioning_status",
    "timeout_client_data",
    "timeout_member_connect",
    "timeout_member_data",
    "timeout_tcp_inspect",
    "tls_certificate_id",
    "tls_ciphers",
    "tls_versions",
    "updated_at",
    admin_state_up="enabled",
    client_ca_tls_container_ref="client_ca_tls_certificate_id",
    client_crl_container_ref="client_crl_container_id",
    default_tls_container_ref="tls_certificate_id",
)


def _headers(row: Mapping[str, Any]) -> dict[str, str]:
    return row["insert_headers"] or {}


RESOURCE = Resource(
    noun="Listener",
    table="listener",
    rule="listener",
    one="listener",
    many="listeners",
    links="listeners_links",
    argument="listener_",
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
        "protocol_port": column("protocol_port"),
        "connection_limit": column("connection_limit"),
        "default_tls_container_ref": column("tls_certificate_id"),
        "sni_container_refs": column("sni_containers"),
        "project_id": column("project_id"),
        "default_pool_id": column("default_pool_id"),
        "l7policies": ids("l7policies"),
        "insert_headers": _headers,
        "created_at": column("created_at"),
        "updated_at": column("updated_at"),
        "loadbalancers": only("load_balancer_id"),
        "timeout_client_data": column("timeout_client_data"),
        "timeout_member_connect": column("timeout_member_connect"),
        "timeout_member_data": column("timeout_member_data"),
        "timeout_tcp_inspect": column("timeout_tcp_inspect"),
        "tags": column("tags"),
        "client_ca_tls_container_ref": column("client_ca_tls_certificate_id"),
        "client_authentication": column("client_authentication"),
        "client_crl_container_ref": column("client_crl_container_id"),
        "allowed_cidrs": filled("allowed_cidrs"),
        "tls_ciphers": column("tls_ciphers"),
        "tls_versions": commas("tls_versions"),
        "alpn_protocols": commas("alpn_protocols"),
        "hsts_max_age": column("hsts_max_age"),
        "hsts_include_subdomains": column("hsts_include_subdomains"),
        "hsts_preload": column("hsts_preload"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(
        (
            "enabled",
            "hsts_include_subdomains",
            "hsts_preload",
        )
    ),
    full={"l7policies": wholes("l7policies", l7policy.RESOURCE), "loadbalancers": None},
    tagged=True,
)
