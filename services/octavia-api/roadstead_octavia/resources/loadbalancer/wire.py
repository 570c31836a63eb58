"""Load balancers: the root of every tree; the VIP is shown as attributes of it."""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.resources.listener import wire as listener
from roadstead_octavia.resources.pool import wire as pool
from roadstead_octavia.wire.describe import KEEP, NO_COLUMN, Body, Resource, named
from roadstead_octavia.wire.kinds import address, admin_state, array, project, tags, tenant, text, uuid
from roadstead_octavia.wire.values import column, ids, inside, text_of
from roadstead_octavia.wire.write import wholes

UNNAMED_PROVIDER = "octavia"  # shown where a row names none

ADDITIONAL_VIP = Body(
    "AdditionalVip",
    {
        "subnet_id": uuid(required=True, nullable=False),
        "ip_address": address(),
        "port_id": uuid(),
    },
)

POST = Body(
    "LoadBalancerPost",
    {
        "name": text(),
        "description": text(),
        "admin_state_up": admin_state(default=True),
        "vip_address": address(column="vip.ip_address"),
        "vip_port_id": uuid(column="vip.port_id"),
        "vip_subnet_id": uuid(column="vip.subnet_id"),
        "vip_network_id": uuid(column="vip.network_id"),
        "vip_qos_policy_id": uuid(column="vip.qos_policy_id"),
        "vip_sg_ids": array(uuid(), column=NO_COLUMN, unique=True),
        "additional_vips": array(ADDITIONAL_VIP, default=[], column=NO_COLUMN, on_null=KEEP),
        "project_id": project(),
        "listeners": array(listener.SINGLE, default=[], column=NO_COLUMN, on_null=KEEP),
        "pools": array(pool.SINGLE, default=[], column=NO_COLUMN, on_null=KEEP),
        "provider": text(64, on_null=KEEP),
        "tags": tags(),
        "flavor_id": uuid(on_null=KEEP),
        "availability_zone": text(on_null=KEEP),
        "tenant_id": tenant(),
    },
)

PUT = Body(
    "LoadBalancerPut",
    {
        "name": text(),
        "description": text(),
        "vip_qos_policy_id": uuid(column="vip.qos_policy_id"),
        "admin_state_up": admin_state(),
        "vip_sg_ids": array(uuid(), column=NO_COLUMN, unique=True, on_null=lambda _: []),
        "tags": tags(),
    },
)

KEYS = named(
    "availability_zone",
    "created_at",
    "description",
    "enabled",
    "flavor_id",
    "id",
    "name",
    "operating_status",
    "project_id",
    "provider",
    "provisioning_status",
    "server_group_id",
    "topology",
    "updated_at",
    admin_state_up="enabled",
    vip_address="vip.ip_address",
    vip_network_id="vip.network_id",
    vip_port_id="vip.port_id",
    vip_qos_policy_id="vip.qos_policy_id",
    vip_subnet_id="vip.subnet_id",
    vip_vnic_type="vip.vnic_type",
)


def _additional_vips(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"subnet_id": vip["subnet_id"], "ip_address": vip["ip_address"], "port_id": vip["port_id"]}
        for vip in row["additional_vips"]
    ]


def _provider(row: Mapping[str, Any]) -> str:
    return row["provider"] or UNNAMED_PROVIDER


RESOURCE = Resource(
    noun="Load Balancer",
    table="load_balancer",
    rule="loadbalancer",
    one="loadbalancer",
    many="loadbalancers",
    links="loadbalancers_links",
    argument="load_balancer",
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
        "created_at": column("created_at"),
        "updated_at": column("updated_at"),
        "vip_address": inside("vip", "ip_address"),
        "vip_port_id": inside("vip", "port_id"),
        "vip_subnet_id": inside("vip", "subnet_id"),
        "vip_network_id": inside("vip", "network_id"),
        "vip_sg_ids": column("vip_sg_ids"),
        "additional_vips": _additional_vips,
        "listeners": ids("listeners"),
        "pools": ids("pools"),
        "provider": _provider,
        "flavor_id": column("flavor_id"),
        "vip_qos_policy_id": inside("vip", "qos_policy_id"),
        "tags": column("tags"),
        "availability_zone": column("availability_zone"),
        "vip_vnic_type": inside("vip", "vnic_type"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(("enabled",)),
    full={"listeners": wholes("listeners", listener.RESOURCE), "pools": wholes("pools", pool.RESOURCE)},
    tagged=True,
)
