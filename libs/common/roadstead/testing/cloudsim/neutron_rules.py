"""Security group rules of the simulated Neutron: validation, the equality Neutron applies, defaults.

Two rules are the same when their canonical keys are equal: protocol names and numbers fold
together, and a missing remote prefix counts as "any address".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

PROTOCOL_NUMBERS = {
    "ah": 51, "dccp": 33, "egp": 8, "esp": 50, "gre": 47, "icmp": 1, "icmpv6": 58, "igmp": 2,
    "ip": 0, "ipip": 4, "ipv6-encap": 41, "ipv6-frag": 44, "ipv6-icmp": 58, "ipv6-nonxt": 59,
    "ipv6-opts": 60, "ipv6-route": 43, "ospf": 89, "pgm": 113, "rsvp": 46, "sctp": 132,
    "tcp": 6, "udp": 17, "udplite": 136, "vrrp": 112,
}  # fmt: skip
ANY_PROTOCOL = (None, "any", "ip", "0", 0)
ANY_ADDRESS = (None, "0.0.0.0/0", "::/0")
PROTOCOLS_WITH_PORTS = (6, 17, 132, 136, 33)
PROTOCOLS_ICMP = (1, 58)
RULE_FIELDS = (
    "direction", "ethertype", "protocol", "port_range_min", "port_range_max",
    "remote_ip_prefix", "remote_group_id", "remote_address_group_id",
)  # fmt: skip


@dataclass(frozen=True)
class RuleError(Exception):
    """A refusal of the rule layer: Neutron exception type and message; always a 400."""

    kind: str
    message: str


def normalise(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the eight matching fields of a rule request with Neutron's defaults and types.

    Raises RuleError for what Neutron answers 400: unknown direction or ethertype, ports without a
    protocol that has ports, an inverted range, a malformed prefix, two kinds of remote.
    """
    rule: dict[str, Any] = {name: request.get(name) for name in RULE_FIELDS}
    rule["ethertype"] = {"ipv4": "IPv4", "ipv6": "IPv6"}.get(str(rule["ethertype"] or "IPv4").lower())
    if rule["ethertype"] is None:
        raise RuleError(
            "SecurityGroupRuleInvalidEtherType",
            f"Security group rule for ethertype '{request.get('ethertype')}' not supported. "
            "Allowed values are ['IPv4', 'IPv6'].",
        )
    if rule["direction"] not in ("ingress", "egress"):
        raise RuleError(
            "HTTPBadRequest",
            f"Invalid input for direction. Reason: '{rule['direction']}' is not in ['ingress', 'egress'].",
        )
    rule["protocol"] = _protocol(rule["protocol"])
    for field in ("port_range_min", "port_range_max"):
        rule[field] = _port(field, rule[field])
    _check_ports(rule)
    rule["remote_ip_prefix"] = _prefix(rule["remote_ip_prefix"], rule["ethertype"])
    if (
        sum(rule[f] is not None for f in ("remote_ip_prefix", "remote_group_id", "remote_address_group_id"))
        > 1
    ):
        raise RuleError(
            "SecurityGroupMultipleRemoteEntites",
            "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.",
        )
    return rule


def canonical_key(rule: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what Neutron compares two rules of one group by."""
    prefix = rule.get("remote_ip_prefix")
    return (
        rule["direction"],
        rule["ethertype"],
        rule.get("port_range_min"),
        rule.get("port_range_max"),
        protocol_number(rule.get("protocol")),
        rule.get("remote_group_id"),
        rule.get("remote_address_group_id"),
        None if prefix in ANY_ADDRESS else prefix,
    )


def implicit_rules(group_id: str, is_default: bool) -> list[dict[str, Any]]:
    """Return the rules a new group starts with: egress for both families, and in a project's
    `default` group ingress from the group itself."""
    rules = [_open("egress", family, None) for family in ("IPv4", "IPv6")]
    if is_default:
        rules += [_open("ingress", family, group_id) for family in ("IPv4", "IPv6")]
    return rules


def protocol_number(protocol: Any) -> int | None:
    """Return the IP protocol number of a stored protocol value, None for any."""
    if protocol in ANY_PROTOCOL:
        return None
    return PROTOCOL_NUMBERS.get(str(protocol)) or int(str(protocol))


def _open(direction: str, ethertype: str, remote_group: str | None) -> dict[str, Any]:
    rule: dict[str, Any] = dict.fromkeys(RULE_FIELDS)
    return rule | {"direction": direction, "ethertype": ethertype, "remote_group_id": remote_group}


def _protocol(value: Any) -> str | None:
    if value in ANY_PROTOCOL:
        return None
    text = str(value).lower()
    if text in PROTOCOL_NUMBERS or (text.isdigit() and int(text) <= 255):
        return text
    raise RuleError(
        "SecurityGroupRuleInvalidProtocol",
        f"Security group rule protocol {value} not supported. Only protocol values "
        f"{sorted(PROTOCOL_NUMBERS)} and integer representations [0 to 255] are supported.",
    )


def _port(field: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number <= 65535:
        raise RuleError("SecurityGroupInvalidPortValue", f"Invalid value for port {value}")
    return number


def _check_ports(rule: Mapping[str, Any]) -> None:
    low, high = rule["port_range_min"], rule["port_range_max"]
    if low is None and high is None:
        return
    if rule["protocol"] is None:
        raise RuleError(
            "SecurityGroupProtocolRequiredWithPorts", "Must also specify protocol if port range is given."
        )
    number = protocol_number(rule["protocol"])
    if number in PROTOCOLS_WITH_PORTS:
        if 0 in (low, high):
            raise RuleError("SecurityGroupInvalidPortValue", "Invalid value for port 0")
        if low is None or high is None or low > high:
            raise RuleError(
                "SecurityGroupInvalidPortRange",
                "For TCP/UDP protocols, port_range_min must be <= port_range_max",
            )
    elif number in PROTOCOLS_ICMP:
        _check_icmp(low, high)
    else:
        raise RuleError(
            "SecurityGroupInvalidProtocolForPort",
            f"Ports cannot be specified for protocol {rule['protocol']}. "
            "Ports are only supported for tcp, udp, sctp, udplite, dccp.",
        )


def _check_icmp(kind: int | None, code: int | None) -> None:
    for field, attr, value in (("type", "port_range_min", kind), ("code", "port_range_max", code)):
        if value is not None and value > 255:
            raise RuleError(
                "SecurityGroupInvalidIcmpValue",
                f"Invalid value for ICMP {field} ({attr}) {value}. It must be 0 to 255.",
            )
    if kind is None:
        raise RuleError(
            "SecurityGroupMissingIcmpType",
            f"ICMP code (port-range-max) {code} is provided but ICMP type (port-range-min) is missing.",
        )


def _prefix(value: Any, ethertype: str) -> str | None:
    if value is None:
        return None
    try:
        network = ip_network(str(value), strict=False)
    except ValueError:
        raise RuleError("InvalidCIDR", f"Invalid CIDR {value} given as IP prefix.") from None
    if f"IPv{network.version}" != ethertype:
        raise RuleError(
            "SecurityGroupRuleParameterConflict",
            f"Conflicting value ethertype {ethertype} for CIDR {value}",
        )
    return str(network)
