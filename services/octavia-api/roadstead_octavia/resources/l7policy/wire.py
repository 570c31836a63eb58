"""L7 policies: what happens to requests that match all rules."""

from roadstead_octavia.resources.l7rule import wire as l7rule
from roadstead_octavia.resources.pool import wire as pool
from roadstead_octavia.wire.describe import KEEP, NO_COLUMN, Body, Field, Kind, Resource, named
from roadstead_octavia.wire.kinds import (
    admin_state,
    array,
    choice,
    integer,
    nested,
    project,
    tags,
    tenant,
    text,
    uuid,
)
from roadstead_octavia.wire.values import column, ids, text_of
from roadstead_octavia.wire.write import wholes

ACTIONS = ("REDIRECT_PREFIX", "REDIRECT_TO_POOL", "REDIRECT_TO_URL", "REJECT")
POSITION = 2147483647
REDIRECT_CODES = (301, 302, 303, 307, 308)

SINGLE = Body(
    "L7PolicySingle",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(default=True),
        "action": choice(*ACTIONS, required=True),
        "redirect_pool": nested(pool.SINGLE, column=NO_COLUMN),
        "redirect_url": Field(Kind.URL, maximum_length=255),
        "redirect_prefix": Field(Kind.URL, maximum_length=255),
        "position": integer(1, POSITION, default=2147483647, on_null=KEEP),
        "rules": array(l7rule.SINGLE, column=NO_COLUMN, on_null=KEEP),
        "tags": tags(),
        "redirect_http_code": choice(*REDIRECT_CODES),
    },
)

POST = Body(
    "L7PolicyPost",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(default=True),
        "project_id": project(),
        "action": choice(*ACTIONS, required=True),
        "redirect_pool_id": uuid(),
        "redirect_url": Field(Kind.URL, maximum_length=255),
        "redirect_prefix": Field(Kind.URL, maximum_length=255),
        "position": integer(1, POSITION, default=2147483647, on_null=KEEP),
        "listener_id": uuid(required=True),
        "rules": array(l7rule.SINGLE, column=NO_COLUMN, only_empty=True, on_null=KEEP),
        "tags": tags(),
        "redirect_http_code": choice(*REDIRECT_CODES),
        "tenant_id": tenant(),
    },
)

PUT = Body(
    "L7PolicyPut",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(),
        "action": choice(*ACTIONS),
        "redirect_pool_id": uuid(),
        "redirect_url": Field(Kind.URL, maximum_length=255),
        "redirect_prefix": Field(Kind.URL, maximum_length=255),
        "position": integer(1, POSITION, on_null=KEEP),
        "tags": tags(),
        "redirect_http_code": choice(*REDIRECT_CODES),
    },
)

KEYS = named(
    "action",
    "created_at",
    "description",
    "enabled",
    "id",
    "listener_id",
    "name",
    "operating_status",
    "position",
    "project_id",
    "provisioning_status",
    "redirect_http_code",
    "redirect_pool_id",
    "redirect_prefix",
    "redirect_url",
    "updated_at",
    admin_state_up="enabled",
)

RESOURCE = Resource(
    noun="L7 Policy",
    table="l7policy",
    rule="l7policy",
    one="l7policy",
    many="l7policies",
    links="l7policies_links",
    argument="l7policy_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "name": text_of("name"),
        "description": text_of("description"),
        "provisioning_status": column("provisioning_status"),
        "operating_status": column("operating_status"),
        "admin_state_up": column("enabled"),
        "project_id": column("project_id"),
        "action": column("action"),
        "listener_id": column("listener_id"),
        "redirect_pool_id": column("redirect_pool_id"),
        "redirect_url": column("redirect_url"),
        "redirect_prefix": column("redirect_prefix"),
        "position": column("position"),
        "rules": ids("rules"),
        "created_at": column("created_at"),
        "updated_at": column("updated_at"),
        "tags": column("tags"),
        "redirect_http_code": column("redirect_http_code"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(("enabled",)),
    full={"rules": wholes("rules", l7rule.RESOURCE)},
    tagged=True,
)
