"""Listeners, pools and monitors in one canonical form: rendered from a spec, read from Octavia, compared.

Pure.  What Octavia stores and what a spec leaves out are spelled the same here (K15), so that equal wishes cause no write.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from roadstead.cloud.names import listener_name, monitor_name, pool_name
from roadstead_loadbalancer.loadbalancer.model import DEFAULT_IDLE, HealthCheck, Listener, LoadBalancerSpec

MonitorFacts = tuple[str, int, int, int, int]
"""(type, delay, timeout, retries up, retries down); seconds and counts."""


@dataclass(frozen=True)
class WantedListener:
    """One listener with its pool.  timeout in milliseconds, None where the protocol has none; monitor None: no health check."""

    listener: str
    pool: str
    monitor: str
    protocol: str
    port: int
    cidrs: frozenset[str]
    timeout: int | None
    pool_protocol: str
    algorithm: str
    members: frozenset[tuple[str, int]]
    check: MonitorFacts | None


@dataclass(frozen=True)
class SeenListener:
    """A listener of Octavia.  pool: id of its default pool."""

    id: str
    name: str
    status: str
    protocol: str
    port: int
    cidrs: frozenset[str] = frozenset()
    timeouts: tuple[int, int] = (0, 0)
    pool: str | None = None


@dataclass(frozen=True)
class SeenPool:
    id: str
    name: str
    status: str
    protocol: str
    algorithm: str
    members: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True)
class SeenMonitor:
    """pool: the id of the pool that it looks after."""

    id: str
    name: str
    status: str
    facts: MonitorFacts
    pool: str | None = None


@dataclass(frozen=True)
class Tree:
    """All parts of one load balancer."""

    listeners: tuple[SeenListener, ...] = ()
    pools: tuple[SeenPool, ...] = ()
    monitors: tuple[SeenMonitor, ...] = ()

    @property
    def parts(self) -> tuple[SeenListener | SeenPool | SeenMonitor, ...]:
        return (*self.listeners, *self.pools, *self.monitors)


# ---------------------------------------------------------------- from a spec


def render(ident: str, spec: LoadBalancerSpec, algorithm: str) -> tuple[WantedListener, ...]:
    """What the spec wants, in its order."""
    return tuple(_wanted(ident, listener, algorithm) for listener in spec.listeners)


def _wanted(ident: str, listener: Listener, algorithm: str) -> WantedListener:
    tcp = listener.protocol == "tcp"
    return WantedListener(
        listener=listener_name(ident, listener.name),
        pool=pool_name(ident, listener.name),
        monitor=monitor_name(ident, listener.name),
        protocol=listener.protocol.upper(),
        port=listener.port,
        cidrs=frozenset(listener.allowedCIDRs or ()),
        timeout=(listener.idleTimeoutSeconds or DEFAULT_IDLE) * 1000 if tcp else None,
        pool_protocol=("PROXYV2" if listener.pool.proxyProtocolV2 else "TCP") if tcp else "UDP",
        algorithm=algorithm,
        members=frozenset((m.address, m.port) for m in listener.pool.members),
        check=_check(listener.pool.healthCheck, tcp),
    )


def _check(check: HealthCheck | None, tcp: bool) -> MonitorFacts | None:
    if check is None:
        return None
    return (
        "TCP" if tcp else "UDP-CONNECT",
        check.intervalSeconds,
        check.timeoutSeconds,
        check.healthyThreshold,
        check.unhealthyThreshold,
    )


def create_body(
    name: str, subnet: str, spec: LoadBalancerSpec, wanted: Iterable[WantedListener]
) -> dict[str, Any]:
    """The whole tree as one create request."""
    body: dict[str, Any] = {
        "name": name,
        "description": name,  # the mark of who made it, should somebody give it another name
        "vip_subnet_id": subnet,
        "listeners": [_graph(w) for w in wanted],
    }
    if spec.requestedVIPAddress is not None:
        body["vip_address"] = spec.requestedVIPAddress
    return body


def _graph(w: WantedListener) -> dict[str, Any]:
    """A listener with all that hangs below it."""
    members = [{"address": address, "protocol_port": port} for address, port in sorted(w.members)]
    pool: dict[str, Any] = {**pool_body(w), "members": members}
    if w.check is not None:
        pool["healthmonitor"] = monitor_body(w)
    return {**listener_body(w), "default_pool": pool}


def listener_body(w: WantedListener) -> dict[str, Any]:
    """The listener alone.  A UDP listener bears no timeouts, and no listener allowed ranges unless asked for (INV-282)."""
    body: dict[str, Any] = {"name": w.listener, "protocol": w.protocol, "protocol_port": w.port}
    if w.cidrs:
        body["allowed_cidrs"] = sorted(w.cidrs)
    if w.timeout is not None:
        body["timeout_client_data"] = body["timeout_member_data"] = w.timeout
    return body


def pool_body(w: WantedListener) -> dict[str, Any]:
    """The pool alone, without members."""
    return {"name": w.pool, "protocol": w.pool_protocol, "lb_algorithm": w.algorithm}


def monitor_body(w: WantedListener) -> dict[str, Any]:
    """The health monitor of a listener that wants one."""
    assert w.check is not None
    kind, delay, timeout, up, down = w.check
    return {
        "name": w.monitor,
        "type": kind,
        "delay": delay,
        "timeout": timeout,
        "max_retries": up,
        "max_retries_down": down,
    }


# ---------------------------------------------------------------- from Octavia


def seen_listener(found: Mapping[str, Any]) -> SeenListener:
    return SeenListener(
        id=str(found["id"]),
        name=str(found.get("name") or ""),
        status=status_of(found),
        protocol=str(found.get("protocol") or ""),
        port=int(found.get("protocol_port") or 0),
        cidrs=frozenset(_cidr(text) for text in found.get("allowed_cidrs") or ()),
        timeouts=(int(found.get("timeout_client_data") or 0), int(found.get("timeout_member_data") or 0)),
        pool=found.get("default_pool_id") or None,
    )


def seen_pool(found: Mapping[str, Any], members: Iterable[Mapping[str, Any]]) -> SeenPool:
    return SeenPool(
        id=str(found["id"]),
        name=str(found.get("name") or ""),
        status=status_of(found),
        protocol=str(found.get("protocol") or ""),
        algorithm=str(found.get("lb_algorithm") or ""),
        members=frozenset((_address(str(m["address"])), int(m["protocol_port"])) for m in members),
    )


def seen_monitor(found: Mapping[str, Any]) -> SeenMonitor:
    pools = found.get("pools") or ()
    return SeenMonitor(
        id=str(found["id"]),
        name=str(found.get("name") or ""),
        status=status_of(found),
        facts=(
            str(found.get("type") or ""),
            int(found.get("delay") or 0),
            int(found.get("timeout") or 0),
            int(found.get("max_retries") or 0),
            int(found.get("max_retries_down") or 0),
        ),
        pool=str(pools[0]["id"]) if pools else None,
    )


def status_of(found: Mapping[str, Any]) -> str:
    """The provisioning status in upper case, "" when none is told."""
    return str(found.get("provisioning_status") or "").upper()


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        return text  # what is no address equals none that we want


def _cidr(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        return text


# ---------------------------------------------------------------- comparison


def differences(wanted: Iterable[WantedListener], tree: Tree) -> tuple[str, ...]:
    """In what the parts differ from the spec, in the spec's own words; empty when nothing does.

    Parts of other names are told as well: they are what is left of listeners and checks that the spec no longer has.
    """
    found: list[str] = []
    known: set[str] = set()
    listeners = {part.name: part for part in tree.listeners}
    pools = {part.name: part for part in tree.pools}
    monitors = {part.name: part for part in tree.monitors}
    for w in wanted:
        known |= {w.listener, w.pool, *((w.monitor,) if w.check is not None else ())}
        found += _of_listener(w, listeners.get(w.listener), pools.get(w.pool), monitors.get(w.monitor))
    left = sorted(part.name for part in tree.parts if part.name not in known)
    return (*found, *(f"{name} is left over" for name in left))


def _of_listener(
    w: WantedListener, listener: SeenListener | None, pool: SeenPool | None, monitor: SeenMonitor | None
) -> list[str]:
    if listener is None or pool is None:
        return [f"{w.listener if listener is None else w.pool} is missing"]
    timeouts = (w.timeout, w.timeout) if w.timeout is not None else listener.timeouts
    facts = (
        ("protocol", (listener.protocol, listener.port) == (w.protocol, w.port)),
        ("allowedCIDRs", listener.cidrs == w.cidrs),
        ("idleTimeoutSeconds", listener.timeouts == timeouts),
        ("default pool", listener.pool == pool.id),
        ("proxyProtocolV2", pool.protocol == w.pool_protocol),
        ("balancing method", pool.algorithm == w.algorithm),
        ("members", pool.members == w.members),
    )
    found = [f"{what} of {w.listener}" for what, same in facts if not same]
    if w.check is not None and (monitor is None or monitor.pool != pool.id):
        found.append(f"{w.monitor} is missing")
    elif w.check is not None and monitor is not None and monitor.facts != w.check:
        found.append(f"healthCheck of {w.listener}")
    return found
