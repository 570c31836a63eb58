"""What a SecurityGroup's spec must fulfil (resources.md section 4)."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from roadstead.reconcile.kind import Metadata, Problem, Resource
from roadstead.subjects import Key
from roadstead_network.securitygroup.model import Port, Rule, SecurityGroupSpec, SecurityGroupStatus

PROTOCOLS_WITH_PORTS = ("tcp", "udp")


def validate(
    spec: SecurityGroupSpec,
    metadata: Metadata,
    _stored: Resource[SecurityGroupSpec, SecurityGroupStatus] | None,
    _key: Key,
) -> list[Problem]:
    """Every reason to refuse the spec."""
    problems: list[Problem] = []
    if not metadata.networkId:
        text = "metadata.networkId must name the network that the group belongs to"
        problems.append(Problem("NETWORK_MISSING", "metadata.networkId", text, 400))
    for number, rule in enumerate(spec.rules):
        problems += _rule_problems(rule, f"spec.rules.{number}")
    return problems


def _rule_problems(rule: Rule, field: str) -> Iterator[Problem]:
    if rule.port is not None:
        yield from _port_problems(rule, rule.port, f"{field}.port")
    if rule.prefix and rule.cidr and rule.prefix != rule.cidr:
        text = f"{field} names both prefix and cidr, which mean the same; leave one out"
        yield Problem("PREFIX_TWICE", f"{field}.prefix", text, 400)
    for name, value in (("prefix", rule.prefix), ("cidr", rule.cidr)):
        if value is not None and not _is_cidr(value):
            text = f"{field}.{name} {value!r} is no IPv4 CIDR; write one such as 10.0.0.0/8"
            yield Problem("PREFIX_INVALID", f"{field}.{name}", text, 400)


def _port_problems(rule: Rule, port: Port, field: str) -> Iterator[Problem]:
    if rule.protocol not in PROTOCOLS_WITH_PORTS:
        yield Problem("PORT_NOT_ALLOWED", field, f"{field}: only tcp and udp have ports", 400)
    if (port.number is None) == (port.range is None):
        yield Problem("PORT_INCOMPLETE", field, f"{field} must have either number or range", 400)
    if port.range is not None and port.range.start >= port.range.end:
        text = f"{field}.range must begin before it ends; for one port use number"
        yield Problem("PORT_RANGE_INVERTED", f"{field}.range", text, 400)


def _is_cidr(text: str) -> bool:
    try:
        IPv4Network(text, strict=False)
    except ValueError:
        return False
    return "/" in text
