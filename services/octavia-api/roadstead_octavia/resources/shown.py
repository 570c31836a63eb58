"""Shown rows from a tree: what a list reads from the database, a single object takes from the tree that is in hand.

The relations are those of `db.port.RELATIONS`: `vip` and `session_persistence` are a row or None, `additional_vips` rows, everything
else lists of ids or of texts.  `full` nests the rows themselves for the answer to a graph creation.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from roadstead_octavia.db.port import Row, Tree

Shown = dict[str, Any]


class Index:
    """A tree's rows by their parents, each made when it is first asked for."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def tags(self) -> Mapping[str, Sequence[str]]:
        """Sorted tags by object id."""
        found = defaultdict(list)
        for row in self.tree.of("tags"):
            found[row["resource_id"]].append(row["tag"])
        return {identifier: sorted(tags) for identifier, tags in found.items()}

    @cached_property
    def members(self) -> Mapping[str, Sequence[Row]]:
        return _by(self.tree.of("member"), "pool_id")

    @cached_property
    def monitors(self) -> Mapping[str, Row]:
        """The health monitor by pool id."""
        return {row["pool_id"]: row for row in self.tree.of("health_monitor")}

    @cached_property
    def persistence(self) -> Mapping[str, Row]:
        """The session persistence by pool id."""
        return {row["pool_id"]: row for row in self.tree.of("session_persistence")}

    @cached_property
    def policies(self) -> Mapping[str, Sequence[Row]]:
        """Policies by listener id, in order of position."""
        return _by(sorted(self.tree.of("l7policy"), key=lambda row: row["position"]), "listener_id")

    @cached_property
    def rules(self) -> Mapping[str, Sequence[Row]]:
        return _by(self.tree.of("l7rule"), "l7policy_id")

    @cached_property
    def certificates(self) -> Mapping[str, Sequence[Row]]:
        """SNI references by listener id, in order of position."""
        return _by(sorted(self.tree.of("sni"), key=lambda row: row["position"] or 0), "listener_id")

    @cached_property
    def networks(self) -> Mapping[str, Sequence[Row]]:
        """Allowed CIDRs by listener id."""
        return _by(self.tree.of("listener_cidr"), "listener_id")

    @cached_property
    def pools_of_listeners(self) -> Mapping[str, Sequence[str]]:
        """Pool ids by listener id: the default pool, then those that enabled policies with rules redirect to, each once."""
        found = {}
        for listener in self.tree.of("listener"):
            redirects = (
                policy["redirect_pool_id"]
                for policy in self.policies.get(listener["id"], ())
                if policy["enabled"] and self.rules.get(policy["id"])
            )
            pools = dict.fromkeys((listener["default_pool_id"], *redirects))
            found[listener["id"]] = [pool for pool in pools if pool is not None]
        return found

    @cached_property
    def listeners_of_pools(self) -> Mapping[str, Sequence[str]]:
        """Listener ids by pool id: those that use it as their default pool, then those that redirect to it."""
        default: dict[str, list[str]] = defaultdict(list)
        redirecting: dict[str, list[str]] = defaultdict(list)
        for listener in self.tree.of("listener"):
            for pool in self.pools_of_listeners[listener["id"]]:
                (default if pool == listener["default_pool_id"] else redirecting)[pool].append(listener["id"])
        return {pool: [*default[pool], *redirecting[pool]] for pool in {*default, *redirecting}}


def shown(tree: Tree, table: str, identifier: str) -> Shown:
    """The shown row of one object of the tree; KeyError when the tree does not hold it."""
    row = tree.get(table, identifier)
    if row is None:
        raise KeyError(f"{table} {identifier} is not in the tree")
    return _SHOWN[table](Index(tree), row)


def full(tree: Tree) -> Shown:
    """The load balancer's shown row with the shown rows of everything below it in place of ids."""
    index = Index(tree)
    row = _load_balancer(index, tree.load_balancer)
    row["listeners"] = [_full_listener(index, listener) for listener in tree.of("listener")]
    row["pools"] = [_full_pool(index, pool) for pool in tree.of("pool")]
    return row


def _by(rows: Iterable[Row], column: str) -> Mapping[str, Sequence[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _ids(rows: Iterable[Row]) -> list[str]:
    return [row["id"] for row in rows]


def _tagged(index: Index, row: Row, **relations: Any) -> Shown:
    return {**row, "tags": list(index.tags.get(row["id"], ())), **relations}


def _load_balancer(index: Index, row: Row) -> Shown:
    tree = index.tree
    vips = tree.of("vip")
    return _tagged(
        index,
        row,
        vip=vips[0] if vips else None,
        vip_sg_ids=sorted(group["sg_id"] for group in tree.of("vip_security_group")),
        additional_vips=list(tree.of("additional_vip")),
        listeners=_ids(tree.of("listener")),
        pools=_ids(tree.of("pool")),
    )


def _listener(index: Index, row: Row) -> Shown:
    identifier = row["id"]
    return _tagged(
        index,
        row,
        sni_containers=[sni["tls_container_id"] for sni in index.certificates.get(identifier, ())],
        allowed_cidrs=sorted(network["cidr"] for network in index.networks.get(identifier, ())),
        l7policies=_ids(index.policies.get(identifier, ())),
    )


def _pool(index: Index, row: Row) -> Shown:
    identifier = row["id"]
    monitor = index.monitors.get(identifier)
    return _tagged(
        index,
        row,
        session_persistence=index.persistence.get(identifier),
        members=_ids(index.members.get(identifier, ())),
        health_monitor_id=monitor["id"] if monitor else None,
        listeners=list(index.listeners_of_pools.get(identifier, ())),
    )


def _policy(index: Index, row: Row) -> Shown:
    return _tagged(index, row, rules=_ids(index.rules.get(row["id"], ())))


def _full_listener(index: Index, row: Row) -> Shown:
    policies = [
        {
            **_policy(index, policy),
            "rules": [_tagged(index, rule) for rule in index.rules.get(policy["id"], ())],
        }
        for policy in index.policies.get(row["id"], ())
    ]
    return {**_listener(index, row), "l7policies": policies}


def _full_pool(index: Index, row: Row) -> Shown:
    monitor = index.monitors.get(row["id"])
    return {
        **_pool(index, row),
        "members": [_tagged(index, member) for member in index.members.get(row["id"], ())],
        "health_monitor": _tagged(index, monitor) if monitor else None,
    }


_SHOWN: Mapping[str, Callable[[Index, Row], Shown]] = {
    "load_balancer": _load_balancer,
    "listener": _listener,
    "pool": _pool,
    "member": _tagged,
    "health_monitor": _tagged,
    "l7policy": _policy,
    "l7rule": _tagged,
}
