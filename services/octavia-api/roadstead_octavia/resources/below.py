"""Changes below a load balancer: what each finds, requires, holds, and asks the provider for.

An object is found together with the tree of its load balancer.  While a provider carries a change out, the object is held PENDING, and
with it the load balancer, the pool or policy that it stands in, and the listeners that use that pool.  What is only held goes back to
what it was when the change fails; the object itself is in ERROR then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roadstead_octavia.call import Call
from roadstead_octavia.db.port import Change, Delete, Insert, Operation, Row, Touched, Tree, Update, Write
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.provider import models
from roadstead_octavia.wire.describe import Resource

LOAD_BALANCER = "Load Balancer"
POLICY = "L7Policy"  # what a policy is called where it is immutable; elsewhere it is an L7 Policy
ACTIVE, ERROR, DELETED = "ACTIVE", "ERROR", "DELETED"
CREATING = {"provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE"}
UPDATING = {"provisioning_status": "PENDING_UPDATE"}
DELETING = {"provisioning_status": "PENDING_DELETE"}


async def found(
    call: Call, resource: Resource, identifier: str | None, rule: str, *, deleted: bool = False
) -> tuple[Tree, Row]:
    """The object with its tree, for a caller that may do what the policy rule says (`pool:put`); 404, 403.

    deleted: whether one that is DELETED counts (a load balancer's row stays, and is immutable).
    """
    tree = await call.parts.database.tree_of(resource.table, identifier) if identifier is not None else None
    row = tree.get(resource.table, str(identifier)) if tree is not None else None
    if tree is None or row is None or (row["provisioning_status"] == DELETED and not deleted):
        raise not_found(resource.noun, str(identifier))
    call.parts.policy.enforce(call, rule, row["project_id"])
    return tree, row


def require_provider(call: Call, tree: Tree) -> None:
    """400 when the load balancer's provider is not enabled (any more)."""
    provider = tree.load_balancer["provider"]
    if provider not in call.options.enabled_provider_drivers:
        raise refuse("ProviderNotEnabled", prov=provider)


def require_active(tree: Tree, *, pool: Row | None = None, policy: Row | None = None) -> None:
    """409 unless the load balancer, and before it what the object stands in, takes changes."""
    for noun, row in (("Pool", pool), (POLICY, policy), (LOAD_BALANCER, tree.load_balancer)):
        if row is not None and row["provisioning_status"] != ACTIVE:
            raise refuse("ImmutableObject", resource=noun, id=row["id"])


def require_settled(noun: str, row: Row) -> None:
    """409 while an earlier change of the object itself is under way."""
    if row["provisioning_status"].startswith("PENDING"):
        raise refuse("ImmutableObject", resource=noun, id=row["id"])


def pool_of(tree: Tree, identifier: str) -> Row:
    """A pool of this load balancer that may be pointed at; 404, 409 for one that goes."""
    pool = tree.get("pool", identifier)
    if pool is None or pool["provisioning_status"] == DELETED:
        raise not_found("Pool", identifier)
    if pool["provisioning_status"] == "PENDING_DELETE":
        raise refuse("ImmutableObject", resource="Pool", id=identifier)
    return pool


@dataclass(frozen=True)
class Held:
    """What a change writes to hold objects, and how each of them ends."""

    writes: tuple[Write, ...]
    touched: tuple[Touched, ...]


def held(
    tree: Tree, *, listeners: Iterable[str] = (), pool: str | None = None, policy: str | None = None
) -> Held:
    """The load balancer and what else is not changed itself."""
    objects = [("load_balancer", str(tree.load_balancer["id"]))]
    objects += [("listener", listener) for listener in dict.fromkeys(listeners)]
    objects += [("pool", pool)] if pool is not None else []
    objects += [("l7policy", policy)] if policy is not None else []
    writes = tuple(Update(table, {"id": identifier}, UPDATING) for table, identifier in objects)
    return Held(
        writes, tuple(Touched(table, one, failed=_before(tree, table, one)) for table, one in objects)
    )


def held_with_pool(tree: Tree, pool_id: str) -> Held:
    """The load balancer, the listeners that use the pool, and the pool."""
    return held(tree, listeners=models.listeners_of(tree, pool_id), pool=pool_id)


def _before(tree: Tree, table: str, identifier: str) -> str:
    row = tree.get(table, identifier)
    return ERROR if row is not None and row["provisioning_status"] == ERROR else ACTIVE


def change(
    call: Call,
    tree: Tree,
    writes: Sequence[Write],
    *,
    project_id: str,
    quota: Mapping[str, int] | None = None,
) -> Change:
    """A change of this tree without the operation that comes with it."""
    return Change(
        load_balancer_id=tree.load_balancer["id"],
        version=tree.version,
        writes=tuple(writes),
        project_id=project_id,
        quota=quota or {},
        at=call.parts.now(),
    )


def asking(draft: Change, asked: Operation) -> Change:
    """The change with its operation."""
    return replace(draft, operation=asked)


def operation(
    call: Call, tree: Tree, noun: str, verb: str, arguments: Sequence[Any], touched: Sequence[Touched]
) -> Operation:
    """The call to the provider's method `<noun>_<verb>`."""
    return Operation(
        id=call.parts.new_id(),
        provider=tree.load_balancer["provider"],
        method=f"{noun}_{verb}",
        object=noun,
        verb=verb,
        touched=tuple(touched),
        arguments=arguments,
    )


def tag_writes(
    tree: Tree, identifier: str, wanted: Iterable[str] | None, *, there: Iterable[str] | None = None
) -> list[Write]:
    """From the tags that there are to those that are wanted; None keeps them.  there: the object's tags, where they are known."""
    if wanted is None:
        return []
    if there is None:
        there = [row["tag"] for row in tree.of("tags") if row["resource_id"] == identifier]
    return row_writes("tags", {"resource_id": identifier}, "tag", there, wanted)


def row_writes(
    table: str, owner: Row, column: str, there: Iterable[str], wanted: Iterable[str], **more: Any
) -> list[Write]:
    """Rows that hold one text each in `column`: from those that are there to those that are wanted.  more: columns of new ones."""
    old, new = dict.fromkeys(there), dict.fromkeys(wanted)
    gone: list[Write] = [Delete(table, {**owner, column: text}) for text in old if text not in new]
    return gone + [Insert(table, {**owner, column: text, **more}) for text in new if text not in old]
