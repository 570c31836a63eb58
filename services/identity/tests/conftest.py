"""Fixtures of the identity service's tests."""

import pytest
from services.identity.tests.world import World


@pytest.fixture
def world() -> World:
    """A simulated cloud with one registered region, of this test alone."""
    return World()
