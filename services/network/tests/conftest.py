"""Fixtures of the network service's tests."""

import pytest
from services.network.tests.world import PHYSICAL, World


@pytest.fixture
def world() -> World:
    """A region with tenant networks."""
    return World()


@pytest.fixture
def vlan_world() -> World:
    """A region with VLAN provider networks, ids 100 and 101."""
    return World(PHYSICAL)
