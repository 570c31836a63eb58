"""A load balancer as this worker reads it: typed, without what OVN has no use for, and without what is to be taken away.

It is read from the JSON tree of the provider protocol.  What is PENDING_DELETE (or DELETED) in the tree's statuses is left out, so
everything after this step sees only what shall be there.  Lists come out ordered by id: their order in the tree means nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

GONE = frozenset({"PENDING_DELETE", "DELETED"})
AFFINITY_DEFAULT = 360  # seconds, when session persistence names none


class BadTree(ValueError):
    """The JSON is no tree of the provider protocol; the text says where."""


@dataclass(frozen=True)
class Vip:
    """One address of the load balancer.  Empty texts for what is not known."""

    address: str
    port_id: str
    network_id: str
    subnet_id: str


@dataclass(frozen=True)
class Listener:
    """protocol: as Octavia spells it.  pool_id: its default pool; None also while that pool is being taken away."""

    id: str
    protocol: str
    port: int
    enabled: bool
    pool_id: str | None


@dataclass(frozen=True)
class Member:
    """subnet_id: None when none was given: the VIP's counts."""

    id: str
    address: str
    port: int
    subnet_id: str | None
    enabled: bool


@dataclass(frozen=True)
class Monitor:
    """Times in seconds."""

    id: str
    delay: int
    timeout: int
    rise: int
    fall: int
    enabled: bool


@dataclass(frozen=True)
class Pool:
    """affinity: seconds of SOURCE_IP persistence, None without it."""

    id: str
    protocol: str
    algorithm: str
    enabled: bool
    affinity: int | None
    members: tuple[Member, ...]
    monitor: Monitor | None


@dataclass(frozen=True)
class Balancer:
    """statuses: id of any object -> (provisioning, operating), those being taken away included."""

    id: str
    revision: int
    enabled: bool
    vip: Vip
    additional: tuple[Vip, ...]
    listeners: tuple[Listener, ...]
    pools: tuple[Pool, ...]
    statuses: Mapping[str, tuple[str, str]]
    vanishing: Mapping[
        str, bool
    ]  # pool id -> whether members or the monitor of that pool are being taken away

    @property
    def vips(self) -> tuple[Vip, ...]:
        return (self.vip, *self.additional)

    def member_subnet(self, member: Member) -> str:
        return member.subnet_id or self.vip.subnet_id


def balancer_of(tree: Mapping[str, Any], going: Collection[str] = ()) -> Balancer | None:
    """The load balancer of a tree; None when it is to be taken away whole.  going: ids that are as good as PENDING_DELETE.  BadTree."""
    model = _mapping(tree.get("loadbalancer"), "loadbalancer")
    identifier = _text(tree.get("loadbalancer_id") or model.get("loadbalancer_id"), "loadbalancer_id")
    statuses = _statuses(tree.get("statuses") or {})

    def stays(item: Mapping[str, Any], key: str) -> bool:
        return item.get(key) not in going and statuses.get(str(item.get(key)), ("", ""))[0] not in GONE

    if identifier in going or statuses.get(identifier, ("", ""))[0] in GONE:
        return None
    pools, vanishing = [], {}
    for item in _items(model, "pools"):
        if stays(item, "pool_id"):
            pool = _pool(item, stays)
            pools.append(pool)
            monitor = _optional(item.get("healthmonitor"), "healthmonitor")
            vanishing[pool.id] = len(pool.members) < len(_items(item, "members")) or (
                monitor is not None and pool.monitor is None
            )
    known = {pool.id for pool in pools}
    listeners = [_listener(item, known) for item in _items(model, "listeners") if stays(item, "listener_id")]
    return Balancer(
        id=identifier,
        revision=_whole(tree.get("revision", 0), "revision"),
        enabled=_flag(model),
        vip=Vip(
            *(str(model.get(f"vip_{n}") or "") for n in ("address", "port_id", "network_id", "subnet_id"))
        ),
        additional=tuple(
            Vip(*(str(item.get(n) or "") for n in ("ip_address", "port_id", "network_id", "subnet_id")))
            for item in _items(model, "additional_vips")
        ),
        listeners=tuple(sorted(listeners, key=lambda x: x.id)),
        pools=tuple(sorted(pools, key=lambda x: x.id)),
        statuses=statuses,
        vanishing=vanishing,
    )


def _listener(item: Mapping[str, Any], pools: set[str]) -> Listener:
    pool = item.get("default_pool_id")
    return Listener(
        id=_text(item.get("listener_id"), "listener_id"),
        protocol=str(item.get("protocol") or ""),
        port=_whole(item.get("protocol_port"), "protocol_port"),
        enabled=_flag(item),
        pool_id=pool if isinstance(pool, str) and pool in pools else None,
    )


def _pool(item: Mapping[str, Any], stays: Any) -> Pool:
    members = [_member(member) for member in _items(item, "members") if stays(member, "member_id")]
    monitor = _optional(item.get("healthmonitor"), "healthmonitor")
    if monitor is not None and not stays(monitor, "healthmonitor_id"):
        monitor = None
    kept = _optional(item.get("session_persistence"), "session_persistence") or {}
    sticky = kept.get("type") == "SOURCE_IP"
    return Pool(
        id=_text(item.get("pool_id"), "pool_id"),
        protocol=str(item.get("protocol") or ""),
        algorithm=str(item.get("lb_algorithm") or ""),
        enabled=_flag(item),
        affinity=_whole(kept.get("persistence_timeout") or AFFINITY_DEFAULT, "persistence_timeout")
        if sticky
        else None,
        members=tuple(sorted(members, key=lambda x: x.id)),
        monitor=None if monitor is None else _monitor(monitor),
    )


def _member(item: Mapping[str, Any]) -> Member:
    return Member(
        id=_text(item.get("member_id"), "member_id"),
        address=_text(item.get("address"), "address"),
        port=_whole(item.get("protocol_port"), "protocol_port"),
        subnet_id=str(item["subnet_id"]) if item.get("subnet_id") else None,
        enabled=_flag(item),
    )


def _monitor(item: Mapping[str, Any]) -> Monitor:
    return Monitor(
        id=_text(item.get("healthmonitor_id"), "healthmonitor_id"),
        delay=_whole(item.get("delay", 0), "delay"),
        timeout=_whole(item.get("timeout", 0), "timeout"),
        rise=_whole(item.get("max_retries", 0), "max_retries"),
        fall=_whole(item.get("max_retries_down") or 3, "max_retries_down"),
        enabled=_flag(item),
    )


def _flag(item: Mapping[str, Any]) -> bool:
    # What is not said is on, as it is for every client of the API.
    return item.get("admin_state_up") is not False


def _statuses(value: Any) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for kind, rows in _mapping(value, "statuses").items():
        for identifier, pair in _mapping(rows, f"statuses.{kind}").items():
            if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
                raise BadTree(f"statuses.{kind}.{identifier} is no pair of statuses")
            found[identifier] = (str(pair[0]), str(pair[1]))
    return found


def _items(item: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = item.get(name) or []
    if not isinstance(value, list):
        raise BadTree(f"{name} is no list")
    return [_mapping(entry, name) for entry in value]


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadTree(f"{name} is no object")
    return value


def _optional(value: Any, name: str) -> Mapping[str, Any] | None:
    return None if value is None else _mapping(value, name)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise BadTree(f"{name} is missing or no text")
    return value


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadTree(f"{name} is no whole number")
    return value
