"""What a LoadBalancer's spec must fulfil (resources.md section 9), and what its network says at apply."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from roadstead.reconcile.kind import Metadata, Problem, Resource
from roadstead.reconcile.views import Directory
from roadstead.subjects import Key
from roadstead_loadbalancer.loadbalancer.model import Listener, LoadBalancerSpec, LoadBalancerStatus

Stored = Resource[LoadBalancerSpec, LoadBalancerStatus]


def validate(spec: LoadBalancerSpec, metadata: Metadata, stored: Stored | None, _key: Key) -> list[Problem]:
    """Every reason to refuse the spec."""
    problems: list[Problem] = []
    if not metadata.networkId:
        text = "metadata.networkId must name the network that the load balancer stands in"
        problems.append(Problem("NETWORK_MISSING", "metadata.networkId", text, 400))
    problems += _repeated(
        (x.name for x in spec.listeners), "LISTENER_REPEATED", "spec.listeners", "a listener of the name {}"
    )
    problems += _repeated(
        (f"{x.protocol} port {x.port}" for x in spec.listeners),
        "LISTENER_PORT_REPEATED",
        "spec.listeners",
        "a listener on {}",
    )
    for number, listener in enumerate(spec.listeners):
        problems += _listener(listener, f"spec.listeners.{number}")
    if stored is not None:
        problems += _immutable(spec, stored.spec)
    return problems


def _repeated(items: Iterable[Hashable], code: str, field: str, what: str) -> Iterator[Problem]:
    for item, times in Counter(items).items():
        if times > 1:
            yield Problem(code, field, f"{field} has {what.format(item)} more than once; name it once")


def _listener(listener: Listener, field: str) -> Iterator[Problem]:
    if listener.protocol == "udp":
        if listener.idleTimeoutSeconds is not None:
            text = f"{field}.idleTimeoutSeconds is for tcp listeners only; leave it out"
            yield Problem("UDP_IDLE", f"{field}.idleTimeoutSeconds", text)
        if listener.pool.proxyProtocolV2:
            text = f"{field}.pool.proxyProtocolV2 is for tcp listeners only; leave it out"
            yield Problem("UDP_PROXY", f"{field}.pool.proxyProtocolV2", text)
    members = (f"{m.address} port {m.port}" for m in listener.pool.members)
    yield from _repeated(members, "MEMBER_REPEATED", f"{field}.pool.members", "the member {}")
    check = listener.pool.healthCheck
    if check is not None and check.timeoutSeconds >= check.intervalSeconds:
        text = f"{field}.pool.healthCheck: timeoutSeconds must be less than intervalSeconds"
        yield Problem("HEALTH_TIMEOUT", f"{field}.pool.healthCheck.timeoutSeconds", text)


def _immutable(spec: LoadBalancerSpec, old: LoadBalancerSpec) -> Iterator[Problem]:
    """A listener's name is its key: under it, protocol, port and proxy protocol stay as they are (INV-280, INV-281)."""
    if spec.requestedVIPAddress != old.requestedVIPAddress:
        text = "spec.requestedVIPAddress cannot be changed; make another load balancer instead"
        yield Problem("VIP_IMMUTABLE", "spec.requestedVIPAddress", text)
    before = {listener.name: listener for listener in old.listeners}
    for number, listener in enumerate(spec.listeners):
        was = before.get(listener.name)
        if was is None:
            continue
        fixed = (
            ("LISTENER_PROTOCOL_IMMUTABLE", "protocol", listener.protocol == was.protocol),
            ("LISTENER_PORT_IMMUTABLE", "port", listener.port == was.port),
            (
                "LISTENER_PROXY_IMMUTABLE",
                "pool.proxyProtocolV2",
                listener.pool.proxyProtocolV2 == was.pool.proxyProtocolV2,
            ),
        )
        for code, name, same in fixed:
            if not same:
                text = f"{name} of the listener {listener.name} cannot be changed; use a new listener name"
                yield Problem(code, f"spec.listeners.{number}.{name}", text)


def at_apply(
    _key: Key,
    metadata: Metadata,
    spec: LoadBalancerSpec,
    _stored: Stored | None,
    directory: Directory,
    _extras: Mapping[str, Any],
) -> list[Problem]:
    """The requested address lies in the network, as far as that is known here."""
    view = directory.get("network", metadata.networkId or "")
    prefix = view.spec.get("prefix") if view is not None else None
    return vip_problems(spec, prefix if isinstance(prefix, str) else None)


def vip_problems(spec: LoadBalancerSpec, prefix: str | None) -> list[Problem]:
    """A requested address outside the network's prefix (REF-057); nothing while the prefix is not known."""
    if spec.requestedVIPAddress is None or prefix is None:
        return []
    try:
        inside = IPv4Address(spec.requestedVIPAddress) in IPv4Network(prefix, strict=False)
    except ValueError:
        return []  # the network's own service refuses such a prefix
    if inside:
        return []
    text = f"the address {spec.requestedVIPAddress} is not inside the network {prefix}; choose one that is"
    return [Problem("VIP_OUTSIDE", "spec.requestedVIPAddress", text)]
