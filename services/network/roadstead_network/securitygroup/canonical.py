"""Rules in one form, so that equal ones are equal however they are spelled (REF-032 to REF-034)."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from roadstead_network.securitygroup.model import CloudRule, Rule, RuleKey

EVERYBODY = "0.0.0.0/0"
PROTOCOLS: Mapping[str, int] = {"icmp": 1, "tcp": 6, "udp": 17, "vrrp": 112}
ANY = (None, "", "any", "ip", "0", 0)


def wanted(rules: Sequence[Rule]) -> tuple[RuleKey, ...]:
    """The rules of a spec, each once, in the order given."""
    return tuple(dict.fromkeys(key_of(rule) for rule in rules))


def key_of(rule: Rule) -> RuleKey:
    """A spec's rule in canonical form."""
    low = high = None
    if rule.port is not None and rule.port.range is not None:
        low, high = rule.port.range.start, rule.port.range.end
    elif rule.port is not None:
        low = high = rule.port.number
    return RuleKey(rule.direction, protocol(rule.protocol), low, high, prefix(rule.prefix or rule.cidr))


def cloud_rule(raw: Mapping[str, Any]) -> CloudRule:
    """Neutron's rule in canonical form."""
    narrow = any(raw.get(name) for name in ("remote_group_id", "remote_address_group_id"))
    key: RuleKey | None = None
    if raw.get("ethertype") == "IPv4" and not narrow:
        key = RuleKey(
            str(raw["direction"]),
            protocol(raw.get("protocol")),
            raw.get("port_range_min"),
            raw.get("port_range_max"),
            prefix(raw.get("remote_ip_prefix")),
        )
    return CloudRule(str(raw["id"]), key, is_implicit(raw))


def is_implicit(raw: Mapping[str, Any]) -> bool:
    """Neutron's own: egress of one family, to everybody, of everything.  One of ours always names its prefix."""
    narrowing = (
        "port_range_min",
        "port_range_max",
        "remote_ip_prefix",
        "remote_group_id",
        "remote_address_group_id",
    )
    return (
        raw.get("direction") == "egress"
        and protocol(raw.get("protocol")) is None
        and all(raw.get(name) is None for name in narrowing)
    )


def protocol(value: Any) -> int | str | None:
    """By number where it has one; names nobody here uses stay as they are and so equal nothing wanted."""
    if value in ANY:
        return None
    text = str(value).lower()
    return PROTOCOLS.get(text, int(text) if text.isdecimal() else text)


def prefix(value: Any) -> str:
    """Without host bits; nothing means everybody."""
    if not value:
        return EVERYBODY
    try:
        return str(IPv4Network(str(value), strict=False))
    except ValueError:
        return str(value)


def extra(keys: Sequence[RuleKey], rules: Sequence[CloudRule]) -> tuple[CloudRule, ...]:
    """Rules to delete: those that are not wanted, never Neutron's own."""
    return tuple(rule for rule in rules if not rule.implicit and rule.key not in keys)


def missing(keys: Sequence[RuleKey], rules: Sequence[CloudRule]) -> tuple[RuleKey, ...]:
    """Rules to create.  Neutron's own count where they are what is wanted: a second one would be refused."""
    present = {rule.key for rule in rules}
    return tuple(key for key in keys if key not in present)


def body_of(key: RuleKey, group: str, description: str) -> dict[str, Any]:
    """The rule as Neutron takes it."""
    names = {number: name for name, number in PROTOCOLS.items()}
    return {
        "security_group_id": group,
        "description": description,
        "direction": key.direction,
        "ethertype": "IPv4",
        "protocol": names.get(key.protocol) if isinstance(key.protocol, int) else None,
        "port_range_min": key.low,
        "port_range_max": key.high,
        "remote_ip_prefix": key.prefix,
    }
