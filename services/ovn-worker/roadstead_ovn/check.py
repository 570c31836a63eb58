"""What OVN cannot do is refused before anything is stored: a pure function of the call, with the original's classes and texts.

A call is a method of the driver interface and its arguments, data models as JSON under octavia-lib's field names.  Some refusals depend
on the load balancer that the call is about; without it they are not made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import Facts, holds, version_of
from roadstead_ovn.health import PROTOCOLS

UNSUPPORTED, NOT_IMPLEMENTED = "UnsupportedOption", "NotImplemented"
ALGORITHMS = ("SOURCE_IP_PORT", "SOURCE_IP")
PERSISTENCE = "SOURCE_IP"
MONITOR_TYPES = ("UDP-CONNECT", "TCP")

MIXED = "OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer."
MEMBER_MONITOR = "OVN Load Balancer does not support different member monitor address or port."
BATCH_MONITOR = "OVN provider does not support monitor options"
NO_TYPE = "OVN provider health monitor type not specified."
_SUBNET = (
    "Subnet is required, or Loadbalancer associated with Pool must have a subnet, for Member {} with OVN Provider Driver"
    " if it is not the same as LB VIP subnet"
)
CREATION, DELETION, BATCH = "creation", "deletion if it is", "batch update"

_L7 = {"create": "creating", "update": "updating", "delete": "deleting"}
_QUESTIONS = {
    "get_supported_flavor_metadata": "getting the supported flavor metadata",
    "validate_flavor": "validating flavors",
    "get_supported_availability_zone_metadata": "getting the supported availability zone metadata",
    "validate_availability_zone": "validating availability zones",
}


@dataclass(frozen=True)
class Refusal:
    """kind: the class in the provider protocol.  text: for the client and the operator."""

    kind: str
    text: str


@dataclass(frozen=True)
class Surroundings:
    """What the call is about, as far as it is known: the load balancer as it stands, and the network around it."""

    balancer: Balancer | None = None
    facts: Facts = Facts()  # noqa: RUF009 - frozen, and empty


Model = Mapping[str, Any]


def check(method: str, arguments: Sequence[Any], around: Surroundings | None = None) -> Refusal | None:
    """Why the call cannot be carried out; None when it can.  Total: what cannot be read is left to whoever carries it out."""
    around = around or Surroundings()
    kind, _, verb = method.rpartition("_")
    if kind in ("l7policy", "l7rule") and verb in _L7:
        noun = "l7policies" if kind == "l7policy" else "l7rules"
        return _not_implemented(f"{_L7[verb]} {noun}")
    if method in _QUESTIONS:
        return _not_implemented(_QUESTIONS[method])
    rule = _RULES.get(method)
    if rule is None:
        return _not_implemented(method) if method not in _FREE else None
    models = [value for value in arguments if isinstance(value, Mapping)]
    return next((refusal for refusal in rule(models, arguments, around) if refusal is not None), None)


def _unsupported(text: str) -> Refusal:
    return Refusal(UNSUPPORTED, text)


def _not_implemented(what: str) -> Refusal:
    return Refusal(NOT_IMPLEMENTED, f"This provider does not support {what}.")


Found = Iterator[Refusal | None]
Rule = Callable[[list[Model], Sequence[Any], Surroundings], Found]


# ------------------------------------------------------------ one object


def _protocol(model: Model) -> Refusal | None:
    protocol = model.get("protocol")
    if protocol is None or protocol in PROTOCOLS:
        return None
    return _unsupported(f"OVN provider does not support {protocol} protocol")


def _listener(model: Model) -> Found:
    yield _protocol(model)
    if model.get("allowed_cidrs"):
        yield _unsupported("OVN provider does not support allowed_cidrs option")
    if model.get("l7policies"):
        yield _not_implemented("creating l7policies")


def _pool(model: Model) -> Found:
    yield _protocol(model)
    algorithm = model.get("lb_algorithm")
    if algorithm is not None and algorithm not in ALGORITHMS:
        yield _unsupported(f"OVN provider does not support {algorithm} algorithm")
    kept = model.get("session_persistence")
    kind = kept.get("type") if isinstance(kept, Mapping) else None
    if kind is not None and kind != PERSISTENCE:
        yield _unsupported(
            f"OVN provider does not support {kind} session persistence. Only {PERSISTENCE} type is supported."
        )


def _monitor(model: Model) -> Found:
    kind = model.get("type")
    if not kind:
        yield _unsupported(NO_TYPE)
    elif kind not in MONITOR_TYPES:
        supported = ", ".join(MONITOR_TYPES)
        yield _unsupported(
            f"OVN provider does not support {kind} health monitor type. Supported types: {supported}"
        )


def _own_monitor(model: Model) -> bool:
    return bool(model.get("monitor_address")) or model.get("monitor_port") is not None


@dataclass(frozen=True)
class _Vips:
    """What members are compared with."""

    addresses: tuple[str, ...]
    cidr: str | None  # of the VIP's subnet, None when it is not known

    def family(self, model: Model) -> Refusal | None:
        version = version_of(str(model.get("address") or ""))
        versions = {version_of(address) for address in self.addresses} - {0}
        return _unsupported(MIXED) if version and versions and version not in versions else None

    def subnet(self, model: Model, doing: str) -> Refusal | None:
        address = model.get("address")
        if model.get("subnet_id") or self.cidr is None or not isinstance(address, str):
            return None
        return None if holds(self.cidr, address) else _unsupported(_SUBNET.format(doing))


def _vips(around: Surroundings) -> _Vips:
    if around.balancer is None:
        return _Vips((), None)
    return _vips_of([v.address for v in around.balancer.vips], around.balancer.vip.subnet_id, around.facts)


def _vips_of(addresses: Sequence[str], subnet_id: str, facts: Facts) -> _Vips:
    subnet = facts.subnet.get(subnet_id)
    return _Vips(tuple(a for a in addresses if a), subnet.cidr if subnet else None)


# ------------------------------------------------------------ calls


def _items(model: Model, name: str) -> list[Model]:
    value = model.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _whole_pool(pool: Model, vips: _Vips) -> Found:
    yield from _pool(pool)
    for member in _items(pool, "members"):
        yield from _new_member(member, vips)
    monitor = pool.get("healthmonitor")
    if isinstance(monitor, Mapping):
        yield from _monitor(monitor)


def _new_member(model: Model, vips: _Vips) -> Found:
    if _own_monitor(model):
        yield _unsupported(MEMBER_MONITOR)
    yield vips.family(model)
    yield vips.subnet(model, CREATION)


def _load_balancer_create(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
    for model in models:
        addresses = [
            model.get("vip_address"),
            *(v.get("ip_address") for v in _items(model, "additional_vips")),
        ]
        subnet = model.get("vip_subnet_id")
        vips = _vips_of([str(a or "") for a in addresses], str(subnet or ""), around.facts)
        for listener in _items(model, "listeners"):
            yield from _listener(listener)
            pool = listener.get("default_pool")
            if isinstance(pool, Mapping):
                yield from _whole_pool(pool, vips)
        for pool in _items(model, "pools"):
            yield from _whole_pool(pool, vips)


def _load_balancer_failover(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
    yield _unsupported("OVN provider does not support loadbalancer failover")


def _listener_create(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
    for model in models:
        yield from _listener(model)  # its default pool stands already, and has been agreed to


def _pool_create(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
    for model in models:
        yield from _whole_pool(model, _vips(around))


def _new_side(rule: Callable[[Model], Found]) -> Rule:
    """Of an update only what it sets is looked at: what stands already has been agreed to."""

    def look(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
        if models:
            yield from rule(models[-1])

    return look


def _member_create(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
    for model in models:
        yield from _new_member(model, _vips(around))


def _member_update(model: Model) -> Found:
    if _own_monitor(model):
        yield _unsupported(MEMBER_MONITOR)


def _member_delete(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
    for model in models:
        yield _vips(around).subnet(model, DELETION)


def _member_batch(models: list[Model], arguments: Sequence[Any], around: Surroundings) -> Found:
    balancer, vips = around.balancer, _vips(around)
    known = {m.id for pool in balancer.pools for m in pool.members} if balancer else set()
    for entries in arguments:
        for model in entries if isinstance(entries, list) else ():
            if not isinstance(model, Mapping):
                continue
            if _own_monitor(model):
                yield _unsupported(BATCH_MONITOR)
            yield vips.family(model)
            if model.get("member_id") not in known:  # of a known one the subnet is left out when it stays
                yield vips.subnet(model, BATCH)


def _monitor_create(models: list[Model], _: Sequence[Any], around: Surroundings) -> Found:
    for model in models:
        yield from _monitor(model)


def _monitor_update(model: Model) -> Found:
    if model.get("type") is not None:
        yield from _monitor(model)


_RULES: Mapping[str, Rule] = {
    "loadbalancer_create": _load_balancer_create,
    "loadbalancer_failover": _load_balancer_failover,
    "listener_create": _listener_create,
    "listener_update": _new_side(_listener),
    "pool_create": _pool_create,
    "pool_update": _new_side(_pool),
    "member_create": _member_create,
    "member_update": _new_side(_member_update),
    "member_delete": _member_delete,
    "member_batch_update": _member_batch,
    "health_monitor_create": _monitor_create,
    "health_monitor_update": _new_side(_monitor_update),
}
_FREE = frozenset(
    {
        "loadbalancer_update",
        "loadbalancer_delete",
        "listener_delete",
        "pool_delete",
        "health_monitor_delete",
        "create_vip_port",
    }
)
