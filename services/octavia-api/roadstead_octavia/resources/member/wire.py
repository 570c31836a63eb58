"""Members: what traffic goes to."""

from typing import Any

from roadstead_octavia.errors import refuse
from roadstead_octavia.options import Options
from roadstead_octavia.wire.describe import KEEP, NO_COLUMN, Body, Resource, named
from roadstead_octavia.wire.kinds import (
    address,
    admin_state,
    array,
    boolean,
    integer,
    project,
    tags,
    tenant,
    text,
    uuid,
)
from roadstead_octavia.wire.read import MISSING, read_document
from roadstead_octavia.wire.values import column, text_of

PORT = 65535

SINGLE = Body(
    "MemberSingle",
    {
        "name": text(),
        "admin_state_up": admin_state(default=True),
        "address": address(required=True, column="ip_address", nullable=False),
        "protocol_port": integer(1, PORT, required=True, nullable=False),
        "weight": integer(0, 256, default=1, on_null=KEEP),
        "backup": boolean(default=False, nullable=False),
        "subnet_id": uuid(),
        "monitor_port": integer(1, PORT),
        "monitor_address": address(),
        "tags": tags(),
        "request_sriov": boolean(default=False, column=NO_COLUMN),
    },
)

POST = Body(
    "MemberPost",
    {
        "name": text(),
        "admin_state_up": admin_state(default=True),
        "address": address(required=True, column="ip_address", nullable=False),
        "protocol_port": integer(1, PORT, required=True, nullable=False),
        "weight": integer(0, 256, default=1, on_null=KEEP),
        "backup": boolean(default=False, nullable=False),
        "subnet_id": uuid(),
        "project_id": project(),
        "monitor_port": integer(1, PORT, default=None),
        "monitor_address": address(default=None),
        "tags": tags(),
        "request_sriov": boolean(default=False, column=NO_COLUMN),
        "tenant_id": tenant(),
    },
)

PUT = Body(
    "MemberPut",
    {
        "name": text(),
        "admin_state_up": admin_state(),
        "weight": integer(0, 256, on_null=1),
        "backup": boolean(on_null=False),
        "monitor_port": integer(1, PORT),
        "monitor_address": address(),
        "tags": tags(),
    },
)

# PUT on the collection: all the members that there shall be.
BATCH = Body("MemberBatch", {"members": array(POST, required=True, nullable=False)})
BATCH_ARGUMENT = "members_"


def read_batch(body: bytes, content_type: str | None, options: Options) -> dict[str, Any]:
    """`{"members": [...]}`, each read as POST reads it; ApiError (4xx)."""
    values = read_document(BATCH, BATCH_ARGUMENT, body, content_type, method="POST", options=options)
    if "members" not in values:
        raise refuse("InvalidInput", field="members", value=None, reason=MISSING)
    return values


KEYS = named(
    "backup",
    "created_at",
    "enabled",
    "id",
    "ip_address",
    "monitor_address",
    "monitor_port",
    "name",
    "operating_status",
    "pool_id",
    "project_id",
    "protocol_port",
    "provisioning_status",
    "subnet_id",
    "updated_at",
    "vnic_type",
    "weight",
    address="ip_address",
    admin_state_up="enabled",
)

RESOURCE = Resource(
    noun="Member",
    table="member",
    rule="member",
    one="member",
    many="members",
    links="members_links",
    argument="member_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "name": text_of("name"),
        "operating_status": column("operating_status"),
        "provisioning_status": column("provisioning_status"),
        "admin_state_up": column("enabled"),
        "address": column("ip_address"),
        "protocol_port": column("protocol_port"),
        "weight": column("weight"),
        "backup": column("backup"),
        "subnet_id": column("subnet_id"),
        "project_id": column("project_id"),
        "created_at": column("created_at"),
        "updated_at": column("updated_at"),
        "monitor_address": column("monitor_address"),
        "monitor_port": column("monitor_port"),
        "tags": column("tags"),
        "vnic_type": column("vnic_type"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(
        (
            "backup",
            "enabled",
        )
    ),
    tagged=True,
)
