"""The default rules: 16 that name kinds of people, 81 that say which of them an operation is for.

Names and expressions are those that operators know, so that their own policy files replace them one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

PREFIX = "os_load-balancer_api:"
WAS = "The roles of the identity service (admin, member, reader) took the place of the load-balancer_* roles."


@dataclass(frozen=True)
class Rule:
    """scoped: only tokens of a project are meant.  before: the expression that older releases had, in force beside the new one while
    `enforce_new_defaults` is off."""

    name: str
    check: str
    scoped: bool = False
    before: str | None = None


def _any(*names: str) -> str:
    return " or ".join(f"rule:load-balancer:{name}" for name in names)


OWNS = "project_id:%(project_id)s"
PEOPLE = (
    Rule("context_is_admin", "role:admin", True, "role:admin or role:load-balancer_admin"),
    Rule("load-balancer:owner", OWNS, True),
    Rule("project-member", f"role:member and {OWNS}", True),
    Rule("project-reader", f"role:reader and {OWNS}", True),
    Rule("service", "role:service", True),
    Rule(
        "load-balancer:admin",
        "is_admin:True or role:admin",
        True,
        "is_admin:True or role:admin or role:load-balancer_admin",
    ),
    Rule("load-balancer:global_observer", "role:admin", True, "role:load-balancer_global_observer"),
    Rule("load-balancer:quota-admin", "role:admin", True, "role:load-balancer_quota_admin"),
    Rule(
        "load-balancer:member_and_owner",
        "rule:project-member",
        True,
        "role:load-balancer_member and rule:load-balancer:owner",
    ),
    Rule(
        "load-balancer:observer_and_owner",
        "rule:project-reader",
        True,
        "role:load-balancer_observer and rule:load-balancer:owner",
    ),
    Rule(
        "load-balancer:read",
        _any("observer_and_owner", "global_observer", "member_and_owner", "admin"),
        True,
    ),
    Rule("load-balancer:read-global", _any("global_observer", "admin"), True),
    Rule("load-balancer:write", _any("member_and_owner", "admin"), True),
    Rule(
        "load-balancer:read-quota",
        _any("observer_and_owner", "global_observer", "member_and_owner", "quota-admin", "admin"),
        True,
    ),
    Rule("load-balancer:read-quota-global", _any("global_observer", "quota-admin", "admin"), True),
    Rule("load-balancer:write-quota", _any("quota-admin", "admin"), True),
)

READ, GLOBAL, WRITE, ADMIN = (
    f"rule:load-balancer:{name}" for name in ("read", "read-global", "write", "admin")
)
READ_QUOTA, GLOBAL_QUOTA, WRITE_QUOTA = (
    f"rule:load-balancer:{name}" for name in ("read-quota", "read-quota-global", "write-quota")
)


def _of(resource: str, **checks: str) -> Iterator[Rule]:
    """Rules by action; `__` stands for a colon and `_global` ends the wider list."""
    for action, check in checks.items():
        name = action.replace("__", ":").replace("get_all_global", "get_all-global")
        yield Rule(f"{PREFIX}{resource}:{name}", check)


def _operations() -> Iterator[Rule]:
    crud = {"post": WRITE, "put": WRITE, "delete": WRITE}
    managed = {"post": ADMIN, "put": ADMIN, "delete": ADMIN}
    read, wide = {"get_all": READ, "get_one": READ}, {"get_all_global": GLOBAL}
    hidden = {"get_all": ADMIN, "get_one": ADMIN}
    yield from _of(
        "loadbalancer",
        **read,
        **wide,
        **crud,
        post__vip_sg_ids=WRITE,
        put__vip_sg_ids=WRITE,
        get_stats=READ,
        get_status=READ,
        put_failover=ADMIN,
    )
    yield from _of("listener", **read, **wide, **crud, get_stats=READ)
    yield from _of("pool", **read, **wide, **crud)
    yield from _of("member", **{**read, "get_all": f"{READ} or rule:service"}, **crud)
    yield from _of("healthmonitor", **read, **wide, **crud)
    yield from _of("l7policy", **read, **wide, **crud)
    yield from _of("l7rule", **read, **crud)
    yield from _of(
        "quota",
        get_all=READ_QUOTA,
        get_all_global=GLOBAL_QUOTA,
        get_one=READ_QUOTA,
        get_defaults=READ_QUOTA,
        put=WRITE_QUOTA,
        delete=WRITE_QUOTA,
    )
    yield from _of("provider", get_all=READ)
    yield from _of("provider-flavor", get_all=ADMIN)
    yield from _of("provider-availability-zone", get_all=ADMIN)
    yield from _of("flavor", **read, **managed)
    yield from _of("flavor-profile", **hidden, **managed)
    yield from _of("availability-zone", **read, **managed)
    yield from _of("availability-zone-profile", **hidden, **managed)
    yield from _of("amphora", **hidden, delete=ADMIN, put_config=ADMIN, put_failover=ADMIN, get_stats=ADMIN)


RULES: tuple[Rule, ...] = (*PEOPLE, *_operations())
