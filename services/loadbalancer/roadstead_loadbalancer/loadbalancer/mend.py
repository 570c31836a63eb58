"""The next write that brings the parts of a load balancer closer to its spec (behaviour.md section 14.2, steps 6 to 8).

Pure.  One change at a time: Octavia locks the whole load balancer while it carries one out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from roadstead_loadbalancer.loadbalancer.rules import LoadBalancerVerb as Verb
from roadstead_loadbalancer.loadbalancer.tree import (
    SeenListener,
    SeenMonitor,
    SeenPool,
    Tree,
    WantedListener,
    listener_body,
    monitor_body,
    pool_body,
)

P = TypeVar("P", SeenListener, SeenPool, SeenMonitor)


@dataclass(frozen=True)
class Change:
    """One write.  operation and args: the request; name: the part's.

    absence: it rests on a list that lacks something, which is believed at the second look only.
    """

    verb: Verb
    operation: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    absence: bool = False

    @property
    def what(self) -> str:
        """Verb and part: the same for the same request of another pass."""
        return f"{self.verb} {self.name}"


@dataclass(frozen=True)
class Halt:
    """The part of that name is in no state to go on from.  fixed: it differs in what can never be changed."""

    name: str
    status: str
    fixed: bool = False


def next_step(balancer: str, wanted: Sequence[WantedListener], tree: Tree) -> Change | Halt | None:
    """The first thing to do, None when nothing is left.

    Listeners that nobody wants go first, since a renamed one holds its port; pools and monitors go last, since nothing names them
    then.
    """
    left = _left(tree.listeners, {w.listener for w in wanted})
    if left is not None:
        return _delete(Verb.DELETE_LISTENER, "listener.delete", left)
    for w in wanted:
        step = _listener_step(balancer, w, tree)
        if step is not None:
            return step
    left_pool = _left(tree.pools, {w.pool for w in wanted})
    if left_pool is not None:
        return _delete(Verb.DELETE_POOL, "pool.delete", left_pool)
    left_monitor = _left(tree.monitors, {w.monitor for w in wanted if w.check is not None})
    if left_monitor is not None:
        return _delete(Verb.DELETE_MONITOR, "healthmonitor.delete", left_monitor)
    return None


def _left(parts: Iterable[P], wanted: set[str]) -> P | None:
    return next((part for part in parts if part.name not in wanted), None)


def _named(parts: Iterable[P], name: str) -> P | None:
    return next((part for part in parts if part.name == name), None)


def _delete(verb: Verb, operation: str, part: SeenListener | SeenPool | SeenMonitor) -> Change:
    return Change(verb, operation, part.name, {"id": part.id})


def _listener_step(balancer: str, w: WantedListener, tree: Tree) -> Change | Halt | None:
    """Pool, listener, members, monitor."""
    pool, listener = _named(tree.pools, w.pool), _named(tree.listeners, w.listener)
    if pool is None:
        body = {**pool_body(w), "loadbalancer_id": balancer}
        return Change(Verb.CREATE_POOL, "pool.create", w.pool, {"json": {"pool": body}}, absence=True)
    if pool.protocol != w.pool_protocol:
        return Halt(w.pool, pool.status, fixed=True)
    if pool.status != "ACTIVE":
        return Halt(w.pool, pool.status)
    if pool.algorithm != w.algorithm:
        body = {"lb_algorithm": w.algorithm}
        return Change(Verb.UPDATE_POOL, "pool.update", w.pool, {"id": pool.id, "json": {"pool": body}})
    if listener is None:
        body = {**listener_body(w), "loadbalancer_id": balancer, "default_pool_id": pool.id}
        args = {"json": {"listener": body}}
        return Change(Verb.CREATE_LISTENER, "listener.create", w.listener, args, absence=True)
    return (
        _of_listener(w, listener, pool)
        or _of_members(w, pool)
        or _of_monitor(w, pool, _named(tree.monitors, w.monitor))
    )


def _of_listener(w: WantedListener, listener: SeenListener, pool: SeenPool) -> Change | Halt | None:
    if (listener.protocol, listener.port) != (w.protocol, w.port):
        return Halt(w.listener, listener.status, fixed=True)
    if listener.status != "ACTIVE":
        return Halt(w.listener, listener.status)
    body: dict[str, Any] = {}
    if listener.cidrs != w.cidrs:
        body["allowed_cidrs"] = sorted(w.cidrs)
    if listener.pool != pool.id:
        body["default_pool_id"] = pool.id
    if w.timeout is not None and listener.timeouts != (w.timeout, w.timeout):
        body["timeout_client_data"] = body["timeout_member_data"] = w.timeout
    if not body:
        return None
    args = {"id": listener.id, "json": {"listener": body}}
    return Change(Verb.UPDATE_LISTENER, "listener.update", w.listener, args)


def _of_members(w: WantedListener, pool: SeenPool) -> Change | None:
    if pool.members == w.members:
        return None
    members = [{"address": address, "protocol_port": port} for address, port in sorted(w.members)]
    args = {"pool": pool.id, "json": {"members": members}}
    return Change(Verb.REPLACE_MEMBERS, "member.batch", w.pool, args, absence=not pool.members)


def _of_monitor(w: WantedListener, pool: SeenPool, monitor: SeenMonitor | None) -> Change | Halt | None:
    """A monitor of another type, or of another pool, cannot be turned into the wanted one: it goes first."""
    if w.check is None:
        return None
    if monitor is None:
        body = {**monitor_body(w), "pool_id": pool.id}
        made = {"json": {"healthmonitor": body}}
        return Change(Verb.CREATE_MONITOR, "healthmonitor.create", w.monitor, made, absence=True)
    if monitor.pool != pool.id or monitor.facts[0] != w.check[0]:
        return _delete(Verb.DELETE_MONITOR, "healthmonitor.delete", monitor)
    if monitor.status != "ACTIVE":
        return Halt(w.monitor, monitor.status)
    if monitor.facts == w.check:
        return None
    body = {name: value for name, value in monitor_body(w).items() if name not in ("name", "type")}
    args: dict[str, Any] = {"id": monitor.id, "json": {"healthmonitor": body}}
    return Change(Verb.UPDATE_MONITOR, "healthmonitor.update", w.monitor, args)
