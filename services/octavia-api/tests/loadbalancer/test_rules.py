"""What a flavor, a provider, a deployment's lists of networks and a status allow."""

from dataclasses import replace
from typing import Any

import pytest

from roadstead_octavia.db.port import Tree
from roadstead_octavia.errors import ApiError
from roadstead_octavia.resources.loadbalancer import rules

from .world import OPTIONS

TWO = replace(OPTIONS, enabled_provider_drivers={"noop": "x", "other": "y"})


def text(function: Any, *arguments: Any) -> str:
    with pytest.raises(ApiError) as refused:
        function(*arguments)
    return refused.value.text


@pytest.mark.parametrize(
    ("asked", "of_flavor", "chosen"),
    [(None, None, "noop"), ("other", None, "other"), (None, "other", "other"), ("other", "other", "other")],
)
def test_the_provider_is_the_flavors_else_the_requests_else_the_default(
    asked: str | None, of_flavor: str | None, chosen: str
) -> None:
    assert rules.provider_of(asked, "f" if of_flavor else None, of_flavor, TWO) == chosen


def test_a_provider_that_does_not_fit_or_is_not_enabled_is_refused() -> None:
    assert (
        text(rules.provider_of, "noop", "f", "other", TWO)
        == "Flavor 'f' is not compatible with provider 'noop'"
    )
    assert text(rules.provider_of, "ghost", None, None, TWO) == "Provider 'ghost' is not enabled."
    assert text(rules.provider_of, None, "f", "ghost", TWO) == "Provider 'ghost' is not enabled."


def test_a_direct_vip_has_no_security_groups() -> None:
    assert rules.vnic_type({}, ["g"]) == "normal"
    assert rules.vnic_type({"sriov_vip": True}, []) == "direct"
    assert rules.NO_GROUPS in text(rules.vnic_type, {"sriov_vip": True}, ["g"])
    assert rules.NO_GROUPS in text(rules.require_groups_fit, {"vnic_type": "direct"})
    rules.require_groups_fit({"vnic_type": "normal"})


def test_networks_are_allowed_by_the_zone_else_by_the_deployment_and_never_when_denied() -> None:
    some = replace(OPTIONS, valid_vip_networks=("A",))
    rules.require_network_allowed("a", {}, some)
    rules.require_network_allowed("b", {"valid_vip_networks": ["B"]}, some)
    rules.require_network_allowed("b", {}, OPTIONS)
    assert rules.NETWORK_DENIED in text(rules.require_network_allowed, "b", {}, some)
    assert rules.NETWORK_DENIED in text(
        rules.require_network_allowed, "a", {"valid_vip_networks": ["b"]}, some
    )
    denied = replace(OPTIONS, denylist_vip_networks=("A",))
    assert rules.NETWORK_DENIED in text(rules.require_network_allowed, "a", {}, denied)


def a_tree(status: str = "ACTIVE", **rows: Any) -> Tree:
    return Tree(1, 1, {"load_balancer": [{"id": "lb", "provisioning_status": status}], **rows})


def test_what_is_deleted_is_not_there() -> None:
    assert rules.existing(a_tree(), "lb").load_balancer["id"] == "lb"
    for tree in (None, a_tree("DELETED")):
        assert text(rules.existing, tree, "lb") == "Load Balancer lb not found."


def test_a_status_that_is_not_allowed_is_named() -> None:
    rules.require_status({"id": "lb", "provisioning_status": "ERROR"}, rules.DELETABLE)
    for status in ("PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"):
        row = {"id": "lb", "provisioning_status": status}
        wanted = f"Invalid state {status} of loadbalancer resource lb"
        assert text(rules.require_status, row, rules.DELETABLE) == wanted


def test_children_stand_in_the_way_of_a_deletion_without_cascade() -> None:
    rules.require_childless(a_tree())
    for table in ("listener", "pool"):
        assert "it has children" in text(rules.require_childless, a_tree("ACTIVE", **{table: [{"id": "x"}]}))
