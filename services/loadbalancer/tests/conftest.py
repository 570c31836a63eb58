"""Fixtures of the loadbalancer service's tests."""

import pytest
from services.loadbalancer.tests.world import World


@pytest.fixture
def world() -> World:
    """A cloud whose Octavia balances by OVN."""
    return World()


@pytest.fixture
def amphora() -> World:
    """A cloud whose Octavia takes every option."""
    return World("amphora", "ROUND_ROBIN")
