"""Security group rules: equality, validation, defaults."""

from typing import Any

import pytest

from roadstead.testing.cloudsim.neutron_rules import RuleError, canonical_key, implicit_rules, normalise

SSH = {"direction": "ingress", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}


def key(**changes: Any) -> tuple[Any, ...]:
    return canonical_key(normalise({**SSH, **changes}))


def test_no_prefix_and_any_address_are_the_same_rule() -> None:
    assert key() == key(remote_ip_prefix="0.0.0.0/0")
    assert key() != key(remote_ip_prefix="10.0.0.0/8")


def test_protocol_names_and_numbers_are_the_same_rule() -> None:
    assert key(protocol="tcp") == key(protocol="6") == key(protocol=6) == key(protocol="TCP")
    assert key() != key(protocol="udp")


def test_host_bits_of_a_prefix_are_dropped() -> None:
    assert normalise({**SSH, "remote_ip_prefix": "10.1.2.3/8"})["remote_ip_prefix"] == "10.0.0.0/8"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"protocol": "nope"}, "SecurityGroupRuleInvalidProtocol"),
        ({"protocol": "256"}, "SecurityGroupRuleInvalidProtocol"),
        ({"protocol": None}, "SecurityGroupProtocolRequiredWithPorts"),
        ({"protocol": "gre"}, "SecurityGroupInvalidProtocolForPort"),
        ({"port_range_min": 80}, "SecurityGroupInvalidPortRange"),
        ({"port_range_max": None}, "SecurityGroupInvalidPortRange"),
        ({"port_range_min": 0}, "SecurityGroupInvalidPortValue"),
        ({"port_range_max": 65536}, "SecurityGroupInvalidPortValue"),
        ({"protocol": "icmp", "port_range_min": None}, "SecurityGroupMissingIcmpType"),
        ({"protocol": "icmp", "port_range_max": 300}, "SecurityGroupInvalidIcmpValue"),
        ({"remote_ip_prefix": "300.0.0.0/8"}, "InvalidCIDR"),
        ({"remote_ip_prefix": "2001:db8::/32"}, "SecurityGroupRuleParameterConflict"),
        ({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": "g"}, "SecurityGroupMultipleRemoteEntites"),
        ({"direction": "sideways"}, "HTTPBadRequest"),
        ({"ethertype": "IPv5"}, "SecurityGroupRuleInvalidEtherType"),
    ],
)
def test_ill_formed_rules_are_refused(changes: dict[str, Any], kind: str) -> None:
    with pytest.raises(RuleError) as caught:
        normalise({**SSH, **changes})
    assert caught.value.kind == kind


def test_a_new_group_allows_egress_only_and_the_default_group_its_own_members() -> None:
    plain = [(r["direction"], r["ethertype"], r["remote_group_id"]) for r in implicit_rules("g", False)]
    assert plain == [("egress", "IPv4", None), ("egress", "IPv6", None)]
    default = [(r["direction"], r["ethertype"], r["remote_group_id"]) for r in implicit_rules("g", True)]
    assert default == [*plain, ("ingress", "IPv4", "g"), ("ingress", "IPv6", "g")]
