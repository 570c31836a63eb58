"""Operations that were under way in the imported database: their ends are unknown, so their providers are asked for them once more.

A provider renders a load balancer as a whole, so one call for each that waits is enough, whatever the original had asked: it makes what
is missing, changes what is old, and takes away what is PENDING_DELETE.  To make them ERROR instead would leave what carries traffic in a
state that some providers (OVN is one) can only delete.  What no provider ends by the deadline does become ERROR, with the reason.  Pure.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from roadstead_octavia.db.rows import made

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

# The API may be started some time after the import; only then are providers asked.
PATIENCE = timedelta(hours=1)
FIRST_REVISION = 1  # of every load balancer that has just been imported
PENDING = "PENDING_"
CREATING, DELETING = "PENDING_CREATE", "PENDING_DELETE"
# How each kind leads to its load balancer: the column, and the table that it names a row of.
ABOVE = {
    "listener": ("load_balancer_id", "load_balancer"),
    "pool": ("load_balancer_id", "load_balancer"),
    "member": ("pool_id", "pool"),
    "health_monitor": ("pool_id", "pool"),
    "l7policy": ("listener_id", "listener"),
    "l7rule": ("l7policy_id", "l7policy"),
}
VERBS = {CREATING: "create", DELETING: "delete"}


def operations(tables: Tables, at: datetime) -> list[dict[str, Any]]:
    """Rows of `operation`, one for each load balancer with something PENDING; due at once."""
    balancers = {row["id"]: row for row in tables["load_balancer"]}
    above = {table: {row["id"]: row for row in tables[table]} for _, table in ABOVE.values()}
    waiting: dict[str, list[tuple[str, Row]]] = {}
    for table, row in _pending(tables):
        owner = _owner(above, table, row)
        if owner is not None and owner in balancers:
            waiting.setdefault(owner, []).append((table, row))
    return [
        _operation(balancers[owner], objects, at, number)
        for number, (owner, objects) in enumerate(waiting.items())
    ]


def _pending(tables: Tables) -> Iterator[tuple[str, Row]]:
    for table in ("load_balancer", *ABOVE):
        for row in tables[table]:
            if row["provisioning_status"].startswith(PENDING):
                yield table, row


def _owner(above: Mapping[str, Mapping[str, Row]], table: str, row: Row) -> str | None:
    """The id of its load balancer; None when a row on the way is missing, which the foreign keys refuse later."""
    found: Row | None = row
    while found is not None and table in ABOVE:
        column, table = ABOVE[table]
        found = above[table].get(found[column])
    return None if found is None else str(found["id"])


def _operation(
    balancer: Row, objects: Sequence[tuple[str, Row]], at: datetime, number: int
) -> dict[str, Any]:
    own = balancer["provisioning_status"]
    verb = VERBS.get(own, "update")
    touched = [
        {
            "table": table,
            "id": row["id"],
            "done": "DELETED" if row["provisioning_status"] == DELETING else "ACTIVE",
            "failed": "ERROR",
        }
        for table, row in objects
    ]
    row = {
        "id": str(uuid.uuid4()),
        "load_balancer_id": balancer["id"],
        "revision": FIRST_REVISION,
        "provider": balancer["provider"],
        "method": f"loadbalancer_{verb}",
        "object": "loadbalancer",
        "verb": verb,
        "touched": touched,
        "arguments": [],
        "state": "SENT",
        "sends": 0,
        "created_at": at,
        "deadline": at + PATIENCE,
        "next_send_at": at,
    }
    return made("operation", row, at, number)
