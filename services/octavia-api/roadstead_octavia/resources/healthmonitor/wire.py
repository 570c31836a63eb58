"""Health monitors: how members of a pool are checked."""

from roadstead_octavia.wire.describe import Body, Field, Kind, Resource, named
from roadstead_octavia.wire.kinds import admin_state, choice, integer, project, tags, tenant, text, uuid
from roadstead_octavia.wire.values import column, only, text_of

TYPES = ("HTTP", "HTTPS", "PING", "SCTP", "TCP", "TLS-HELLO", "UDP-CONNECT")
HTTP_METHODS = ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
EXPECTED_CODES = r"^(\d{3}(\s*,\s*\d{3})*)$|^(\d{3}-\d{3})$"
HTTP_VERSIONS = (1.0, 1.1)
DOMAIN_NAME = r"^(?=.{1,253}\.?$)(?:(?!-|[^.]+_)[A-Za-z0-9-_]{1,63}(?<!-)(?:\.|$))+$"

SINGLE = Body(
    "HealthMonitorSingle",
    {
        "name": text(),
        "type": choice(*TYPES, required=True),
        "delay": integer(0, required=True),
        "timeout": integer(0, required=True),
        "max_retries_down": integer(1, 10, default=3, column="fall_threshold", nullable=False),
        "max_retries": integer(1, 10, required=True, column="rise_threshold"),
        "http_method": choice(*HTTP_METHODS),
        "url_path": Field(Kind.URL_PATH, maximum_length=2048),
        "expected_codes": text(64, pattern=EXPECTED_CODES),
        "admin_state_up": admin_state(default=True),
        "tags": tags(),
        "http_version": choice(*HTTP_VERSIONS, kind=Kind.FLOAT_ENUM),
        "domain_name": text(pattern=DOMAIN_NAME, minimum_length=1),
    },
)

POST = Body(
    "HealthMonitorPost",
    {
        "name": text(),
        "type": choice(*TYPES, required=True),
        "delay": integer(0, required=True),
        "timeout": integer(0, required=True),
        "max_retries_down": integer(1, 10, default=3, column="fall_threshold", nullable=False),
        "max_retries": integer(1, 10, required=True, column="rise_threshold"),
        "http_method": choice(*HTTP_METHODS),
        "url_path": Field(Kind.URL_PATH, maximum_length=2048),
        "expected_codes": text(64, pattern=EXPECTED_CODES),
        "admin_state_up": admin_state(default=True),
        "project_id": project(),
        "pool_id": uuid(required=True),
        "tags": tags(),
        "http_version": choice(*HTTP_VERSIONS, kind=Kind.FLOAT_ENUM),
        "domain_name": text(pattern=DOMAIN_NAME, minimum_length=1),
        "tenant_id": tenant(),
    },
)

PUT = Body(
    "HealthMonitorPut",
    {
        "name": text(),
        "delay": integer(0),
        "timeout": integer(0),
        "max_retries_down": integer(1, 10, column="fall_threshold", on_null=3),
        "max_retries": integer(1, 10, column="rise_threshold"),
        "http_method": choice(*HTTP_METHODS, on_null="GET"),
        "url_path": Field(Kind.URL_PATH, maximum_length=2048, on_null="/"),
        "expected_codes": text(64, pattern=EXPECTED_CODES, on_null="200"),
        "admin_state_up": admin_state(),
        "tags": tags(),
        "http_version": choice(*HTTP_VERSIONS, kind=Kind.FLOAT_ENUM),
        "domain_name": text(pattern=DOMAIN_NAME, minimum_length=1),
    },
)

KEYS = named(
    "created_at",
    "delay",
    "domain_name",
    "enabled",
    "expected_codes",
    "fall_threshold",
    "http_method",
    "http_version",
    "id",
    "name",
    "operating_status",
    "pool_id",
    "project_id",
    "provisioning_status",
    "rise_threshold",
    "timeout",
    "type",
    "updated_at",
    "url_path",
    admin_state_up="enabled",
    max_retries="rise_threshold",
    max_retries_down="fall_threshold",
)

RESOURCE = Resource(
    noun="Health Monitor",
    table="health_monitor",
    rule="healthmonitor",
    one="healthmonitor",
    many="healthmonitors",
    links="healthmonitors_links",
    argument="health_monitor_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "name": text_of("name"),
        "type": column("type"),
        "delay": column("delay"),
        "timeout": column("timeout"),
        "max_retries": column("rise_threshold"),
        "max_retries_down": column("fall_threshold"),
        "http_method": column("http_method"),
        "url_path": column("url_path"),
        "expected_codes": column("expected_codes"),
        "admin_state_up": column("enabled"),
        "project_id": column("project_id"),
        "pools": only("pool_id"),
        "provisioning_status": column("provisioning_status"),
        "operating_status": column("operating_status"),
        "created_at": column("created_at"),
        "updated_at": column("updated_at"),
        "tags": column("tags"),
        "http_version": column("http_version"),
        "domain_name": column("domain_name"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(("enabled",)),
    full={"pools": None},
    tagged=True,
)
