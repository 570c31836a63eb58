"""L7 rules: conditions of a policy."""

from roadstead_octavia.wire.describe import Body, Resource, named
from roadstead_octavia.wire.kinds import admin_state, boolean, choice, project, tags, tenant, text
from roadstead_octavia.wire.values import column

TYPES = (
    "COOKIE",
    "FILE_TYPE",
    "HEADER",
    "HOST_NAME",
    "PATH",
    "SSL_CONN_HAS_CERT",
    "SSL_DN_FIELD",
    "SSL_VERIFY_RESULT",
)
COMPARE_TYPES = ("CONTAINS", "ENDS_WITH", "EQUAL_TO", "REGEX", "STARTS_WITH")
ONE_LINE = r"^[^\r\n]*$"

SINGLE = Body(
    "L7RuleSingle",
    {
        "type": choice(*TYPES, required=True),
        "compare_type": choice(*COMPARE_TYPES, required=True),
        "key": text(pattern=ONE_LINE),
        "value": text(pattern=ONE_LINE, required=True),
        "invert": boolean(default=False),
        "admin_state_up": admin_state(default=True),
        "tags": tags(),
    },
)

POST = Body(
    "L7RulePost",
    {
        "type": choice(*TYPES, required=True),
        "compare_type": choice(*COMPARE_TYPES, required=True),
        "key": text(pattern=ONE_LINE),
        "value": text(pattern=ONE_LINE, required=True),
        "invert": boolean(default=False),
        "admin_state_up": admin_state(default=True),
        "project_id": project(),
        "tags": tags(),
        "tenant_id": tenant(),
    },
)

PUT = Body(
    "L7RulePut",
    {
        "type": choice(*TYPES),
        "compare_type": choice(*COMPARE_TYPES),
        "key": text(pattern=ONE_LINE),
        "value": text(pattern=ONE_LINE),
        "invert": boolean(on_null=False),
        "admin_state_up": admin_state(),
        "tags": tags(),
    },
)

KEYS = named(
    "compare_type",
    "created_at",
    "enabled",
    "id",
    "invert",
    "key",
    "l7policy_id",
    "operating_status",
    "project_id",
    "provisioning_status",
    "type",
    "updated_at",
    "value",
    admin_state_up="enabled",
)

RESOURCE = Resource(
    noun="L7 Rule",
    table="l7rule",
    rule="l7rule",
    one="rule",
    many="rules",
    links="rules_links",
    argument="rule_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "type": column("type"),
        "compare_type": column("compare_type"),
        "key": column("key"),
        "value": column("value"),
        "invert": column("invert"),
        "provisioning_status": column("provisioning_status"),
        "operating_status": column("operating_status"),
        "created_at": column("created_at"),
        "updated_at": column("updated_at"),
        "project_id": column("project_id"),
        "admin_state_up": column("enabled"),
        "tags": column("tags"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(
        (
            "enabled",
            "invert",
        )
    ),
    tagged=True,
)
