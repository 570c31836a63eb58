"""Every `openstack loadbalancer ...` command as against the simulated cloud: the same tests, with real names of networks and projects."""

from tests.octavia.test_openstack_command import (
    mine,
    operator,
    pytestmark,
    test_flavors_zones_quotas_providers_and_amphorae,
    test_load_balancers_and_what_stands_below,
)

__all__ = [
    "mine",
    "operator",
    "pytestmark",
    "test_flavors_zones_quotas_providers_and_amphorae",
    "test_load_balancers_and_what_stands_below",
]
