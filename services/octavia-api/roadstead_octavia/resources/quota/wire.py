"""Quotas: how many objects of each kind a project may have."""

from roadstead_octavia.wire.describe import NO_COLUMN, Body, Resource, named
from roadstead_octavia.wire.kinds import integer
from roadstead_octavia.wire.values import column

QUOTA = 2000000000

PUT = Body(
    "QuotaPut",
    {
        "loadbalancer": integer(-1, QUOTA, column="load_balancer"),
        "load_balancer": integer(-1, QUOTA),
        "listener": integer(-1, QUOTA),
        "member": integer(-1, QUOTA),
        "pool": integer(-1, QUOTA),
        "healthmonitor": integer(-1, QUOTA, column=NO_COLUMN),
        "health_monitor": integer(-1, QUOTA),
        "l7policy": integer(-1, QUOTA),
        "l7rule": integer(-1, QUOTA),
    },
)

KEYS = named(
    "health_monitor",
    "in_use_health_monitor",
    "in_use_l7policy",
    "in_use_l7rule",
    "in_use_listener",
    "in_use_load_balancer",
    "in_use_member",
    "in_use_pool",
    "l7policy",
    "l7rule",
    "listener",
    "load_balancer",
    "member",
    "pool",
    "project_id",
    healthmonitor="health_monitor",
    loadbalancer="load_balancer",
)

RESOURCE = Resource(
    noun="Quotas",
    table="quotas",
    rule="quota",
    one="quota",
    many="quotas",
    links="quotas_links",
    argument="quotas",
    post=None,
    put=PUT,
    shown={
        "project_id": column("project_id"),
        "loadbalancer": column("load_balancer"),
        "load_balancer": column("load_balancer"),
        "listener": column("listener"),
        "member": column("member"),
        "pool": column("pool"),
        "healthmonitor": column("health_monitor"),
        "health_monitor": column("health_monitor"),
        "l7policy": column("l7policy"),
        "l7rule": column("l7rule"),
        "tenant_id": column("project_id"),
    },
    filters=KEYS,
    sorts=KEYS,
)
