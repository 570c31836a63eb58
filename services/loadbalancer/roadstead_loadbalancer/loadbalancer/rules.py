"""The rows of a load balancer's decision table, and the writes that they may ask for."""

from enum import StrEnum


class LoadBalancerRule(StrEnum):
    """Rules of a load balancer's pass, in order."""

    FOREIGN = "14-foreign"
    MISMATCH = "14-identity"
    NO_SUBNET = "14-subnet"
    VIP_OUTSIDE = "14.2-vip-outside"
    STRAY = "14.2-1-stray-port"
    STRAY_YOUNG = "14.2-1-stray-port-young"
    REFUSED = "14.2-1-refused"
    ABSENT = "14.2-1"
    VIP_DIFFERS = "14.2-2"
    MOVING = "14.2-3-pending"
    BROKEN = "14.2-3"
    NO_VIP = "14.2-4"
    ADDRESSES_MANY = "14.2-5-many"
    ADDRESS_ABSENT = "14.2-5-create"
    ADDRESS_UNWANTED = "14.2-5-delete"
    LISTENER_LEFT = "14.2-6"
    PARTS_MANY = "14.2-7-many"
    PART_MOVING = "14.2-7-pending"
    PART_BROKEN = "14.2-7"
    DIFFERS_ONCE = "14.2-7-differs-once"
    DIFFERS = "14.2-7-differs"
    CHANGE_REFUSED = "14.2-7-refused"
    PART_LEFT = "14.2-8"
    REALIZED = "14.2-9"
    NOTHING_OURS = "14.4-foreign"
    DELETE_MOVING = "14.4-pending"
    DELETE_ADDRESS = "14.4-floating-ip"
    DELETE_RESTLESS = "14.4-parts"
    LEFT = "14.4-cascade"
    REMOVED = "14.4-gone"


class LoadBalancerVerb(StrEnum):
    """Each is one write to the cloud."""

    CREATE = "create"
    CREATE_ADDRESS = "create floating ip"
    DELETE_ADDRESS = "delete floating ip"
    DELETE_STRAY = "delete stray port"
    CREATE_POOL = "create pool"
    UPDATE_POOL = "update pool"
    CREATE_LISTENER = "create listener"
    UPDATE_LISTENER = "update listener"
    REPLACE_MEMBERS = "replace members"
    CREATE_MONITOR = "create monitor"
    UPDATE_MONITOR = "update monitor"
    DELETE_LISTENER = "delete listener"
    DELETE_POOL = "delete pool"
    DELETE_MONITOR = "delete monitor"
    DELETE = "cascade delete"


Verb = LoadBalancerVerb
CREATING_PARTS = frozenset({Verb.CREATE_POOL, Verb.CREATE_LISTENER, Verb.CREATE_MONITOR})
DELETING_PARTS = frozenset({Verb.DELETE_LISTENER, Verb.DELETE_POOL, Verb.DELETE_MONITOR})
CHANGING_PARTS = frozenset(
    {Verb.UPDATE_POOL, Verb.UPDATE_LISTENER, Verb.REPLACE_MEMBERS, Verb.UPDATE_MONITOR}
)
CREATING = frozenset({Verb.CREATE, Verb.CREATE_ADDRESS}) | CREATING_PARTS
REPEATABLE = frozenset({Verb.CREATE_ADDRESS}) | CREATING_PARTS
"""Parts have a second look of their own, which also covers those that a load balancer never had."""
DESTRUCTIVE = frozenset({Verb.DELETE_ADDRESS, Verb.DELETE_STRAY, Verb.DELETE}) | DELETING_PARTS
